//! What acts and what is acted in: environments, policies, rollouts, and what follows an episode step by step.

mod filter;
mod policy;
mod environment;

pub use environment::{Environment, Outcome, rollout};
pub use filter::{Filter, Predict, Track};
pub use policy::{Always, Exploring, Policy, Scripted, Uniform};
