//! Products of vectors and of small square matrices by rows, and where a value is largest.

/// xᵀy, summed in order. Results depend on the order of additions; functions below sum in other
/// orders.
#[inline(always)]
pub(crate) fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

/// xᵀy in eight sums, which the processor adds in parallel.
pub(crate) fn dot8(x: &[f64], y: &[f64]) -> f64 {
    const LANES: usize = 8; // two registers of four
    let mut sums = [0.0; LANES];
    let (xs, ys) = (x.chunks_exact(LANES), y.chunks_exact(LANES));
    let rest: f64 = xs.remainder().iter().zip(ys.remainder()).map(|(x, y)| x * y).sum();
    for (x, y) in xs.zip(ys) {
        for i in 0..LANES {
            sums[i] += x[i] * y[i];
        }
    }
    sums.iter().sum::<f64>() + rest
}

/// xᵀy in four sums, for kernels that are compiled for the vector instructions of the machine.
#[inline(always)]
pub(crate) fn dot4(x: &[f64], y: &[f64]) -> f64 {
    const LANES: usize = 4;
    let ((x, x_rest), (y, y_rest)) = (x.as_chunks::<LANES>(), y.as_chunks::<LANES>());
    let mut sums = [0.0; LANES];
    for g in 0..x.len().min(y.len()) {
        for i in 0..LANES {
            sums[i] += x[g][i] * y[g][i];
        }
    }
    let mut rest = 0.0;
    for i in 0..x_rest.len().min(y_rest.len()) {
        rest += x_rest[i] * y_rest[i];
    }
    (sums[0] + sums[2]) + (sums[1] + sums[3]) + rest
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

/// A B for square matrices by rows.
pub(crate) fn product(a: &[f64], b: &[f64], d: usize) -> Vec<f64> {
    a.chunks_exact(d).flat_map(|row| multiply_transposed(b, row)).collect()
}

/// The index of the largest value (the first of equals), and that value.
pub(crate) fn argmax(values: impl IntoIterator<Item = f64>) -> (usize, f64) {
    let all = values.into_iter().enumerate();
    all.fold((0, f64::NEG_INFINITY), |best, x| if x.1 > best.1 { x } else { best })
}
