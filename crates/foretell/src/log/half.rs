//! A random split of the episodes of logs into halves.

use crate::rng::Seed;

/// Decides, episode by episode in order, which belong to one half.
#[derive(Clone, Debug)]
pub(super) struct HalfFilter {
    seed: Seed,
    other: bool,
    episode: u64,
}

impl HalfFilter {
    pub(super) fn new(seed: Seed, other: bool) -> HalfFilter {
        HalfFilter { seed, other, episode: 0 }
    }

    /// Identifies the half.
    pub(super) fn identity(&self) -> (u64, bool) {
        (self.seed.0, self.other)
    }

    /// Whether the next episode belongs to it.
    pub(super) fn takes_next(&mut self) -> bool {
        let coin = self.seed.index(self.episode).rng().bits() >> 63 == 1;
        self.episode += 1;
        coin != self.other
    }
}
