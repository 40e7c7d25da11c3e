//! The model {c₁, c_∞, C_ao}: plain data that predicts.
//!
//! Operators estimate *joint* probabilities under the logging policy, c_∞ᵀC_ao c = P(a, o | h). What users want is
//! P(o ‖ a): the distribution of o if a is done. It is had by normalising over o for the given a, which needs no
//! policy and always gives a distribution. The two never share a name: see [`Model::joint_probability`] and
//! [`PredictiveState::predict`](crate::PredictiveState::predict).

use rustc_hash::FxHashMap;

use super::ensemble::Ensemble;
use super::ngram::NGram;
use super::params::{LearnParams, Weighting};
use crate::data::{Action, ActionObservation, Alphabet, Fingerprints, Observation};
use crate::error::{Error, Result};
use crate::learn::Operator;
use crate::math::{dot, multiply, multiply_transposed};

use super::latent::Refined;

/// What the learner hands over.
pub(crate) struct Parts {
    pub(crate) params: LearnParams,
    pub(crate) alphabet: Alphabet,
    pub(crate) initial: Vec<f64>,
    pub(crate) normalizer: Vec<f64>,
    pub(crate) pairs: Vec<ActionObservation>,
    pub(crate) pair_counts: Vec<u64>,
    pub(crate) operators: Vec<Operator>,
    /// What operator sums are multiplied by.
    pub(crate) scale: f64,
    pub(crate) spectrum: Vec<f64>,
    pub(crate) episodes: u64,
    pub(crate) steps: u64,
    pub(crate) skipped: u64,
    pub(crate) ngram: NGram,
}

/// A learned predictive model. It carries its alphabet and parameters and no reference to its training data.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    pub(crate) params: LearnParams,
    pub(crate) alphabet: Alphabet,
    /// c₁, d
    pub(crate) initial: Vec<f64>,
    /// c_∞, d
    pub(crate) normalizer: Vec<f64>,
    /// The pairs met in training, sorted.
    pub(crate) pairs: Vec<ActionObservation>,
    /// How often each was met.
    pub(crate) pair_counts: Vec<u64>,
    /// C_ao for each pair, d × d by rows.
    pub(crate) operators: Vec<f64>,
    /// w_ao for each pair, d: its product with the state is P(a, o | h).
    pub(crate) readouts: Vec<f64>,
    /// Mean state after each pair, d; zero where no cut had it next.
    pub(crate) mean_states: Vec<f64>,
    /// All singular values computed in learning, largest first.
    pub(crate) spectrum: Vec<f64>,
    pub(crate) episodes: u64,
    pub(crate) steps: u64,
    pub(crate) skipped: u64,
    pub(crate) ngram: NGram,
    /// The POMDP it was refined to; then predictions are its own.
    pub(crate) refined: Option<Refined>,
    /// Where it is an ensemble.
    pub(crate) ensemble: Ensemble,
    /// What made its symbols of measurements.
    pub(crate) encoding: Option<String>,
    pub(crate) derived: Derived,
}

/// What prediction needs and the fields of a model determine.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Derived {
    /// Slots of the pairs of each action: `pairs[first[a]..first[a + 1]]`.
    pub(crate) first: Vec<usize>,
    /// Mean state after each observation over all actions, up to scale.
    pub(crate) mean_after: FxHashMap<Observation, Vec<f64>>,
    /// Share of each action in the logs, π(a); as if all were taken alike, where steps are weighted so.
    pub(crate) action_shares: Vec<f64>,
    /// Share of each observation in the logs for each action, |A| × |O|, add-half smoothed.
    pub(crate) unigram: Vec<f64>,
    /// Probability that the next observation is one never met in training (Good–Turing).
    pub(crate) unseen: f64,
    pub(crate) fingerprints: Fingerprints,
}

impl Model {
    pub(crate) fn assemble(parts: Parts) -> Result<Model> {
        let d = parts.initial.len();
        let total = dot(&parts.normalizer, &parts.initial);
        if !(total.is_finite() && total.abs() > 1e-9) {
            return Err(Error::data(
                format!("the start state has total probability {total}, so the model cannot be normalised"),
                "use a higher rank, longer histories or more episodes",
            ));
        }
        let mut operators = Vec::with_capacity(parts.pairs.len() * d * d);
        let mut mean_states = Vec::with_capacity(parts.pairs.len() * d);
        let mut readouts = Vec::with_capacity(parts.pairs.len() * d);
        for (ao, operator) in parts.pairs.iter().zip(&parts.operators) {
            // Nothing follows what ends the episode.
            let scale = if parts.alphabet.is_terminal(ao.observation) { 0.0 } else { parts.scale };
            // By rows, as NumPy reads them.
            operators.extend((0..d * d).map(|i| operator.matrix[(i / d, i % d)] * scale));
            readouts.extend(operator.readout.iter().map(|w| w * parts.scale));
            mean_states.extend(operator.state.iter().map(|x| if operator.weight > 0.0 { x / operator.weight } else { 0.0 }));
        }
        Model {
            initial: parts.initial.iter().map(|x| x / total).collect(),
            normalizer: parts.normalizer,
            params: parts.params,
            alphabet: parts.alphabet,
            pairs: parts.pairs,
            pair_counts: parts.pair_counts,
            operators,
            readouts,
            mean_states,
            spectrum: parts.spectrum,
            episodes: parts.episodes,
            steps: parts.steps,
            skipped: parts.skipped,
            ngram: parts.ngram,
            refined: None,
            ensemble: Ensemble::default(),
            encoding: None,
            derived: Derived::empty(),
        }
        .with_derived()
    }

    /// Fills in what the fields determine, and checks that everything is finite.
    pub(crate) fn with_derived(mut self) -> Result<Model> {
        let finite =
            [&self.initial, &self.normalizer, &self.operators, &self.readouts].iter().all(|v| v.iter().all(|x| x.is_finite()));
        if !finite {
            return Err(Error::data("the model has parameters that are not finite", "raise the ridge or lower the rank"));
        }
        self.derived = Derived::of(&self);
        Ok(self)
    }

    /// The models that predict with it; see [`ensemble`](crate::ensemble()).
    pub fn ensemble(&self) -> &Ensemble {
        &self.ensemble
    }

    /// The model alone.
    pub fn without_ensemble(mut self) -> Model {
        self.ensemble = Ensemble::default();
        self
    }

    /// What made its symbols of measurements, in the words of whoever did that: it is kept with the model, and not looked into.
    pub fn encoding(&self) -> Option<&str> {
        self.encoding.as_deref()
    }

    /// The model with another [`encoding`](Model::encoding).
    pub fn with_encoding(self, encoding: Option<String>) -> Model {
        Model { encoding, ..self }
    }

    /// d′, dimension of the predictive state.
    pub fn rank(&self) -> usize {
        self.initial.len()
    }

    /// The names of its actions and observations.
    pub fn alphabet(&self) -> &Alphabet {
        &self.alphabet
    }

    /// The parameters it was learned with.
    pub fn params(&self) -> &LearnParams {
        &self.params
    }

    /// The back-off n-gram counted on the same logs.
    pub fn ngram(&self) -> &NGram {
        &self.ngram
    }

    /// Singular values of the (whitened) moments, largest first.
    pub fn spectrum(&self) -> &[f64] {
        &self.spectrum
    }

    /// Episodes and steps it was learned from.
    pub fn trained_on(&self) -> (u64, u64) {
        (self.episodes, self.steps)
    }

    /// Bad episodes that were left out of the logs it was learned from.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// c₁
    pub fn initial(&self) -> &[f64] {
        &self.initial
    }

    /// c_∞
    pub fn normalizer(&self) -> &[f64] {
        &self.normalizer
    }

    /// How often each of [`pairs`](Self::pairs) was met.
    pub fn pair_counts(&self) -> &[u64] {
        &self.pair_counts
    }

    /// The pairs that have an operator.
    pub fn pairs(&self) -> &[ActionObservation] {
        &self.pairs
    }

    /// C_ao, d × d by rows; `None` for a pair never met.
    pub fn operator(&self, ao: ActionObservation) -> Option<&[f64]> {
        self.pairs.binary_search(&ao).ok().map(|slot| self.operator_at(slot))
    }

    pub(crate) fn operator_at(&self, slot: usize) -> &[f64] {
        let size = self.rank() * self.rank();
        &self.operators[slot * size..(slot + 1) * size]
    }

    /// w_ao, whose product with the state is P(a, o | h), raw; `None` for a pair never met.
    pub fn readout(&self, ao: ActionObservation) -> Option<&[f64]> {
        self.pairs.binary_search(&ao).ok().map(|slot| self.readout_at(slot))
    }

    pub(crate) fn readout_at(&self, slot: usize) -> &[f64] {
        let d = self.rank();
        &self.readouts[slot * d..(slot + 1) * d]
    }

    /// Whether the action was met in training.
    pub(crate) fn knows(&self, a: Action) -> bool {
        (a.0 as usize) < self.alphabet.actions().len()
    }

    /// Slots of the pairs of an action; none for an action never met.
    pub(crate) fn slots(&self, a: Action) -> std::ops::Range<usize> {
        if self.knows(a) { self.derived.first[a.0 as usize]..self.derived.first[a.0 as usize + 1] } else { 0..0 }
    }

    /// The mean state after a pair, normalised; after the observation alone if the pair has none.
    pub fn mean_state(&self, ao: ActionObservation) -> Option<Vec<f64>> {
        let d = self.rank();
        let of_pair = self.pairs.binary_search(&ao).ok().map(|slot| &self.mean_states[slot * d..(slot + 1) * d]);
        let normalised = |x: &[f64]| {
            let total = dot(x, &self.normalizer);
            (total.is_finite() && total.abs() > 1e-9).then(|| x.iter().map(|x| x / total).collect())
        };
        of_pair.and_then(normalised).or_else(|| self.derived.mean_after.get(&ao.observation).and_then(|x| normalised(x)))
    }

    /// C_⋆ = Σ_ao C_ao, d × d by rows: one step under the logging policy [H14 §2.3].
    pub fn step_operator(&self) -> Vec<f64> {
        self.sum_operators(0..self.pairs.len())
    }

    /// Σ_o C_ao, d × d by rows: one step of action `a` whatever is observed, if the episode goes on.
    pub fn action_operator(&self, a: Action) -> Vec<f64> {
        self.sum_operators(self.slots(a))
    }

    fn sum_operators(&self, slots: std::ops::Range<usize>) -> Vec<f64> {
        let mut sum = vec![0.0; self.rank() * self.rank()];
        for slot in slots {
            sum.iter_mut().zip(self.operator_at(slot)).for_each(|(s, x)| *s += x);
        }
        sum
    }

    /// P(a_1 o_1 … a_n o_n | start) under the logging policy, w_{ao_n}ᵀ C_{ao_{n−1}} ⋯ C_{ao_1} c₁, raw: it may be negative.
    pub fn joint_probability(&self, steps: &[ActionObservation]) -> f64 {
        let Some((last, before)) = steps.split_last() else { return 1.0 };
        let mut c = self.initial.clone();
        for &ao in before {
            match self.operator(ao) {
                Some(operator) => c = multiply(operator, &c),
                None => return 0.0,
            }
        }
        self.pairs.binary_search(last).map_or(0.0, |slot| dot(self.readout_at(slot), &c))
    }

    /// The same model in another basis: c₁ ↦ Jc₁, C_ao ↦ JC_aoJ⁻¹, c_∞ ↦ J⁻ᵀc_∞ [H14 §2.5]. Predictions do not change.
    pub fn transformed(&self, j: &[f64], j_inverse: &[f64]) -> Result<Model> {
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
        model.with_derived()
    }

    /// With another weight of the n-gram in predictions.
    pub fn with_mix(mut self, mix: f64) -> Result<Model> {
        self.params.mix = mix;
        self.params.validate()?;
        Ok(self)
    }
}

impl Derived {
    pub(crate) fn empty() -> Derived {
        Derived {
            first: Vec::new(),
            mean_after: FxHashMap::default(),
            action_shares: Vec::new(),
            unigram: Vec::new(),
            unseen: 0.0,
            fingerprints: Fingerprints::default(),
        }
    }

    fn of(model: &Model) -> Derived {
        let (actions, observations, d) = (model.alphabet.actions().len(), model.alphabet.observations().len(), model.rank());
        let first = (0..=actions).map(|a| model.pairs.partition_point(|ao| (ao.action.0 as usize) < a)).collect();

        let mut mean_after: FxHashMap<Observation, Vec<f64>> = FxHashMap::default();
        let mut action_counts = vec![0.0; actions];
        let mut unigram = vec![0.5; actions * observations];
        let mut observation_counts = vec![0u64; observations];
        for (slot, (ao, &count)) in model.pairs.iter().zip(&model.pair_counts).enumerate() {
            let (a, o) = (ao.action.0 as usize, ao.observation.0 as usize);
            action_counts[a] += count as f64;
            unigram[a * observations + o] += count as f64;
            observation_counts[o] += count;
            let state = &model.mean_states[slot * d..(slot + 1) * d];
            let sum = mean_after.entry(ao.observation).or_insert_with(|| vec![0.0; d]);
            sum.iter_mut().zip(state).for_each(|(s, x)| *s += count as f64 * x);
        }
        let steps: f64 = action_counts.iter().sum();
        for row in unigram.chunks_mut(observations.max(1)) {
            let total: f64 = row.iter().sum();
            row.iter_mut().for_each(|p| *p /= total);
        }
        Derived {
            first,
            mean_after,
            action_shares: match model.params.weighting {
                Weighting::None => action_counts.iter().map(|n| n / steps).collect(),
                Weighting::Next | Weighting::Propensity => vec![1.0 / actions as f64; actions],
            },
            unigram,
            unseen: unseen(&observation_counts),
            fingerprints: Fingerprints::of(&model.alphabet),
        }
    }
}

/// The probability that the next observation is one never met, by how often each was (Good–Turing), with half a symbol more so
/// that it is never zero; at most a half for tiny logs.
pub(crate) fn unseen(counts: &[u64]) -> f64 {
    let once = counts.iter().filter(|&&n| n == 1).count() as f64;
    let steps = counts.iter().sum::<u64>() as f64;
    ((once + 0.5) / (steps + 1.0)).min(0.5)
}

/// A B for square matrices by rows.
fn product(a: &[f64], b: &[f64], d: usize) -> Vec<f64> {
    a.chunks_exact(d).flat_map(|row| multiply_transposed(b, row)).collect()
}
