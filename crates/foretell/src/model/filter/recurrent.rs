//! The state of a recurrent network.

use crate::data::{Action, ActionObservation, Observation};
use crate::model::predictor::{Frequencies, Model};
use crate::model::recurrent::{Recurrent, Scratch};
use crate::system::{Predict, Track};

/// h, what the last observation adds to the next input, and the state as planners see it.
///
/// An observation becomes part of h only with the next action. Planners see what h becomes with the
/// mean input of an action, so that their state depends on the last observation.
#[derive(Clone, Debug)]
pub(super) struct RecurrentState {
    h: Vec<f32>,
    /// Σ_f E_{f,o_f}, or E_start; its expectation where the observation is missing.
    last: Vec<f32>,
    pub(super) seen_by_planners: Vec<f64>,
    input: Vec<f32>,
    next: Vec<f32>,
    expected: Vec<f64>,
    scratch: Scratch,
}

impl RecurrentState {
    pub(super) fn new(net: &Recurrent, frequencies: &Frequencies) -> RecurrentState {
        let n = net.hidden();
        let mut state = RecurrentState {
            h: vec![0.0; n],
            last: vec![0.0; 3 * n],
            seen_by_planners: vec![0.0; n],
            input: vec![0.0; 3 * n],
            next: vec![0.0; n],
            expected: Vec::new(),
            scratch: Scratch::default(),
        };
        state.reset(net, frequencies);
        state
    }

    pub(super) fn reset(&mut self, net: &Recurrent, frequencies: &Frequencies) {
        self.h.fill(0.0);
        self.last.copy_from_slice(net.start_input());
        self.show(net, frequencies);
    }

    /// P(o ‖ a), scaled to `seen`. For an action that was not seen in training it is that of the
    /// mean input of an action.
    pub(super) fn predict(&mut self, net: &Recurrent, frequencies: &Frequencies, a: Action, seen: f64, p: &mut [f64]) {
        self.advance(net, frequencies, Some(a));
        net.probabilities(&self.next, &mut self.scratch, p);
        p.iter_mut().for_each(|p| *p *= seen);
    }

    /// ln P(o ‖ a) of one observation, without computing those of others; updates the state.
    pub(super) fn score(&mut self, net: &Recurrent, frequencies: &Frequencies, ao: ActionObservation) -> f64 {
        self.advance(net, frequencies, Some(ao.action));
        let log = net.log_probability(&self.next, &mut self.scratch, ao.observation);
        self.take(net, ao.observation);
        log
    }

    /// Updates the state by a step.
    pub(super) fn observe(&mut self, net: &Recurrent, frequencies: &Frequencies, ao: ActionObservation) {
        self.advance(net, frequencies, Some(ao.action));
        self.take(net, ao.observation);
        self.show(net, frequencies);
    }

    /// The same where the observation is missing: in place of what it adds to the input comes the
    /// expectation of that, given that the episode goes on. `None` is an action of the logging
    /// policy.
    pub(super) fn miss(&mut self, net: &Recurrent, frequencies: &Frequencies, a: Option<Action>) {
        self.expect(net, frequencies, a, |o| !net.is_terminal(o));
    }

    /// The same where the observation is one of `among`, in ascending order.
    pub(super) fn observe_among(&mut self, net: &Recurrent, frequencies: &Frequencies, a: Action, among: &[Observation]) {
        self.expect(net, frequencies, Some(a), |o| among.binary_search(&Observation(o as u32)).is_ok());
    }

    /// Adds to the next input the expectation of what the observations for which `may_be` is true
    /// add to it.
    fn expect(&mut self, net: &Recurrent, frequencies: &Frequencies, a: Option<Action>, may_be: impl Fn(usize) -> bool) {
        self.advance(net, frequencies, a);
        self.expected.resize(net.choices.symbols(), 0.0);
        net.probabilities(&self.next, &mut self.scratch, &mut self.expected);
        let total: f64 = self.expected.iter().enumerate().map(|(o, p)| if may_be(o) { *p } else { 0.0 }).sum();
        self.last.fill(0.0);
        for (o, &p) in self.expected.iter().enumerate().filter(|(o, _)| may_be(*o)) {
            net.add_observation(Observation(o as u32), (p / total.max(f64::MIN_POSITIVE)) as f32, &mut self.last);
        }
        self.h.copy_from_slice(&self.next);
        self.show(net, frequencies);
    }

    /// Makes the state after an action the current one, with an observation to come.
    fn take(&mut self, net: &Recurrent, o: Observation) {
        self.h.copy_from_slice(&self.next);
        self.last.fill(0.0);
        net.add_observation(o, 1.0, &mut self.last);
    }

    /// Computes h' after an action, or after the mean of actions.
    fn advance(&mut self, net: &Recurrent, frequencies: &Frequencies, a: Option<Action>) {
        let shares = &frequencies.action_shares;
        self.input.copy_from_slice(&self.last);
        match a.filter(|a| a.index() < shares.len()) {
            Some(a) => net.add_action(a, 1.0, &mut self.input),
            None => (0..).map(Action).zip(shares).for_each(|(a, &share)| net.add_action(a, share as f32, &mut self.input)),
        }
        self.next.copy_from_slice(&self.h);
        net.step(&self.input, &mut self.next, &mut self.scratch);
    }

    fn show(&mut self, net: &Recurrent, frequencies: &Frequencies) {
        self.advance(net, frequencies, None);
        self.seen_by_planners.iter_mut().zip(&self.next).for_each(|(x, &h)| *x = f64::from(h));
    }
}

/// A network as a filter over the symbols seen in training that computes the probability of what is
/// observed, and of nothing else.
pub(crate) struct RecurrentFilter<'a> {
    net: &'a Recurrent,
    frequencies: &'a Frequencies,
    state: RecurrentState,
    probabilities: Vec<f64>,
}

impl<'a> RecurrentFilter<'a> {
    pub(crate) fn new(net: &'a Recurrent, model: &'a Model) -> RecurrentFilter<'a> {
        let frequencies = model.frequencies();
        let state = RecurrentState::new(net, frequencies);
        RecurrentFilter { net, frequencies, state, probabilities: vec![0.0; net.choices.symbols()] }
    }
}

impl Track for RecurrentFilter<'_> {
    fn reset(&mut self) {
        self.state.reset(self.net, self.frequencies);
    }

    fn observe(&mut self, ao: ActionObservation) {
        match self.net.choices.knows(ao.observation.index()) {
            true => self.state.observe(self.net, self.frequencies, ao),
            false => self.state.miss(self.net, self.frequencies, Some(ao.action)),
        }
    }
}

impl Predict for RecurrentFilter<'_> {
    fn probabilities(&mut self, a: Action) -> &[f64] {
        self.state.predict(self.net, self.frequencies, a, 1.0, &mut self.probabilities);
        &self.probabilities
    }

    fn probability(&mut self, ao: ActionObservation) -> f64 {
        self.state.clone().score(self.net, self.frequencies, ao).exp()
    }

    fn update(&mut self, ao: ActionObservation) -> f64 {
        self.state.score(self.net, self.frequencies, ao).exp()
    }
}
