//! Policies in systems whose symbols have other numbers: those of the same name are the same.

use crate::data::{Action, ActionObservation, Alphabet, Observation};
use crate::error::{Error, Result};
use crate::policy::Policy;
use crate::rng::Rng;

/// A policy that acts in a system with another alphabet.
pub struct Translated<P> {
    pub(super) inner: P,
    pub(super) translation: Translation,
}

/// Between the alphabet of a policy and that of a system.
#[derive(Clone)]
pub(super) struct Translation {
    /// Their action for each of ours.
    actions: Vec<Action>,
    /// Our action for each of theirs, if we have it.
    own_actions: Vec<Option<Action>>,
    /// Our observation for each of theirs; unknown ones are beyond our alphabet.
    observations: Vec<Observation>,
}

impl Translation {
    pub(super) fn new(own: &Alphabet, theirs: &Alphabet) -> Result<Translation> {
        let unknown = Observation(own.observations().len() as u32);
        let action = |name: &String| {
            theirs.action(name).ok_or_else(|| {
                let problem =
                    format!("the policy may take the action {name:?}, which is not among {}", theirs.actions().join(", "));
                Error::data(problem, "use it in the system it was made for")
            })
        };
        Ok(Translation {
            actions: own.actions().iter().map(action).collect::<Result<_>>()?,
            own_actions: theirs.actions().iter().map(|name| own.action(name)).collect(),
            observations: theirs.observations().iter().map(|o| own.same_observation(o).unwrap_or(unknown)).collect(),
        })
    }
}

impl<P> Translated<P> {
    /// The policy that is translated.
    pub fn inner(&self) -> &P {
        &self.inner
    }

    /// Its own action for one of the system's, if it has it.
    pub fn own_action(&self, a: Action) -> Option<Action> {
        self.translation.own_actions[a.0 as usize]
    }

    /// Its own observation for one of the system's; beyond its alphabet, if it does not know it.
    pub fn own_observation(&self, o: Observation) -> Observation {
        self.translation.observations[o.0 as usize]
    }
}

impl<P: Policy> Policy for Translated<P> {
    fn reset(&mut self) {
        self.inner.reset();
    }

    fn act(&mut self, rng: &mut Rng) -> Action {
        self.translation.actions[self.inner.act(rng).0 as usize]
    }

    fn probability(&self, a: Action) -> Option<f64> {
        self.own_action(a).map_or(Some(0.0), |a| self.inner.probability(a))
    }

    fn observe(&mut self, ao: ActionObservation) {
        let Some(action) = self.own_action(ao.action) else { return };
        let observation = self.own_observation(ao.observation);
        self.inner.observe(ActionObservation { action, observation });
    }
}
