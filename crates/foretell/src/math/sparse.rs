//! A sparse matrix by columns: what the uncompressed Σ̂_TH needs for its truncated SVD.

use faer::Mat;

use super::svd::Linear;

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

/// Compressed columns.
#[derive(Clone, Debug)]
pub(crate) struct SparseMatrix {
    rows: usize,
    /// Where each column starts in `row` and `value`; one more than there are columns.
    start: Vec<usize>,
    row: Vec<u32>,
    value: Vec<f64>,
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
        let mut start = vec![0; columns + 1];
        entries.iter().for_each(|&((_, j), _)| start[j as usize + 1] += 1);
        (0..columns).for_each(|j| start[j + 1] += start[j]);
        SparseMatrix {
            rows,
            start,
            row: entries.iter().map(|&((i, _), _)| i).collect(),
            value: entries.iter().map(|e| e.1).collect(),
        }
    }

    /// The non-zeros of a column.
    pub(crate) fn column(&self, j: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        let range = self.start[j]..self.start[j + 1];
        self.row[range.clone()].iter().zip(&self.value[range]).map(|(&i, &x)| (i as usize, x))
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
        self.start.len() - 1
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
