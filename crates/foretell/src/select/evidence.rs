//! How well each member predicts steps that it was not fitted to.

use rayon::prelude::*;

use super::parts::{Fold, HeldOut};
use crate::data::ActionObservation;
use crate::math::Mean;
use crate::model::{Model, NGramFilter, PredictiveState, Recurrent, RecurrentFilter};
use crate::pomdp::{Belief, Pomdp};
use crate::system::{Filter, Predict, Track};

/// Parts scored as one task.
const CHUNK: usize = 16;

/// The log-probability of held-out steps under each member.
#[derive(Clone, Debug, Default)]
pub(super) struct Evidence {
    pub(super) parts: Vec<Part>,
    /// For each member the logarithm of its probability of each step of all parts.
    pub(super) logs: Vec<Vec<f64>>,
}

/// A held-out part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Part {
    /// Number of its steps.
    pub(super) steps: usize,
    /// The first that counts.
    pub(super) from: usize,
    /// How many count: observations that are missing do not.
    pub(super) counted: usize,
}

impl Evidence {
    /// Parts without any members yet.
    pub(super) fn of_parts<'h>(held_out: impl Iterator<Item = &'h HeldOut>) -> Evidence {
        let counted = |z: &HeldOut| z.steps[z.from..].iter().filter(|ao| !ao.observation.is_missing()).count();
        let parts = held_out.map(|z| Part { steps: z.steps.len(), from: z.from, counted: counted(z) });
        Evidence { parts: parts.collect(), logs: Vec::new() }
    }

    /// Number of members.
    pub(super) fn members(&self) -> usize {
        self.logs.len()
    }

    /// The number of steps that count in each part.
    pub(super) fn counted(&self) -> impl Iterator<Item = usize> + '_ {
        self.parts.iter().map(|part| part.counted)
    }

    /// Number of steps that count.
    pub(super) fn steps(&self) -> usize {
        self.counted().sum()
    }

    /// The probability of each step that counts under a member.
    pub(super) fn probabilities(&self, member: usize) -> Vec<f64> {
        let (logs, mut at) = (&self.logs[member], 0);
        let mut probabilities = Vec::with_capacity(logs.len());
        for part in &self.parts {
            let counted = &logs[at + part.from..at + part.steps];
            probabilities.extend(counted.iter().map(|log| log.exp().max(f64::MIN_POSITIVE)));
            at += part.steps;
        }
        probabilities
    }

    /// The log-likelihood of each part under one member.
    pub(super) fn scores(&self, logs: &[f64]) -> Vec<f64> {
        let mut at = 0;
        let score = |part: &Part| {
            at += part.steps;
            logs[at - part.steps + part.from..at].iter().sum()
        };
        self.parts.iter().map(score).collect()
    }

    /// Nats per step that counts, of each member.
    pub(super) fn nats(&self) -> Vec<f64> {
        let steps = self.steps().max(1) as f64;
        self.logs.iter().map(|logs| self.scores(logs).iter().sum::<f64>() / steps).collect()
    }

    /// Nats per step that one set of scores is better than another, and its standard error: that of
    /// a ratio, over parts. Infinite if there is a single part.
    pub(super) fn difference(&self, one: &[f64], other: &[f64]) -> (f64, f64) {
        let steps = self.steps().max(1) as f64;
        let differences = || one.iter().zip(other).map(|(x, y)| x - y).zip(self.counted());
        let gain = differences().map(|(difference, _)| difference).sum::<f64>() / steps;
        let n = self.parts.len() as f64;
        let squares: f64 = differences().map(|(difference, length)| (difference - gain * length as f64).powi(2)).sum();
        let error = if n > 1.0 { (squares * n / (n - 1.0)).sqrt() / steps } else { f64::INFINITY };
        (gain, error)
    }
}

/// A member as it was fitted to the training episodes of a fold. All of them predict over the
/// alphabet of a model of the same episodes.
#[derive(Clone, Copy)]
pub(super) enum Fitted<'a> {
    /// The model's n-gram with contexts of up to so many pairs.
    NGram(usize),
    /// The model itself, which is linear.
    Linear,
    Pomdp(&'a Pomdp),
    Recurrent(&'a Recurrent),
}

/// What is predicted of a step.
#[derive(Clone, Copy)]
pub(super) enum Target<'a> {
    /// Its observation.
    Symbol,
    /// Its observation up to what does not count, such as a reward that is part of it. For each
    /// symbol: those that are the same, including itself.
    Class(&'a [Vec<usize>]),
}

/// The logarithm of the probability that a member gives to each step of the parts.
pub(super) fn log_probabilities(model: &Model, fitted: Fitted<'_>, held_out: &[HeldOut], target: Target<'_>) -> Vec<f64> {
    let known = Known::of(model);
    match fitted {
        Fitted::NGram(length) => logs(held_out, || NGramFilter::new(model, length), &known, target, 1.0),
        Fitted::Linear => logs(held_out, || PredictiveState::new(model), &known, target, 1.0),
        // These compute only the probabilities that are needed, over the symbols seen in training.
        Fitted::Pomdp(pomdp) => logs(held_out, || Belief::new(pomdp), &known, target, 1.0 - known.unseen),
        Fitted::Recurrent(net) => logs(held_out, || RecurrentFilter::new(net, model), &known, target, 1.0 - known.unseen),
    }
}

/// The logarithms of the probabilities of a filter times `scale`, or of the probability of symbols
/// that were not seen in training, which is the same for all members.
fn logs<P: Predict + Track>(
    held_out: &[HeldOut],
    filter: impl Fn() -> P + Sync,
    known: &Known,
    target: Target<'_>,
    scale: f64,
) -> Vec<f64> {
    let of_chunk = |chunk: &[HeldOut]| {
        let mut filter = filter();
        let mut logs = Vec::new();
        for z in chunk {
            filter.reset();
            logs.extend(z.steps.iter().enumerate().map(|(t, &ao)| {
                if ao.observation.is_missing() {
                    observe(&mut filter, z, t);
                    return 0.0;
                }
                let (p, is_known): (f64, bool) = match target {
                    Target::Symbol => (filter.update(ao), known.observations[ao.observation.index()]),
                    Target::Class(same) => {
                        let same = &same[ao.observation.index()];
                        let all = filter.probabilities(ao.action);
                        let p = same.iter().map(|&o| all.get(o).copied().unwrap_or(0.0)).sum();
                        filter.observe(ao);
                        (p, same.iter().any(|&o| known.observations[o]))
                    }
                };
                let p = if is_known && known.actions[ao.action.index()] { scale * p } else { known.unseen };
                p.max(f64::MIN_POSITIVE).ln()
            }));
        }
        logs
    };
    held_out.par_chunks(CHUNK).flat_map_iter(of_chunk).collect()
}

/// Takes a step into account, of whose observation only some parts may be known.
fn observe(filter: &mut impl Track, z: &HeldOut, t: usize) {
    match z.about.partial_at(t) {
        Some(pattern) => filter.observe_partial(z.steps[t].action, pattern),
        None => filter.observe(z.steps[t]),
    }
}

/// E[r ‖ a] for each step of the parts, by the belief over the states of a POMDP.
pub(super) fn expected_rewards(pomdp: &Pomdp, held_out: &[HeldOut]) -> Vec<f64> {
    let of_chunk = |chunk: &[HeldOut]| {
        let mut belief = Belief::new(pomdp);
        let mut rewards = Vec::new();
        for z in chunk {
            belief.reset();
            rewards.extend(z.steps.iter().enumerate().map(|(t, &ao)| {
                let expected = |(s, b): (usize, &f64)| b * pomdp.expected_reward(ao.action, s);
                let reward = belief.state().iter().enumerate().map(expected).sum::<f64>();
                observe(&mut belief, z, t);
                reward
            }));
        }
        rewards
    };
    held_out.par_chunks(CHUNK).flat_map_iter(of_chunk).collect()
}

/// The mean reward of the action of each held-out step in training.
pub(super) fn mean_rewards(fold: &Fold) -> Vec<f64> {
    let actions = fold.training.iter().flat_map(|z| &z.steps).chain(fold.held_out.iter().flat_map(|z| &z.steps));
    let mut means = vec![Mean::default(); actions.map(|ao| ao.action.index() + 1).max().unwrap_or(0)];
    for (ao, reward) in fold.training.iter().flat_map(|z| z.steps.iter().zip(&z.rewards)) {
        reward.iter().for_each(|&reward| means[ao.action.index()].add(reward));
    }
    fold.held_out.iter().flat_map(|z| &z.steps).map(|ao| means[ao.action.index()].mean()).collect()
}

/// The symbols that a model was trained on, and the probability of all others.
pub(super) struct Known {
    actions: Vec<bool>,
    observations: Vec<bool>,
    unseen: f64,
}

impl Known {
    pub(super) fn of(model: &Model) -> Known {
        let alphabet = model.alphabet();
        let (mut actions, mut observations) = (vec![false; alphabet.actions().len()], vec![false; alphabet.observations().len()]);
        for ao in &model.origin().pairs {
            actions[ao.action.index()] = true;
            observations[ao.observation.index()] = true;
        }
        Known { actions, observations, unseen: model.frequencies().unseen }
    }

    pub(super) fn knows(&self, ao: ActionObservation) -> bool {
        self.actions[ao.action.index()] && self.observations.get(ao.observation.index()).is_none_or(|known| *known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{About, Action, Observation};

    #[test]
    fn parts_of_an_observation_update_the_state() {
        // Two states that stay; each mostly shows its own colour, with either side.
        let text = "discount: 0.9\nvalues: reward\nstates: red green\nactions: look\n\
            observations: colour=red|side=l colour=red|side=r colour=green|side=l colour=green|side=r\n\
            start: 0.6 0.4\nT: look\nidentity\nO: look\n0.4 0.5 0.05 0.05\n0.05 0.05 0.5 0.4\n";
        let pomdp = Pomdp::parse(text, "colours").unwrap();
        let known = Known { actions: vec![true], observations: vec![true; 4], unseen: 0.0 };
        let o = pomdp.alphabet().observation("colour=green|side=l").unwrap();
        let step = |observation| ActionObservation { action: Action(0), observation };
        let of = |partial: Vec<(u32, std::sync::Arc<str>)>| {
            let about = About { partial, ..About::default() };
            let z = HeldOut { steps: vec![step(Observation::MISSING), step(o)], about, rewards: vec![None; 2], from: 0 };
            logs(&[z], || Belief::new(&pomdp), &known, Target::Symbol, 1.0)
        };
        // P(green | red) = 0.1 and P(green | green) = 0.9.
        let green = 0.4 * 0.9 / (0.6 * 0.1 + 0.4 * 0.9);
        let [none, some] = [vec![], vec![(0, "colour=green|side=?".into())]].map(of);
        assert_eq!((none[0], some[0]), (0.0, 0.0), "what is not wholly known is not scored");
        assert!((none[1] - (0.6 * 0.05 + 0.4 * 0.5f64).ln()).abs() < 1e-12, "{none:?}");
        assert!((some[1] - ((1.0 - green) * 0.05 + green * 0.5f64).ln()).abs() < 1e-12, "{some:?}");
    }
}
