//! Planning from logs: fitted-Q on the states of a filter or in the POMDP of a refined model, and
//! the resulting plan as a policy.

use std::sync::Arc;

use rayon::prelude::*;

use super::comparison::Comparison;
use super::evidence::Choice;
use super::experience::{AfterLast, States, Steps, are_single_steps, is_restricted};
use super::fitted_q::{FittedQ, Round};
use super::memory::{LastObservations, WithLast};
use super::params::{PlanParams, Planner, Regressor, StateKind, recent};
use super::q::{Q, QFit};
use super::translated::Dictionary;
use super::tree_q::TreeFit;
use super::visits::Visits;
use super::window::{WindowFit, WindowQ};
use crate::data::{Action, Alphabet, Digest, End, Trajectory};
use crate::error::{Error, Result};
use crate::log::{FIRST_ACTION, Schema};
use crate::math::Mean;
use crate::model::{Latent, Model, PredictiveState};
use crate::pomdp::solve::{self, Gap, PointBased, Solution};
use crate::rng::Seed;
use crate::stop::StopReason;
use crate::system::{Filter, Policy};

use super::greedy::Greedy;
use super::translated::Translated;

/// A policy found by planning, self-contained: the model that updates its state, and Q̂.
#[derive(Clone, Debug)]
pub struct Plan {
    pub(super) params: PlanParams,
    pub(super) alphabet: Alphabet,
    /// The model, if the state is that of a model.
    pub(super) model: Option<Arc<Model>>,
    /// The model's encoding; also present in a plan without a model.
    pub(super) encoding: Option<String>,
    /// What the columns of the logs meant.
    pub(super) schema: Arc<Schema>,
    /// Which episodes it was planned on, and its model was learned from.
    pub(super) digest: Arc<Digest>,
    pub(super) q: Arc<Q>,
    /// `None` in a plan read from a file.
    pub(super) stopped: Option<StopReason>,
    /// `None` where nothing was compared, and in a plan read from a file.
    pub(super) choice: Option<Arc<Choice>>,
    /// What a user should know of the file that it was read from.
    pub(super) note: Option<String>,
}

/// Multiplications after which point-based planning stops: a second or two.
const MOST_WORK: u64 = 4_000_000_000;

/// The reward of every step, if all are the same: then these episodes do not distinguish a good
/// policy from a bad one. They do if an episode terminates, because a good policy may be one that
/// lasts, or one that ends early.
pub fn only_reward(episodes: &[Trajectory]) -> Option<f64> {
    let mut rewards = episodes.iter().flat_map(|z| &z.rewards).flatten();
    let first = rewards.next().filter(|_| episodes.iter().all(|z| z.end == End::Truncated))?;
    rewards.all(|reward| reward == first).then_some(*first)
}

/// Whose states a policy is computed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Basis {
    /// Those of the model.
    Model,
    /// Those of the linear model that it was refined from.
    Linear,
    /// Those of its recurrent network.
    Recurrent,
}

impl Basis {
    /// The model with these states; `None` if it has none.
    pub(super) fn of(self, model: &Model) -> Option<Model> {
        match self {
            Basis::Model => Some(model.clone().without_ensemble().without_mixture()),
            Basis::Linear => Some(model.clone().without_ensemble().without_mixture().without_refinement()),
            Basis::Recurrent => model.clone().without_ensemble().recurrent_alone(),
        }
    }
}

/// A plan by given parameters, with automatic choices made by how well the model and the last steps
/// predict.
pub(super) fn planned(
    model: &Model,
    episodes: &[Trajectory],
    params: &PlanParams,
    progress: &mut dyn FnMut(Round),
) -> Result<Plan> {
    let (params, basis) = by_rule(model, episodes, params);
    made(&basis.of(model).expect("every model has states of its own"), episodes, params, progress)
}

/// The parameters with planner and estimate of Q chosen by how well the model and the last steps
/// predict, and whose states they need.
pub(super) fn by_rule(model: &Model, episodes: &[Trajectory], params: &PlanParams) -> (PlanParams, Basis) {
    if params.planner != Planner::Auto {
        return (params.clone(), Basis::Model);
    }
    let core = model.clone().without_ensemble().without_mixture();
    let planner = suited(&core, episodes, params.window);
    let params = PlanParams { planner, ..params.clone() };
    if planner != Planner::FittedQ {
        return (params, Basis::Model);
    }
    let regressor = match params.regressor {
        // What the states lack may depend on the time, which the table knows.
        Regressor::Auto if core.latent().is_some_and(Latent::forgets_rewards) => Regressor::Mean,
        given => given,
    };
    (settled(&PlanParams { regressor, ..params }, &core.without_refinement(), episodes), Basis::Linear)
}

/// A plan by a given planner on the states of a model.
pub(super) fn made(model: &Model, episodes: &[Trajectory], params: PlanParams, progress: &mut dyn FnMut(Round)) -> Result<Plan> {
    match params.planner {
        Planner::Auto | Planner::FittedQ => fitted(model, episodes, params, progress),
        planner => solved(model, planner, params, progress),
    }
}

/// Chooses the planner for a model.
fn suited(model: &Model, episodes: &[Trajectory], window: usize) -> Planner {
    // Solvers assume that all actions are available, and that episodes go on until they terminate.
    if is_restricted(episodes, model.alphabet()) || are_single_steps(model.alphabet(), episodes) {
        return Planner::FittedQ;
    }
    if model.latent().is_none_or(|latent| !latent.pomdp.has_rewards() || latent.forgets_rewards()) {
        return Planner::FittedQ;
    }
    match Comparison::of(model, episodes, window) {
        Some(comparison) if comparison.model < comparison.best_window().1 => Planner::FittedQ,
        _ => Planner::PointBased,
    }
}

/// A policy in the POMDP of a refined model.
fn solved(model: &Model, planner: Planner, params: PlanParams, progress: &mut dyn FnMut(Round)) -> Result<Plan> {
    let Some(latent) = model.latent() else {
        return Err(Error::NeedsPomdp { what: "this planner", instead: Some("choose another `planner` (fitted-q)") });
    };
    if !latent.pomdp.has_rewards() {
        return Err(Error::data(
            "the model was refined on logs without rewards, or with rewards that are all zero",
            "refine it on logs with rewards",
        ));
    }
    let pomdp = latent.pessimistic(params.pessimism);
    let mut stopped = StopReason::Converged;
    let solution = match planner {
        Planner::Qmdp => solve::qmdp(&pomdp, params.discount)?,
        Planner::FastInformed => solve::fast_informed_bound(&pomdp, params.discount)?,
        Planner::PointBased | Planner::Auto | Planner::FittedQ => {
            let mut planner = PointBased::new(&pomdp, params.discount, Gap::default())?.within(MOST_WORK);
            let report =
                |number, round: solve::Round| Round { number, change: round.upper - round.lower, start_value: round.lower };
            // The bounds may be close enough before the first trial.
            progress(report(0, planner.round()));
            (1..=params.rounds).zip(planner.by_ref()).for_each(|(number, round)| progress(report(number, round)));
            stopped = planner.stopped().unwrap_or(StopReason::Rounds);
            planner.solution()
        }
    };
    if planner != Planner::PointBased {
        progress(Round { number: 1, change: 0.0, start_value: solution.upper });
    }
    Ok(Plan::of_vectors(params, model, solution, stopped))
}

/// A policy found by fitted-Q on the logs.
fn fitted(model: &Model, episodes: &[Trajectory], params: PlanParams, progress: &mut dyn FnMut(Round)) -> Result<Plan> {
    let alphabet = model.alphabet();
    let steps = Steps::of(alphabet, episodes)?;
    let params = settled(&params, model, episodes);
    let shared = Arc::new(model.clone());
    let track = || States::track(episodes, || filter(&params, alphabet, Some(&shared)));
    let states = (params.regressor.has_trees() || params.pessimism > 0.0).then(track);
    let steps = match &states {
        Some(states) if params.pessimism > 0.0 => pessimistic(steps, states, params.pessimism, Seed(params.seed).stream("plan"))?,
        _ => steps,
    };
    let fit = approximator(&params, alphabet, &steps, states.as_ref(), episodes)?;
    let mut fitted = FittedQ::new(&steps, fit, params.discount);
    fitted.by_ref().take(params.rounds).for_each(progress);
    let q = fitted.into_inner().into_q();
    Ok(Plan::new(params, model, q, StopReason::Rounds))
}

/// What estimates Q on these steps, given the states of the policy's filter along them.
pub(super) fn approximator(
    params: &PlanParams,
    alphabet: &Alphabet,
    steps: &Steps,
    states: Option<&States>,
    episodes: &[Trajectory],
) -> Result<QFit> {
    let seed = Seed(params.seed).stream("plan");
    let trees = |states: &States| TreeFit::new(steps, states, params.structure, params.ensembles, &params.tree_params(), seed);
    let table = || WindowFit::over(alphabet, recent(params.regressor, params.window), steps, episodes);
    Ok(match (states, params.regressor) {
        (Some(states), Regressor::Trees) => QFit::Trees(trees(states)?),
        (Some(states), Regressor::Mean) => QFit::Mean(trees(states)?, table()),
        _ => QFit::Table(table()),
    })
}

/// The steps with the reward of action a reduced by `pessimism`·sd / √(1 + n), where n is how often
/// it was tried in similar states.
fn pessimistic(steps: Steps, states: &States, pessimism: f64, seed: Seed) -> Result<Steps> {
    let sd = steps.list().iter().map(|step| step.reward).collect::<Mean>().sd();
    let visits = Visits::new(&steps, states, seed.stream("visits"))?.of(steps.list().iter().map(|step| step.action));
    Ok(steps.with_less_reward(visits.into_iter().map(|n| pessimism * sd / (1.0 + n).sqrt())))
}

/// The parameters, with automatic choices made from the logs.
fn settled(params: &PlanParams, model: &Model, episodes: &[Trajectory]) -> PlanParams {
    if params.regressor != Regressor::Auto {
        return params.clone();
    }
    let comparison = match params.state {
        StateKind::Last => None,
        StateKind::Predictive | StateKind::Memory => Comparison::of(model, episodes, params.window),
    };
    let Some(comparison) = comparison else { return PlanParams { regressor: Regressor::Trees, ..params.clone() } };
    let (window, pairs) = comparison.best_window();
    let regressor = match window {
        _ if comparison.model > pairs => Regressor::Trees,
        1 => Regressor::Table,
        _ => Regressor::Mean,
    };
    PlanParams { regressor, window, ..params.clone() }
}

/// The filter of a policy, at the start of an episode.
pub(super) fn filter(params: &PlanParams, alphabet: &Alphabet, model: Option<&Arc<Model>>) -> Box<dyn Filter + Send> {
    let predictive = || PredictiveState::new(model.expect("plans on a predictive state have a model").clone());
    match params.state {
        StateKind::Predictive => Box::new(predictive()),
        StateKind::Memory => Box::new(WithLast::new(predictive(), alphabet)),
        StateKind::Last => Box::new(LastObservations::new(alphabet, params.last)),
    }
}

impl Plan {
    /// A plan in the POMDP of a refined model.
    pub(super) fn of_vectors(params: PlanParams, model: &Model, solution: Solution, stopped: StopReason) -> Plan {
        let params = PlanParams { state: StateKind::Predictive, ..params };
        Plan::new(params, model, Q::Vectors(solution.vectors), stopped)
    }

    /// A plan that always takes one action, which is worth `value` at the start.
    pub(super) fn always(a: Action, value: f64, model: &Model, params: &PlanParams, progress: &mut dyn FnMut(Round)) -> Plan {
        let params = PlanParams { planner: Planner::FittedQ, regressor: Regressor::Table, ..params.clone() };
        let model = Basis::Linear.of(model).expect("every model has states of its own");
        let q = WindowQ::always(a, value, recent(params.regressor, params.window), model.alphabet());
        progress(Round { number: 1, change: 0.0, start_value: value });
        Plan::new(params, &model, Q::Table(q), StopReason::Converged)
    }

    /// The only action that it ever takes, if there is one.
    pub fn only_action(&self) -> Option<Action> {
        self.q.table().filter(|_| self.q.trees().is_none())?.only_action()
    }

    fn new(params: PlanParams, model: &Model, q: Q, stopped: StopReason) -> Plan {
        Plan {
            alphabet: model.alphabet().clone(),
            encoding: model.origin().encoding.clone(),
            schema: model.origin().schema.clone(),
            model: (params.state != StateKind::Last).then(|| Arc::new(model.clone())),
            params,
            digest: Arc::default(),
            q: Arc::new(q),
            stopped: Some(stopped),
            choice: None,
            note: None,
        }
    }

    /// With the digest of what it was planned on, and its model was learned from.
    pub(super) fn known_to(self, model: &Model, episodes: &[Trajectory]) -> Plan {
        let mut digest = Digest::of(model.alphabet(), episodes);
        digest.unite(&model.origin().digest);
        Plan { digest: Arc::new(digest), ..self }
    }

    /// What was compared on the logs, if anything was; `None` for a plan that was read from a file.
    pub fn choice(&self) -> Option<&Choice> {
        self.choice.as_deref()
    }

    /// What a user should know of the file that it was read from, as a sentence.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// Why planning ended; `None` for a plan that was read from a file.
    pub fn stopped(&self) -> Option<StopReason> {
        self.stopped
    }

    /// The parameters of planning, with automatic choices resolved.
    pub fn params(&self) -> &PlanParams {
        &self.params
    }

    /// Its actions, and the observations seen in training.
    pub fn alphabet(&self) -> &Alphabet {
        &self.alphabet
    }

    /// The model that updates the state, if there is one.
    pub fn model(&self) -> Option<&Model> {
        self.model.as_deref()
    }

    /// How symbols were computed from measurements; see [`Origin::encoding`](crate::model::Origin).
    pub fn encoding(&self) -> Option<&str> {
        self.encoding.as_deref()
    }

    /// What the columns of the logs meant; see [`Origin::schema`](crate::model::Origin).
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// Which episodes it was planned on, and its model was learned from; empty where that is not
    /// known.
    pub fn digest(&self) -> &Digest {
        &self.digest
    }

    /// Its states along episodes over its alphabet.
    pub fn states(&self, episodes: &[Trajectory]) -> States {
        States::track(episodes, || self.filter())
    }

    /// The action it takes in each of these states: the best of those that were available there.
    pub fn actions(&self, episodes: &[Trajectory]) -> Vec<Action> {
        let after_last = AfterLast::of(episodes, self.alphabet.actions().len(), self.first_action());
        let actions = |z: &Trajectory| {
            let mut policy = self.policy();
            let best = |policy: &Greedy, t: usize| {
                after_last.available(z, t).and_then(|set| policy.best_among(set)).unwrap_or_else(|| policy.best())
            };
            let mut actions = vec![best(&policy, 0)];
            for (t, &ao) in z.steps.iter().enumerate() {
                match z.about.partial_at(t) {
                    Some(pattern) => policy.observe_partial(ao.action, pattern),
                    None => policy.observe(ao),
                }
                actions.push(best(&policy, t + 1));
            }
            actions
        };
        episodes.par_iter().flat_map_iter(actions).collect()
    }

    pub(super) fn filter(&self) -> Box<dyn Filter + Send> {
        filter(&self.params, &self.alphabet, self.model.as_ref())
    }

    /// The policy that takes the best action.
    pub fn policy(&self) -> Greedy {
        let past = self.q.table().map(WindowQ::start).unwrap_or_default();
        Greedy {
            q: self.q.clone(),
            filter: self.filter(),
            past,
            actions: self.alphabet.actions().len(),
            first: self.first_action(),
            is_start: true,
            solved: self.model.clone().filter(|_| self.q.vectors().is_some()).map(|model| (model, self.params.discount)),
        }
    }

    /// The action of first steps that nobody chooses: they only show what was seen before the first
    /// action, in tables whose observations were shifted.
    pub fn first_action(&self) -> Option<Action> {
        self.schema.shift_observation.then(|| self.alphabet.action(FIRST_ACTION)).flatten()
    }

    /// Returns a function that makes such policies for a system with another alphabet. Symbols are
    /// matched by name.
    pub fn policies_for(&self, alphabet: &Alphabet) -> Result<impl Fn() -> Translated<Greedy> + Send + Sync + use<'_>> {
        let dictionary = Dictionary::new(&self.alphabet, alphabet)?;
        Ok(move || Translated { inner: self.policy(), dictionary: dictionary.clone() })
    }
}
