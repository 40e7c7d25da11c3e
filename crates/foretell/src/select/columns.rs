//! Which columns of observations help to predict the others, and rewards.
//!
//! A column that does not only multiplies symbols. Columns are first compared by n-grams: their
//! contexts contain it or not, and both predict what is left of the observation without it. A column
//! that follows from its own past is kept too. Those that help no n-gram may still be remembered for
//! long, so the family is fitted once more without them. If it predicts the others and rewards as
//! well, they can be spared.

use rayon::prelude::*;
use serde::Serialize;

use super::evidence::Target;
use super::parts::{Fold, HeldOut};
use super::rewards::BEYOND_NOISE;
use super::trial::Trial;
use crate::data::{About, ActionObservation, Alphabet, Factors, Observation, SEPARATOR, Trajectory};
use crate::error::Result;
use crate::math::Mean;

/// The comparison by n-grams adds up at most this many probabilities.
const MOST_WORK: usize = 1 << 27;

/// Columns that help to predict neither the others, nor rewards, nor their own future.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SpareColumns {
    /// Their names, or their numbers from 1 where they have none.
    pub names: Vec<String>,
    /// The names of the others.
    pub others: Vec<String>,
    /// Numbers of observations with them and without them.
    pub observations: [usize; 2],
    /// How much better the other columns and rewards are predicted without them, nats per held-out
    /// step.
    pub gain: f64,
    /// Standard error of that; `None` if there is at most one held-out part.
    pub error: Option<f64>,
}

/// Observations without some of their columns.
pub(super) struct Reduced {
    pub(super) alphabet: Alphabet,
    /// The symbol of each observation.
    of: Vec<Observation>,
    /// For each observation those that have the same symbol, including itself.
    pub(super) same: Vec<Vec<usize>>,
    parts: usize,
    dropped: Vec<usize>,
}

impl Reduced {
    fn new(alphabet: &Alphabet, parts: usize, dropped: Vec<usize>) -> Reduced {
        let mut reduced = Alphabet::default();
        alphabet.actions().iter().for_each(|action| {
            reduced.intern_action(action);
        });
        let name = |name: &str| without(name, parts, &dropped);
        let of: Vec<_> = alphabet.observations().iter().map(|o| reduced.intern(&name(&o.name), o.terminal)).collect();
        let mut with = vec![Vec::new(); reduced.observations().len()];
        of.iter().enumerate().for_each(|(o, to)| with[to.index()].push(o));
        Reduced { same: of.iter().map(|to| with[to.index()].clone()).collect(), alphabet: reduced, of, parts, dropped }
    }

    fn step(&self, ao: ActionObservation) -> ActionObservation {
        let observation = if ao.observation.is_missing() { ao.observation } else { self.of[ao.observation.index()] };
        ActionObservation { observation, ..ao }
    }

    fn about(&self, about: &About) -> About {
        let name = |name: &str| without(name, self.parts, &self.dropped).into();
        About { partial: about.partial.iter().map(|(t, partial)| (*t, name(partial))).collect(), ..about.clone() }
    }

    fn trajectory(&self, z: &Trajectory) -> Trajectory {
        Trajectory { steps: z.steps.iter().map(|ao| self.step(*ao)).collect(), about: self.about(&z.about), ..z.clone() }
    }

    /// The columns that were left out, once they were found to be spare.
    pub(super) fn spare(&self, whole: &Alphabet, gain: f64, error: Option<f64>) -> SpareColumns {
        let first = whole.observations().iter().find(|o| !o.terminal).map_or("", |o| &o.name);
        let name = |(i, part): (usize, &str)| part.split_once('=').map_or_else(|| (i + 1).to_string(), |(name, _)| name.into());
        let names: Vec<String> = first.splitn(self.parts, SEPARATOR).enumerate().map(name).collect();
        let of = |is_dropped: bool| {
            let of = names.iter().enumerate().filter(|(i, _)| self.dropped.contains(i) == is_dropped);
            of.map(|(_, name)| name.clone()).collect()
        };
        let observations = [whole, &self.alphabet].map(|alphabet| alphabet.observations().len());
        SpareColumns { names: of(true), others: of(false), observations, gain, error }
    }

    /// The same parts of the logs.
    pub(super) fn folds(&self, folds: &[Fold]) -> Vec<Fold> {
        let held_out = |z: &HeldOut| {
            let steps = z.steps.iter().map(|ao| self.step(*ao)).collect();
            HeldOut { steps, about: self.about(&z.about), ..z.clone() }
        };
        let fold = |fold: &Fold| Fold {
            training: fold.training.iter().map(|z| self.trajectory(z)).collect(),
            held_out: fold.held_out.iter().map(held_out).collect(),
        };
        folds.iter().map(fold).collect()
    }
}

/// The name of an observation without some of its parts.
fn without(name: &str, parts: usize, dropped: &[usize]) -> String {
    let kept = name.splitn(parts, SEPARATOR).enumerate().filter(|(i, _)| !dropped.contains(i));
    kept.map(|(_, part)| part).collect::<Vec<_>>().join(&SEPARATOR.to_string())
}

/// The observations without the columns that help no n-gram; `None` if all columns help, or there is
/// only one.
pub(super) fn candidates(trial: &Trial<'_>, alphabet: &Alphabet) -> Result<Option<Reduced>> {
    let columns = Factors::of(alphabet).sizes().len().saturating_sub(1);
    let work = trial.evidence.steps() * alphabet.observations().len() * columns * trial.ngrams().count();
    if columns < 2 || work > MOST_WORK {
        return Ok(None);
    }
    let helps = |column: usize| -> Result<bool> {
        let without = Reduced::new(alphabet, columns, vec![column]);
        let alone = || Reduced::new(alphabet, columns, (0..columns).filter(|&other| other != column).collect());
        Ok(helps_to_predict(trial, &without)? || helps_with_rewards(trial.folds, &without) || has_memory(trial, &alone())?)
    };
    let help = (0..columns).into_par_iter().map(helps).collect::<Result<Vec<bool>>>()?;
    let spare: Vec<usize> = (0..columns).filter(|&column| !help[column]).collect();
    let is_some = !spare.is_empty() && spare.len() < columns;
    Ok(is_some.then(|| Reduced::new(alphabet, columns, spare)))
}

/// The log-likelihood of each part under the best of some predictors.
fn best(scores: impl Iterator<Item = Vec<f64>>) -> Vec<f64> {
    let sum = |scores: &Vec<f64>| scores.iter().sum::<f64>();
    scores.max_by(|x, y| sum(x).total_cmp(&sum(y))).unwrap_or_default()
}

/// Whether past steps predict the next, beyond noise.
fn has_memory(trial: &Trial<'_>, reduced: &Reduced) -> Result<bool> {
    let folds = reduced.folds(trial.folds);
    let counted = trial.counted(&reduced.alphabet, &folds)?;
    let scores: Vec<_> =
        trial.ngrams().map(|slot| trial.evidence.scores(&counted.log_probabilities(slot, Target::Symbol))).collect();
    let [without, with @ ..] = &scores[..] else { return Ok(false) };
    let (gain, error) = trial.evidence.difference(&best(with.iter().cloned()), without);
    Ok(gain > BEYOND_NOISE * error)
}

/// Whether the best n-gram of whole observations predicts what is left of them better than the best
/// n-gram of what is left does.
fn helps_to_predict(trial: &Trial<'_>, reduced: &Reduced) -> Result<bool> {
    let evidence = &trial.evidence;
    let with = |slot| evidence.scores(&trial.log_probabilities(slot, Target::Class(&reduced.same)));
    let folds = reduced.folds(trial.folds);
    let counted = trial.counted(&reduced.alphabet, &folds)?;
    let left = |slot| evidence.scores(&counted.log_probabilities(slot, Target::Symbol));
    let (gain, _) = evidence.difference(&best(trial.ngrams().map(with)), &best(trial.ngrams().map(left)));
    Ok(gain > 0.0)
}

/// Whether rewards are predicted better, beyond noise, by the mean of the action and the observation
/// than by that of the action and what is left of the observation.
fn helps_with_rewards(folds: &[Fold], reduced: &Reduced) -> bool {
    let errors = |z: &HeldOut, with: &[Mean], left: &[Mean], at: &dyn Fn(ActionObservation) -> [usize; 2]| -> f64 {
        let square = |(ao, reward): (&ActionObservation, &Option<f64>)| {
            let [pair, rest] = at(*ao);
            let expected = if with[pair].count() > 0.0 { &with[pair] } else { &left[rest] };
            reward.map_or(0.0, |r| (r - left[rest].mean()).powi(2) - (r - expected.mean()).powi(2))
        };
        z.steps[z.from..].iter().zip(&z.rewards).filter(|(ao, _)| !ao.observation.is_missing()).map(square).sum()
    };
    let mut gains = Mean::default();
    for fold in folds {
        let (actions, sizes) = (reduced.alphabet.actions().len(), [reduced.of.len(), reduced.alphabet.observations().len()]);
        let at = |ao: ActionObservation| {
            let whole = ao.observation.index();
            [ao.action.index() * sizes[0] + whole, ao.action.index() * sizes[1] + reduced.of[whole].index()]
        };
        let [mut with, mut left] = sizes.map(|size| vec![Mean::default(); actions * size]);
        for (ao, reward) in fold.training.iter().flat_map(|z| z.steps.iter().zip(&z.rewards)) {
            let Some(reward) = reward.filter(|_| !ao.observation.is_missing()) else { continue };
            let [pair, rest] = at(*ao);
            with[pair].add(reward);
            left[rest].add(reward);
        }
        fold.held_out.iter().for_each(|z| gains.add(errors(z, &with, &left, &at)));
    }
    gains.mean() > gains.ci95()
}
