//! Trajectories ⇄ files: tables of logs in CSV, JSON Lines or Parquet, one row per step.
//!
//! | column | holds |
//! |---|---|
//! | `episode_id` | rows of one episode stand together; without it, flags divide the file |
//! | `step` | goes up by 1 within an episode; without it, rows are in order |
//! | `action` | a name or an integer |
//! | `observation` | what answered the action; several `observation_*` columns make one symbol |
//! | `reward` | a number, or empty |
//! | `terminated`, `truncated` | true in the last row, where it ends that way |
//! | `action_prob` or `action_logp` | how likely the logging policy was to take the action |
//!
//! Only `action` and `observation` are required. The names Gymnasium, Minari, RLlib, d3rlpy and RLDS use are recognised.
//! Nothing is repaired: what cannot be read is an error that names file, line, value and remedy, or, with
//! [`OnBadEpisode::Skip`], drops the whole episode and is counted.

mod cell;
mod input;
mod records;
mod table;
mod csv;
mod jsonl;
#[cfg(feature = "parquet")]
mod batches;
#[cfg(feature = "parquet")]
mod parquet;
mod recent;
mod row;
mod notes;
mod seen;
mod episodes;
mod memory;
mod rewarded;
mod half;
mod identity;
mod names;
mod summary;
mod write;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::data::{Alphabet, Trajectory};
use crate::error::{Error, Result};
use crate::rng::Seed;
use episodes::{Book, Episodes, Source};
use half::Half;
use input::Opened;
use memory::Memory;
use rewarded::Rewarded;

pub use identity::Identity;
pub use input::Format;
pub use names::expand;
pub use notes::Notes;
pub use summary::{ActionCount, Lengths, ObservationCount, Rare, Rewards, Summary};
pub use table::unused_columns;
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ReadOptions {
    /// What to do with an episode that has a bad row.
    pub on_bad: OnBadEpisode,
}

/// A collection of trajectories that can be read as often as needed: files, or what is in memory.
///
/// ```
/// use foretell::{Alphabet, End, Logs, Trajectory};
///
/// let mut alphabet = Alphabet::default();
/// let (north, wall) = (alphabet.intern_action("N"), alphabet.intern_observation("wall"));
/// let step = foretell::ActionObservation { action: north, observation: wall };
/// let walk = Trajectory { steps: vec![step], rewards: vec![None], action_probabilities: vec![], end: End::Truncated };
///
/// let logs = Logs::memory(alphabet, vec![walk.clone()]);
/// let mut reader = logs.open(Alphabet::default())?;
/// assert_eq!(reader.next().unwrap()?, walk);
/// assert_eq!(reader.alphabet().actions(), ["N"]);
/// # Ok::<(), foretell::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Logs {
    place: Where,
    half: Option<Half>,
}

#[derive(Clone, Debug)]
enum Where {
    Files {
        paths: Arc<[PathBuf]>,
        options: ReadOptions,
    },
    /// What was read before, and what was noticed then.
    Memory {
        known: Arc<Book>,
        trajectories: Arc<[Trajectory]>,
    },
}

impl Logs {
    /// The trajectories of all these files, in order.
    pub fn files<P: Into<PathBuf>>(paths: impl IntoIterator<Item = P>, options: ReadOptions) -> Logs {
        Logs { place: Where::Files { paths: paths.into_iter().map(Into::into).collect(), options }, half: None }
    }

    /// Trajectories that are already there; `alphabet` names what they hold.
    pub fn memory(alphabet: Alphabet, trajectories: Vec<Trajectory>) -> Logs {
        Logs::read_before(Book { alphabet, ..Book::default() }, trajectories)
    }

    fn read_before(book: Book, trajectories: Vec<Trajectory>) -> Logs {
        Logs { place: Where::Memory { known: Arc::new(book), trajectories: trajectories.into() }, half: None }
    }

    /// The trajectories of a table in memory, with the columns that files have; errors call it `name`. It is read once, here.
    #[cfg(feature = "parquet")]
    pub fn table(name: &str, batches: Vec<arrow_array::RecordBatch>, options: ReadOptions) -> Result<Logs> {
        let mut book = Book::default();
        let mut episodes =
            Episodes::new(name.to_string(), batches::Batches::new(name.to_string(), batches), options.on_bad, &mut book)?;
        let mut trajectories = Vec::new();
        while let Some(trajectory) = episodes.next(&mut book)? {
            trajectories.push(trajectory);
        }
        Ok(Logs::read_before(book, trajectories))
    }

    /// A half of the trajectories, drawn at random, or the other half: each goes to one of the two.
    pub fn half(&self, seed: Seed, other: bool) -> Logs {
        Logs { place: self.place.clone(), half: Some(Half::new(seed, other)) }
    }

    /// Starts to read. The reader's alphabet begins with `alphabet`, and new names are added behind. If it
    /// [observes rewards](Alphabet::observes_rewards), so do the observations read.
    pub fn open(&self, alphabet: Alphabet) -> Result<Reader> {
        self.open_at(alphabet, Position::default())
    }

    /// All trajectories, over an alphabet that must know their actions; errors say that `whose` it is does not.
    pub fn episodes_for(&self, known: &Alphabet, whose: &str) -> Result<Vec<Trajectory>> {
        let mut reader = self.open(known.clone())?;
        let episodes = reader.by_ref().collect::<Result<_>>()?;
        match reader.alphabet().actions()[known.actions().len()..].first() {
            Some(name) => {
                let problem = format!("the logs have the action {name:?}, which the {whose} does not know");
                Err(Error::data(problem, "learn from logs that have it"))
            }
            None => Ok(episodes),
        }
    }

    /// [`Logs::open`] at a place where another reader, whose alphabet this is, has been.
    pub(crate) fn open_at(&self, alphabet: Alphabet, position: Position) -> Result<Reader> {
        let told = matches!(&self.place, Where::Memory { known, .. } if known.alphabet.observes_rewards());
        let (rewarded, alphabet) = match alphabet.observes_rewards() && !told {
            true => {
                let (rewarded, plain) = Rewarded::new(alphabet);
                (Some(rewarded), plain)
            }
            false => (None, alphabet),
        };
        let mut book = Book { alphabet, ..Book::default() };
        let file = position.file as usize;
        let mut sources = match &self.place {
            Where::Files { paths, .. } if paths.is_empty() => {
                return Err(Error::data("no log files were given", "name at least one"));
            }
            Where::Files { paths, options } => {
                let open = paths.get(file).map(|path| open(path, *options, &mut book)).transpose()?;
                Sources { open, paths: paths.clone(), opened: file + 1, options: *options, taken: 0 }
            }
            Where::Memory { known, trajectories } => {
                let memory = Memory::new(&known.alphabet, trajectories.clone(), &mut book.alphabet);
                book = Book { alphabet: book.alphabet, ..(**known).clone() };
                let open = (file == 0).then(|| Box::new(memory) as Box<dyn Source>);
                Sources { open, paths: Arc::default(), opened: 0, options: ReadOptions::default(), taken: 0 }
            }
        };
        while sources.taken < position.episode {
            if sources.next(&mut book)?.is_none() {
                return Err(Error::data(
                    "the logs are shorter than they were",
                    "begin anew, without what is left of earlier work",
                ));
            }
        }
        book.skipped = book.skipped.max(position.skipped);
        Ok(Reader { sources, book, rewarded, half: self.half.clone() })
    }
}

/// The trajectories of [`Logs`], one at a time: memory does not grow with their number.
///
/// It ends at the first error.
pub struct Reader {
    sources: Sources,
    /// The names that stand in the logs, and what was noticed.
    book: Book,
    /// Where observations are to tell rewards.
    rewarded: Option<Rewarded>,
    half: Option<Half>,
}

/// The source that is being read, and the files behind it.
struct Sources {
    open: Option<Box<dyn Source>>,
    paths: Arc<[PathBuf]>,
    opened: usize,
    options: ReadOptions,
    /// Trajectories taken from the source that is being read.
    taken: u64,
}

/// A place between two trajectories of logs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Position {
    /// The file that is being read, and how many trajectories of it have been.
    file: u64,
    episode: u64,
    /// Bad episodes dropped so far.
    skipped: u64,
}

impl Position {
    /// After so many trajectories in memory.
    pub(crate) fn of_episode(episode: u64) -> Position {
        Position { episode, ..Position::default() }
    }
}

impl Reader {
    /// The names of what was read so far, behind those it began with.
    pub fn alphabet(&self) -> &Alphabet {
        self.rewarded.as_ref().map_or(&self.book.alphabet, Rewarded::alphabet)
    }

    /// The alphabet, once everything is read.
    pub fn into_alphabet(self) -> Alphabet {
        self.rewarded.map_or(self.book.alphabet, Rewarded::into_alphabet)
    }

    /// Where it is.
    pub(crate) fn position(&self) -> Position {
        let Sources { open, paths, opened, taken, .. } = &self.sources;
        let (file, episode) = match open {
            Some(_) => (opened.saturating_sub(1), *taken),
            None => (paths.len().max(1), 0),
        };
        Position { file: file as u64, episode, skipped: self.book.skipped }
    }

    /// How many episodes were dropped so far.
    pub fn skipped(&self) -> u64 {
        self.book.skipped
    }

    /// Why the first of them was dropped.
    pub fn first_skipped(&self) -> Option<&Error> {
        self.book.first_skipped.as_deref()
    }

    /// What was noticed so far that is no error.
    pub fn notes(&self) -> &Notes {
        &self.book.notes
    }
}

impl Reader {
    /// The next trajectory of those to be read, as it stands in the logs.
    fn next_plain(&mut self) -> Result<Option<Trajectory>> {
        loop {
            let next = self.sources.next(&mut self.book)?;
            if next.is_none() || self.half.as_mut().is_none_or(Half::takes_next) {
                return Ok(next);
            }
        }
    }
}

impl Iterator for Reader {
    type Item = Result<Trajectory>;

    fn next(&mut self) -> Option<Result<Trajectory>> {
        let next = self.next_plain().and_then(|z| match (&mut self.rewarded, z) {
            (Some(rewarded), Some(z)) => rewarded.tell(z, &self.book.alphabet).map(Some),
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
    fn next(&mut self, book: &mut Book) -> Result<Option<Trajectory>> {
        while let Some(source) = &mut self.open {
            if let Some(trajectory) = source.next(book)? {
                self.taken += 1;
                return Ok(Some(trajectory));
            }
            self.taken = 0;
            self.open = match self.paths.get(self.opened) {
                Some(path) => Some(open(path, self.options, book)?),
                None => None,
            };
            self.opened += 1;
        }
        Ok(None)
    }
}

fn open(path: &Path, options: ReadOptions, book: &mut Book) -> Result<Box<dyn Source>> {
    let file = path.display().to_string();
    match input::open(path)? {
        Opened::Csv(input) => Ok(Box::new(Episodes::new(file, csv::Csv::open(input)?, options.on_bad, book)?)),
        Opened::JsonLines(input) => Ok(Box::new(Episodes::new(file, jsonl::JsonLines::open(input)?, options.on_bad, book)?)),
        #[cfg(feature = "parquet")]
        Opened::Parquet(input) => {
            let table = parquet::Parquet::open(file.clone(), input)?;
            Ok(Box::new(Episodes::new(file, table, options.on_bad, book)?))
        }
        #[cfg(not(feature = "parquet"))]
        Opened::Parquet(_) => Err(Error::input(
            file,
            None,
            "this build of foretell cannot read Parquet",
            "build it with the feature parquet, or convert the file to CSV",
        )),
    }
}
