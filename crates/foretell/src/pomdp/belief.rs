//! The exact filter of a finite POMDP.

use super::Pomdp;
use crate::data::{Action, ActionObservation};

/// The probability of every state given the history, b(s) = P(s | h).
///
/// b'(s') = O(o | a, s') Σ_s T(s' | a, s) b(s) / P(o ‖ a), where P(o ‖ a) is the sum of the numerators. An update costs
/// as many operations as the rows of `a` have entries.
#[derive(Clone, Debug)]
pub struct Belief<'a> {
    pomdp: &'a Pomdp,
    state: Vec<f64>,
    next: Vec<f64>,
    lost: u64,
}

impl<'a> Belief<'a> {
    /// The belief before anything happened.
    pub fn new(pomdp: &'a Pomdp) -> Self {
        let zeros = vec![0.0; pomdp.states().len()];
        let mut belief = Belief { pomdp, state: zeros.clone(), next: zeros, lost: 0 };
        belief.reset();
        belief
    }

    /// The same belief, where the same POMDP stands elsewhere.
    pub(crate) fn borrowed_from<'b>(&self, pomdp: &'b Pomdp) -> Belief<'b> {
        Belief { pomdp, state: self.state.clone(), next: self.next.clone(), lost: self.lost }
    }

    /// Forgets the history; [`lost`](Belief::lost) keeps counting.
    pub fn reset(&mut self) {
        self.state.fill(0.0);
        for (s, p) in self.pomdp.start() {
            self.state[s] = p;
        }
    }

    /// Takes one step of the history in and returns the probability it had, P(o ‖ a).
    ///
    /// Where that is 0 the model is refuted: the belief becomes the predicted one, before `o` and over the states where
    /// the episode goes on (or stays as it was where there are none), and [`lost`](Belief::lost) goes up.
    pub fn update(&mut self, ao: ActionObservation) -> f64 {
        let (a, o) = (ao.action, ao.observation.0 as usize);
        predict(self.pomdp, &self.state, a, &mut self.next);
        let mut total = 0.0;
        for (s, p) in self.next.iter().enumerate().filter(|(_, p)| **p > 0.0) {
            total += p * self.pomdp.emissions.probability(self.pomdp.index(a, s), o);
        }
        if total > 0.0 {
            for (s, (b, p)) in self.state.iter_mut().zip(&self.next).enumerate() {
                *b = if *p > 0.0 { p * self.pomdp.emissions.probability(self.pomdp.index(a, s), o) / total } else { 0.0 };
            }
        } else {
            self.lost += 1;
            self.fall_back();
        }
        total
    }

    /// Takes an action into account whose observation is missing; the episode goes on.
    pub fn update_missing(&mut self, a: Action) {
        predict(self.pomdp, &self.state, a, &mut self.next);
        self.fall_back();
    }

    /// P(o ‖ a) for every observation o of the alphabet. All are 0 once the episode has ended.
    pub fn probabilities(&self, a: Action) -> Vec<f64> {
        let mut probabilities = vec![0.0; self.pomdp.alphabet().observations().len()];
        self.clone().add_probabilities(a, 1.0, &mut probabilities);
        probabilities
    }

    /// Adds weight·P(o ‖ a) for every observation.
    pub(crate) fn add_probabilities(&mut self, a: Action, weight: f64, probabilities: &mut [f64]) {
        predict(self.pomdp, &self.state, a, &mut self.next);
        for (s, p) in self.next.iter().enumerate().filter(|(_, p)| **p > 0.0) {
            for (o, q) in self.pomdp.emissions.row(self.pomdp.index(a, s)) {
                probabilities[o] += weight * p * q;
            }
        }
    }

    /// Takes a step into account of which only the shares of actions are known.
    pub(crate) fn update_unknown(&mut self, shares: &[f64]) {
        let mut sum = vec![0.0; self.state.len()];
        for (a, share) in shares.iter().enumerate() {
            predict(self.pomdp, &self.state, Action(a as u32), &mut self.next);
            sum.iter_mut().zip(&self.next).for_each(|(s, x)| *s += share * x);
        }
        self.next = sum;
        self.fall_back();
    }

    /// b(s) for every state.
    pub fn state(&self) -> &[f64] {
        &self.state
    }

    /// How many steps had probability 0, since this belief was made.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    fn fall_back(&mut self) {
        let live = |s: usize, p: f64| if self.pomdp.is_terminal(s) { 0.0 } else { p };
        let total: f64 = self.next.iter().enumerate().map(|(s, &p)| live(s, p)).sum();
        if total > 0.0 {
            for (s, (b, &p)) in self.state.iter_mut().zip(&self.next).enumerate() {
                *b = live(s, p) / total;
            }
        }
    }
}

/// next(s') = Σ_s T(s' | a, s) b(s)
fn predict(pomdp: &Pomdp, belief: &[f64], a: Action, next: &mut [f64]) {
    next.fill(0.0);
    for (s, b) in belief.iter().enumerate().filter(|(_, b)| **b > 0.0) {
        for (to, p) in pomdp.transitions(a, s) {
            next[to] += b * p;
        }
    }
}
