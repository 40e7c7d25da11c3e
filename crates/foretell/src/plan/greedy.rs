//! A plan at work: the policy that takes the best action.

use super::planner::average;
use super::tree_q::TreeQ;
use super::window::WindowMemory;
use crate::data::{Action, ActionObservation};
use crate::math::dot;
use crate::model::Filter;
use crate::pomdp::solve::AlphaVector;
use crate::rng::Rng;
use crate::system::{Policy, best};

/// Takes the action with the largest Q̂.
pub struct Greedy<'p> {
    pub(super) trees: Option<&'p TreeQ>,
    pub(super) filter: Box<dyn Filter + Send + 'p>,
    pub(super) table: Option<WindowMemory<'p>>,
    pub(super) vectors: &'p [AlphaVector],
    /// How many actions these vectors are for; some may begin with none.
    pub(super) actions: usize,
}

impl<'p> Greedy<'p> {
    /// On trees over the states of any filter: an exact belief, the last observations.
    pub fn new(trees: &'p TreeQ, filter: Box<dyn Filter + Send + 'p>) -> Greedy<'p> {
        Greedy { trees: Some(trees), filter, table: None, vectors: &[], actions: 0 }
    }

    /// Where it stands.
    pub fn state(&self) -> &[f64] {
        self.filter.state()
    }

    /// Q̂(s, a) of every action, where it stands; −∞ for an action that no vector of a solved POMDP begins with.
    pub fn values(&self) -> Vec<f64> {
        if !self.vectors.is_empty() {
            return self.values_of_vectors();
        }
        let (trees, table) =
            (self.trees.map(|trees| trees.values(self.filter.state())), self.table.as_ref().map(WindowMemory::values));
        match (trees, table) {
            (Some(mut trees), Some(table)) => {
                average(&mut trees, table);
                trees
            }
            (Some(trees), None) => trees,
            (None, table) => table.unwrap_or_default().to_vec(),
        }
    }

    fn values_of_vectors(&self) -> Vec<f64> {
        let belief = self.filter.state();
        let mut values = vec![f64::NEG_INFINITY; self.actions];
        for AlphaVector { action, values: vector } in self.vectors {
            let value = &mut values[action.0 as usize];
            *value = value.max(dot(vector, belief));
        }
        values
    }

    /// The action with the largest Q̂(s, a), the first of equals.
    pub fn best(&self) -> Action {
        best(self.values()).0
    }
}

impl Policy for Greedy<'_> {
    fn reset(&mut self) {
        self.filter.reset();
        self.table.iter_mut().for_each(WindowMemory::reset);
    }

    fn act(&mut self, _: &mut Rng) -> Action {
        self.best()
    }

    fn probability(&self, _: Action) -> Option<f64> {
        Some(1.0)
    }

    fn observe(&mut self, ao: ActionObservation) {
        self.filter.observe(ao);
        self.table.iter_mut().for_each(|table| table.observe(ao));
    }
}
