//! Training a network until episodes that it does not learn from are predicted no better.

use super::trainer::{Pace, Steps, Trainer};
use crate::model::{Choices, Recurrent};
use crate::rng::Seed;

/// Adam's rate at first.
const RATE: f32 = 5e-3;
/// What it is multiplied by when nothing was gained in `PATIENCE` passes, and how often; then
/// training ends.
const FALL: f32 = 0.3;
const FALLS: usize = 2;
const PATIENCE: usize = 3;
/// A smaller gain, in nats per step or as a share of what is lost, counts as none.
const GAIN: f64 = 1e-4;
const SHARE_GAINED: f64 = 1e-3;
/// Weights decay by this over the number of episodes, times the rate, but by no more than a bound.
const DECAY: f32 = 300.0;
const MOST_DECAY: f32 = 0.3;
/// The longest memory of a unit at first, in steps.
const MOST_MEMORY: usize = 100;
/// Few episodes are gone over several times in a pass, until it has this many batches.
const BATCHES: usize = 12;

/// A training in progress: each item is a pass over the episodes.
pub(crate) struct Training<'a> {
    trainer: Trainer<'a>,
    training: Vec<Steps<'a>>,
    held_out: Vec<Steps<'a>>,
    /// Multiply-adds of a pass.
    pass_work: f64,
    pub(super) pace: Pace,
    /// Nats per held-out step of the best weights so far.
    best: f64,
    kept: Vec<f32>,
    waited: usize,
    falls: usize,
}

/// How well held-out steps are predicted after a pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Passed {
    /// By the weights after it, nats per step.
    pub(crate) nats: f64,
    /// By the best weights so far.
    pub(crate) best: f64,
}

impl<'a> Training<'a> {
    /// Random weights for episodes to learn from, and others to judge by.
    pub(crate) fn new(
        choices: &'a Choices,
        actions: usize,
        hidden: usize,
        training: Vec<Steps<'a>>,
        held_out: Vec<Steps<'a>>,
        seed: Seed,
    ) -> Training<'a> {
        let memory = training.iter().map(|z| z.len()).max().unwrap_or(0).min(MOST_MEMORY);
        let trainer = Trainer::new(choices, actions, hidden, memory, seed);
        let decay = decay(training.len() + held_out.len());
        Training::over(trainer, training, held_out, Pace { rate: RATE, decay, dropout: true })
    }

    fn over(trainer: Trainer<'a>, mut training: Vec<Steps<'a>>, held_out: Vec<Steps<'a>>, pace: Pace) -> Training<'a> {
        let times = BATCHES.div_ceil(Trainer::batches(&training)).max(1);
        training = training.repeat(times);
        let steps: usize = training.iter().map(|z| z.len()).sum();
        let pass_work = trainer.work_per_step() * steps as f64;
        let kept = trainer.weights.clone();
        let mut training =
            Training { trainer, training, held_out, pass_work, pace, best: f64::NEG_INFINITY, kept, waited: 0, falls: 0 };
        training.best = training.nats();
        training
    }

    /// Multiply-adds of a pass.
    pub(crate) fn pass_work(&self) -> f64 {
        self.pass_work
    }

    /// Mean log-likelihood of a held-out step.
    fn nats(&self) -> f64 {
        let steps: usize = self.held_out.iter().map(|z| z.len()).sum();
        self.trainer.score(&self.held_out) / steps.max(1) as f64
    }

    /// The network that predicts held-out episodes best.
    pub(crate) fn network(&self) -> Recurrent {
        self.trainer.network(self.kept.clone())
    }

    /// How well held-out steps are predicted by the best weights, nats per step.
    pub(crate) fn best(&self) -> f64 {
        self.best
    }

    /// Goes on from the best weights at a lower rate.
    fn slow_down(&mut self) {
        self.trainer.restart(&self.kept);
        self.pace.rate *= FALL;
        self.waited = 0;
        self.falls += 1;
    }
}

impl Iterator for Training<'_> {
    type Item = Passed;

    fn next(&mut self) -> Option<Passed> {
        if self.falls > FALLS {
            return None;
        }
        let is_finite = self.trainer.pass(&self.training, self.pace);
        let nats = self.nats();
        let least = GAIN.min(SHARE_GAINED * self.best.abs());
        self.waited = if nats > self.best + least { 0 } else { self.waited + 1 };
        if nats > self.best {
            self.best = nats;
            self.kept.copy_from_slice(&self.trainer.weights);
        }
        if self.waited >= PATIENCE || !is_finite || !nats.is_finite() {
            self.slow_down();
        }
        Some(Passed { nats, best: self.best })
    }
}

fn decay(episodes: usize) -> f32 {
    (DECAY / episodes as f32).min(MOST_DECAY)
}

/// A network that goes on learning from all episodes at a low rate, once others have decided when to
/// stop.
pub(super) fn extended(net: &Recurrent, episodes: &[Steps<'_>], passes: usize, seed: Seed) -> Recurrent {
    let mut trainer = Trainer::of(net, seed);
    let mut pace = Pace { rate: RATE * FALL * FALL, decay: decay(episodes.len()), dropout: true };
    let mut finite = true;
    for pass in 0..passes {
        if pass == passes / 2 {
            pace.rate *= FALL;
        }
        finite &= trainer.pass(episodes, pace);
    }
    match finite && trainer.weights.iter().all(|w| w.is_finite()) {
        true => trainer.network(trainer.weights.clone()),
        false => net.clone(),
    }
}
