//! The probabilities of logged actions: from the logs, or estimated.
//!
//! Estimates are counts given a context, backed off to a shorter one: μ_k(a) = (n_k(a) + m
//! μ_{k−1}(a)) / (n_k + m). Contexts are the last observation, the last step, the last two steps,
//! or a state of the model. Each episode's estimates are from the other folds. The context that
//! predicts the logged actions best is used.

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::data::{Action, ActionObservation, Groups, Trajectory};
use crate::error::Result;
use crate::plan::{Choices, States, Step, Steps};
use crate::rng::Seed;
use crate::trees::{Inputs, Rows, TreeParams, Trees};

/// What of the last steps makes a context.
type Key = fn(&[ActionObservation]) -> Vec<u32>;

/// Folds of the logs; an estimate is from all but one.
const FOLDS: usize = 5;
/// m: the shorter context counts as this many steps.
const PRIOR: f64 = 2.0;
/// Trees over the states of the model, and the fewest steps in a node that is divided.
const TREES: usize = 10;
const MIN_SPLIT: usize = 100;
/// A longer context has to predict actions better by this much, in nats per step: simpler ones have
/// smaller errors.
const WORTHWHILE: f64 = 1e-3;

/// Where the probabilities of logged actions are from.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Propensities {
    /// The logs have all of them.
    Logged,
    /// At least some were estimated.
    Estimated {
        /// Given what: `the last observation`, …
        given: &'static str,
        /// Mean log-probability of the logged actions, each from other episodes, in nats per step.
        log_likelihood: f64,
    },
}

/// The probabilities of actions in the logs.
#[derive(Clone, Debug)]
pub struct Behaviour {
    propensities: Propensities,
    choices: Choices,
    /// μ(a_t | h_t) of each step that has a reward.
    taken: Vec<f64>,
}

impl Behaviour {
    /// The probabilities that the logs have; where they have none, estimates from the last steps,
    /// and from the states of a filter if they are given.
    pub fn of(steps: &Steps, episodes: &[Trajectory], states: Option<&States>, seed: Seed) -> Result<Behaviour> {
        let contexts = Contexts::new(steps, episodes, seed);
        let mut best = contexts.best();
        if let Some(states) = states {
            let by_state = contexts.by_state(states, seed)?;
            if by_state.log_likelihood > best.log_likelihood + WORTHWHILE {
                best = by_state;
            }
        }
        // By row, since steps without a reward are not in the list.
        let logged: Vec<Option<f64>> =
            episodes.iter().flat_map(|z| (0..=z.steps.len()).map(|t| z.action_probabilities.get(t).copied())).collect();
        let estimated = |step: &Step| best.values[step.row * steps.actions() + step.action.index()];
        let taken = steps.list().iter().map(|step| logged[step.row].unwrap_or_else(|| estimated(step))).collect();
        let propensities = match steps.list().iter().all(|step| logged[step.row].is_some()) {
            true => Propensities::Logged,
            false => Propensities::Estimated { given: best.given, log_likelihood: best.log_likelihood },
        };
        Ok(Behaviour { propensities, choices: Choices::new(steps, best.values), taken })
    }

    /// Where they are from.
    pub fn propensities(&self) -> &Propensities {
        &self.propensities
    }

    /// μ(a_t | h_t) of each logged step that has a reward: those of [`Steps::list`].
    pub fn taken(&self) -> &[f64] {
        &self.taken
    }

    /// The estimate of μ(a | h) for all actions, in the state of each row.
    pub fn choices(&self) -> &Choices {
        &self.choices
    }
}

/// Estimated probabilities of all actions in all rows.
struct Estimated {
    given: &'static str,
    values: Vec<f64>,
    log_likelihood: f64,
}

/// The logs, for counting.
struct Contexts<'s> {
    steps: &'s Steps,
    episodes: &'s [Trajectory],
    /// The fold of each row.
    fold: Vec<usize>,
    folds: usize,
}

/// Counts of actions in contexts, of each fold and of all.
struct Counts {
    actions: usize,
    folds: usize,
    counts: Vec<f64>,
}

impl Counts {
    fn new(contexts: usize, folds: usize, actions: usize) -> Counts {
        Counts { actions, folds, counts: vec![0.0; contexts * (folds + 1) * actions] }
    }

    fn add(&mut self, context: usize, fold: usize, a: Action) {
        for part in [fold, self.folds] {
            self.counts[(context * (self.folds + 1) + part) * self.actions + a.index()] += 1.0;
        }
    }

    /// Counts of actions in a context, without those of a fold.
    fn without(&self, context: usize, fold: usize) -> impl Iterator<Item = f64> + '_ {
        let row = |part: usize| &self.counts[(context * (self.folds + 1) + part) * self.actions..][..self.actions];
        let own = (self.folds > 1).then(|| row(fold));
        row(self.folds).iter().enumerate().map(move |(a, n)| n - own.map_or(0.0, |own| own[a]))
    }
}

impl<'s> Contexts<'s> {
    fn new(steps: &'s Steps, episodes: &'s [Trajectory], seed: Seed) -> Contexts<'s> {
        let of_episode = Groups::of(episodes).folds(FOLDS, seed.stream("folds"));
        let count = of_episode.iter().max().map_or(1, |last| last + 1);
        let fold = episodes.iter().zip(of_episode).flat_map(|(z, fold)| vec![fold; z.steps.len() + 1]).collect();
        Contexts { steps, episodes, fold, folds: count }
    }

    /// The best of the contexts that are made of last steps.
    fn best(&self) -> Estimated {
        let none = self.shares(&vec![0; self.steps.rows()], &Choices::uniform(self.steps), "nothing");
        let kinds: [(&'static str, Key); 3] = [
            ("the last observation", |past| past.iter().rev().take(1).map(|ao| ao.observation.0).collect()),
            ("the last step", |past| past.iter().rev().take(1).flat_map(|ao| [ao.observation.0, ao.action.0]).collect()),
            ("the last two steps", |past| past.iter().rev().take(2).flat_map(|ao| [ao.observation.0, ao.action.0]).collect()),
        ];
        let (mut best, mut shorter) = (none, None);
        for (given, key) in kinds {
            let prior = Choices::new(self.steps, shorter.take().unwrap_or_else(|| best.values.clone()));
            let found = self.shares(&self.contexts(key), &prior, given);
            shorter = Some(found.values.clone());
            if found.log_likelihood > best.log_likelihood + WORTHWHILE {
                best = found;
            }
        }
        best
    }

    /// The number of the context of each row.
    fn contexts(&self, key: Key) -> Vec<usize> {
        let mut known = FxHashMap::default();
        let rows = self.episodes.iter().flat_map(|z| (0..=z.steps.len()).map(|t| &z.steps[..t]));
        rows.map(|past| {
            let next = known.len();
            *known.entry(key(past)).or_insert(next)
        })
        .collect()
    }

    /// Shares of actions in the context of each row, backed off to a prior.
    fn shares(&self, contexts: &[usize], prior: &Choices, given: &'static str) -> Estimated {
        let mut counts = Counts::new(contexts.iter().max().map_or(1, |last| last + 1), self.folds, self.steps.actions());
        self.steps.list().iter().for_each(|step| counts.add(contexts[step.row], self.fold[step.row], step.action));
        let mut values = Vec::with_capacity(self.steps.rows() * self.steps.actions());
        for (row, &context) in contexts.iter().enumerate() {
            values.extend(counts.without(context, self.fold[row]).zip(prior.of(row)).map(|(n, p)| n + PRIOR * p));
        }
        self.finished(values, given)
    }

    /// Shares of actions among similar states, averaged over trees.
    fn by_state(&self, states: &States, seed: Seed) -> Result<Estimated> {
        let inputs = Inputs::new(Rows::new(states.values(), states.width())?)?;
        let params = TreeParams { trees: TREES, candidates: None, min_split: MIN_SPLIT };
        let trees = Trees::grow(&inputs, &params, seed.stream("behaviour"))?;
        let leaves = trees.leaves(&inputs);
        let actions = self.steps.actions();
        let mut counts = Counts::new(trees.leaf_count(), self.folds, actions);
        for tree in 0..TREES {
            let of_tree = leaves.of_tree(tree);
            let steps = self.steps.list().iter();
            steps.for_each(|step| counts.add(of_tree[step.row] as usize, self.fold[step.row], step.action));
        }
        let prior = Choices::uniform(self.steps);
        let mut values = vec![0.0; self.steps.rows() * actions];
        for (row, values) in values.chunks_exact_mut(actions).enumerate() {
            for tree in 0..TREES {
                let here = counts.without(leaves.of_tree(tree)[row] as usize, self.fold[row]);
                let here: Vec<f64> = here.zip(prior.of(row)).map(|(n, p)| n + PRIOR * p).collect();
                let total: f64 = here.iter().sum();
                values.iter_mut().zip(here).for_each(|(value, n)| *value += n / total);
            }
        }
        Ok(self.finished(values, "the state of the model"))
    }

    /// Shares of what could be done, and how probable they make what was.
    fn finished(&self, mut values: Vec<f64>, given: &'static str) -> Estimated {
        let actions = self.steps.actions();
        for (row, values) in values.chunks_exact_mut(actions).enumerate() {
            let could = |a: usize| self.steps.allows(row, Action(a as u32));
            let total: f64 = values.iter().enumerate().filter(|(a, _)| could(*a)).map(|(_, n)| n).sum();
            if total > 0.0 {
                values.iter_mut().enumerate().for_each(|(a, n)| *n = if could(a) { *n / total } else { 0.0 });
            }
        }
        let steps = self.steps.list();
        let of = |step: &Step| values[step.row * actions + step.action.index()].max(f64::MIN_POSITIVE).ln();
        let log_likelihood = steps.iter().map(of).sum::<f64>() / steps.len() as f64;
        Estimated { given, values, log_likelihood }
    }
}
