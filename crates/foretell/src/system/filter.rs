//! Filters: they follow an episode step by step, keep a state, and predict.

use crate::data::{Action, ActionObservation, Observation};

/// Follows an episode.
pub trait Track {
    /// Returns to the start of an episode.
    fn reset(&mut self);
    /// Takes one step into account.
    fn observe(&mut self, ao: ActionObservation);
    /// Takes a step into account of whose observation only some parts are known: its name with `?`
    /// for those that are missing ([`Alphabet::agreeing`](crate::data::Alphabet::agreeing)). A
    /// filter that cannot use the rest takes the whole observation as missing.
    fn observe_partial(&mut self, a: Action, _pattern: &str) {
        self.observe(ActionObservation { action: a, observation: Observation::MISSING });
    }
}

/// Keeps a state as a vector of numbers.
pub trait Filter: Track {
    /// The state.
    fn state(&self) -> &[f64];
}

/// Predicts observations.
pub trait Predict: Track {
    /// P(o ‖ a) of every observation of its alphabet.
    fn probabilities(&mut self, a: Action) -> &[f64];

    /// P(o ‖ a) of one observation, which may be outside its alphabet; 1 of one that is missing.
    fn probability(&mut self, ao: ActionObservation) -> f64;

    /// Takes one step into account and returns P(o ‖ a), the probability predicted before it.
    fn update(&mut self, ao: ActionObservation) -> f64 {
        let p = self.probability(ao);
        self.observe(ao);
        p
    }
}

impl<F: Track + ?Sized> Track for Box<F> {
    fn reset(&mut self) {
        (**self).reset();
    }

    fn observe(&mut self, ao: ActionObservation) {
        (**self).observe(ao);
    }

    fn observe_partial(&mut self, a: Action, pattern: &str) {
        (**self).observe_partial(a, pattern);
    }
}

impl<F: Filter + ?Sized> Filter for Box<F> {
    fn state(&self) -> &[f64] {
        (**self).state()
    }
}
