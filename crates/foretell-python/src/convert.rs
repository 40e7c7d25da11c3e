//! What serde can write, as Python's dictionaries and lists, and back.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A report as a dictionary.
pub fn dict<'py>(py: Python<'py>, value: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    Ok(pythonize::pythonize(py, value)?)
}

/// Changes to parameters from a dictionary: a name that is none of them is an error.
pub fn overrides<T: DeserializeOwned>(given: &Bound<'_, PyAny>) -> PyResult<T> {
    pythonize::depythonize(given).map_err(|e| PyTypeError::new_err(e.to_string()))
}
