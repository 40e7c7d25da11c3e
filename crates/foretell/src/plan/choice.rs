//! Planning with what suits the logs: plans by several planners, states and estimates of Q are
//! compared by their cross-fitted values.
//!
//! The logs are halved. Each candidate plans on one half, and its greedy policy is evaluated on the
//! other (`worth.rs`). The model is that of all logs: it is not learned again.

use std::sync::Arc;

use super::evidence::{Choice, Judged, chosen};
use super::experience::{Steps, are_single_steps, is_restricted};
use super::fitted_q::Round;
use super::params::{PlanParams, Planner, Regressor, StateKind};
use super::planner::{Basis, Plan, by_rule, made, planned};
use super::tree_q::Structure;
use super::worth::{HeldOut, Worth};
use crate::data::{Action, Groups, Trajectory};
use crate::error::Result;
use crate::log::{FIRST_ACTION, Logs};
use crate::model::{Latent, Model};
use crate::pomdp::solve;
use crate::rng::Seed;
use crate::stop::StopReason;

/// Fewest episodes that are compared on: each half must tell policies apart.
const FEWEST: usize = 40;
/// Most steps that are compared on, which bounds the work.
const MOST_STEPS: usize = 16_384;

/// A way to plan.
#[derive(Clone, Debug, PartialEq)]
struct Candidate {
    params: PlanParams,
    basis: Basis,
}

/// Plans with a model on logs, which need not be those it was learned from; `progress` is called
/// after every round.
pub fn plan(model: &Model, logs: &Logs, params: &PlanParams, progress: &mut dyn FnMut(Round)) -> Result<Plan> {
    plan_on(model, &logs.episodes_for(model.alphabet(), "model")?, params, progress)
}

/// [`plan`] on logged episodes over the model's alphabet.
pub fn plan_on(model: &Model, episodes: &[Trajectory], params: &PlanParams, progress: &mut dyn FnMut(Round)) -> Result<Plan> {
    params.validate()?;
    let is_open = params.planner == Planner::Auto && params.regressor == Regressor::Auto;
    let is_usual = params.state == StateKind::Memory && params.structure == Structure::Frozen;
    let plan = match is_open && is_usual && sample(episodes).len() >= FEWEST {
        true => {
            Steps::of(model.alphabet(), episodes)?; // errors name the episode among all
            let candidates = candidates(model, episodes, params);
            let Compared { mut choice, best } = compared(&candidates, model, episodes, params)?;
            let plan = match (candidates.get(choice.chosen), best) {
                (None, Some(a)) => Plan::always(a, choice.chosen().value, model, params, progress),
                (candidate, _) => candidate.unwrap_or(&candidates[0]).made(model, episodes, progress)?,
            };
            choice.is_constant = best.is_some_and(|a| always(&plan, &sample(episodes), a));
            Plan { choice: Some(Arc::new(choice)), ..plan }
        }
        false => planned(model, episodes, params, progress)?,
    };
    Ok(plan.known_to(model, episodes))
}

/// Plans that differ in what they remember and cost little: first that of the comparison of
/// predictions, then others that experience must tell apart.
pub(crate) fn contenders(
    model: &Model,
    episodes: &[Trajectory],
    params: &PlanParams,
    progress: &mut dyn FnMut(Round),
) -> Result<Vec<Plan>> {
    params.validate()?;
    let all = candidates(model, episodes, params);
    let first = all[0].made(model, episodes, progress)?.known_to(model, episodes);
    let is_open = params.planner == Planner::Auto && params.regressor == Regressor::Auto;
    let cheap = |candidate: &&Candidate| is_open && !candidate.has_trees();
    let recent = latest(episodes);
    let others = all[1..].iter().filter(cheap).map(|other| Ok(other.made(model, recent, &mut |_| {})?.known_to(model, episodes)));
    std::iter::once(Ok(first)).chain(others).collect()
}

/// A plan that seeks what was rarely tried: each action of the refined model pays `bonus` / √(1 + n)
/// more, where n is how often it was tried in the state. `None` without a refined model.
pub(crate) fn seeking(model: &Model, params: &PlanParams, bonus: f64) -> Result<Option<Plan>> {
    let core = Basis::Model.of(model).expect("every model has states of its own");
    let Some(latent) = core.latent() else { return Ok(None) };
    let solution = solve::qmdp(&latent.optimistic(bonus), params.discount)?;
    let params = PlanParams { planner: Planner::Qmdp, ..params.clone() };
    Ok(Some(Plan::of_vectors(params, &core, solution, StopReason::Converged)))
}

/// The last episodes, up to [`MOST_STEPS`].
fn latest(episodes: &[Trajectory]) -> &[Trajectory] {
    let mut steps = 0;
    let fits = |z: &&Trajectory| {
        steps += z.steps.len();
        steps <= MOST_STEPS
    };
    &episodes[episodes.len() - episodes.iter().rev().take_while(fits).count().max(1)..]
}

/// The episodes that are compared on.
fn sample(episodes: &[Trajectory]) -> Vec<Trajectory> {
    latest(episodes).iter().filter(|z| !z.steps.is_empty()).cloned().collect()
}

/// Whether a plan takes one action in all states along the episodes, but for first steps that nobody
/// chooses.
fn always(plan: &Plan, episodes: &[Trajectory], a: Action) -> bool {
    plan.actions(episodes).into_iter().all(|taken| taken == a || Some(taken) == plan.first_action())
}

/// The candidates, that of the comparison of predictions first.
fn candidates(model: &Model, episodes: &[Trajectory], params: &PlanParams) -> Vec<Candidate> {
    let (first, basis) = by_rule(model, episodes, params);
    let fitted =
        |regressor, basis| Candidate { params: PlanParams { planner: Planner::FittedQ, regressor, ..params.clone() }, basis };
    let own = if model.latent().is_some() { Basis::Model } else { Basis::Linear };
    let solves = |latent: &Latent| latent.pomdp.has_rewards() && !latent.forgets_rewards();
    let mut all = vec![Candidate { params: first, basis }];
    let suits = !is_restricted(episodes, model.alphabet()) && !are_single_steps(model.alphabet(), episodes);
    if model.latent().is_some_and(solves) && suits {
        let params = PlanParams { planner: Planner::PointBased, ..params.clone() };
        all.push(Candidate { params, basis: Basis::Model });
    }
    all.push(fitted(Regressor::Table, Basis::Linear));
    all.push(fitted(Regressor::Changes, Basis::Linear));
    all.push(fitted(Regressor::Trees, own));
    if model.recurrent().is_some() {
        all.push(fitted(Regressor::Trees, Basis::Recurrent));
    }
    let mut different: Vec<Candidate> = Vec::new();
    all.into_iter().for_each(|candidate| {
        if !different.iter().any(|other| other.is_like(&candidate)) {
            different.push(candidate);
        }
    });
    different
}

impl Candidate {
    fn made(&self, model: &Model, episodes: &[Trajectory], progress: &mut dyn FnMut(Round)) -> Result<Plan> {
        made(&self.basis.of(model).expect("it is among the candidates"), episodes, self.params.clone(), progress)
    }

    fn is_solved(&self) -> bool {
        !matches!(self.params.planner, Planner::FittedQ | Planner::Auto)
    }

    fn has_trees(&self) -> bool {
        !self.is_solved() && self.params.regressor.has_trees()
    }

    /// Whether both lead to the same plan.
    fn is_like(&self, other: &Candidate) -> bool {
        let same_kind = self.params.planner == other.params.planner && self.basis == other.basis;
        same_kind
            && (self.is_solved() || (self.params.regressor, self.params.window) == (other.params.regressor, other.params.window))
    }

    /// In words.
    fn name(&self) -> String {
        let states = match self.basis {
            Basis::Model => "the states of the model",
            Basis::Linear => "predictive states",
            Basis::Recurrent => "the states of the recurrent network",
        };
        match (self.params.planner, self.params.regressor) {
            (Planner::Qmdp, _) => "QMDP".into(),
            (Planner::FastInformed, _) => "the fast informed bound".into(),
            (Planner::PointBased, _) => "point-based planning".into(),
            (_, Regressor::Table) => "a table of the last steps".into(),
            (_, Regressor::Changes) => "a table of the last changes".into(),
            (_, Regressor::Mean) => format!("trees over {states} and a table"),
            (_, Regressor::Trees | Regressor::Auto) => format!("trees over {states}"),
        }
    }
}

struct Compared {
    choice: Choice,
    /// The best of the actions that could always be taken.
    best: Option<Action>,
}

/// The cross-fitted values of the candidates, and after them that of the best constant action: where
/// Q̂ misleads all planners, as where states lack what matters, it may earn more than any of them.
fn compared(candidates: &[Candidate], model: &Model, episodes: &[Trajectory], params: &PlanParams) -> Result<Compared> {
    let sample = sample(episodes);
    let folds = Groups::of(&sample).folds(2, Seed(params.seed).stream("plan/halves"));
    let half = |of: usize| -> Vec<Trajectory> {
        sample.iter().zip(&folds).filter(|(_, fold)| **fold == of).map(|(z, _)| z.clone()).collect()
    };
    let halves = [half(0), half(1)];
    let horizon = sample.iter().map(|z| z.steps.len()).max().unwrap_or(0);
    let own = Basis::Model.of(model).expect("every model has states of its own");
    let held = |half: usize| {
        let held = HeldOut::new(model.alphabet(), &halves[half], horizon, params.discount)?;
        // Linear states may lack more than tables do.
        if own.latent().is_some() { held.on_states_of(own.clone(), params) } else { Ok(held) }
    };
    let mut parts = [held(0)?, held(1)?];
    let judged = |name: String, of: &[Worth]| {
        let Worth { value, error } = Worth::mean(of);
        Judged { name, value, error }
    };
    let both = |candidate: &Candidate| -> Result<Judged> {
        // The vectors of a POMDP do not depend on the half.
        let solved = candidate.is_solved().then(|| candidate.made(model, &halves[0], &mut |_| {})).transpose()?;
        let mut worth = |i: usize| match &solved {
            Some(plan) => parts[i].worth(plan),
            None => parts[i].worth(&candidate.made(model, &halves[1 - i], &mut |_| {})?),
        };
        Ok(judged(candidate.name(), &[worth(0)?, worth(1)?]))
    };
    let mut found = candidates.iter().map(both).collect::<Result<Vec<_>>>()?;
    // Nobody chooses the first step of tables whose observations were shifted.
    let is_first = |a: &Action| sample.iter().all(|z| z.steps[0].action == *a);
    let first = model.alphabet().action(FIRST_ACTION).filter(is_first);
    let constant = |a: Action| -> Result<(Action, [Worth; 2])> {
        let worth = |i: usize| parts[i].worth_by_table(a, first, params);
        Ok((a, [worth(0)?, worth(1)?]))
    };
    let constants = match is_restricted(episodes, model.alphabet()) {
        true => Vec::new(), // no action can always be taken
        false => (0..model.alphabet().actions().len() as u32)
            .map(Action)
            .filter(|a| first.is_none_or(|first| first != *a))
            .map(constant)
            .collect::<Result<Vec<_>>>()?,
    };
    let best = best_constant(&constants);
    let worth = |(a, others): (Action, [Action; 2])| -> Result<Judged> {
        let mut of = |i: usize| parts[i].worth_of_constant(others[i], first, params);
        Ok(judged(format!("always {:?}", model.alphabet().action_name(a)), &[of(0)?, of(1)?]))
    };
    let constant = best.map(worth).transpose()?;
    let logged = judged("the logged policy".into(), &[parts[0].worth_of_logs(), parts[1].worth_of_logs()]);
    found.extend(constant.clone());
    let (discount, chosen) = (params.discount, chosen(&found));
    let choice = Choice { candidates: found, chosen, logged, constant, is_constant: false, horizon, discount };
    Ok(Compared { choice, best: best.map(|(a, _)| a) })
}

/// The best constant action, and for each half the one that is best on the other half, whose value there
/// counts: the best of many on the same half would look better than it is.
fn best_constant(constants: &[(Action, [Worth; 2])]) -> Option<(Action, [Action; 2])> {
    let known = |of: &&(Action, [Worth; 2])| of.1.iter().all(|worth| worth.value.is_finite());
    let by = |value: fn(&[Worth; 2]) -> f64| {
        constants.iter().filter(known).reduce(|x, y| if value(&y.1) > value(&x.1) { y } else { x }).map(|(a, _)| *a)
    };
    Some((by(|of| of[0].value + of[1].value)?, [by(|of| of[1].value)?, by(|of| of[0].value)?]))
}
