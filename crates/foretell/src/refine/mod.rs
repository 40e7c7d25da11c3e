//! Refinement: from predictive states to a proper POMDP.
//!
//! Spectral learning finds states, clustering makes them discrete, EM improves them. The result is
//! an ordinary finite [`Pomdp`](crate::Pomdp): its probabilities are proper, its filter cannot get
//! lost, and any solver can plan with it.
//!
//! 1. The model filters the logs; its states are clustered within each class of the last
//!    observation.
//! 2. Counting transitions between clusters gives a first T and E.
//! 3. EM raises the likelihood until that of held-out episodes no longer rises.
//!
//! The kind of states (see [`StateLayout`](crate::model::StateLayout)) and their number are also
//! chosen by held-out likelihood.

mod params;
mod data;
mod layout;
mod latent;
mod expect;
mod maximise;
mod first_look;
mod finish;
mod refinement;
mod saved;
#[cfg(test)]
mod tests;

pub(crate) use data::Data;
pub use params::{RefineOverrides, RefineParams, StateCount};
pub(crate) use refinement::FittedStates;
pub use refinement::{EmRound, Refinement, refine};
