//! Writing trajectories as tables.

#[cfg(feature = "parquet")]
mod parquet;

use std::borrow::Cow;
use std::fmt::{Debug, Write as _};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;

#[cfg(feature = "parquet")]
pub(super) use self::parquet::AnyParquet;
#[cfg(feature = "parquet")]
use self::parquet::ParquetRows;
use super::cell::flag;
use super::dialect::plain_number;
use super::formula::guarded;
use super::input::{Format, Kind};
use super::row::LISTED;
use super::schema::MISSING;
use crate::data::{Action, Alphabet, End, Trajectory};
use crate::error::{Error, Result};
use crate::limits;
use crate::store::AtomicFile;

/// Writes trajectories as a table that [`Logs`](crate::Logs) can read: episodes and steps are
/// numbered from 0.
///
/// The file appears in [`Writer::finish`]; a writer dropped before that leaves
/// nothing behind.
pub struct Writer {
    /// For messages.
    path: PathBuf,
    format: Format,
    /// `None` until the first trajectory determines the columns.
    rows: Option<Rows>,
    output: Option<Output>,
    episodes: i64,
    optional: Optional,
    names: Names,
}

/// How names are written in CSV.
#[derive(Clone, Copy, PartialEq)]
enum Names {
    /// With an apostrophe before those that a spreadsheet would run as formulas.
    Guarded,
    AsTheyAre,
}

/// Which columns that not all logs need are written.
#[derive(Clone, Copy, Default, PartialEq)]
struct Optional {
    probabilities: bool,
    available: bool,
}

/// Starts a file in the format of its extension.
pub(super) fn create(path: &Path) -> Result<(Format, Output)> {
    let Kind { format: Some(format), gzip } = Kind::of(path) else { return Err(no_format(path)) };
    if format == Format::Parquet && gzip {
        return Err(no_format(path));
    }
    check(format)?;
    let file = Sink::File(AtomicFile::create(path)?);
    let output = match gzip {
        true => Output::Gzip(GzEncoder::new(file, Compression::default())),
        false => Output::Plain(file),
    };
    Ok((format, output))
}

/// One row, as it is written.
#[derive(Clone, Copy, Serialize)]
pub(super) struct Row<'a> {
    pub episode_id: i64,
    pub step: i64,
    pub action: &'a str,
    /// `None` where it is missing.
    pub observation: Option<&'a str>,
    pub reward: Option<f64>,
    pub terminated: bool,
    pub truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action_prob: Option<f64>,
    /// The actions that could be taken, with `;` between them; nothing for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available: Option<&'a str>,
}

/// The columns of a [`Row`]; the last two are optional.
pub(super) const COLUMNS: [&str; 9] =
    ["episode_id", "step", "action", "observation", "reward", "terminated", "truncated", "action_prob", "available"];

enum Rows {
    Csv {
        rows: Box<csv::Writer<Output>>,
        scratch: String,
        names: Names,
    },
    JsonLines(Output),
    #[cfg(feature = "parquet")]
    Parquet(Box<ParquetRows>),
}

impl Writer {
    /// Starts a file in the format of its extension: `.csv`, `.jsonl`, `.ndjson` (each also with
    /// `.gz`) or `.parquet`.
    pub fn create(path: impl AsRef<Path>) -> Result<Writer> {
        let path = path.as_ref();
        let (format, output) = create(path)?;
        Ok(Writer::new(path.to_path_buf(), format, output))
    }

    /// Starts a table on a stream, such as standard output.
    pub fn stream(stream: Box<dyn Write + Send>, format: Format) -> Result<Writer> {
        check(format)?;
        let output = Output::Plain(Sink::Stream(BufWriter::new(stream)));
        Ok(Writer::new("the output stream".into(), format, output))
    }

    fn new(path: PathBuf, format: Format, output: Output) -> Writer {
        let (rows, optional, names) = (None, Optional::default(), Names::Guarded);
        Writer { path, format, rows, output: Some(output), episodes: 0, optional, names }
    }

    /// Numbers the episodes from `first` on, for a file that continues another.
    pub fn numbered_from(self, first: u64) -> Writer {
        Writer { episodes: first as i64, ..self }
    }

    /// Writes names in CSV as they are, also those that a spreadsheet would run as formulas, such as
    /// `=1+1`. Otherwise these have an apostrophe before them, which reading takes away.
    pub fn verbatim(self) -> Writer {
        Writer { names: Names::AsTheyAre, ..self }
    }

    /// Writes one trajectory, as the next episode.
    pub fn write(&mut self, alphabet: &Alphabet, trajectory: &Trajectory) -> Result<()> {
        let Trajectory { steps, rewards, action_probabilities, end, about } = trajectory;
        self.validate(alphabet, trajectory)?;
        self.begin(Optional::of(trajectory))?;
        let with_available = self.optional.available;
        let Some(rows) = &mut self.rows else { return Ok(()) };
        for (t, step) in steps.iter().enumerate() {
            let is_last = t + 1 == steps.len();
            let available = with_available.then(|| about.available_at(t).map_or(String::new(), |set| list(alphabet, set)));
            let row = Row {
                episode_id: self.episodes,
                step: t as i64,
                action: alphabet.action_name(step.action),
                observation: (!step.observation.is_missing()).then(|| &*alphabet.symbol(step.observation).name),
                reward: rewards[t],
                terminated: is_last && *end == End::Terminated,
                truncated: is_last && *end == End::Truncated,
                action_prob: action_probabilities.get(t).copied(),
                available: available.as_deref(),
            };
            rows.write(row).map_err(Error::io("write", &self.path))?;
        }
        self.episodes += 1;
        Ok(())
    }

    /// Completes the table and moves the file to its path.
    pub fn finish(mut self) -> Result<()> {
        self.begin(Optional::default())?;
        let Some(rows) = self.rows.take() else { return Ok(()) };
        rows.finish().map_err(Error::io("write", &self.path))?.commit(&self.path)
    }

    /// Writes the header, before the first row.
    fn begin(&mut self, optional: Optional) -> Result<()> {
        let Some(output) = self.output.take() else { return Ok(()) };
        self.optional = optional;
        let [required @ .., probability, available] = &COLUMNS;
        let mut columns: Vec<&str> = required.to_vec();
        columns.extend(optional.probabilities.then_some(*probability));
        columns.extend(optional.available.then_some(*available));
        let rows = Rows::begin(self.format, output, &columns, self.names).map_err(Error::io("write", &self.path))?;
        self.rows = Some(rows);
        Ok(())
    }

    /// Refuses what could not be read again.
    fn validate(&self, alphabet: &Alphabet, trajectory: &Trajectory) -> Result<()> {
        let Trajectory { steps, rewards, action_probabilities, .. } = trajectory;
        let refuse = |problem: String| Err(Error::data(format!("episode {}: {problem}", self.episodes), "a log cannot hold it"));
        if steps.is_empty() {
            return refuse("it has no steps".into());
        }
        let lengths = [rewards.len(), if action_probabilities.is_empty() { steps.len() } else { action_probabilities.len() }];
        if lengths != [steps.len(); 2] {
            return refuse(format!("{} steps but {} rewards and {} probabilities", steps.len(), lengths[0], lengths[1]));
        }
        let own = Optional::of(trajectory);
        if self.output.is_none() && self.optional.probabilities != own.probabilities {
            return Err(Error::data(
                format!("episode {}: some episodes have action probabilities and others do not", self.episodes),
                "write them to different files",
            ));
        }
        let has_sets = trajectory.about.available.iter().any(Option::is_some);
        if self.output.is_none() && has_sets && !self.optional.available {
            return Err(Error::data(
                format!("episode {}: some episodes have available actions and the first does not", self.episodes),
                "write those that have them first, or to another file",
            ));
        }
        let (actions, observations) = (alphabet.actions(), alphabet.observations());
        if let Some(name) = actions.iter().find(|name| own.available && (name.contains(LISTED) || name.trim() != *name)) {
            return refuse(format!("the action {name:?} cannot be in a list of available ones"));
        }
        for (step, reward) in steps.iter().zip(rewards) {
            let missing = step.observation.is_missing();
            match (actions.get(step.action.index()), observations.get(step.observation.index())) {
                (Some(action), None) if missing && !action.is_empty() => {}
                (Some(action), Some(symbol)) if MISSING.contains(&&**action) || MISSING.contains(&&*symbol.name) => {
                    return refuse(format!("{action:?} or {:?} would be read as a missing value", symbol.name));
                }
                (Some(action), Some(symbol)) if action.len().max(symbol.name.len()) > limits::NAME => {
                    return refuse(format!("a name has more than {} bytes", limits::NAME));
                }
                (Some(action), Some(symbol)) if is_renamed(action) || is_renamed(&symbol.name) => {
                    return refuse(format!("{action:?} or {:?} would be read without .0, as whole numbers are", symbol.name));
                }
                (Some(action), Some(symbol)) if action.is_empty() || symbol.name.is_empty() => {
                    return refuse("a name is empty".into());
                }
                (Some(_), Some(_)) => {}
                _ => return refuse(format!("action {} or observation {} has no name", step.action.0, step.observation.0)),
            }
            if let Some(reward) = reward.filter(|r| !(-limits::REWARD..=limits::REWARD).contains(r)) {
                return refuse(format!("a reward is {reward:e}, which is not within ±{:e}", limits::REWARD));
            }
        }
        Ok(())
    }
}

impl Optional {
    fn of(z: &Trajectory) -> Optional {
        Optional { probabilities: !z.action_probabilities.is_empty(), available: !z.about.available.is_empty() }
    }
}

/// Whether a reader of CSV gives it another name.
fn is_renamed(name: &str) -> bool {
    plain_number(name.as_bytes()).len() < name.len()
}

/// Actions with `;` between them. A single one that could be read as a flag has one after it.
fn list(alphabet: &Alphabet, actions: &[Action]) -> String {
    let names: Vec<&str> = actions.iter().map(|&a| alphabet.action_name(a)).collect();
    let mut list = names.join(&LISTED.to_string());
    if flag(&list).is_some() || MISSING.contains(&&*list) {
        list.push(LISTED);
    }
    list
}

impl Rows {
    fn begin(format: Format, output: Output, columns: &[&str], names: Names) -> io::Result<Rows> {
        Ok(match format {
            Format::Csv => {
                let mut rows = csv::Writer::from_writer(output);
                rows.write_record(columns).map_err(csv_error)?;
                Rows::Csv { rows: Box::new(rows), scratch: String::new(), names }
            }
            Format::JsonLines => Rows::JsonLines(output),
            #[cfg(feature = "parquet")]
            Format::Parquet => Rows::Parquet(Box::new(ParquetRows::begin(output, columns)?)),
            #[cfg(not(feature = "parquet"))]
            Format::Parquet => return Err(io::Error::other("this build cannot write Parquet")),
        })
    }

    fn write(&mut self, row: Row<'_>) -> io::Result<()> {
        match self {
            Rows::Csv { rows, scratch, names } => write_csv(rows, scratch, row, *names).map_err(csv_error),
            Rows::JsonLines(output) => {
                serde_json::to_writer(&mut *output, &row)?;
                output.write_all(b"\n")
            }
            #[cfg(feature = "parquet")]
            Rows::Parquet(rows) => rows.write(row),
        }
    }

    fn finish(self) -> io::Result<Output> {
        match self {
            Rows::Csv { rows, .. } => rows.into_inner().map_err(|error| error.into_error()),
            Rows::JsonLines(output) => Ok(output),
            #[cfg(feature = "parquet")]
            Rows::Parquet(rows) => rows.finish(),
        }
    }
}

/// The error behind a CSV error; the crate's own conversion would hide its kind, as that of a
/// closed pipe.
pub(super) fn csv_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

fn write_csv(rows: &mut csv::Writer<Output>, scratch: &mut String, row: Row<'_>, names: Names) -> csv::Result<()> {
    let name = |name| if names == Names::Guarded { guarded(name) } else { Cow::Borrowed(name) };
    write_number(rows, scratch, row.episode_id)?;
    write_number(rows, scratch, row.step)?;
    rows.write_field(&*name(row.action))?;
    rows.write_field(&*name(row.observation.unwrap_or_default()))?;
    match row.reward {
        Some(reward) => write_number(rows, scratch, reward)?,
        None => rows.write_field("")?,
    }
    rows.write_field(if row.terminated { "true" } else { "false" })?;
    rows.write_field(if row.truncated { "true" } else { "false" })?;
    if let Some(probability) = row.action_prob {
        write_number(rows, scratch, probability)?;
    }
    if let Some(available) = row.available {
        rows.write_field(&*name(available))?;
    }
    rows.write_record(None::<&[u8]>)?;
    Ok(())
}

/// `Debug` of a float is the shortest text that reads back as the same number, and writes 1e300
/// without 301 digits.
fn write_number(rows: &mut csv::Writer<Output>, scratch: &mut String, number: impl Debug) -> csv::Result<()> {
    scratch.clear();
    write!(scratch, "{number:?}").map_err(io::Error::other)?;
    rows.write_field(&*scratch)
}

/// The output of a table, compressed or not.
pub(super) enum Output {
    Plain(Sink),
    Gzip(GzEncoder<Sink>),
}

pub(super) enum Sink {
    File(AtomicFile),
    Stream(BufWriter<Box<dyn Write + Send>>),
}

impl Output {
    /// Completes the compression and moves a file to its path.
    pub fn commit(self, path: &Path) -> Result<()> {
        let sink = match self {
            Output::Plain(sink) => sink,
            Output::Gzip(gzip) => gzip.finish().map_err(Error::io("write", path))?,
        };
        match sink {
            Sink::File(file) => file.commit(),
            Sink::Stream(mut stream) => stream.flush().map_err(Error::io("write", path)),
        }
    }

    fn inner(&mut self) -> &mut dyn Write {
        match self {
            Output::Plain(Sink::File(file)) => file,
            Output::Plain(Sink::Stream(stream)) => stream,
            Output::Gzip(gzip) => gzip,
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.inner().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner().flush()
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Sink::File(file) => file.write(bytes),
            Sink::Stream(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Sink::File(file) => file.flush(),
            Sink::Stream(stream) => stream.flush(),
        }
    }
}

fn no_format(path: &Path) -> Error {
    Error::data(
        format!("the extension of {} is not a known format", path.display()),
        "let it end in .csv, .csv.gz, .jsonl, .jsonl.gz or .parquet",
    )
}

fn check(format: Format) -> Result<()> {
    match format {
        Format::Parquet if !cfg!(feature = "parquet") => {
            Err(Error::data("this build of foretell cannot write Parquet", "build it with the feature parquet, or write CSV"))
        }
        _ => Ok(()),
    }
}
