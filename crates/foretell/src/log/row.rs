//! Reading one row of a table.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::cell::{Cell, Problem, SEPARATOR};
use super::columns::{Availability, Columns};
use super::elapsed::Elapsed;
use super::parse_cache::{ParseCache, Parsed};
use super::schema::Schema;
use super::symbols::{Symbols, is_missing};
use super::table::{Table, read};
use crate::data::{Action, Alphabet, End, Observation};
use crate::limits::NAME;

/// Reads a flag; false without a column.
#[inline(always)]
pub(super) fn read_flag(table: &impl Table, column: Option<usize>) -> Result<bool, Problem> {
    let Some(column) = column else { return Ok(false) };
    match table.raw(column).flag() {
        Ok(flag) => Ok(flag),
        Err(_) => table.cell(column).mark().map_err(|problem| problem.of(&table.columns()[column])),
    }
}

/// How the episode ends with this row, if its flags say so.
#[inline(always)]
pub(super) fn read_end(table: &impl Table, columns: &Columns) -> Result<Option<End>, Problem> {
    let terminated = read_flag(table, columns.terminated)?;
    let truncated = read_flag(table, columns.truncated)?;
    let last = read_flag(table, columns.last)?;
    Ok(match terminated {
        true => Some(End::Terminated),
        false => (truncated || last).then_some(End::Truncated),
    })
}

/// Reads names and rewards, with a cache of those already parsed.
#[derive(Default)]
pub(super) struct RowReader {
    /// New names of the episode in progress, in order. They enter the alphabet with the episode, so
    /// that a dropped episode adds none. Until then they have the indices they will get there.
    pub fresh: Alphabet,
    scratch: String,
    actions: ParseCache<u32>,
    observations: ParseCache<u32>,
    rewards: ParseCache<Option<f64>>,
    /// Sets of actions in use, so that equal ones share their memory.
    sets: FxHashMap<Vec<Action>, Arc<[Action]>>,
}

/// Separates the actions of a list.
pub(super) const LISTED: char = ';';

/// What was read as the observation of a row.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Seen {
    Symbol(Observation),
    /// The observation is missing; where only some of its parts are, its name with `?` for these.
    Missing(Option<Box<str>>),
}

impl RowReader {
    /// The action of a row. With an elapsed time, that is part of it; `before` is the time of the
    /// row before.
    #[inline(always)]
    pub fn action(
        &mut self,
        table: &impl Table,
        from: &Symbols,
        elapsed: Option<(&Elapsed, Option<f64>, f64)>,
        context: (&Alphabet, &Schema),
    ) -> Result<Action, Problem> {
        let (alphabet, schema) = context;
        let RowReader { fresh, scratch, actions, .. } = self;
        let mut intern = |name: &str| match alphabet.action(name) {
            Some(action) => Parsed::Cacheable(action.0),
            None => Parsed::Temporary(alphabet.actions().len() as u32 + fresh.intern_action(name).0),
        };
        if let (Symbols::In(column), None) = (from, elapsed) {
            let read = |_: Cell<'_>| match table.cell(*column) {
                cell if is_missing(cell, schema) => Err(missing_action(cell)),
                cell => Ok(intern(cell.name(scratch)?)),
            };
            return match actions.get(table.raw(*column), read) {
                Ok(action) => Ok(Action(action)),
                Err(problem) => Err(problem.of(&table.columns()[*column])),
            };
        }
        scratch.clear();
        if !matches!((from, elapsed), (Symbols::Nothing, Some(_))) && from.push_name(table, schema, scratch)? > 0 {
            let column = from.columns().into_iter().find(|&column| is_missing(table.cell(column), schema)).unwrap_or_default();
            return Err(missing_action(table.cell(column)).of(&table.columns()[column]));
        }
        if let Some((elapsed, before, now)) = elapsed {
            if !scratch.is_empty() {
                scratch.push(SEPARATOR);
            }
            elapsed.push(before, now, scratch);
        }
        check_length(scratch, "action")?;
        Ok(Action(intern(scratch).value()))
    }

    /// The observation of a row that ends the episode, or does not.
    #[inline(always)]
    pub fn observation(
        &mut self,
        table: &impl Table,
        from: &Symbols,
        end: Option<End>,
        context: (&Alphabet, &Schema),
    ) -> Result<Seen, Problem> {
        /// In the cache, stands for a missing observation.
        const MISSING: u32 = Observation::MISSING.0;
        let (alphabet, schema) = context;
        let RowReader { fresh, scratch, observations, .. } = self;
        if let (Symbols::In(column), None | Some(End::Truncated)) = (from, end) {
            let read = |_: Cell<'_>| match table.cell(*column) {
                cell if is_missing(cell, schema) => Ok(Parsed::Cacheable(MISSING)),
                cell => Ok(intern(cell.name(scratch)?, end, alphabet, fresh)),
            };
            return match observations.get(table.raw(*column), read) {
                Ok(MISSING) => Ok(Seen::Missing(None)),
                Ok(observation) => Ok(Seen::Symbol(Observation(observation))),
                Err(problem) => Err(problem.of(&table.columns()[*column])),
            };
        }
        scratch.clear();
        let missing = from.push_name(table, schema, scratch)?;
        if end == Some(End::Terminated) && missing == from.parts() {
            scratch.clear(); // that the episode ended is known, whatever was seen
            scratch.push_str(ENDED);
        } else if missing > 0 {
            return Ok(Seen::Missing((missing < from.parts()).then(|| scratch.as_str().into())));
        }
        check_length(scratch, "observation")?;
        Ok(Seen::Symbol(Observation(intern(scratch, end, alphabet, fresh).value())))
    }

    /// The index that the observation at the end of an episode has or will have, where nothing but
    /// the end was seen.
    pub fn ended(&mut self, alphabet: &Alphabet) -> Observation {
        Observation(intern(ENDED, Some(End::Terminated), alphabet, &mut self.fresh).value())
    }

    /// The index that an action has or will have.
    pub fn action_named(&mut self, name: &str, alphabet: &Alphabet) -> Action {
        let fresh = &mut self.fresh;
        alphabet.action(name).unwrap_or_else(|| Action(alphabet.actions().len() as u32 + fresh.intern_action(name).0))
    }

    /// The actions that could be taken in a row, in order of their indices; `None` for all. `taken`
    /// must be among them.
    pub fn available(
        &mut self,
        table: &impl Table,
        from: &Availability,
        taken: Action,
        context: (&Alphabet, &Schema),
    ) -> Result<Option<Arc<[Action]>>, Problem> {
        let (alphabet, schema) = context;
        let (mut actions, column) = match from {
            Availability::In(column) => {
                let cell = table.cell(*column);
                let list = match (cell, cell.flag()) {
                    _ if is_missing(cell, schema) => return Ok(None),
                    (Cell::List(_), _) | (_, Err(_)) => self.listed(table, *column)?,
                    (_, Ok(true)) => return Ok(None),
                    (_, Ok(false)) => return Ok(Some(self.shared(vec![taken]))),
                };
                (list.iter().map(|name| self.action_named(name, alphabet)).collect(), *column)
            }
            Availability::Flags(flags) => {
                let mut actions = Vec::new();
                for (column, name) in flags {
                    if read_flag(table, Some(*column))? {
                        actions.push(self.action_named(name, alphabet));
                    }
                }
                (actions, flags.first().map_or(0, |(column, _)| *column))
            }
        };
        actions.sort_unstable();
        actions.dedup();
        match actions.contains(&taken) {
            true => Ok(Some(self.shared(actions))),
            false => Err(self.unavailable(table, from, (taken, alphabet)).of(&table.columns()[column])),
        }
    }

    /// The names in a list such as `add;sub`, or in an array.
    fn listed(&mut self, table: &impl Table, column: usize) -> Result<Vec<String>, Problem> {
        let cell = table.cell(column);
        let separator = if let Cell::List(_) = cell { SEPARATOR } else { LISTED };
        self.scratch.clear();
        read(table, Some(column), |cell| cell.push_name(&mut self.scratch))?;
        let names = self.scratch.split(separator).map(|name| name.trim().to_string());
        Ok(names.filter(|name| !name.is_empty()).collect())
    }

    /// The problem of a row whose action was not available.
    fn unavailable(&self, table: &impl Table, from: &Availability, (taken, alphabet): (Action, &Alphabet)) -> Problem {
        let known = alphabet.actions().len();
        let name = match taken.index().checked_sub(known) {
            None => &alphabet.actions()[taken.index()],
            Some(fresh) => &self.fresh.actions()[fresh],
        };
        let what = match from {
            Availability::In(column) => format!("{} does not have", table.cell(*column)),
            Availability::Flags(_) => "and the other flags are not true for".into(),
        };
        Problem::new(
            format!("{what} the action {name:?}, which was taken"),
            "correct the row, separate the actions of a list by ;, or say that no column tells them (`available` none)",
        )
    }

    fn shared(&mut self, actions: Vec<Action>) -> Arc<[Action]> {
        self.sets.entry(actions).or_insert_with_key(|actions| actions.as_slice().into()).clone()
    }

    /// The reward of a row.
    #[inline(always)]
    pub fn reward(&mut self, table: &impl Table, column: Option<usize>, schema: &Schema) -> Result<Option<f64>, Problem> {
        let Some(column) = column else { return Ok(None) };
        let read = |_: Cell<'_>| match table.cell(column) {
            cell if is_missing(cell, schema) => Ok(Parsed::Cacheable(None)),
            cell => cell.reward().map(Parsed::Cacheable),
        };
        match self.rewards.get(table.raw(column), read) {
            Ok(reward) => Ok(reward),
            Err(problem) => Err(problem.of(&table.columns()[column])),
        }
    }

    /// The name of an episode: the values of its columns, joined.
    pub fn id(&mut self, table: &impl Table, columns: &[usize]) -> Result<&str, Problem> {
        self.scratch.clear();
        for &column in columns {
            if !self.scratch.is_empty() {
                self.scratch.push(SEPARATOR);
            }
            read(table, Some(column), |cell| cell.push_name(&mut self.scratch))?;
        }
        Ok(&self.scratch)
    }
}

/// The observation of a step that ended an episode, where nothing else was seen.
const ENDED: &str = "end";

/// Refuses a name that is joined from many parts and too long to be kept.
fn check_length(name: &str, kind: &str) -> Result<(), Problem> {
    if name.len() <= NAME {
        return Ok(());
    }
    let problem = format!("the {kind} has {} bytes, and names can have {NAME}", name.len());
    Err(Problem::new(problem, "read fewer columns, or divide measured ones into bins (`bins`)"))
}

fn missing_action(cell: Cell<'_>) -> Problem {
    Problem::new(format!("{cell} is a missing action"), "give every row the action that was taken, or drop the row")
}

/// The index of an observation. A new one gets the index it will have once `fresh` is appended to
/// `alphabet`.
fn intern(name: &str, end: Option<End>, alphabet: &Alphabet, fresh: &mut Alphabet) -> Parsed<u32> {
    let (known, intern): (_, fn(&mut Alphabet, &str) -> Observation) = match end {
        Some(End::Terminated) => (alphabet.terminal_observation(name), Alphabet::intern_terminal_observation),
        _ => (alphabet.observation(name), Alphabet::intern_observation),
    };
    match known {
        Some(observation) => Parsed::Cacheable(observation.0),
        None => Parsed::Temporary(alphabet.observations().len() as u32 + intern(fresh, name).0),
    }
}
