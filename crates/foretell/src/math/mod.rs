//! Numbers: vectors, sparse matrices, decompositions, means with intervals.

mod vector;
pub(crate) mod single;
mod statistics;
mod per_step;
mod sparse;
mod svd;
pub(crate) mod brand;
pub(crate) mod cluster;

pub(crate) use per_step::{PerStep, PerStepMean};
pub(crate) use sparse::{Linear, Matrix, SparseMatrix, SparseRows};
pub use statistics::Mean;
pub(crate) use statistics::{Z95, t_quantile};
pub(crate) use svd::Svd;
pub(crate) use vector::{argmax, dot, dot4, dot8, multiply, multiply_transposed, product};
