//! Trajectories ⇄ files: tables of logs in CSV, JSON Lines or Parquet, one row per step.
//!
//! | column | holds |
//! |---|---|
//! | `episode_id` | rows of one episode must be consecutive; without it, flags divide the file |
//! | `step` | goes up by 1 within an episode; without it, rows are in order |
//! | `action` | a name or an integer |
//! | `observation` | the observation after the action; several `observation_*` columns make one symbol |
//! | `reward` | a number, or empty |
//! | `terminated`, `truncated` | true in the last row of an episode that ends that way |
//! | `action_prob` or `action_logp` | probability of the action under the behaviour policy, or its logarithm |
//!
//! Only `action` and `observation` are required. The names Gymnasium, Minari, RLlib, d3rlpy and
//! RLDS use are recognised. Nothing is repaired. What cannot be read is an error with file, line,
//! value and remedy; with [`OnBadEpisode::Skip`], the whole episode is dropped and counted instead.

mod cell;
mod formula;
mod watched;
mod input;
mod names;
mod dates;
mod dialect;
mod records;
mod table;
mod schema;
mod csv;
mod jsonl;
#[cfg(feature = "parquet")]
mod batches;
#[cfg(feature = "parquet")]
mod thrift;
#[cfg(feature = "parquet")]
mod footer;
#[cfg(feature = "parquet")]
mod page_header;
#[cfg(feature = "parquet")]
mod page_values;
#[cfg(feature = "parquet")]
mod pages;
#[cfg(feature = "parquet")]
mod parquet;
mod parse_cache;
mod symbols;
mod elapsed;
mod written;
mod columns;
mod row;
mod frame;
mod shift;
mod fit;
mod profile;
mod vocabulary;
mod guesser;
mod episode_guess;
mod order_guess;
mod guess;
mod notes;
mod episode_ids;
mod episodes;
mod memory;
mod rewarded;
mod half;
mod timing;
mod identity;
mod likeness;
mod summary;
mod sheet_types;
mod write;
mod sheet;
mod split;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::data::{Alphabet, Digest, EpisodeKeys, Trajectory};
use crate::error::{Error, Result};
use crate::rng::Seed;
use episodes::{Episodes, ReadState, Source};
use frame::Frame;
use half::HalfFilter;
use input::Opened;
use memory::Memory;
use rewarded::RewardedAlphabet;
use table::Table;
use watched::Versions;

pub(crate) use rewarded::MOST_REWARDS;

pub use cell::flag;
pub use columns::unused_columns;
pub use guess::{Guess, GuessedRole};
pub use identity::Identity;
pub use input::Format;
pub use names::expand;
pub use notes::Notes;
#[cfg(feature = "parquet")]
pub use parquet::is_decoding;
pub use schema::{MISSING, Role, Schema, join_names, split_names};
pub use sheet::Sheet;
pub use sheet_types::{CellValue, ColumnKind};
pub use shift::FIRST_ACTION;
pub use split::{Split, split};
pub use summary::{ActionCount, Availability, Lengths, ObservationCount, RareSymbols, Rewards, Summary};
pub use timing::{Dependence, Timing};
pub use write::Writer;

/// What to do with an episode that has a bad row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnBadEpisode {
    /// Stop with an error.
    #[default]
    Fail,
    /// Drop the whole episode and count it.
    Skip,
}

/// How logs are read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadOptions {
    /// What to do with an episode that has a bad row.
    pub on_bad: OnBadEpisode,
    /// What the columns mean.
    pub schema: Arc<Schema>,
}

/// A collection of trajectories, in files or in memory, that can be read repeatedly.
///
/// ```
/// use foretell::{Alphabet, End, Logs, Trajectory};
///
/// let mut alphabet = Alphabet::default();
/// let (north, wall) = (alphabet.intern_action("N"), alphabet.intern_observation("wall"));
/// let step = foretell::ActionObservation { action: north, observation: wall };
/// let walk = Trajectory { steps: vec![step], rewards: vec![None], action_probabilities: vec![], end: End::Truncated, about: Default::default() };
///
/// let logs = Logs::memory(alphabet, vec![walk.clone()]);
/// let mut reader = logs.open(Alphabet::default())?;
/// assert_eq!(reader.next().unwrap()?, walk);
/// assert_eq!(reader.alphabet().actions(), ["N"]);
/// # Ok::<(), foretell::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Logs {
    origin: Origin,
    half: Option<HalfFilter>,
}

#[derive(Clone, Debug)]
enum Origin {
    Files {
        paths: Arc<[PathBuf]>,
        options: ReadOptions,
        versions: Versions,
    },
    /// Trajectories that were read before, and the state of their reader.
    Memory {
        earlier: Arc<ReadState>,
        trajectories: Arc<[Trajectory]>,
    },
}

impl Logs {
    /// The trajectories of all these files, in order.
    pub fn files<P: Into<PathBuf>>(paths: impl IntoIterator<Item = P>, options: ReadOptions) -> Logs {
        let paths = paths.into_iter().map(Into::into).collect();
        Logs { origin: Origin::Files { paths, options, versions: Versions::default() }, half: None }
    }

    /// Trajectories in memory; `alphabet` names their symbols.
    pub fn memory(alphabet: Alphabet, trajectories: Vec<Trajectory>) -> Logs {
        Logs::read_before(ReadState { alphabet, ..ReadState::default() }, trajectories)
    }

    fn read_before(state: ReadState, trajectories: Vec<Trajectory>) -> Logs {
        Logs { origin: Origin::Memory { earlier: Arc::new(state), trajectories: trajectories.into() }, half: None }
    }

    /// The trajectories of a table in memory, with the same columns as files; it is called `name`
    /// in errors. It is read once, here.
    #[cfg(feature = "parquet")]
    pub fn table(name: &str, batches: Vec<arrow_array::RecordBatch>, options: ReadOptions) -> Result<Logs> {
        let open = |i: usize| {
            let table: Box<dyn Table> = Box::new(batches::Batches::new(name.to_string(), batches.clone()));
            (i == 0).then(|| Ok((name.to_string(), arranged(name, table, &options.schema)?)))
        };
        let options = ReadOptions { schema: fit::fit(&options.schema, open)?, ..options };
        let mut state = ReadState { schema: options.schema.clone(), ..ReadState::default() };
        let table = batches::Batches::new(name.to_string(), batches);
        let mut episodes = source(name.to_string(), table, &options, &mut state)?;
        let mut trajectories = Vec::new();
        while let Some(trajectory) = episodes.next(&mut state)? {
            trajectories.push(trajectory);
        }
        Ok(Logs::read_before(state, trajectories))
    }

    /// The same logs with cells for their measured columns: for those that the schema divides into
    /// bins, and for others whose values are numbers that hardly repeat. Logs in memory are
    /// unchanged.
    pub fn fitted(&self) -> Result<Logs> {
        let Origin::Files { paths, options, versions } = &self.origin else { return Ok(self.clone()) };
        let open = |i: usize| {
            let path: &PathBuf = paths.get(i)?;
            let name = path.display().to_string();
            Some(
                open_as_written(path, versions)
                    .and_then(|table| arranged(&name, table, &options.schema))
                    .map(|table| (name.clone(), table)),
            )
        };
        let options = ReadOptions { schema: fit::fit(&options.schema, open)?, ..options.clone() };
        Ok(self.with_options(options))
    }

    /// The same files, read in another way.
    fn with_options(&self, options: ReadOptions) -> Logs {
        let origin = match &self.origin {
            Origin::Files { paths, versions, .. } => Origin::Files { paths: paths.clone(), options, versions: versions.clone() },
            memory => memory.clone(),
        };
        Logs { origin, half: self.half.clone() }
    }

    /// What the columns of the first table seem to mean, where the schema does not say it.
    pub fn guess(&self) -> Result<Option<Guess>> {
        let Origin::Files { paths, options, versions } = &self.origin else { return Ok(None) };
        let Some(path) = paths.first() else { return Ok(None) };
        let profile = profile::Profile::of(open_as_written(path, versions)?, &options.schema)?;
        let name = path.display().to_string();
        match profile.malformed.clone() {
            Some(located) if profile.rows == 0 => return Err(located.into_error(&name)),
            None if profile.rows == 0 => return Err(Error::no_rows(&name)),
            _ => {}
        }
        let mut guess = guess::guess(&name, &profile, &options.schema);
        guess.check(&options.schema, |schema| reads_first_rows(path, versions, schema, options.on_bad));
        Ok(Some(guess))
    }

    /// The same logs with what can be guessed without asking added to the schema: episodes named by
    /// a column, a time by which rows are sorted, and, if the usual names are missing, actions and
    /// observations. Also returns the guess, where there was anything to guess.
    pub fn understood(&self) -> Result<(Logs, Option<Guess>)> {
        let Origin::Files { paths, options, versions } = &self.origin else { return Ok((self.clone(), None)) };
        let Some(path) = paths.first() else { return Ok((self.clone(), None)) };
        let table = open_as_written(path, versions)?;
        let usual = columns::Columns::find(&path.display().to_string(), table.columns(), &options.schema);
        let needs_none = usual.as_ref().is_ok_and(|columns| {
            let step = columns.step.is_none_or(|step| table.columns()[step].eq_ignore_ascii_case("step"));
            step && (!columns.episode.is_empty() || columns.rows_are_episodes || columns.ignored.is_empty())
        });
        if needs_none || !options.schema.wide.is_empty() {
            return Ok((self.clone(), None));
        }
        let Some(guess) = self.guess()? else { return Ok((self.clone(), None)) };
        let schema = guess.sure(&options.schema);
        columns::Columns::find(&path.display().to_string(), table.columns(), &schema)?;
        let changed = schema != *options.schema;
        let options = ReadOptions { schema: Arc::new(schema), ..options.clone() };
        let logs = self.with_options(options);
        Ok((logs, Some(guess).filter(|guess| changed || !guess.doubts.is_empty())))
    }

    /// The same logs with another schema; for logs in memory only a note of what their tables meant.
    pub fn with_schema(self, schema: Arc<Schema>) -> Logs {
        let origin = match self.origin {
            Origin::Files { paths, options, versions } => {
                Origin::Files { paths, options: ReadOptions { schema, ..options }, versions }
            }
            Origin::Memory { earlier, trajectories } => {
                Origin::Memory { earlier: Arc::new(ReadState { schema, ..(*earlier).clone() }), trajectories }
            }
        };
        Logs { origin, half: self.half }
    }

    /// What the columns of their tables mean, as far as it was given or fitted.
    pub fn schema(&self) -> &Arc<Schema> {
        match &self.origin {
            Origin::Files { options, .. } => &options.schema,
            Origin::Memory { earlier, .. } => &earlier.schema,
        }
    }

    /// How actions and observations of neighbouring rows depend on each other, from the first ones;
    /// `None` for few rows.
    pub fn timing(&self) -> Result<Option<Timing>> {
        let mut tally = timing::TimingTally::default();
        for z in self.open(Alphabet::default())? {
            tally.add(&z?);
            if tally.is_full() {
                break;
            }
        }
        Ok(tally.finish())
    }

    /// Hashes of their episodes, by which these are recognised later. It reads all of them.
    pub fn digest(&self) -> Result<Digest> {
        let mut reader = self.open(Alphabet::default())?;
        let (mut digest, mut keys) = (Digest::default(), EpisodeKeys::default());
        while let Some(z) = reader.next().transpose()? {
            digest.add(keys.key(reader.alphabet(), &z), 1);
        }
        Ok(digest)
    }

    /// A random half of the trajectories, or the other half: each trajectory is in exactly one.
    pub fn half(&self, seed: Seed, other: bool) -> Logs {
        Logs { origin: self.origin.clone(), half: Some(HalfFilter::new(seed, other)) }
    }

    /// Starts to read. The reader's alphabet begins with `alphabet`, and new names are appended. If
    /// it [observes rewards](Alphabet::observes_rewards), so do the observations read.
    pub fn open(&self, alphabet: Alphabet) -> Result<Reader> {
        self.open_at(alphabet, Position::default())
    }

    /// All trajectories, over an alphabet that must contain their actions; `whose` names its owner
    /// in errors.
    pub fn episodes_for(&self, known: &Alphabet, whose: &str) -> Result<Vec<Trajectory>> {
        let mut reader = self.open(known.clone())?;
        let episodes = reader.by_ref().collect::<Result<_>>()?;
        match reader.alphabet().actions()[known.actions().len()..].first() {
            Some(name) => {
                let problem = format!("the logs have the action {name:?}, which is unknown to the {whose}");
                Err(Error::data(problem, "learn from logs that contain it"))
            }
            None => Ok(episodes),
        }
    }

    /// [`Logs::open`] at the position of an earlier reader, whose alphabet this is.
    pub(crate) fn open_at(&self, alphabet: Alphabet, position: Position) -> Result<Reader> {
        let already_included = matches!(&self.origin, Origin::Memory { earlier, .. } if earlier.alphabet.observes_rewards());
        let (rewarded, alphabet) = match alphabet.observes_rewards() && !already_included {
            true => {
                let (rewarded, plain) = RewardedAlphabet::new(alphabet);
                (Some(rewarded), plain)
            }
            false => (None, alphabet),
        };
        let mut state = ReadState { alphabet, ..ReadState::default() };
        let file = position.file as usize;
        let mut sources = match &self.origin {
            Origin::Files { paths, .. } if paths.is_empty() => {
                return Err(Error::data("no log files were given", "name at least one"));
            }
            Origin::Files { paths, options, versions } => {
                let open = paths.get(file).map(|path| open(path, versions, options, &mut state)).transpose()?;
                let (paths, versions, options) = (paths.clone(), versions.clone(), options.clone());
                Sources { open, paths, versions, opened: file + 1, options, taken: 0 }
            }
            Origin::Memory { earlier, trajectories } => {
                let memory = Memory::new(&earlier.alphabet, trajectories.clone(), &mut state.alphabet);
                state = ReadState { alphabet: state.alphabet, ..(**earlier).clone() };
                let open = (file == 0).then(|| Box::new(memory) as Box<dyn Source>);
                let (paths, versions, options) = Default::default();
                Sources { open, paths, versions, opened: 0, options, taken: 0 }
            }
        };
        while sources.taken < position.episode {
            if sources.next(&mut state)?.is_none() {
                return Err(Error::data(
                    "the logs are shorter than they were",
                    "start again, without the checkpoint of earlier work",
                ));
            }
        }
        state.skipped = state.skipped.max(position.skipped);
        Ok(Reader { sources, state, rewarded, half: self.half.clone() })
    }
}

/// The trajectories of [`Logs`], one at a time: memory does not grow with their number.
///
/// It ends at the first error.
pub struct Reader {
    sources: Sources,
    /// The names as the logs have them, and notes.
    state: ReadState,
    /// The alphabet to use where observations include rewards.
    rewarded: Option<RewardedAlphabet>,
    half: Option<HalfFilter>,
}

/// The source that is being read, and the remaining files.
struct Sources {
    open: Option<Box<dyn Source>>,
    paths: Arc<[PathBuf]>,
    versions: Versions,
    opened: usize,
    options: ReadOptions,
    /// Trajectories taken from the source that is being read.
    taken: u64,
}

/// A position between two trajectories of logs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Position {
    /// The file that is being read, and the number of its trajectories read so far.
    file: u64,
    episode: u64,
    /// Bad episodes dropped so far.
    skipped: u64,
}

impl Position {
    /// The position after `episode` trajectories in memory.
    pub(crate) fn of_episode(episode: u64) -> Position {
        Position { episode, ..Position::default() }
    }
}

impl Reader {
    /// The names it began with, followed by those read so far.
    pub fn alphabet(&self) -> &Alphabet {
        self.rewarded.as_ref().map_or(&self.state.alphabet, RewardedAlphabet::alphabet)
    }

    /// The alphabet, once everything is read.
    pub fn into_alphabet(self) -> Alphabet {
        self.rewarded.map_or(self.state.alphabet, RewardedAlphabet::into_alphabet)
    }

    /// Its position.
    pub(crate) fn position(&self) -> Position {
        let Sources { open, paths, opened, taken, .. } = &self.sources;
        let (file, episode) = match open {
            Some(_) => (opened.saturating_sub(1), *taken),
            None => (paths.len().max(1), 0),
        };
        Position { file: file as u64, episode, skipped: self.state.skipped }
    }

    /// How many episodes were dropped so far.
    pub fn skipped(&self) -> u64 {
        self.state.skipped
    }

    /// Why the first of them was dropped.
    pub fn first_skipped(&self) -> Option<&Error> {
        self.state.first_skipped.as_deref()
    }

    /// Notes so far on what is no error.
    pub fn notes(&self) -> &Notes {
        &self.state.notes
    }
}

impl Reader {
    /// The next trajectory of the half that is read, with the observations of the logs.
    fn next_plain(&mut self) -> Result<Option<Trajectory>> {
        loop {
            let next = self.sources.next(&mut self.state)?;
            if next.is_none() || self.half.as_mut().is_none_or(HalfFilter::takes_next) {
                return Ok(next);
            }
        }
    }
}

impl Iterator for Reader {
    type Item = Result<Trajectory>;

    fn next(&mut self) -> Option<Result<Trajectory>> {
        let next = self.next_plain().and_then(|z| match (&mut self.rewarded, z) {
            (Some(rewarded), Some(z)) => rewarded.include_rewards(z, &self.state.alphabet).map(Some),
            (_, z) => Ok(z),
        });
        let next = next.transpose();
        if matches!(next, Some(Err(_)) | None) {
            self.sources.open = None;
            self.sources.opened = self.sources.paths.len();
        }
        next
    }
}

impl Sources {
    fn next(&mut self, state: &mut ReadState) -> Result<Option<Trajectory>> {
        while let Some(source) = &mut self.open {
            if let Some(trajectory) = source.next(state)? {
                self.taken += 1;
                return Ok(Some(trajectory));
            }
            self.taken = 0;
            self.open = match self.paths.get(self.opened) {
                Some(path) => Some(open(path, &self.versions, &self.options, state)?),
                None => None,
            };
            self.opened += 1;
        }
        Ok(None)
    }
}

fn open(path: &Path, versions: &Versions, options: &ReadOptions, state: &mut ReadState) -> Result<Box<dyn Source>> {
    let file = path.display().to_string();
    match input::open(path, versions)? {
        Opened::Csv(input) => source(file, csv::Csv::open(input)?, options, state),
        Opened::JsonLines(input) => source(file, jsonl::JsonLines::open(input)?, options, state),
        #[cfg(feature = "parquet")]
        Opened::Parquet(input) => source(file.clone(), parquet::Parquet::open(file, input)?, options, state),
        #[cfg(not(feature = "parquet"))]
        Opened::Parquet(_) => Err(no_parquet(path)),
    }
}

/// A table with its rows in order.
fn arranged(file: &str, table: Box<dyn Table>, schema: &Schema) -> Result<Box<dyn Table>> {
    Ok(if schema.arranges() { Box::new(Frame::arrange(file, table, schema)?) } else { table })
}

/// The table of a file.
fn open_as_written(path: &Path, versions: &Versions) -> Result<Box<dyn Table>> {
    Ok(match input::open(path, versions)? {
        Opened::Csv(input) => Box::new(csv::Csv::open(input)?),
        Opened::JsonLines(input) => Box::new(jsonl::JsonLines::open(input)?),
        #[cfg(feature = "parquet")]
        Opened::Parquet(input) => Box::new(parquet::Parquet::open(path.display().to_string(), input)?),
        #[cfg(not(feature = "parquet"))]
        Opened::Parquet(_) => return Err(no_parquet(path)),
    })
}

/// Reads the first rows of a file as a schema says.
fn reads_first_rows(path: &Path, versions: &Versions, schema: &Schema, on_bad: OnBadEpisode) -> Result<()> {
    let name = path.display().to_string();
    let head = || open_as_written(path, versions).map(|table| table::Head::new(table, profile::ROWS));
    let of_first = |i: usize| {
        let arranged = || Ok((name.clone(), arranged(&name, Box::new(head()?), schema)?));
        (i == 0).then(arranged)
    };
    let options = ReadOptions { schema: fit::fit(&Arc::new(schema.clone()), of_first)?, on_bad };
    let mut state = ReadState { schema: options.schema.clone(), ..ReadState::default() };
    let mut episodes = source(name, head()?, &options, &mut state)?;
    while episodes.next(&mut state)?.is_some() {}
    Ok(())
}

#[cfg(not(feature = "parquet"))]
fn no_parquet(path: &Path) -> Error {
    Error::input(
        path.display().to_string(),
        None,
        "this build of foretell cannot read Parquet",
        "build it with the feature parquet, or convert the file to CSV",
    )
}

/// The episodes of a table, row by row, or with its rows in memory where they must be put in order.
fn source(file: String, table: impl Table + 'static, options: &ReadOptions, state: &mut ReadState) -> Result<Box<dyn Source>> {
    match options.schema.arranges() {
        true => {
            let frame = Frame::arrange(&file, table, &options.schema)?;
            Ok(Box::new(Episodes::new(file, frame, options, state)?))
        }
        false => Ok(Box::new(Episodes::new(file, table, options, state)?)),
    }
}
