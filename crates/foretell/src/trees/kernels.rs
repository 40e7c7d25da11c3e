//! The inner loops of growing, over whole rows, with the widest vectors the machine has.
//!
//! Each lane is a feature and takes its rows in their order, so results do not depend on the
//! vectors. What is generic in them is inlined into one function for a whole tree, which
//! [`dispatch`] calls.

use pulp::bytemuck::try_cast;
use pulp::{Simd, WithSimd};

/// Rows whose feature is above the threshold go right.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Split {
    pub(super) feature: usize,
    pub(super) threshold: f32,
}

/// Vectors of features that are summed together: their thresholds and sums fill the 16 registers of
/// AVX2.
const GROUP: usize = 4;
/// Vectors of features whose bounds are found together: this needs fewer registers, and a smaller
/// group would take as long.
const WIDE_GROUP: usize = 6;
/// Rows summed in single precision before their sum is added to the total: keeps rounding errors of
/// long sums small.
const ROWS: usize = 512;

/// Evaluates an expression for all vectors of a row, in groups of `N`, at most `$most`, from the
/// `first` on.
macro_rules! in_groups {
    ($most:ident of $stride:expr, |$first:ident, $n:ident| $call:expr) => {
        let vectors = $stride / S::F32_LANES;
        for $first in (0..vectors).step_by($most) {
            match $most.min(vectors - $first) {
                1 => in_groups!($n = 1, $call),
                2 => in_groups!($n = 2, $call),
                3 => in_groups!($n = 3, $call),
                4 => in_groups!($n = 4, $call),
                5 => in_groups!($n = 5, $call),
                _ => in_groups!($n = WIDE_GROUP, $call),
            }
        }
    };
    ($n:ident = $size:expr, $call:expr) => {{
        const $n: usize = $size;
        $call
    }};
}

/// Runs an operation with the widest vectors that divide a padded row.
pub(super) fn dispatch<Op: WithSimd>(op: Op) -> Op::Output {
    // The next wider vectors, which another crate may enable, have twice the lanes that rows are
    // padded to.
    #[cfg(target_arch = "x86_64")]
    if let Some(simd) = pulp::x86::V3::try_new() {
        return Simd::vectorize(simd, op);
    }
    pulp::Arch::new().dispatch(op)
}

/// A candidate for each feature, with sums over the rows on its left: those at most at the
/// threshold.
#[derive(Clone, Debug)]
pub(super) struct Candidates {
    pub(super) thresholds: Vec<f32>,
    /// Σ residual
    pub(super) residuals: Vec<f32>,
    /// Σ weight
    pub(super) weights: Vec<f32>,
}

impl Candidates {
    pub(super) fn new(stride: usize) -> Candidates {
        Candidates { thresholds: vec![0.0; stride], residuals: vec![0.0; stride], weights: vec![0.0; stride] }
    }

    /// Sums over `rows`, all features in one sweep.
    #[inline(always)]
    pub(super) fn sweep<S: Simd>(&mut self, simd: S, rows: &[f32], residuals: &[f32], weights: &[f32]) {
        self.residuals.fill(0.0);
        self.weights.fill(0.0);
        in_groups!(GROUP of self.thresholds.len(), |first, N| self.sweep_group::<S, N>(simd, first, rows, residuals, weights));
    }

    /// The sums of `N` vectors of features, from the `first` on.
    #[inline(always)]
    fn sweep_group<S: Simd, const N: usize>(&mut self, simd: S, first: usize, rows: &[f32], residuals: &[f32], weights: &[f32]) {
        let stride = self.thresholds.len();
        let thresholds = *vectors::<S, N>(&self.thresholds, first);
        let zero = simd.splat_f32s(0.0);
        for ((rows, residuals), weights) in rows.chunks(ROWS * stride).zip(residuals.chunks(ROWS)).zip(weights.chunks(ROWS)) {
            let (mut residual_sums, mut weight_sums) = ([zero; N], [zero; N]);
            for ((row, &residual), &weight) in rows.chunks_exact(stride).zip(residuals).zip(weights) {
                let row = vectors::<S, N>(row, first);
                let (residual, weight) = (simd.splat_f32s(residual), simd.splat_f32s(weight));
                for n in 0..N {
                    let on_left = simd.less_than_or_equal_f32s(row[n], thresholds[n]);
                    residual_sums[n] = simd.add_f32s(residual_sums[n], keep(simd, on_left, residual));
                    weight_sums[n] = simd.add_f32s(weight_sums[n], keep(simd, on_left, weight));
                }
            }
            for (sums, more) in [(&mut self.residuals, residual_sums), (&mut self.weights, weight_sums)] {
                let sums = vectors_mut::<S, N>(sums, first);
                (0..N).for_each(|n| sums[n] = simd.add_f32s(sums[n], more[n]));
            }
        }
    }
}

/// x where the mask is set, 0 elsewhere.
#[inline(always)]
fn keep<S: Simd>(simd: S, mask: S::m32s, x: S::f32s) -> S::f32s {
    match try_cast::<S::m32s, S::u32s>(mask) {
        // A bitwise AND is cheaper than a selection; the compiler cannot know that the mask is all
        // ones or zeros.
        Ok(ones) => simd.transmute_f32s_u32s(simd.and_u32s(ones, simd.transmute_u32s_f32s(x))),
        Err(_) => simd.select_f32s(mask, x, simd.splat_f32s(0.0)),
    }
}

#[inline(always)]
fn vectors<S: Simd, const N: usize>(row: &[f32], first: usize) -> &[S::f32s; N] {
    S::as_simd_f32s(row).0[first..][..N].as_array().expect("N vectors were taken")
}

#[inline(always)]
fn vectors_mut<S: Simd, const N: usize>(row: &mut [f32], first: usize) -> &mut [S::f32s; N] {
    S::as_mut_simd_f32s(row).0[first..][..N].as_mut_array().expect("N vectors were taken")
}

/// Smallest and largest value of each feature in a set of rows; equal for padding.
#[derive(Clone, Debug)]
pub(super) struct Bounds {
    pub(super) low: Vec<f32>,
    pub(super) high: Vec<f32>,
}

impl Bounds {
    pub(super) fn new(stride: usize) -> Bounds {
        Bounds { low: vec![0.0; stride], high: vec![0.0; stride] }
    }

    /// The bounds of these rows.
    pub(super) fn of(rows: &[f32], stride: usize) -> Bounds {
        struct FindBounds<'a>(&'a [f32], Bounds);
        impl WithSimd for FindBounds<'_> {
            type Output = Bounds;

            #[inline(always)]
            fn with_simd<S: Simd>(mut self, simd: S) -> Bounds {
                self.1.find(simd, self.0);
                self.1
            }
        }
        dispatch(FindBounds(rows, Bounds::new(stride)))
    }

    /// Finds the bounds of these rows.
    #[inline(always)]
    pub(super) fn find<S: Simd>(&mut self, simd: S, rows: &[f32]) {
        in_groups!(WIDE_GROUP of self.low.len(), |first, N| self.find_group::<S, N>(simd, first, rows));
    }

    /// The bounds of `N` vectors of features, from the `first` on.
    #[inline(always)]
    fn find_group<S: Simd, const N: usize>(&mut self, simd: S, first: usize, rows: &[f32]) {
        let (mut low, mut high) = ([simd.splat_f32s(f32::INFINITY); N], [simd.splat_f32s(f32::NEG_INFINITY); N]);
        for row in rows.chunks_exact(self.low.len()) {
            let row = vectors::<S, N>(row, first);
            for n in 0..N {
                low[n] = simd.min_f32s(low[n], row[n]);
                high[n] = simd.max_f32s(high[n], row[n]);
            }
        }
        *vectors_mut::<S, N>(&mut self.low, first) = low;
        *vectors_mut::<S, N>(&mut self.high, first) = high;
    }
}

/// Lists in `order` the rows that go left, and from its end those that go right; returns how many
/// go left.
#[inline(never)] // so that it has all registers
pub(super) fn separate(rows: &[f32], stride: usize, split: Split, order: &mut [u32]) -> usize {
    let n = order.len();
    let mut left = 0;
    for i in 0..n {
        // Both ends are written and one is counted: no branch to mispredict.
        order[left] = i as u32;
        order[n - 1 + left - i] = i as u32;
        left += usize::from(rows[i * stride + split.feature] <= split.threshold);
    }
    left
}

/// Exchanges rows `l` and `r`, of which `r` comes first.
#[inline(always)]
pub(super) fn exchange<S: Simd>(rows: &mut [f32], stride: usize, l: usize, r: usize) {
    let (front, back) = rows.split_at_mut(l * stride);
    let (r, l) = (&mut front[r * stride..][..stride], &mut back[..stride]);
    // Whole vectors, where `std::mem::swap` would move word by word.
    in_groups!(GROUP of stride, |first, N| {
        let (r, l) = (vectors_mut::<S, N>(r, first), vectors_mut::<S, N>(l, first));
        (*r, *l) = (*l, *r);
    });
}
