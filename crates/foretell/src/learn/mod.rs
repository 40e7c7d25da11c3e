//! From logs to a linear model [H14 §3.2.1]: survey, moments, bases, operators.

mod source;
mod features;
mod survey;
mod sums;
mod pairs;
mod bases;
mod operators;
mod assemble;
mod moments;
mod work;
mod learner;
#[cfg(test)]
mod definitions;

pub(crate) use assemble::Parts;
pub(crate) use bases::{Nested, Whitening};
pub(crate) use bases::{column, first_row};
pub(crate) use features::{Batch, Episode as EpisodeFeatures, Features, NULL_TEST, Side};
pub use learner::{Keep, Learned, Learner, OperatorsFrom, Pass, Progress, learn, learn_weighted, learn_with_progress};
pub(crate) use learner::{MEMORY, first_alphabet, learn_over, refuse_no_rewards};
pub use moments::Moments;
pub(crate) use moments::{check_size, no_room, wanted};
pub(crate) use operators::{Operator, Operators};
pub(crate) use source::{Source, empty_batch};
pub(crate) use sums::{Accumulator, Matrices};
pub(crate) use survey::rule;
