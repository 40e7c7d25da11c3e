//! What acts and what is acted in: environments, policies, rollouts.

mod policy;
mod environment;

pub use environment::{Environment, Outcome, rollout};
pub(crate) use policy::best;
pub use policy::{Always, Exploring, Policy, Scripted, Uniform};
