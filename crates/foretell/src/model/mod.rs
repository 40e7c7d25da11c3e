//! Learned models: models as plain data, their files, and the filters that predict with them.

mod projection;
mod params;
mod ngram;
mod linear;
mod latent;
mod recurrent;
mod mixture;
mod predictor;
mod filter;
mod file;

pub(crate) use file::{MOST_COUNT, digest_arrays, read_digest};
pub use filter::{NGramFilter, PredictiveState, State, UniformFilter};
pub(crate) use filter::{NGramStep, RecurrentFilter};
pub use latent::{Candidate, Latent, StateLayout};
pub use linear::Linear;
pub use mixture::{Member, MemberKind, Mixture, Part};
pub use ngram::NGram;
pub(crate) use ngram::{Counter, Past};
pub use params::{Cuts, History, LearnOverrides, LearnParams, Regression, Start, Weighting};
pub(crate) use predictor::unseen;
pub use predictor::{Ensemble, Model, Origin, Predictor};
pub(crate) use projection::Columns;
pub use projection::Projection;
pub use recurrent::Recurrent;
pub(crate) use recurrent::{Blocks, Choices, FORCED, Shape};
