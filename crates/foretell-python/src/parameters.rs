//! The parameters of functions, as declared by the library.

use foretell::{AgentParams, LearnParams, PlanParams, RefineParams};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::convert::dict;

/// The preset of that name.
pub fn recipe<P>(preset: &str, default: impl Fn() -> P, paper: impl Fn() -> P) -> PyResult<P> {
    match preset {
        "default" => Ok(default()),
        "paper" => Ok(paper()),
        other => Err(PyValueError::new_err(format!("preset {other:?} is not known; known: default, paper"))),
    }
}

/// The parameters of a function: their names and meanings.
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

/// The default values of the parameters of a function.
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
