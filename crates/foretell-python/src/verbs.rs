//! What is done with logs, models and policies.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use foretell::baselines::Test;
use foretell::log::expand;
use foretell::off_policy::LogValue;
use foretell::policy::Exploring;
use foretell::pomdp::solve::{Gap, PointBased, Solution, fast_informed_bound, qmdp};
use foretell::search::{SearchProgress, Space};
use foretell::{
    Agent, AgentOverrides, AgentParams, Keep, LearnOverrides, LearnParams, Learned, Learner, LogTest, Moments, Pass,
    PlanOverrides, PlanParams, Progress, RefineOverrides, RefineParams, Refinement, Returns, Search, Seed, Uniform,
    agent as agents, diagnose as diagnosing, domains, ensemble_with, score as scoring,
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
use crate::names::action_named;
use crate::policy::Policy;
use crate::task::{self, Task};

/// The recipe of that name, with changes.
fn learning(preset: &str, given: &Bound<'_, PyDict>) -> PyResult<LearnParams> {
    let params = overrides::<LearnOverrides>(given)?.apply(recipe(preset, LearnParams::default, LearnParams::paper)?);
    params.validate().map_err(raised)?;
    Ok(params)
}

/// The recipe of that name.
fn recipe<P>(preset: &str, default: impl Fn() -> P, paper: impl Fn() -> P) -> PyResult<P> {
    match preset {
        "default" => Ok(default()),
        "paper" => Ok(paper()),
        other => Err(PyValueError::new_err(format!("preset {other:?} is not known; known: default, paper"))),
    }
}

fn refining(given: &Bound<'_, PyDict>) -> PyResult<RefineParams> {
    let params = overrides::<RefineOverrides>(given)?.apply(RefineParams::default());
    params.validate().map_err(raised)?;
    Ok(params)
}

/// The parameters of a verb: their names, and what they mean.
#[pyfunction]
pub fn parameters(verb: &str) -> PyResult<Vec<(&'static str, &'static str)>> {
    match verb {
        "learn" => Ok(LearnParams::FIELDS.to_vec()),
        "refine" => Ok(RefineParams::FIELDS.to_vec()),
        "plan" => Ok(PlanParams::FIELDS.to_vec()),
        "agent" => Ok(AgentParams::FIELDS.to_vec()),
        other => Err(PyValueError::new_err(format!("{other:?} has no parameters; learn, refine, plan and agent have"))),
    }
}

/// The values that the parameters of a verb have unless others are given.
#[pyfunction]
pub fn defaults<'py>(py: Python<'py>, verb: &str) -> PyResult<Bound<'py, PyAny>> {
    match verb {
        "learn" => dict(py, &LearnParams::default()),
        "refine" => dict(py, &RefineParams::default()),
        "plan" => dict(py, &PlanParams::default()),
        "agent" => dict(py, &AgentParams::default()),
        other => Err(PyValueError::new_err(format!("{other:?} has no parameters; learn, refine, plan and agent have"))),
    }
}

/// Files that a path stands for: itself, the logs in a folder, or what matches a pattern.
#[pyfunction]
pub fn expanded(path: PathBuf) -> PyResult<Vec<PathBuf>> {
    expand(&path).map_err(raised)
}

fn tell_learning(task: &Task, progress: Progress) {
    let what = match progress.pass {
        Pass::Survey => "reading",
        Pass::Moments => "learning",
        Pass::Operators => "second pass",
    };
    task.tell(what, progress.steps, progress.total);
}

fn keep(how: Option<&str>) -> PyResult<Keep> {
    Ok(match how {
        None => Keep::Nothing,
        Some("fitting") => Keep::Fitting,
        Some("exact") => Keep::Exact,
        Some("compressed") => Keep::Compressed,
        Some(other) => {
            return Err(PyValueError::new_err(format!("keep_moments = {other:?}: must be True, \"exact\" or \"compressed\"")));
        }
    })
}

impl From<Learned> for Model {
    fn from(learned: Learned) -> Model {
        Model { model: Arc::new(learned.model), moments: learned.moments.map(Arc::new) }
    }
}

fn refined(
    model: &foretell::Model,
    logs: &foretell::Logs,
    params: &RefineParams,
    task: &Task,
) -> foretell::Result<foretell::Model> {
    let mut refinement = Refinement::new(model, logs, params)?;
    for (i, round) in refinement.by_ref().enumerate() {
        round?;
        task.tell("refining", i as u64 + 1, None);
    }
    refinement.finish()
}

#[pyfunction]
#[pyo3(signature = (logs, preset, params, refine, ensemble, keep_moments, memory, progress))]
#[expect(clippy::too_many_arguments, reason = "Python names them")]
pub fn learn(
    py: Python<'_>,
    logs: &Bound<'_, Logs>,
    preset: &str,
    params: &Bound<'_, PyDict>,
    refine: Option<&Bound<'_, PyDict>>,
    ensemble: Option<usize>,
    keep_moments: Option<&str>,
    memory: usize,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Model> {
    let (params, keep) = (learning(preset, params)?, keep(keep_moments)?);
    let refine = refine.map(refining).transpose()?;
    let logs = logs.get().logs.clone();
    task::run(py, progress, move |task| {
        let mut tell = |progress| tell_learning(task, progress);
        let mut learned = Learner::new(&params).keep(keep).memory(memory).progress(&mut tell).learn(&logs)?;
        if let Some(params) = refine {
            learned.model = refined(&learned.model, &logs, &params, task)?;
        }
        if let Some(n) = ensemble {
            let all = (2 * n as u64).saturating_sub(1);
            let mut tell = |done: usize| task.tell("ensemble", done as u64, Some(all));
            learned.model = ensemble_with(&learned.model, &logs, n, None, &mut tell)?;
        }
        Ok(learned.into())
    })
}

#[pyfunction]
pub fn refine(
    py: Python<'_>,
    model: &Bound<'_, Model>,
    logs: &Bound<'_, Logs>,
    params: &Bound<'_, PyDict>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Model> {
    let params = refining(params)?;
    let (model, moments, logs) = (model.get().model.clone(), model.get().moments.clone(), logs.get().logs.clone());
    let model = task::run(py, progress, move |task| refined(&(*model).clone().without_ensemble(), &logs, &params, task))?;
    Ok(Model { model: Arc::new(model), moments })
}

#[pyfunction]
pub fn update(
    py: Python<'_>,
    model: &Bound<'_, Model>,
    logs: &Bound<'_, Logs>,
    memory: usize,
    compress: bool,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Model> {
    let moments = moments_of(model.get())?;
    let keep = if moments.is_exact() && !compress { Keep::Exact } else { Keep::Fitting };
    let logs = logs.get().logs.clone();
    task::run(py, progress, move |task| {
        let mut tell = |progress| tell_learning(task, progress);
        let learner = Learner::new(moments.params()).keep(keep).memory(memory).progress(&mut tell);
        Ok(learner.update((*moments).clone(), &logs)?.into())
    })
}

#[pyfunction]
pub fn merge(py: Python<'_>, models: Vec<Bound<'_, Model>>) -> PyResult<Model> {
    let all = models.iter().map(|model| moments_of(model.get())).collect::<PyResult<Vec<_>>>()?;
    let Some((first, others)) = all.split_first() else { return Err(PyValueError::new_err("no models were given")) };
    let (mut moments, others): (Moments, Vec<_>) = ((**first).clone(), others.to_vec());
    task::run(py, None, move |_| {
        for other in others {
            moments.merge((*other).clone())?;
        }
        Ok(Model { model: Arc::new(moments.model()?), moments: Some(Arc::new(moments)) })
    })
}

fn moments_of(model: &Model) -> PyResult<Arc<Moments>> {
    model.moments.clone().ok_or_else(|| {
        PyValueError::new_err("the model keeps no moments, so nothing can be added to it; learn it with keep_moments=True")
    })
}

#[pyfunction]
pub fn score<'py>(
    py: Python<'py>,
    model: &Bound<'py, Model>,
    logs: &Bound<'py, Logs>,
    truth: Option<&Bound<'py, Domain>>,
) -> PyResult<Bound<'py, PyAny>> {
    let (model, logs) = (model.get().model.clone(), logs.get().logs.clone());
    let truth = truth.map(|truth| truth.get().domain.clone());
    if let Some(domain) = truth.as_ref().filter(|domain| domain.pomdp().is_none()) {
        return Err(PyValueError::new_err(format!("{} has no exact model to compare with", domain.name)));
    }
    let score = task::run(py, None, move |_| scoring(&model, &logs, truth.as_ref().and_then(|domain| domain.pomdp())))?;
    dict(py, &score)
}

#[pyfunction]
pub fn plan(
    py: Python<'_>,
    model: &Bound<'_, Model>,
    logs: &Bound<'_, Logs>,
    preset: &str,
    params: &Bound<'_, PyDict>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Policy> {
    let params = overrides::<PlanOverrides>(params)?.apply(recipe(preset, PlanParams::default, PlanParams::paper)?);
    params.validate().map_err(raised)?;
    let (model, logs) = (model.get().model.clone(), logs.get().logs.clone());
    let plan = task::run(py, progress, move |task| {
        let episodes = logs.episodes_for(model.alphabet(), "model")?;
        let of = params.rounds as u64;
        foretell::plan(&model, &episodes, &params, &mut |round| task.tell("planning", round.number as u64, Some(of)))
    })?;
    Ok(plan.into())
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

/// What logs say, and whether the two estimates agree.
#[derive(Serialize)]
struct ByLogs {
    max_steps: usize,
    discount: f64,
    /// Steps whose reward is not zero.
    rewarded: usize,
    #[serde(flatten)]
    value: LogValue,
    agree: Option<bool>,
}

#[pyfunction]
#[pyo3(signature = (policy, logs, rollouts, max_steps, discount, replicates, seed, first))]
#[expect(clippy::too_many_arguments, reason = "Python names them")]
pub fn evaluate_by<'py>(
    py: Python<'py>,
    policy: &Bound<'py, Policy>,
    logs: &Bound<'py, Logs>,
    rollouts: usize,
    max_steps: Option<usize>,
    discount: Option<f64>,
    replicates: usize,
    seed: u64,
    first: Option<&str>,
) -> PyResult<Bound<'py, PyAny>> {
    let (plan, logs) = (policy.get().plan.clone(), logs.get().logs.clone());
    let first = first.map(|name| action_named(plan.alphabet(), name)).transpose()?;
    let report = task::run(py, None, move |_| {
        let episodes = logs.episodes_for(plan.alphabet(), "policy")?;
        let longest = episodes.iter().map(|z| z.steps.len()).max().unwrap_or(0);
        let (max_steps, discount) = (max_steps.unwrap_or(longest), discount.unwrap_or(plan.params().discount));
        let test = LogTest { max_steps, discount, rollouts, replicates, seed: Seed(seed), first };
        let value = test.evaluate(&plan, &episodes)?;
        let rewarded = episodes.iter().flat_map(|z| &z.rewards).flatten().filter(|reward| **reward != 0.0).count();
        Ok(ByLogs { max_steps, discount, rewarded, agree: value.agree(), value })
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
        let told = sampled.enumerate().map(|(i, z)| {
            task.tell("sampling", i as u64 + 1, Some(episodes as u64));
            z
        });
        Ok(Logs::of(domain.alphabet().clone(), told.collect()))
    })
}

#[pyfunction]
#[pyo3(signature = (logs, preset, params, folds, budget, progress))]
pub fn search<'py>(
    py: Python<'py>,
    logs: &Bound<'py, Logs>,
    preset: &str,
    params: &Bound<'py, PyDict>,
    folds: usize,
    budget: f64,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    if !(budget >= 0.0 && budget.is_finite()) {
        return Err(PyValueError::new_err(format!("budget = {budget}: give seconds, or 0 for as long as it takes")));
    }
    let base = learning(preset, params)?;
    let fixed = overrides::<LearnOverrides>(params)?;
    let logs = logs.get().logs.clone();
    let found = task::run(py, progress, move |task| {
        let started = Instant::now();
        let mut spent = || started.elapsed().as_secs_f64() / budget;
        let mut tell = |progress: SearchProgress| task.tell("searching", progress.done as u64, Some(progress.of as u64));
        let mut search = Search::new(&base, Space::around(&base, &fixed)).folds(folds).progress(&mut tell);
        if budget > 0.0 {
            search = search.budget(&mut spent);
        }
        search.run(&logs)
    })?;
    dict(py, &found)
}

#[pyfunction]
pub fn diagnose<'py>(
    py: Python<'py>,
    logs: &Bound<'py, Logs>,
    preset: &str,
    params: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    let (params, logs) = (learning(preset, params)?, logs.get().logs.clone());
    let found = task::run(py, None, move |_| diagnosing::diagnose(&logs, &params, &mut |_| {}))?;
    dict(py, &found)
}

fn agent_params(preset: &str, given: &Bound<'_, PyDict>) -> PyResult<AgentParams> {
    let refine = preset == "default";
    let params = overrides::<AgentOverrides>(given)?.apply(AgentParams { refine, ..AgentParams::default() });
    params.validate().map_err(raised)?;
    Ok(params)
}

/// What an agent outside of our domains needs to know: its parameters, the episodes of each round, and the rank of its models.
#[pyfunction]
pub fn agent_recipe<'py>(
    py: Python<'py>,
    preset: &str,
    params: &Bound<'py, PyDict>,
) -> PyResult<(Bound<'py, PyAny>, Vec<usize>, usize)> {
    let params = agent_params(preset, params)?;
    let shares = (0..params.agent_rounds).map(|round| params.share(round)).collect();
    Ok((dict(py, &params)?, shares, recipe(preset, agents::learning, LearnParams::paper)?.rank))
}

/// An agent in a domain: its policy, all episodes that it sampled, and what each round promised.
#[pyfunction]
#[pyo3(signature = (domain, preset, params, policy, observe_reward, pessimism, discount, seed, progress))]
#[expect(clippy::too_many_arguments, reason = "Python names them")]
pub fn agent(
    py: Python<'_>,
    domain: &Bound<'_, Domain>,
    preset: &str,
    params: &Bound<'_, PyDict>,
    policy: Option<&Bound<'_, Policy>>,
    observe_reward: bool,
    pessimism: f64,
    discount: Option<f64>,
    seed: u64,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<(Policy, Logs, Vec<Option<f64>>)> {
    let domain = domain.get().domain.clone();
    let discount = discount.unwrap_or_else(|| agents::planning_discount(domain.discount));
    let learning = LearnParams { seed, observe_reward, ..recipe(preset, agents::learning, LearnParams::paper)? };
    let planning = PlanParams { seed, discount, pessimism, ..recipe(preset, PlanParams::default, PlanParams::paper)? };
    let params = agent_params(preset, params)?;
    let guide = policy.map(|policy| policy.get().plan.clone());
    task::run(py, progress, move |task| {
        let of = params.agent_rounds as u64;
        let mut agent = Agent::new(&domain, params, learning, planning, Seed(seed))?;
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

/// What can be earned with an exact model.
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
        let pomdp = domain.pomdp().expect("it was looked for");
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

/// How to plan with an exact model.
enum Exactly {
    Qmdp,
    FastInformed,
    PointBased,
}

/// What a file holds: "model" or "policy", if it is one of ours.
#[pyfunction]
pub fn kind_of(path: PathBuf) -> PyResult<Option<String>> {
    let bytes = fs::read(&path).map_err(foretell::Error::io("read", &path)).map_err(raised)?;
    Ok(foretell::Stamp::of(&bytes).map(|stamp| stamp.kind))
}
