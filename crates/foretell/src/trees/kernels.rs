//! The inner loops of growing, over whole rows: they are compiled for the widest vectors the machine has.
//!
//! Each lane is a feature and adds its rows in their order, so results do not depend on the vectors.

use super::inputs::{Bounds, LANES};

/// Vectors of features whose sums stay in registers together.
const GROUP: usize = 4;
/// Rows summed in single precision before their sum is added to the total: keeps rounding errors of long sums small.
const ROWS: usize = 512;

type Vector = [f32; LANES];

/// For each feature, over the rows at most at its threshold: Σ residual and Σ weight.
#[derive(Clone, Debug, Default)]
pub(super) struct Left {
    pub(super) residuals: Vec<f32>,
    pub(super) weights: Vec<f32>,
}

impl Left {
    /// Sums over `rows`, all features in one sweep.
    pub(super) fn sum(&mut self, rows: &[f32], thresholds: &[f32], residuals: &[f32], weights: &[f32]) {
        let stride = thresholds.len();
        self.residuals.clear();
        self.residuals.resize(stride, 0.0);
        self.weights.clear();
        self.weights.resize(stride, 0.0);
        pulp::Arch::new().dispatch(
            #[inline(always)]
            || {
                let blocks = rows.chunks(ROWS * stride).zip(residuals.chunks(ROWS)).zip(weights.chunks(ROWS));
                for ((rows, residuals), weights) in blocks {
                    let mut sweep = Sweep { rows, thresholds, residuals, weights, left: self };
                    let vectors = stride / LANES;
                    for first in (0..vectors).step_by(GROUP) {
                        match vectors - first {
                            1 => sweep.group::<1>(first),
                            2 => sweep.group::<2>(first),
                            3 => sweep.group::<3>(first),
                            _ => sweep.group::<GROUP>(first),
                        }
                    }
                }
            },
        );
    }
}

struct Sweep<'a> {
    rows: &'a [f32],
    thresholds: &'a [f32],
    residuals: &'a [f32],
    weights: &'a [f32],
    left: &'a mut Left,
}

impl Sweep<'_> {
    /// The sums of `N` vectors of features, from the `first` on.
    #[inline(always)]
    fn group<const N: usize>(&mut self, first: usize) {
        let stride = self.thresholds.len();
        let thresholds = *vectors::<N>(self.thresholds, first);
        let (mut residuals, mut weights) = ([[0.0; LANES]; N], [[0.0; LANES]; N]);
        for ((row, &residual), &weight) in self.rows.chunks_exact(stride).zip(self.residuals).zip(self.weights) {
            let row = vectors::<N>(row, first);
            for n in 0..N {
                for j in 0..LANES {
                    let on_left = row[n][j] <= thresholds[n][j];
                    residuals[n][j] += if on_left { residual } else { 0.0 };
                    weights[n][j] += if on_left { weight } else { 0.0 };
                }
            }
        }
        add(&mut self.left.residuals[first * LANES..], residuals.as_flattened());
        add(&mut self.left.weights[first * LANES..], weights.as_flattened());
    }
}

#[inline(always)]
fn vectors<const N: usize>(row: &[f32], first: usize) -> &[Vector; N] {
    row.as_chunks::<LANES>().0[first..][..N].as_array().expect("N vectors were taken")
}

#[inline(always)]
fn add(sums: &mut [f32], more: &[f32]) {
    sums.iter_mut().zip(more).for_each(|(sum, x)| *sum += x);
}

/// Copies the rows of `from` that `order` lists to `to`, and finds their bounds on the way.
pub(super) fn gather(from: &[f32], order: &[u32], to: &mut [f32], bounds: &mut Bounds) {
    let stride = bounds.low.len();
    bounds.low.fill(f32::INFINITY);
    bounds.high.fill(f32::NEG_INFINITY);
    pulp::Arch::new().dispatch(
        #[inline(always)]
        || {
            let vectors = stride / LANES;
            for first in (0..vectors).step_by(GROUP) {
                match vectors - first {
                    1 => gather_group::<1>(from, order, to, bounds, first),
                    2 => gather_group::<2>(from, order, to, bounds, first),
                    3 => gather_group::<3>(from, order, to, bounds, first),
                    _ => gather_group::<GROUP>(from, order, to, bounds, first),
                }
            }
        },
    );
}

#[inline(always)]
fn gather_group<const N: usize>(from: &[f32], order: &[u32], to: &mut [f32], bounds: &mut Bounds, first: usize) {
    let stride = bounds.low.len();
    let (mut low, mut high) = ([[f32::INFINITY; LANES]; N], [[f32::NEG_INFINITY; LANES]; N]);
    for (&i, to) in order.iter().zip(to.chunks_exact_mut(stride)) {
        let row = vectors::<N>(&from[i as usize * stride..][..stride], first);
        for n in 0..N {
            for j in 0..LANES {
                let x = row[n][j];
                low[n][j] = if x < low[n][j] { x } else { low[n][j] };
                high[n][j] = if x > high[n][j] { x } else { high[n][j] };
            }
        }
        to[first * LANES..][..N * LANES].copy_from_slice(row.as_flattened());
    }
    bounds.low[first * LANES..][..N * LANES].copy_from_slice(low.as_flattened());
    bounds.high[first * LANES..][..N * LANES].copy_from_slice(high.as_flattened());
}
