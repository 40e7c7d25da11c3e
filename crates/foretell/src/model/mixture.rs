//! A mixture of predictors of the same logs, with weights that held-out steps chose.

use serde::{Deserialize, Serialize};

use super::latent::Candidate;
use super::recurrent::Recurrent;
use crate::pomdp::Pomdp;

/// Predictors of the same logs, and how much each counts.
///
/// P(o ‖ a) = Σ_k w_k P_k(o ‖ a). Within an episode weights follow the evidence: before step t,
/// ln w_k = ln w⁰_k + Σ_{i<t} λ^{t−i} ln P_k(o_i ‖ a_i) up to a constant. With λ = 0 they stay as
/// they are, and with λ = 1 they are the posterior of a Bayesian mixture.
#[derive(Clone, Debug, PartialEq)]
pub struct Mixture {
    /// The predictors with a positive weight; weights sum to 1.
    pub(crate) members: Vec<Member>,
    /// λ, how long the weights remember what happened in the episode.
    pub(crate) memory: f64,
}

/// One predictor of a mixture.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// w⁰, its weight at the start of an episode.
    pub weight: f64,
    /// The predictor.
    pub part: Part,
}

/// What a member predicts by.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// The model's n-gram with contexts of up to this many pairs.
    NGram(usize),
    /// The linear model.
    Linear,
    /// The POMDP that the model is refined into.
    Latent,
    /// Another POMDP, fitted to the same logs from other states.
    Other(Candidate, Box<Pomdp>),
    /// A recurrent network.
    Recurrent(Box<Recurrent>),
}

/// The kind of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemberKind {
    /// A back-off n-gram.
    #[serde(rename = "ngram")]
    NGram,
    /// A linear predictive state.
    Linear,
    /// The belief over latent states.
    Latent,
    /// The state of a recurrent network.
    Recurrent,
}

impl Mixture {
    /// Its members.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// λ, how long the weights remember what happened in the episode: 0 if they are constant.
    pub fn memory(&self) -> f64 {
        self.memory
    }

    /// The weight of all members of a kind together.
    pub fn weight_of(&self, kind: MemberKind) -> f64 {
        self.members.iter().filter(|member| member.part.kind() == kind).map(|member| member.weight).sum()
    }
}

impl Part {
    /// Its kind.
    pub fn kind(&self) -> MemberKind {
        match self {
            Part::NGram(_) => MemberKind::NGram,
            Part::Linear => MemberKind::Linear,
            Part::Latent | Part::Other(..) => MemberKind::Latent,
            Part::Recurrent(_) => MemberKind::Recurrent,
        }
    }
}
