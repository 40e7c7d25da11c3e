//! Planners for a finite POMDP over an infinite horizon: V(b) = max_π E[Σ_t γ^(t−1) r_t].
//!
//! Three planners, each a set of vectors over states with an action for each. The policy takes the
//! action of the vector that is largest at the belief, argmax_α Σ_s b(s) α(s).
//!
//! - [`qmdp`]: the value if the state were observed from the next step on. Fast, an upper bound;
//!   never acts only to gain information.
//! - [`fast_informed_bound`]: a smaller upper bound, which uses the next observation, and then
//!   assumes the state is observed.
//! - [`PointBased`]: a lower and an upper bound that converge at the start, and a policy whose
//!   value is at least about the lower one.
//!
//! Values are finite where γ < 1, or where no policy can continue forever. Episodes end in terminal
//! states.

mod bounds;
mod classes;
mod graph;
mod lower;
mod point_based;
mod system;
mod upper;

pub use point_based::{Gap, PointBased, Round};

use super::{Belief, Pomdp};
use crate::data::{Action, ActionObservation};
use crate::error::Result;
use crate::math::argmax;
use crate::rng::Rng;
use crate::system::{Filter, Policy, Track};
use system::System;

/// A value for every state, and the action to take where this vector is the largest of all.
#[derive(Clone, Debug, PartialEq)]
pub struct AlphaVector {
    /// a
    pub action: Action,
    /// α(s)
    pub values: Vec<f64>,
}

/// The result of a planner.
#[derive(Clone, Debug, PartialEq)]
pub struct Solution {
    /// The vectors that the policy compares, at least one.
    pub vectors: Vec<AlphaVector>,
    /// A lower bound of the value at the start, if the planner has one.
    pub lower: Option<f64>,
    /// An upper bound of the value at the start.
    pub upper: f64,
}

impl Solution {
    /// The policy of these vectors, on the exact belief of the model they were found for.
    pub fn policy<'a>(&'a self, pomdp: &'a Pomdp) -> VectorPolicy<'a> {
        let states = pomdp.states().len();
        assert!(self.vectors.iter().all(|v| v.values.len() == states), "a solution belongs to one model");
        VectorPolicy { vectors: &self.vectors, belief: Belief::new(pomdp) }
    }

    /// One vector for each action, at a·|S| + s, which bound the value from above.
    fn of_q(system: &System, q: &[f64]) -> Solution {
        let rows = (0u32..).zip(q.chunks_exact(system.states));
        let vectors: Vec<AlphaVector> =
            rows.map(|(a, values)| AlphaVector { action: Action(a), values: values.to_vec() }).collect();
        let upper = argmax(vectors.iter().map(|v| system.start.dot(&v.values))).1;
        Solution { vectors, lower: None, upper }
    }
}

/// Q(s, a) = r(s, a) + γ Σ_s' T(s' | a, s) max_a' Q(s', a') by value iteration, as a vector for
/// each action (Littman et al. 1995).
///
/// No value is too small, or too large by more than 10⁻⁸ of the
/// discounted sum of the largest reward at every step.
///
/// ```
/// use foretell::pomdp::solve;
///
/// let tiger = foretell::domains::get("tiger")?;
/// let solution = solve::qmdp(tiger.pomdp().unwrap(), 0.95)?;
/// // A policy that observes the state opens the right door at every step, except the first.
/// assert!((solution.upper - (-1.0 + 0.95 * 200.0)).abs() < 1e-4);
/// # Ok::<(), foretell::Error>(())
/// ```
///
/// # Errors
/// A discount that is not in [0, 1], or 1 where a policy could continue forever; one so close to 1
/// that values do not converge.
pub fn qmdp(pomdp: &Pomdp, discount: f64) -> Result<Solution> {
    let system = System::new(pomdp, discount)?;
    Ok(Solution::of_q(&system, &bounds::observed(&system)?))
}

/// Q(s, a) = r(s, a) + γ Σ_o max_a' Σ_s' T(s' | a, s) O(o | a, s') Q(s', a'), as a vector for each
/// action (Hauskrecht 2000).
///
/// As accurate as [`qmdp`], and never above it. A sweep costs one
/// operation for each path (s, s', o) of T and O and each pair of actions.
///
/// # Errors
/// As [`qmdp`].
pub fn fast_informed_bound(pomdp: &Pomdp, discount: f64) -> Result<Solution> {
    let system = System::new(pomdp, discount)?;
    Ok(Solution::of_q(&system, &bounds::informed(&system)?))
}

/// Takes the action of the largest vector at the belief.
#[derive(Clone, Debug)]
pub struct VectorPolicy<'a> {
    vectors: &'a [AlphaVector],
    belief: Belief<'a>,
}

impl Policy for VectorPolicy<'_> {
    fn reset(&mut self) {
        self.belief.reset();
    }

    fn act(&mut self, _: &mut Rng) -> Action {
        // Beliefs of large systems are sparse.
        let possible = self.belief.state().iter().enumerate().filter(|(_, b)| **b > 0.0);
        let possible: Vec<(usize, f64)> = possible.map(|(s, &b)| (s, b)).collect();
        let value = |v: &AlphaVector| -> f64 { possible.iter().map(|&(s, b)| b * v.values[s]).sum() };
        let (i, _) = argmax(self.vectors.iter().map(value));
        self.vectors[i].action
    }

    fn probability(&self, _: Action) -> Option<f64> {
        Some(1.0)
    }

    fn observe(&mut self, ao: ActionObservation) {
        self.belief.observe(ao);
    }
}
