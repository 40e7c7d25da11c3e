//! Evaluation: scores of models, values of policies, diagnosis of logs, search for parameters.

mod evaluate;
mod returns;
mod baselines;
mod off_policy;
pub mod diagnose;
pub mod search;

pub use baselines::*;
pub use evaluate::*;
pub use off_policy::*;
pub use returns::*;
