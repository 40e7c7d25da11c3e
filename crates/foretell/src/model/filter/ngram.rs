//! Predictions of n-grams: alone, as baselines, and mixed with another prediction.

use crate::data::{Action, ActionObservation, Fingerprints};
use crate::model::ngram::{Followers, NGram, Past};
use crate::model::predictor::{Frequencies, Model};
use crate::system::{Predict, Track};

/// As a prior for the counts of the whole history, a mixture in which the n-gram has weight ½
/// counts as this many observations.
const PRIOR_STRENGTH: f64 = 5.0;

/// P(o | a, past) of the n-gram of a model for every observation seen in training.
pub(super) fn predict(model: &Model, past: &Past, a: Action, p: &mut [f64]) {
    predict_up_to(model, past, usize::MAX, a, p);
}

/// The same with contexts of up to `length` pairs.
pub(super) fn predict_up_to(model: &Model, past: &Past, length: usize, a: Action, p: &mut [f64]) {
    let Frequencies { fingerprints, unseen, .. } = model.frequencies();
    p.fill(1.0 / p.len() as f64);
    if model.knows(a) {
        model.ngram().smooth(fingerprints, past, length, a, p);
    }
    p.iter_mut().for_each(|p| *p *= 1.0 - unseen);
}

/// Mixes the prediction `p` of another predictor with that of the n-gram; `smoothed` is scratch
/// space. With a weight of 1, the prediction is that of the n-gram.
pub(super) fn mix(model: &Model, past: &Past, a: Action, p: &mut [f64], smoothed: &mut [f64]) {
    let mix = model.params().mix;
    if mix <= 0.0 {
        return;
    }
    predict(model, past, a, smoothed);
    if mix >= 1.0 {
        return p.copy_from_slice(smoothed);
    }
    p.iter_mut().zip(smoothed).for_each(|(p, q)| *p += mix * (*q - *p));
    if model.knows(a) {
        let strength = |types| prior_strength(mix, types);
        model.ngram().weigh_whole_history(&model.frequencies().fingerprints, past, a, strength, p);
    }
}

/// How many observations the mixture counts as, where `types` distinct observations followed the
/// whole history. `mix` is between 0 and 1, both excluded.
///
/// The n-gram contains the counts already, with a share of μ = n/(n + T) (Witten–Bell). If they are
/// then weighed with a share of λ = n/(n + s), their share of all is λ + (1 − λ)·mix·μ. It is at
/// most μ, as in the n-gram alone, where s ≥ T/(1 − mix). Without that bound a large `mix` would
/// trust few counts without any smoothing.
fn prior_strength(mix: f64, types: f64) -> f64 {
    (PRIOR_STRENGTH * (1.0 - mix) / mix).max(types / (1.0 - mix))
}

/// The prediction of an n-gram for one step: enough to mix it with that of any model, with any
/// weight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NGramStep {
    /// P(o | a, past); `None` for an observation that was not seen in training.
    probability: Option<f64>,
    /// What followed the whole history, if that history was counted.
    whole: Option<Followers>,
}

impl NGramStep {
    /// The prediction for each step of an episode; `fingerprints` and `unseen` are those of the
    /// n-gram's alphabet and logs.
    pub(crate) fn of(ngram: &NGram, fingerprints: &Fingerprints, unseen: f64, steps: &[ActionObservation]) -> Vec<NGramStep> {
        let mut past = Past::new(ngram.length());
        let (actions, symbols) = fingerprints.sizes();
        let step = |&ao: &ActionObservation| {
            let (seen, known) = (ao.observation.index() < symbols, ao.action.index() < actions);
            let uniform = 1.0 / symbols as f64;
            let (p, whole) = if seen && known { ngram.of_one(fingerprints, &past, ao, uniform) } else { (uniform, None) };
            past.push_if(seen && known, fingerprints, ao);
            let p = if ao.observation.is_missing() { Some(1.0) } else { seen.then_some(p * (1.0 - unseen)) };
            NGramStep { probability: p, whole }
        };
        steps.iter().map(step).collect()
    }

    /// The probability of a step whose probability under the model alone is `p`, with weight `mix`
    /// for the n-gram.
    pub(crate) fn mixed(&self, p: f64, mix: f64, unseen: f64) -> f64 {
        let Some(given) = self.probability.filter(|_| mix > 0.0) else { return p };
        if mix >= 1.0 {
            return given;
        }
        let p = p + mix * (given - p);
        let Some(Followers { given, all, types }) = self.whole else { return p };
        let strength = prior_strength(mix, types);
        (given * (1.0 - unseen) + strength * p) / (all + strength)
    }
}

/// The back-off n-gram of a model: a baseline trained on the same logs.
#[derive(Clone, Debug)]
pub struct NGramFilter<'m> {
    model: &'m Model,
    past: Past,
    probabilities: Vec<f64>,
}

impl<'m> NGramFilter<'m> {
    /// Contexts of up to `length` pairs.
    pub fn new(model: &'m Model, length: usize) -> Self {
        let symbols = model.alphabet().observations().len();
        NGramFilter { model, past: Past::new(length.min(model.ngram().length())), probabilities: vec![0.0; symbols] }
    }
}

impl Track for NGramFilter<'_> {
    fn reset(&mut self) {
        self.past.reset();
    }

    fn observe(&mut self, ao: ActionObservation) {
        let known = ao.observation.index() < self.probabilities.len() && self.model.knows(ao.action);
        self.past.push_if(known, &self.model.frequencies().fingerprints, ao);
    }
}

impl Predict for NGramFilter<'_> {
    fn probabilities(&mut self, a: Action) -> &[f64] {
        predict(self.model, &self.past, a, &mut self.probabilities);
        &self.probabilities
    }

    fn probability(&mut self, ao: ActionObservation) -> f64 {
        if ao.observation.is_missing() {
            return 1.0;
        }
        let unseen = self.model.frequencies().unseen;
        self.probabilities(ao.action).get(ao.observation.index()).copied().unwrap_or(unseen)
    }
}

/// The uniform distribution over all observations seen in training: the baseline without any
/// knowledge.
#[derive(Clone, Debug)]
pub struct UniformFilter {
    probabilities: Vec<f64>,
    unseen: f64,
}

impl UniformFilter {
    /// Over the observations of a model's training logs.
    pub fn of(model: &Model) -> Self {
        let (symbols, unseen) = (model.alphabet().observations().len(), model.frequencies().unseen);
        UniformFilter { probabilities: vec![(1.0 - unseen) / symbols as f64; symbols], unseen }
    }
}

impl Track for UniformFilter {
    fn reset(&mut self) {}

    fn observe(&mut self, _: ActionObservation) {}
}

impl Predict for UniformFilter {
    fn probabilities(&mut self, _: Action) -> &[f64] {
        &self.probabilities
    }

    fn probability(&mut self, ao: ActionObservation) -> f64 {
        if ao.observation.is_missing() {
            return 1.0;
        }
        self.probabilities.get(ao.observation.index()).copied().unwrap_or(self.unseen)
    }
}
