//! What pages of Parquet say of the numbers and lengths of their values, before the decoder believes
//! it.

use parquet::basic::{Encoding, Type};
use parquet::column::page::Page;
use parquet::errors::{ParquetError, Result};
use parquet::schema::types::ColumnDescriptor;

use crate::limits::NAME;

/// Bytes of a value of fixed length: those that logs have are identifiers and decimals.
const FIXED: i32 = 1 << 12;
/// Strings of a page that are stored as differences. Writers end a page after a megabyte, or 20 000
/// rows.
const STRINGS: usize = 1 << 22;
/// Bits of a number, seven in each byte.
const NUMBER_BITS: u32 = 32;

/// Refuses columns whose values have a fixed length that makes no names.
pub(super) fn check_type(column: &ColumnDescriptor) -> Result<()> {
    let is_fixed = column.physical_type() == Type::FIXED_LEN_BYTE_ARRAY;
    match column.type_length() {
        0..=FIXED => Ok(()),
        _ if !is_fixed => Ok(()),
        length => Err(strange(format!("values of {length} bytes each"))),
    }
}

/// Refuses pages that the decoder would unfold to far more than they are: it takes their numbers of
/// values as they are, and repeats values of a dictionary and prefixes of strings.
pub(super) fn check_page(page: &Page, column: &ColumnDescriptor) -> Result<()> {
    match page {
        Page::DictionaryPage { buf, num_values, .. } => check_dictionary(buf, *num_values as usize, column),
        Page::DataPage { buf, num_values, encoding, def_level_encoding, rep_level_encoding, .. } if has_lengths(*encoding) => {
            let levels = [(column.max_rep_level(), *rep_level_encoding), (column.max_def_level(), *def_level_encoding)];
            let mut values = &buf[..];
            for (_, encoding) in levels.into_iter().filter(|(most, _)| *most > 0) {
                values = after_levels(values, encoding).ok_or_else(|| strange("levels that do not end"))?;
            }
            check_lengths(values, *num_values as usize, *encoding)
        }
        Page::DataPageV2 { buf, num_values, encoding, def_levels_byte_len, rep_levels_byte_len, .. }
            if has_lengths(*encoding) =>
        {
            let levels = *def_levels_byte_len as usize + *rep_levels_byte_len as usize;
            let values = buf.get(levels..).ok_or_else(|| strange("levels that do not end"))?;
            check_lengths(values, *num_values as usize, *encoding)
        }
        Page::DataPage { .. } | Page::DataPageV2 { .. } => Ok(()),
    }
}

fn check_dictionary(values: &[u8], n: usize, column: &ColumnDescriptor) -> Result<()> {
    let size = match column.physical_type() {
        Type::INT32 | Type::FLOAT => 4,
        Type::INT64 | Type::DOUBLE => 8,
        Type::INT96 => 12,
        Type::FIXED_LEN_BYTE_ARRAY => column.type_length().max(1) as usize,
        Type::BYTE_ARRAY => return check_strings(values, n),
        Type::BOOLEAN => return Err(strange("a dictionary of booleans")),
    };
    if n > values.len() / size { Err(strange(format!("a dictionary of {n} values in {} bytes", values.len()))) } else { Ok(()) }
}

/// Each string begins with its length.
fn check_strings(mut strings: &[u8], n: usize) -> Result<()> {
    for _ in 0..n {
        let (length, rest) = strings.split_first_chunk().ok_or_else(|| strange("a dictionary that ends too early"))?;
        let length = u32::from_le_bytes(*length) as usize;
        check_name(length)?;
        strings = rest.get(length..).ok_or_else(|| strange("a dictionary that ends too early"))?;
    }
    Ok(())
}

fn check_name(length: usize) -> Result<()> {
    let problem = || strange(format!("a name of {length} bytes, of which there can be {NAME}"));
    if length > NAME { Err(problem()) } else { Ok(()) }
}

/// Whether the decoder makes room for as many lengths as the values say that they have.
fn has_lengths(encoding: Encoding) -> bool {
    matches!(encoding, Encoding::DELTA_LENGTH_BYTE_ARRAY | Encoding::DELTA_BYTE_ARRAY)
}

/// What follows levels that begin with their size.
fn after_levels(values: &[u8], encoding: Encoding) -> Option<&[u8]> {
    let (size, levels) = values.split_first_chunk()?;
    if encoding == Encoding::RLE { levels.get(u32::from_le_bytes(*size) as usize..) } else { None }
}

/// Refuses strings that begin with what the one before them begins with, if they become too long, and
/// more strings than a page says that it has.
fn check_lengths(values: &[u8], most: usize, encoding: Encoding) -> Result<()> {
    let contradict = || strange("strings whose lengths contradict each other");
    let prefixes = Deltas::of(values).filter(|deltas| deltas.n <= most.min(STRINGS)).ok_or_else(contradict)?;
    if encoding == Encoding::DELTA_LENGTH_BYTE_ARRAY {
        return Ok(());
    }
    let (prefixes, end) = prefixes.read().ok_or_else(contradict)?;
    let suffixes = values.get(end..).and_then(Deltas::of).filter(|deltas| deltas.n == prefixes.len()).ok_or_else(contradict)?;
    let (suffixes, _) = suffixes.read().ok_or_else(contradict)?;
    for (prefix, suffix) in prefixes.into_iter().zip(suffixes) {
        let length = |n: i32| usize::try_from(n).map_err(|_| contradict());
        check_name(length(prefix)? + length(suffix)?)?;
    }
    Ok(())
}

/// Integers as differences of neighbours, in blocks of smaller blocks of so many bits each.
struct Deltas<'b> {
    bytes: &'b [u8],
    at: usize,
    /// Smaller blocks of a block, and integers in each.
    blocks: usize,
    in_each: usize,
    n: usize,
    first: i32,
}

impl<'b> Deltas<'b> {
    /// `None` if there are none.
    fn of(bytes: &'b [u8]) -> Option<Deltas<'b>> {
        let mut deltas = Deltas { bytes, at: 0, blocks: 0, in_each: 0, n: 0, first: 0 };
        let in_block = deltas.number()?;
        deltas.blocks = deltas.number()?;
        deltas.n = deltas.number()?;
        deltas.first = deltas.integer()?;
        deltas.in_each = in_block.checked_div(deltas.blocks)?;
        let is_sound = in_block.is_multiple_of(deltas.blocks)
            && deltas.in_each > 0
            && deltas.in_each.is_multiple_of(32)
            && in_block.is_multiple_of(128);
        is_sound.then_some(deltas)
    }

    /// The integers, and where they end.
    fn read(mut self) -> Option<(Vec<i32>, usize)> {
        let mut all = Vec::with_capacity(self.n);
        all.extend((self.n > 0).then_some(self.first));
        while all.len() < self.n {
            let least = self.integer()?;
            let bits = self.bytes.get(self.at..self.at.checked_add(self.blocks)?)?;
            self.at += self.blocks;
            for &bits in bits.iter().take((self.n - all.len()).div_ceil(self.in_each)) {
                let of_block = self.in_each.min(self.n - all.len());
                self.block(bits, of_block, least, &mut all)?;
            }
        }
        Some((all, self.at))
    }

    /// The next so many integers, of as many bits each.
    fn block(&mut self, bits: u8, n: usize, least: i32, all: &mut Vec<i32>) -> Option<()> {
        let (bits, block) = (usize::from(bits), self.bytes.get(self.at..)?);
        if bits > 32 || (n * bits).div_ceil(8) > block.len() {
            return None;
        }
        let mut last = *all.last()?;
        for i in 0..n {
            let delta =
                (i * bits..(i + 1) * bits).rev().fold(0, |delta, bit| delta << 1 | u32::from(block[bit / 8] >> (bit % 8) & 1));
            last = last.wrapping_add(least).wrapping_add(delta as i32);
            all.push(last);
        }
        self.at += bits * self.in_each / 8;
        Some(())
    }

    fn number(&mut self) -> Option<usize> {
        let (mut number, mut shift) = (0_u64, 0);
        loop {
            let byte = *self.bytes.get(self.at)?;
            self.at += 1;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return u32::try_from(number).ok().map(|number| number as usize);
            }
            shift += 7;
            if shift > NUMBER_BITS {
                return None;
            }
        }
    }

    /// A number with a sign, which is its lowest bit.
    fn integer(&mut self) -> Option<i32> {
        let number = self.number()? as i64;
        i32::try_from((number >> 1) ^ -(number & 1)).ok()
    }
}

fn strange(what: impl std::fmt::Display) -> ParquetError {
    ParquetError::General(format!("a page has {what}"))
}
