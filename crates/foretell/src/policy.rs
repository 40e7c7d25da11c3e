//! How actions are chosen.

use crate::data::{Action, ActionObservation};
use crate::rng::Rng;

/// A way to choose actions, which may remember what it saw.
pub trait Policy {
    /// Begins an episode.
    fn reset(&mut self) {}
    /// The next action.
    fn act(&mut self, rng: &mut Rng) -> Action;
    /// π(a | h) of the action it has just chosen, where it can tell.
    fn probability(&self, _a: Action) -> Option<f64> {
        None
    }
    /// Sees what its action led to.
    fn observe(&mut self, _ao: ActionObservation) {}
}

/// Every action with the same probability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uniform {
    /// How many actions there are.
    pub actions: usize,
}

impl Policy for Uniform {
    fn act(&mut self, rng: &mut Rng) -> Action {
        Action(rng.below(self.actions) as u32)
    }

    fn probability(&self, _a: Action) -> Option<f64> {
        Some(1.0 / self.actions as f64)
    }
}
