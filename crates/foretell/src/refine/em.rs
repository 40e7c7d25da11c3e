//! The E-step over all episodes, or a share of them.

use rayon::prelude::*;

use super::data::Data;
use super::expect::{LANES, Lane};
use super::latent::Latent;
use crate::data::{HELD_OUT, Trajectory};
use crate::error::Result;

/// The result of the E-step summed over episodes: training episodes, and those held out.
///
/// Sums are kept in lanes. An episode goes to a lane by its number, so sums do not depend on how
/// episodes are divided into blocks.
pub(super) struct Expected {
    pub(super) training: Vec<Lane>,
    pub(super) held_out: Vec<Lane>,
}

impl Expected {
    fn new(latent: &Latent) -> Expected {
        Expected { training: vec![latent.lane(); LANES], held_out: vec![Lane::default(); LANES] }
    }

    /// Adds one of `every` episodes of a block, whose first has the number `first`.
    fn add(&mut self, latent: &Latent, share: &Share<'_>, first: u64, episodes: &[Trajectory]) {
        let lanes = (self.training.par_iter_mut(), self.held_out.par_iter_mut()).into_par_iter().enumerate();
        lanes.for_each(|(l, (training, held_out))| {
            for (i, z) in (first..).zip(episodes).filter(|(i, _)| *i % LANES as u64 == l as u64) {
                match share.of(i) {
                    Part::Neither => {}
                    Part::HeldOut => latent.score(&z.steps, held_out),
                    Part::Training => latent.expect(&z.steps, training),
                }
            }
        });
    }
}

/// Which episodes are learned from, and which are held out.
pub(super) struct Share<'a> {
    pub(super) every: u64,
    pub(super) is_held_out: &'a (dyn Fn(u64) -> bool + Sync),
}

/// The use of an episode.
enum Part {
    Training,
    HeldOut,
    Neither,
}

impl Share<'_> {
    fn of(&self, i: u64) -> Part {
        // Every tenth episode is held out, so a share consists of whole tens.
        match ((i / HELD_OUT).is_multiple_of(self.every), (self.is_held_out)(i)) {
            (false, _) => Part::Neither,
            (true, true) => Part::HeldOut,
            (true, false) => Part::Training,
        }
    }
}

/// The E-step over all blocks.
pub(super) fn expect(latent: &Latent, data: &Data<'_>, share: &Share<'_>) -> Result<Expected> {
    let mut expected = Expected::new(latent);
    data.each(|first, episodes| expected.add(latent, share, first, episodes))?;
    Ok(expected)
}
