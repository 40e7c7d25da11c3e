//! The inner loops of growing, over whole rows, with the widest vectors the machine has.
//!
//! Each lane is a feature and adds its rows in their order, so results do not depend on the vectors.

use pulp::{Arch, Simd, WithSimd};

use super::inputs::Bounds;

/// Vectors of features that are worked on together: their thresholds and sums fill the 16 registers of AVX2.
const GROUP: usize = 4;
/// Rows summed in single precision before their sum is added to the total: keeps rounding errors of long sums small.
const ROWS: usize = 512;

/// For each feature, over the rows at most at its threshold: Σ residual and Σ weight.
#[derive(Clone, Debug)]
pub(super) struct Left {
    pub(super) residuals: Vec<f32>,
    pub(super) weights: Vec<f32>,
}

impl Left {
    pub(super) fn new(stride: usize) -> Left {
        Left { residuals: vec![0.0; stride], weights: vec![0.0; stride] }
    }

    /// Sums over `rows`, all features in one sweep.
    pub(super) fn sum(&mut self, rows: &[f32], thresholds: &[f32], residuals: &[f32], weights: &[f32]) {
        self.residuals.fill(0.0);
        self.weights.fill(0.0);
        Arch::new().dispatch(Sweep { rows, thresholds, residuals, weights, left: self });
    }
}

struct Sweep<'a> {
    rows: &'a [f32],
    thresholds: &'a [f32],
    residuals: &'a [f32],
    weights: &'a [f32],
    left: &'a mut Left,
}

impl WithSimd for Sweep<'_> {
    type Output = ();

    #[inline(always)] // as all below, into the function that is compiled for those vectors
    fn with_simd<S: Simd>(mut self, simd: S) {
        let vectors = self.thresholds.len() / S::F32_LANES;
        for first in (0..vectors).step_by(GROUP) {
            match vectors - first {
                1 => self.group::<S, 1>(simd, first),
                2 => self.group::<S, 2>(simd, first),
                3 => self.group::<S, 3>(simd, first),
                _ => self.group::<S, GROUP>(simd, first),
            }
        }
    }
}

impl Sweep<'_> {
    /// The sums of `N` vectors of features, from the `first` on.
    #[inline(always)]
    fn group<S: Simd, const N: usize>(&mut self, simd: S, first: usize) {
        let stride = self.thresholds.len();
        let thresholds = *vectors::<S, N>(self.thresholds, first);
        let zero = simd.splat_f32s(0.0);
        let blocks = self.rows.chunks(ROWS * stride).zip(self.residuals.chunks(ROWS)).zip(self.weights.chunks(ROWS));
        for ((rows, residuals), weights) in blocks {
            let (mut residual_sums, mut weight_sums) = ([zero; N], [zero; N]);
            for ((row, &residual), &weight) in rows.chunks_exact(stride).zip(residuals).zip(weights) {
                let row = vectors::<S, N>(row, first);
                let (residual, weight) = (simd.splat_f32s(residual), simd.splat_f32s(weight));
                for n in 0..N {
                    let on_left = simd.less_than_or_equal_f32s(row[n], thresholds[n]);
                    residual_sums[n] = simd.add_f32s(residual_sums[n], simd.select_f32s(on_left, residual, zero));
                    weight_sums[n] = simd.add_f32s(weight_sums[n], simd.select_f32s(on_left, weight, zero));
                }
            }
            for (sums, more) in [(&mut self.left.residuals, residual_sums), (&mut self.left.weights, weight_sums)] {
                let sums = vectors_mut::<S, N>(sums, first);
                (0..N).for_each(|n| sums[n] = simd.add_f32s(sums[n], more[n]));
            }
        }
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

/// Copies the rows of `from` that `order` lists to `to`, and finds their bounds on the way.
pub(super) fn gather(from: &[f32], order: &[u32], to: &mut [f32], bounds: &mut Bounds) {
    Arch::new().dispatch(Gather { from, order, to, bounds });
}

struct Gather<'a> {
    from: &'a [f32],
    order: &'a [u32],
    to: &'a mut [f32],
    bounds: &'a mut Bounds,
}

impl WithSimd for Gather<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let vectors = self.bounds.low.len() / S::F32_LANES;
        for first in (0..vectors).step_by(GROUP) {
            match vectors - first {
                1 => self.group::<S, 1>(simd, first),
                2 => self.group::<S, 2>(simd, first),
                3 => self.group::<S, 3>(simd, first),
                _ => self.group::<S, GROUP>(simd, first),
            }
        }
    }
}

impl Gather<'_> {
    /// Copies `N` vectors of each row, from the `first` on.
    #[inline(always)]
    fn group<S: Simd, const N: usize>(&mut self, simd: S, first: usize) {
        let stride = self.bounds.low.len();
        let (mut low, mut high) = ([simd.splat_f32s(f32::INFINITY); N], [simd.splat_f32s(f32::NEG_INFINITY); N]);
        for (&i, to) in self.order.iter().zip(self.to.chunks_exact_mut(stride)) {
            let row = *vectors::<S, N>(&self.from[i as usize * stride..][..stride], first);
            for n in 0..N {
                low[n] = simd.min_f32s(low[n], row[n]);
                high[n] = simd.max_f32s(high[n], row[n]);
            }
            *vectors_mut::<S, N>(to, first) = row;
        }
        *vectors_mut::<S, N>(&mut self.bounds.low, first) = low;
        *vectors_mut::<S, N>(&mut self.bounds.high, first) = high;
    }
}
