//! Choosing the split of a node: the best of K random ones.

use pulp::Simd;

use super::inputs::Bounds;
use super::kernels::Candidates;
use super::threshold;
use crate::rng::Rng;

/// Scores whose ratio is nearer to 1 are equal but for rounding: splits of the same rows, perhaps with sides exchanged.
///
/// A sum of some hundred numbers in single precision is right to about ten units of 2⁻²⁴, and a score has its square.
const TIE: f32 = 2e-6;

/// Rows whose feature is above the threshold go right.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Split {
    pub(super) feature: usize,
    pub(super) threshold: f32,
}

/// Targets of a node, summed up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Summary {
    pub(super) rows: usize,
    /// Σ w·y
    pub(super) sum: f64,
    /// Σ w
    pub(super) weight: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Summary {
    /// Of rows with these targets and weights.
    #[inline(always)]
    pub(super) fn of(y: &[f64], weights: Option<&[f64]>) -> Summary {
        let (low, high) = (
            fold(y, f64::INFINITY, |low, y| if y < low { y } else { low }),
            fold(y, f64::NEG_INFINITY, |high, y| if y > high { y } else { high }),
        );
        let (sum, weight) = match weights {
            None => (fold(y, 0.0, |sum, y| sum + y), y.len() as f64),
            Some(weights) => (y.iter().zip(weights).map(|(y, w)| y * w).sum(), weights.iter().sum()),
        };
        Summary { rows: y.len(), sum, weight, low, high }
    }

    pub(super) fn mean(&self) -> f64 {
        // Rounding may carry a mean outside, and that of equal numbers away from them.
        (self.sum / self.weight).clamp(self.low, self.high)
    }
}

/// Folds numbers in four lanes, which do not wait for each other, and then the lanes.
#[inline(always)]
fn fold(values: &[f64], start: f64, add: impl Fn(f64, f64) -> f64) -> f64 {
    let (fours, rest) = values.as_chunks::<4>();
    let mut lanes = [start; 4];
    for four in fours {
        (0..4).for_each(|j| lanes[j] = add(lanes[j], four[j]));
    }
    lanes.iter().chain(rest).copied().fold(start, add)
}

/// A node as far as its split is concerned.
pub(super) struct Members<'a> {
    pub(super) rows: &'a [f32],
    pub(super) y: &'a [f64],
    /// None if they are equal.
    pub(super) weights: Option<&'a [f64]>,
    pub(super) summary: &'a Summary,
    pub(super) bounds: &'a Bounds,
}

/// Chooses splits, one node after the other in the same memory.
pub(super) struct Chooser {
    width: usize,
    /// K
    candidates: usize,
    /// w·(y − mean), in units of the largest |y − mean|, so that single precision is enough
    residuals: Vec<f32>,
    /// In units of the largest of them; all 1 where they are equal.
    weights: Vec<f32>,
    drawn: Candidates,
    scores: Vec<f32>,
    features: Vec<usize>,
}

impl Chooser {
    pub(super) fn new(rows: usize, width: usize, stride: usize, candidates: usize) -> Chooser {
        Chooser {
            width,
            candidates,
            residuals: vec![0.0; rows],
            weights: vec![1.0; rows],
            drawn: Candidates::new(stride),
            scores: vec![0.0; stride],
            features: Vec::new(),
        }
    }

    /// The best of K splits of a node; none if all features are constant.
    #[inline(always)]
    pub(super) fn choose<S: Simd>(&mut self, simd: S, members: &Members<'_>, rng: &mut Rng) -> Option<Split> {
        let total = self.centre(members);
        self.draw(members.bounds, rng);
        let rows = members.y.len();
        self.drawn.sweep(simd, members.rows, &self.residuals[..rows], &self.weights[..rows]);
        self.score(members.bounds, total);
        if self.candidates < self.width {
            self.restrict(rng);
        }
        self.best(rng).map(|feature| Split { feature, threshold: self.drawn.thresholds[feature] })
    }

    /// Residuals and weights of the rows of a node; returns the sum of weights.
    #[inline(always)]
    fn centre(&mut self, Members { y, weights, summary, .. }: &Members<'_>) -> f32 {
        let mean = summary.mean();
        let scale = 1.0 / (summary.high - mean).max(mean - summary.low);
        self.residuals.iter_mut().zip(*y).for_each(|(residual, y)| *residual = ((y - mean) * scale) as f32);
        let Some(weights) = weights else { return y.len() as f32 };
        let scale = 1.0 / weights.iter().copied().fold(0.0, f64::max);
        for ((residual, to), weight) in self.residuals.iter_mut().zip(&mut self.weights).zip(*weights) {
            *to = (weight * scale) as f32;
            *residual *= *to;
        }
        (summary.weight * scale) as f32
    }

    /// A threshold for each feature.
    #[inline(always)]
    fn draw(&mut self, bounds: &Bounds, rng: &mut Rng) {
        let (pairs, _) = self.drawn.thresholds.as_chunks_mut::<2>();
        let (low, high) = (bounds.low.as_chunks::<2>().0, bounds.high.as_chunks::<2>().0);
        for ((t, low), high) in pairs.iter_mut().zip(low).zip(high) {
            let bits = rng.bits();
            *t = [threshold(low[0], high[0], bits as u32), threshold(low[1], high[1], (bits >> 32) as u32)];
        }
    }

    /// (Σ_left r)² / (w_left·w_right): as residuals sum to 0, the reduction of variance but for a factor that all share.
    /// Constant features, padding among them, have score −1.
    #[inline(always)]
    fn score(&mut self, bounds: &Bounds, total: f32) {
        let sums = self.drawn.residuals.iter().zip(&self.drawn.weights);
        for (((score, (sum, left)), low), high) in self.scores.iter_mut().zip(sums).zip(&bounds.low).zip(&bounds.high) {
            // Weights may be so unequal that rounding leaves nothing on a side.
            let weights = (left * (total - left)).max(f32::MIN_POSITIVE);
            *score = if low < high { sum * sum / weights } else { -1.0 };
        }
    }

    /// Leaves K of the features that are not constant in the running.
    fn restrict(&mut self, rng: &mut Rng) {
        self.features.clear();
        self.features.extend((0..self.width).filter(|&j| self.scores[j] >= 0.0));
        for i in 0..self.features.len().saturating_sub(self.candidates) {
            let out = i + rng.below(self.features.len() - i);
            self.scores[self.features[out]] = -1.0;
            self.features.swap(i, out);
        }
    }

    /// The feature of the best score, drawn from those that share it.
    #[inline(always)]
    fn best(&mut self, rng: &mut Rng) -> Option<usize> {
        let best = self.scores.iter().fold(-1.0f32, |best, &score| if score > best { score } else { best });
        if best < 0.0 {
            return None;
        }
        let least = best * (1.0 - TIE);
        let ties = self.scores.iter().filter(|score| **score >= least).count();
        let skipped = if ties > 1 { rng.below(ties) } else { 0 };
        (0..self.scores.len()).filter(|&j| self.scores[j] >= least).nth(skipped)
    }
}
