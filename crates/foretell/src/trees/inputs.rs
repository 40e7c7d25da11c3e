//! Rows of features for growing and predicting, checked and laid out once.

use rayon::prelude::*;

use crate::error::{Error, Result};

/// Features in a vector: rows are padded to a multiple of it.
pub(super) const LANES: usize = 8;
/// Features in a cache line of 64 bytes; the first row starts at one.
const LINE: usize = 16;
/// Rows that one task copies.
const BLOCK: usize = 1024;

/// Rows of features as callers have them: row after row, `width` numbers each.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    values: &'a [f64],
    width: usize,
}

impl<'a> Rows<'a> {
    /// A view of `values` as rows of `width` features.
    pub fn new(values: &'a [f64], width: usize) -> Result<Rows<'a>> {
        if width == 0 || !values.len().is_multiple_of(width) {
            return Err(Error::data(
                format!("{} numbers are not rows of {width} features", values.len()),
                "give whole rows of at least one feature",
            ));
        }
        Ok(Rows { values, width })
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.values.len() / self.width
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

/// Rows of features as forests read them: finite, in single precision, padded to whole vectors.
///
/// Made once and used for every forest that is grown from the same rows or predicts them.
#[derive(Debug)]
pub struct Inputs {
    values: Aligned,
    rows: usize,
    width: usize,
    stride: usize,
}

impl Inputs {
    /// Checks and copies rows, in parallel over blocks of them. NaN and what is infinite in single
    /// precision are refused.
    ///
    /// Features are rounded to single precision, so rows that differ by less are the same row to a
    /// forest.
    pub fn new(rows: Rows<'_>) -> Result<Inputs> {
        let mut inputs = Inputs::zeros(rows.len(), rows.width);
        let stride = inputs.stride;
        let blocks = inputs.values.mut_slice().par_chunks_mut(BLOCK * stride).zip(rows.values.par_chunks(BLOCK * rows.width));
        let wrong = blocks.enumerate().find_map_first(|(block, (to, from))| {
            let mut pairs = to.chunks_exact_mut(stride).zip(from.chunks_exact(rows.width)).enumerate();
            pairs.find_map(|(i, (to, from))| copy_row(from, to, block * BLOCK + i).err())
        });
        wrong.map_or(Ok(inputs), Err)
    }

    fn zeros(rows: usize, width: usize) -> Inputs {
        let stride = width.next_multiple_of(LANES);
        Inputs { values: Aligned::new(rows * stride), rows, width, stride }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Features in a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Numbers in a row, padding included.
    pub(super) fn stride(&self) -> usize {
        self.stride
    }

    /// All rows, padded.
    pub(super) fn values(&self) -> &[f32] {
        self.values.slice()
    }

    /// Some of the rows.
    pub(super) fn select(&self, chosen: &[usize]) -> Inputs {
        let mut inputs = Inputs::zeros(chosen.len(), self.width);
        for (to, &i) in inputs.values.mut_slice().chunks_exact_mut(self.stride).zip(chosen) {
            to.copy_from_slice(&self.values()[i * self.stride..][..self.stride]);
        }
        inputs
    }

    /// The features, column after column.
    pub(super) fn columns(&self) -> Vec<f32> {
        let column = |j: usize| self.values().iter().skip(j).step_by(self.stride).copied();
        (0..self.width).flat_map(column).collect()
    }
}

/// Copies the features of row `i`.
fn copy_row(from: &[f64], to: &mut [f32], i: usize) -> Result<()> {
    to.iter_mut().zip(from).for_each(|(to, &from)| *to = from as f32);
    match to.iter().position(|x| !x.is_finite()) {
        None => Ok(()),
        Some(j) => Err(Error::data(
            format!("feature {j} of row {i} is {}, which a tree cannot split", from[j]),
            format!("give finite numbers of at most {:e}", f32::MAX),
        )),
    }
}

/// Zeros that start at a cache line: vectors that cross two lines take twice the time to read.
#[derive(Debug)]
pub(super) struct Aligned {
    values: Vec<f32>,
    start: usize,
}

impl Aligned {
    pub(super) fn new(len: usize) -> Aligned {
        let values = vec![0.0; len + LINE];
        // The offset may be unavailable (then it is huge); any offset is correct, only slower.
        let start = values.as_ptr().align_offset(LINE * size_of::<f32>()).min(LINE);
        let mut aligned = Aligned { values, start };
        aligned.values.truncate(start + len);
        aligned
    }

    pub(super) fn slice(&self) -> &[f32] {
        &self.values[self.start..]
    }

    pub(super) fn mut_slice(&mut self) -> &mut [f32] {
        &mut self.values[self.start..]
    }
}
