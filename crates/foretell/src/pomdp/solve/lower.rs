//! A lower bound of the value: the maximum of vectors, each the value of some plan from every
//! state.

use super::AlphaVector;
use super::bounds::blind;
use super::system::{Point, Successor, System};
use crate::data::Action;
use crate::error::Result;
use crate::math::argmax;

/// Vectors are pruned when their number has doubled since the last time and is at least this:
/// pruning costs the square of their number.
const MIN_TO_PRUNE: usize = 64;

pub(super) struct Lower {
    vectors: Vec<VectorAtBelief>,
    prune_at: usize,
}

/// A vector and the belief at which it was backed up.
struct VectorAtBelief {
    vector: AlphaVector,
    point: Point,
}

impl Lower {
    /// The values of the policies that always take the same action.
    pub fn new(system: &System) -> Result<Lower> {
        let vector = |a: usize| -> Result<VectorAtBelief> {
            let vector = AlphaVector { action: Action(a as u32), values: blind(system, a)? };
            Ok(VectorAtBelief { vector, point: system.start.clone() })
        };
        Ok(Lower { vectors: (0..system.actions).map(vector).collect::<Result<_>>()?, prune_at: MIN_TO_PRUNE })
    }

    pub fn len(&self) -> usize {
        self.vectors.len()
    }

    pub fn vectors(&self) -> impl Iterator<Item = &AlphaVector> {
        self.vectors.iter().map(|v| &v.vector)
    }

    /// The index of the largest vector, and its value.
    pub fn largest(&self, point: &Point) -> (usize, f64) {
        argmax(self.vectors().map(|v| point.dot(&v.values)))
    }

    /// V(b)
    pub fn value(&self, point: &Point) -> f64 {
        self.largest(point).1
    }

    /// The vector of the best plan at `point` that continues with one of the present vectors after
    /// each observation, α(s) = r(a, s) + γ Σ_s' T(s' | a, s) Σ_o O(o | a, s') α_o(s'); added if it
    /// is larger there than all others.
    ///
    /// `successors` are those of `point` for each action; `cannot_improve` excludes actions that
    /// cannot be better.
    pub fn back_up(
        &mut self,
        system: &System,
        point: &Point,
        successors: &[Vec<Successor>],
        cannot_improve: impl Fn(usize, f64) -> bool,
    ) {
        let (largest, value) = self.largest(point);
        let mut found: Option<(usize, f64, Vec<usize>)> = None;
        for (a, successors) in successors.iter().enumerate().filter(|&(a, _)| !cannot_improve(a, value)) {
            let mut q = point.dot(system.reward(a));
            let mut next = vec![largest; system.observations]; // any vector will do for observations that cannot follow
            for successor in successors {
                let (i, value) = self.largest(&successor.point);
                next[successor.observation] = i;
                q += system.discount * successor.probability * value;
            }
            if found.as_ref().is_none_or(|best| q > best.1) {
                found = Some((a, q, next));
            }
        }
        let Some((a, _, next)) = found.filter(|best| best.1 > value) else { return };
        let values = self.vector(system, a, &next);
        if point.dot(&values) > value {
            self.vectors.retain(|v| v.vector.values.iter().zip(&values).any(|(old, new)| old > new));
            let vector = AlphaVector { action: Action(a as u32), values };
            self.vectors.push(VectorAtBelief { vector, point: point.clone() });
        }
    }

    fn vector(&self, system: &System, a: usize, next: &[usize]) -> Vec<f64> {
        let after =
            |s: usize| -> f64 { system.emissions[a].row(s).map(|(o, p)| p * self.vectors[next[o]].vector.values[s]).sum() };
        let after: Vec<f64> = (0..system.states).map(after).collect();
        let value = |s: usize| system.reward(a)[s] + system.discount * system.expect(a, s, &after);
        (0..system.states).map(value).collect()
    }

    /// Keeps the vectors that are the largest at the start or at the belief of some vector.
    pub fn prune(&mut self, start: &Point) {
        if self.vectors.len() < self.prune_at {
            return;
        }
        let mut keep = vec![false; self.vectors.len()];
        keep[self.largest(start).0] = true;
        for v in &self.vectors {
            keep[self.largest(&v.point).0] = true;
        }
        let mut keep = keep.into_iter();
        self.vectors.retain(|_| keep.next().expect("one for each vector"));
        self.prune_at = MIN_TO_PRUNE.max(2 * self.vectors.len());
    }
}
