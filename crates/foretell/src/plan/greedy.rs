//! The policy of a plan: it takes the best action.

use std::sync::Arc;

use super::q::Q;
use super::tree_q::TreeQ;
use super::window::RecentPast;
use crate::data::{Action, ActionObservation, Observation};
use crate::math::argmax;
use crate::model::Model;
use crate::rng::Rng;
use crate::system::{Filter, Policy};

/// Takes the action with the largest Q̂.
pub struct Greedy {
    pub(super) q: Arc<Q>,
    pub(super) filter: Box<dyn Filter + Send>,
    pub(super) past: RecentPast,
    pub(super) actions: usize,
    /// The action of first steps that nobody chooses: it is the only one at the start of an episode,
    /// and never taken later.
    pub(super) first: Option<Action>,
    pub(super) is_start: bool,
    /// The POMDP whose vectors are used, and the discount.
    pub(super) solved: Option<(Arc<Model>, f64)>,
}

impl Greedy {
    /// The current state.
    pub fn state(&self) -> &[f64] {
        self.filter.state()
    }

    /// Q̂(s, a) of every action in the current state; −∞ for an action that no vector of a solved
    /// POMDP begins with.
    pub fn values(&self) -> Vec<f64> {
        self.q.values(self.filter.state(), &self.past, self.actions)
    }

    /// The action with the largest Q̂(s, a); the first one in a tie.
    pub fn best(&self) -> Action {
        match self.first {
            Some(first) if self.is_start => first,
            Some(first) => {
                let others = (0..self.actions as u32).map(Action).filter(|a| *a != first);
                self.best_among(&others.collect::<Vec<_>>()).unwrap_or(first)
            }
            None => Action(argmax(self.values()).0 as u32),
        }
    }

    /// The action with the largest Q̂(s, a) among those that are available now; the first one in a
    /// tie. `None` if there are none, or one is not in its alphabet.
    ///
    /// Vectors of a solved POMDP assume that all actions are available later on. An available action
    /// that none of them begins with has the value of one step with it and the best vector
    /// afterwards.
    pub fn best_among(&self, available: &[Action]) -> Option<Action> {
        if available.is_empty() || available.iter().any(|a| a.index() >= self.actions) {
            return None;
        }
        let mut values = self.values();
        if let Some((model, discount)) = &self.solved
            && let Some(latent) = model.latent()
        {
            for &a in available {
                let value = &mut values[a.index()];
                if *value == f64::NEG_INFINITY {
                    *value = self.q.looking_ahead(&latent.pomdp, *discount, self.filter.state(), a);
                }
            }
        }
        let best = argmax(available.iter().map(|a| values[a.index()])).0;
        Some(available[best])
    }

    /// Takes a step into account of whose observation only some parts are known (as in
    /// [`About::partial`](crate::data::About::partial)).
    pub fn observe_partial(&mut self, a: Action, pattern: &str) {
        self.is_start = false;
        self.filter.observe_partial(a, pattern);
        self.past.observe(ActionObservation { action: a, observation: Observation::MISSING });
    }
}

impl Policy for Greedy {
    fn reset(&mut self) {
        self.filter.reset();
        self.past.reset();
        self.is_start = true;
    }

    fn act(&mut self, _: &mut Rng) -> Action {
        self.best()
    }

    fn probability(&self, _: Action) -> Option<f64> {
        Some(1.0)
    }

    fn observe(&mut self, ao: ActionObservation) {
        self.is_start = false;
        self.filter.observe(ao);
        self.past.observe(ao);
    }
}

/// Takes the action with the largest Q̂ of trees over the states of any filter, such as an exact
/// belief or the last observations.
pub struct GreedyOnTrees<'q> {
    trees: &'q TreeQ,
    filter: Box<dyn Filter + Send + 'q>,
}

impl<'q> GreedyOnTrees<'q> {
    /// At the start of an episode, as the filter must be.
    pub fn new(trees: &'q TreeQ, filter: Box<dyn Filter + Send + 'q>) -> GreedyOnTrees<'q> {
        GreedyOnTrees { trees, filter }
    }
}

impl Policy for GreedyOnTrees<'_> {
    fn reset(&mut self) {
        self.filter.reset();
    }

    fn act(&mut self, _: &mut Rng) -> Action {
        Action(argmax(self.trees.values(self.filter.state())).0 as u32)
    }

    fn probability(&self, _: Action) -> Option<f64> {
        Some(1.0)
    }

    fn observe(&mut self, ao: ActionObservation) {
        self.filter.observe(ao);
    }
}
