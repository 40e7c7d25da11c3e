//! Reading one row of a table.

use super::cell::{Cell, Problem, SEPARATOR};
use super::parse_cache::{ParseCache, Parsed};
use super::table::{Columns, Observed, Part, Table};
use crate::data::{Action, Alphabet, End, Observation};

/// Reads a cell of a column, or of no column.
#[inline(always)]
pub(super) fn read<'t, R>(
    table: &'t impl Table,
    column: Option<usize>,
    how: impl FnOnce(Cell<'t>) -> Result<R, Problem>,
) -> Result<R, Problem> {
    match column {
        None => how(Cell::Absent),
        Some(column) => how(table.cell(column)).map_err(|problem| problem.of(&table.columns()[column])),
    }
}

/// Reads a flag; false without a column.
#[inline(always)]
pub(super) fn read_flag(table: &impl Table, column: Option<usize>) -> Result<bool, Problem> {
    let Some(column) = column else { return Ok(false) };
    table.cell(column).flag().map_err(|problem| problem.of(&table.columns()[column]))
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
}

impl RowReader {
    /// The action of a row.
    #[inline(always)]
    pub fn action(&mut self, table: &impl Table, column: usize, alphabet: &Alphabet) -> Result<Action, Problem> {
        let RowReader { fresh, scratch, actions, .. } = self;
        let intern = |cell: Cell<'_>| {
            let name = cell.name(scratch)?;
            Ok(match alphabet.action(name) {
                Some(action) => Parsed::Cacheable(action.0),
                None => Parsed::Temporary(alphabet.actions().len() as u32 + fresh.intern_action(name).0),
            })
        };
        match actions.get(table.cell(column), intern) {
            Ok(action) => Ok(Action(action)),
            Err(problem) => Err(problem.of(&table.columns()[column])),
        }
    }

    /// The observation of a row that ends the episode, or does not.
    #[inline(always)]
    pub fn observation(
        &mut self,
        table: &impl Table,
        observed: &Observed,
        end: Option<End>,
        alphabet: &Alphabet,
    ) -> Result<Observation, Problem> {
        let RowReader { fresh, scratch, observations, .. } = self;
        let column = match observed {
            Observed::In(column) => Some(*column),
            Observed::Across(_) => None,
        };
        match (column, end) {
            (Some(column), None | Some(End::Truncated)) => {
                let intern = |cell: Cell<'_>| Ok(intern(cell.name(scratch)?, end, alphabet, fresh));
                match observations.get(table.cell(column), intern) {
                    Ok(observation) => Ok(Observation(observation)),
                    Err(problem) => Err(problem.of(&table.columns()[column])),
                }
            }
            _ => {
                let name = read_observation(table, observed, scratch)?;
                Ok(Observation(intern(name, end, alphabet, fresh).value()))
            }
        }
    }

    /// The reward of a row.
    #[inline(always)]
    pub fn reward(&mut self, table: &impl Table, column: Option<usize>) -> Result<Option<f64>, Problem> {
        let Some(column) = column else { return Ok(None) };
        match self.rewards.get(table.cell(column), |cell| cell.reward().map(Parsed::Cacheable)) {
            Ok(reward) => Ok(reward),
            Err(problem) => Err(problem.of(&table.columns()[column])),
        }
    }

    /// The name of an episode.
    pub fn id(&mut self, table: &impl Table, column: usize) -> Result<&str, Problem> {
        self.scratch.clear();
        read(table, Some(column), |cell| cell.push_name(&mut self.scratch))?;
        Ok(&self.scratch)
    }
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

/// The name of the observation of a row.
fn read_observation<'s>(table: &impl Table, observed: &Observed, scratch: &'s mut String) -> Result<&'s str, Problem> {
    scratch.clear();
    match observed {
        Observed::In(column) => read(table, Some(*column), |cell| cell.push_name(scratch))?,
        Observed::Across(parts) => {
            for part in parts {
                if !scratch.is_empty() {
                    scratch.push(SEPARATOR);
                }
                read(table, Some(part.column), |cell| push_part(cell, part, scratch))?;
            }
        }
    }
    Ok(scratch)
}

fn push_part(cell: Cell<'_>, part: &Part, name: &mut String) -> Result<(), Problem> {
    name.push_str(&part.label);
    let begin = name.len();
    cell.push_name(name)?;
    // otherwise (a|b, c) and (a, b|c) would be one symbol
    match name[begin..].contains(SEPARATOR) {
        true => Err(Problem::new(
            format!("{:?} contains {SEPARATOR}", &name[begin..]),
            "it joins the columns of an observation; replace it by another character",
        )),
        false => Ok(()),
    }
}
