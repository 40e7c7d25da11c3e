//! The predictive state c_t of a linear model.

use crate::data::{Action, ActionObservation, Observation};
use crate::math::{dot, multiply};
use crate::model::linear::Linear;
use crate::model::predictor::Frequencies;

/// The filter is lost if an observation has a probability below 1 % of its action's frequency (see
/// DEVIATIONS.md).
const LOST: f64 = 1e-2;
/// States are kept within this bound: beyond it the linear model is far outside the data it was
/// fitted to.
const STATE_BOUND: f64 = 1e6;

/// c_t, and how often the filter was lost.
#[derive(Clone, Debug)]
pub(super) struct LinearState {
    pub(super) c: Vec<f64>,
    pub(super) lost: u64,
}

impl LinearState {
    pub(super) fn new(linear: &Linear) -> LinearState {
        LinearState { c: linear.initial.clone(), lost: 0 }
    }

    pub(super) fn reset(&mut self, linear: &Linear) {
        self.c.copy_from_slice(&linear.initial);
    }

    /// max(w_aoᵀc, 0), normalised, floored, normalised to `seen`.
    pub(super) fn predict(&self, linear: &Linear, a: Action, floor: f64, seen: f64, p: &mut [f64]) {
        p.fill(0.0);
        for slot in linear.slots(a) {
            p[linear.pairs[slot].observation.index()] += dot(linear.readout_at(slot), &self.c);
        }
        let positive: f64 = p.iter().filter(|p| **p > 0.0).sum();
        let symbols = p.len();
        if positive > 0.0 {
            p.iter_mut().for_each(|p| *p = (*p / positive).max(floor));
        } else if let Some(unigram) = linear.derived.unigram.get(a.index() * symbols..(a.index() + 1) * symbols) {
            p.copy_from_slice(unigram);
        } else {
            p.fill(1.0);
        }
        let total: f64 = p.iter().sum();
        p.iter_mut().for_each(|p| *p *= seen / total);
    }

    /// c ↦ C_ao c, normalised.
    pub(super) fn observe(&mut self, linear: &Linear, frequencies: &Frequencies, ao: ActionObservation) {
        let next = linear.operator(ao).map_or_else(|| vec![0.0; self.c.len()], |operator| multiply(operator, &self.c));
        self.settle(linear, next, LOST * share(frequencies, ao.action), Some(ao));
    }

    /// c ↦ Σ_o C_ao c, normalised.
    pub(super) fn miss(&mut self, linear: &Linear, frequencies: &Frequencies, a: Action) {
        let mut sum = vec![0.0; self.c.len()];
        for slot in linear.slots(a) {
            sum.iter_mut().zip(multiply(linear.operator_at(slot), &self.c)).for_each(|(s, x)| *s += x);
        }
        self.settle(linear, sum, LOST * share(frequencies, a), None);
    }

    /// c ↦ Σ_{o ∈ among} C_ao c, normalised.
    pub(super) fn observe_among(&mut self, linear: &Linear, frequencies: &Frequencies, a: Action, among: &[Observation]) {
        let mut sum = vec![0.0; self.c.len()];
        for operator in among.iter().filter_map(|&observation| linear.operator(ActionObservation { action: a, observation })) {
            sum.iter_mut().zip(multiply(operator, &self.c)).for_each(|(s, x)| *s += x);
        }
        self.settle(linear, sum, LOST * share(frequencies, a), None);
    }

    /// c ↦ C_⋆^steps c: steps of the logging policy.
    pub(super) fn miss_steps(&mut self, linear: &Linear, steps: usize) {
        let c_star = linear.step_operator();
        (0..steps).for_each(|_| self.settle(linear, multiply(&c_star, &self.c), LOST, None));
    }

    /// c ↦ next / c_∞ᵀnext, or a mean state if that is not possible.
    fn settle(&mut self, linear: &Linear, next: Vec<f64>, least: f64, ao: Option<ActionObservation>) {
        let total = dot(&linear.normalizer, &next);
        if total > least && next.iter().all(|x| (x / total).abs() < STATE_BOUND) {
            self.c = next.iter().map(|x| x / total).collect();
            return;
        }
        self.lost += 1;
        if let Some(mean) = ao.and_then(|ao| linear.mean_state(ao)) {
            self.c = mean;
        }
    }
}

fn share(frequencies: &Frequencies, a: Action) -> f64 {
    frequencies.action_shares.get(a.index()).copied().unwrap_or(1.0)
}
