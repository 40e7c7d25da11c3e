//! Refinement: from predictive states to a proper POMDP.
//!
//! Spectral learning finds states, clustering names them, EM polishes them. What comes out is an ordinary finite [`Pomdp`](crate::Pomdp): its
//! probabilities are proper, its filter cannot get lost, any solver can plan with it.
//!
//! 1. The model filters the logs; its states are clustered inside each class of the last observation.
//! 2. Counting transitions between clusters gives a first T and E.
//! 3. EM raises the likelihood until that of held-out episodes no longer rises.
//!
//! Which kind of states fits (see [`StateLayout`]), and how many, is decided by held-out likelihood as well.

mod cluster;
mod data;
mod finish;
mod latent;
mod layout;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use rayon::prelude::*;
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};

use crate::data::{ActionObservation, Trajectory};
use crate::error::{Error, Result};
use crate::filter::{Filter, PredictiveState};
use crate::log::Logs;
use crate::model::{Model, Refined};
use crate::params::parameters;
use crate::rng::Seed;
use data::Data;
use finish::Fitted;
use latent::{HardCounts, Lane, Latent, Triple};
use layout::{Layout, START};

/// Sums are kept in so many lanes, whatever the number of threads, so that their order is always the same.
const LANES: usize = 8;
/// Steps whose predictive states are clustered.
const SAMPLE: u64 = 1 << 18;
/// Beyond these bounds a linear state is an accident.
const STATE_BOUND: f64 = 20.0;
/// Share of a free state's emissions that is spread over all symbols before EM begins.
const SPREAD: f64 = 0.03;
/// Modes of the hidden-mode layout.
const MODES: usize = 2;
/// How much a mode is expected to stay before EM begins.
const STAY: f64 = 0.9;
/// Candidates are compared on one of so many episodes, but on this many steps at least; where that is all, each is fitted in full.
const TRIAL_SHARE: u64 = 8;
const LEAST_TRIAL: u64 = 1 << 14;
/// Rounds of EM each has in a comparison on a share.
const TRIAL_ROUNDS: usize = 10;
/// Rounds of EM at most, where no episode can be held out.
const UNJUDGED_ROUNDS: usize = 5;
/// Most numbers of T and its counts: 1 GiB.
const LARGEST: usize = 1 << 27;
/// Rounds of EM on all episodes, once the held-out ones have decided.
const LAST_ROUNDS: usize = 3;
/// A smaller gain, in nats per held-out step, does not count as one.
const LEAST_GAIN: f64 = 1e-4;
/// Numbers of owned states that are tried, and of free ones, which cost more.
const OWNED: [usize; 2] = [60, 100];
const FREE: [usize; 3] = [5, 15, 40];

/// What latent states have to do with observations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum StateLayout {
    /// What foretells held-out episodes best
    Auto,
    /// Each state emits one observation: where observations are clear, but alike in many places
    Owned,
    /// A state may emit any observation: where observations are noisy
    Free,
    /// The observation itself and a hidden mode that changes by itself
    Modes,
    /// A state may emit any observation, and EM begins at random: plain Baum–Welch, to compare with
    Dense,
}

/// How many latent states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum StateCount {
    /// As many as foretell held-out episodes best.
    Auto,
    /// About so many.
    About(usize),
}

impl fmt::Display for StateCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StateCount::Auto => f.write_str("auto"),
            StateCount::About(n) => n.fmt(f),
        }
    }
}

impl FromStr for StateCount {
    type Err = String;

    fn from_str(text: &str) -> Result<StateCount, String> {
        match text.parse() {
            _ if text == "auto" => Ok(StateCount::Auto),
            Ok(n) if n > 0 => Ok(StateCount::About(n)),
            _ => Err("give a positive number or auto".into()),
        }
    }
}

impl TryFrom<String> for StateCount {
    type Error = String;

    fn try_from(text: String) -> Result<StateCount, String> {
        text.parse()
    }
}

impl From<StateCount> for String {
    fn from(count: StateCount) -> String {
        count.to_string()
    }
}

parameters! {
    /// What refinement needs to know.
    RefineParams,
    /// Changes to the defaults: one optional value for each field of [`RefineParams`].
    RefineOverrides, "Refinement",
    /// How many latent states: auto, or a number (the start and the ends come on top)
    states: StateCount,
    /// What latent states have to do with observations
    layout: StateLayout,
    /// Most rounds of EM
    em_rounds: usize,
    /// Rounds without a gain on held-out episodes after which EM stops
    patience: usize,
}

impl Default for RefineParams {
    fn default() -> Self {
        RefineParams { states: StateCount::Auto, layout: StateLayout::Auto, em_rounds: 60, patience: 6 }
    }
}

impl RefineParams {
    /// Checks every value once, at the door.
    pub fn validate(&self) -> Result<()> {
        for (name, value) in [("em_rounds", self.em_rounds), ("patience", self.patience)] {
            if value == 0 {
                return Err(Error::parameter(name, value, "must be at least 1"));
            }
        }
        Ok(())
    }
}

/// A kind and number of states that is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// What its states have to do with observations.
    pub layout: StateLayout,
    /// How many there are.
    pub states: usize,
}

/// One round of EM.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct EmRound {
    /// Of which candidate.
    pub candidate: Candidate,
    /// Whether it only serves to choose among candidates.
    pub trial: bool,
    /// Its number, from 1.
    pub round: usize,
    /// Mean log-likelihood of a training step, nats, before this round's change.
    pub training: f64,
    /// The same with the logarithm of the prior: what EM never lowers.
    pub penalised: f64,
    /// Mean log-likelihood of a held-out step; `None` if the logs are too small to hold any out.
    pub held_out: Option<f64>,
}

/// Refinement under way: each item of the iterator is a round of EM. [`Refinement::finish`] gives the model.
pub struct Refinement<'a> {
    model: &'a Model,
    data: Data<'a>,
    params: RefineParams,
    first_look: FirstLook,
    /// Still to be tried, the next last.
    waiting: Vec<Candidate>,
    /// Candidates are compared on one of so many episodes.
    every: u64,
    /// The best that was fitted so far.
    leader: Option<Fit>,
    fit: Option<Fit>,
    done: bool,
}

/// A latent model being fitted.
struct Fit {
    candidate: Candidate,
    latent: Latent,
    trial: bool,
    round: usize,
    /// The best on held-out episodes.
    best: Latent,
    /// How good that is.
    judged: f64,
    /// What it was when it last counted as a gain, and in which round.
    gained: (f64, usize),
}

/// What one pass over the logs tells.
struct FirstLook {
    triples: FxHashSet<Triple>,
    /// How often each symbol was seen in training episodes.
    seen: Vec<f64>,
    /// Episodes with the predictive state after each step, f32s one after the other.
    sample: Vec<(Vec<ActionObservation>, Vec<f32>)>,
}

/// Refines a model on logs, which should be those it was learned from.
pub fn refine(model: &Model, logs: &Logs, params: &RefineParams) -> Result<Model> {
    let mut refinement = Refinement::new(model, logs, params)?;
    refinement.by_ref().collect::<Result<Vec<_>>>()?;
    refinement.finish()
}

impl<'a> Refinement<'a> {
    /// Reads the logs, which may know no symbol that the model does not.
    pub fn new(model: &'a Model, logs: &'a Logs, params: &RefineParams) -> Result<Refinement<'a>> {
        Refinement::over(model, Data::new(logs, model.alphabet())?, params)
    }

    fn over(model: &'a Model, data: Data<'a>, params: &RefineParams) -> Result<Refinement<'a>> {
        params.validate()?;
        let first_look = FirstLook::new(model, &data)?;
        let mut waiting = candidates(model, params);
        let mut params = params.clone();
        if !data.holds_out() {
            // Nobody to judge: the simplest, and not for long.
            waiting.sort_by_key(|candidate| std::cmp::Reverse(candidate.states));
            waiting.drain(..waiting.len() - 1);
            params.em_rounds = params.em_rounds.min(UNJUDGED_ROUNDS);
        }
        waiting.reverse();
        let every = if waiting.len() == 1 { 1 } else { TRIAL_SHARE.min(data.steps / LEAST_TRIAL).max(1) };
        Ok(Refinement { model, data, params, first_look, waiting, every, leader: None, fit: None, done: false })
    }

    /// The model with its refinement. Held-out episodes, which have had their say, are taken in.
    pub fn finish(self) -> Result<Model> {
        let Some(Fit { mut best, candidate, .. }) = self.leader.or(self.fit) else { return Ok(self.model.clone()) };
        for _ in 0..LAST_ROUNDS {
            let (training, _) = sums(&best, &self.data, 1, |_| false)?;
            best.maximise(&training);
        }
        let Fitted { pomdp, visits, reward_sd, fading } = finish::pomdp(self.model, &self.data, &best)?;
        Ok(self.model.clone().refined_to(Refined { pomdp, visits, reward_sd, fading, candidate }))
    }

    /// The next candidate; after the last the best of them in earnest, if they were compared on a share.
    fn next_fit(&mut self) -> Result<Option<Fit>> {
        let begin = |candidate, trial| Ok(Fit::new(candidate, self.first_look.latent(self.model, candidate)?, trial));
        if let Some(candidate) = self.waiting.pop() {
            return begin(candidate, self.every > 1).map(Some);
        }
        self.leader.take_if(|leader| leader.trial).map(|leader| begin(leader.candidate, false)).transpose()
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
        let (most, every) =
            if fit.trial { (TRIAL_ROUNDS.min(self.params.em_rounds), self.every) } else { (self.params.em_rounds, 1) };
        let round = fit.round(&self.data, every)?;
        if fit.round < most && fit.round - fit.gained.1 < self.params.patience {
            self.fit = Some(fit);
        } else if self.leader.as_ref().is_none_or(|leader| fit.judged > leader.judged) {
            self.leader = Some(fit);
        }
        Ok(Some(round))
    }
}

impl Iterator for Refinement<'_> {
    type Item = Result<EmRound>;

    fn next(&mut self) -> Option<Result<EmRound>> {
        let round = self.round().transpose();
        self.done |= matches!(round, Some(Err(_)));
        round
    }
}

impl Fit {
    fn new(candidate: Candidate, latent: Latent, trial: bool) -> Fit {
        let nothing = f64::NEG_INFINITY;
        Fit { candidate, best: latent.clone(), latent, trial, round: 0, judged: nothing, gained: (nothing, 0) }
    }

    /// One round on one of `every` episodes.
    fn round(&mut self, data: &Data<'_>, every: u64) -> Result<EmRound> {
        let (training, held_out) = sums(&self.latent, data, every, |i| data.is_held_out(i))?;
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

/// Sums over one of `every` episodes: of those to learn from, and of those held out.
fn sums(
    latent: &Latent,
    data: &Data<'_>,
    every: u64,
    is_held_out: impl Fn(u64) -> bool + Sync,
) -> Result<(Vec<Lane>, Vec<Lane>)> {
    let mut lanes: Vec<(Lane, Lane)> = (0..LANES).map(|_| (latent.lane(), Lane::default())).collect();
    data.each(|first, episodes| {
        lanes.par_iter_mut().enumerate().for_each(|(l, (training, held_out))| {
            for (i, z) in (first..).zip(episodes).filter(|(i, _)| *i % LANES as u64 == l as u64) {
                // Held-out episodes are every tenth, so a share is taken of tens.
                if !(i / 10).is_multiple_of(every) {
                    continue;
                }
                if is_held_out(i) {
                    latent.score(&z.steps, held_out);
                } else {
                    latent.expect(&z.steps, training);
                }
            }
        });
    })?;
    Ok(lanes.into_iter().unzip())
}

fn check_size(states: usize, actions: usize, transitions: usize) -> Result<()> {
    let entries = actions.saturating_mul(transitions);
    if entries <= LARGEST {
        return Ok(());
    }
    let problem = format!("{states} states would need {} GiB for their transitions", (entries >> 27) + 1);
    Err(Error::data(problem, "ask for fewer states"))
}

/// What is worth trying.
fn candidates(model: &Model, params: &RefineParams) -> Vec<Candidate> {
    let going_on = model.alphabet().observations().iter().filter(|o| !o.terminal).count();
    let numbers = |layout| match (params.states, layout) {
        (_, StateLayout::Modes) => vec![MODES * going_on],
        (StateCount::About(n), _) => vec![n],
        (StateCount::Auto, StateLayout::Free) => FREE.to_vec(),
        (StateCount::Auto, StateLayout::Dense) => vec![OWNED[0]],
        // Several states for many of the symbols, or there is nothing to refine.
        (StateCount::Auto, _) => OWNED.iter().zip([3, 4]).map(|(&states, halves)| states.max(going_on * halves / 2)).collect(),
    };
    let layouts = match params.layout {
        // The number of states of modes is not free.
        StateLayout::Auto if params.states != StateCount::Auto => vec![StateLayout::Owned, StateLayout::Free],
        StateLayout::Auto => vec![StateLayout::Owned, StateLayout::Free, StateLayout::Modes],
        layout => vec![layout],
    };
    layouts.into_iter().flat_map(|layout| numbers(layout).into_iter().map(move |states| Candidate { layout, states })).collect()
}

impl FirstLook {
    fn new(model: &Model, data: &Data<'_>) -> Result<FirstLook> {
        let symbols = model.alphabet().observations().len();
        let mut look = FirstLook { triples: FxHashSet::default(), seen: vec![0.0; symbols], sample: Vec::new() };
        let every = data.steps.div_ceil(SAMPLE);
        data.each(|first, episodes| {
            for (i, z) in (first..).zip(episodes) {
                let mut before = symbols as u32;
                for ao in &z.steps {
                    look.triples.insert((ao.action.0, before, ao.observation.0));
                    before = ao.observation.0;
                    if !data.is_held_out(i) {
                        look.seen[ao.observation.0 as usize] += 1.0;
                    }
                }
            }
            let is_taken = |(i, _): &(u64, &Trajectory)| !data.is_held_out(*i) && i.is_multiple_of(every);
            let taken: Vec<&Trajectory> = (first..).zip(episodes).filter(is_taken).map(|(_, z)| z).collect();
            look.sample.par_extend(taken.into_par_iter().map_init(
                || PredictiveState::linear(model),
                |filter, z| {
                    filter.reset();
                    let mut states = Vec::with_capacity(z.steps.len() * model.rank());
                    for &ao in &z.steps {
                        filter.observe(ao);
                        states.extend(filter.state().iter().map(|x| x.clamp(-STATE_BOUND, STATE_BOUND) as f32));
                    }
                    (z.steps.clone(), states)
                },
            ));
        })?;
        Ok(look)
    }

    /// The first estimate of a candidate.
    fn latent(&self, model: &Model, candidate: Candidate) -> Result<Latent> {
        let alphabet = model.alphabet();
        // At most as many as there are steps to tell them apart by.
        let steps: usize = self.sample.iter().map(|(steps, _)| steps.len()).sum();
        let states = candidate.states.min(steps.max(1));
        let actions = alphabet.actions().len();
        let (layout, hard) = match candidate.layout {
            StateLayout::Modes => {
                let layout = Layout::modes(alphabet, MODES);
                check_size(layout.states, actions, layout.most_transitions(&self.triples))?;
                let hard = self.random_modes(&layout, Seed(model.params.seed).stream("modes"));
                (layout, hard)
            }
            StateLayout::Owned | StateLayout::Auto => {
                let layout = Layout::owned(alphabet, &self.seen, states);
                check_size(layout.states, actions, layout.most_transitions(&self.triples))?;
                let hard = self.owned(model, &layout);
                (layout, hard)
            }
            StateLayout::Free | StateLayout::Dense => {
                check_size(states, actions, states.saturating_mul(states))?;
                if candidate.layout == StateLayout::Free { self.free(model, states) } else { self.dense(model, states) }
            }
        };
        Ok(Latent::new(layout, actions, &hard, &self.triples, &self.seen))
    }

    /// States clustered inside each class of the last observation.
    fn owned(&self, model: &Model, layout: &Layout) -> HardCounts {
        let (dim, seed) = (model.rank(), Seed(model.params.seed).stream("clusters"));
        let mut points: Vec<Vec<f32>> = vec![Vec::new(); self.seen.len()];
        for (steps, states) in &self.sample {
            for (ao, state) in steps.iter().zip(states.chunks_exact(dim)) {
                let o = ao.observation.0 as usize;
                if layout.active[o].len() > 1 {
                    points[o].extend_from_slice(state);
                }
            }
        }
        let centres =
            |(o, points): (usize, &Vec<f32>)| cluster::centres(points, dim, layout.active[o].len(), seed.index(o as u64));
        let centres: Vec<Vec<f32>> = points.par_iter().enumerate().map(centres).collect();
        self.counts(dim, |ao, state| {
            let o = ao.observation.0 as usize;
            let cluster = if centres[o].is_empty() { 0 } else { cluster::nearest(&centres[o], state) };
            layout.active[o][cluster]
        })
    }

    /// States clustered whatever was observed, except where it ended the episode.
    fn free(&self, model: &Model, states: usize) -> (Layout, HardCounts) {
        let (dim, alphabet) = (model.rank(), model.alphabet());
        let ends = |ao: &ActionObservation| alphabet.is_terminal(ao.observation);
        let mut points = Vec::new();
        for (steps, all) in &self.sample {
            let going_on = steps.iter().zip(all.chunks_exact(dim)).filter(|(ao, _)| !ends(ao));
            going_on.for_each(|(_, state)| points.extend_from_slice(state));
        }
        let centres = cluster::centres(&points, dim, states, Seed(model.params.seed).stream("clusters"));
        let found = (centres.len() / dim).max(1);
        // States of symbols that end episodes come after all others.
        let mut last = found as u32;
        let end: Vec<u32> = alphabet
            .observations()
            .iter()
            .map(|symbol| {
                last += u32::from(symbol.terminal);
                last
            })
            .collect();
        let assign = |ao: &ActionObservation, state: &[f32]| match ends(ao) {
            true => end[ao.observation.0 as usize],
            false => 1 + cluster::nearest(&centres, state) as u32,
        };
        let mut hard = self.counts(dim, assign);
        let mut totals = vec![0.0; last as usize + 1];
        hard.emissions.iter().for_each(|(&(s, _), n)| totals[s as usize] += n);
        let going_on: f64 = self.seen.iter().zip(alphabet.observations()).filter(|(_, o)| !o.terminal).map(|(n, _)| n).sum();
        let emitted = |s: u32, o: usize| {
            let counted = hard.emissions.get(&(s, o as u32)).copied().unwrap_or(0.0) / totals[s as usize].max(1.0);
            (1.0 - SPREAD) * counted + SPREAD * self.seen[o] / going_on
        };
        let layout = Layout::free(alphabet, found, emitted);
        let spread: Vec<((u32, u32), f64)> = layout
            .active
            .iter()
            .take(self.seen.len())
            .enumerate()
            .filter(|(o, _)| !alphabet.observations()[*o].terminal)
            .flat_map(|(o, active)| active.iter().map(move |&s| (s, o)))
            .map(|(s, o)| ((s, o as u32), emitted(s, o) * totals[s as usize]))
            .collect();
        hard.emissions.extend(spread);
        (layout, hard)
    }

    /// States drawn at random.
    fn dense(&self, model: &Model, states: usize) -> (Layout, HardCounts) {
        let alphabet = model.alphabet();
        let mut rng = Seed(model.params.seed).stream("dense").rng();
        let layout = Layout::free(alphabet, states, |_, _| 1.0);
        let mut hard = HardCounts::default();
        for (steps, _) in &self.sample {
            let drawn = steps.iter().map(|ao| &layout.active[ao.observation.0 as usize]);
            let drawn: Vec<u32> = drawn.map(|active| active[rng.below(active.len())]).collect();
            hard.add(steps, &drawn);
        }
        (layout, hard)
    }

    /// Modes drawn at random, each likely to stay.
    fn random_modes(&self, layout: &Layout, seed: Seed) -> HardCounts {
        let mut rng = seed.rng();
        let mut counts = HardCounts::default();
        for (steps, _) in &self.sample {
            let mut mode = rng.below(MODES);
            let states = steps.iter().map(|ao| {
                if rng.uniform() > STAY {
                    mode = rng.below(MODES);
                }
                let active = &layout.active[ao.observation.0 as usize];
                active[mode.min(active.len() - 1)]
            });
            let states: Vec<u32> = states.collect();
            counts.add(steps, &states);
        }
        counts
    }

    fn counts(&self, dim: usize, assign: impl Fn(&ActionObservation, &[f32]) -> u32) -> HardCounts {
        let mut counts = HardCounts::default();
        for (steps, all) in &self.sample {
            let states: Vec<u32> = steps.iter().zip(all.chunks_exact(dim)).map(|(ao, state)| assign(ao, state)).collect();
            counts.add(steps, &states);
        }
        counts
    }
}

impl HardCounts {
    /// Counts an episode whose steps led to these states.
    fn add(&mut self, steps: &[ActionObservation], states: &[u32]) {
        let mut before = START as u32;
        for (ao, &s) in steps.iter().zip(states) {
            *self.transitions.entry((ao.action.0, before, s)).or_default() += 1.0;
            *self.emissions.entry((s, ao.observation.0)).or_default() += 1.0;
            before = s;
        }
    }
}
