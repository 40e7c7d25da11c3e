//! Foretell learns a predictive model of a partially observable system from logged trajectories.

pub mod data;
mod error;
pub(crate) mod file;
pub mod log;
pub mod rng;

pub use data::{Action, ActionObservation, Alphabet, Cut, CutRule, End, Observation, ObservationSymbol, Trajectory};
pub use error::{Error, Result};
pub use log::{Format, Logs, OnBadEpisode, ReadOptions, Reader, Summary, Writer};
pub use rng::{Rng, Seed};
