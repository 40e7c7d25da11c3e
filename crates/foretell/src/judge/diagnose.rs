//! What the theory of the paper needs [H14 §4], measured on logs: before one learns, or to understand what was learned.
//!
//! How few tests follow a history ([`Sparsity`]), how many directions stand out of the noise ([`Spectrum`]), how large a projection
//! should be ([`ProjectionSize`]), the terms of Theorems 1 to 3 that can be computed ([`Decay`], [`Terms`], [`Norms`], [`Horizon`]),
//! how errors really add up ([`StepScore`]), and which actions were tried where ([`Coverage`]).

mod coverage;
mod propagation;
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

pub use coverage::{Coverage, LeastTried, Tried};
pub use propagation::{Horizon, Norms, StepScore};
pub use sparsity::{MatrixSparsity, Sparsity};
pub use spectrum::{Floor, Spectrum};
pub use theory::{Decay, LeftOut, ProjectionSize, Terms};

/// Episodes on which states are followed step by step: the first ones.
const FOLLOWED: usize = 1000;

/// What was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diagnosis {
    /// Episodes of the logs.
    pub episodes: u64,
    /// Their steps.
    pub steps: u64,
    /// The parameters of learning for which it was measured.
    pub params: LearnParams,
    /// How few tests follow a history.
    pub sparsity: Sparsity,
    /// How large a projection should be.
    pub projection: ProjectionSize,
    /// How many directions stand out of the noise.
    pub spectrum: Spectrum,
    /// How fast the eigenvalues of Theorem 1 fall.
    pub decay: Decay,
    /// The terms of Theorems 1 and 2.
    pub terms: Terms,
    /// How much the operators stretch states.
    pub norms: Norms,
    /// Theorem 3 by horizon.
    pub propagation: Vec<Horizon>,
    /// How errors really add up: a model of one half of the episodes on the other half; empty where a half is too little to learn from.
    pub by_step: Vec<StepScore>,
    /// How many steps the n-gram beside it looks back: the best of those that are counted.
    pub ngram_length: usize,
    /// Which actions were tried where.
    pub coverage: Coverage,
}

/// Measures on logs what the theory needs, for given parameters of learning. Learns twice on the way: from all logs, and from half of
/// them to be scored on the other half.
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
    let sums = Summed::of(logs, params, model.alphabet(), model.origin().steps, &mut *progress)?;
    let Summed { moments, noise, sparsity, coverage } = sums;
    let spectrum = Spectrum::of(&moments, &noise)?;
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

/// What passes over the logs have summed.
struct Summed {
    moments: Moments,
    noise: Noise,
    sparsity: Sparsity,
    coverage: coverage::Counter,
}

impl Summed {
    fn of(
        logs: &Logs,
        params: &LearnParams,
        alphabet: &Alphabet,
        total: u64,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<Summed> {
        let (source, weighting) = (Source::Logs(logs), params.weighting);
        // The n-gram is the model's.
        let mut moments = Moments::new(&LearnParams { ngram_length: 0, ..params.clone() }, alphabet.clone());
        let mut coverage = coverage::Counter::default();
        source.each_batch(alphabet.clone(), Position::default(), weighting, |met, batch| {
            moments.survey.add(met.alphabet, batch);
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
        Ok(Summed { moments, noise, sparsity, coverage })
    }
}

/// The first episodes.
fn first(logs: &Logs, alphabet: &Alphabet) -> Result<Vec<Trajectory>> {
    logs.open(alphabet.clone())?.take(FOLLOWED).collect()
}

/// A model of one half of the episodes, scored step by step on the other, and how far the best n-gram looks back.
fn held_out(logs: &Logs, params: &LearnParams, progress: &mut (dyn FnMut(Progress) + Send)) -> Result<(Vec<StepScore>, usize)> {
    let seed = Seed(params.seed).stream("diagnose/halves");
    // All of the logs could be learned from; if half of them cannot, they are too few to tell.
    let Ok(learned) = Learner::new(params).progress(progress).learn(&logs.half(seed, false)) else { return Ok((Vec::new(), 0)) };
    let others = first(&logs.half(seed, true), learned.model.alphabet())?;
    Ok(propagation::by_step(&learned.model, &others))
}
