//! A learned model: its origin, and its predictor.

use std::sync::Arc;

use super::latent::Latent;
use super::linear::Linear;
use super::mixture::{Mixture, Part};
use super::ngram::NGram;
use super::params::{LearnParams, Weighting};
use super::recurrent::Recurrent;
use crate::data::{Action, ActionObservation, Alphabet, Digest, Fingerprints, Observation, ObservationSymbol};
use crate::error::Result;
use crate::log::Schema;

/// The predictor of a model. A new kind is a variant here, a file beside this one, and one in
/// `filter/`.
#[derive(Clone, Debug, PartialEq)]
pub enum Predictor {
    /// The n-gram of the model.
    NGram,
    /// A predictive state that is updated by operators.
    Linear(Linear),
    /// A belief over the states of a POMDP.
    Latent(Box<Latent>),
    /// The state of a recurrent network.
    Recurrent(Box<Recurrent>),
    /// A mixture of the above. The first is the one whose states planners use: latent, otherwise
    /// linear, otherwise the n-gram; recurrent if there is no other.
    Mixture(Box<Predictor>, Mixture),
    /// The mean of several models.
    Ensemble(Ensemble),
}

/// Models over the same alphabet whose predictions are averaged. The mean is more accurate, and has
/// a measure of uncertainty.
///
/// Models of all logs differ in their projections, and so in where EM begins. They make different
/// errors, so their mean is better than each. But their differences do not measure sampling error.
/// Models of random halves of the episodes do: the variance of a mean over n/2 draws without
/// replacement from n, around the mean of all, equals that of the mean of n (Politis and Romano
/// 1994). No spread contains the errors that all of them share; [`score`](crate::score()) measures
/// how often the truth is covered.
#[derive(Clone, Debug, PartialEq)]
pub struct Ensemble {
    /// The predictor of the model without the ensemble: the first of those of all logs.
    pub(crate) own: Box<Predictor>,
    /// The other models of all logs: predictions are the mean of these and the first.
    pub members: Vec<Model>,
    /// Models of halves of the logs, in complementary pairs: their spread is the uncertainty.
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
    /// Bad episodes that were skipped.
    pub skipped: u64,
    /// The pairs seen in training, sorted.
    pub pairs: Vec<ActionObservation>,
    /// How often each was seen.
    pub pair_counts: Vec<u64>,
    /// How symbols were computed from measurements, as an opaque text of the caller that is stored
    /// with the model.
    pub encoding: Option<String>,
    /// What the columns of the logs meant, with the cells of measured ones.
    pub schema: Arc<Schema>,
    /// Which episodes of the logs it was learned from; empty where that is not known.
    pub digest: Arc<Digest>,
    /// What a user should know of the file that it was read from, as a sentence.
    pub note: Option<String>,
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

/// Frequencies of actions and observations that prediction needs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Frequencies {
    /// Share of each action in the logs, π(a); uniform where steps are weighted to a uniformly
    /// random policy.
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

    /// A model that predicts by its n-gram.
    pub(crate) fn ngram_alone(alphabet: Alphabet, origin: Origin, ngram: NGram) -> Model {
        Model::new(alphabet, origin, ngram, Predictor::NGram)
    }

    /// Its predictor.
    pub fn predictor(&self) -> &Predictor {
        &self.predictor
    }

    /// What it was learned from, and how.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Number of episodes and steps it was learned from.
    pub fn trained_on(&self) -> (u64, u64) {
        (self.origin.episodes, self.origin.steps)
    }

    /// The names of its actions and observations.
    pub fn alphabet(&self) -> &Alphabet {
        &self.alphabet
    }

    /// The observations that were seen after an action and are the same as a symbol but for the
    /// reward that may be part of them.
    pub fn observations_whatever_reward(&self, a: Action, symbol: &ObservationSymbol) -> Vec<Observation> {
        let is_same = |o: Observation| {
            let own = self.alphabet.symbol(o);
            own == symbol || own.split_reward().is_some_and(|(plain, _)| plain == *symbol)
        };
        self.origin.pairs.iter().filter(|ao| ao.action == a).map(|ao| ao.observation).filter(|&o| is_same(o)).collect()
    }

    /// The parameters it was learned with.
    pub fn params(&self) -> &LearnParams {
        &self.origin.params
    }

    /// The back-off n-gram of the same logs.
    pub fn ngram(&self) -> &NGram {
        &self.ngram
    }

    /// The linear model: the model itself, or the one that its POMDP was refined from. For an
    /// ensemble that of its first model. `None` if the model is an n-gram.
    pub fn linear(&self) -> Option<&Linear> {
        match self.predictor.core() {
            Predictor::Linear(linear) => Some(linear),
            Predictor::Latent(latent) => Some(&latent.linear),
            Predictor::NGram | Predictor::Recurrent(_) | Predictor::Mixture(..) | Predictor::Ensemble(_) => None,
        }
    }

    /// The weights of the predictors, if it is a mixture. For an ensemble those of its first model.
    pub fn mixture(&self) -> Option<&Mixture> {
        match self.predictor.alone() {
            Predictor::Mixture(_, mixture) => Some(mixture),
            _ => None,
        }
    }

    /// The POMDP of a refined model. For an ensemble that of its first model.
    pub fn latent(&self) -> Option<&Latent> {
        match self.predictor.core() {
            Predictor::Latent(latent) => Some(latent),
            _ => None,
        }
    }

    /// The recurrent network: the model itself, or the first one of its mixture. For an ensemble that
    /// of its first model.
    pub fn recurrent(&self) -> Option<&Recurrent> {
        match self.predictor.core() {
            Predictor::Recurrent(net) => Some(net),
            _ => self.mixture()?.members.iter().find_map(|member| match &member.part {
                Part::Recurrent(net) => Some(&**net),
                _ => None,
            }),
        }
    }

    /// The ensemble, if it is one.
    pub fn ensemble(&self) -> Option<&Ensemble> {
        match &self.predictor {
            Predictor::Ensemble(ensemble) => Some(ensemble),
            _ => None,
        }
    }

    /// The first model of an ensemble; any other model as it is.
    pub fn without_ensemble(self) -> Model {
        let predictor = match self.predictor {
            Predictor::Ensemble(ensemble) => *ensemble.own,
            alone => alone,
        };
        Model { predictor, ..self }
    }

    /// The predictor of a mixture whose states planners use; any other model as it is.
    pub fn without_mixture(self) -> Model {
        let predictor = match self.predictor {
            Predictor::Mixture(own, _) => *own,
            other => other,
        };
        Model { predictor, ..self }
    }

    /// The first recurrent network of a mixture as a model of its own, whose states planners then use.
    /// `None` if there is none.
    pub fn recurrent_alone(self) -> Option<Model> {
        let net = self.recurrent()?.clone();
        Some(self.with_predictor(Predictor::Recurrent(Box::new(net))))
    }

    /// The linear model that it was refined from; any other model as it is.
    pub fn without_refinement(self) -> Model {
        let predictor = match self.predictor {
            Predictor::Latent(latent) => Predictor::Linear(latent.linear),
            other => other,
        };
        Model { predictor, ..self }
    }

    /// The same linear model in another basis, by [`Linear::transformed`]; `None` for another kind
    /// of model.
    pub fn transformed(&self, j: &[f64], j_inverse: &[f64]) -> Option<Model> {
        let Predictor::Linear(linear) = &self.predictor else { return None };
        Some(self.clone().with_predictor(Predictor::Linear(linear.transformed(j, j_inverse))))
    }

    /// The same with another number of episodes, where it was learned from pieces of them.
    pub(crate) fn of_episodes(mut self, episodes: u64) -> Model {
        self.origin.episodes = episodes;
        self
    }

    /// The same origin and alphabet with another predictor.
    pub(crate) fn with_predictor(self, predictor: Predictor) -> Model {
        Model { predictor, ..self }
    }

    /// The model with another [`encoding`](Origin::encoding).
    pub fn with_encoding(mut self, encoding: Option<String>) -> Model {
        self.origin.encoding = encoding;
        self
    }

    /// The model with another [`schema`](Origin::schema).
    pub fn with_schema(mut self, schema: Arc<Schema>) -> Model {
        self.origin.schema = schema;
        self
    }

    /// The model with another [`digest`](Origin::digest).
    pub fn with_digest(mut self, digest: Digest) -> Model {
        self.origin.digest = Arc::new(digest);
        self
    }

    /// The model with what another one, which it goes on from, knows of its tables and episodes, and
    /// with these further episodes.
    pub fn continuing(self, earlier: &Model, more: &Digest) -> Model {
        let mut digest = (*earlier.origin.digest).clone();
        digest.merge(more);
        self.with_schema(earlier.origin.schema.clone()).with_digest(digest)
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
    /// The predictor without the other models of an ensemble.
    pub(super) fn alone(&self) -> &Predictor {
        match self {
            Predictor::Ensemble(ensemble) => &ensemble.own,
            alone => alone,
        }
    }

    /// The predictor whose states planners use: never an ensemble or a mixture.
    pub(super) fn core(&self) -> &Predictor {
        match self.alone() {
            Predictor::Mixture(own, _) => own,
            simple => simple,
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
            let observed = &mut observation_counts[ao.observation.index()];
            *observed = observed.saturating_add(count);
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

/// The probability that the next observation was not seen in training, from how often each was
/// (Good–Turing). Half a symbol is added so that it is never zero; it is at most ½ for tiny logs.
pub(crate) fn unseen(counts: &[u64]) -> f64 {
    let once = counts.iter().filter(|&&n| n == 1).count() as f64;
    let steps: f64 = counts.iter().map(|&n| n as f64).sum();
    ((once + 0.5) / (steps + 1.0)).min(0.5)
}
