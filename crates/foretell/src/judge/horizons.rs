//! Log-likelihood by horizon, with intervals.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use crate::math::{PerStepMean, Z95};

/// Mean log-likelihood of the first `horizon` observations given the actions, ln P(o_1 … o_n ‖ a_1
/// … a_n).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct HorizonScore {
    /// n
    pub horizon: usize,
    /// Mean over the episodes that are at least that long, nats.
    pub log_likelihood: f64,
    /// Half the width of its 95 % interval, over groups of episodes where the logs have them; none
    /// for a single episode, or few groups.
    pub ci95: Option<f64>,
    /// Number of episodes that are that long.
    pub episodes: u64,
}

/// Sums over episodes of the log-likelihood at each horizon.
#[derive(Clone, Debug, Default)]
pub(super) struct Horizons {
    /// (episodes, sum, sum of squares)
    sums: Vec<(u64, f64, f64)>,
    /// The sum and number of episodes of each group.
    groups: BTreeMap<Arc<str>, Vec<(f64, u64)>>,
    /// An episode has no group.
    has_ungrouped: bool,
}

impl Horizons {
    pub(super) fn is_empty(&self) -> bool {
        self.sums.is_empty()
    }

    /// Adds an episode, given its group and the log-likelihood of each of its steps.
    pub(super) fn add(&mut self, group: Option<&Arc<str>>, log_likelihoods: &[f64]) {
        let mut log_likelihood = 0.0;
        self.has_ungrouped |= group.is_none();
        let mut of_group = group.map(|group| self.groups.entry(group.clone()).or_default());
        for (t, step) in log_likelihoods.iter().enumerate() {
            log_likelihood += step;
            if t == self.sums.len() {
                self.sums.push((0, 0.0, 0.0));
            }
            let (n, sum, squares) = &mut self.sums[t];
            *n += 1;
            *sum += log_likelihood;
            *squares += log_likelihood * log_likelihood;
            if let Some(of_group) = &mut of_group {
                add_at(of_group, t, (log_likelihood, 1));
            }
        }
    }

    pub(super) fn merge(&mut self, other: Horizons) {
        for (t, (n, sum, squares)) in other.sums.into_iter().enumerate() {
            if t == self.sums.len() {
                self.sums.push((0, 0.0, 0.0));
            }
            let into = &mut self.sums[t];
            *into = (into.0 + n, into.1 + sum, into.2 + squares);
        }
        self.has_ungrouped |= other.has_ungrouped;
        for (group, sums) in other.groups {
            let into = self.groups.entry(group).or_default();
            sums.into_iter().enumerate().for_each(|(t, sum)| add_at(into, t, sum));
        }
    }

    /// Half the interval at the horizon t + 1 over groups, all of which are independent.
    fn ci95_over_groups(&self, t: usize) -> Option<f64> {
        PerStepMean::over(self.groups.values().filter_map(|sums| sums.get(t).copied())).ci95
    }

    pub(super) fn finish(&self) -> Vec<HorizonScore> {
        let horizon = |(t, &(episodes, sum, squares)): (usize, &(u64, f64, f64))| {
            let n = episodes as f64;
            let mean = sum / n;
            let ci95 = match self.has_ungrouped {
                true => (episodes > 1).then(|| Z95 * (((squares - sum * mean) / (n - 1.0)).max(0.0) / n).sqrt()),
                false => self.ci95_over_groups(t),
            };
            HorizonScore { horizon: t + 1, log_likelihood: mean, ci95, episodes }
        };
        self.sums.iter().enumerate().map(horizon).collect()
    }
}

/// Adds a sum and a number of episodes at one of the horizons, which come in order.
fn add_at(sums: &mut Vec<(f64, u64)>, t: usize, (sum, episodes): (f64, u64)) {
    if t == sums.len() {
        sums.push((0.0, 0));
    }
    sums[t] = (sums[t].0 + sum, sums[t].1 + episodes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_an_episode_in_its_group_narrow_no_interval() {
        let of = |copies: usize, is_grouped: bool| {
            let mut horizons = [Horizons::default(), Horizons::default()];
            for i in 0..8 * copies {
                let (z, group) = (i % 8, Arc::from((i % 8).to_string()));
                let steps = [-1.0 - z as f64, -0.5];
                horizons[i % 2].add(is_grouped.then_some(&group), if z < 5 { &steps } else { &steps[..1] });
            }
            let [mut one, other] = horizons;
            one.merge(other);
            one.finish()
        };
        let (one, three) = (of(1, true), of(3, true));
        for (one, three) in one.iter().zip(&three) {
            assert_eq!((one.log_likelihood, 3 * one.episodes), (three.log_likelihood, three.episodes));
            assert!((one.ci95.unwrap() - three.ci95.unwrap()).abs() < 1e-12, "{one:?} {three:?}");
        }
        assert!(of(3, false)[0].ci95.unwrap() < 0.6 * three[0].ci95.unwrap(), "without groups they would");
        // Eight numbers 1 to 8: t of 7 degrees of freedom times √(6 / 8).
        assert!((one[0].ci95.unwrap() - 2.365 * 0.75f64.sqrt()).abs() < 0.03, "{one:?}");
    }
}
