//! How far the behaviour policy of logs was from uniformly random.

use serde::{Deserialize, Serialize};

use super::trajectory::Trajectory;

/// Statistics of π(a|h), the probabilities with which the logged actions were taken.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Propensities {
    /// The smallest π of any step.
    pub least: f64,
    /// Effective sample size (Kish 1965) as a share of the steps, if steps are weighted as under a
    /// uniformly random policy: (Σ 1/π)² / (n Σ 1/π²).
    pub effective: f64,
    /// The mean of 1/(|A|·π): about 1 where every action has positive probability at every step,
    /// less where some have probability 0. Where only some actions were available in a step, |A| is
    /// their number.
    pub mean_weight: f64,
    /// Its standard error.
    pub mean_weight_error: f64,
}

impl Propensities {
    /// Whether the mean weight shows that some actions had probability 0, which no weighting can
    /// correct.
    pub fn misses_actions(&self) -> bool {
        self.mean_weight < 0.9
    }

    /// Whether the mean weight is above 1 beyond chance: then these are not the probabilities of the
    /// actions taken.
    pub fn are_wrong(&self) -> bool {
        self.mean_weight > 1.05 + 3.0 * self.mean_weight_error
    }
}

/// Sums over the probabilities with which actions were taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Overlap {
    steps: u64,
    /// Steps whose probability is known.
    known: u64,
    /// The least π.
    least: Option<f64>,
    /// Σ 1/π
    inverses: f64,
    /// Σ 1/π²
    squares: f64,
    /// Σ 1/(|A_t|·π) and Σ of its square, over steps in which the available actions A_t are known.
    #[serde(default, skip_serializing_if = "Masked::is_empty")]
    masked: Masked,
}

/// Sums over steps in which the available actions are known, of their weights and those that they
/// would have otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Masked {
    weights: f64,
    weight_squares: f64,
    inverses: f64,
    inverse_squares: f64,
}

impl Masked {
    fn is_empty(&self) -> bool {
        *self == Masked::default()
    }

    fn add(&mut self, other: &Masked) {
        self.weights += other.weights;
        self.weight_squares += other.weight_squares;
        self.inverses += other.inverses;
        self.inverse_squares += other.inverse_squares;
    }
}

impl Overlap {
    pub(crate) fn add(&mut self, z: &Trajectory) {
        self.steps += z.steps.len() as u64;
        self.known += z.action_probabilities.len() as u64;
        for (t, p) in z.action_probabilities.iter().enumerate() {
            let inverse = 1.0 / p;
            if let Some(available) = z.about.available_at(t) {
                let weight = inverse / available.len().max(1) as f64;
                let (inverses, inverse_squares) = (inverse, inverse * inverse);
                self.masked.add(&Masked { weights: weight, weight_squares: weight * weight, inverses, inverse_squares });
            }
            self.least = Some(self.least.map_or(*p, |least| least.min(*p)));
            self.inverses += inverse;
            self.squares += inverse * inverse;
        }
    }

    /// Whether it is of at most so many steps.
    pub(crate) fn is_within(&self, steps: u64) -> bool {
        self.steps <= steps && self.known <= steps
    }

    pub(crate) fn merge(&mut self, other: &Overlap) {
        self.steps = self.steps.saturating_add(other.steps);
        self.known = self.known.saturating_add(other.known);
        self.least = self.least.into_iter().chain(other.least).reduce(f64::min);
        self.inverses += other.inverses;
        self.squares += other.squares;
        self.masked.add(&other.masked);
    }

    /// The statistics for that number of actions; `None` if a step has no probability, or there are
    /// no steps.
    pub(crate) fn propensities(&self, actions: usize) -> Option<Propensities> {
        let effective = self.inverses.powi(2) / (self.steps as f64 * self.squares);
        let (steps, count) = (self.steps as f64, actions as f64);
        let Masked { weights, weight_squares, inverses, inverse_squares } = self.masked;
        let mean_weight = ((self.inverses - inverses) / count + weights) / steps;
        let mean_square = ((self.squares - inverse_squares) / (count * count) + weight_squares) / steps;
        let mean_weight_error = ((mean_square - mean_weight * mean_weight).max(0.0) / steps).sqrt();
        let least = self.least.filter(|_| self.known == self.steps);
        least.map(|least| Propensities { least, effective, mean_weight, mean_weight_error })
    }
}
