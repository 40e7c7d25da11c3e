//! A POMDP for the solvers: without states in which nothing is earned, sparse, action by action.

use super::classes::Classes;
use crate::data::Action;
use crate::error::{Error, Result};
use crate::math::{SparseRows, dot8 as dot};
use crate::pomdp::Pomdp;

/// Sweeps after which iteration gives up; a discount of 0.9999 needs about 200 000.
pub(super) const MAX_SWEEPS: usize = 1_000_000;
/// Accuracy of the largest expected number of steps: less than 1 suffices for a bound.
const STEP_TOLERANCE: f64 = 0.5;

/// Transitions and emissions omit terminal states, and others after which nothing is earned.
pub(super) struct System {
    pub states: usize,
    pub actions: usize,
    pub observations: usize,
    pub discount: f64,
    pub start: Point,
    /// r(a, s), at a·|S| + s.
    pub rewards: Vec<f64>,
    /// T(s' | a, s) for each a; one row for each s.
    pub transitions: Vec<SparseRows>,
    /// O(o | a, s') for each a; one row for each s'.
    pub emissions: Vec<SparseRows>,
    /// w(s) ≥ 1 + γ max_a Σ_s' T(s' | a, s) w(s'): no policy goes on for longer, in discounted steps. So no value is beyond
    /// w(s) times the largest reward, and values that change by no more than δ in a sweep are within δ w(s) of their limit.
    pub steps: Vec<f64>,
    pub classes: Classes,
}

/// A belief, by the states that it holds possible, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Point {
    pub states: Vec<u32>,
    pub weights: Vec<f64>,
}

/// Memory for [`System::successors`], reused: zeros, one for each state.
pub(super) struct Scratch {
    next: Vec<f64>,
    touched: Vec<u32>,
}

/// The belief after an action and an observation.
pub(super) struct Successor {
    pub observation: usize,
    /// P(o ‖ a), where the episode continues.
    pub probability: f64,
    pub point: Point,
}

impl Point {
    fn push(&mut self, s: usize, weight: f64) {
        self.states.push(s as u32);
        self.weights.push(weight);
    }

    pub fn entries(&self) -> impl Iterator<Item = (usize, f64)> {
        self.states.iter().zip(&self.weights).map(|(&s, &b)| (s as usize, b))
    }

    /// One of its states: all are of the same class.
    pub fn any_state(&self) -> usize {
        self.states[0] as usize
    }

    /// Σ_s b(s) v(s)
    pub fn dot(&self, v: &[f64]) -> f64 {
        if self.weights.len() == v.len() { dot(&self.weights, v) } else { self.entries().map(|(s, b)| b * v[s]).sum() }
    }
}

impl System {
    pub fn new(pomdp: &Pomdp, discount: f64) -> Result<System> {
        if !(0.0..=1.0).contains(&discount) {
            return Err(Error::parameter("discount", discount, "must be between 0 and 1"));
        }
        let (states, actions) = (pomdp.states().len(), pomdp.alphabet().actions().len());
        let mut system = System {
            states,
            actions,
            observations: pomdp.alphabet().observations().len(),
            discount,
            start: Point::default(),
            rewards: Vec::with_capacity(actions * states),
            transitions: Vec::new(),
            emissions: Vec::new(),
            steps: Vec::new(),
            classes: Classes::default(),
        };
        let over = worthless(pomdp);
        pomdp.start().for_each(|(s, p)| system.start.push(s, p));
        for a in (0..actions).map(|a| Action(a as u32)) {
            let (mut transitions, mut emissions) = (SparseRows::default(), SparseRows::default());
            for s in 0..states {
                transitions.push(pomdp.transitions(a, s).filter(|&(to, _)| !over[to]));
                emissions.push(pomdp.emissions(a, s).filter(|_| !over[s]).map(|(o, p)| (o.index(), p)));
                system.rewards.push(pomdp.expected_reward(a, s));
            }
            system.transitions.push(transitions);
            system.emissions.push(emissions);
        }
        system.steps = system.most_steps(pomdp)?;
        system.classes = Classes::of(&system);
        Ok(system)
    }

    /// The largest absolute value of any policy.
    pub fn range(&self) -> f64 {
        self.longest() * self.rewards.iter().fold(0.0, |m: f64, r| m.max(r.abs()))
    }

    /// The largest of `steps`.
    pub fn longest(&self) -> f64 {
        self.steps.iter().fold(0.0, |m: f64, &w| m.max(w))
    }

    /// Σ_s' T(s' | a, s) v(s')
    pub fn expect(&self, a: usize, s: usize, v: &[f64]) -> f64 {
        self.transitions[a].row(s).map(|(to, p)| p * v[to]).sum()
    }

    /// r(a, ·)
    pub fn reward(&self, a: usize) -> &[f64] {
        &self.rewards[a * self.states..][..self.states]
    }

    /// Memory for [`System::successors`].
    pub fn scratch(&self) -> Scratch {
        Scratch { next: vec![0.0; self.states], touched: Vec::new() }
    }

    /// The possible successors after `a`, in an order that depends only on `point` and `a`.
    pub fn successors(&self, point: &Point, a: usize, scratch: &mut Scratch) -> Vec<Successor> {
        let Scratch { next, touched } = scratch;
        for (s, b) in point.entries() {
            for (to, p) in self.transitions[a].row(s) {
                if next[to] == 0.0 {
                    touched.push(to as u32);
                }
                next[to] += b * p;
            }
        }
        touched.sort_unstable();
        let mut at = vec![None; self.observations];
        let mut all: Vec<Successor> = Vec::new();
        for s in touched.drain(..).map(|s| s as usize) {
            let p = std::mem::take(&mut next[s]);
            for (observation, q) in self.emissions[a].row(s).filter(|(_, q)| p * q > 0.0) {
                let i = *at[observation].get_or_insert_with(|| {
                    all.push(Successor { observation, probability: 0.0, point: Point::default() });
                    all.len() - 1
                });
                all[i].point.push(s, p * q);
                all[i].probability += p * q;
            }
        }
        for Successor { probability, point, .. } in &mut all {
            point.weights.iter_mut().for_each(|b| *b /= *probability);
        }
        all
    }

    /// `steps`: 1/(1 − γ), or the largest expected number of steps of any policy.
    fn most_steps(&self, pomdp: &Pomdp) -> Result<Vec<f64>> {
        if self.discount < 1.0 {
            return Ok(vec![1.0 / (1.0 - self.discount); self.states]);
        }
        if let Some(s) = self.endless_state(pomdp) {
            return Err(Error::parameter(
                "discount",
                self.discount,
                format!("must be below 1, as a policy could go on forever from state {}", pomdp.states()[s]),
            ));
        }
        // From below: w grows to its limit. Once no w(s) grows by more than δ < 1, w/(1 − δ) is a
        // bound.
        let mut steps = vec![0.0; self.states];
        for _ in 0..MAX_SWEEPS {
            let longer = |s: usize| (0..self.actions).map(|a| 1.0 + self.expect(a, s, &steps)).fold(0.0, f64::max);
            let next: Vec<f64> = (0..self.states).map(longer).collect();
            let growth = next.iter().zip(&steps).map(|(x, y)| x - y).fold(0.0, f64::max);
            if growth <= STEP_TOLERANCE {
                return Ok(steps.iter().map(|w| w / (1.0 - growth)).collect());
            }
            steps = next;
        }
        Err(not_converged(self.discount))
    }

    /// A state from which some policy never ends.
    fn endless_state(&self, pomdp: &Pomdp) -> Option<usize> {
        let mut endless: Vec<bool> = (0..self.states).map(|s| !pomdp.is_terminal(s)).collect();
        loop {
            let stays = |a: u32, s: usize| pomdp.transitions(Action(a), s).all(|(to, _)| endless[to]);
            let ends = |&s: &usize| endless[s] && !(0..self.actions as u32).any(|a| stays(a, s));
            let ending: Vec<usize> = (0..self.states).filter(ends).collect();
            if ending.is_empty() {
                return endless.iter().position(|&e| e);
            }
            ending.into_iter().for_each(|s| endless[s] = false);
        }
    }
}

/// The states after which no policy earns or loses anything: terminal ones, and those that pay
/// nothing and lead only to such states.
fn worthless(pomdp: &Pomdp) -> Vec<bool> {
    let actions = pomdp.alphabet().actions().len() as u32;
    let pays = |s: usize| (0..actions).any(|a| pomdp.expected_reward(Action(a), s) != 0.0);
    let mut over: Vec<bool> = (0..pomdp.states().len()).map(|s| pomdp.is_terminal(s) || !pays(s)).collect();
    loop {
        let leaves = |s: usize| (0..actions).any(|a| pomdp.transitions(Action(a), s).any(|(to, _)| !over[to]));
        let wrong: Vec<usize> = (0..over.len()).filter(|&s| over[s] && leaves(s)).collect();
        if wrong.is_empty() {
            return over;
        }
        wrong.into_iter().for_each(|s| over[s] = false);
    }
}

/// The error of an iteration that does not converge.
pub(super) fn not_converged(discount: f64) -> Error {
    let problem = format!("the values do not converge within {MAX_SWEEPS} sweeps");
    Error::data(problem, format!("plan with a discount further below 1 than {discount}"))
}
