//! One half of the episodes of logs, or the other.

use crate::rng::Seed;

/// Which episodes belong to a half, while they are read in their order.
#[derive(Clone, Debug)]
pub(super) struct Half {
    seed: Seed,
    other: bool,
    episode: u64,
}

impl Half {
    pub(super) fn new(seed: Seed, other: bool) -> Half {
        Half { seed, other, episode: 0 }
    }

    /// What tells it from others.
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
