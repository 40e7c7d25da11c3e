//! What logs are made of: symbols, trajectories, batches of episodes, and sequences of steps as
//! keys.

mod escape;
mod symbols;
mod trajectory;
mod groups;
mod overlap;
mod episodes;
mod translation;
mod factors;
mod sequence;
mod digest;

pub(crate) use digest::EpisodeKeys;
pub use digest::{Digest, LearnedFrom};
pub(crate) use episodes::{Episode, Episodes, HELD_OUT, is_held_out};
pub use escape::{escaped, unescaped};
pub use factors::Factors;
pub(crate) use groups::Groups;
pub(crate) use overlap::Overlap;
pub use overlap::Propensities;
pub(crate) use sequence::{EMPTY, Fingerprints, Vocabulary, extend, mix};
pub(crate) use symbols::SEPARATOR;
pub use symbols::{Action, ActionObservation, Alphabet, Observation, ObservationSymbol};
pub use trajectory::{About, CutRule, End, Trajectory};
pub(crate) use translation::Translation;
