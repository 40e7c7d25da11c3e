//! The policy of a plan: it takes the best action.

use std::sync::Arc;

use super::q::Q;
use super::tree_q::TreeQ;
use super::window::RecentPast;
use crate::data::{Action, ActionObservation};
use crate::math::argmax;
use crate::rng::Rng;
use crate::system::{Filter, Policy};

/// Takes the action with the largest Q̂.
pub struct Greedy {
    pub(super) q: Arc<Q>,
    pub(super) filter: Box<dyn Filter + Send>,
    pub(super) past: RecentPast,
    pub(super) actions: usize,
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
        Action(argmax(self.values()).0 as u32)
    }
}

impl Policy for Greedy {
    fn reset(&mut self) {
        self.filter.reset();
        self.past.reset();
    }

    fn act(&mut self, _: &mut Rng) -> Action {
        self.best()
    }

    fn probability(&self, _: Action) -> Option<f64> {
        Some(1.0)
    }

    fn observe(&mut self, ao: ActionObservation) {
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
