//! Refinement: from predictive states to a proper POMDP.
//!
//! The result is an ordinary finite [`Pomdp`](crate::Pomdp): its probabilities are proper, its
//! filter cannot get lost, and any solver can plan with it.
//!
//! 1. The model filters the logs; its states are clustered, into few or as many as are wanted.
//! 2. Counting transitions between clusters gives a first T and E.
//!    Another one comes from histories after which the same follows: they are merged into an
//!    automaton.
//! 3. EM raises the likelihood.
//! 4. States whose past and future depend on each other are split, and EM goes on, until the
//!    likelihood of held-out episodes no longer rises.
//!
//! The kind of states (see [`StateLayout`](crate::model::StateLayout)) is also chosen by held-out
//! likelihood.

mod params;
mod data;
mod layout;
mod latent;
mod expect;
mod maximise;
mod first_look;
mod merge;
mod finish;
mod split;
mod grow;
mod em;
mod fit;
mod refinement;
mod saved;
#[cfg(test)]
mod tests;

pub(crate) use data::Data;
pub use fit::EmRound;
pub use params::{RefineOverrides, RefineParams, StateCount};
pub(crate) use refinement::FittedStates;
pub use refinement::{Refinement, refine};
