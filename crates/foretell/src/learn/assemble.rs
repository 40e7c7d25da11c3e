//! From learned parts to a model that predicts.

use super::operators::Operator;
use crate::data::Alphabet;
use crate::error::{Error, Result};
use crate::math::dot;
use crate::model::{Linear, Model, NGram, Origin, Predictor};

/// The parts that the learner provides.
pub(crate) struct Parts {
    pub(crate) alphabet: Alphabet,
    pub(crate) origin: Origin,
    pub(crate) ngram: NGram,
    /// Ûᵀ Σ̂_TH e
    pub(crate) initial: Vec<f64>,
    /// c_∞
    pub(crate) normalizer: Vec<f64>,
    /// One for each pair of the origin.
    pub(crate) operators: Vec<Operator>,
    /// The factor that turns operator sums into operators.
    pub(crate) scale: f64,
    pub(crate) spectrum: Vec<f64>,
}

impl Parts {
    /// The model.
    pub(crate) fn assemble(self) -> Result<Model> {
        let d = self.initial.len();
        let total = dot(&self.normalizer, &self.initial);
        if !(total.is_finite() && total.abs() > 1e-9) {
            return Err(Error::data(
                format!("the start state has total probability {total}, so the model cannot be normalised"),
                "use a higher rank, longer histories or more episodes",
            ));
        }
        let pairs = self.origin.pairs.clone();
        let mut operators = Vec::with_capacity(pairs.len() * d * d);
        let mut mean_states = Vec::with_capacity(pairs.len() * d);
        let mut readouts = Vec::with_capacity(pairs.len() * d);
        for (ao, operator) in pairs.iter().zip(&self.operators) {
            // Nothing follows an observation that ends the episode.
            let scale = if self.alphabet.is_terminal(ao.observation) { 0.0 } else { self.scale };
            // By rows, as NumPy reads them.
            operators.extend((0..d * d).map(|i| operator.matrix[(i / d, i % d)] * scale));
            readouts.extend(operator.readout.iter().map(|w| w * self.scale));
            mean_states.extend(operator.state.iter().map(|x| if operator.weight > 0.0 { x / operator.weight } else { 0.0 }));
        }
        let initial = self.initial.iter().map(|x| x / total).collect();
        let (normalizer, spectrum) = (self.normalizer, self.spectrum);
        let derived = Default::default();
        let linear = Linear { initial, normalizer, pairs, operators, readouts, mean_states, spectrum, derived };
        let linear = linear.completed(&self.origin.pair_counts, self.alphabet.actions().len())?;
        Ok(Model::new(self.alphabet, self.origin, self.ngram, Predictor::Linear(linear)))
    }
}
