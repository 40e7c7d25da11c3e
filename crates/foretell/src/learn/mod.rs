//! From logs to a linear model [H14 §3.2.1], in stages over blocks of episodes.
//!
//! | stage | over blocks | what it gives |
//! |---|---|---|
//! | survey | `Survey::add`, `merge` | alphabet, counts, n-gram, time limit |
//! | freeze | | `Moments::freeze`: alphabet, cut rule and features are fixed |
//! | moments | `Moments::add`, `merge` | Σ̂_TH, Σ̂_TT, Σ̂_HH, and Σ̂_{T,ao,H} of each pair where they fit |
//! | bases | | `Moments::solve`: Û, B |
//! | operators | `Operators::add` | C_ao, where the moments of pairs are not held |
//! | model | | `Moments::finish` |
//!
//! Sums over different blocks can be added, saved and loaded. [`Learner`] is the loop over the
//! stages; [`diagnose`](crate::judge::diagnose) and [`search`](crate::judge::search) use the same
//! stages.

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
pub(crate) use features::{Batch, EpisodeCuts, Features, NULL_TEST, Side};
pub use learner::{Learned, Learner, OperatorsFrom, Pass, Progress, learn, learn_weighted, learn_with_progress};
pub(crate) use learner::{MEMORY, first_alphabet, learn_over, refuse_no_rewards};
pub use moments::{Keep, Moments};
pub(crate) use moments::{check_size, no_room, wanted};
pub(crate) use operators::{Operator, Operators};
pub(crate) use source::{Source, empty_batch};
pub(crate) use sums::{Accumulator, Matrices};
pub(crate) use survey::{Survey, rule};
