//! What is learned: models as plain data, their files, and the filters that predict with them.

mod params;
mod projection;
mod ngram;
mod latent;
mod ensemble;
mod linear;
mod filter;
mod file;

pub use ensemble::Ensemble;
pub(crate) use filter::Given;
pub use filter::{Filter, NGramFilter, PredictiveState, UniformFilter};
pub use latent::{Candidate, Refined, StateLayout};
pub use linear::Model;
pub(crate) use linear::{Parts, unseen};
pub use ngram::NGram;
pub(crate) use ngram::{Counter, Past};
pub use params::{Cuts, History, LearnOverrides, LearnParams, Regression, Start, Weighting};
pub(crate) use projection::Columns;
pub use projection::Projection;
