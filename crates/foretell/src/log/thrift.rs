//! Structs of Thrift in the compact protocol, in which Parquet says what it holds, before the decoder
//! reads them.
//!
//! The decoder reads fields that it knows as what they should be, whatever they say they are, and
//! believes the sizes of those that it does not know: it would count to the size of a list of
//! booleans, which takes no bytes. Here fields that are known must have their types, and the others
//! take time in proportion to their bytes.

use std::io::{self, Read};

/// The type of a field.
pub(super) enum Kind {
    Bool,
    Byte,
    /// Of any length.
    Int,
    Double,
    Bytes,
    List(&'static Kind),
    /// By the numbers of its fields, from 1 on. Those beyond are passed over, as the decoder does.
    Struct(&'static [Kind]),
    /// Passed over, by the decoder too.
    Any,
}

/// Structs and lists within others: Parquet has six.
const DEPTH: u32 = 16;
/// Bytes of a number: seven bits in each.
const NUMBER: u32 = 10;
/// Of the size of a list: it stands in the bytes that follow.
const LONG_LIST: u8 = 15;

/// Types of the protocol.
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I16: u8 = 4;
const I32: u8 = 5;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BYTES: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// Reads a struct; `found` takes its integers, with the numbers of their fields. Returns how many
/// bytes it has.
pub(super) fn read_struct(input: impl Read, known: &[Kind], found: &mut dyn FnMut(usize, i64)) -> io::Result<u64> {
    let mut fields = Fields { input, read: 0 };
    fields.read(known, DEPTH, found)?;
    Ok(fields.read)
}

/// Fields that are read one after the other.
struct Fields<R> {
    input: R,
    /// Bytes read so far.
    read: u64,
}

impl<R: Read> Fields<R> {
    fn read(&mut self, known: &[Kind], depth: u32, found: &mut dyn FnMut(usize, i64)) -> io::Result<()> {
        let mut last = 0;
        while let Some((of, field)) = self.field(last)? {
            last = field;
            let field = usize::try_from(field).unwrap_or(0);
            match field.checked_sub(1).and_then(|field| known.get(field)) {
                Some(Kind::Int) if matches!(of, I16 | I32 | I64) => found(field, self.integer()?),
                Some(kind) => self.value(kind, of, depth)?,
                None => self.skip(of, depth)?,
            }
        }
        Ok(())
    }

    /// The type and number of the next field; `None` at the end of a struct.
    fn field(&mut self, last: i16) -> io::Result<Option<(u8, i16)>> {
        let byte = self.byte()?;
        let (of, step) = (byte & 0xf, byte >> 4);
        if of == 0 {
            return Ok(None);
        }
        let field = match step {
            0 => i16::try_from(self.integer()?).ok(),
            step => last.checked_add(i16::from(step)),
        };
        field.map(|field| Some((of, field))).ok_or_else(|| strange("a field without a number"))
    }

    /// A value of a kind that says what it is.
    fn value(&mut self, kind: &Kind, of: u8, depth: u32) -> io::Result<()> {
        match (kind, of) {
            (Kind::Any, of) => self.skip(of, depth),
            (Kind::Struct(known), STRUCT) => self.read(known, deeper(depth)?, &mut |_, _| {}),
            (Kind::List(kind), LIST) => self.list(|fields, of| fields.value(kind, of, deeper(depth)?)),
            (Kind::Bool, TRUE | FALSE) | (Kind::Byte, BYTE) | (Kind::Double, DOUBLE) | (Kind::Bytes, BYTES) => {
                self.skip(of, depth)
            }
            (Kind::Int, I16 | I32 | I64) => self.skip(of, depth),
            _ => Err(strange("a field of another type")),
        }
    }

    fn skip(&mut self, of: u8, depth: u32) -> io::Result<()> {
        match of {
            TRUE | FALSE => Ok(()),
            BYTE => self.pass(1),
            I16 | I32 | I64 => self.number().map(drop),
            DOUBLE => self.pass(8),
            BYTES => {
                let bytes = self.number()?;
                self.pass(bytes)
            }
            LIST => self.list(|fields, of| fields.skip(of, deeper(depth)?)),
            STRUCT => {
                while let Some((of, _)) = self.field(0)? {
                    self.skip(of, deeper(depth)?)?;
                }
                Ok(())
            }
            _ => Err(strange("a field of another type")),
        }
    }

    /// The elements of a list, each of which takes bytes.
    fn list(&mut self, mut element: impl FnMut(&mut Self, u8) -> io::Result<()>) -> io::Result<()> {
        let byte = self.byte()?;
        let (n, of) = match (byte >> 4, byte & 0xf) {
            (LONG_LIST, of) => (self.number()?, of),
            (n, of) => (u64::from(n), of),
        };
        if matches!(of, TRUE | FALSE) {
            return Err(strange("a list of booleans"));
        }
        (0..n).try_for_each(|_| element(self, of))
    }

    fn byte(&mut self) -> io::Result<u8> {
        let mut byte = [0];
        self.input.read_exact(&mut byte)?;
        self.read += 1;
        Ok(byte[0])
    }

    fn pass(&mut self, bytes: u64) -> io::Result<()> {
        let passed = io::copy(&mut self.input.by_ref().take(bytes), &mut io::sink())?;
        self.read += passed;
        if passed == bytes { Ok(()) } else { Err(strange("an end too early")) }
    }

    /// A number without a sign, seven bits a byte.
    fn number(&mut self) -> io::Result<u64> {
        let mut number = 0;
        for i in 0..NUMBER {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << (7 * i);
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(strange("a number without an end"))
    }

    /// A number with a sign, which is its lowest bit.
    fn integer(&mut self) -> io::Result<i64> {
        let number = self.number()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }
}

fn deeper(depth: u32) -> io::Result<u32> {
    depth.checked_sub(1).ok_or_else(|| strange("structs within structs"))
}

fn strange(what: &str) -> io::Error {
    io::Error::other(format!("it has {what}"))
}
