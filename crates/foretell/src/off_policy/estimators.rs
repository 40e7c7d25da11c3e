//! Estimators of the value of a policy from weighted episodes.
//!
//! With ρ_{1:t} = Π_{k≤t} π(a_k | h_k) / μ(a_k | h_k), all are one formula,
//!
//! V̂ = mean V̂(h_1) + Σ_t γ^(t−1) ⟨ρ_{1:t} δ_t⟩, where δ_t = r_t + γ V̂(h_{t+1}) − Q̂(h_t, a_t).
//!
//! | | ⟨x⟩ = Σ ρ δ / n | ⟨x⟩ = Σ ρ δ / Σ ρ |
//! |---|---|---|
//! | Q̂ = V̂ = 0 | `pdis` (Precup et al. 2000) | `snpdis` |
//! | Q̂ fitted | `dr` (Jiang and Li 2016) | `wdr` (Thomas and Brunskill 2016) |
//!
//! Means at step t are over the episodes whose step t is known: those that reached it with a
//! reward, and those that had terminated before, where everything is 0. An episode that was
//! truncated earlier does not count there, as if it had been cut at random.

use std::sync::Arc;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::bounds::{Bound, Bounded};
use crate::data::Groups;
use crate::limits;
use crate::rng::Seed;

/// Estimators of the value of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Estimator {
    /// Per-decision importance sampling: unbiased if action probabilities are right; large variance
    Pdis,
    /// Self-normalised per-decision importance sampling: less variance, a small bias
    Snpdis,
    /// Doubly robust: fitted-Q evaluation, corrected by importance sampling
    Dr,
    /// Weighted doubly robust: the same with self-normalised weights
    Wdr,
    /// Fitted-Q evaluation: small variance, biased where states lack information
    Fqe,
    /// Rollouts in the policy's own model: as wrong as the model
    Model,
}

impl Estimator {
    /// All of them.
    pub const ALL: [Estimator; 6] =
        [Estimator::Pdis, Estimator::Snpdis, Estimator::Dr, Estimator::Wdr, Estimator::Fqe, Estimator::Model];

    /// Its name, as in the literature.
    pub fn name(self) -> &'static str {
        match self {
            Estimator::Pdis => "pdis",
            Estimator::Snpdis => "snpdis",
            Estimator::Dr => "dr",
            Estimator::Wdr => "wdr",
            Estimator::Fqe => "fqe",
            Estimator::Model => "model",
        }
    }

    /// Which weights it uses, and whether it uses Q̂; `None` if it does not weight episodes.
    fn form(self) -> Option<(Weights, Baseline)> {
        match self {
            Estimator::Pdis => Some((Weights::Plain, Baseline::Zero)),
            Estimator::Snpdis => Some((Weights::SelfNormalised, Baseline::Zero)),
            Estimator::Dr => Some((Weights::Plain, Baseline::Fitted)),
            Estimator::Wdr => Some((Weights::SelfNormalised, Baseline::Fitted)),
            Estimator::Fqe | Estimator::Model => None,
        }
    }

    /// Whether it needs Q̂.
    pub fn needs_q(self) -> bool {
        matches!(self, Estimator::Dr | Estimator::Wdr | Estimator::Fqe)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weights {
    Plain,
    SelfNormalised,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Baseline {
    Zero,
    Fitted,
}

/// An estimate of the discounted return.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimated {
    /// By which estimator.
    pub estimator: Estimator,
    /// The estimate and its interval.
    #[serde(flatten)]
    pub bounded: Bounded,
    /// The first steps of episodes that weights were used for.
    pub weighted_steps: usize,
}

/// An episode as the estimators see it.
#[derive(Clone, Debug, PartialEq)]
pub struct Weighted {
    /// π(a_t | h_t) / μ(a_t | h_t) of each step.
    pub ratios: Vec<f64>,
    /// r_t; `None` where it is unknown.
    pub rewards: Vec<Option<f64>>,
    /// Q̂(h_t, a_t) for the steps that are left; empty without Q̂.
    pub q: Vec<f64>,
    /// V̂(h_t) = Σ_a π(a | h_t) Q̂(h_t, a), also of the state after the last step; empty without Q̂.
    pub v: Vec<f64>,
    /// Whether it terminated, so that nothing follows.
    pub terminated: bool,
    /// Episodes of a group are one sample; `None` for one of its own.
    pub group: Option<Arc<str>>,
}

/// Weighted episodes, and over how many steps their returns are.
#[derive(Clone, Debug)]
pub struct Evidence {
    episodes: Vec<Weighted>,
    horizon: usize,
    discount: f64,
}

/// What remains of the weights at a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Overlap {
    /// Episodes whose step is known.
    pub known: u64,
    /// (Σ ρ)² / Σ ρ², the effective number of episodes.
    pub effective: f64,
    /// The mean of ρ_{1:t}; 1 if the logs contain all that the policy does.
    pub mean_weight: f64,
    /// The largest ρ_{1:t}.
    pub largest_weight: f64,
}

/// Weights and terms of all episodes at one step.
struct AtStep {
    /// ρ_{1:t}; 0 for an episode whose step is not known.
    weights: Vec<f64>,
    /// δ_t, or r_t without Q̂.
    terms: Vec<f64>,
    is_known: Vec<bool>,
}

/// An episode with such a weight has all of it; the bound keeps sums of squares finite.
const MOST_WEIGHT: f64 = 1.0 / limits::PROBABILITY;

impl Evidence {
    /// Returns of at most `horizon` steps.
    ///
    /// # Panics
    /// If numbers of ratios, rewards, q and v of an episode contradict each other.
    pub fn new(episodes: Vec<Weighted>, horizon: usize, discount: f64) -> Evidence {
        for z in &episodes {
            let length = z.ratios.len();
            let fits = z.rewards.len() == length && (z.v.is_empty() || z.q.len() == length && z.v.len() == length + 1);
            assert!(fits, "a ratio, a reward and a Q̂ for each step, and one V̂ more");
        }
        Evidence { episodes, horizon, discount }
    }

    /// Number of episodes.
    pub fn len(&self) -> usize {
        self.episodes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.episodes.is_empty()
    }

    /// The episodes.
    pub fn episodes(&self) -> &[Weighted] {
        &self.episodes
    }

    /// Steps of a return.
    pub fn horizon(&self) -> usize {
        self.horizon
    }

    /// γ
    pub fn discount(&self) -> f64 {
        self.discount
    }

    /// The same episodes with all ratios 1 and without Q̂: what was logged.
    pub fn as_logged(&self) -> Evidence {
        let logged = |z: &Weighted| Weighted { ratios: vec![1.0; z.ratios.len()], q: vec![], v: vec![], ..z.clone() };
        Evidence { episodes: self.episodes.iter().map(logged).collect(), ..*self }
    }

    /// All episodes of several parts.
    pub fn pooled(parts: Vec<Evidence>) -> Option<Evidence> {
        let (horizon, discount) = parts.first().map(|part| (part.horizon, part.discount))?;
        Some(Evidence { episodes: parts.into_iter().flat_map(|part| part.episodes).collect(), horizon, discount })
    }

    fn groups(&self) -> Groups {
        Groups::new(self.episodes.iter().map(|z| z.group.as_ref()))
    }

    /// What remains of the weights at each step.
    pub fn overlap(&self) -> Vec<Overlap> {
        let mut overlaps = Vec::with_capacity(self.horizon);
        self.each_step(Baseline::Zero, |_, at| {
            let known = at.is_known.iter().filter(|is| **is).count();
            let (sum, squares) = at.weights.iter().fold((0.0, 0.0), |(sum, squares), w| (sum + w, squares + w * w));
            overlaps.push(Overlap {
                known: known as u64,
                effective: if squares > 0.0 { sum * sum / squares } else { 0.0 },
                mean_weight: sum / known.max(1) as f64,
                largest_weight: at.weights.iter().copied().fold(0.0, f64::max),
            });
        });
        overlaps
    }

    /// Steps before the first whose weights are worth fewer than `least` episodes: later ones have
    /// next to no evidence.
    pub fn supported(&self, least: f64) -> usize {
        self.overlap().iter().take_while(|at| at.effective >= least && at.effective > 0.0).count()
    }

    /// Calls `see` with each step; weights of an episode that has terminated stay as they are.
    fn each_step(&self, baseline: Baseline, mut see: impl FnMut(usize, &AtStep)) {
        let n = self.len();
        let mut so_far = vec![1.0; n];
        let mut at = AtStep { weights: vec![0.0; n], terms: vec![0.0; n], is_known: vec![false; n] };
        for t in 0..self.horizon {
            for (i, z) in self.episodes.iter().enumerate() {
                if let Some(ratio) = z.ratios.get(t) {
                    so_far[i] = (so_far[i] * ratio).min(MOST_WEIGHT);
                }
                let term = self.term(z, t, baseline);
                at.is_known[i] = term.is_some();
                at.weights[i] = if term.is_some() { so_far[i] } else { 0.0 };
                at.terms[i] = term.unwrap_or(0.0);
            }
            see(t, &at);
        }
    }

    /// δ_t of an episode; `None` where it is not known.
    fn term(&self, z: &Weighted, t: usize, baseline: Baseline) -> Option<f64> {
        let length = z.ratios.len();
        if t >= length {
            return z.terminated.then_some(0.0);
        }
        let reward = z.rewards[t]?;
        if baseline == Baseline::Zero || z.v.is_empty() {
            return Some(reward);
        }
        let ends = t + 1 == self.horizon || (z.terminated && t + 1 == length);
        let after = if ends { 0.0 } else { z.v[t + 1] };
        Some(reward + self.discount * after - z.q[t])
    }

    /// The estimate, and a number for each group of episodes whose mean has its sampling error: the
    /// pseudo-values of the jackknife over episodes, added up. Terms of steps from `until` on are left
    /// out.
    pub fn estimate(&self, estimator: Estimator, until: usize) -> Option<(f64, Vec<f64>)> {
        let (weights, baseline) = estimator.form()?;
        let n = self.len() as f64;
        let starts = |z: &Weighted| if baseline == Baseline::Fitted { z.v.first().copied().unwrap_or(0.0) } else { 0.0 };
        let mut numbers: Vec<f64> = self.episodes.iter().map(starts).collect();
        let mut value = numbers.iter().sum::<f64>() / n;
        let mut discount = 1.0;
        self.each_step(baseline, |t, at| {
            let known = at.is_known.iter().filter(|is| **is).count() as f64;
            let sum: f64 = at.weights.iter().sum();
            let total = if weights == Weights::Plain { known } else { sum };
            if t < until && total > 0.0 {
                let mean = at.weights.iter().zip(&at.terms).map(|(w, x)| w * x).sum::<f64>() / total;
                value += discount * mean;
                for (i, number) in numbers.iter_mut().enumerate() {
                    *number += discount * (mean + pseudo(at, i, weights, mean, total, n));
                }
            }
            discount *= self.discount;
        });
        Some((value, self.groups().sums(&numbers)))
    }

    /// The estimate with its interval. Terms of steps from `until` on are left out.
    pub fn bounded(&self, estimator: Estimator, until: usize, bound: Bound, level: f64, seed: Seed) -> Option<Bounded> {
        let (value, numbers) = self.estimate(estimator, until)?;
        Some(bound.around(value, &numbers, level, seed))
    }

    /// The discounted return of each episode whose steps are all known, and its weight.
    pub fn weighted_returns(&self) -> Vec<(f64, f64)> {
        let of = |z: &Weighted| {
            let length = z.ratios.len().min(self.horizon);
            let is_whole = length == self.horizon || z.terminated;
            let rewards: Option<Vec<f64>> = z.rewards[..length].iter().copied().collect();
            let earned = rewards.filter(|_| is_whole)?.iter().rev().fold(0.0, |sum, r| r + self.discount * sum);
            Some((earned, z.ratios[..length].iter().fold(1.0, |weight: f64, ratio| (weight * ratio).min(MOST_WEIGHT))))
        };
        self.episodes.par_iter().filter_map(of).collect()
    }
}

/// How far the mean of a step is moved by one episode, times their number: (n − 1)(m − m without
/// it). Infinite if nothing would be left without it.
fn pseudo(at: &AtStep, i: usize, weights: Weights, mean: f64, total: f64, n: f64) -> f64 {
    if !at.is_known[i] {
        return 0.0;
    }
    let (w, x) = (at.weights[i], at.terms[i]);
    let (own, excess) = match weights {
        Weights::Plain => (1.0, w * x - mean),
        Weights::SelfNormalised => (w, w * (x - mean)),
    };
    if excess == 0.0 {
        return 0.0;
    }
    if n > 1.0 { (n - 1.0) * excess / (total - own).max(0.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUNDING: f64 = 1e-12;
    const ALL: [Estimator; 4] = [Estimator::Pdis, Estimator::Snpdis, Estimator::Dr, Estimator::Wdr];
    const DISCOUNT: f64 = 0.9;
    /// r of the first and of the second action, and π(1) at the start and after each first action.
    const FIRST: [f64; 2] = [1.0, -2.0];
    const SECOND: [[f64; 2]; 2] = [[0.5, 3.0], [7.0, -1.0]];
    const POLICY: f64 = 0.8;
    const AFTER: [f64; 2] = [0.3, 0.9];

    fn of(p: f64, a: usize) -> f64 {
        if a == 1 { p } else { 1.0 - p }
    }

    /// V(h_2) after the first action, and V(h_1).
    fn exact() -> ([f64; 2], f64) {
        let second = [0, 1].map(|a| (0..2).map(|b| of(AFTER[a], b) * SECOND[a][b]).sum::<f64>());
        (second, (0..2).map(|a| of(POLICY, a) * (FIRST[a] + DISCOUNT * second[a])).sum())
    }

    /// All four episodes of a tree of two steps, the horizon, as often as uniformly random actions take them,
    /// with exact Q̂ moved by `off`.
    fn tree(off: f64) -> Vec<Weighted> {
        let (second, first) = exact();
        let episode = |(a, b): (usize, usize)| Weighted {
            ratios: vec![of(POLICY, a) / 0.5, of(AFTER[a], b) / 0.5],
            rewards: vec![Some(FIRST[a]), Some(SECOND[a][b])],
            q: vec![FIRST[a] + DISCOUNT * second[a] + off, SECOND[a][b] - off * a as f64],
            v: vec![first + off, second[a] - off * a as f64, 99.0],
            terminated: false,
            group: None,
        };
        [(0, 0), (0, 1), (1, 0), (1, 1)].map(episode).to_vec()
    }

    /// Random numbers that belong to no system.
    fn random(episodes: usize, seed: u64) -> Vec<Weighted> {
        let mut rng = Seed(seed).rng();
        let mut numbers = |n: usize| (0..n).map(|_| rng.uniform() * 2.0).collect::<Vec<f64>>();
        let mut episode = |i: usize| {
            let (length, rewards) = (3 + i % 2, numbers(4));
            let rewards = rewards.into_iter().take(length).enumerate();
            Weighted {
                ratios: numbers(length),
                rewards: rewards.map(|(t, r)| Some(r).filter(|_| i % 5 != 1 || t != 1)).collect(),
                q: numbers(length),
                v: numbers(length + 1),
                terminated: i.is_multiple_of(3),
                group: None,
            }
        };
        (0..episodes).map(&mut episode).collect()
    }

    #[test]
    fn a_tree_that_is_logged_as_a_whole_has_its_exact_value() {
        let (_, exact) = exact();
        for (estimator, off) in ALL.into_iter().flat_map(|estimator| [(estimator, 0.0), (estimator, 0.7)]) {
            let found = Evidence::new(tree(off), 2, DISCOUNT).estimate(estimator, 2).unwrap().0;
            assert!((found - exact).abs() < ROUNDING, "{estimator:?}, off by {off}: {found}, {exact}");
        }
        // Q̂ that is wrong is not corrected without weights.
        let uncorrected = Evidence::new(tree(0.7), 2, DISCOUNT).estimate(Estimator::Wdr, 0).unwrap().0;
        assert!((uncorrected - exact - 0.7).abs() < ROUNDING, "{uncorrected}");
    }

    #[test]
    fn with_exact_q_and_known_outcomes_doubly_robust_has_no_variance() {
        // Any episodes, however unequal their weights.
        let episodes: Vec<Weighted> = [0, 3, 3, 1, 3].map(|i| tree(0.0)[i].clone()).to_vec();
        let evidence = Evidence::new(episodes, 2, DISCOUNT);
        for estimator in [Estimator::Dr, Estimator::Wdr] {
            let found = evidence.bounded(estimator, 2, Bound::T, 0.95, Seed(1)).unwrap();
            assert!((found.value - exact().1).abs() < ROUNDING && found.error.unwrap() < ROUNDING, "{estimator:?}: {found:?}");
        }
        let weighted = evidence.bounded(Estimator::Pdis, 2, Bound::T, 0.95, Seed(1)).unwrap();
        assert!((weighted.value - exact().1).abs() > 0.5 && weighted.error.unwrap() > 0.5, "{weighted:?}");
    }

    #[test]
    fn a_constant_added_to_all_rewards_moves_self_normalised_values_by_its_sum() {
        let mut episodes = random(20, 5);
        episodes.iter_mut().for_each(|z| z.terminated = false);
        let moved = |by: f64| {
            let with = |z: &Weighted| Weighted { rewards: z.rewards.iter().map(|r| r.map(|r| r + by)).collect(), ..z.clone() };
            Evidence::new(episodes.iter().map(with).collect(), 3, DISCOUNT)
        };
        let difference = |estimator| moved(2.0).estimate(estimator, 3).unwrap().0 - moved(0.0).estimate(estimator, 3).unwrap().0;
        let sum = 2.0 * (1.0 + DISCOUNT + DISCOUNT * DISCOUNT);
        assert!((difference(Estimator::Snpdis) - sum).abs() < ROUNDING, "{}", difference(Estimator::Snpdis));
        assert!((difference(Estimator::Pdis) - sum).abs() > 0.05, "{}", difference(Estimator::Pdis));
    }

    #[test]
    fn the_numbers_are_the_pseudo_values_of_the_jackknife() {
        let episodes = random(11, 6);
        let value =
            |episodes: &[Weighted], estimator| Evidence::new(episodes.to_vec(), 4, DISCOUNT).estimate(estimator, 4).unwrap().0;
        for estimator in ALL {
            let (all, numbers) = Evidence::new(episodes.clone(), 4, DISCOUNT).estimate(estimator, 4).unwrap();
            for (i, number) in numbers.iter().enumerate() {
                let mut others = episodes.clone();
                others.remove(i);
                let pseudo = 11.0 * all - 10.0 * value(&others, estimator);
                assert!((number - pseudo).abs() < 1e-9, "{estimator:?} {i}: {number}, {pseudo}");
            }
        }
    }

    #[test]
    fn what_is_not_known_does_not_count() {
        // Rewards 1 and 2; the second episode was truncated after a step, the third terminated.
        let episode = |rewards: &[Option<f64>], terminated| Weighted {
            ratios: vec![1.0; rewards.len()],
            rewards: rewards.to_vec(),
            q: vec![],
            v: vec![],
            terminated,
            group: None,
        };
        let episodes = [
            episode(&[Some(1.0), Some(2.0)], false),
            episode(&[Some(3.0)], false),
            episode(&[Some(5.0)], true),
            episode(&[None, Some(4.0)], false),
        ];
        let found = Evidence::new(episodes.to_vec(), 2, 1.0).estimate(Estimator::Pdis, 2).unwrap().0;
        assert_eq!(found, (1.0 + 3.0 + 5.0) / 3.0 + (2.0 + 0.0 + 4.0) / 3.0);
    }

    #[test]
    fn the_effective_number_of_episodes_shrinks_with_unequal_weights() {
        let evidence = Evidence::new(tree(0.0), 2, DISCOUNT);
        let first = evidence.overlap()[0];
        // Weights 0.4, 0.4, 1.6, 1.6: 16 / 5.44
        assert!((first.effective - 16.0 / 5.44).abs() < ROUNDING && (first.mean_weight - 1.0).abs() < ROUNDING, "{first:?}");
        assert_eq!((first.known, first.largest_weight), (4, 1.6));
        // At the second 0.56, 0.24, 0.32, 2.88: 16 / 8.768 = 1.82
        assert_eq!([1.8, 1.9, 3.0].map(|least| evidence.supported(least)), [2, 1, 0]);
    }
}
