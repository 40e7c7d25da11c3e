//! Errors of the library as Python exceptions.

use std::ffi::CString;
use std::io;

use foretell::Error;
use pyo3::exceptions::{PyUserWarning, PyValueError};
use pyo3::prelude::*;

/// Warns of what a user should know of a file, if there is something.
pub fn warn(note: Option<&str>) -> PyResult<()> {
    let Some(note) = note.and_then(|note| CString::new(note).ok()) else { return Ok(()) };
    Python::attach(|py| PyErr::warn(py, &py.get_type::<PyUserWarning>(), &note, 1))
}

/// The exception for an error: `OSError` and its subclasses for files, otherwise `ValueError`.
/// Remedies name the keywords of Python.
pub fn raised(error: Error) -> PyErr {
    match &error {
        Error::Io { source, .. } => PyErr::from(io::Error::new(source.kind(), error.to_string())),
        Error::TooLarge { pairs, memory } => PyValueError::new_err(format!(
            "the moments of {pairs} pairs take more than memory={memory} bytes; raise memory, or compress them: \
             keep_moments=\"compressed\" in learn, compress=True in update"
        )),
        _ => PyValueError::new_err(error.to_string()),
    }
}
