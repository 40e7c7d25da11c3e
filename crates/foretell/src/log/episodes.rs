//! Rows of a table become episodes: where they begin and end, what they may hold, and what is dropped.

use std::mem;
use std::sync::Arc;

use super::OnBadEpisode;
use super::cell::{Cell, Problem};
use super::notes::Notes;
use super::row::{RowReader, read, read_end, read_flag};
use super::seen::Seen;
use super::table::{Advance, Columns, Place, Table};
use crate::data::{ActionObservation, Alphabet, End, Trajectory};
use crate::error::{Error, Result};

/// What a reader keeps from file to file.
#[derive(Clone, Debug, Default)]
pub(super) struct Book {
    pub alphabet: Alphabet,
    pub notes: Notes,
    pub skipped: u64,
    pub first_skipped: Option<Arc<Error>>,
}

impl Book {
    fn skip(&mut self, why: Error) {
        self.skipped += 1;
        self.first_skipped.get_or_insert(Arc::new(why));
    }
}

/// The episodes of one file.
pub(super) trait Source: Send {
    /// The next episode, if there is one.
    fn next(&mut self, book: &mut Book) -> Result<Option<Trajectory>>;
}

/// The episodes of a table.
pub(super) struct Episodes<T> {
    file: String,
    table: T,
    columns: Columns,
    /// How many columns the table had when they were recognised.
    width: usize,
    on_bad: OnBadEpisode,
    seen: Seen,
    draft: Draft,
    /// A row that may belong to the next episode and would spoil it.
    stray: Option<Stray>,
    /// The table stands on a row that is not yet taken.
    waiting: bool,
    rows: u64,
    reader: RowReader,
}

/// The episode in progress.
#[derive(Default)]
struct Draft {
    is_open: bool,
    id: String,
    /// The id, if it is a number in the file.
    id_number: Option<i64>,
    steps: Vec<ActionObservation>,
    rewards: Vec<Option<f64>>,
    action_probabilities: Vec<f64>,
    last_step: Option<i64>,
    end: Option<End>,
    /// Why it will be dropped.
    bad: Option<Complaint>,
}

/// A row whose episode is not known.
struct Stray {
    complaint: Complaint,
    /// It has already spoilt the episode before it.
    counted: bool,
}

/// A problem and where it is.
#[derive(Clone)]
struct Complaint {
    place: Place,
    problem: Problem,
}

impl Complaint {
    fn into_error(self, file: &str) -> Error {
        let Problem { problem, remedy } = self.problem;
        match self.place {
            Place::Line(line) => Error::input(file, Some(line), problem, remedy),
            Place::Row(row) => Error::input(file, None, format!("row {row}: {problem}"), remedy),
        }
    }
}

impl<T: Table> Source for Episodes<T> {
    fn next(&mut self, book: &mut Book) -> Result<Option<Trajectory>> {
        loop {
            if !mem::take(&mut self.waiting) {
                match self.table.advance()? {
                    Advance::Row => self.rows += 1,
                    Advance::Malformed(problem) => {
                        self.rows += 1;
                        self.stray(problem)?;
                        continue;
                    }
                    Advance::End => return self.finish(book),
                }
                if self.table.columns().len() != self.width {
                    self.find_more_columns(book)?;
                }
            }
            match self.belonging() {
                Belonging::ToAnother if self.draft.is_open => {
                    self.waiting = true;
                    if let Some(trajectory) = self.close(book) {
                        return Ok(Some(trajectory));
                    }
                }
                Belonging::Unknown(problem) => self.stray(problem)?,
                _ => {
                    if let Err(problem) = self.take_row(&book.alphabet) {
                        self.reject(problem)?;
                    }
                }
            }
        }
    }
}

/// To which episode a row belongs.
enum Belonging {
    ToThis,
    ToAnother,
    Unknown(Problem),
}

impl<T: Table> Episodes<T> {
    /// The episodes of `table`, from `file`.
    pub fn new(file: String, mut table: T, on_bad: OnBadEpisode, book: &mut Book) -> Result<Episodes<T>> {
        let columns = Columns::find(&file, table.columns())?;
        table.want(&columns.used())?;
        book.notes.add_columns(&table, &columns);
        let width = table.columns().len();
        let (seen, draft, stray, waiting, rows, reader) = Default::default();
        Ok(Episodes { file, table, columns, width, on_bad, seen, draft, stray, waiting, rows, reader })
    }

    /// Keys that appear late may add rewards and ends; they may not change what the rows before meant.
    fn find_more_columns(&mut self, book: &mut Book) -> Result<()> {
        let columns = Columns::find(&self.file, self.table.columns())?;
        if self.columns.contradict(&columns) {
            let new = self.table.columns()[self.width..].join(", ");
            let problem = Problem::new(format!("{new} appears first in this row"), "give every row the same keys");
            return Err(Complaint { place: self.table.place(), problem }.into_error(&self.file));
        }
        book.notes.add_columns(&self.table, &columns);
        self.width = self.table.columns().len();
        self.columns = columns;
        Ok(())
    }

    /// Whether this row belongs to the episode in progress, or begins another.
    #[inline(always)]
    fn belonging(&self) -> Belonging {
        let is_another = match (self.columns.episode, self.columns.first) {
            (Some(column), _) => return self.belonging_by_id(column),
            (None, Some(column)) => self.table.cell(column).flag() == Ok(true),
            (None, None) => self.draft.end.is_some(),
        };
        if is_another { Belonging::ToAnother } else { Belonging::ToThis }
    }

    #[inline(always)]
    fn belonging_by_id(&self, column: usize) -> Belonging {
        let draft = &self.draft;
        match self.table.cell(column) {
            Cell::Text(id) if draft.is_open && id == draft.id.as_bytes() => Belonging::ToThis,
            Cell::Int(id) if draft.is_open && Some(id) == draft.id_number => Belonging::ToThis,
            id => match id.name(&mut String::new()) {
                Ok(id) if draft.is_open && id == draft.id => Belonging::ToThis,
                Ok(_) => Belonging::ToAnother,
                Err(problem) => {
                    let remedy = "give every row the name or number of its episode".into();
                    Belonging::Unknown(Problem { remedy, ..problem.of(&self.table.columns()[column]) })
                }
            },
        }
    }

    /// Adds this row to the episode in progress, or begins one with it.
    fn take_row(&mut self, alphabet: &Alphabet) -> Result<(), Problem> {
        self.begin_or_go_on()?;
        let (table, columns, draft, reader) = (&self.table, &self.columns, &mut self.draft, &mut self.reader);
        if draft.bad.is_some() {
            draft.end = draft.end.or(read_end(table, columns).unwrap_or(None));
            return Ok(());
        }
        if draft.end.is_some() {
            let episode = if columns.episode.is_some() { format!("episode {:?}", draft.id) } else { "the episode".into() };
            return Err(Problem::new(
                format!("a row after the end of {episode}"),
                "set terminated or truncated only in the last row of an episode",
            ));
        }
        // first, because it tells where the next episode begins even if something else is wrong with the row
        draft.end = read_end(table, columns)?;
        if read_flag(table, columns.first)? && columns.episode.is_some() && !draft.steps.is_empty() {
            let problem = format!("{} is true in the middle of episode {:?}", synonym(table, columns.first), draft.id);
            return Err(Problem::new(problem, "set it only in the first row of an episode"));
        }
        if columns.step.is_some() {
            draft.follow(read(table, columns.step, |cell| cell.step())?)?;
        }
        let action = reader.action(table, columns.action, alphabet)?;
        let observation = reader.observation(table, &columns.observation, draft.end, alphabet)?;
        let reward = reader.reward(table, columns.reward)?;
        if columns.probability.is_some() {
            draft.action_probabilities.push(read(table, columns.probability, Cell::probability)?);
        } else if columns.log_probability.is_some() {
            draft.action_probabilities.push(read(table, columns.log_probability, Cell::log_probability)?);
        }
        draft.steps.push(ActionObservation { action, observation });
        draft.rewards.push(reward);
        Ok(())
    }

    fn begin_or_go_on(&mut self) -> Result<(), Problem> {
        let stray = self.stray.take();
        if self.draft.is_open {
            return Ok(());
        }
        self.draft.is_open = true;
        self.draft.bad = stray.map(|stray| stray.complaint);
        let Some(column) = self.columns.episode else { return Ok(()) };
        self.draft.id_number = if let Cell::Int(number) = self.table.cell(column) { Some(number) } else { None };
        let name = self.reader.id(&self.table, column)?;
        self.draft.id.push_str(name);
        if self.seen.insert(name) {
            return Ok(());
        }
        Err(Problem::new(
            format!("episode {name:?} comes back after another episode"),
            "sort the rows by episode and step, and give every episode an id of its own",
        ))
    }

    /// A row of the episode in progress is bad.
    fn reject(&mut self, problem: Problem) -> Result<()> {
        let complaint = Complaint { place: self.table.place(), problem };
        match self.on_bad {
            OnBadEpisode::Fail => Err(complaint.into_error(&self.file)),
            OnBadEpisode::Skip => {
                self.draft.bad.get_or_insert(complaint);
                Ok(())
            }
        }
    }

    /// A row is bad, and it is not known whether it belongs to the episode in progress or to the next: it spoils both.
    fn stray(&mut self, problem: Problem) -> Result<()> {
        let complaint = Complaint { place: self.table.place(), problem: problem.clone() };
        let in_progress = self.draft.is_open && self.draft.end.is_none();
        if in_progress || self.on_bad == OnBadEpisode::Fail {
            self.reject(problem)?;
        }
        // without ids, an episode in progress goes on until a row says otherwise
        if !in_progress || self.columns.episode.is_some() {
            self.stray = Some(Stray { complaint, counted: in_progress });
        }
        Ok(())
    }

    /// Ends the episode in progress; `None` if it is dropped.
    fn close(&mut self, book: &mut Book) -> Option<Trajectory> {
        let length = self.draft.steps.len();
        // the next episode is likely to be as long
        let next = Draft { steps: Vec::with_capacity(length), rewards: Vec::with_capacity(length), ..Draft::default() };
        let draft = mem::replace(&mut self.draft, next);
        let fresh = mem::take(&mut self.reader.fresh);
        if let Some(complaint) = draft.bad {
            book.skip(complaint.into_error(&self.file));
            return None;
        }
        for action in fresh.actions() {
            book.alphabet.intern_action(action);
        }
        for symbol in fresh.observations() {
            match symbol.terminal {
                true => book.alphabet.intern_terminal_observation(&symbol.name),
                false => book.alphabet.intern_observation(&symbol.name),
            };
        }
        book.notes.ends_without_flag += u64::from(draft.end.is_none());
        let Draft { steps, rewards, action_probabilities, .. } = draft;
        Some(Trajectory { steps, rewards, action_probabilities, end: draft.end.unwrap_or(End::Truncated) })
    }

    /// The table has no more rows.
    fn finish(&mut self, book: &mut Book) -> Result<Option<Trajectory>> {
        if self.rows == 0 {
            return Err(Error::input(
                &self.file,
                None,
                "it has columns but no rows",
                "leave the file out, or log at least one step",
            ));
        }
        if self.draft.is_open
            && let Some(trajectory) = self.close(book)
        {
            return Ok(Some(trajectory));
        }
        if let Some(Stray { complaint, counted: false }) = self.stray.take() {
            book.skip(complaint.into_error(&self.file));
        }
        book.notes.files_taken_as_one_episode +=
            u64::from(mem::take(&mut self.width) > 0 && self.columns.are_without_boundaries());
        Ok(None)
    }
}

impl Draft {
    fn follow(&mut self, step: i64) -> Result<(), Problem> {
        match self.last_step.replace(step) {
            Some(last) if last.checked_add(1) != Some(step) => Err(Problem::new(
                format!("step {step} comes after step {last}"),
                "steps must go up by 1 within an episode: sort the rows, fill the gap, or begin another episode",
            )),
            _ => Ok(()),
        }
    }
}

fn synonym(table: &impl Table, column: Option<usize>) -> &str {
    column.map_or("", |column| &table.columns()[column])
}
