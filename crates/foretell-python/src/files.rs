//! Paths of logs, models and policies.

use std::fs;
use std::path::PathBuf;

use foretell::log::expand;
use pyo3::prelude::*;

use crate::error::raised;

/// The files of a path: itself, the logs in a folder, or the files that match a pattern.
#[pyfunction]
pub fn expanded(path: PathBuf) -> PyResult<Vec<PathBuf>> {
    expand(&path).map_err(raised)
}

/// The kind of a file: "model" or "policy", if foretell wrote it.
#[pyfunction]
pub fn kind_of(path: PathBuf) -> PyResult<Option<String>> {
    let bytes = fs::read(&path).map_err(foretell::Error::io("read", &path)).map_err(raised)?;
    Ok(foretell::Stamp::of(&bytes).map(|stamp| stamp.kind))
}
