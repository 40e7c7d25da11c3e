//! From measurements to symbols: how a column of numbers, or of many names, is divided into cells,
//! and how many of them the logs support.

mod bins;
mod encoder;
mod fit;
mod auto;

pub(crate) use auto::{MOST_ROWS, Series, WholeNumbers, fit_automatically, whole_numbers};
pub use bins::Bins;
pub use encoder::Encoder;
pub(crate) use fit::{fit_names, fit_numbers};
