//! Refinement in progress: candidates, rounds of EM, the best candidate.

use super::data::Data;
use super::em::{Share, expect};
use super::finish::Fitted;
use super::first_look::{self, FirstLook, may_sense};
use super::fit::{EmRound, Fit};
use super::latent::Latent;
use super::layout::MODES;
use crate::data::Alphabet;
use crate::error::Result;
use crate::log::Logs;
use crate::model::{Latent as LatentModel, Model, Predictor, Recurrent};
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
const LEAST_TRIAL: u64 = 1 << 15;
/// Rounds of EM for each candidate in a comparison on a share of the episodes.
const TRIAL_ROUNDS: usize = 10;
/// Candidates whose held-out log-likelihood is within this of the best, in nats per step, are all
/// fitted in full, unless they cost so many times more: a share of the episodes hardly shows which
/// is better, and the order may change with the number of episodes.
const CLOSE: f64 = 0.005;
const COSTLY: u64 = 2;
/// Candidates that are behind the best by more than this, in nats per held-out step, add nothing to
/// a mixture with it.
const FAR: f64 = 0.05;
/// Most rounds of EM if no episode can be held out.
const UNJUDGED_ROUNDS: usize = 5;
/// Rounds of EM on all episodes, after held-out ones have decided.
const LAST_ROUNDS: usize = 3;
/// With fewer steps for each state EM ends where it begins, and other starts teach nothing.
const STEPS_PER_STATE: u64 = 20;
/// Limit for the work of a fit, in entries of T that are visited: about a minute on two cores.
const MOST_WORK: u64 = 1 << 36;
/// The number of free states from which they grow.
const FREE: usize = 5;
/// How many times more states a fit begins with that is repeated from another start: the n-th from
/// the end.
const TIMES: [usize; 4] = [2, 4, 8, 1];
/// States that emit several symbols are fitted again so often, where logs have few steps. The result
/// is kept if it predicts held-out steps better by a number of nats per step that is not just luck.
const RESTARTS: u64 = 2;
const FEW_STEPS: u64 = 1 << 16;
const RESTART_GAIN: f64 = 0.002;
/// The number of states where EM starts at random.
const DENSE: usize = 60;

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
    /// How well the automaton of merged histories predicts before EM, if there is one: others that
    /// come not close to it are given up, and EM goes on from it if no other is better.
    pub(super) automaton: Option<f64>,
    /// Candidates are compared on one of this many episodes; 1 means all.
    pub(super) every: u64,
    /// Candidates tried on a share of the episodes; later those that are still to be fitted in full,
    /// the best last.
    pub(super) tried: Vec<Fit>,
    /// The best candidate fitted so far.
    pub(super) leader: Option<Fit>,
    /// Other fits in full; only if they are wanted.
    pub(super) rivals: Option<Vec<Fit>>,
    /// How often the best candidate is still to be fitted again from other clusters.
    pub(super) restarts: u64,
    pub(super) fit: Option<Fit>,
    pub(super) done: bool,
    /// Limit for the work of each fit, in entries of T that are visited.
    pub(super) most_work: u64,
    pub(super) trace: Vec<EmRound>,
    /// Where its state is saved.
    pub(super) checkpoint: Option<&'a mut Checkpoint>,
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
        let mut first_look = FirstLook::of(&model, &data)?;
        let mut waiting = candidates(&model, params);
        if params.layout == StateLayout::Merged || params.layout == StateLayout::Auto && data.holds_out() {
            first_look.merged = first_look.merge(model.alphabet());
        }
        if params.layout == StateLayout::Auto && first_look.merged.is_none() {
            waiting.retain(|candidate| candidate.layout != StateLayout::Merged);
        }
        if params.layout == StateLayout::Auto && !may_sense(model.alphabet()) {
            waiting.retain(|candidate| candidate.layout != StateLayout::Sensing);
        }
        let mut params = params.clone();
        if !data.holds_out() {
            // Nothing to compare by: only the simplest candidate, for a few rounds.
            waiting.sort_by_key(|candidate| std::cmp::Reverse(candidate.states));
            waiting.drain(..waiting.len() - 1);
            params.em_rounds = params.em_rounds.min(UNJUDGED_ROUNDS);
        }
        waiting.reverse();
        let every = if waiting.len() == 1 { 1 } else { TRIAL_SHARE.min(data.steps / LEAST_TRIAL).max(1) };
        let is_small = data.holds_out() && data.steps <= FEW_STEPS && params.states == StateCount::Auto;
        let restarts = if is_small { RESTARTS } else { 0 };
        let mut refinement = Refinement { every, restarts, ..Refinement::with(model, data, params, first_look, waiting) };
        if let Some(merged) = refinement.waiting.iter().find(|candidate| candidate.layout == StateLayout::Merged) {
            let mut fit = refinement.first_fit(*merged, Seed(refinement.model.params().seed))?;
            fit.round(&refinement.data, every)?;
            refinement.automaton = Some(fit.judged);
        }
        Ok(refinement)
    }

    /// Candidates whose states begin as clusters of those of a recurrent network over the same alphabet,
    /// and go on to grow. All fits are kept for [`Refinement::into_fits`].
    pub(crate) fn of_network(model: &Model, net: &Recurrent, logs: &'a Logs, candidates: &[Candidate]) -> Result<Refinement<'a>> {
        let data = Data::new(logs, model.alphabet())?;
        let model = model.clone().without_ensemble().without_mixture().without_refinement();
        let first_look = FirstLook::of(&model.clone().with_predictor(Predictor::Recurrent(Box::new(net.clone()))), &data)?;
        let waiting = candidates.iter().rev().copied().collect();
        Ok(Refinement::with(model, data, RefineParams::default(), first_look, waiting).keeping_rivals())
    }

    fn with(
        model: Model,
        data: Data<'a>,
        params: RefineParams,
        first_look: FirstLook,
        waiting: Vec<Candidate>,
    ) -> Refinement<'a> {
        Refinement {
            model,
            data,
            params,
            first_look,
            waiting,
            automaton: None,
            every: 1,
            tried: Vec::new(),
            leader: None,
            rivals: None,
            restarts: 0,
            fit: None,
            done: false,
            most_work: MOST_WORK,
            trace: Vec::new(),
            checkpoint: None,
        }
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

    /// Keeps all fits for [`Refinement::into_fits`].
    pub(crate) fn keeping_rivals(self) -> Refinement<'a> {
        Refinement { rivals: Some(Vec::new()), restarts: 0, ..self }
    }

    /// With a limit for the work of each fit, in entries of T that are visited.
    pub(crate) fn limited_to(self, most_work: u64) -> Refinement<'a> {
        Refinement { most_work, ..self }
    }

    /// Number of steps of the logs.
    pub(crate) fn steps(&self) -> u64 {
        self.data.steps
    }

    /// After the end: drops the fits of other layouts, if one is given, and begins to fit the best
    /// again from other starts, at most so many times and within a limit for their work.
    pub(crate) fn restart(&mut self, layout: Option<StateLayout>, most: u64, work: u64) {
        let mut fits: Vec<Fit> = self.rivals.take().into_iter().flatten().chain(self.leader.take()).collect();
        fits.retain(|fit| layout.is_none_or(|layout| fit.candidate.layout == layout));
        fits.sort_by(|x, y| x.judged.total_cmp(&y.judged));
        self.leader = fits.pop();
        let enough = |leader: &&Fit| leader.best_states as u64 * STEPS_PER_STATE <= self.data.steps;
        // There is one automaton only.
        let leader = self.leader.as_ref().filter(enough).filter(|leader| leader.candidate.layout != StateLayout::Merged);
        self.restarts = leader.map_or(0, |leader| most.min(work / leader.work.max(1)));
        (self.rivals, self.done) = (Some(fits), false);
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
        let fitted = |Fit { candidate, best, best_states, gained, .. }| FittedStates {
            candidate: Candidate { states: best_states, ..candidate },
            latent: best,
            rounds: gained.1,
        };
        (fits.into_iter().map(fitted).collect(), self.data)
    }

    /// The layouts that were fitted in full, and their held-out log-likelihood in nats per step.
    pub(crate) fn judged(&self) -> Vec<(StateLayout, f64)> {
        self.leader.iter().chain(self.rivals.iter().flatten()).map(|fit| (fit.candidate.layout, fit.judged)).collect()
    }

    /// The refined model. Held-out episodes, which are no longer needed for comparison, are learned
    /// from too.
    pub fn finish(self) -> Result<Model> {
        let Some(Fit { best, best_states, mut candidate, gained, .. }) = self.leader.or(self.fit) else { return Ok(self.model) };
        candidate.states = best_states;
        let mut fitted = FittedStates { candidate, latent: best, rounds: gained.1 };
        fitted.continue_on(&self.data, LAST_ROUNDS)?;
        let latent = fitted.model(&self.model, &self.data)?;
        Ok(self.model.with_predictor(Predictor::Latent(Box::new(latent))))
    }

    /// The next candidate. After the last one, if all were compared on a share of the episodes, the
    /// best are fitted in full; then the best of all is fitted again, if that is wanted.
    fn next_fit(&mut self) -> Result<Option<Fit>> {
        let seed = Seed(self.model.params().seed);
        if let Some(candidate) = self.waiting.pop().filter(|candidate| !self.is_beaten(candidate)) {
            return Ok(Some(self.first_fit(candidate, seed)?));
        }
        if self.every > 1 {
            self.tried = finalists(std::mem::take(&mut self.tried));
            self.leader = None;
            self.automaton = None;
            self.every = 1;
        }
        if let Some(fit) = self.tried.pop() {
            return Ok(Some(self.if_growing(fit.in_full())));
        }
        let repeats = |leader: &&Fit| self.rivals.is_some() || leader.emits_several();
        let Some(leader) = self.leader.as_ref().filter(|_| self.restarts > 0).filter(repeats) else { return Ok(None) };
        self.restarts -= 1;
        let params = RefineParams { layout: leader.candidate.layout, ..self.params.clone() };
        let candidate = candidates(&self.model, &params)[0];
        // Growth from other numbers of states ends elsewhere.
        let times = if leader.can_grow(&self.params) { TIMES[self.restarts as usize % TIMES.len()] } else { 1 };
        let candidate = Candidate { states: times * candidate.states, ..candidate };
        self.first_fit(candidate, seed.stream("restarts").index(self.restarts)).map(Some)
    }

    /// Whether it is the automaton, which is the last candidate, and another is better than it is
    /// before EM.
    fn is_beaten(&self, candidate: &Candidate) -> bool {
        let leader = self.leader.as_ref().filter(|_| candidate.layout == StateLayout::Merged);
        leader.zip(self.automaton).is_some_and(|(leader, automaton)| leader.judged > automaton)
    }

    /// A candidate before the first round.
    fn first_fit(&self, candidate: Candidate, seed: Seed) -> Result<Fit> {
        let latent = self.first_look.latent(&self.model, candidate, seed)?;
        let candidate = match candidate.layout {
            StateLayout::Merged => Candidate { states: latent.going_on(self.model.alphabet()), ..candidate },
            _ => candidate,
        };
        Ok(self.if_growing(Fit::new(candidate, latent, seed, self.every > 1)))
    }

    /// The same with a number of states that grows, where it is not given and can grow.
    fn if_growing(&self, fit: Fit) -> Fit {
        if self.data.holds_out() && fit.can_grow(&self.params) { fit.growing() } else { fit }
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
        let round = fit.round(&self.data, self.every)?;
        fit.grow(&round, &self.first_look, self.model.alphabet(), self.every);
        fit.stopped = self.why_stop(&fit);
        if fit.stopped.is_none() {
            self.fit = Some(fit);
            return Ok(Some(round));
        }
        if fit.trial {
            self.tried.push(fit.clone());
        }
        let is_restart = self.rivals.is_none() && fit.seed != Seed(self.model.params().seed);
        let least = if is_restart { RESTART_GAIN } else { 0.0 };
        let beaten = match &self.leader {
            Some(leader) if fit.judged <= leader.judged + least => Some(fit),
            _ => self.leader.replace(fit),
        };
        if let (Some(rivals), Some(beaten)) = (&mut self.rivals, beaten) {
            rivals.extend(Some(beaten).filter(|fit| !fit.trial));
        }
        Ok(Some(round))
    }
}

impl Refinement<'_> {
    /// Why a fit stops after its latest round, if it does.
    fn why_stop(&self, fit: &Fit) -> Option<StopReason> {
        let (most_rounds, most_work) = match fit.trial {
            true if fit.growth.is_none() => (TRIAL_ROUNDS.min(self.params.em_rounds), self.most_work / TRIAL_SHARE),
            true => (self.params.em_rounds, self.most_work / TRIAL_SHARE),
            false => (self.params.em_rounds, self.most_work),
        };
        // A candidate that is far behind after the rounds of a trial will not catch up.
        let mut rivals = self.leader.as_ref().map(|leader| leader.judged).into_iter().chain(self.automaton);
        let is_far_behind = |rival: f64| fit.judged + fit.hope() < rival - CLOSE;
        if fit.round >= TRIAL_ROUNDS && rivals.any(is_far_behind) {
            Some(StopReason::Behind)
        } else if fit.growth.is_none() && fit.round - fit.gained.1 >= self.params.patience {
            Some(StopReason::NoGain)
        } else if fit.round >= most_rounds {
            Some(StopReason::Rounds)
        } else {
            (fit.work >= most_work).then_some(StopReason::Work)
        }
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
    pub(crate) fn extended(&self, alphabet: &Alphabet, data: &Data<'_>, more: &Data<'_>) -> Result<FittedStates> {
        let all = Share { every: 1, is_held_out: &|_| false };
        let hard = self.latent.expected_counts(&expect(&self.latent, data, &all)?.training);
        let seen = first_look::symbols(more, alphabet)?;
        let layout = self.latent.layout.clone().with_patterns(&more.patterns());
        let latent = Latent::new(layout, self.latent.actions, &hard, &seen);
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

/// The best candidate last, after those that come close to it and do not cost much more.
fn finalists(mut tried: Vec<Fit>) -> Vec<Fit> {
    tried.sort_by(|x, y| x.judged.total_cmp(&y.judged));
    let (judged, work) = tried.last().map_or((0.0, 0), |fit| (fit.judged, fit.work));
    tried.retain(|fit| fit.judged > judged - CLOSE && fit.work <= COSTLY * work);
    tried
}

/// The candidates to try; the number of states is that from which they grow, if it is not given.
fn candidates(model: &Model, params: &RefineParams) -> Vec<Candidate> {
    let going_on = model.alphabet().observations().iter().filter(|o| !o.terminal).count();
    let number = |layout| match (params.states, layout) {
        (_, StateLayout::Modes) => MODES * going_on,
        (StateCount::About(n), _) => n,
        (StateCount::Auto, StateLayout::Free | StateLayout::Sensing) => FREE,
        (StateCount::Auto, StateLayout::Dense) => DENSE,
        (StateCount::Auto, StateLayout::Owned | StateLayout::Merged | StateLayout::Auto) => going_on,
    };
    let layouts = match params.layout {
        // The number of states of modes is fixed.
        StateLayout::Auto if params.states != StateCount::Auto => vec![StateLayout::Owned, StateLayout::Free],
        StateLayout::Auto => {
            vec![StateLayout::Owned, StateLayout::Free, StateLayout::Sensing, StateLayout::Modes, StateLayout::Merged]
        }
        layout => vec![layout],
    };
    layouts.into_iter().map(|layout| Candidate { layout, states: number(layout) }).collect()
}
