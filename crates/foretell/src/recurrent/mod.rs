//! Recurrent predictive states: logs → a network that predicts the next observation given the
//! history and the action, by back-propagation through time.
//!
//! The state of [`Recurrent`](crate::model::Recurrent) is learned by the gradient of the
//! log-likelihood, in the line of Hefny et al. (2018), but from random weights. `cell.rs` and
//! `head.rs` compute it for the episodes of a lane side by side, so that products are those of
//! matrices; lanes are computed in parallel and added in their order.

mod lane;
mod cell;
mod head;
mod adam;
mod trainer;
mod training;
mod fit;
#[cfg(test)]
mod tests;

pub(crate) use fit::{Budget, FittedNetwork, pass_work};
