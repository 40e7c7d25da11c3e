//! One error type whose variants carry the values at fault and say what to do about them.

use std::io;
use std::path::{Path, PathBuf};

/// What every fallible function of this library returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that can go wrong with a user's files, data and parameters.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be opened, read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// `read`, `write`, `create`, …
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file was read, and something in it is wrong.
    #[error("{file}{}: {problem}; {remedy}", line.map(|n| format!(" line {n}")).unwrap_or_default())]
    Input {
        /// The file, as the user named it.
        file: String,
        /// Line (or row, for tables without lines), counted from 1.
        line: Option<u64>,
        /// What is wrong, with the value at fault.
        problem: String,
        /// What to do about it.
        remedy: String,
    },
    /// A parameter has a value it cannot have.
    #[error("{name} = {value}: {problem}")]
    Parameter {
        /// The field of the parameter struct.
        name: &'static str,
        /// The value given.
        value: String,
        /// What it must be.
        problem: String,
    },
    /// A name that is not in the alphabet of the model or domain.
    #[error("{kind} {name:?} is not known; known: {known}")]
    UnknownSymbol {
        /// `action` or `observation`.
        kind: &'static str,
        /// The name given.
        name: String,
        /// The names there are, shortened.
        known: String,
    },
    /// The data cannot support what was asked.
    #[error("{problem}; {remedy}")]
    Data {
        /// What is missing.
        problem: String,
        /// What to do about it.
        remedy: String,
    },
}

impl Error {
    /// A closure that turns an [`io::Error`] into an [`Error::Io`] for `path`.
    pub fn io(action: &'static str, path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Error {
        let path = path.as_ref().to_path_buf();
        move |source| Error::Io { action, path, source }
    }

    /// An [`Error::Input`] about `file`, at `line` where there is one.
    pub fn input(file: impl Into<String>, line: Option<u64>, problem: impl Into<String>, remedy: impl Into<String>) -> Error {
        Error::Input { file: file.into(), line, problem: problem.into(), remedy: remedy.into() }
    }

    /// An [`Error::Parameter`].
    pub fn parameter(name: &'static str, value: impl ToString, problem: impl Into<String>) -> Error {
        Error::Parameter { name, value: value.to_string(), problem: problem.into() }
    }

    /// An [`Error::Data`].
    pub fn data(problem: impl Into<String>, remedy: impl Into<String>) -> Error {
        Error::Data { problem: problem.into(), remedy: remedy.into() }
    }

    /// An [`Error::UnknownSymbol`] that lists at most the first dozen of the known names.
    pub fn unknown<'a>(kind: &'static str, name: &str, known: impl IntoIterator<Item = &'a str>) -> Error {
        const SHOWN: usize = 12;
        let known: Vec<&str> = known.into_iter().collect();
        let mut list = known.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
        if known.len() > SHOWN {
            list.push_str(&format!(", … ({} in all)", known.len()));
        }
        Error::UnknownSymbol { kind, name: name.to_string(), known: list }
    }
}
