//! Products of vectors and of small square matrices by rows.

/// xᵀy
#[inline(always)]
pub(crate) fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

/// A x for a square A by rows.
pub(crate) fn multiply(a: &[f64], x: &[f64]) -> Vec<f64> {
    a.chunks_exact(x.len()).map(|row| dot(row, x)).collect()
}

/// Aᵀ x for a square A by rows.
pub(crate) fn multiply_transposed(a: &[f64], x: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; x.len()];
    for (row, x) in a.chunks_exact(out.len()).zip(x) {
        out.iter_mut().zip(row).for_each(|(o, a)| *o += a * x);
    }
    out
}
