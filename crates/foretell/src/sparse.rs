//! A sparse matrix by columns: what the uncompressed Σ̂_TH needs for its truncated SVD.

use faer::matrix_free::{BiLinOp, LinOp};
use faer::{Mat, MatMut, MatRef, Par};

use faer::dyn_stack::{MemStack, StackReq};

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
    /// From (row, column) → value, each place once.
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

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    pub(crate) fn columns(&self) -> usize {
        self.start.len() - 1
    }

    /// The non-zeros of a column.
    pub(crate) fn column(&self, j: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        let range = self.start[j]..self.start[j + 1];
        self.row[range.clone()].iter().zip(&self.value[range]).map(|(&i, &x)| (i as usize, x))
    }

    pub(crate) fn scale(&mut self, factor: f64) {
        self.value.iter_mut().for_each(|x| *x *= factor);
    }

    pub(crate) fn to_dense(&self) -> Mat<f64> {
        let mut dense = Mat::zeros(self.rows, self.columns());
        for j in 0..self.columns() {
            self.column(j).for_each(|(i, x)| dense[(i, j)] = x);
        }
        dense
    }

    fn times(&self, mut out: MatMut<'_, f64>, x: MatRef<'_, f64>) {
        out.fill(0.0);
        for k in 0..x.ncols() {
            for j in 0..self.columns() {
                let scale = x[(j, k)];
                self.column(j).for_each(|(i, value)| out[(i, k)] += value * scale);
            }
        }
    }

    fn transpose_times(&self, mut out: MatMut<'_, f64>, x: MatRef<'_, f64>) {
        for k in 0..x.ncols() {
            for j in 0..self.columns() {
                out[(j, k)] = self.column(j).map(|(i, value)| value * x[(i, k)]).sum();
            }
        }
    }
}

impl LinOp<f64> for SparseMatrix {
    fn apply_scratch(&self, _: usize, _: Par) -> StackReq {
        StackReq::EMPTY
    }

    fn nrows(&self) -> usize {
        self.rows
    }

    fn ncols(&self) -> usize {
        self.columns()
    }

    fn apply(&self, out: MatMut<'_, f64>, rhs: MatRef<'_, f64>, _: Par, _: &mut MemStack) {
        self.times(out, rhs);
    }

    fn conj_apply(&self, out: MatMut<'_, f64>, rhs: MatRef<'_, f64>, _: Par, _: &mut MemStack) {
        self.times(out, rhs);
    }
}

impl BiLinOp<f64> for SparseMatrix {
    fn transpose_apply_scratch(&self, _: usize, _: Par) -> StackReq {
        StackReq::EMPTY
    }

    fn transpose_apply(&self, out: MatMut<'_, f64>, rhs: MatRef<'_, f64>, _: Par, _: &mut MemStack) {
        self.transpose_times(out, rhs);
    }

    fn adjoint_apply(&self, out: MatMut<'_, f64>, rhs: MatRef<'_, f64>, _: Par, _: &mut MemStack) {
        self.transpose_times(out, rhs);
    }
}
