//! Choosing the split of a node: the best of K random ones.

use pulp::Simd;

use super::inputs::LANES;
use super::kernels::{Bounds, Candidates, Split};
use super::threshold;
use crate::rng::Rng;

/// Scores whose ratio is nearer to 1 are equal up to rounding: splits of the same rows, perhaps
/// with sides exchanged.
///
/// A sum of a few hundred numbers in single precision is accurate to about
/// ten units of 2⁻²⁴, and a score contains its square.
const TIE: f32 = 2e-6;

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
        // Rounding may move a mean outside the range of the targets.
        (self.sum / self.weight).clamp(self.low, self.high)
    }
}

/// Folds numbers in four independent lanes, and then the lanes.
#[inline(always)]
fn fold(values: &[f64], start: f64, add: impl Fn(f64, f64) -> f64) -> f64 {
    let (fours, rest) = values.as_chunks::<4>();
    let mut lanes = [start; 4];
    for four in fours {
        (0..4).for_each(|j| lanes[j] = add(lanes[j], four[j]));
    }
    lanes.iter().chain(rest).copied().fold(start, add)
}

/// What the choice of a split needs of a node.
pub(super) struct Members<'a> {
    pub(super) rows: &'a [f32],
    pub(super) y: &'a [f64],
    /// None if they are equal.
    pub(super) weights: Option<&'a [f64]>,
    pub(super) summary: &'a Summary,
    pub(super) bounds: &'a Bounds,
}

/// Chooses splits, reusing memory from node to node.
pub(super) struct Chooser {
    width: usize,
    /// K
    candidates: usize,
    /// w·(y − mean), in units of the largest |y − mean|, so that single precision is enough
    residuals: Vec<f32>,
    /// In units of the largest weight; all 1 where they are equal.
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

    /// (Σ_left r)² / (w_left·w_right): since residuals sum to 0, the reduction of variance up to a
    /// common factor. Constant features, padding among them, have score −1.
    #[inline(always)]
    fn score(&mut self, bounds: &Bounds, total: f32) {
        let sums = self.drawn.residuals.iter().zip(&self.drawn.weights);
        for (((score, (sum, left)), low), high) in self.scores.iter_mut().zip(sums).zip(&bounds.low).zip(&bounds.high) {
            // Weights may be so unequal that rounding leaves nothing on a side.
            let weights = (left * (total - left)).max(f32::MIN_POSITIVE);
            *score = if low < high { sum * sum / weights } else { -1.0 };
        }
    }

    /// Restricts the choice to K of the features that are not constant.
    fn restrict(&mut self, rng: &mut Rng) {
        self.features.clear();
        self.features.extend((0..self.width).filter(|&j| self.scores[j] >= 0.0));
        for i in 0..self.features.len().saturating_sub(self.candidates) {
            let out = i + rng.below(self.features.len() - i);
            self.scores[self.features[out]] = -1.0;
            self.features.swap(i, out);
        }
    }

    /// The feature with the best score, drawn uniformly from ties.
    #[inline(always)]
    fn best(&mut self, rng: &mut Rng) -> Option<usize> {
        let mut lanes = [-1.0f32; LANES];
        for scores in self.scores.as_chunks::<LANES>().0 {
            (0..LANES).for_each(|j| lanes[j] = if scores[j] > lanes[j] { scores[j] } else { lanes[j] });
        }
        let best = lanes.into_iter().fold(-1.0, |best, score| if score > best { score } else { best });
        if best < 0.0 {
            return None;
        }
        let least = best * (1.0 - TIE);
        let ties: u32 = self.scores.iter().map(|score| u32::from(*score >= least)).sum();
        let skipped = if ties > 1 { rng.below(ties as usize) } else { 0 };
        (0..self.scores.len()).filter(|&j| self.scores[j] >= least).nth(skipped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Seed;
    use crate::trees::inputs::{Inputs, Rows};

    /// Σ w (y − mean)², literally.
    fn scatter(rows: &[(f64, f64)]) -> f64 {
        let weight: f64 = rows.iter().map(|(_, w)| w).sum();
        let mean = rows.iter().map(|(y, w)| w * y).sum::<f64>() / weight;
        rows.iter().map(|(y, w)| w * (y - mean).powi(2)).sum()
    }

    /// A small node, weighted or not, and what is chosen for it.
    fn choose(seed: u64, n: usize, width: usize, weighted: Option<()>) -> (Inputs, Vec<(f64, f64)>, Chooser, Option<Split>) {
        let mut rng = Seed(seed).rng();
        let mut x: Vec<f64> = (0..n * width).map(|_| rng.uniform() - 0.5).collect();
        // Between neighbours there is no other threshold than the lower one.
        let neighbours = [1.0, f64::from(1f32.next_up())];
        x.iter_mut().step_by(width).enumerate().for_each(|(i, x)| *x = neighbours[i % 2]);
        let inputs = Inputs::new(Rows::new(&x, width).unwrap()).unwrap();
        let y: Vec<f64> = (0..n).map(|_| 1e6 + rng.uniform()).collect();
        let w: Vec<f64> = (0..n).map(|_| if weighted.is_some() { 0.1 + rng.uniform() } else { 1.0 }).collect();
        let weights = weighted.map(|()| &w[..]);
        let (summary, bounds) = (&Summary::of(&y, weights), &Bounds::of(inputs.values(), inputs.stride()));
        let members = Members { rows: inputs.values(), y: &y, weights, summary, bounds };
        let mut chooser = Chooser::new(n, width, inputs.stride(), width);
        let split = chooser.choose(pulp::Scalar, &members, &mut rng);
        let rows = y.into_iter().zip(w).collect();
        (inputs, rows, chooser, split)
    }

    #[test]
    fn scores_are_the_reduction_of_variance_and_the_best_one_wins() {
        for (seed, weighted) in (0..200).zip([None, Some(())].into_iter().cycle()) {
            let (n, width) = (2 + seed as usize % 19, 1 + seed as usize % 11);
            let (inputs, rows, chooser, split) = choose(seed, n, width, weighted);
            let reduction = |j: usize| {
                let value = |i: usize| inputs.values()[i * inputs.stride() + j];
                let (left, right): (Vec<_>, Vec<_>) = (0..n).partition(|&i| value(i) <= chooser.drawn.thresholds[j]);
                assert!(!left.is_empty() && !right.is_empty());
                let side = |side: Vec<usize>| scatter(&side.into_iter().map(|i| rows[i]).collect::<Vec<_>>());
                scatter(&rows) - side(left) - side(right)
            };
            let reductions: Vec<f64> = (0..width).map(reduction).collect();
            // Scores leave out the sum of weights and the unit of residuals.
            let weight: f64 = rows.iter().map(|(_, w)| w).sum();
            let mean = rows.iter().map(|(y, w)| w * y).sum::<f64>() / weight;
            let factor = weight * rows.iter().map(|(y, _)| (y - mean).powi(2)).fold(0.0, f64::max);
            for (j, r) in reductions.iter().enumerate() {
                let score = f64::from(chooser.scores[j]) * factor;
                // Targets near 10⁶ leave the literal sums about 9 digits.
                assert!((score - r).abs() < 1e-5 * r + 1e-6 * scatter(&rows), "seed {seed}: {score} {r}");
            }
            let best = reductions.iter().copied().fold(0.0, f64::max);
            let chosen = reductions[split.expect("no feature is constant").feature];
            assert!(chosen >= best * (1.0 - 1e-4), "seed {seed}: {chosen} {best}");
            assert!(chooser.scores[width..].iter().all(|score| *score == -1.0), "padding never splits");
        }
    }

    #[test]
    fn thresholds_leave_rows_on_both_sides_and_are_uniform() {
        let bounds =
            [(0.0, 1.0), (-1.0, f32::MIN_POSITIVE), (1.0, 1.0f32.next_up()), (f32::MIN, f32::MAX), (0.0, 1e-45), (-3.0, 5.0)];
        for (low, high) in bounds {
            for bits in [0, 255, 256, 1 << 31, u32::MAX - 256, u32::MAX] {
                let t = threshold(low, high, bits);
                assert!(low <= t && t < high, "{low} {high} {bits}: {t}");
            }
        }
        assert_eq!(threshold(2.0, 2.0, 77), 2.0);
        assert!(threshold(f32::MIN, f32::MAX, 1 << 31).abs() < 1e32);
        let mut rng = Seed(5).rng();
        let draws: Vec<f64> = (0..10_000).map(|_| f64::from(threshold(-3.0, 5.0, rng.bits() as u32))).collect();
        // Mean 1 and variance 64/12, with standard deviations 2.3/100 and 64·√(1/180)/100; 4 of
        // them.
        let mean = draws.iter().sum::<f64>() / 1e4;
        let variance = draws.iter().map(|t| (t - mean).powi(2)).sum::<f64>() / 1e4;
        assert!((mean - 1.0).abs() < 0.093 && (variance - 64.0 / 12.0).abs() < 0.19, "{mean} {variance}");
    }
}
