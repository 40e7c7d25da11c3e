//! Errors of the library as Python's.

use std::io;

use foretell::Error;
use pyo3::PyErr;
use pyo3::exceptions::PyValueError;

/// The exception for an error: `OSError` and its kinds for what files refuse, `ValueError` for the rest.
pub fn raised(error: Error) -> PyErr {
    match &error {
        Error::Io { source, .. } => PyErr::from(io::Error::new(source.kind(), error.to_string())),
        _ => PyValueError::new_err(error.to_string()),
    }
}
