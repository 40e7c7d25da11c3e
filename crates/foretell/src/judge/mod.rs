//! Evaluation: scores of models, values of policies, diagnosis of logs, search for parameters.

mod compare;
mod horizons;
mod evaluate;
mod returns;
mod baselines;
mod follow;
pub mod diagnose;
pub mod search;

pub use baselines::*;
pub use compare::{Comparison, Verdict};
pub use evaluate::*;
pub use follow::{EventScore, FollowedStep, follow, observations_of, score_event};
pub use horizons::HorizonScore;
pub use returns::*;
