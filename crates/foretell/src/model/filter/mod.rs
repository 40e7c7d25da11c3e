//! The state after a history, one file for each kind of predictor.

mod linear;
mod latent;
mod ngram;
mod mixture;
mod ensemble;
mod state;

pub(crate) use ngram::NGramStep;
pub use ngram::{NGramFilter, UniformFilter};
pub use state::{PredictiveState, State};
