//! How well logs are foretold by the model, and by the last steps alone: what predicts better knows more to decide by.

use crate::data::{Episodes, Fingerprints, HELD_OUT, Trajectory, is_held_out};
use crate::model::{Counter, Model, NGram, Past, PredictiveState};
use crate::system::{Predict, Track};

/// Most episodes that are held out: enough to tell who predicts better.
const MOST_HELD_OUT: u64 = 500;
/// What is given at least to what was seen: one surprise must not decide.
const LEAST: f64 = 1e-6;

/// Sums of ln P(o ‖ a, past) over held-out episodes.
pub(super) struct Comparison {
    /// Of the model.
    pub(super) model: f64,
    /// Of n-grams, which know the last 1, 2, … pairs.
    pub(super) pairs: Vec<f64>,
}

impl Comparison {
    /// On episodes over the model's alphabet. The n-grams are counted in those that are not held out; the model has learned from all
    /// of them, an advantage that it keeps on purpose: a model that predicts a little worse may still remember what decides.
    /// `None` if the model was learned from other logs: then there is nothing to compare.
    pub(super) fn of(model: &Model, episodes: &[Trajectory], longest: usize) -> Option<Comparison> {
        let steps: usize = episodes.iter().map(|z| z.steps.len()).sum();
        let symbols = model.alphabet().observations().len();
        let is_known = |z: &Trajectory| z.steps.iter().all(|ao| ao.observation.index() < symbols);
        if (model.origin().episodes, model.origin().steps) != (episodes.len() as u64, steps as u64)
            || !episodes.iter().all(is_known)
        {
            return None;
        }
        let is_held = |i: u64| is_held_out(i) && i / HELD_OUT < MOST_HELD_OUT;
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
            z.steps.iter().map(|&ao| state.update(ao).max(LEAST).ln()).sum::<f64>()
        });
        Some(Comparison { model: by_model.sum(), pairs })
    }

    /// The number of pairs by which the logs are best foretold, and how well.
    pub(super) fn best_window(&self) -> (usize, f64) {
        let all = (1..).zip(self.pairs.iter().copied());
        all.fold((1, f64::NEG_INFINITY), |best, this| if this.1 > best.1 { this } else { best })
    }
}

/// ln P of an episode by the n-gram with contexts of up to `length` pairs.
fn by_ngram(ngram: &NGram, fingerprints: &Fingerprints, symbols: usize, length: usize, z: &Trajectory) -> f64 {
    let (mut past, mut p) = (Past::new(length), vec![0.0; symbols]);
    let mut sum = 0.0;
    for &ao in &z.steps {
        p.fill(1.0 / symbols as f64);
        ngram.smooth(fingerprints, &past, ao.action, &mut p);
        sum += p[ao.observation.index()].max(LEAST).ln();
        past.push(fingerprints, ao);
    }
    sum
}
