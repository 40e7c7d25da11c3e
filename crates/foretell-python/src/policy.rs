//! Policies, and their state during an episode.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use foretell::plan::{Choice, Greedy};
use foretell::{ActionObservation, Plan, Policy as _};
use numpy::PyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::Serialize;

use crate::convert::dict;
use crate::error::{raised, warn};
use crate::model::Model;
use crate::names::{Names, action, observation, partly_known, shown};

/// What was compared on the logs, and what to be warned of.
#[derive(Serialize)]
struct Compared<'c> {
    #[serde(flatten)]
    choice: &'c Choice,
    warning: Option<String>,
}

/// A policy that was planned.
#[pyclass(frozen, module = "foretell", name = "Policy")]
pub struct Policy {
    pub plan: Arc<Plan>,
}

impl From<Plan> for Policy {
    fn from(plan: Plan) -> Policy {
        Policy { plan: Arc::new(plan) }
    }
}

#[pymethods]
impl Policy {
    #[staticmethod]
    fn load(path: PathBuf) -> PyResult<Policy> {
        let plan = Plan::load(path).map_err(raised)?;
        warn(plan.note())?;
        Ok(plan.into())
    }

    fn save(&self, path: PathBuf) -> PyResult<()> {
        self.plan.save(path).map_err(raised)
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.plan.to_bytes())
    }

    #[staticmethod]
    fn from_bytes(bytes: &[u8]) -> PyResult<Policy> {
        let plan = Plan::from_bytes(bytes, "these bytes").map_err(raised)?;
        warn(plan.note())?;
        Ok(plan.into())
    }

    #[getter]
    fn actions(&self) -> Vec<String> {
        self.plan.alphabet().actions().to_vec()
    }

    #[getter]
    fn observations(&self) -> Vec<String> {
        shown(self.plan.alphabet())
    }

    #[getter]
    fn observes_rewards(&self) -> bool {
        self.plan.alphabet().observes_rewards()
    }

    #[getter]
    fn params<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        dict(py, self.plan.params())
    }

    /// What was compared on the logs when it was planned.
    #[getter]
    fn choice<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.plan.choice().map(|choice| dict(py, &Compared { choice, warning: choice.warning() })).transpose()
    }

    /// The model that tracks the state, if it has one.
    #[getter]
    fn model(&self) -> Option<Model> {
        self.plan.model().map(|model| model.clone().into())
    }

    /// How measurements were mapped to its symbols.
    #[getter]
    fn encoding(&self) -> Option<&str> {
        self.plan.encoding()
    }

    /// The policy at the start of an episode.
    fn start(&self) -> Run {
        Run { plan: self.plan.clone(), greedy: Mutex::new(self.plan.policy()) }
    }
}

/// A policy during an episode.
#[pyclass(module = "foretell", name = "Run")]
pub struct Run {
    /// Behind a mutex, since Python may use an object from any thread.
    greedy: Mutex<Greedy>,
    plan: Arc<Plan>,
}

impl Run {
    fn names(&self) -> Names<'_> {
        Names { alphabet: self.plan.alphabet(), schema: self.plan.schema() }
    }

    fn greedy(&mut self) -> &mut Greedy {
        self.greedy.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Run {
    /// Starts an episode.
    fn reset(&mut self) {
        self.greedy().reset();
    }

    /// Index of the best action.
    #[getter]
    fn best(&mut self) -> u32 {
        self.greedy().best().0
    }

    /// Index of the best of some actions, which are given by name.
    fn best_among(&mut self, available: Vec<Bound<'_, PyAny>>) -> PyResult<u32> {
        let names = self.names();
        let actions = available.iter().map(|name| action(names, name)).collect::<PyResult<Vec<_>>>()?;
        let best = self.greedy().best_among(&actions);
        best.map(|a| a.0).ok_or_else(|| PyValueError::new_err("available: give at least one action of the policy"))
    }

    /// Estimated value of every action.
    #[getter]
    fn values<'py>(&mut self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_vec(py, self.greedy().values())
    }

    /// The state of the policy.
    #[getter]
    fn state_vector<'py>(&mut self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, self.greedy().state())
    }

    /// Updates the state with an action and its observation.
    #[pyo3(signature = (a, o, *, terminated = false, reward = None))]
    fn observe(&mut self, a: &Bound<'_, PyAny>, o: &Bound<'_, PyAny>, terminated: bool, reward: Option<f64>) -> PyResult<()> {
        let names = self.names();
        let action = action(names, a)?;
        match partly_known(names, o, terminated, reward)? {
            Some(name) => self.greedy().observe_partial(action, &name),
            None => {
                let observation = observation(names, o, terminated, reward)?;
                self.greedy().observe(ActionObservation { action, observation });
            }
        }
        Ok(())
    }
}
