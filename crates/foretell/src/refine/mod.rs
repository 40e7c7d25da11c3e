//! Refinement: from predictive states to a proper POMDP.
//!
//! Spectral learning finds states, clustering names them, EM polishes them. What comes out is an ordinary finite [`Pomdp`](crate::Pomdp): its
//! probabilities are proper, its filter cannot get lost, any solver can plan with it.
//!
//! 1. The model filters the logs; its states are clustered inside each class of the last observation.
//! 2. Counting transitions between clusters gives a first T and E.
//! 3. EM raises the likelihood until that of held-out episodes no longer rises.
//!
//! Which kind of states fits (see [`StateLayout`](crate::model::StateLayout)), and how many, is decided by held-out likelihood as well.

mod params;
mod data;
mod cluster;
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

pub use params::{RefineOverrides, RefineParams, StateCount};
pub use refinement::{EmRound, Refinement, refine};
