//! Scores of models: log-likelihood per step and by horizon with intervals, calibration, comparison
//! with baselines and the exact model.

use std::collections::BTreeMap;

use rayon::prelude::*;
use serde::Serialize;

use super::compare::{Comparison, Verdict, against_all};
use super::horizons::{HorizonScore, Horizons};
use crate::data::{About, ActionObservation, Alphabet, EpisodeKeys, LearnedFrom, Observation, Trajectory, Translation};
use crate::error::{Error, Result};
use crate::log::Logs;
use crate::math::{PerStep, Z95};
use crate::model::{Model, NGramFilter, PredictiveState, UniformFilter};
use crate::pomdp::{Belief, Pomdp};
use crate::system::{Predict, Track};

/// Episodes scored as one task.
const CHUNK: usize = 64;
/// Episodes held at once.
const HELD: usize = 4096;
/// Equal bins of predicted probability.
const BINS: usize = 10;
/// The exact model among the comparisons.
const TRUTH: &str = "truth";

/// Predicted probabilities in a bin, and how often the predicted observation occurred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CalibrationBin {
    /// Mean predicted probability.
    pub predicted: f64,
    /// Share of observations that occurred.
    pub observed: f64,
    /// Predictions in the bin, one for each step and observation.
    pub predictions: u64,
}

impl CalibrationBin {
    /// Half the width of a 95 % interval of the observed share, √(q(1 − q)/n) · 1.96, as if
    /// predictions were independent.
    pub fn ci95(&self) -> f64 {
        Z95 * (self.observed * (1.0 - self.observed) / self.predictions.max(1) as f64).sqrt()
    }
}

/// The spread of an ensemble, and its coverage.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Uncertainty {
    /// Mean spread of predicted probabilities of at least 1 %.
    pub spread: f64,
    /// The share of them whose true probability is within two spreads, if the exact model is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coverage: Option<f64>,
    /// Number of these predictions.
    pub predictions: u64,
}

/// How well a model predicts logs it has not seen.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Score {
    /// Mean log-likelihood of one step, nats.
    pub per_step: f64,
    /// Half the width of its 95 % interval, over groups of episodes where the logs have them; none
    /// where the logs are too short for one.
    pub per_step_ci95: Option<f64>,
    /// Comparison with each baseline and, if it is known, the exact model, by the log-likelihood of
    /// the same steps.
    pub comparisons: Vec<Comparison>,
    /// Log-likelihood by horizon.
    pub horizons: Vec<HorizonScore>,
    /// Number of steps at which the filter was lost and restarted from the mean state after the
    /// step.
    pub lost: u64,
    /// Episodes scored.
    pub episodes: u64,
    /// Steps scored.
    pub steps: u64,
    /// Steps whose action or observation was not seen in training.
    pub unseen: u64,
    /// Steps whose observation, or a part of it, is missing; they are not scored.
    pub missing: u64,
    /// How many of the episodes the model was learned from; `None` where that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub learned_from: Option<LearnedFrom>,
    /// Reliability of the predicted probabilities.
    pub calibration: Vec<CalibrationBin>,
    /// The spread of an ensemble.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uncertainty: Option<Uncertainty>,
    /// The exact model, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truth: Option<Vec<HorizonScore>>,
    /// Uniform and back-off n-grams trained on the same logs.
    pub baselines: BTreeMap<String, Vec<HorizonScore>>,
}

impl Score {
    /// Whether the model predicts better than all baselines, and the baseline that decides this;
    /// none where the logs are too short.
    pub fn verdict(&self) -> Option<(Verdict, &Comparison)> {
        against_all(self.comparisons.iter().filter(|comparison| comparison.name != TRUTH))
    }
}

/// Scores a model on logs, with its baselines and, if given, the exact model.
pub fn score(model: &Model, logs: &Logs, truth: Option<&Pomdp>) -> Result<Score> {
    let ngrams = model.ngram().length();
    let mut tally = Tally::new(ngrams);
    let mut reader = logs.open(model.alphabet().clone())?;
    let digest = &model.origin().digest;
    let (mut learned_from, mut keys) = (digest.comparison(), EpisodeKeys::default());
    loop {
        let held = reader.by_ref().take(HELD).collect::<Result<Vec<Trajectory>>>()?;
        if held.is_empty() {
            break;
        }
        if let Some(comparison) = &mut learned_from {
            held.iter().for_each(|z| digest.compare(keys.key(reader.alphabet(), z), comparison));
        }
        let translation = truth.map(|pomdp| Truth::new(reader.alphabet(), pomdp)).transpose()?;
        let parts: Vec<Tally> = held.par_chunks(CHUNK).map(|zs| Tally::of(model, zs, translation.as_ref())).collect();
        parts.into_iter().for_each(|part| tally.merge(part));
    }
    if tally.model.is_empty() {
        return Err(Error::NoSteps);
    }
    if tally.impossible > 0 {
        return Err(Error::data(
            format!("{} steps of the logs have probability 0 in the exact model", tally.impossible),
            "check that the logs come from that domain, with the same names",
        ));
    }
    Ok(Score { learned_from, ..tally.finish(truth.is_some()) })
}

/// Sums over episodes for another predictor than the model.
#[derive(Clone, Debug, Default)]
struct Other {
    horizons: Horizons,
    /// Log-likelihood of a step under the model minus that under this predictor.
    difference: PerStep,
}

impl Other {
    /// Adds an episode, given for each of its steps the log-likelihood under the model and the
    /// probability under this predictor.
    fn add(&mut self, models: &[f64], z: &Trajectory, probabilities: impl Iterator<Item = f64>) {
        let own: Vec<f64> = probabilities.map(log_likelihood).collect();
        self.horizons.add(z.about.group.as_ref(), &own);
        self.difference.add(z.about.group.as_ref(), scored(z, models.iter().zip(&own).map(|(model, own)| model - own)));
    }

    fn merge(&mut self, other: Other) {
        self.horizons.merge(other.horizons);
        self.difference.merge(other.difference);
    }
}

/// The values of those steps of an episode that are scored: their observation is not missing.
fn scored(z: &Trajectory, values: impl Iterator<Item = f64>) -> impl Iterator<Item = f64> {
    z.steps.iter().zip(values).filter(|(ao, _)| !ao.observation.is_missing()).map(|(_, value)| value)
}

/// A probability of 0 (possible only without a floor) costs 708 nats instead of infinitely many.
fn log_likelihood(p: f64) -> f64 {
    p.max(f64::MIN_POSITIVE).ln()
}

#[derive(Clone, Copy, Debug, Default)]
struct BinCounts {
    predictions: u64,
    predicted: f64,
    observed: u64,
}

impl BinCounts {
    fn finish(&self) -> CalibrationBin {
        let n = self.predictions as f64;
        CalibrationBin { predicted: self.predicted / n, observed: self.observed as f64 / n, predictions: self.predictions }
    }
}

/// Smaller predicted probabilities are omitted from the coverage: nearly all are almost exactly
/// zero.
const MIN_PROBABILITY: f64 = 0.01;
/// SpreadSums on either side that should contain the true probability in 95 % of cases.
const SPREADS: f64 = 2.0;

#[derive(Clone, Copy, Debug, Default)]
struct SpreadSums {
    predictions: u64,
    spread: f64,
    covered: u64,
}

impl SpreadSums {
    /// Adds the predictions of one step, and the true probabilities.
    fn add(&mut self, probabilities: &[f64], spreads: &[f64], truth: impl Fn(usize) -> f64) {
        for (o, (&p, &spread)) in probabilities.iter().zip(spreads).enumerate() {
            if p >= MIN_PROBABILITY {
                self.predictions += 1;
                self.spread += spread;
                self.covered += u64::from((p - truth(o)).abs() <= SPREADS * spread);
            }
        }
    }

    fn finish(&self, truth_is_known: bool) -> Uncertainty {
        let n = self.predictions as f64;
        let coverage = truth_is_known.then_some(self.covered as f64 / n);
        Uncertainty { spread: self.spread / n, coverage, predictions: self.predictions }
    }
}

/// All sums of scoring.
#[derive(Clone, Debug, Default)]
struct Tally {
    model: Horizons,
    per_step: PerStep,
    uniform: Other,
    ngrams: Vec<Other>,
    truth: Other,
    spreads: SpreadSums,
    bins: [BinCounts; BINS],
    episodes: u64,
    steps: u64,
    lost: u64,
    unseen: u64,
    missing: u64,
    impossible: u64,
}

impl Tally {
    fn new(ngrams: usize) -> Tally {
        Tally { ngrams: vec![Other::default(); ngrams + 1], ..Tally::default() }
    }

    fn of(model: &Model, zs: &[Trajectory], truth: Option<&Truth<'_>>) -> Tally {
        let mut tally = Tally::new(model.ngram().length());
        let models = tally.add_model(model, zs, truth);
        let episodes = || zs.iter().zip(&models);
        let mut uniform = UniformFilter::of(model);
        episodes().for_each(|(z, models)| tally.uniform.add(models, z, probabilities(&mut uniform, &z.steps, &z.about)));
        for (k, ngram) in tally.ngrams.iter_mut().enumerate() {
            let mut filter = NGramFilter::new(model, k);
            episodes().for_each(|(z, models)| ngram.add(models, z, probabilities(&mut filter, &z.steps, &z.about)));
        }
        if let Some(truth) = truth {
            let mut belief = Belief::new(truth.pomdp);
            for (z, models) in episodes() {
                let steps: Vec<_> = z.steps.iter().map(|&ao| truth.translate(ao)).collect();
                let impossible = &mut tally.impossible;
                let possible = probabilities(&mut belief, &steps, &z.about).inspect(|&p| *impossible += u64::from(p <= 0.0));
                tally.truth.add(models, z, possible);
            }
        }
        tally
    }

    /// The model itself, with its calibration and the spread of its ensemble: the log-likelihood of
    /// each step of each episode.
    fn add_model(&mut self, model: &Model, zs: &[Trajectory], truth: Option<&Truth<'_>>) -> Vec<Vec<f64>> {
        let mut exact = truth.filter(|_| model.ensemble().is_some()).map(|truth| (truth, Belief::new(truth.pomdp)));
        let (actions, symbols) = (model.alphabet().actions().len(), model.alphabet().observations().len());
        let mut filter = PredictiveState::new(model);
        let mut all = Vec::with_capacity(zs.len());
        for z in zs {
            filter.reset();
            exact.iter_mut().for_each(|(_, belief)| belief.reset());
            let step = |(t, &ao): (usize, &ActionObservation)| {
                if let Some(pattern) = z.about.partial_at(t) {
                    self.missing += 1;
                    exact.iter_mut().for_each(|(truth, belief)| belief.observe_partial(truth.translate(ao).action, pattern));
                    filter.observe_partial(ao.action, pattern);
                    return 0.0;
                }
                if ao.observation.is_missing() {
                    self.missing += 1;
                    exact.iter_mut().for_each(|(truth, belief)| belief.observe(truth.translate(ao)));
                    filter.observe(ao);
                    return 0.0;
                }
                let (action, observation) = (ao.action.index(), ao.observation.index());
                self.unseen += u64::from(action >= actions || observation >= symbols);
                let p = filter.predict(ao.action);
                for (o, &p) in p.iter().enumerate() {
                    let bin = &mut self.bins[((p * BINS as f64) as usize).min(BINS - 1)];
                    bin.predictions += 1;
                    bin.predicted += p;
                    bin.observed += u64::from(o == observation);
                }
                let given = p.get(observation).copied();
                if let Some((truth, belief)) = &mut exact {
                    let ao = truth.translate(ao);
                    let true_ones = belief.probabilities(ao.action).to_vec();
                    self.spreads.add(filter.prediction(), filter.spread(), |o| truth.of(&true_ones, o));
                    belief.update(ao);
                } else {
                    self.spreads.add(filter.prediction(), filter.spread(), |_| f64::NAN);
                }
                let p = given.unwrap_or(filter.unseen());
                filter.observe(ao);
                log_likelihood(p)
            };
            let log_likelihoods: Vec<f64> = z.steps.iter().enumerate().map(step).collect();
            self.model.add(z.about.group.as_ref(), &log_likelihoods);
            self.per_step.add(z.about.group.as_ref(), scored(z, log_likelihoods.iter().copied()));
            all.push(log_likelihoods);
            self.episodes += 1;
            self.steps += z.steps.iter().filter(|ao| !ao.observation.is_missing()).count() as u64;
        }
        self.lost += filter.lost();
        all
    }

    fn merge(&mut self, other: Tally) {
        self.model.merge(other.model);
        self.per_step.merge(other.per_step);
        self.uniform.merge(other.uniform);
        self.truth.merge(other.truth);
        self.ngrams.iter_mut().zip(other.ngrams).for_each(|(into, from)| into.merge(from));
        for (into, from) in self.bins.iter_mut().zip(other.bins) {
            into.predictions += from.predictions;
            into.predicted += from.predicted;
            into.observed += from.observed;
        }
        self.spreads.predictions += other.spreads.predictions;
        self.spreads.spread += other.spreads.spread;
        self.spreads.covered += other.spreads.covered;
        self.episodes += other.episodes;
        self.steps += other.steps;
        self.lost += other.lost;
        self.unseen += other.unseen;
        self.missing += other.missing;
        self.impossible += other.impossible;
    }

    fn finish(self, truth_is_known: bool) -> Score {
        let truth = truth_is_known.then_some(&self.truth);
        let ngrams = || self.ngrams.iter().enumerate().map(|(k, ngram)| (format!("ngram-{k}"), ngram));
        let baselines = || std::iter::once(("uniform".to_string(), &self.uniform)).chain(ngrams());
        let others = baselines().chain(truth.map(|truth| (TRUTH.to_string(), truth)));
        let per_step = self.per_step.finish();
        Score {
            per_step: per_step.mean,
            per_step_ci95: per_step.ci95,
            comparisons: others.map(|(name, other)| Comparison::new(name, other.difference.finish())).collect(),
            horizons: self.model.finish(),
            lost: self.lost,
            episodes: self.episodes,
            steps: self.steps,
            unseen: self.unseen,
            missing: self.missing,
            learned_from: None,
            calibration: self.bins.iter().filter(|b| b.predictions > 0).map(BinCounts::finish).collect(),
            uncertainty: (self.spreads.predictions > 0).then(|| self.spreads.finish(truth_is_known)),
            truth: truth.map(|truth| truth.horizons.finish()),
            baselines: baselines().map(|(name, other)| (name, other.horizons.finish())).collect(),
        }
    }
}

/// The probability a filter gives to each step of an episode; 1 where parts of the observation are
/// missing, which the filter takes into account.
fn probabilities<'a>(
    filter: &'a mut impl Predict,
    steps: &'a [ActionObservation],
    about: &'a About,
) -> impl Iterator<Item = f64> + 'a {
    filter.reset();
    steps.iter().enumerate().map(|(t, &ao)| match about.partial_at(t) {
        Some(pattern) => {
            filter.observe_partial(ao.action, pattern);
            1.0
        }
        None => filter.update(ao),
    })
}

/// An exact model, and the symbols of logs as it names them.
struct Truth<'p> {
    pomdp: &'p Pomdp,
    translation: Translation,
}

impl<'p> Truth<'p> {
    fn new(from: &Alphabet, pomdp: &'p Pomdp) -> Result<Self> {
        let to = pomdp.alphabet();
        if from.observes_rewards() && from.observations().iter().all(|symbol| to.same_observation(symbol).is_none()) {
            let problem = "the model's observations include rewards, those of the exact model do not";
            return Err(Error::data(problem, "score it without the exact model, or learn with `observe_reward` = false"));
        }
        let unknown = from.actions().iter().find(|name| to.action(name).is_none());
        match unknown {
            Some(name) => Err(Error::unknown("action", name, to.actions().iter().map(String::as_str))),
            None => Ok(Truth { pomdp, translation: Translation::between(from, to) }),
        }
    }

    /// The probability of an observation of the logs among those of the exact model.
    fn of(&self, probabilities: &[f64], o: usize) -> f64 {
        self.translation.observation(Observation(o as u32)).map_or(0.0, |o| probabilities[o.index()])
    }

    /// An observation unknown to the exact model becomes an index beyond its alphabet, with
    /// probability 0.
    fn translate(&self, ao: ActionObservation) -> ActionObservation {
        ActionObservation {
            action: self.translation.action(ao.action).expect("it knows all actions, checked in Truth::new"),
            observation: self.translation.observation(ao.observation).unwrap_or(Observation::UNKNOWN),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::Mean;

    #[test]
    fn the_interval_of_a_share_is_that_of_a_mean_of_zeros_and_ones() {
        let bin = CalibrationBin { predicted: 0.2, observed: 0.25, predictions: 40_000 };
        let mean: Mean = (0..40_000).map(|i| if i % 4 == 0 { 1.0 } else { 0.0 }).collect();
        // They differ by n against n − 1.
        assert!((bin.ci95() / mean.ci95() - 1.0).abs() < 1e-4, "{} {}", bin.ci95(), mean.ci95());
        assert_eq!(CalibrationBin::default().ci95(), 0.0, "nothing predicted");
    }
}
