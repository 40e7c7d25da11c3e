//! How errors of one step may accumulate [H14 Theorem 3], and how they do.
//!
//! ‖c_∞ᵀC_{ao_n}⋯C_{ao_1}c₁ − P‖_{ρ_n} ≤ ε_∞ s_n + ‖c_∞‖ ε Σ_{t<n} s_t c^{n−t−1} with c = max
//! ‖C_ao‖. Norms depend on the coordinates in which the model was learned; predictions do not.

use faer::MatRef;
use rayon::prelude::*;
use serde::Serialize;

use crate::data::{ActionObservation, Alphabet, Trajectory};
use crate::error::{Error, Result};
use crate::math::argmax;
use crate::math::dot;
use crate::model::{Linear, Model, NGramFilter, PredictiveState};
use crate::system::{Filter, Predict, Track};

/// Episodes of one task.
const CHUNK: usize = 32;

/// Norms of the operators of a model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Norms {
    /// c, the largest ‖C_ao‖.
    pub largest: f64,
    /// The action that has it.
    pub action: String,
    /// And the observation.
    pub observation: String,
    /// ‖C_ao‖ of half the pairs is at most this.
    pub median: f64,
    /// Pairs that have an operator: those that do not end the episode.
    pub operators: usize,
    /// Those whose norm is above 1.
    pub above_one: usize,
    /// ‖c_∞‖
    pub normalizer: f64,
    /// The largest |eigenvalue| of C_⋆ = Σ C_ao, the same in all coordinates: above 1, predictions
    /// without observations diverge.
    pub radius: f64,
}

impl Norms {
    pub(super) fn of(linear: &Linear, alphabet: &Alphabet) -> Result<Norms> {
        let failed = |_| Error::data("the eigenvalues of an operator did not converge", "use another rank or another seed");
        let d = linear.rank();
        let goes_on = |ao: &&ActionObservation| !alphabet.is_terminal(ao.observation);
        let of = |&ao: &ActionObservation| -> Result<(f64, ActionObservation)> {
            let operator = MatRef::from_row_major_slice(linear.operator(ao).expect("it is one of its pairs"), d, d);
            let values = operator.singular_values().map_err(|_| failed(()))?;
            Ok((values.first().copied().unwrap_or(0.0), ao))
        };
        let pairs: Vec<_> = linear.pairs().iter().filter(goes_on).collect();
        let mut norms = pairs.into_par_iter().map(of).collect::<Result<Vec<_>>>()?;
        norms.sort_by(|x, y| y.0.total_cmp(&x.0).then(x.1.cmp(&y.1)));
        let named = |ao: ActionObservation, alphabet: &Alphabet| {
            (alphabet.action_name(ao.action).to_string(), alphabet.symbol(ao.observation).to_string())
        };
        let (action, observation) = norms.first().map(|&(_, ao)| named(ao, alphabet)).unwrap_or_default();
        let step = linear.step_operator();
        let eigenvalues = MatRef::from_row_major_slice(&step, d, d).eigenvalues().map_err(|_| failed(()))?;
        Ok(Norms {
            largest: norms.first().map_or(0.0, |norm| norm.0),
            action,
            observation,
            median: norms.get(norms.len() / 2).map_or(0.0, |norm| norm.0),
            operators: norms.len(),
            above_one: norms.iter().filter(|norm| norm.0 > 1.0).count(),
            normalizer: dot(linear.normalizer(), linear.normalizer()).sqrt(),
            radius: eigenvalues.iter().map(|x| x.norm()).fold(0.0, f64::max),
        })
    }
}

/// Theorem 3 for predictions n steps ahead. Logarithms to base 10, since these numbers are
/// unbounded.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Horizon {
    /// n
    pub horizon: usize,
    /// s_n: the root mean square of the unnormalised state relative to the start; `None` if all
    /// episodes have ended.
    pub log10_scale: Option<f64>,
    /// ‖c_∞‖ Σ_{t<n} s_t c^{n−t−1}, by which the error ε of one step is multiplied; `None` for
    /// n = 1.
    pub log10_factor: Option<f64>,
    /// The ε from which the bound exceeds the probabilities it bounds: the factor, compared with
    /// their root mean square.
    pub log10_vacuous_from: Option<f64>,
}

/// One episode under a model: at each step the log-probability of the history under the behaviour
/// policy, and the logarithm of the state's norm.
struct Trace {
    log_probability: Vec<f64>,
    log_norm: Vec<Option<f64>>,
}

/// Theorem 3 by horizon, on given episodes.
pub(super) fn propagation(model: &Model, initial: &[f64], norms: &Norms, episodes: &[Trajectory]) -> Vec<Horizon> {
    let traces: Vec<Trace> = episodes.par_chunks(CHUNK).flat_map_iter(|zs| traces(model, zs)).collect();
    let longest = episodes.iter().map(|z| z.steps.len()).max().unwrap_or(0);
    let start = norm(initial).ln();
    let rms = |of: &dyn Fn(&Trace) -> Option<f64>| log_rms(traces.iter().filter_map(of));
    let scale = |n: usize| rms(&|trace| (*trace.log_norm.get(n)?).zip(trace.log_probability.get(n)).map(|(x, p)| x + p - start));
    let scales: Vec<Option<f64>> = (0..longest).map(scale).collect();
    let c = norms.largest.ln();
    // ln Σ_{t<n} s_t c^{n−t−1}: the sum for n + 1 is that for n times c, and s_n.
    let (mut sum, mut horizons): (Option<f64>, Vec<Horizon>) = (None, Vec::new());
    for (n, &scale) in (1..).zip(&scales) {
        let factor = sum.map(|sum| norms.normalizer.ln() + sum);
        let probability = rms(&|trace| trace.log_probability.get(n - 1).copied());
        let log10 = |x: f64| x / std::f64::consts::LN_10;
        horizons.push(Horizon {
            horizon: n,
            log10_scale: scale.map(log10),
            log10_factor: factor.map(log10),
            log10_vacuous_from: factor.zip(probability).map(|(factor, p)| log10(p - factor)),
        });
        sum = log_sum([sum.map(|sum| sum + c), scale]);
    }
    horizons
}

fn traces(model: &Model, episodes: &[Trajectory]) -> Vec<Trace> {
    let mut filter = PredictiveState::new(model);
    let mut trace = |z: &Trajectory| {
        filter.reset();
        let mut total = 0.0;
        let step = |&ao: &ActionObservation| {
            // c_∞ᵀC_ao c includes the probability of the action.
            total += (filter.update(ao) * model.frequencies().action_shares[ao.action.index()]).max(f64::MIN_POSITIVE).ln();
            let norm = norm(filter.state()).ln();
            (total, Some(norm).filter(|norm| norm.is_finite() && !model.alphabet().is_terminal(ao.observation)))
        };
        let (log_probability, log_norm) = z.steps.iter().map(step).unzip();
        Trace { log_probability, log_norm }
    };
    episodes.iter().map(&mut trace).collect()
}

fn norm(x: &[f64]) -> f64 {
    dot(x, x).sqrt()
}

/// ln √(mean of e^{2x})
fn log_rms(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    let largest = values.iter().copied().reduce(f64::max)?;
    let mean = values.iter().map(|x| (2.0 * (x - largest)).exp()).sum::<f64>() / values.len() as f64;
    Some(largest + mean.ln() / 2.0)
}

/// ln Σ e^x
fn log_sum(values: [Option<f64>; 2]) -> Option<f64> {
    let values = values.into_iter().flatten();
    let largest = values.clone().reduce(f64::max)?;
    Some(largest + values.map(|x| (x - largest).exp()).sum::<f64>().ln())
}

/// How well a step is predicted, by its number in the episode: how errors accumulate in fact.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct StepScore {
    /// Which step of the episode, counted from 1.
    pub step: usize,
    /// Episodes that have it.
    pub episodes: u64,
    /// Mean log-likelihood of this step alone, nats.
    pub model: f64,
    /// The same for the best n-gram, which uses only the last steps and so cannot accumulate
    /// errors.
    pub ngram: f64,
    /// Share of the episodes in which the filter was lost at this step.
    pub lost: f64,
}

/// The predictions of one step.
struct StepPrediction {
    /// ln P(o ‖ a) by the model, and by n-grams of every length from 0.
    model: f64,
    ngrams: Vec<f64>,
    /// 1 if the filter was lost.
    lost: f64,
}

/// Scores each step of given episodes, which the model has not seen; also returns the length of the
/// n-gram that predicts them best.
pub(super) fn by_step(model: &Model, episodes: &[Trajectory]) -> (Vec<StepScore>, usize) {
    let scored: Vec<Vec<StepPrediction>> = episodes.par_chunks(CHUNK).flat_map_iter(|zs| scored(model, zs)).collect();
    let longest = scored.iter().map(Vec::len).max().unwrap_or(0);
    let total = |length: usize| scored.iter().flatten().map(|step| step.ngrams[length]).sum::<f64>();
    let (best, _) = argmax((0..=model.ngram().length()).map(total));
    let step = |t: usize| {
        let here = scored.iter().filter_map(|steps| steps.get(t));
        let n = here.clone().count();
        let mean = |of: &dyn Fn(&StepPrediction) -> f64| here.clone().map(of).sum::<f64>() / n as f64;
        let (model, ngram, lost) = (mean(&|step| step.model), mean(&|step| step.ngrams[best]), mean(&|step| step.lost));
        StepScore { step: t + 1, episodes: n as u64, model, ngram, lost }
    };
    ((0..longest).map(step).collect(), best)
}

fn scored(model: &Model, episodes: &[Trajectory]) -> Vec<Vec<StepPrediction>> {
    let mut filter = PredictiveState::new(model);
    let mut ngrams: Vec<NGramFilter<'_>> = (0..=model.ngram().length()).map(|length| NGramFilter::new(model, length)).collect();
    let ln = |p: f64| p.max(f64::MIN_POSITIVE).ln();
    let mut of = |z: &Trajectory| {
        filter.reset();
        ngrams.iter_mut().for_each(Track::reset);
        let step = |&ao: &ActionObservation| {
            let before = filter.lost();
            let (model, ngrams) = (ln(filter.update(ao)), ngrams.iter_mut().map(|ngram| ln(ngram.update(ao))).collect());
            StepPrediction { model, ngrams, lost: (filter.lost() - before) as f64 }
        };
        z.steps.iter().map(step).collect()
    };
    episodes.iter().map(&mut of).collect()
}
