//! The state after a history, one file for each kind of predictor.

mod linear;
mod latent;
mod recurrent;
mod ngram;
mod mixture;
mod ensemble;
mod state;

pub(crate) use ngram::NGramStep;
pub use ngram::{NGramFilter, UniformFilter};
pub(crate) use recurrent::RecurrentFilter;
pub use state::{PredictiveState, State};
