//! From rows of a table to episodes: where they begin and end, and which are dropped.

use std::mem;
use std::sync::Arc;

use super::cell::{Cell, Problem};
use super::columns::Columns;
use super::episode_ids::EpisodeIds;
use super::notes::Notes;
use super::row::{RowReader, Seen, read_end, read_flag};
use super::schema::Schema;
use super::shift::{self, Convention};
use super::table::{Advance, LocatedProblem, Table, read, read_raw};
use super::{OnBadEpisode, ReadOptions};
use crate::data::{About, ActionObservation, Alphabet, End, Observation, Trajectory};
use crate::error::{Error, Result};
use crate::limits::SYMBOLS;

/// What a reader keeps from file to file.
#[derive(Clone, Debug, Default)]
pub(super) struct ReadState {
    /// What the columns of tables in memory meant.
    pub schema: Arc<Schema>,
    pub alphabet: Alphabet,
    pub notes: Notes,
    pub skipped: u64,
    pub first_skipped: Option<Arc<Error>>,
}

impl ReadState {
    fn skip(&mut self, why: Error) {
        self.skipped += 1;
        self.first_skipped.get_or_insert(Arc::new(why));
    }
}

/// The episodes of one file.
pub(super) trait Source: Send {
    /// The next episode, if there is one.
    fn next(&mut self, state: &mut ReadState) -> Result<Option<Trajectory>>;
}

/// The episodes of a table.
pub(super) struct Episodes<T> {
    file: String,
    table: T,
    columns: Columns,
    /// How many columns the table had when they were recognised.
    width: usize,
    on_bad: OnBadEpisode,
    schema: Arc<Schema>,
    /// Where observations were seen before the action of their row.
    shifted: Option<Convention>,
    ids: EpisodeIds,
    partial: PartialEpisode,
    /// A bad row that may belong to the next episode, which is then dropped.
    unassigned: Option<UnassignedRow>,
    /// The current row of the table is not yet used.
    waiting: bool,
    rows: u64,
    reader: RowReader,
}

/// The episode in progress.
#[derive(Default)]
struct PartialEpisode {
    is_open: bool,
    id: String,
    /// The id, if it is a number in the file.
    id_number: Option<i64>,
    steps: Vec<ActionObservation>,
    rewards: Vec<Option<f64>>,
    action_probabilities: Vec<f64>,
    last_step: Option<i64>,
    last_time: Option<f64>,
    end: Option<End>,
    about: About,
    /// Why it will be dropped.
    bad: Option<LocatedProblem>,
}

/// A bad row whose episode is unknown.
struct UnassignedRow {
    located: LocatedProblem,
    /// The episode before it is dropped because of it.
    dropped_previous: bool,
}

impl<T: Table> Source for Episodes<T> {
    fn next(&mut self, state: &mut ReadState) -> Result<Option<Trajectory>> {
        loop {
            if !mem::take(&mut self.waiting) {
                match self.table.advance()? {
                    Advance::Row => self.rows += 1,
                    Advance::Malformed(problem) => {
                        self.rows += 1;
                        self.reject_unassigned(problem)?;
                        continue;
                    }
                    Advance::End => return self.finish(state),
                }
                if self.table.columns().len() != self.width {
                    self.find_more_columns(state)?;
                }
            }
            match self.membership() {
                Membership::Next if self.partial.is_open => {
                    self.waiting = true;
                    if let Some(trajectory) = self.close(state)? {
                        return Ok(Some(trajectory));
                    }
                }
                Membership::Unknown(problem) => self.reject_unassigned(problem)?,
                _ => {
                    if let Err(problem) = self.take_row(&state.alphabet) {
                        self.reject(problem)?;
                    }
                }
            }
        }
    }
}

/// The episode that a row belongs to.
enum Membership {
    Current,
    Next,
    Unknown(Problem),
}

impl<T: Table> Episodes<T> {
    /// The episodes of `table`, from `file`.
    pub fn new(file: String, mut table: T, options: &ReadOptions, state: &mut ReadState) -> Result<Episodes<T>> {
        let ReadOptions { on_bad, schema } = options.clone();
        let columns = Columns::find(&file, table.columns(), &schema)?;
        table.want(&columns.used())?;
        state.notes.add_columns(&table, &columns, &schema);
        let width = table.columns().len();
        let shifted = schema.shift_observation.then(|| Convention::of(&columns));
        let (ids, partial, unassigned, waiting, rows, reader) = Default::default();
        Ok(Episodes { file, table, columns, width, on_bad, schema, shifted, ids, partial, unassigned, waiting, rows, reader })
    }

    /// Keys that appear late may add rewards and ends, but must not change the meaning of earlier
    /// rows.
    fn find_more_columns(&mut self, state: &mut ReadState) -> Result<()> {
        let new = &self.table.columns()[self.width..];
        if new.iter().all(|name| Columns::is_of_no_use(name, &self.schema)) {
            new.iter().for_each(|name| state.notes.ignore(name));
            self.width = self.table.columns().len();
            return Ok(());
        }
        let columns = Columns::find(&self.file, self.table.columns(), &self.schema)?;
        if self.columns.contradict(&columns) {
            let new = self.table.columns()[self.width..].join(", ");
            let problem = Problem::new(format!("{new} appears first in this row"), "give every row the same keys");
            return Err(LocatedProblem { location: self.table.location(), problem }.into_error(&self.file));
        }
        state.notes.add_columns(&self.table, &columns, &self.schema);
        self.width = self.table.columns().len();
        self.columns = columns;
        Ok(())
    }

    /// Whether this row belongs to the episode in progress, or begins the next.
    #[inline(always)]
    fn membership(&self) -> Membership {
        let is_next = match (&self.columns.episode[..], self.columns.first) {
            _ if self.columns.rows_are_episodes => true,
            ([column], _) => return self.membership_by_id(*column),
            ([], Some(column)) => self.table.cell(column).mark() == Ok(true),
            ([], None) => self.partial.end.is_some(),
            (several, _) => return self.membership_by_ids(several),
        };
        if is_next { Membership::Next } else { Membership::Current }
    }

    #[inline(always)]
    fn membership_by_id(&self, column: usize) -> Membership {
        let partial = &self.partial;
        match self.table.cell(column) {
            Cell::Text(id) if partial.is_open && id == partial.id.as_bytes() => Membership::Current,
            Cell::Int(id) if partial.is_open && Some(id) == partial.id_number => Membership::Current,
            id => match id.name(&mut String::new()) {
                Ok(id) if partial.is_open && id == partial.id => Membership::Current,
                Ok(_) => Membership::Next,
                Err(problem) => {
                    let remedy = "give every row the name or number of its episode".into();
                    Membership::Unknown(Problem { remedy, ..problem.of(&self.table.columns()[column]) })
                }
            },
        }
    }

    fn membership_by_ids(&self, columns: &[usize]) -> Membership {
        match RowReader::default().id(&self.table, columns) {
            Ok(id) if self.partial.is_open && id == self.partial.id => Membership::Current,
            Ok(_) => Membership::Next,
            Err(problem) => {
                Membership::Unknown(Problem { remedy: "give every row the name or number of its episode".into(), ..problem })
            }
        }
    }

    /// Adds this row to the episode in progress, or begins one with it.
    fn take_row(&mut self, alphabet: &Alphabet) -> Result<(), Problem> {
        self.begin_or_continue()?;
        let (table, columns, partial, reader) = (&self.table, &self.columns, &mut self.partial, &mut self.reader);
        if partial.bad.is_some() {
            partial.end = partial.end.or(read_end(table, columns).unwrap_or(None));
            return Ok(());
        }
        if partial.end.is_some() {
            let episode = if !columns.episode.is_empty() { format!("episode {:?}", partial.id) } else { "the episode".into() };
            return Err(Problem::new(
                format!("a row after the end of {episode}"),
                "set terminated or truncated only in the last row of an episode",
            ));
        }
        // first, because it decides where the next episode begins even if something else is wrong
        // with the row
        partial.end = read_end(table, columns)?;
        if read_flag(table, columns.first)? && !columns.episode.is_empty() && !partial.steps.is_empty() {
            let problem = format!("{} is true in the middle of episode {:?}", synonym(table, columns.first), partial.id);
            return Err(Problem::new(problem, "set it only in the first row of an episode"));
        }
        if columns.step.is_some() {
            partial.check_step(read(table, columns.step, |cell| cell.step())?)?;
        }
        let context = (alphabet, &*self.schema);
        let elapsed = match &columns.elapsed {
            Some(elapsed) => {
                let now = read(table, Some(elapsed.column), Cell::time)?;
                Some((elapsed, partial.last_time.replace(now), now))
            }
            None => None,
        };
        let action = reader.action(table, &columns.action, elapsed, context)?;
        // an observation from before the action did not end the episode
        let end_seen = partial.end.filter(|_| self.shifted != Some(Convention::BeforeAction));
        let observation = match reader.observation(table, &columns.observation, end_seen, context)? {
            Seen::Symbol(observation) => observation,
            Seen::Missing(parts) => {
                let step = partial.steps.len() as u32;
                partial.about.partial.extend(parts.map(|name| (step, name.into())));
                Observation::MISSING
            }
        };
        let reward = reader.reward(table, columns.reward, &self.schema)?;
        if columns.probability.is_some() {
            partial.action_probabilities.push(read_raw(table, columns.probability, Cell::probability)?);
        } else if columns.log_probability.is_some() {
            partial.action_probabilities.push(read_raw(table, columns.log_probability, Cell::log_probability)?);
        }
        if let Some(available) = &columns.available {
            let available = reader.available(table, available, action, context)?;
            partial.about.available.push(available);
        }
        partial.steps.push(ActionObservation { action, observation });
        partial.rewards.push(reward);
        Ok(())
    }

    fn begin_or_continue(&mut self) -> Result<(), Problem> {
        let unassigned = self.unassigned.take();
        if self.partial.is_open {
            return Ok(());
        }
        self.partial.is_open = true;
        self.partial.bad = unassigned.map(|unassigned| unassigned.located);
        if let Some(column) = self.columns.group {
            let group = self.reader.id(&self.table, &[column])?;
            self.partial.about.group = Some(group.into());
        }
        let Some(&column) = self.columns.episode.first() else { return Ok(()) };
        self.partial.id_number = if let Cell::Int(number) = self.table.cell(column) { Some(number) } else { None };
        let name = self.reader.id(&self.table, &self.columns.episode)?;
        self.partial.id.push_str(name);
        self.partial.about.name = Some(name.into());
        if self.ids.insert(name) {
            return Ok(());
        }
        Err(Problem::new(
            format!("episode {name:?} comes back after another episode"),
            "sort the rows (`sort` by a column, or by row to keep their order), and give every episode an id of its own",
        ))
    }

    /// A row of the episode in progress is bad.
    fn reject(&mut self, problem: Problem) -> Result<()> {
        let located = LocatedProblem { location: self.table.location(), problem };
        match self.on_bad {
            OnBadEpisode::Fail => Err(located.into_error(&self.file)),
            OnBadEpisode::Skip => {
                self.partial.bad.get_or_insert(located);
                Ok(())
            }
        }
    }

    /// A row is bad, and may belong to the episode in progress or to the next one: both are
    /// dropped.
    fn reject_unassigned(&mut self, problem: Problem) -> Result<()> {
        let located = LocatedProblem { location: self.table.location(), problem: problem.clone() };
        let in_progress = self.partial.is_open && self.partial.end.is_none();
        if in_progress || self.on_bad == OnBadEpisode::Fail {
            self.reject(problem)?;
        }
        // without ids, an episode in progress continues until a flag ends it
        if !in_progress || !self.columns.episode.is_empty() {
            self.unassigned = Some(UnassignedRow { located, dropped_previous: in_progress });
        }
        Ok(())
    }

    /// Ends the episode in progress; `None` if it is dropped.
    fn close(&mut self, state: &mut ReadState) -> Result<Option<Trajectory>> {
        let length = self.partial.steps.len();
        // the next episode is likely to be as long
        let next = PartialEpisode {
            steps: Vec::with_capacity(length),
            rewards: Vec::with_capacity(length),
            ..PartialEpisode::default()
        };
        let mut partial = mem::replace(&mut self.partial, next);
        if let Some(located) = partial.bad {
            self.reader.fresh = Alphabet::default();
            state.skip(located.into_error(&self.file));
            return Ok(None);
        }
        if let Some(convention) = self.shifted {
            self.shift(convention, &mut partial, &state.alphabet);
        }
        let fresh = mem::take(&mut self.reader.fresh);
        for action in fresh.actions() {
            state.alphabet.intern_action(action);
        }
        for symbol in fresh.observations() {
            match symbol.terminal {
                true => state.alphabet.intern_terminal_observation(&symbol.name),
                false => state.alphabet.intern_observation(&symbol.name),
            };
        }
        self.check_symbols(&state.alphabet)?;
        state.notes.ends_without_flag += u64::from(partial.end.is_none());
        let PartialEpisode { steps, rewards, action_probabilities, about, .. } = partial;
        let end = partial.end.unwrap_or(End::Truncated);
        Ok(Some(Trajectory { steps, rewards, action_probabilities, end, about }))
    }

    /// Refuses more symbols than anything could be learned of.
    fn check_symbols(&self, alphabet: &Alphabet) -> Result<()> {
        for (n, kind) in [(alphabet.actions().len(), "actions"), (alphabet.observations().len(), "observations")] {
            if n > SYMBOLS {
                let problem = format!("{n} different {kind} so far, of which there can be {SYMBOLS}");
                return Err(Error::input(&self.file, None, problem, "divide measured columns into bins (`bins`), or round them"));
            }
        }
        Ok(())
    }

    /// Pairs each action with the observation of the row after it.
    fn shift(&mut self, convention: Convention, partial: &mut PartialEpisode, alphabet: &Alphabet) {
        let first = self.reader.action_named(shift::FIRST_ACTION, alphabet);
        let last = match (convention, partial.end) {
            (Convention::BeforeAction, Some(End::Terminated)) => Some(self.reader.ended(alphabet)),
            (Convention::BeforeAction, _) => Some(Observation::MISSING),
            (Convention::LastRowHasNoAction, _) => None,
        };
        let PartialEpisode { steps, rewards, action_probabilities, about, .. } = partial;
        shift::shift(first, last, steps, rewards, action_probabilities);
        if !about.available.is_empty() {
            about.available.insert(0, Some([first].into()));
            about.available.truncate(steps.len());
        }
        // The observation of row t is now that of step t.
        about.partial.retain(|(step, _)| (*step as usize) < steps.len());
    }

    /// The table has no more rows.
    fn finish(&mut self, state: &mut ReadState) -> Result<Option<Trajectory>> {
        if self.rows == 0 {
            return Err(Error::no_rows(&self.file));
        }
        if self.partial.is_open
            && let Some(trajectory) = self.close(state)?
        {
            return Ok(Some(trajectory));
        }
        if let Some(UnassignedRow { located, dropped_previous: false }) = self.unassigned.take() {
            state.skip(located.into_error(&self.file));
        }
        state.notes.files_taken_as_one_episode +=
            u64::from(mem::take(&mut self.width) > 0 && self.columns.are_without_boundaries());
        Ok(None)
    }
}

impl PartialEpisode {
    fn check_step(&mut self, step: i64) -> Result<(), Problem> {
        match self.last_step.replace(step) {
            Some(last) if last.checked_add(1) != Some(step) => Err(Problem::new(
                format!("step {step} comes after step {last}"),
                "steps must go up by 1 within an episode: sort the rows (`sort`; gaps are then ignored), fill the gap, or begin another episode",
            )),
            _ => Ok(()),
        }
    }
}

fn synonym(table: &impl Table, column: Option<usize>) -> &str {
    column.map_or("", |column| &table.columns()[column])
}
