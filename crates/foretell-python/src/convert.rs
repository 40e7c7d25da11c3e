//! What serde can write, as Python's dictionaries and lists, and back.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A report as a dictionary.
pub fn dict<'py>(py: Python<'py>, value: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    Ok(pythonize::pythonize(py, value)?)
}

/// Changes to parameters from a dictionary: a name that is none of them, or a value that cannot be its, is an error that names it.
pub fn overrides<T: DeserializeOwned>(given: &Bound<'_, PyDict>) -> PyResult<T> {
    pythonize::depythonize(given).map_err(|all| {
        let wrong = given.iter().find_map(|(name, value)| {
            let alone = PyDict::new(given.py());
            alone.set_item(&name, &value).ok()?;
            let error = pythonize::depythonize::<T>(&alone).err()?.to_string();
            let told = format!("{name} = {}: {error}", value.repr().ok()?);
            // Of the right type, but no value that it takes.
            let is_value = ["unknown variant", "OverflowError", "give a"].iter().any(|word| error.starts_with(word));
            Some(if is_value { PyValueError::new_err(told) } else { PyTypeError::new_err(told) })
        });
        wrong.unwrap_or_else(|| PyTypeError::new_err(all.to_string()))
    })
}
