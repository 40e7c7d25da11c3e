//! A finite POMDP as an environment.

use std::ops::Deref;

use super::Pomdp;
use crate::data::{Action, Alphabet, Observation};
use crate::rng::Rng;
use crate::system::{Environment, Outcome};

/// A finite POMDP, borrowed or shared (`&Pomdp`, `Arc<Pomdp>`), in one of its states. Before the
/// first reset, that is its first possible start state.
#[derive(Clone, Debug)]
pub struct PomdpEnvironment<P> {
    pomdp: P,
    state: usize,
}

impl Pomdp {
    /// An environment that behaves like this model.
    pub fn environment(&self) -> PomdpEnvironment<&Pomdp> {
        PomdpEnvironment::new(self)
    }
}

impl<P: Deref<Target = Pomdp>> PomdpEnvironment<P> {
    /// An environment that behaves like the model.
    pub fn new(pomdp: P) -> Self {
        let state = pomdp.start().next().map_or(0, |(s, _)| s);
        PomdpEnvironment { pomdp, state }
    }

    /// The hidden state.
    pub fn state(&self) -> usize {
        self.state
    }
}

impl<P: Deref<Target = Pomdp>> Environment for PomdpEnvironment<P> {
    fn alphabet(&self) -> &Alphabet {
        self.pomdp.alphabet()
    }

    fn reset(&mut self, rng: &mut Rng) {
        self.state = self.pomdp.start.sample(0, rng).unwrap_or(self.state);
    }

    /// s' ~ T(· | a, s), o ~ O(· | a, s'), r = R(a, s, s', o). In a terminal state nothing changes
    /// and the reward is 0.
    fn step(&mut self, a: Action, rng: &mut Rng) -> Outcome {
        let from = self.state;
        let moved = self.pomdp.transitions.sample(self.pomdp.index(a, from), rng);
        self.state = moved.unwrap_or(from);
        let o = self.pomdp.emissions.sample(self.pomdp.index(a, self.state), rng);
        let observation = Observation(o.expect("every state emits, checked in Pomdp::new") as u32);
        let reward = moved.map_or(0.0, |to| self.pomdp.reward(a, from, to, observation));
        Outcome { observation, reward }
    }

    fn picture(&self) -> String {
        self.pomdp.states()[self.state].clone()
    }
}
