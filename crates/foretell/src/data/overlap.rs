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
    /// less where some have probability 0.
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
}

impl Overlap {
    pub(crate) fn add(&mut self, z: &Trajectory) {
        self.steps += z.steps.len() as u64;
        self.known += z.action_probabilities.len() as u64;
        for p in &z.action_probabilities {
            let inverse = 1.0 / p;
            self.least = Some(self.least.map_or(*p, |least| least.min(*p)));
            self.inverses += inverse;
            self.squares += inverse * inverse;
        }
    }

    pub(crate) fn merge(&mut self, other: &Overlap) {
        self.steps += other.steps;
        self.known += other.known;
        self.least = self.least.into_iter().chain(other.least).reduce(f64::min);
        self.inverses += other.inverses;
        self.squares += other.squares;
    }

    /// The statistics for that number of actions; `None` if a step has no probability, or there are
    /// no steps.
    pub(crate) fn propensities(&self, actions: usize) -> Option<Propensities> {
        let effective = self.inverses.powi(2) / (self.steps as f64 * self.squares);
        let mean_weight = self.inverses / (self.steps as f64 * actions as f64);
        let mean_inverse = self.inverses / self.steps as f64;
        let variance = (self.squares / self.steps as f64 - mean_inverse * mean_inverse).max(0.0);
        let mean_weight_error = (variance / self.steps as f64).sqrt() / actions as f64;
        let least = self.least.filter(|_| self.known == self.steps);
        least.map(|least| Propensities { least, effective, mean_weight, mean_weight_error })
    }
}
