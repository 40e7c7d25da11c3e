//! A network for given episodes, some of which stop its training.

use super::trainer::{Steps, work_per_step};
use super::training::{Training, extended};
use crate::data::{Alphabet, Factors, HELD_OUT, Trajectory, is_held_out};
use crate::model::{Choices, Recurrent, Shape};
use crate::rng::Seed;

/// A training whose outcome can be foreseen is stopped: it is looked at after this many passes, and
/// again after as many.
const LOOK: usize = 6;
/// Passes over all episodes, once held-out ones have decided.
const LAST_PASSES: usize = 4;

/// How much goes into a network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    /// Most multiply-adds of training, but for the last pass.
    pub(crate) work: f64,
    /// Nats per step of the best other predictor. Training stops early if the network stays behind
    /// by more than a tolerance.
    pub(crate) rival: Option<f64>,
}

/// Nats per step that a network may be behind and still be worth its training: in a mixture it then
/// gains hardly anything.
const BEHIND: f64 = 0.01;

/// A network fitted to episodes.
#[derive(Clone, Debug)]
pub(crate) struct FittedNetwork {
    pub(crate) net: Recurrent,
    /// Multiply-adds of its training.
    pub(crate) work: f64,
    seed: Seed,
}

impl FittedNetwork {
    /// Trains a network of `hidden` units on most of the episodes until the others are predicted no
    /// better. `None` if there are too few episodes to hold one out.
    pub(crate) fn of(
        alphabet: &Alphabet,
        episodes: &[Trajectory],
        hidden: usize,
        budget: Budget,
        seed: Seed,
    ) -> Option<FittedNetwork> {
        let steps = |held_out: bool| -> Vec<Steps<'_>> {
            let every = (episodes.len() as u64).clamp(2, HELD_OUT);
            let is_held = |i: u64| if every < HELD_OUT { i % every == every - 1 } else { is_held_out(i) };
            let chosen = (0u64..).zip(episodes).filter(|(i, z)| is_held(*i) == held_out && !z.steps.is_empty());
            chosen.map(|(_, z)| &z.steps[..]).collect()
        };
        let (training, held_out) = (steps(false), steps(true));
        if training.is_empty() || held_out.is_empty() {
            return None;
        }
        let choices = Choices::new(alphabet, &Factors::of(alphabet));
        let seed = seed.index(hidden as u64);
        let training = Training::new(&choices, alphabet.actions().len(), hidden, training, held_out, seed);
        let (net, work) = finish(training, budget);
        Some(FittedNetwork { net, work, seed })
    }

    /// The same after some more passes over all episodes.
    pub(crate) fn extended(&self, episodes: &[Trajectory]) -> Recurrent {
        let steps: Vec<Steps<'_>> = episodes.iter().filter(|z| !z.steps.is_empty()).map(|z| &z.steps[..]).collect();
        extended(&self.net, &steps, LAST_PASSES, self.seed.stream("extended"))
    }
}

/// Multiply-adds of a pass over this many steps of training.
pub(crate) fn pass_work(alphabet: &Alphabet, hidden: usize, steps: usize) -> f64 {
    let sizes = Factors::of(alphabet);
    let (values, factors) = (sizes.sizes().iter().sum(), sizes.sizes().len());
    work_per_step(Shape { actions: alphabet.actions().len(), values, hidden }, factors) * steps as f64
}

/// Trains until the end, the end of the budget, or until the rival cannot be reached. Returns the
/// network, and the multiply-adds of its training.
fn finish(mut training: Training<'_>, budget: Budget) -> (Recurrent, f64) {
    let (mut before, mut spent) = (f64::NEG_INFINITY, 0.0);
    for pass in 1.. {
        if spent >= budget.work || training.next().is_none() {
            break;
        }
        spent += training.pass_work();
        if pass % LOOK == 0 {
            // As much again as was gained since the last look.
            let hoped_for = training.best() + (training.best() - before);
            if budget.rival.is_some_and(|rival| hoped_for < rival - BEHIND) {
                break;
            }
            before = training.best();
        }
    }
    (training.network(), spent)
}
