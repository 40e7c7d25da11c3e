//! A latent model being fitted: rounds of EM, and more states between them.

use serde::Serialize;

use super::data::Data;
use super::em::{Expected, Share, expect};
use super::expect::Lane;
use super::first_look::FirstLook;
use super::latent::Latent;
use super::params::{RefineParams, StateCount};
use crate::data::Alphabet;
use crate::error::Result;
use crate::model::{Candidate, StateLayout};
use crate::rng::Seed;
use crate::stop::StopReason;

/// A smaller gain, in nats per held-out step, is ignored.
const LEAST_GAIN: f64 = 1e-4;
/// After states were split EM has settled if a round gains less than this share of what all rounds
/// since have gained, but not before the least number of rounds, and at the latest after the most.
const SETTLED: f64 = 0.1;
const LEAST_ROUNDS: usize = 4;
const MOST_ROUNDS: usize = 20;
/// Growth ends after this many stages in a row without a gain.
const MOST_FAILURES: usize = 2;
/// The M-step costs as much for each entry of T as the E-step for so many.
const M_STEP: u64 = 8;

/// One round of EM.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct EmRound {
    /// The candidate that is fitted, with its number of states in this round.
    pub candidate: Candidate,
    /// Whether it only serves to compare candidates.
    pub trial: bool,
    /// Its number, from 1.
    pub round: usize,
    /// Mean log-likelihood of a training step, in nats, before this round's update.
    pub training: f64,
    /// The same plus the logarithm of the prior: EM never lowers it as long as the number of states
    /// is the same.
    pub penalised: f64,
    /// Mean log-likelihood of a held-out step, in nats; `None` if there are too few episodes to
    /// hold any out.
    pub held_out: Option<f64>,
}

/// A latent model being fitted.
#[derive(Clone)]
pub(super) struct Fit {
    /// What is fitted, with the number of states that it has grown to.
    pub(super) candidate: Candidate,
    /// The seed of its clusters and of its growth.
    pub(super) seed: Seed,
    pub(super) latent: Latent,
    pub(super) trial: bool,
    pub(super) round: usize,
    /// Entries of T that were visited, as a measure of work.
    pub(super) work: u64,
    /// The parameters that were best on held-out episodes.
    pub(super) best: Latent,
    /// Their number of states.
    pub(super) best_states: usize,
    /// Their held-out log-likelihood.
    pub(super) judged: f64,
    /// The held-out log-likelihood at the last gain, and the round of it.
    pub(super) gained: (f64, usize),
    /// How far its states have grown; `None` if their number no longer changes.
    pub(super) growth: Option<Growth>,
    /// Why fitting stopped.
    pub(super) stopped: Option<StopReason>,
}

/// Growth of the number of states, in stages: states are split, then EM settles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Growth {
    /// Number of times that states were split.
    pub(super) stage: u64,
    /// Rounds of EM since.
    pub(super) rounds: usize,
    /// Stages in a row without a gain.
    pub(super) failures: usize,
    /// The best held-out log-likelihood before this stage, and how much the last stage gained.
    pub(super) before: f64,
    pub(super) last_gain: f64,
    /// Training log-likelihood in the first round of this stage, and in the latest.
    pub(super) first: f64,
    pub(super) latest: f64,
}

impl Growth {
    fn new() -> Growth {
        let nothing = f64::NEG_INFINITY;
        Growth { stage: 0, rounds: 0, failures: 0, before: nothing, last_gain: f64::INFINITY, first: nothing, latest: nothing }
    }

    /// Adds a round of EM with this training log-likelihood; whether EM has settled.
    fn settles(&mut self, training: f64) -> bool {
        self.rounds += 1;
        let gain = training - self.latest;
        if self.rounds == 1 {
            self.first = training;
        }
        self.latest = training;
        self.rounds >= LEAST_ROUNDS && (gain < SETTLED * (training - self.first) || self.rounds >= MOST_ROUNDS)
    }
}

impl Fit {
    pub(super) fn new(candidate: Candidate, latent: Latent, seed: Seed, trial: bool) -> Fit {
        let nothing = f64::NEG_INFINITY;
        Fit {
            candidate,
            seed,
            best: latent.clone(),
            latent,
            trial,
            round: 0,
            work: 0,
            best_states: candidate.states,
            judged: nothing,
            gained: (nothing, 0),
            growth: None,
            stopped: None,
        }
    }

    /// Whether its number of states may grow: it is not given.
    pub(super) fn can_grow(&self, params: &RefineParams) -> bool {
        params.states == StateCount::Auto && !matches!(self.candidate.layout, StateLayout::Modes | StateLayout::Dense)
    }

    /// Whether its states may emit several symbols.
    pub(super) fn emits_several(&self) -> bool {
        matches!(self.candidate.layout, StateLayout::Free | StateLayout::Sensing)
    }

    /// The same with a number of states that grows.
    pub(super) fn growing(self) -> Fit {
        Fit { growth: Some(Growth::new()), ..self }
    }

    /// From a share of the episodes to all of them.
    pub(super) fn in_full(self) -> Fit {
        let candidate = Candidate { states: self.best_states, ..self.candidate };
        Fit::new(candidate, self.best, self.seed, false)
    }

    /// How much better it may yet become: growth hardly ever gains more than a few times as much as
    /// in the last stage.
    pub(super) fn hope(&self) -> f64 {
        const TIMES: f64 = 2.0;
        self.growth.map_or(0.0, |growth| TIMES * growth.last_gain.max(0.0))
    }

    /// One round on one of `every` episodes.
    pub(super) fn round(&mut self, data: &Data<'_>, every: u64) -> Result<EmRound> {
        let share = Share { every, is_held_out: &|i| data.is_held_out(i) };
        let Expected { training, held_out } = expect(&self.latent, data, &share)?;
        let sum =
            |lanes: &[Lane]| lanes.iter().fold((0.0, 0), |(sum, steps), lane| (sum + lane.log_likelihood, steps + lane.steps));
        let ((log_likelihood, steps), (held_sum, held_steps)) = (sum(&training), sum(&held_out));
        self.round += 1;
        self.work += training.iter().chain(&held_out).map(|lane| lane.visited).sum::<u64>() + M_STEP * self.latent.t.len() as u64;
        let round = EmRound {
            candidate: self.candidate,
            trial: self.trial,
            round: self.round,
            training: log_likelihood / steps as f64,
            penalised: (log_likelihood + self.latent.log_prior()) / steps as f64,
            held_out: (held_steps > 0).then(|| held_sum / held_steps as f64),
        };
        let judged = round.held_out.unwrap_or(round.training);
        if judged > self.judged {
            (self.best, self.best_states, self.judged) = (self.latent.clone(), self.candidate.states, judged);
        }
        if judged > self.gained.0 + LEAST_GAIN {
            self.gained = (judged, self.round);
        }
        self.latent.maximise(&training);
        Ok(round)
    }

    /// After a round: splits states, if EM has settled and splitting still gains. Otherwise growth
    /// ends, and EM goes on with the best number of states.
    pub(super) fn grow(&mut self, round: &EmRound, look: &FirstLook, alphabet: &Alphabet, every: u64) {
        let Some(growth) = &mut self.growth else { return };
        if !growth.settles(round.training) {
            return;
        }
        growth.last_gain = self.judged - growth.before;
        growth.failures = if growth.last_gain > LEAST_GAIN { 0 } else { growth.failures + 1 };
        let seed = self.seed.stream("growth").index(growth.stage);
        let goes_on = growth.failures < MOST_FAILURES;
        let grown = goes_on.then(|| look.grown(&self.latent, alphabet, every, seed)).flatten();
        match grown {
            Some(latent) => {
                self.candidate.states = latent.going_on(alphabet);
                self.latent = latent;
                *growth = Growth { stage: growth.stage + 1, rounds: 0, before: self.judged, ..*growth };
            }
            None => {
                if self.candidate.states != self.best_states {
                    (self.latent, self.candidate.states) = (self.best.clone(), self.best_states);
                }
                (self.gained, self.growth) = ((self.judged, self.round), None);
            }
        }
    }
}
