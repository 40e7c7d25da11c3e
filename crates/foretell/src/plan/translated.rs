//! Policies in systems whose symbols have other indices: symbols are matched by name.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::data::{Action, ActionObservation, Alphabet, Observation, Translation};
use crate::error::{Error, Result};
use crate::rng::Rng;
use crate::system::Policy;

/// A policy that acts in a system with another alphabet.
pub struct Translated<P> {
    pub(super) inner: P,
    pub(super) dictionary: Dictionary,
}

/// Translates between the alphabet of a policy and that of a system.
#[derive(Clone)]
pub(super) struct Dictionary {
    /// The system's action for each of the policy's.
    actions: Vec<Action>,
    /// The policy's symbols for the system's, where it has them.
    own: Translation,
    /// The same with the bits of the reward, where the policy's observations include it.
    rewarded: Option<Arc<FxHashMap<(Observation, u64), Observation>>>,
    unknown: Observation,
}

impl Dictionary {
    pub(super) fn new(own: &Alphabet, theirs: &Alphabet) -> Result<Dictionary> {
        let unknown = Observation(own.observations().len() as u32);
        let action = |name: &String| {
            theirs.action(name).ok_or_else(|| {
                let problem =
                    format!("the policy may take the action {name:?}, which is not among {}", theirs.actions().join(", "));
                Error::data(problem, "use it in the system it was made for")
            })
        };
        let rewarded = own.observes_rewards().then(|| {
            let ours = (0..).map(Observation).zip(own.observations());
            let theirs = ours.filter_map(|(o, symbol)| {
                let (plain, reward) = symbol.split_reward()?;
                // The system's observations may include the reward as well.
                let their = theirs.same_observation(symbol).or_else(|| theirs.same_observation(&plain))?;
                Some(((their, reward.to_bits()), o))
            });
            Arc::new(theirs.collect())
        });
        Ok(Dictionary {
            rewarded,
            unknown,
            actions: own.actions().iter().map(action).collect::<Result<_>>()?,
            own: Translation::between(theirs, own),
        })
    }
}

impl<P: Policy> Translated<P> {
    /// The policy that is translated.
    pub fn inner(&self) -> &P {
        &self.inner
    }

    /// The policy's action for one of the system's, if it has it.
    pub fn own_action(&self, a: Action) -> Option<Action> {
        self.dictionary.own.action(a)
    }

    /// The policy's observation for one of the system's with that reward; an index beyond its
    /// alphabet if it does not have it.
    pub fn own_observation(&self, o: Observation, reward: f64) -> Observation {
        let Dictionary { own, rewarded, unknown, .. } = &self.dictionary;
        match rewarded {
            Some(rewarded) => rewarded.get(&(o, (reward + 0.0).to_bits())).copied().unwrap_or(*unknown),
            None => own.observation(o).unwrap_or(*unknown),
        }
    }

    fn take_in(&mut self, ao: ActionObservation, observation: Observation) {
        let Some(action) = self.own_action(ao.action) else { return };
        self.inner.observe(ActionObservation { action, observation });
    }
}

impl<P: Policy> Policy for Translated<P> {
    fn reset(&mut self) {
        self.inner.reset();
    }

    fn act(&mut self, rng: &mut Rng) -> Action {
        self.dictionary.actions[self.inner.act(rng).index()]
    }

    fn probability(&self, a: Action) -> Option<f64> {
        self.own_action(a).map_or(Some(0.0), |a| self.inner.probability(a))
    }

    fn observe(&mut self, ao: ActionObservation) {
        let observation = self.dictionary.own.observation(ao.observation).unwrap_or(self.dictionary.unknown);
        self.take_in(ao, observation);
    }

    fn observe_rewarded(&mut self, ao: ActionObservation, reward: f64) {
        self.take_in(ao, self.own_observation(ao.observation, reward));
    }
}
