//! The exact filter of a finite POMDP.

use super::Pomdp;
use crate::data::{Action, ActionObservation, Observation};
use crate::system::{Filter, Predict, Track};

/// The probability of every state given the history, b(s) = P(s | h). Every update borrows the
/// POMDP.
///
/// b'(s') = O(o | a, s') Σ_s T(s' | a, s) b(s) / P(o ‖ a), where P(o ‖ a) is the sum of the
/// numerators. An update costs as many operations as the rows of `a` have entries.
#[derive(Clone, Debug)]
pub struct BeliefState {
    state: Vec<f64>,
    /// Memory for the predicted belief.
    next: Vec<f64>,
    lost: u64,
}

impl BeliefState {
    /// The belief at the start of an episode.
    pub fn new(pomdp: &Pomdp) -> Self {
        let zeros = vec![0.0; pomdp.states().len()];
        let mut belief = BeliefState { state: zeros.clone(), next: zeros, lost: 0 };
        belief.reset(pomdp);
        belief
    }

    /// Forgets the history; [`lost`](Self::lost) keeps counting.
    pub fn reset(&mut self, pomdp: &Pomdp) {
        self.state.fill(0.0);
        for (s, p) in pomdp.start() {
            self.state[s] = p;
        }
    }

    /// Takes one step into account and returns its probability, P(o ‖ a): 1 if its observation is
    /// missing.
    ///
    /// If that is 0, the model is refuted: the belief becomes the prediction before `o` over the
    /// states that do not end the episode (or stays unchanged if there are none), and
    /// [`lost`](Self::lost) increases.
    pub fn update(&mut self, pomdp: &Pomdp, ao: ActionObservation) -> f64 {
        if ao.observation.is_missing() {
            self.update_missing(pomdp, ao.action);
            return 1.0;
        }
        let (a, o) = (ao.action, ao.observation.index());
        predict(pomdp, &self.state, a, &mut self.next);
        let total = observation_probability(pomdp, &self.next, a, o);
        if total > 0.0 {
            for (s, (b, p)) in self.state.iter_mut().zip(&self.next).enumerate() {
                *b = if *p > 0.0 { p * pomdp.emissions.probability(pomdp.index(a, s), o) / total } else { 0.0 };
            }
        } else {
            self.lost += 1;
            self.fall_back(pomdp);
        }
        total
    }

    /// Takes an action into account whose observation is one of `among`, and returns the probability
    /// of that, Σ_o P(o ‖ a). As in [`update`](Self::update), the model is refuted if that is 0.
    pub fn update_among(&mut self, pomdp: &Pomdp, a: Action, among: &[Observation]) -> f64 {
        predict(pomdp, &self.state, a, &mut self.next);
        let emitted = |s: usize| {
            let row = pomdp.index(a, s);
            among.iter().map(|o| pomdp.emissions.probability(row, o.index())).sum::<f64>()
        };
        let joint = |(s, &p): (usize, &f64)| if p > 0.0 { p * emitted(s) } else { 0.0 };
        let joint: Vec<f64> = self.next.iter().enumerate().map(joint).collect();
        let total: f64 = joint.iter().sum();
        if total > 0.0 {
            self.state.iter_mut().zip(joint).for_each(|(b, p)| *b = p / total);
        } else {
            self.lost += 1;
            self.fall_back(pomdp);
        }
        total
    }

    /// Takes an action into account whose observation is missing; the episode continues.
    pub fn update_missing(&mut self, pomdp: &Pomdp, a: Action) {
        predict(pomdp, &self.state, a, &mut self.next);
        self.fall_back(pomdp);
    }

    /// Adds weight·P(o ‖ a) for every observation o of the alphabet: 0 once the episode has ended.
    pub(crate) fn add_probabilities(&mut self, pomdp: &Pomdp, a: Action, weight: f64, probabilities: &mut [f64]) {
        predict(pomdp, &self.state, a, &mut self.next);
        for (s, p) in self.next.iter().enumerate().filter(|(_, p)| **p > 0.0) {
            for (o, q) in pomdp.emissions.row(pomdp.index(a, s)) {
                probabilities[o] += weight * p * q;
            }
        }
    }

    /// Takes a step into account of which only the probabilities of actions are known.
    pub(crate) fn update_unknown(&mut self, pomdp: &Pomdp, shares: &[f64]) {
        let mut sum = vec![0.0; self.state.len()];
        for (a, share) in shares.iter().enumerate() {
            predict(pomdp, &self.state, Action(a as u32), &mut self.next);
            sum.iter_mut().zip(&self.next).for_each(|(s, x)| *s += share * x);
        }
        self.next = sum;
        self.fall_back(pomdp);
    }

    /// b(s) for every state.
    pub fn state(&self) -> &[f64] {
        &self.state
    }

    /// How many steps had probability 0, since this belief was made.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    fn fall_back(&mut self, pomdp: &Pomdp) {
        let live = |s: usize, p: f64| if pomdp.is_terminal(s) { 0.0 } else { p };
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

/// P(o ‖ a) = Σ_s O(o | a, s) next(s)
fn observation_probability(pomdp: &Pomdp, next: &[f64], a: Action, o: usize) -> f64 {
    let mut total = 0.0;
    for (s, p) in next.iter().enumerate().filter(|(_, p)| **p > 0.0) {
        total += p * pomdp.emissions.probability(pomdp.index(a, s), o);
    }
    total
}

/// A belief together with its POMDP.
#[derive(Clone, Debug)]
pub struct Belief<'a> {
    pomdp: &'a Pomdp,
    belief: BeliefState,
    probabilities: Vec<f64>,
}

impl<'a> Belief<'a> {
    /// The belief at the start of an episode.
    pub fn new(pomdp: &'a Pomdp) -> Self {
        let probabilities = vec![0.0; pomdp.alphabet().observations().len()];
        Belief { pomdp, belief: BeliefState::new(pomdp), probabilities }
    }

    /// Takes an action into account whose observation is missing; the episode continues.
    pub fn update_missing(&mut self, a: Action) {
        self.belief.update_missing(self.pomdp, a);
    }

    /// How many steps had probability 0, since this belief was made.
    pub fn lost(&self) -> u64 {
        self.belief.lost()
    }
}

impl Track for Belief<'_> {
    fn reset(&mut self) {
        self.belief.reset(self.pomdp);
    }

    fn observe(&mut self, ao: ActionObservation) {
        self.belief.update(self.pomdp, ao);
    }

    fn observe_partial(&mut self, a: Action, pattern: &str) {
        self.belief.update_among(self.pomdp, a, &self.pomdp.alphabet().agreeing(pattern));
    }
}

impl Filter for Belief<'_> {
    fn state(&self) -> &[f64] {
        self.belief.state()
    }
}

impl Predict for Belief<'_> {
    fn probabilities(&mut self, a: Action) -> &[f64] {
        self.probabilities.fill(0.0);
        self.belief.add_probabilities(self.pomdp, a, 1.0, &mut self.probabilities);
        &self.probabilities
    }

    fn probability(&mut self, ao: ActionObservation) -> f64 {
        predict(self.pomdp, &self.belief.state, ao.action, &mut self.belief.next);
        observation_probability(self.pomdp, &self.belief.next, ao.action, ao.observation.index())
    }

    fn update(&mut self, ao: ActionObservation) -> f64 {
        self.belief.update(self.pomdp, ao)
    }
}
