//! Numbers in single precision: products of matrices by rows, and functions of each element that
//! compilers turn into vector instructions.

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use pulp::{Simd, WithSimd};

/// Runs a closure that was compiled for the widest vectors of the machine. What it calls must be
/// inlined.
pub(crate) fn vectorised<R>(work: impl FnOnce() -> R) -> R {
    struct Vectorised<F>(F);
    impl<R, F: FnOnce() -> R> WithSimd for Vectorised<F> {
        type Output = R;

        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) -> R {
            (self.0)()
        }
    }
    #[cfg(target_arch = "x86_64")]
    if let Some(simd) = pulp::x86::V3::try_new() {
        return Simd::vectorize(simd, Vectorised(work));
    }
    pulp::Arch::new().dispatch(Vectorised(work))
}

/// A matrix by rows, or the transpose of one.
#[derive(Clone, Copy)]
pub(crate) struct Factor<'a>(MatRef<'a, f32>);

impl<'a> Factor<'a> {
    /// A matrix of `columns` by its rows.
    pub(crate) fn rows(values: &'a [f32], columns: usize) -> Factor<'a> {
        Factor(MatRef::from_row_major_slice(values, values.len() / columns, columns))
    }

    /// Its columns from `first` on.
    pub(crate) fn columns(self, first: usize, number: usize) -> Factor<'a> {
        Factor(self.0.subcols(first, number))
    }

    pub(crate) fn transposed(self) -> Factor<'a> {
        Factor(self.0.transpose())
    }
}

/// Whether a product replaces what is there, or is added to it.
#[derive(Clone, Copy)]
pub(crate) enum Into {
    Replace,
    Add,
}

/// C = A B or C += A B, where C has `columns` and the product fills those from `first` on.
pub(crate) fn multiply_into(c: &mut [f32], columns: usize, first: usize, into: Into, a: Factor<'_>, b: Factor<'_>) {
    let rows = c.len() / columns;
    let c = MatMut::from_row_major_slice_mut(c, rows, columns).subcols_mut(first, b.0.ncols());
    let accum = match into {
        Into::Replace => Accum::Replace,
        Into::Add => Accum::Add,
    };
    matmul(c, accum, a.0, b.0, 1.0, Par::Seq);
}

/// y += x
#[inline(always)]
pub(crate) fn add(y: &mut [f32], x: &[f32]) {
    y.iter_mut().zip(x).for_each(|(y, x)| *y += x);
}

/// y += s x
#[inline(always)]
pub(crate) fn add_scaled(y: &mut [f32], s: f32, x: &[f32]) {
    y.iter_mut().zip(x).for_each(|(y, x)| *y += s * x);
}

/// xᵀy in sixteen sums.
#[inline(always)]
pub(crate) fn dot16(x: &[f32], y: &[f32]) -> f32 {
    const LANES: usize = 16;
    let ((x, x_rest), (y, y_rest)) = (x.as_chunks::<LANES>(), y.as_chunks::<LANES>());
    let mut sums = [0.0; LANES];
    for (x, y) in x.iter().zip(y) {
        for i in 0..LANES {
            sums[i] += x[i] * y[i];
        }
    }
    let rest: f32 = x_rest.iter().zip(y_rest).map(|(x, y)| x * y).sum();
    sums.iter().sum::<f32>() + rest
}

/// Beyond this exp overflows, or its result is no longer a normal number.
const EXP_BOUND: f32 = 87.0;

/// eˣ with a relative error below 3e-7, for x within ±87; beyond it is that of the bound.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    // ln 2 in two parts, so that n ln 2 loses nothing.
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    // Adding and subtracting it rounds to an integer.
    const ROUND: f32 = 12_582_912.0;
    let x = x.clamp(-EXP_BOUND, EXP_BOUND);
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = x - n * LN_2_HIGH - n * LN_2_LOW;
    // Taylor to r⁷; |r| ≤ ln 2 / 2.
    let p = 1.0 + r * (1.0 + r * (0.5 + r * (1.0 / 6.0 + r * (1.0 / 24.0 + r * (1.0 / 120.0 + r * (1.0 / 720.0))))));
    let power = ((shifted.to_bits() as i32).wrapping_sub(ROUND.to_bits() as i32) + 127) << 23;
    p * f32::from_bits(power as u32)
}

/// 1 / (1 + e⁻ˣ)
#[inline(always)]
pub(crate) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// The hyperbolic tangent.
#[inline(always)]
pub(crate) fn tanh(x: f32) -> f32 {
    1.0 - 2.0 / (1.0 + exp(2.0 * x))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A few roundings of single precision.
    const ROUNDING: f64 = 4e-7;

    #[test]
    fn functions_of_elements_are_those_of_the_standard_library() {
        for i in -8600..=8600 {
            let x = i as f32 / 100.0;
            let exact = f64::from(x).exp();
            assert!((f64::from(exp(x)) - exact).abs() <= ROUNDING * exact, "exp({x}) = {} and not {exact}", exp(x));
            assert!((f64::from(tanh(x)) - f64::from(x).tanh()).abs() <= ROUNDING, "tanh({x})");
            assert!((f64::from(sigmoid(x)) - 1.0 / (1.0 + f64::from(-x).exp())).abs() <= ROUNDING, "sigmoid({x})");
        }
        for x in [f32::INFINITY, f32::MAX, 1e3] {
            assert_eq!((tanh(x), tanh(-x), sigmoid(x)), (1.0, -1.0, 1.0));
            assert!(sigmoid(-x) < 1e-37 && exp(-x) > 0.0 && exp(x).is_finite());
        }
    }

    #[test]
    fn products_of_parts_are_those_of_the_definition() {
        let a: Vec<f32> = (0..6).map(|i| i as f32).collect(); // 2 × 3
        let b: Vec<f32> = (0..12).map(|i| (i * i % 7) as f32).collect(); // 3 × 4, of which 2 columns
        let mut c = vec![1.0; 6]; // 2 × 3
        multiply_into(&mut c, 3, 1, Into::Add, Factor::rows(&a, 3), Factor::rows(&b, 4).columns(2, 2));
        let entry = |i: usize, j: usize| 1.0 + (0..3).map(|k| a[3 * i + k] * b[4 * k + 2 + j]).sum::<f32>();
        assert_eq!(c, [1.0, entry(0, 0), entry(0, 1), 1.0, entry(1, 0), entry(1, 1)]);
        let mut c = vec![1.0; 9];
        multiply_into(&mut c, 3, 0, Into::Replace, Factor::rows(&a, 3).transposed(), Factor::rows(&a, 3));
        assert_eq!(c[5], a[1] * a[2] + a[4] * a[5]);
        assert_eq!(vectorised(|| dot16(&a, &a)), 55.0);
    }
}
