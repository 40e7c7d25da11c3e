//! What paths stand for.

use std::fs;
use std::path::PathBuf;

use foretell::log::expand;
use pyo3::prelude::*;

use crate::error::raised;

/// Files that a path stands for: itself, the logs in a folder, or what matches a pattern.
#[pyfunction]
pub fn expanded(path: PathBuf) -> PyResult<Vec<PathBuf>> {
    expand(&path).map_err(raised)
}

/// What a file holds: "model" or "policy", if it is one of ours.
#[pyfunction]
pub fn kind_of(path: PathBuf) -> PyResult<Option<String>> {
    let bytes = fs::read(&path).map_err(foretell::Error::io("read", &path)).map_err(raised)?;
    Ok(foretell::Stamp::of(&bytes).map(|stamp| stamp.kind))
}
