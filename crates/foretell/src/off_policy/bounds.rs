//! Intervals of a mean over episodes.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::math::{Mean, t_quantile};
use crate::rng::Seed;

/// Samples of episodes that a bootstrap draws.
const SAMPLES: u64 = 1000;

/// How an interval is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Bound {
    /// Empirical Bernstein (Maurer and Pontil 2009), with the range that was observed: the widest
    Bernstein,
    /// Quantiles of means over episodes drawn with replacement: asymmetric where weights are
    Bootstrap,
    /// Student's t: symmetric
    T,
}

/// A value with an interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bounded {
    /// The estimate.
    pub value: f64,
    /// Its standard error; `None` if there are too few episodes to know it.
    pub error: Option<f64>,
    /// The lower end of the interval; `None` like `error`.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
}

impl Bounded {
    /// A value whose error is not known.
    pub fn alone(value: f64) -> Bounded {
        Bounded { value, error: None, low: None, high: None }
    }

    /// Whether two intervals overlap; those that are not known overlap with all.
    pub fn overlaps(&self, other: &Bounded) -> bool {
        let below = |x: Option<f64>, y: Option<f64>| x.zip(y).is_none_or(|(x, y)| x <= y + ROUNDING * x.abs().max(y.abs()));
        below(self.low, other.high) && below(other.low, self.high)
    }

    /// The interval widened by an independent error with these half-widths.
    pub(crate) fn widened(self, error: f64, half: f64) -> Bounded {
        let apart = |end: Option<f64>| end.map(|end| (end - self.value).hypot(half));
        Bounded {
            error: self.error.map(|own| own.hypot(error)),
            low: apart(self.low).map(|width| self.value - width),
            high: apart(self.high).map(|width| self.value + width),
            ..self
        }
    }
}

/// Numbers with a smaller relative difference are equal, summed in another order.
const ROUNDING: f64 = 1e-9;

impl Bound {
    /// The interval of an estimate, given one number for each episode whose mean has the same
    /// sampling error.
    pub fn around(self, value: f64, numbers: &[f64], level: f64, seed: Seed) -> Bounded {
        let mean: Mean = numbers.iter().copied().collect();
        let n = mean.count();
        if n < 2.0 || !mean.sd().is_finite() {
            return Bounded::alone(value);
        }
        let error = mean.sd() / n.sqrt();
        let alpha = 1.0 - level;
        let (low, high) = match self {
            Bound::T => {
                let half = t_quantile(1.0 - 0.5 * alpha, n - 1.0) * error;
                (value - half, value + half)
            }
            Bound::Bernstein => {
                let (least, largest) =
                    numbers.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &x| (low.min(x), high.max(x)));
                let log = (4.0 / alpha).ln();
                let half = (2.0 * log).sqrt() * error + 7.0 * log * (largest - least) / (3.0 * (n - 1.0));
                (value - half, value + half)
            }
            Bound::Bootstrap => {
                let means = bootstrapped(numbers, seed);
                let at = |p: f64| quantile(&means, p) - mean.mean() + value;
                (at(0.5 * alpha), at(1.0 - 0.5 * alpha))
            }
        };
        Bounded { value, error: Some(error), low: Some(low), high: Some(high) }
    }
}

/// The means of samples drawn with replacement, in ascending order.
fn bootstrapped(numbers: &[f64], seed: Seed) -> Vec<f64> {
    let n = numbers.len();
    let mean = |i: u64| {
        let mut rng = seed.stream("bootstrap of episodes").index(i).rng();
        (0..n).map(|_| numbers[rng.below(n)]).sum::<f64>() / n as f64
    };
    let mut means: Vec<f64> = (0..SAMPLES).into_par_iter().map(mean).collect();
    means.sort_unstable_by(f64::total_cmp);
    means
}

/// The quantile of ascending numbers, interpolated.
pub(super) fn quantile(sorted: &[f64], p: f64) -> f64 {
    let at = p * (sorted.len() - 1) as f64;
    let (below, share) = (at.floor() as usize, at.fract());
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + share * (sorted[above] - sorted[below])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_t_is_that_of_the_table() {
        // 2, 4, 6: mean 4, standard error 2/√3, t = 4.3027 with two degrees of freedom.
        let found = Bound::T.around(4.0, &[2.0, 4.0, 6.0], 0.95, Seed(1));
        assert!((found.high.unwrap() - (4.0 + 4.302_653 * 2.0 / 3f64.sqrt())).abs() < 1e-5, "{found:?}");
        assert_eq!(Bound::T.around(4.0, &[4.0], 0.95, Seed(1)), Bounded::alone(4.0));
    }

    #[test]
    fn intervals_contain_the_mean_about_as_often_as_they_say() {
        // Means of 60 exponential numbers: skewed. 400 trials; 0.9 ± 4.5 standard deviations.
        const TRIALS: u64 = 400;
        let covered = |bound: Bound| {
            let of = |trial| {
                let mut rng = Seed(9).index(trial).rng();
                let numbers: Vec<f64> = (0..60).map(|_| -(1.0 - rng.uniform()).ln()).collect();
                let mean = numbers.iter().sum::<f64>() / 60.0;
                let found = bound.around(mean, &numbers, 0.9, Seed(trial));
                found.low.unwrap() <= 1.0 && 1.0 <= found.high.unwrap()
            };
            (0..TRIALS).filter(|trial| of(*trial)).count() as f64 / TRIALS as f64
        };
        let spread = 4.5 * (0.9 * 0.1 / TRIALS as f64).sqrt();
        for bound in [Bound::T, Bound::Bootstrap] {
            assert!((covered(bound) - 0.9).abs() < spread, "{bound:?} {}", covered(bound));
        }
        assert!(covered(Bound::Bernstein) > 0.97, "{}", covered(Bound::Bernstein));
    }

    #[test]
    fn quantiles_are_interpolated() {
        assert_eq!([0.0, 0.25, 0.5, 1.0].map(|p| quantile(&[1.0, 2.0, 5.0], p)), [1.0, 1.5, 2.0, 5.0]);
    }
}
