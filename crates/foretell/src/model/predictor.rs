//! A learned model: what it was learned from, and what it predicts by.

use super::latent::Latent;
use super::linear::Linear;
use super::ngram::NGram;
use super::params::{LearnParams, Weighting};
use crate::data::{Action, ActionObservation, Alphabet, Fingerprints};
use crate::error::Result;

/// What a model predicts by. A new kind is a variant here, a file beside this one, and one in `filter/`.
#[derive(Clone, Debug, PartialEq)]
pub enum Predictor {
    /// A predictive state that operators update.
    Linear(Linear),
    /// A belief over the states of a POMDP.
    Latent(Box<Latent>),
    /// The mean of several models.
    Ensemble(Ensemble),
}

/// Models over the same alphabet that predict together: better, and with a measure of uncertainty.
///
/// Models of all logs that differ by their projections, and so by where EM begins, make different errors: their mean is better than
/// each. How far all of them may be off by chance they do not say. Models of random halves of the episodes do: the variance of a mean
/// over n/2 draws without replacement from n, around the mean of all, is that of the mean of n (Politis and Romano 1994). Errors that
/// all of them share are not part of any spread; [`score`](crate::score()) measures how often the truth is covered.
#[derive(Clone, Debug, PartialEq)]
pub struct Ensemble {
    /// What the model would predict by alone: the first of those of all logs.
    pub(crate) own: Box<Predictor>,
    /// The others of all logs: predictions are the mean of all of these.
    pub members: Vec<Model>,
    /// Models of halves of the logs, of which two in turn complete each other: their spread is the uncertainty.
    pub halves: Vec<Model>,
}

/// What a model was learned from, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Origin {
    /// The parameters.
    pub params: LearnParams,
    /// Episodes of the logs.
    pub episodes: u64,
    /// Their steps.
    pub steps: u64,
    /// Bad episodes that were left out.
    pub skipped: u64,
    /// The pairs seen in training, sorted.
    pub pairs: Vec<ActionObservation>,
    /// How often each was seen.
    pub pair_counts: Vec<u64>,
    /// What made symbols of measurements, in the words of whoever did that: it is kept with the model, and not looked into.
    pub encoding: Option<String>,
}

/// A learned model. It carries its alphabet and parameters and no reference to its training data.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    pub(super) alphabet: Alphabet,
    pub(super) origin: Origin,
    pub(super) ngram: NGram,
    pub(super) predictor: Predictor,
    pub(super) frequencies: Frequencies,
}

/// How often actions and observations were seen, as prediction needs it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Frequencies {
    /// Share of each action in the logs, π(a); uniform where steps are weighted as if actions had been uniformly random.
    pub(crate) action_shares: Vec<f64>,
    /// Probability that the next observation is one that was not seen in training (Good–Turing).
    pub(crate) unseen: f64,
    pub(crate) fingerprints: Fingerprints,
}

impl Model {
    pub(crate) fn new(alphabet: Alphabet, origin: Origin, ngram: NGram, predictor: Predictor) -> Model {
        let frequencies = Frequencies::of(&alphabet, &origin);
        Model { alphabet, origin, ngram, predictor, frequencies }
    }

    /// What it predicts by.
    pub fn predictor(&self) -> &Predictor {
        &self.predictor
    }

    /// What it was learned from, and how.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Episodes and steps it was learned from.
    pub fn trained_on(&self) -> (u64, u64) {
        (self.origin.episodes, self.origin.steps)
    }

    /// The names of its actions and observations.
    pub fn alphabet(&self) -> &Alphabet {
        &self.alphabet
    }

    /// The parameters it was learned with.
    pub fn params(&self) -> &LearnParams {
        &self.origin.params
    }

    /// The back-off n-gram counted on the same logs.
    pub fn ngram(&self) -> &NGram {
        &self.ngram
    }

    /// The linear model: what it is, or what its POMDP was refined from; of an ensemble that of its first.
    pub fn linear(&self) -> Option<&Linear> {
        self.predictor.alone().linear()
    }

    /// The POMDP it was refined to, if it was; of an ensemble that of its first.
    pub fn latent(&self) -> Option<&Latent> {
        match self.predictor.alone() {
            Predictor::Latent(latent) => Some(latent),
            Predictor::Linear(_) | Predictor::Ensemble(_) => None,
        }
    }

    /// The models that predict together, if there are several.
    pub fn ensemble(&self) -> Option<&Ensemble> {
        match &self.predictor {
            Predictor::Ensemble(ensemble) => Some(ensemble),
            Predictor::Linear(_) | Predictor::Latent(_) => None,
        }
    }

    /// The model alone.
    pub fn without_ensemble(self) -> Model {
        let predictor = match self.predictor {
            Predictor::Ensemble(ensemble) => *ensemble.own,
            alone => alone,
        };
        Model { predictor, ..self }
    }

    /// The linear model that it was refined from; the model itself where it is not refined.
    pub fn without_refinement(self) -> Model {
        let predictor = match self.predictor {
            Predictor::Latent(latent) => Predictor::Linear(latent.linear),
            other => other,
        };
        Model { predictor, ..self }
    }

    /// The same linear model in another basis, as [`Linear::transformed`] has it; `None` for another kind.
    pub fn transformed(&self, j: &[f64], j_inverse: &[f64]) -> Option<Model> {
        let Predictor::Linear(linear) = &self.predictor else { return None };
        Some(self.clone().with_predictor(Predictor::Linear(linear.transformed(j, j_inverse))))
    }

    /// The same logs and alphabet, predicted by something else.
    pub(crate) fn with_predictor(self, predictor: Predictor) -> Model {
        Model { predictor, ..self }
    }

    /// The model with another [`encoding`](Origin::encoding).
    pub fn with_encoding(mut self, encoding: Option<String>) -> Model {
        self.origin.encoding = encoding;
        self
    }

    /// With another weight of the n-gram in predictions.
    pub fn with_mix(mut self, mix: f64) -> Result<Model> {
        self.origin.params.mix = mix;
        self.origin.params.validate()?;
        if let Predictor::Ensemble(Ensemble { members, halves, .. }) = &mut self.predictor {
            members.iter_mut().chain(halves).for_each(|model| model.origin.params.mix = mix);
        }
        Ok(self)
    }

    pub(crate) fn frequencies(&self) -> &Frequencies {
        &self.frequencies
    }

    /// Whether the action was seen in training.
    pub(super) fn knows(&self, a: Action) -> bool {
        a.index() < self.alphabet.actions().len()
    }
}

impl Predictor {
    /// What predicts without the others of an ensemble.
    pub(super) fn alone(&self) -> &Predictor {
        match self {
            Predictor::Ensemble(ensemble) => &ensemble.own,
            alone => alone,
        }
    }

    fn linear(&self) -> Option<&Linear> {
        match self {
            Predictor::Linear(linear) => Some(linear),
            Predictor::Latent(latent) => Some(&latent.linear),
            Predictor::Ensemble(_) => None,
        }
    }
}

impl Frequencies {
    fn of(alphabet: &Alphabet, origin: &Origin) -> Frequencies {
        let (actions, observations) = (alphabet.actions().len(), alphabet.observations().len());
        let mut action_counts = vec![0.0; actions];
        let mut observation_counts = vec![0u64; observations];
        for (ao, &count) in origin.pairs.iter().zip(&origin.pair_counts) {
            action_counts[ao.action.index()] += count as f64;
            observation_counts[ao.observation.index()] += count;
        }
        let steps: f64 = action_counts.iter().sum();
        Frequencies {
            action_shares: match origin.params.weighting {
                Weighting::None => action_counts.iter().map(|n| n / steps).collect(),
                Weighting::Next | Weighting::Propensity => vec![1.0 / actions as f64; actions],
            },
            unseen: unseen(&observation_counts),
            fingerprints: Fingerprints::of(alphabet),
        }
    }
}

/// The probability that the next observation is a new one, by how often each was seen (Good–Turing), with half a symbol more so
/// that it is never zero; at most a half for tiny logs.
pub(crate) fn unseen(counts: &[u64]) -> f64 {
    let once = counts.iter().filter(|&&n| n == 1).count() as f64;
    let steps = counts.iter().sum::<u64>() as f64;
    ((once + 0.5) / (steps + 1.0)).min(0.5)
}
