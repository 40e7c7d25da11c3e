//! Errors of the library as Python exceptions.

use std::io;

use foretell::Error;
use pyo3::PyErr;
use pyo3::exceptions::PyValueError;

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
