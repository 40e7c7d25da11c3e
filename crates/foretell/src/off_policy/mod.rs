//! Off-policy evaluation: the value of a policy from logs of another.
//!
//! [`Evidence`] holds weighted episodes and has the [`Estimator`]s; [`Behaviour`] knows or estimates
//! the probabilities of logged actions, [`Target`] those of the policy in question; `fitted.rs`
//! estimates its Q. [`value_of`] puts them together for one policy, [`cross_fitted`] for a way to
//! plan; [`OffPolicy`] also compares the policy with what was logged.

mod bounds;
mod estimators;
mod behaviour;
mod target;
mod fitted;
mod value;
mod rollouts;
mod replan;
mod verdict;
mod evaluate;
mod words;

pub use behaviour::{Behaviour, Propensities};
pub use bounds::{Bound, Bounded};
pub use estimators::{Estimated, Estimator, Evidence, Overlap, Weighted};
pub use evaluate::{CrossFit, Distribution, LogValue, OffPolicy, Support};
pub use replan::CrossFitted;
pub use target::{Target, TargetPolicy};
pub use value::{ValueParams, cross_fitted, value_of};
pub use verdict::{Comparison, Verdict};
