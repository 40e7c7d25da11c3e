//! Foretell learns a predictive model of a partially observable system from logged trajectories.
//!
//! The state of such a model is a vector of predictions: what will be observed if these actions are
//! taken? It is learned by compressed moments and linear algebra (CPSR; Hamilton, Milani Fard,
//! Pineau 2014, cited as H14), without restarts and local optima. Refinement then turns the linear
//! model into a POMDP by EM ([`Recipe`]).
//!
//! ```
//! use foretell::{LearnParams, Logs, PredictiveState, Seed, domains, learn, score};
//!
//! // Logs: from files with `Logs::files`, or, as here, from a built-in maze.
//! let maze = domains::get("colored-gridworld")?;
//! let sample = |seed| Logs::memory(maze.alphabet().clone(), domains::sample(&maze, 300, 13, Seed(seed)).collect());
//!
//! let params = LearnParams { test_dim: 128, history_dim: 128, rank: 10, ..LearnParams::default() };
//! let model = learn(&sample(1), &params)?;
//!
//! // What will be observed after going north?
//! let mut state = PredictiveState::new(&model);
//! let north = model.alphabet().action("N").unwrap();
//! let total: f64 = state.predict(north).iter().sum();
//! assert!((total + state.unseen() - 1.0).abs() < 1e-9);
//!
//! // How good is it, compared with the exact model, which learning has not seen?
//! let report = score(&model, &sample(2), maze.pomdp())?;
//! assert!(report.horizons[0].log_likelihood > report.baselines["uniform"][0].log_likelihood);
//! # Ok::<(), foretell::Error>(())
//! ```
//!
//! # The paper's notation
//!
//! | paper | here |
//! |---|---|
//! | z ∈ Z; a, o, ao | [`Trajectory`]; [`Action`], [`Observation`], [`ActionObservation`] |
//! | h ∈ H, τ ∈ T | the steps before and after the cuts of a trajectory ([`CutRule`]) |
//! | φ_T, φ_H | [`Projection`], for tests and histories independently |
//! | d_T, d_H, d′ | [`LearnParams::test_dim`], [`LearnParams::history_dim`], [`LearnParams::rank`] |
//! | c₁ (or c_*), c_∞ | [`Linear::initial`](model::Linear::initial), [`Linear::normalizer`](model::Linear::normalizer) |
//! | C_ao; C_⋆ | [`Linear::operator`](model::Linear::operator); [`Linear::step_operator`](model::Linear::step_operator) |
//! | c_t | the state of [`PredictiveState`] |
//!
//! Results are bit-identical for any number of threads in the current rayon pool.

#![forbid(unsafe_code)]

// In the order of the data flow: a module imports only from those above it (tests/imports.rs).
mod error;
mod rng;
mod parameters;
pub mod limits;
mod stop;
mod math;
mod temporary;
pub mod store;
pub mod data;
pub mod encode;
pub mod log;
pub mod trees;
pub mod system;
pub mod pomdp;
pub mod model;
pub mod learn;
pub mod refine;
mod recurrent;
pub mod select;
pub mod plan;
pub mod off_policy;
mod recipe;
pub mod domains;
pub mod testing;
pub mod judge;
pub mod agent;

pub use agent::{Agent, AgentOverrides, AgentParams};
pub use data::{About, Action, ActionObservation, Alphabet, CutRule, End, Observation, ObservationSymbol, Trajectory};
pub use domains::Domain;
pub use error::{Error, Result};
pub use judge::search::Search;
pub use judge::{HorizonScore, Returns, Score, score};
pub use learn::{Keep, Learned, Learner, Moments, OperatorsFrom, Pass, Progress, learn, learn_weighted, learn_with_progress};
pub use log::{Format, Logs, OnBadEpisode, ReadOptions, Reader, Schema, Summary, Writer};
pub use math::Mean;
pub use model::{Cuts, History, LearnOverrides, LearnParams, Model, NGram, NGramFilter, PredictiveState, Projection};
pub use model::{Regression, Start, Weighting};
pub use off_policy::{LogValue, OffPolicy, Target, TargetPolicy, ValueParams};
pub(crate) use parameters::parameters;
pub use plan::{Plan, PlanOverrides, PlanParams, plan};
pub use pomdp::{Belief, Pomdp, PomdpEnvironment, PomdpTables};
pub use recipe::{FitProgress, Fitted, Fitting, Recipe};
pub use refine::{RefineOverrides, RefineParams, Refinement, refine};
pub use rng::{Rng, Seed};
pub use select::{Effort, SelectParams, Selecting, Selection};
pub use stop::StopReason;
pub use store::{Checkpoint, Stamp};
pub use system::{Environment, Filter, Outcome, Policy, Predict, Track, Uniform, rollout};
pub use trees::{Forest, ForestArrays, Inputs, Leaves, Rows, Targets, TreeParams, Trees};

/// Runs the examples of the README as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
