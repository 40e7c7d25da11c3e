//! Foretell learns a predictive model of a partially observable system from logged trajectories.

pub mod data;
pub mod domains;
pub mod env;
mod error;
pub mod policy;
pub mod pomdp;
pub mod rng;

pub use data::{Action, ActionObservation, Alphabet, Cut, CutRule, End, Observation, ObservationSymbol, Trajectory};
pub use domains::Domain;
pub use env::{Environment, Outcome, rollout};
pub use error::{Error, Result};
pub use policy::{Policy, Uniform};
pub use pomdp::{Belief, Pomdp, PomdpEnvironment, PomdpTables};
pub use rng::{Rng, Seed};
