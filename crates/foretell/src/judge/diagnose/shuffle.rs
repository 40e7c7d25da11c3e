//! Shuffled cuts: the history of each cut with the tests of another, far from it.
//!
//! The tests of each episode are rotated by a random number of cuts, and episodes are permuted. So
//! each history and each test occurs exactly as often as before, and neighbours mostly stay
//! neighbours, which keeps the autocorrelation on which the noise depends.

use crate::learn::{Batch, Cut, Pairing};
use crate::rng::{Rng, Seed};

/// Cuts of the same episode that are fewer steps apart are near: they may still depend on each
/// other.
pub(super) const GAP: usize = 30;
/// Shuffles tried; the one with the fewest near pairs is used.
const ATTEMPTS: usize = 20;
/// Fraction of near pairs that is small enough to stop trying.
const FEW: f64 = 0.01;

/// A shuffled batch.
pub(super) struct Shuffled {
    pub(super) pairings: Vec<Pairing>,
    /// How many pairs are near.
    pub(super) near: usize,
}

/// Shuffles the cuts of a batch.
pub(super) fn shuffled(batch: &Batch<'_>, seed: Seed) -> Shuffled {
    let histories: Vec<Cut> = batch.cuts().collect();
    let enough = (FEW * histories.len() as f64) as usize;
    let mut rng = seed.rng();
    let mut best: Option<Shuffled> = None;
    for _ in 0..ATTEMPTS {
        let pairings = paired(&histories, &rotated(batch, &mut rng));
        let near = pairings.iter().filter(|pairing| is_near(pairing)).count();
        if best.as_ref().is_none_or(|best| near < best.near) {
            best = Some(Shuffled { pairings, near });
        }
        if best.as_ref().is_some_and(|best| best.near <= enough) {
            break;
        }
    }
    best.expect("at least one attempt")
}

/// All cuts, with episodes in random order and each rotated by a random number of cuts.
fn rotated(batch: &Batch<'_>, rng: &mut Rng) -> Vec<Cut> {
    let mut order: Vec<usize> = (0..batch.episodes.len()).collect();
    // Fisher and Yates
    (1..order.len()).rev().for_each(|i| order.swap(i, rng.below(i + 1)));
    let mut cuts = Vec::new();
    for i in order {
        let first = cuts.len();
        cuts.extend(batch.episodes[i].cuts());
        let episode = &mut cuts[first..];
        if !episode.is_empty() {
            episode.rotate_left(rng.below(episode.len()));
        }
    }
    cuts
}

fn paired(histories: &[Cut], tests: &[Cut]) -> Vec<Pairing> {
    histories.iter().zip(tests).map(|(&history, &tests)| Pairing { history, tests }).collect()
}

fn is_near(pairing: &Pairing) -> bool {
    let Pairing { history, tests } = pairing;
    history.first == tests.first && history.at.abs_diff(tests.at) < GAP
}
