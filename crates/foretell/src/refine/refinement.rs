//! Refinement in progress: candidates, rounds of EM, the best candidate.

use rayon::prelude::*;
use serde::Serialize;

use super::data::Data;
use super::expect::{LANES, Lane};
use super::finish::Fitted;
use super::first_look::{self, FirstLook};
use super::latent::Latent;
use super::layout::MODES;
use crate::data::{HELD_OUT, Trajectory};
use crate::error::Result;
use crate::log::Logs;
use crate::model::{Latent as LatentModel, Model, Predictor};
use crate::rng::Seed;
use crate::stop::StopReason;
use crate::store::Checkpoint;

use super::finish;
use super::params::{RefineParams, StateCount};
use crate::model::{Candidate, StateLayout};

/// The name of its part in a checkpoint.
const PART: &str = "refinement";
/// Candidates are compared on one of this many episodes, but on at least `LEAST_TRIAL` steps. If
/// that includes all episodes, each candidate is fitted in full.
const TRIAL_SHARE: u64 = 8;
const LEAST_TRIAL: u64 = 1 << 14;
/// Rounds of EM for each candidate in a comparison on a share of the episodes.
const TRIAL_ROUNDS: usize = 10;
/// Kinds of states whose held-out log-likelihood is within this of the best, in nats per step, are
/// all fitted in full: a share of the episodes hardly shows which is better, and the order may
/// change with the number of episodes.
const CLOSE: f64 = 0.005;
/// Candidates that are behind the best by more than this, in nats per held-out step, add nothing to
/// a mixture with it.
const FAR: f64 = 0.05;
/// Most rounds of EM if no episode can be held out.
const UNJUDGED_ROUNDS: usize = 5;
/// Rounds of EM on all episodes, after held-out ones have decided.
const LAST_ROUNDS: usize = 3;
/// A smaller gain, in nats per held-out step, is ignored.
const LEAST_GAIN: f64 = 1e-4;
/// Numbers of owned states to try, and of free ones, which cost more.
const OWNED: [usize; 2] = [60, 100];
const FREE: [usize; 3] = [5, 15, 40];

/// One round of EM.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct EmRound {
    /// The candidate that is fitted.
    pub candidate: Candidate,
    /// Whether it only serves to compare candidates.
    pub trial: bool,
    /// Its number, from 1.
    pub round: usize,
    /// Mean log-likelihood of a training step, in nats, before this round's update.
    pub training: f64,
    /// The same plus the logarithm of the prior: EM never lowers it.
    pub penalised: f64,
    /// Mean log-likelihood of a held-out step, in nats; `None` if there are too few episodes to
    /// hold any out.
    pub held_out: Option<f64>,
}

/// Refinement in progress: each item of the iterator is a round of EM. [`Refinement::finish`] gives
/// the model.
pub struct Refinement<'a> {
    /// The linear model.
    pub(super) model: Model,
    pub(super) data: Data<'a>,
    pub(super) params: RefineParams,
    pub(super) first_look: FirstLook,
    /// Candidates still to be tried; the last is the next.
    pub(super) waiting: Vec<Candidate>,
    /// Candidates are compared on one of this many episodes; 1 means all.
    pub(super) every: u64,
    /// Candidates tried on a share of the episodes, with their held-out log-likelihood.
    pub(super) tried: Vec<(Candidate, f64)>,
    /// The best candidate fitted so far.
    pub(super) leader: Option<Fit>,
    /// Other fits in full; only if they are wanted.
    pub(super) rivals: Option<Vec<Fit>>,
    /// How often the best candidate is still to be fitted again from other clusters.
    pub(super) restarts: u64,
    pub(super) fit: Option<Fit>,
    pub(super) done: bool,
    pub(super) trace: Vec<EmRound>,
    /// Where its state is saved.
    pub(super) checkpoint: Option<&'a mut Checkpoint>,
}

/// A latent model being fitted.
pub(super) struct Fit {
    pub(super) candidate: Candidate,
    pub(super) latent: Latent,
    pub(super) trial: bool,
    pub(super) round: usize,
    /// The parameters that were best on held-out episodes.
    pub(super) best: Latent,
    /// Their held-out log-likelihood.
    pub(super) judged: f64,
    /// The held-out log-likelihood at the last gain, and the round of it.
    pub(super) gained: (f64, usize),
    /// Why fitting stopped.
    pub(super) stopped: Option<StopReason>,
}

/// Refines a model on logs, which should be those it was learned from.
pub fn refine(model: &Model, logs: &Logs, params: &RefineParams) -> Result<Model> {
    let mut refinement = Refinement::new(model, logs, params)?;
    refinement.by_ref().collect::<Result<Vec<_>>>()?;
    refinement.finish()
}

impl<'a> Refinement<'a> {
    /// Reads the logs. All their symbols must be in the model's alphabet.
    pub fn new(model: &Model, logs: &'a Logs, params: &RefineParams) -> Result<Refinement<'a>> {
        Refinement::over(model, Data::new(logs, model.alphabet())?, params)
    }

    /// The same on logs that were read already.
    pub(crate) fn over(model: &Model, data: Data<'a>, params: &RefineParams) -> Result<Refinement<'a>> {
        params.validate()?;
        let model = model.clone().without_ensemble().without_mixture().without_refinement();
        let first_look = FirstLook::of(&model, &data)?;
        let mut waiting = candidates(&model, params);
        let mut params = params.clone();
        if !data.holds_out() {
            // Nothing to compare by: only the simplest candidate, for a few rounds.
            waiting.sort_by_key(|candidate| std::cmp::Reverse(candidate.states));
            waiting.drain(..waiting.len() - 1);
            params.em_rounds = params.em_rounds.min(UNJUDGED_ROUNDS);
        }
        waiting.reverse();
        let every = if waiting.len() == 1 { 1 } else { TRIAL_SHARE.min(data.steps / LEAST_TRIAL).max(1) };
        Ok(Refinement {
            model,
            data,
            params,
            first_look,
            waiting,
            every,
            tried: Vec::new(),
            leader: None,
            rivals: None,
            restarts: 0,
            fit: None,
            done: false,
            trace: Vec::new(),
            checkpoint: None,
        })
    }

    /// Resumes from a checkpoint if it has this part, and saves to it after rounds when a save is
    /// due.
    pub fn checkpointed(mut self, checkpoint: &'a mut Checkpoint) -> Result<Refinement<'a>> {
        if let Some(bytes) = checkpoint.load(PART)? {
            self.restore(&bytes, &checkpoint.path(PART).display().to_string())?;
        }
        self.checkpoint = Some(checkpoint);
        Ok(self)
    }

    /// Why fitting the best candidate stopped; `None` before the end.
    pub fn stopped(&self) -> Option<StopReason> {
        self.leader.as_ref().filter(|_| self.done).and_then(|leader| leader.stopped)
    }

    /// All rounds so far, including those before an interruption.
    pub fn trace(&self) -> &[EmRound] {
        &self.trace
    }

    fn save_if_due(&mut self) -> Result<()> {
        let is_due = self.checkpoint.as_mut().is_some_and(|checkpoint| checkpoint.is_due());
        let bytes = is_due.then(|| self.to_bytes());
        self.checkpoint.iter_mut().zip(bytes).try_for_each(|(checkpoint, bytes)| checkpoint.save(PART, &bytes))
    }

    /// Keeps all fits for [`Refinement::into_fits`], and fits the best candidate again from other
    /// clusters, so many times.
    pub(crate) fn keeping_rivals(self, restarts: u64) -> Refinement<'a> {
        Refinement { rivals: Some(Vec::new()), restarts, ..self }
    }

    /// The best candidate and up to `others` that come close to it, with the parameters that were
    /// best on held-out episodes, best first; and the logs.
    pub(crate) fn into_fits(self, others: usize) -> (Vec<FittedStates>, Data<'a>) {
        let Some(leader) = self.leader else { return (Vec::new(), self.data) };
        let mut fits = self.rivals.unwrap_or_default();
        fits.retain(|fit| fit.judged > leader.judged - FAR);
        fits.sort_by(|x, y| y.judged.total_cmp(&x.judged));
        fits.truncate(others);
        fits.insert(0, leader);
        let fitted = |Fit { candidate, best, gained, .. }| FittedStates { candidate, latent: best, rounds: gained.1 };
        (fits.into_iter().map(fitted).collect(), self.data)
    }

    /// The candidates that were fitted in full, and their held-out log-likelihood in nats per step.
    pub(crate) fn judged(&self) -> Vec<(Candidate, f64)> {
        self.leader.iter().chain(self.rivals.iter().flatten()).map(|fit| (fit.candidate, fit.judged)).collect()
    }

    /// The refined model. Held-out episodes, which are no longer needed for comparison, are learned
    /// from too.
    pub fn finish(self) -> Result<Model> {
        let Some(Fit { best, candidate, gained, .. }) = self.leader.or(self.fit) else { return Ok(self.model) };
        let mut fitted = FittedStates { candidate, latent: best, rounds: gained.1 };
        fitted.continue_on(&self.data, LAST_ROUNDS)?;
        let latent = fitted.model(&self.model, &self.data)?;
        Ok(self.model.with_predictor(Predictor::Latent(Box::new(latent))))
    }

    /// The next candidate. After the last one, if all were compared on a share of the episodes, the
    /// best are fitted in full; then the best of all is fitted again, if that is wanted.
    fn next_fit(&mut self) -> Result<Option<Fit>> {
        if self.waiting.is_empty() && self.every > 1 {
            self.waiting = finalists(&self.tried);
            self.leader = None;
            self.every = 1;
        }
        let seed = Seed(self.model.params().seed);
        let (candidate, seed) = match (self.waiting.pop(), &self.leader) {
            (Some(candidate), _) => (candidate, seed),
            (None, Some(leader)) if self.restarts > 0 => {
                self.restarts -= 1;
                (leader.candidate, seed.stream("restarts").index(self.restarts))
            }
            _ => return Ok(None),
        };
        let latent = self.first_look.latent(&self.model, candidate, seed)?;
        Ok(Some(Fit::new(candidate, latent, self.every > 1)))
    }

    fn round(&mut self) -> Result<Option<EmRound>> {
        if self.done {
            return Ok(None);
        }
        if self.fit.is_none() {
            self.fit = self.next_fit()?;
        }
        let Some(mut fit) = self.fit.take() else {
            self.done = true;
            return Ok(None);
        };
        let most = if fit.trial { TRIAL_ROUNDS.min(self.params.em_rounds) } else { self.params.em_rounds };
        let round = fit.round(&self.data, self.every)?;
        // A candidate that is far behind after the rounds of a trial will not catch up.
        let is_far_behind = |leader: &Fit| fit.judged < leader.judged - CLOSE;
        fit.stopped = if fit.round >= TRIAL_ROUNDS && self.leader.as_ref().is_some_and(is_far_behind) {
            Some(StopReason::Behind)
        } else if fit.round - fit.gained.1 >= self.params.patience {
            Some(StopReason::NoGain)
        } else {
            (fit.round >= most).then_some(StopReason::Rounds)
        };
        if fit.stopped.is_none() {
            self.fit = Some(fit);
            return Ok(Some(round));
        }
        if fit.trial {
            self.tried.push((fit.candidate, fit.judged));
        }
        let beaten = match &self.leader {
            Some(leader) if fit.judged <= leader.judged => Some(fit),
            _ => self.leader.replace(fit),
        };
        if let (Some(rivals), Some(beaten)) = (&mut self.rivals, beaten) {
            rivals.extend(Some(beaten).filter(|fit| !fit.trial));
        }
        Ok(Some(round))
    }
}

/// The fitted parameters of a candidate.
#[derive(Clone, Debug)]
pub(crate) struct FittedStates {
    pub(crate) candidate: Candidate,
    latent: Latent,
    /// Rounds of EM after which held-out episodes were predicted best.
    pub(crate) rounds: usize,
}

impl FittedStates {
    /// Number of states.
    pub(crate) fn size(&self) -> usize {
        self.latent.layout.states
    }

    /// Continues EM on all episodes.
    pub(crate) fn continue_on(&mut self, data: &Data<'_>, rounds: usize) -> Result<()> {
        let all = Share { every: 1, is_held_out: &|_| false };
        for _ in 0..rounds {
            let expected = expect(&self.latent, data, &all)?;
            self.latent.maximise(&expected.training);
        }
        Ok(())
    }

    /// The same states with room for symbols that follow each other in `more` and did not in `data`,
    /// over the same alphabet, and a few rounds of EM on `more`.
    pub(crate) fn extended(&self, data: &Data<'_>, more: &Data<'_>) -> Result<FittedStates> {
        let all = Share { every: 1, is_held_out: &|_| false };
        let hard = self.latent.expected_counts(&expect(&self.latent, data, &all)?.training);
        let (triples, seen) = first_look::symbols(more, self.latent.unigram().len())?;
        let layout = self.latent.layout.clone().with_patterns(&more.patterns());
        let latent = Latent::new(layout, self.latent.actions, &hard, &triples, &seen);
        let mut fitted = FittedStates { candidate: self.candidate, latent, rounds: self.rounds };
        fitted.continue_on(more, LAST_ROUNDS)?;
        Ok(fitted)
    }

    /// The POMDP with the linear model that it was refined from; rewards are those of the episodes.
    pub(crate) fn model(&self, model: &Model, data: &Data<'_>) -> Result<LatentModel> {
        let Fitted { pomdp, visits, reward_sd, fading, reward_memory } = finish::pomdp(model, data, &self.latent)?;
        let linear = model.linear().expect("the first look was taken with it").clone();
        Ok(LatentModel { linear, pomdp, visits, reward_sd, fading, reward_memory, candidate: self.candidate })
    }
}

impl Iterator for Refinement<'_> {
    type Item = Result<EmRound>;

    fn next(&mut self) -> Option<Result<EmRound>> {
        let round = self.round().and_then(|round| {
            if let Some(round) = round {
                self.trace.push(round);
                self.save_if_due()?;
            }
            Ok(round)
        });
        let round = round.transpose();
        self.done |= matches!(round, Some(Err(_)));
        round
    }
}

impl Fit {
    fn new(candidate: Candidate, latent: Latent, trial: bool) -> Fit {
        let nothing = f64::NEG_INFINITY;
        Fit { candidate, best: latent.clone(), latent, trial, round: 0, judged: nothing, gained: (nothing, 0), stopped: None }
    }

    /// One round on one of `every` episodes.
    fn round(&mut self, data: &Data<'_>, every: u64) -> Result<EmRound> {
        let share = Share { every, is_held_out: &|i| data.is_held_out(i) };
        let Expected { training, held_out } = expect(&self.latent, data, &share)?;
        let sum =
            |lanes: &[Lane]| lanes.iter().fold((0.0, 0), |(sum, steps), lane| (sum + lane.log_likelihood, steps + lane.steps));
        let ((log_likelihood, steps), (held_sum, held_steps)) = (sum(&training), sum(&held_out));
        self.round += 1;
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
            (self.best, self.judged) = (self.latent.clone(), judged);
        }
        if judged > self.gained.0 + LEAST_GAIN {
            self.gained = (judged, self.round);
        }
        self.latent.maximise(&training);
        Ok(round)
    }
}

/// The result of the E-step summed over episodes: training episodes, and those held out.
///
/// Sums are kept in lanes. An episode goes to a lane by its number, so sums do not depend on how
/// episodes are divided into blocks.
struct Expected {
    training: Vec<Lane>,
    held_out: Vec<Lane>,
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
struct Share<'a> {
    every: u64,
    is_held_out: &'a (dyn Fn(u64) -> bool + Sync),
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
fn expect(latent: &Latent, data: &Data<'_>, share: &Share<'_>) -> Result<Expected> {
    let mut expected = Expected::new(latent);
    data.each(|first, episodes| expected.add(latent, share, first, episodes))?;
    Ok(expected)
}

/// The best candidate of each kind of states that comes close to the best of all; the best of all
/// is last.
fn finalists(tried: &[(Candidate, f64)]) -> Vec<Candidate> {
    let mut ranked = tried.to_vec();
    ranked.sort_by(|x, y| y.1.total_cmp(&x.1));
    let mut close: Vec<Candidate> = Vec::new();
    for (i, &(candidate, judged)) in ranked.iter().enumerate() {
        if i == 0 || judged > ranked[0].1 - CLOSE && close.iter().all(|other| other.layout != candidate.layout) {
            close.push(candidate);
        }
    }
    close.reverse();
    close
}

/// The candidates to try.
fn candidates(model: &Model, params: &RefineParams) -> Vec<Candidate> {
    let going_on = model.alphabet().observations().iter().filter(|o| !o.terminal).count();
    let numbers = |layout| match (params.states, layout) {
        (_, StateLayout::Modes) => vec![MODES * going_on],
        (StateCount::About(n), _) => vec![n],
        (StateCount::Auto, StateLayout::Free) => FREE.to_vec(),
        (StateCount::Auto, StateLayout::Dense) => vec![OWNED[0]],
        // Several states for many of the symbols; with fewer there is nothing to refine.
        (StateCount::Auto, _) => OWNED.iter().zip([3, 4]).map(|(&states, halves)| states.max(going_on * halves / 2)).collect(),
    };
    let layouts = match params.layout {
        // The number of states of modes is fixed.
        StateLayout::Auto if params.states != StateCount::Auto => vec![StateLayout::Owned, StateLayout::Free],
        StateLayout::Auto => vec![StateLayout::Owned, StateLayout::Free, StateLayout::Modes],
        layout => vec![layout],
    };
    layouts.into_iter().flat_map(|layout| numbers(layout).into_iter().map(move |states| Candidate { layout, states })).collect()
}
