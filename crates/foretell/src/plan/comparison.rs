//! Compares how well the model and the last steps alone predict logs: the better predictor is the
//! better basis for decisions.

use crate::data::{ActionObservation, Episodes, Fingerprints, HELD_OUT, Trajectory, is_held_out};
use crate::model::{Counter, Model, NGram, Past, PredictiveState};
use crate::system::{Predict, Track};

/// Most episodes that are held out: enough to show which predicts better.
const MOST_HELD_OUT: u64 = 500;
/// Smallest probability that is counted, so that a single surprise does not decide.
const LEAST: f64 = 1e-6;

/// Sums of ln P(o ‖ a, past) over held-out episodes.
pub(super) struct Comparison {
    /// The sum for the model.
    pub(super) model: f64,
    /// The sums for n-grams with contexts of the last 1, 2, … pairs.
    pub(super) pairs: Vec<f64>,
}

impl Comparison {
    /// Compares on episodes over the model's alphabet. The n-grams are counted in the episodes that
    /// are not held out. The model has learned from all of them, an advantage that it keeps on
    /// purpose: a model that predicts a little worse may still remember what matters for decisions.
    /// `None` if the model was learned from other logs, because then the comparison would mean
    /// nothing.
    pub(super) fn of(model: &Model, episodes: &[Trajectory], longest: usize) -> Option<Comparison> {
        let steps: usize = episodes.iter().map(|z| z.steps.len()).sum();
        let symbols = model.alphabet().observations().len();
        let is_known = |z: &Trajectory| z.steps.iter().all(|ao| ao.observation.is_missing() || ao.observation.index() < symbols);
        if (model.origin().episodes, model.origin().steps) != (episodes.len() as u64, steps as u64)
            || !episodes.iter().all(is_known)
        {
            return None;
        }
        // Of every ten the first: refinement, which holds out the last, has not judged by these.
        let is_held = |i: u64| is_held_out(i + HELD_OUT - 1) && i / HELD_OUT < MOST_HELD_OUT;
        let held: Vec<&Trajectory> = (0..).zip(episodes).filter(|(i, _)| is_held(*i)).map(|(_, z)| z).collect();

        let fingerprints = Fingerprints::of(model.alphabet());
        let (mut counter, mut batch) = (Counter::new(longest), Episodes::default());
        for (_, z) in (0..).zip(episodes).filter(|(i, _)| !is_held(*i)) {
            batch.push(z, 1.0).ok()?;
            if batch.is_full() {
                counter.add(&fingerprints, &batch);
                batch.clear();
            }
        }
        counter.add(&fingerprints, &batch);
        let ngram = counter.finish();
        let by_pairs = |length| held.iter().map(|z| by_ngram(&ngram, &fingerprints, symbols, length, z)).sum();
        let pairs = (1..=longest).map(by_pairs).collect();

        let mut state = PredictiveState::new(model);
        let by_model = held.iter().map(|z| {
            state.reset();
            let log = |(t, &ao): (usize, &ActionObservation)| match z.about.partial_at(t) {
                Some(pattern) => {
                    state.observe_partial(ao.action, pattern);
                    0.0
                }
                None => state.update(ao).max(LEAST).ln(),
            };
            z.steps.iter().enumerate().map(log).sum::<f64>()
        });
        Some(Comparison { model: by_model.sum(), pairs })
    }

    /// The number of pairs that predicts the logs best, and its log-likelihood.
    pub(super) fn best_window(&self) -> (usize, f64) {
        let all = (1..).zip(self.pairs.iter().copied());
        all.fold((1, f64::NEG_INFINITY), |best, this| if this.1 > best.1 { this } else { best })
    }
}

/// Log-likelihood of an episode under the n-gram with contexts of up to `length` pairs.
fn by_ngram(ngram: &NGram, fingerprints: &Fingerprints, symbols: usize, length: usize, z: &Trajectory) -> f64 {
    let (mut past, mut p) = (Past::new(length), vec![0.0; symbols]);
    let mut sum = 0.0;
    for &ao in &z.steps {
        p.fill(1.0 / symbols as f64);
        ngram.smooth(fingerprints, &past, usize::MAX, ao.action, &mut p);
        let is_seen = !ao.observation.is_missing();
        sum += if is_seen { p[ao.observation.index()].max(LEAST).ln() } else { 0.0 };
        past.push_if(is_seen, fingerprints, ao);
    }
    sum
}
