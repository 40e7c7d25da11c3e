//! Which predictors to use, by evidence: a family of predictors is fitted to part of the logs, and
//! the rest tells how to weigh them.
//!
//! 1. Steps are held out: whole episodes where there are many, pieces of few long ones; several
//!    times in turn where logs are small.
//! 2. The cheapest predictors come first: n-grams, linear models of all ranks from one
//!    decomposition, then POMDPs by EM and recurrent networks, as far as the effort allows; and POMDPs
//!    that begin with a network's states, where it predicts as well.
//! 3. The result is the mixture of them that predicts the held-out steps best ([`Mixture`]).
//! 4. If rewards are not determined by action and observation, all of this is done again with
//!    rewards as part of observations, and the better of the two is kept.
//! 5. If some columns of observations help no n-gram to predict the others, the family is fitted
//!    without them, to say whether they can be spared.
//!
//! The effort is a matter of work and not of time, so that results do not depend on the clock.
//!
//! [`Mixture`]: crate::model::Mixture

mod parts;
mod evidence;
mod stack;
mod rewards;
mod trial;
mod columns;
mod family;

use serde::{Deserialize, Serialize};

use crate::model::{LearnOverrides, MemberKind};

pub use columns::SpareColumns;
pub(crate) use family::Family;
pub use rewards::RewardChoice;

/// How much work goes into finding a good predictor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Effort {
    /// N-grams and linear models only
    Quick,
    /// POMDPs too, fitted by EM, and recurrent networks
    #[default]
    Normal,
    /// More folds, more rounds of EM, more POMDPs in the mixture, and larger networks
    Thorough,
}

/// How predictors are selected.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SelectParams {
    /// How much work goes into it.
    pub effort: Effort,
    /// The only kind of predictor to use; all kinds if `None`.
    pub only: Option<MemberKind>,
    /// Parameters of learning that were given, and are not selected.
    pub fixed: LearnOverrides,
    /// Leave out recurrent networks, unless they are all that is wanted: where there are others,
    /// planners do not use them.
    #[serde(skip)]
    pub for_planning: bool,
}

/// The stages of a selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selecting {
    /// N-grams and linear models are fitted.
    Linear,
    /// POMDPs are fitted.
    Latent,
    /// Recurrent networks are trained.
    Recurrent,
    /// Weights are fitted.
    Weights,
    /// The same is done without columns of observations that may be spare.
    Columns,
    /// The same is done with rewards as part of observations.
    Rewards,
    /// What was selected is fitted to all logs.
    Last,
}

/// A predictor that was tried.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tried {
    /// Its kind.
    pub kind: MemberKind,
    /// Its size in words: `up to 2 steps`, `rank 8`, `62 states`, `64 units`.
    pub size: String,
    /// Mean log-likelihood of a held-out step; `None` if nothing could be held out.
    pub nats: Option<f64>,
    /// How much better the selected mixture predicts a held-out step, nats.
    pub behind: Option<f64>,
    /// Standard error of that difference; `None` if there is at most one held-out part.
    pub error: Option<f64>,
    /// Its weight in the mixture.
    pub weight: f64,
}

/// How much better the predictor with the largest weight is than if it had been fitted to half of
/// the logs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Doubling {
    /// The kind of the predictor.
    pub kind: MemberKind,
    /// The gain, in nats per held-out step.
    pub gain: f64,
    /// Its standard error.
    pub error: f64,
}

/// What was selected, and the evidence for it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Selection {
    /// The effort that was made.
    pub effort: Effort,
    /// Mean log-likelihood of a held-out step under the mixture, whose weights were chosen on the
    /// same steps; `None` if nothing could be held out.
    pub nats: Option<f64>,
    /// Standard error of that mean; `None` if there is at most one held-out part.
    pub error: Option<f64>,
    /// The predictors that were tried, simplest first.
    pub tried: Vec<Tried>,
    /// How long weights remember what happened in the episode: 0 if they are constant.
    pub memory: f64,
    /// The rank of the linear model; `None` if there is none.
    pub rank: Option<usize>,
    /// Whether rewards are part of observations, if that was compared.
    pub rewards: Option<RewardChoice>,
    /// Columns of observations that help to predict neither the others nor rewards.
    pub columns: Option<SpareColumns>,
    /// What the last doubling of the logs was worth; `None` if that was not tried.
    pub doubling: Option<Doubling>,
    /// Why no linear model was tried, and so no POMDP.
    pub problem: Option<String>,
    /// Number of times that a part of the logs was held out.
    pub folds: usize,
    /// Held-out episodes or pieces, and their steps.
    pub parts: usize,
    /// Held-out steps.
    pub steps: usize,
    /// The share of them whose action or observation was not seen in training.
    pub unseen: f64,
    /// The length of the pieces that few long episodes were cut into.
    pub piece_length: Option<usize>,
    /// One of this many episodes was used for the selection.
    pub every: u64,
}
