//! Foretell learns a predictive model of a partially observable system from logged trajectories.

pub mod data;
mod error;
pub mod rng;

pub use data::{Action, ActionObservation, Alphabet, Cut, CutRule, End, Observation, ObservationSymbol, Trajectory};
pub use error::{Error, Result};
pub use rng::{Rng, Seed};
