//! The quantities in the theory of the paper [H14 §4], measured on logs: before learning, or to
//! understand a model.
//!
//! Whether past steps help to predict ([`Memory`]), how few tests follow a history ([`Sparsity`]), how many directions are significant
//! ([`Spectrum`]), how large a projection should be ([`ProjectionSize`]), the terms of Theorems 1
//! to 3 that can be computed ([`Decay`], [`Terms`], [`Norms`], [`Horizon`]), how errors accumulate
//! in fact ([`StepScore`]), and which actions were taken where ([`Coverage`]).

mod coverage;
mod memory;
mod propagation;
mod shuffle;
mod sparsity;
mod spectrum;
#[cfg(test)]
mod tests;
mod theory;

use serde::Serialize;

use crate::data::{Alphabet, Trajectory};
use crate::error::Result;
use crate::learn::{Learner, Moments, Pass, Progress, Source};
use crate::log::{Logs, Position};
use crate::model::{LearnParams, Projection};
use crate::rng::Seed;
use spectrum::Noise;

pub use coverage::{ActionCoverage, Coverage, LeastTakenAction};
pub use memory::{Memory, MemoryVerdict};
pub use propagation::{Horizon, Norms, StepScore};
pub use sparsity::{MatrixSparsity, Sparsity};
pub use spectrum::{Floor, Spectrum};
pub use theory::{Decay, EigenvalueTail, ProjectionSize, Terms};

/// Number of episodes, the first ones, on which states are followed step by step.
const FOLLOWED: usize = 1000;

/// The result of [`diagnose`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diagnosis {
    /// Episodes of the logs.
    pub episodes: u64,
    /// Their steps.
    pub steps: u64,
    /// The parameters of learning for which it was measured.
    pub params: LearnParams,
    /// Whether past steps help to predict held-out ones; `None` if there are too few steps.
    pub memory: Option<Memory>,
    /// How few tests follow a history.
    pub sparsity: Sparsity,
    /// How large a projection should be.
    pub projection: ProjectionSize,
    /// How many directions are significant.
    pub spectrum: Spectrum,
    /// The decay of the eigenvalues of Theorem 1.
    pub decay: Decay,
    /// The terms of Theorems 1 and 2.
    pub terms: Terms,
    /// How much the operators stretch states.
    pub norms: Norms,
    /// Theorem 3 by horizon.
    pub propagation: Vec<Horizon>,
    /// How errors accumulate in fact: a model of one half of the episodes on the other half; empty
    /// if half of them are too few to learn from.
    pub by_step: Vec<StepScore>,
    /// The length of the n-gram for comparison: the best of those counted.
    pub ngram_length: usize,
    /// Which actions were taken where.
    pub coverage: Coverage,
}

/// Measures the quantities of the theory on logs, for given parameters of learning. It learns
/// twice: from all logs, and from half of them to score on the other half.
///
/// ```
/// use foretell::{LearnParams, Logs, Seed, domains, judge::diagnose::diagnose};
///
/// let tiger = domains::get("tiger")?;
/// let logs = Logs::memory(tiger.alphabet().clone(), domains::sample(&tiger, 3000, 20, Seed(1)).collect());
/// let found = diagnose(&logs, &LearnParams { rank: 4, ..LearnParams::default() }, &mut |_| {})?;
/// assert_eq!(found.spectrum.rank, Some(2), "left or right");
/// # Ok::<(), foretell::Error>(())
/// ```
pub fn diagnose(logs: &Logs, params: &LearnParams, progress: &mut (dyn FnMut(Progress) + Send)) -> Result<Diagnosis> {
    let model = Learner::new(params).progress(&mut *progress).learn(logs)?.model;
    let sums = LogSums::of(logs, params, model.alphabet(), model.origin().steps, &mut *progress)?;
    let LogSums { moments, noise, sparsity, coverage } = sums;
    let memory = memory::memory(logs, model.alphabet())?;
    let helps = memory.is_some_and(|memory| memory.verdict == MemoryVerdict::Helps);
    let mut spectrum = Spectrum::of(&moments, &noise)?;
    // There is a dependence that the spectrum does not show, so it supports no rank.
    spectrum.rank = spectrum.rank.filter(|&rank| rank > 1 || !helps);
    drop(noise);
    let decay = Decay::of(&spectrum::plain(&moments, &spectrum)?, sparsity.histories);
    let linear = model.linear().expect("a linear model was learned");
    let norms = Norms::of(linear, model.alphabet())?;
    let (m, d) = (spectrum.rank.unwrap_or(linear.rank()), moments.features.tests.rows());
    let is_compressed = params.test_projection != Projection::Identity;
    let followed = first(logs, model.alphabet())?;
    let (by_step, ngram_length) = held_out(logs, params, progress)?;
    Ok(Diagnosis {
        episodes: model.origin().episodes,
        steps: model.origin().steps,
        params: params.clone(),
        memory,
        projection: ProjectionSize::new(&sparsity, spectrum.rank, is_compressed.then_some(params.test_dim)),
        terms: Terms::new(m, d, &decay, &sparsity, norms.largest, norms.normalizer),
        propagation: propagation::propagation(&model, linear.initial(), &norms, &followed),
        by_step,
        ngram_length,
        coverage: coverage.finish(model.alphabet(), moments.propensities()),
        sparsity,
        spectrum,
        decay,
        norms,
    })
}

/// Sums of the passes over the logs.
struct LogSums {
    moments: Moments,
    noise: Noise,
    sparsity: Sparsity,
    coverage: coverage::Counter,
}

impl LogSums {
    fn of(
        logs: &Logs,
        params: &LearnParams,
        alphabet: &Alphabet,
        total: u64,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<LogSums> {
        let (source, weighting) = (Source::Logs(logs), params.weighting);
        // No n-gram here: it is taken from the model.
        let mut moments = Moments::new(&LearnParams { ngram_length: 0, ..params.clone() }, alphabet.clone());
        let mut coverage = coverage::Counter::default();
        source.each_batch(alphabet.clone(), Position::default(), weighting, |reader, batch| {
            moments.survey.add(reader.alphabet, batch);
            coverage.add(batch);
            Ok(())
        })?;
        moments.begin();
        let mut sparsity = sparsity::Counter::new(params, alphabet, moments.rule);
        let mut noise = Noise::new(&moments.features, Seed(params.seed), moments.survey.episodes);
        let (mut episodes, mut steps) = (0, 0);
        source.each_batch(alphabet.clone(), Position::default(), weighting, |_, batch| {
            let sum = || {
                moments.add(batch, false, false);
                let cuts = moments.features.batch(batch, moments.rule);
                noise.add(&moments.features, &cuts);
            };
            rayon::join(sum, || sparsity.add(batch));
            (episodes, steps) = (episodes + batch.len() as u64, steps + batch.steps().len() as u64);
            progress(Progress { pass: Pass::Moments, episodes, steps, total: Some(total) });
            Ok(())
        })?;
        let sparsity = sparsity.finish(moments.survey.counts.len(), episodes, params.history);
        Ok(LogSums { moments, noise, sparsity, coverage })
    }
}

/// The first episodes.
fn first(logs: &Logs, alphabet: &Alphabet) -> Result<Vec<Trajectory>> {
    logs.open(alphabet.clone())?.take(FOLLOWED).collect()
}

/// A model of one half of the episodes, scored step by step on the other, and the length of the
/// best n-gram.
fn held_out(logs: &Logs, params: &LearnParams, progress: &mut (dyn FnMut(Progress) + Send)) -> Result<(Vec<StepScore>, usize)> {
    let seed = Seed(params.seed).stream("diagnose/halves");
    // If half of the logs are too few to learn from, there is no score.
    let Ok(learned) = Learner::new(params).progress(progress).learn(&logs.half(seed, false)) else { return Ok((Vec::new(), 0)) };
    let others = first(&logs.half(seed, true), learned.model.alphabet())?;
    Ok(propagation::by_step(&learned.model, &others))
}
