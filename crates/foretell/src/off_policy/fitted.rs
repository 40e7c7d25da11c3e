//! Fitted-Q evaluation (Le, Voloshin, Yue 2019) on the states of a filter, cross-fitted over
//! episodes: trees whose structure does not depend on rewards, with means in their leaves that leave
//! out the fold in which they are evaluated.

use crate::data::{Groups, Trajectory};
use crate::error::Result;
use crate::plan::{AtOwnTime, Choices, Ensembles, FittedQ, Following, LANES, Lanes, States, Steps, Structure, TreeFit, TreeQ};
use crate::rng::{Rng, Seed};
use crate::trees::TreeParams;

/// Folds for cross-fitting: together with one weighting of all episodes, they are a pass.
const FOLDS: usize = LANES - 1;
/// The weighting of all episodes.
const ALL: usize = FOLDS;

/// What to fit.
pub(super) struct Task<'t> {
    pub(super) steps: &'t Steps,
    pub(super) episodes: &'t [Trajectory],
    pub(super) states: &'t States,
    pub(super) policy: &'t Choices,
    /// Whether the reward of each step is known.
    pub(super) is_known: &'t [bool],
    pub(super) trees: &'t TreeParams,
    /// Steps of a return, after the first `offset` steps of an episode, which nobody chose.
    pub(super) horizon: usize,
    pub(super) offset: usize,
    pub(super) discount: f64,
    pub(super) replicates: usize,
    pub(super) seed: Seed,
}

/// Q̂ of a policy along the logs.
pub(super) struct QAlong {
    /// Q̂ of each logged step from the other folds, with the steps that are left.
    pub(super) q: Vec<f64>,
    /// V̂ of each row, likewise.
    pub(super) v: Vec<f64>,
    /// The mean V̂ at the start for one step ahead, two, and so on.
    pub(super) by_horizon: Vec<f64>,
    /// The same from bootstrap samples of the episodes.
    pub(super) replicates: Vec<Vec<f64>>,
    /// The expected reward of one step.
    pub(super) rewards: TreeQ,
}

impl QAlong {
    /// The value at the start over the whole horizon.
    pub(super) fn value(&self) -> f64 {
        self.by_horizon.last().copied().unwrap_or(0.0)
    }
}

impl Task<'_> {
    pub(super) fn run(&self) -> Result<QAlong> {
        let Task { steps, states, trees, discount, .. } = *self;
        let seed = self.seed.stream("evaluation");
        let mut fit = TreeFit::new(steps, states, Structure::Frozen, Ensembles::PerAction, trees, seed)?;
        let known: Vec<f64> = self.is_known.iter().map(|is| f64::from(u8::from(*is))).collect();
        FittedQ::new(steps, &mut fit, discount).weighted(&known).next();
        let following = Following::new(&fit, steps, self.policy, discount);
        let (of_step, groups) = (steps.episodes(), Groups::of(self.episodes));
        let fold = groups.folds(FOLDS, seed.stream("folds"));
        // One fold alone has no others.
        let has_others = fold.iter().any(|f| *f != fold[0]);
        let weight = |i: usize, lane: usize| if has_others && fold[of_step[i]] == lane { 0.0 } else { known[i] };
        let ones = vec![1.0; self.episodes.len()];
        let mut by_horizon = Vec::with_capacity(self.horizon);
        let weights = |i| std::array::from_fn(|lane| weight(i, lane));
        let AtOwnTime { v, q } = following.over(weights, self.horizon + self.offset, |values| {
            by_horizon.push(self.start(values, ALL, &ones));
        });
        by_horizon.truncate(self.horizon);
        let own_fold = |episode: usize| fold[episode];
        let q = q.iter().enumerate().map(|(i, q)| q[own_fold(of_step[i])]).collect();
        let of_row = self.episodes.iter().enumerate().flat_map(|(i, z)| vec![i; z.steps.len() + 1]);
        let v = v.iter().zip(of_row).map(|(v, episode)| v[own_fold(episode)]).collect();
        let replicates = self.replicated(&following, &groups, &of_step, &known);
        Ok(QAlong { q, v, by_horizon, replicates, rewards: fit.to_q() })
    }

    /// The mean V̂ at the start by horizon, from samples of groups of episodes drawn with replacement.
    fn replicated(&self, following: &Following<'_>, groups: &Groups, of_step: &[usize], known: &[f64]) -> Vec<Vec<f64>> {
        let sample = |i: u64| -> Vec<f64> {
            let times = drawn(groups.count(), &mut self.seed.stream("bootstrap").index(i).rng());
            groups.numbers().iter().map(|&group| times[group]).collect()
        };
        let counts: Vec<Vec<f64>> = (0..self.replicates as u64).map(sample).collect();
        let pass = |counts: &[Vec<f64>]| {
            let count = |i: usize, lane: usize| counts.get(lane).map_or(1.0, |counts| counts[of_step[i]]) * known[i];
            let mut starts = vec![Vec::with_capacity(self.horizon); counts.len()];
            following.over(
                |i| std::array::from_fn(|lane| count(i, lane)),
                self.horizon + self.offset,
                |values| {
                    let lanes = starts.iter_mut().zip(counts).enumerate();
                    lanes.for_each(|(lane, (starts, counts))| starts.push(self.start(values, lane, counts)));
                },
            );
            starts
        };
        counts.chunks(LANES).flat_map(pass).collect()
    }

    /// The mean value at the start of so many of each episode.
    fn start(&self, values: &[Lanes], lane: usize, counts: &[f64]) -> f64 {
        let starts = self.steps.starts().iter().zip(counts).map(|(&row, n)| n * values[row + self.offset][lane]);
        starts.sum::<f64>() / counts.iter().sum::<f64>()
    }
}

/// How often each of n is drawn when n are drawn with replacement.
fn drawn(n: usize, rng: &mut Rng) -> Vec<f64> {
    let mut counts = vec![0.0; n];
    (0..n).for_each(|_| counts[rng.below(n)] += 1.0);
    counts
}
