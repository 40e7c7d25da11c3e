//! Planning with models, and evaluating policies.

use std::time::Instant;

use foretell::judge::Test;
use foretell::off_policy::{Bound as Interval, CrossFit, Estimator, LogValue, OffPolicy, Target, TargetPolicy, ValueParams};
use foretell::plan::{Round, only_reward, plan_on};
use foretell::pomdp::solve::{Gap, PointBased, Solution, fast_informed_bound, qmdp};
use foretell::system::Exploring;
use foretell::{
    Action, Agent, AgentOverrides, AgentParams, Alphabet, Error, LearnOverrides, LearnParams, PlanOverrides, PlanParams, Returns,
    Seed, SelectParams, Uniform, agent as agents, domains,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::Serialize;

use crate::convert::{dict, overrides};
use crate::domain::Domain;
use crate::error::raised;
use crate::logs::Logs;
use crate::model::Model;
use crate::parameters::recipe;
use crate::policy::Policy;
use crate::task;

/// The policy, and the reward of every step, if all are the same.
#[pyfunction]
pub fn plan(
    py: Python<'_>,
    model: &Bound<'_, Model>,
    logs: &Bound<'_, Logs>,
    preset: &str,
    params: &Bound<'_, PyDict>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<(Policy, Option<f64>)> {
    let params = overrides::<PlanOverrides>(params)?.apply(recipe(preset, PlanParams::default, PlanParams::paper)?);
    params.validate().map_err(raised)?;
    let (model, logs) = (model.get().model.clone(), logs.get().logs.clone());
    task::run(py, progress, move |task| {
        let episodes = logs.episodes_for(model.alphabet(), "model")?;
        let of = params.rounds as u64;
        let mut tell = |round: Round| task.tell("planning", round.number as u64, Some(of));
        Ok((plan_on(&model, &episodes, &params, &mut tell)?.into(), only_reward(&episodes)))
    })
}

#[pyfunction]
#[pyo3(signature = (policy, domain, episodes, max_steps, discount, seed))]
pub fn evaluate_in<'py>(
    py: Python<'py>,
    policy: &Bound<'py, Policy>,
    domain: &Bound<'py, Domain>,
    episodes: usize,
    max_steps: Option<usize>,
    discount: Option<f64>,
    seed: u64,
) -> PyResult<Bound<'py, PyAny>> {
    let (plan, domain) = (policy.get().plan.clone(), domain.get().domain.clone());
    let (max_steps, discount) = (max_steps.unwrap_or(domain.horizon), discount.unwrap_or(domain.discount));
    let returns: Returns = task::run(py, None, move |_| {
        let test = Test { domain: &domain, episodes, max_steps, discount, seed: Seed(seed) };
        Ok(test.returns(plan.policies_for(domain.alphabet())?))
    })?;
    dict(py, &returns)
}

/// The estimates from logs, and what they say.
#[derive(Serialize)]
struct ByLogs {
    #[serde(flatten)]
    value: LogValue,
    verdict: String,
    notes: Vec<String>,
    warnings: Vec<String>,
}

/// What to ask of logs, as Python gives it.
#[derive(serde::Deserialize)]
struct Question {
    estimators: Option<Vec<Estimator>>,
    bound: Option<Interval>,
    level: Option<f64>,
    cross_fit: Option<CrossFit>,
    folds: Option<usize>,
    rollouts: Option<usize>,
    max_steps: Option<usize>,
    discount: Option<f64>,
    replicates: Option<usize>,
    seed: Option<u64>,
    epsilon: Option<f64>,
}

impl Question {
    fn asks(&self, discount: f64, first: Option<Action>) -> OffPolicy {
        let (usual, value) = (OffPolicy::default(), ValueParams::default());
        let value = ValueParams {
            max_steps: self.max_steps,
            discount,
            bound: self.bound.unwrap_or(value.bound),
            level: self.level.unwrap_or(value.level),
            replicates: self.replicates.unwrap_or(value.replicates),
            seed: self.seed.map_or(value.seed, Seed),
            first,
        };
        OffPolicy {
            value,
            estimators: self.estimators.clone().unwrap_or(usual.estimators),
            rollouts: self.rollouts.unwrap_or(usual.rollouts),
            cross_fit: self.cross_fit.unwrap_or(usual.cross_fit),
            folds: self.folds,
        }
    }
}

#[pyfunction]
#[pyo3(signature = (policy, name, logs, question, first))]
pub fn evaluate_by<'py>(
    py: Python<'py>,
    policy: Option<&Bound<'py, Policy>>,
    name: &str,
    logs: &Bound<'py, Logs>,
    question: &Bound<'py, PyDict>,
    first: Option<&str>,
) -> PyResult<Bound<'py, PyAny>> {
    let (plan, logs, name) = (policy.map(|policy| policy.get().plan.clone()), logs.get().logs.clone(), name.to_string());
    let question: Question = overrides(question)?;
    let first = first.map(str::to_string);
    let report = task::run(py, None, move |_| {
        let (alphabet, episodes) = match &plan {
            Some(plan) => (plan.alphabet().clone(), logs.episodes_for(plan.alphabet(), "policy")?),
            None => {
                let mut reader = logs.open(Alphabet::default())?;
                let episodes = reader.by_ref().collect::<foretell::Result<Vec<_>>>()?;
                (reader.into_alphabet(), episodes)
            }
        };
        let discount = question.discount.or(plan.as_ref().map(|plan| plan.params().discount)).unwrap_or(1.0);
        let first = first.and_then(|name| alphabet.action(&name)).or(plan.as_ref().and_then(|plan| plan.first_action()));
        let epsilon = question.epsilon.unwrap_or(0.0);
        let target = match &plan {
            Some(plan) => Target { policy: TargetPolicy::Plan(plan), epsilon },
            None => match Target::named(&name, &alphabet)? {
                Some(target) => Target { epsilon, ..target },
                None => {
                    return Err(Error::data(
                        format!("policy {name:?} is not known"),
                        "give a Policy, \"always:ACTION\", \"uniform\" or \"logged\"",
                    ));
                }
            },
        };
        let value = question.asks(discount, first).evaluate(&target, &alphabet, &episodes)?;
        Ok(ByLogs { verdict: value.verdict(), notes: value.notes(), warnings: value.warnings(), value })
    })?;
    dict(py, &report)
}

#[pyfunction]
#[pyo3(signature = (domain, episodes, max_steps, policy, epsilon, seed, progress))]
#[expect(clippy::too_many_arguments, reason = "Python names them")]
pub fn sample(
    py: Python<'_>,
    domain: &Bound<'_, Domain>,
    episodes: usize,
    max_steps: Option<usize>,
    policy: Option<&Bound<'_, Policy>>,
    epsilon: f64,
    seed: u64,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Logs> {
    let (domain, plan) = (domain.get().domain.clone(), policy.map(|policy| policy.get().plan.clone()));
    let max_steps = max_steps.unwrap_or(domain.horizon);
    if episodes == 0 || max_steps == 0 {
        return Err(PyValueError::new_err("nothing to sample: episodes and max_steps must be at least 1"));
    }
    if !(0.0..=1.0).contains(&epsilon) {
        return Err(PyValueError::new_err(format!("epsilon = {epsilon}: must be between 0 and 1")));
    }
    task::run(py, progress, move |task| {
        let greedy = plan.as_ref().map(|plan| plan.policies_for(domain.alphabet())).transpose()?;
        let actions = domain.alphabet().actions().len();
        let policy = || -> Box<dyn foretell::Policy> {
            match &greedy {
                Some(greedy) => Box::new(Exploring::new(greedy(), epsilon, actions)),
                None => Box::new(Uniform { actions }),
            }
        };
        let sampled = domains::sample_with(&domain, policy, episodes, max_steps, Seed(seed));
        let with_progress = sampled.enumerate().map(|(i, z)| {
            task.tell("sampling", i as u64 + 1, Some(episodes as u64));
            z
        });
        Ok(Logs::of(domain.alphabet().clone(), with_progress.collect()))
    })
}

fn agent_params(preset: &str, given: &Bound<'_, PyDict>) -> PyResult<AgentParams> {
    let params = overrides::<AgentOverrides>(given)?.apply(recipe(preset, AgentParams::default, AgentParams::paper)?);
    params.validate().map_err(raised)?;
    Ok(params)
}

/// Parameters of an agent in a Gymnasium environment: its own, the number of episodes of each
/// round, and the rank of its models.
#[pyfunction]
pub fn agent_recipe<'py>(
    py: Python<'py>,
    preset: &str,
    params: &Bound<'py, PyDict>,
) -> PyResult<(Bound<'py, PyAny>, Vec<usize>, usize)> {
    // Policies that compete are sampled in domains only.
    let params = agent_params(preset, params)?;
    let params = AgentParams { sampling: params.sampling.guided(), ..params };
    let shares = (0..params.agent_rounds).map(|round| params.share(round)).collect();
    Ok((dict(py, &params)?, shares, recipe(preset, agents::learning, LearnParams::paper)?.rank))
}

/// Runs an agent in a domain: its policy, all sampled episodes, and the estimated value of each
/// round.
#[pyfunction]
#[pyo3(signature = (domain, preset, params, policy, observe_reward, pessimism, discount, seed, progress))]
#[expect(clippy::too_many_arguments, reason = "Python names them")]
pub fn agent(
    py: Python<'_>,
    domain: &Bound<'_, Domain>,
    preset: &str,
    params: &Bound<'_, PyDict>,
    policy: Option<&Bound<'_, Policy>>,
    observe_reward: Option<bool>,
    pessimism: f64,
    discount: Option<f64>,
    seed: u64,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<(Policy, Logs, Vec<Option<f64>>)> {
    let domain = domain.get().domain.clone();
    let discount = discount.unwrap_or_else(|| agents::planning_discount(domain.discount));
    let learning: LearnParams = recipe(preset, agents::learning, LearnParams::paper)?;
    let learning = LearnParams { seed, observe_reward: observe_reward == Some(true), ..learning };
    let fixed = LearnOverrides { observe_reward, ..LearnOverrides::default() };
    let select = SelectParams { fixed, ..SelectParams::default() };
    let planning = PlanParams { seed, discount, pessimism, ..recipe(preset, PlanParams::default, PlanParams::paper)? };
    let params = agent_params(preset, params)?;
    let guide = policy.map(|policy| policy.get().plan.clone());
    task::run(py, progress, move |task| {
        let of = params.agent_rounds as u64;
        let mut agent = Agent::new(&domain, params, learning, planning, Seed(seed))?.selecting(select);
        if let Some(guide) = guide {
            agent = agent.guided_by((*guide).clone());
        }
        task.tell("rounds", 0, Some(of));
        for round in agent.by_ref() {
            task.tell("rounds", round?.number as u64, Some(of));
        }
        let plan = agent.plan().expect("an agent has at least one round").clone();
        let logs = Logs::of(domain.alphabet().clone(), agent.episodes().to_vec());
        Ok((plan.into(), logs, agent.promised().to_vec()))
    })
}

/// Bounds on the optimal value in an exact model.
#[derive(Serialize)]
struct Solved {
    discount: f64,
    lower: Option<f64>,
    upper: f64,
    vectors: usize,
    seconds: f64,
    returns: Option<Returns>,
}

#[pyfunction]
#[pyo3(signature = (domain, planner, discount, gap, seconds, episodes, max_steps, seed, progress))]
#[expect(clippy::too_many_arguments, reason = "Python names them")]
pub fn solve<'py>(
    py: Python<'py>,
    domain: &Bound<'py, Domain>,
    planner: &str,
    discount: Option<f64>,
    gap: f64,
    seconds: f64,
    episodes: usize,
    max_steps: Option<usize>,
    seed: u64,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let domain = domain.get().domain.clone();
    if domain.pomdp().is_none() {
        return Err(PyValueError::new_err(format!("{} has no exact model to plan with", domain.name)));
    }
    let discount = discount.unwrap_or(domain.discount);
    let how = match planner {
        "qmdp" => Exactly::Qmdp,
        "fast-informed" => Exactly::FastInformed,
        "point-based" => Exactly::PointBased,
        other => {
            let known = "qmdp, fast-informed, point-based";
            return Err(PyValueError::new_err(format!("planner {other:?} is not known; known: {known}")));
        }
    };
    let solved = task::run(py, progress, move |task| {
        let pomdp = domain.pomdp().expect("checked above");
        let started = Instant::now();
        let solution = match how {
            Exactly::Qmdp => qmdp(pomdp, discount)?,
            Exactly::FastInformed => fast_informed_bound(pomdp, discount)?,
            Exactly::PointBased => {
                let mut planner = PointBased::new(pomdp, discount, Gap { relative: gap, ..Gap::default() })?;
                let mut rounds = 0;
                while started.elapsed().as_secs_f64() < seconds && planner.next().is_some() {
                    rounds += 1;
                    task.tell("solving", rounds, None);
                }
                planner.solution()
            }
        };
        let seconds = started.elapsed().as_secs_f64();
        let max_steps = max_steps.unwrap_or_else(|| domain.steps_that_count(discount));
        let test = Test { domain: &domain, episodes, max_steps, discount, seed: Seed(seed) };
        let returns = (episodes > 0).then(|| test.returns(|| solution.policy(pomdp)));
        let Solution { vectors, lower, upper } = &solution;
        Ok(Solved { discount, lower: *lower, upper: *upper, vectors: vectors.len(), seconds, returns })
    })?;
    dict(py, &solved)
}

/// Planning methods for exact models.
enum Exactly {
    Qmdp,
    FastInformed,
    PointBased,
}
