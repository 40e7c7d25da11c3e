//! Conversion between serde's data and Python's dictionaries and lists.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A report as a dictionary.
pub fn dict<'py>(py: Python<'py>, value: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    Ok(pythonize::pythonize(py, value)?)
}

/// Overrides of parameters from a dictionary. An unknown name or an invalid value is an error that
/// names it.
pub fn overrides<T: DeserializeOwned>(given: &Bound<'_, PyDict>) -> PyResult<T> {
    pythonize::depythonize(given).map_err(|all| {
        let wrong = given.iter().find_map(|(name, value)| {
            let alone = PyDict::new(given.py());
            alone.set_item(&name, &value).ok()?;
            let error = pythonize::depythonize::<T>(&alone).err()?.to_string();
            let message = format!("{name} = {}: {error}", value.repr().ok()?);
            // Of the right type, but not one of the valid values.
            let is_value = ["unknown variant", "OverflowError", "give a"].iter().any(|word| error.starts_with(word));
            Some(if is_value { PyValueError::new_err(message) } else { PyTypeError::new_err(message) })
        });
        wrong.unwrap_or_else(|| PyTypeError::new_err(all.to_string()))
    })
}
