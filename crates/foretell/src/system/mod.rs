//! Environments, policies, rollouts and filters.

mod filter;
mod policy;
mod environment;

pub use environment::{Environment, Outcome, rollout};
pub use filter::{Filter, Predict, Track};
pub use policy::{Always, Exploring, Policy, Scripted, Uniform};
