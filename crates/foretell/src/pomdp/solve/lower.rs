//! A lower bound of the value: the largest of vectors, each what some plan earns from every state.

use super::AlphaVector;
use super::bounds::blind;
use super::system::{Point, Successor, System};
use crate::data::Action;
use crate::error::Result;
use crate::math::argmax;

/// Vectors are pruned when there are twice as many as were left the last time, and at least so many: to compare each with the
/// beliefs of all others costs the square of their number.
const FEW: usize = 64;

pub(super) struct Lower {
    vectors: Vec<Witnessed>,
    prune_at: usize,
}

/// A vector and the belief that it was made for.
struct Witnessed {
    vector: AlphaVector,
    point: Point,
}

impl Lower {
    /// What the policies earn that take always the same action.
    pub fn new(system: &System) -> Result<Lower> {
        let vector = |a: usize| -> Result<Witnessed> {
            let vector = AlphaVector { action: Action(a as u32), values: blind(system, a)? };
            Ok(Witnessed { vector, point: system.start.clone() })
        };
        Ok(Lower { vectors: (0..system.actions).map(vector).collect::<Result<_>>()?, prune_at: FEW })
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

    /// The vector of the best plan at `point` that goes on with one of the present vectors after each observation,
    /// α(s) = r(a, s) + γ Σ_s' T(s' | a, s) Σ_o O(o | a, s') α_o(s'); added if it is larger there than all others.
    ///
    /// `successors` of each action are those of `point`, and `hopeless` says which actions cannot be the best.
    pub fn back_up(
        &mut self,
        system: &System,
        point: &Point,
        successors: &[Vec<Successor>],
        hopeless: impl Fn(usize, f64) -> bool,
    ) {
        let (largest, value) = self.largest(point);
        let mut found: Option<(usize, f64, Vec<usize>)> = None;
        for (a, successors) in successors.iter().enumerate().filter(|&(a, _)| !hopeless(a, value)) {
            let mut q = point.dot(system.reward(a));
            let mut next = vec![largest; system.observations]; // for observations that cannot follow, any would do
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
            self.vectors.push(Witnessed { vector, point: point.clone() });
        }
    }

    fn vector(&self, system: &System, a: usize, next: &[usize]) -> Vec<f64> {
        let after =
            |s: usize| -> f64 { system.emissions[a].row(s).map(|(o, p)| p * self.vectors[next[o]].vector.values[s]).sum() };
        let after: Vec<f64> = (0..system.states).map(after).collect();
        let value = |s: usize| system.reward(a)[s] + system.discount * system.expect(a, s, &after);
        (0..system.states).map(value).collect()
    }

    /// Keeps the vectors that are the largest at the start or at a belief that one of them was made for.
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
        self.prune_at = FEW.max(2 * self.vectors.len());
    }
}
