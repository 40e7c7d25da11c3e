//! Sparse rows, and a sparse matrix by columns: what the uncompressed Σ̂_TH needs for its truncated SVD.

use std::ops::Range;

use faer::Mat;

/// A matrix of which only products with vectors are needed.
pub(crate) trait Linear {
    fn rows(&self) -> usize;
    fn columns(&self) -> usize;
    /// A x
    fn times(&self, x: &[f64]) -> Vec<f64>;
    /// Aᵀ x
    fn transpose_times(&self, x: &[f64]) -> Vec<f64>;
}

/// A dense or sparse matrix.
#[derive(Clone, Debug)]
pub(crate) enum Matrix {
    Dense(Mat<f64>),
    Sparse(SparseMatrix),
}

impl Matrix {
    pub(crate) fn to_dense(&self) -> Mat<f64> {
        match self {
            Matrix::Dense(matrix) => matrix.clone(),
            Matrix::Sparse(matrix) => matrix.to_dense(),
        }
    }
}

/// The non-zeros of many rows, one row after the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SparseRows {
    /// Where each row ends.
    ends: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f64>,
}

impl SparseRows {
    /// Adds a row.
    pub(crate) fn push(&mut self, row: impl IntoIterator<Item = (usize, f64)>) {
        for (column, value) in row {
            self.columns.push(column as u32);
            self.values.push(value);
        }
        self.ends.push(self.columns.len());
    }

    /// How many rows there are.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The entries of the `i`-th row.
    #[inline(always)]
    pub(crate) fn row(&self, i: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        let (columns, values) = self.slices(i);
        columns.iter().zip(values).map(|(&column, &value)| (column as usize, value))
    }

    /// Columns and values of the `i`-th row.
    #[inline(always)]
    pub(crate) fn slices(&self, i: usize) -> (&[u32], &[f64]) {
        let range = self.range(i);
        (&self.columns[range.clone()], &self.values[range])
    }

    /// Where the entries of the `i`-th row stand among all.
    #[inline(always)]
    pub(crate) fn range(&self, i: usize) -> Range<usize> {
        if i == 0 { 0..self.ends[0] } else { self.ends[i - 1]..self.ends[i] }
    }
}

/// Compressed columns.
#[derive(Clone, Debug)]
pub(crate) struct SparseMatrix {
    rows: usize,
    /// The rows of the transpose.
    columns: SparseRows,
}

impl SparseMatrix {
    /// From (row, column) → value, each position once.
    pub(crate) fn from_entries(
        rows: usize,
        columns: usize,
        entries: impl IntoIterator<Item = ((u32, u32), f64)>,
    ) -> SparseMatrix {
        let mut entries: Vec<_> = entries.into_iter().collect();
        entries.sort_unstable_by_key(|&((i, j), _)| (j, i));
        let mut entries = entries.into_iter().peekable();
        let mut transposed = SparseRows::default();
        for column in 0..columns {
            let next = || entries.next_if(|&((_, j), _)| j as usize == column).map(|((i, _), x)| (i as usize, x));
            transposed.push(std::iter::from_fn(next));
        }
        SparseMatrix { rows, columns: transposed }
    }

    /// The non-zeros of a column.
    pub(crate) fn column(&self, j: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        self.columns.row(j)
    }

    pub(crate) fn to_dense(&self) -> Mat<f64> {
        let mut dense = Mat::zeros(self.rows, self.columns());
        for j in 0..self.columns() {
            self.column(j).for_each(|(i, x)| dense[(i, j)] = x);
        }
        dense
    }
}

impl Linear for SparseMatrix {
    fn rows(&self) -> usize {
        self.rows
    }

    fn columns(&self) -> usize {
        self.columns.len()
    }

    fn times(&self, x: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; self.rows];
        for (j, &scale) in x.iter().enumerate() {
            self.column(j).for_each(|(i, value)| out[i] += value * scale);
        }
        out
    }

    fn transpose_times(&self, x: &[f64]) -> Vec<f64> {
        (0..self.columns()).map(|j| self.column(j).map(|(i, value)| value * x[i]).sum()).collect()
    }
}
