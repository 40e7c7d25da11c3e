//! The linear model {c₁, c_∞, C_ao}: plain data that predicts.
//!
//! Operators estimate *joint* probabilities under the logging policy, c_∞ᵀC_ao c = P(a, o | h).
//! Users need P(o ‖ a), the distribution of o if a is taken. It is computed by normalising over o
//! for the given a, which needs no policy and always gives a distribution. The two have different
//! names: see [`Linear::joint_probability`] and
//! [`PredictiveState::predict`](crate::PredictiveState::predict).

use rustc_hash::FxHashMap;

use crate::data::{Action, ActionObservation, Observation};
use crate::error::{Error, Result};
use crate::math::{dot, multiply, multiply_transposed, product};

/// A predictive state representation in some basis.
#[derive(Clone, Debug, PartialEq)]
pub struct Linear {
    /// c₁, d
    pub(crate) initial: Vec<f64>,
    /// c_∞, d
    pub(crate) normalizer: Vec<f64>,
    /// The pairs seen in training, sorted.
    pub(crate) pairs: Vec<ActionObservation>,
    /// C_ao for each pair, d × d by rows.
    pub(crate) operators: Vec<f64>,
    /// w_ao for each pair, d: its product with the state is P(a, o | h).
    pub(crate) readouts: Vec<f64>,
    /// Mean state after each pair, d; zero for a pair that no cut has next.
    pub(crate) mean_states: Vec<f64>,
    /// All singular values computed in learning, largest first.
    pub(crate) spectrum: Vec<f64>,
    /// Empty until it is [`completed`](Linear::completed).
    pub(crate) derived: Derived,
}

/// Values for prediction that follow from the other fields and from the counts of pairs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Derived {
    /// Slots of the pairs of each action: `pairs[first[a]..first[a + 1]]`.
    pub(super) first: Vec<usize>,
    /// Mean state after each observation over all actions, up to scale.
    mean_after: FxHashMap<Observation, Vec<f64>>,
    /// How often each pair was seen: with many actions and observations most pairs never are, so
    /// shares for all of them would not fit in memory.
    counts: Vec<f64>,
}

impl Linear {
    /// Fills in what the parts determine, over that many actions; `counts` says how often each pair
    /// was seen. All parts must be finite.
    pub(crate) fn completed(self, counts: &[u64], actions: usize) -> Result<Linear> {
        let parts = [&self.initial, &self.normalizer, &self.operators, &self.readouts];
        if !parts.iter().all(|part| part.iter().all(|x| x.is_finite())) {
            return Err(Error::data("the model has parameters that are not finite", "raise `ridge` or lower `rank`"));
        }
        Ok(self.derived(counts, actions))
    }

    /// [`completed`](Linear::completed) for parts that are known to be finite.
    pub(super) fn derived(mut self, counts: &[u64], actions: usize) -> Linear {
        self.derived = Derived::of(&self, counts, actions);
        self
    }

    /// d′, dimension of the predictive state.
    pub fn rank(&self) -> usize {
        self.initial.len()
    }

    /// Singular values of the (whitened) moments, largest first.
    pub fn spectrum(&self) -> &[f64] {
        &self.spectrum
    }

    /// c₁
    pub fn initial(&self) -> &[f64] {
        &self.initial
    }

    /// c_∞
    pub fn normalizer(&self) -> &[f64] {
        &self.normalizer
    }

    /// The pairs that have an operator.
    pub fn pairs(&self) -> &[ActionObservation] {
        &self.pairs
    }

    /// C_ao, d × d by rows; `None` for a pair that was not seen in training.
    pub fn operator(&self, ao: ActionObservation) -> Option<&[f64]> {
        self.pairs.binary_search(&ao).ok().map(|slot| self.operator_at(slot))
    }

    pub(super) fn operator_at(&self, slot: usize) -> &[f64] {
        let size = self.rank() * self.rank();
        &self.operators[slot * size..(slot + 1) * size]
    }

    /// w_ao, whose product with the state is P(a, o | h), not normalised; `None` for a pair that
    /// was not seen in training.
    pub fn readout(&self, ao: ActionObservation) -> Option<&[f64]> {
        self.pairs.binary_search(&ao).ok().map(|slot| self.readout_at(slot))
    }

    pub(super) fn readout_at(&self, slot: usize) -> &[f64] {
        let d = self.rank();
        &self.readouts[slot * d..(slot + 1) * d]
    }

    /// Slots of the pairs of an action; all of them for an action that was not seen in training.
    pub(super) fn slots(&self, a: Action) -> std::ops::Range<usize> {
        match self.derived.first.get(a.index()..=a.index() + 1) {
            Some(ends) => ends[0]..ends[1],
            None => 0..self.pairs.len(),
        }
    }

    /// Fills in the share of each observation in the logs for an action, add-half smoothed; uniform
    /// for an action that was not seen in training. A table of all of them would be |A| × |O|.
    pub(super) fn shares(&self, a: Action, p: &mut [f64]) {
        let seen = if a.index() + 1 < self.derived.first.len() { self.slots(a) } else { 0..0 };
        let total = 0.5 * p.len() as f64 + self.derived.counts[seen.clone()].iter().sum::<f64>();
        p.fill(0.5 / total);
        for slot in seen {
            p[self.pairs[slot].observation.index()] = (0.5 + self.derived.counts[slot]) / total;
        }
    }

    /// The normalised mean state after a pair; after the observation alone if the pair has none.
    pub fn mean_state(&self, ao: ActionObservation) -> Option<Vec<f64>> {
        let d = self.rank();
        let of_pair = self.pairs.binary_search(&ao).ok().map(|slot| &self.mean_states[slot * d..(slot + 1) * d]);
        let normalised = |x: &[f64]| {
            let total = dot(x, &self.normalizer);
            let normalised = || x.iter().map(|x| x / total).collect::<Vec<_>>();
            (total.is_finite() && total.abs() > 1e-9).then(normalised).filter(|x| x.iter().all(|x| x.is_finite()))
        };
        of_pair.and_then(normalised).or_else(|| self.derived.mean_after.get(&ao.observation).and_then(|x| normalised(x)))
    }

    /// C_⋆ = Σ_ao C_ao, d × d by rows: one step under the logging policy [H14 §2.3].
    pub fn step_operator(&self) -> Vec<f64> {
        let mut sum = vec![0.0; self.rank() * self.rank()];
        for slot in 0..self.pairs.len() {
            sum.iter_mut().zip(self.operator_at(slot)).for_each(|(s, x)| *s += x);
        }
        sum
    }

    /// P(a_1 o_1 … a_n o_n | start) under the logging policy, w_{ao_n}ᵀ C_{ao_{n−1}} ⋯ C_{ao_1} c₁.
    /// It is not clipped, so it may be negative.
    pub fn joint_probability(&self, steps: &[ActionObservation]) -> f64 {
        let Some((last, before)) = steps.split_last() else { return 1.0 };
        let mut c = self.initial.clone();
        for &ao in before {
            match self.operator(ao) {
                Some(operator) => c = multiply(operator, &c),
                None => return 0.0,
            }
        }
        self.readout(*last).map_or(0.0, |readout| dot(readout, &c))
    }

    /// The same model in another basis: c₁ ↦ Jc₁, C_ao ↦ JC_aoJ⁻¹, c_∞ ↦ J⁻ᵀc_∞ [H14 §2.5].
    /// Predictions do not change.
    ///
    /// # Panics
    ///
    /// If J and its inverse are not d × d.
    pub fn transformed(&self, j: &[f64], j_inverse: &[f64]) -> Linear {
        let d = self.rank();
        assert_eq!((j.len(), j_inverse.len()), (d * d, d * d), "J is d × d");
        let mut model = self.clone();
        model.initial = multiply(j, &self.initial);
        model.normalizer = multiply_transposed(j_inverse, &self.normalizer);
        for slot in 0..self.pairs.len() {
            let operator = product(&product(j, self.operator_at(slot), d), j_inverse, d);
            model.operators[slot * d * d..(slot + 1) * d * d].copy_from_slice(&operator);
            let readout = multiply_transposed(j_inverse, self.readout_at(slot));
            model.readouts[slot * d..(slot + 1) * d].copy_from_slice(&readout);
            let state = multiply(j, &self.mean_states[slot * d..(slot + 1) * d]);
            model.mean_states[slot * d..(slot + 1) * d].copy_from_slice(&state);
        }
        model.derived.mean_after.values_mut().for_each(|state| *state = multiply(j, state));
        model
    }
}

impl Derived {
    fn of(linear: &Linear, counts: &[u64], actions: usize) -> Derived {
        let d = linear.rank();
        let first = (0..=actions).map(|a| linear.pairs.partition_point(|ao| ao.action.index() < a)).collect();
        let mut mean_after: FxHashMap<Observation, Vec<f64>> = FxHashMap::default();
        for (slot, (ao, &count)) in linear.pairs.iter().zip(counts).enumerate() {
            let state = &linear.mean_states[slot * d..(slot + 1) * d];
            let sum = mean_after.entry(ao.observation).or_insert_with(|| vec![0.0; d]);
            sum.iter_mut().zip(state).for_each(|(s, x)| *s += count as f64 * x);
        }
        Derived { first, mean_after, counts: counts.iter().map(|&n| n as f64).collect() }
    }
}
