//! One error type whose variants carry the values at fault and say what to do about them.
//!
//! What a caller can act on has a variant of its own. Messages name parameters in backticks, as
//! fields of the library's structs (`max_test_length`); front ends may show them as flags or
//! keywords.

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
        /// The error of the operating system.
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
    /// A parameter has a value out of its range.
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
        /// The known names, shortened.
        known: String,
    },
    /// A Foretell file of another kind than the one asked for.
    #[error("{file}: it is a {found}, not a {expected}; give a {expected}")]
    WrongKind {
        /// The file, as the user named it.
        file: String,
        /// What it is.
        found: String,
        /// What was asked for.
        expected: &'static str,
    },
    /// A Foretell file in another version of the format.
    #[error(
        "{file}: {kind} format {found}, but this version of foretell reads format {supported}; {again}, or use the version of foretell that wrote it"
    )]
    Version {
        /// The file, as the user named it.
        file: String,
        /// What kind of file it is.
        kind: &'static str,
        /// The version of its format.
        found: u32,
        /// The version that can be read.
        supported: u32,
        /// How to make such a file again.
        again: &'static str,
    },
    /// A Foretell file that contradicts itself.
    #[error("{file}: the {kind} is damaged: {problem}; {again}")]
    Damaged {
        /// The file, as the user named it.
        file: String,
        /// What kind of file it is.
        kind: &'static str,
        /// What is wrong.
        problem: String,
        /// How to make such a file again.
        again: &'static str,
    },
    /// The logs hold no steps.
    #[error("the logs hold no steps; give at least one episode")]
    NoSteps,
    /// Rewards are needed for something, and the logs have none.
    #[error("the logs have no rewards {purpose}; {remedy}")]
    NoRewards {
        /// For what: `to observe`, `to plan for`.
        purpose: &'static str,
        /// What to do about it.
        remedy: &'static str,
    },
    /// A model file contains no moments, so no logs can be added to it.
    #[error(
        "{file}: the model keeps no moments, so nothing can be added to it; learn it with `keep_moments`, or learn again from all logs"
    )]
    NoMoments {
        /// The file, as the user named it.
        file: String,
    },
    /// Moments take more memory than allowed.
    #[error("the moments of {pairs} pairs take more than {}; raise `memory`, or let them be compressed (`keep_moments` compressed)", bytes(*.memory))]
    TooLarge {
        /// Pairs whose moments are to be kept.
        pairs: usize,
        /// The limit in bytes.
        memory: usize,
    },
    /// What was asked for needs a POMDP, and the model is linear.
    #[error("{what} needs a POMDP, but the model is linear, and its operators may give negative probabilities; refine the model first{}", or(.instead))]
    NeedsPomdp {
        /// `this planner`, …
        what: &'static str,
        /// What could be done instead.
        instead: Option<&'static str>,
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

/// A number of bytes with its unit.
fn bytes(bytes: usize) -> String {
    let units = [(1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")];
    let (unit, name) = units.into_iter().find(|(unit, _)| bytes as f64 >= *unit).unwrap_or((1.0, "B"));
    format!("{} {name}", (bytes as f64 / unit * 10.0).round() / 10.0)
}

fn or(instead: &Option<&'static str>) -> String {
    instead.map_or_else(String::new, |instead| format!(", or {instead}"))
}
