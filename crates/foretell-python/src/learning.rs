//! Learning models from logs, and scoring them.

use std::sync::Arc;
use std::time::Instant;

use foretell::data::Digest;
use foretell::judge::search::{SearchProgress, Space};
use foretell::{
    FitProgress, Keep, LearnOverrides, LearnParams, Learner, Moments, Pass, Progress, Recipe, RefineOverrides, RefineParams,
    Refinement, Search, SelectParams, judge::diagnose as diagnosing, score as scoring,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::convert::{dict, overrides};
use crate::domain::Domain;
use crate::error::raised;
use crate::logs::Logs;
use crate::model::Model;
use crate::parameters::recipe;
use crate::task::{self, Task};

/// The preset of that name, with overrides.
fn learning(preset: &str, given: &Bound<'_, PyDict>) -> PyResult<LearnParams> {
    let params = overrides::<LearnOverrides>(given)?.apply(recipe(preset, LearnParams::default, LearnParams::paper)?);
    params.validate().map_err(raised)?;
    Ok(params)
}

fn refining(given: &Bound<'_, PyDict>) -> PyResult<RefineParams> {
    let params = overrides::<RefineOverrides>(given)?.apply(RefineParams::default());
    params.validate().map_err(raised)?;
    Ok(params)
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

impl Model {
    fn of(model: foretell::Model, moments: Option<Moments>) -> Model {
        Model { model: Arc::new(model), moments: moments.map(Arc::new) }
    }
}

#[pyfunction]
#[pyo3(signature = (logs, preset, params, refine, select, ensemble, keep_moments, memory, progress))]
#[expect(clippy::too_many_arguments, reason = "Python names them")]
pub fn learn(
    py: Python<'_>,
    logs: &Bound<'_, Logs>,
    preset: &str,
    params: &Bound<'_, PyDict>,
    refine: Option<&Bound<'_, PyDict>>,
    select: Option<&Bound<'_, PyDict>>,
    ensemble: Option<usize>,
    keep_moments: Option<&str>,
    memory: usize,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<(Model, Option<Py<PyAny>>)> {
    let fixed = overrides::<LearnOverrides>(params)?;
    let (params, keep) = (learning(preset, params)?, keep(keep_moments)?);
    let refine = refine.map(refining).transpose()?;
    let select = select.map(|given| -> PyResult<SelectParams> { Ok(SelectParams { fixed, ..overrides(given)? }) }).transpose()?;
    let logs = logs.get().logs.clone();
    let recipe = Recipe { learn: params, refine, select, ensemble, keep, memory };
    let (model, selection) = task::run(py, progress, move |task| {
        let mut rounds = 0;
        let mut tell = |progress| match progress {
            FitProgress::Selecting(stage) => task.tell("selecting", stage as u64, None),
            FitProgress::Learning(progress) => tell_learning(task, progress),
            FitProgress::Resumed(done) => rounds = done as u64,
            FitProgress::Refining(_) => {
                rounds += 1;
                task.tell("refining", rounds, None);
            }
            FitProgress::Ensemble(done, of) => task.tell("ensemble", done as u64, Some(of as u64)),
        };
        let fitted = recipe.fitting().progress(&mut tell).run(&logs)?;
        Ok((Model::of(fitted.model, fitted.learned.moments), fitted.selection))
    })?;
    Ok((model, selection.map(|selection| dict(py, &selection).map(Bound::unbind)).transpose()?))
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
    let model = task::run(py, progress, move |task| {
        let mut refinement = Refinement::new(&model, &logs, &params)?;
        for (i, round) in refinement.by_ref().enumerate() {
            round?;
            task.tell("refining", i as u64 + 1, None);
        }
        refinement.finish()
    })?;
    Ok(Model { model: Arc::new(model), moments })
}

#[pyfunction]
pub fn update(
    py: Python<'_>,
    model: &Bound<'_, Model>,
    logs: &Bound<'_, Logs>,
    memory: usize,
    compress: bool,
    again: bool,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Model> {
    let moments = moments_of(model.get())?;
    let keep = if moments.is_exact() && !compress { Keep::Exact } else { Keep::Fitting };
    let (logs, old) = (logs.get().logs.clone(), model.get().model.clone());
    task::run(py, progress, move |task| {
        let mut tell = |progress| tell_learning(task, progress);
        let learner = Learner::new(moments.params()).keep(keep).memory(memory).progress(&mut tell);
        let learned = learner.update((*moments).clone(), &logs)?;
        let known = &old.origin().digest;
        let mut more = learned.digest.clone().map_or_else(|| logs.digest(), Ok)?;
        match again {
            true => more = more.without(known),
            false => known.refuse_again(&more)?,
        }
        Ok(Model::of(learned.model.continuing(&old, &more), learned.moments))
    })
}

#[pyfunction]
pub fn merge(py: Python<'_>, models: Vec<Bound<'_, Model>>, again: bool) -> PyResult<Model> {
    let all = models.iter().map(|model| moments_of(model.get())).collect::<PyResult<Vec<_>>>()?;
    let Some((first, others)) = all.split_first() else {
        return Err(PyValueError::new_err("merge needs at least one model; give the models as arguments"));
    };
    let old: Vec<_> = models.iter().map(|model| model.get().model.clone()).collect();
    let (mut moments, others): (Moments, Vec<_>) = ((**first).clone(), others.to_vec());
    task::run(py, None, move |_| {
        let mut digest = Digest::default();
        for model in &old {
            let own = &model.origin().digest;
            match again {
                true => digest.merge(&own.without(&digest)),
                false => {
                    digest.refuse_again(own)?;
                    digest.merge(own);
                }
            }
        }
        for other in others {
            moments.merge((*other).clone())?;
        }
        Ok(Model::of(moments.model()?.continuing(&old[0], &digest), Some(moments)))
    })
}

fn moments_of(model: &Model) -> PyResult<Arc<Moments>> {
    model.linear()?;
    model.moments.clone().ok_or_else(|| {
        PyValueError::new_err("the model keeps no moments, so no logs can be added to it; learn it with keep_moments=True")
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
        return Err(PyValueError::new_err(format!("truth: {} has no exact model to compare with", domain.name)));
    }
    let score = task::run(py, None, move |_| scoring(&model, &logs, truth.as_ref().and_then(|domain| domain.pomdp())))?;
    dict(py, &score)
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
        return Err(PyValueError::new_err(format!("budget = {budget}: give a number of seconds, or 0 for no limit")));
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
