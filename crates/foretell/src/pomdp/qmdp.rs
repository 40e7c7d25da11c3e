//! QMDP (Littman et al. 1995) on the exact belief, and the value of the fully observed system.

use super::{Belief, Pomdp};
use crate::data::{Action, ActionObservation};
use crate::math::{argmax, dot};
use crate::rng::Rng;
use crate::system::{Filter, Policy, Track};

/// Q_t(s, a) of the fully observed system, for every number of steps to go.
#[derive(Clone, Debug)]
pub struct Qmdp<'a> {
    pomdp: &'a Pomdp,
    /// Q with 1, 2, … steps to go, each by actions, then states.
    q: Vec<Vec<f64>>,
    /// V with as many steps to go as there are at the start.
    values: Vec<f64>,
}

impl<'a> Qmdp<'a> {
    /// For episodes of `horizon` steps: Q_t(s, a) = r(s, a) + γ Σ_s' T(s' | a, s) max_a'
    /// Q_{t−1}(s', a').
    pub fn solve(pomdp: &'a Pomdp, discount: f64, horizon: usize) -> Qmdp<'a> {
        let (states, actions) = (pomdp.states().len(), pomdp.alphabet().actions().len());
        let mut values = vec![0.0; states];
        let mut q = Vec::with_capacity(horizon);
        for _ in 0..horizon {
            let value = |a: usize, s: usize| {
                let a = Action(a as u32);
                let future: f64 = pomdp.transitions(a, s).map(|(to, p)| p * values[to]).sum();
                pomdp.expected_reward(a, s) + discount * future
            };
            let now: Vec<f64> = (0..actions * states).map(|i| value(i / states, i % states)).collect();
            let best = |s: usize| (0..actions).map(|a| now[a * states + s]).fold(f64::NEG_INFINITY, f64::max);
            values = (0..states).map(|s| if pomdp.is_terminal(s) { 0.0 } else { best(s) }).collect();
            q.push(now);
        }
        Qmdp { pomdp, q, values }
    }

    /// The value of the best policy that observes the state: an upper bound for all policies that
    /// do not.
    pub fn bound(&self) -> f64 {
        self.pomdp.start().map(|(s, p)| p * self.values[s]).sum()
    }

    /// The policy argmax_a Σ_s b(s) Q(s, a).
    pub fn policy(&self) -> QmdpPolicy<'_> {
        QmdpPolicy { solved: self, belief: Belief::new(self.pomdp), step: 0 }
    }
}

/// The QMDP policy.
#[derive(Clone, Debug)]
pub struct QmdpPolicy<'a> {
    solved: &'a Qmdp<'a>,
    belief: Belief<'a>,
    step: usize,
}

impl Policy for QmdpPolicy<'_> {
    fn reset(&mut self) {
        self.belief.reset();
        self.step = 0;
    }

    fn act(&mut self, _: &mut Rng) -> Action {
        let (belief, q) = (self.belief.state(), &self.solved.q);
        // Beyond the horizon it continues as if there were one more step.
        let q = &q[q.len().saturating_sub(self.step + 1).min(q.len() - 1)];
        Action(argmax(q.chunks_exact(belief.len()).map(|q| dot(q, belief))).0 as u32)
    }

    fn probability(&self, _: Action) -> Option<f64> {
        Some(1.0)
    }

    fn observe(&mut self, ao: ActionObservation) {
        self.belief.observe(ao);
        self.step += 1;
    }
}
