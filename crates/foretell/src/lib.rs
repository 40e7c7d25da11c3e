//! Foretell learns a predictive model of a partially observable system from logged trajectories.

mod cache;
pub mod data;
#[cfg(test)]
mod definitions;
pub mod domains;
pub mod env;
mod error;
pub mod evaluate;
mod features;
mod file;
pub mod filter;
pub mod learn;
pub mod log;
pub mod model;
mod moments;
pub mod ngram;
mod operators;
pub mod params;
pub mod policy;
pub mod pomdp;
pub mod projection;
pub mod rng;
mod sequence;
mod sparse;
mod svd;

pub use data::{Action, ActionObservation, Alphabet, Cut, CutRule, End, Observation, ObservationSymbol, Trajectory};
pub use domains::Domain;
pub use env::{Environment, Outcome, rollout};
pub use error::{Error, Result};
pub use evaluate::{HorizonScore, Score, score};
pub use filter::{Filter, NGramFilter, PredictiveState};
pub use learn::{Pass, Progress, learn, learn_weighted, learn_with_progress};
pub use log::{Format, Logs, OnBadEpisode, ReadOptions, Reader, Summary, Writer};
pub use model::Model;
pub use ngram::NGram;
pub use params::{Cuts, History, LearnOverrides, LearnParams, Regression, Start};
pub use policy::{Policy, Uniform};
pub use pomdp::{Belief, Pomdp, PomdpEnvironment, PomdpTables};
pub use projection::Projection;
pub use rng::{Rng, Seed};
