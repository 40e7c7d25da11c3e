//! What follows an episode step by step: to know where it is, or to say what comes next.

use crate::data::{Action, ActionObservation};

/// Follows an episode.
pub trait Track {
    /// Back to the start of an episode.
    fn reset(&mut self);
    /// Takes one step into account.
    fn observe(&mut self, ao: ActionObservation);
}

/// Knows where an episode is, as numbers.
pub trait Filter: Track {
    /// The state.
    fn state(&self) -> &[f64];
}

/// Says what will be observed.
pub trait Predict: Track {
    /// P(o ‖ a) of every observation of its alphabet.
    fn probabilities(&mut self, a: Action) -> &[f64];

    /// P(o ‖ a) of one observation, which may be outside its alphabet.
    fn probability(&mut self, ao: ActionObservation) -> f64;

    /// Takes one step into account and returns the probability P(o ‖ a) that it had given to that observation.
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
}

impl<F: Filter + ?Sized> Filter for Box<F> {
    fn state(&self) -> &[f64] {
        (**self).state()
    }
}
