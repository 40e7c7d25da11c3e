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
mod ranks;
mod work;
mod learner;
#[cfg(test)]
mod definitions;

pub(crate) use bases::Whitening;
pub(crate) use features::{Batch, Cut, EpisodeCuts, Features, NULL_TEST, Pairing, Side};
pub use learner::{Learned, Learner, OperatorsFrom, Pass, Progress, learn, learn_weighted, learn_with_progress};
pub(crate) use learner::{MEMORY, count_over, first_alphabet, learn_over, refuse_no_rewards};
pub(crate) use moments::wanted;
pub use moments::{Keep, Moments};
pub(crate) use ranks::{Learn, LearnedRanks, RankedModels};
pub(crate) use source::{Source, empty_batch};
pub(crate) use sums::Accumulator;
pub(crate) use survey::{Survey, rule};
