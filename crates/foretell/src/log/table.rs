//! A table of a file: named columns, and rows that are visited once.

use super::cell::{Cell, Problem};
use crate::error::{Error, Result};
use crate::limits::{COLUMNS, NAME};

/// Named columns, and rows that are visited once.
pub(super) trait Table: Send {
    /// Names of the columns. Their number may grow while rows are read (a new key in JSON).
    fn columns(&self) -> &[String];
    /// Only these columns will be read.
    fn want(&mut self, _columns: &[usize]) -> Result<()> {
        Ok(())
    }
    /// Goes to the next row.
    fn advance(&mut self) -> Result<Advance>;
    /// A cell of this row.
    fn cell(&self, column: usize) -> Cell<'_>;
    /// The same as it stands in the file: cells are equal where these are. Enough for what is no name,
    /// and to look up what was read before.
    #[inline(always)]
    fn raw(&self, column: usize) -> Cell<'_> {
        self.cell(column)
    }
    /// The location of this row.
    fn location(&self) -> Location;
    /// Whether a column has a type that can be read.
    fn can_read(&self, _column: usize) -> bool {
        true
    }
    /// What the user should know of how it was read.
    fn notes(&self) -> &[String] {
        &[]
    }
    /// Whether its numbers are numbers, so that a text is no number even if it looks like one.
    fn is_typed(&self) -> bool {
        false
    }
}

impl Table for Box<dyn Table> {
    fn columns(&self) -> &[String] {
        (**self).columns()
    }

    fn want(&mut self, columns: &[usize]) -> Result<()> {
        (**self).want(columns)
    }

    fn advance(&mut self) -> Result<Advance> {
        (**self).advance()
    }

    fn cell(&self, column: usize) -> Cell<'_> {
        (**self).cell(column)
    }

    fn location(&self) -> Location {
        (**self).location()
    }

    fn can_read(&self, column: usize) -> bool {
        (**self).can_read(column)
    }

    fn notes(&self) -> &[String] {
        (**self).notes()
    }

    fn is_typed(&self) -> bool {
        (**self).is_typed()
    }
}

/// The first rows of a table.
pub(super) struct Head {
    table: Box<dyn Table>,
    left: usize,
}

impl Head {
    pub fn new(table: Box<dyn Table>, rows: usize) -> Head {
        Head { table, left: rows }
    }
}

impl Table for Head {
    fn columns(&self) -> &[String] {
        self.table.columns()
    }

    fn want(&mut self, columns: &[usize]) -> Result<()> {
        self.table.want(columns)
    }

    fn advance(&mut self) -> Result<Advance> {
        match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                self.table.advance()
            }
            None => Ok(Advance::End),
        }
    }

    fn cell(&self, column: usize) -> Cell<'_> {
        self.table.cell(column)
    }

    fn location(&self) -> Location {
        self.table.location()
    }

    fn is_typed(&self) -> bool {
        self.table.is_typed()
    }
}

/// Refuses columns that are too many, or whose names are too long; `line` is where they were found.
pub(super) fn check_columns(names: &[String], new: usize, file: &str, line: Option<u64>) -> Result<()> {
    if names.len() > COLUMNS {
        let problem = format!("{} columns, of which there can be {COLUMNS}", names.len());
        return Err(Error::input(file, line, problem, "leave out those that are not read"));
    }
    match names[new..].iter().find(|name| name.len() > NAME) {
        Some(name) => {
            let begin: String = name.chars().take(20).collect();
            let problem = format!("the name of a column, {begin:?}…, has {} bytes, and can have {NAME}", name.len());
            Err(Error::input(file, line, problem, "give the column a shorter name"))
        }
        None => Ok(()),
    }
}

/// What [`Table::advance`] found.
pub(super) enum Advance {
    Row,
    /// A row that cannot be divided into cells.
    Malformed(Problem),
    End,
}

/// The line or row number of a row, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Location {
    Line(u64),
    #[cfg_attr(not(feature = "parquet"), expect(dead_code))]
    Row(u64),
}

/// A problem and its location.
#[derive(Clone)]
pub(super) struct LocatedProblem {
    pub location: Location,
    pub problem: Problem,
}

impl LocatedProblem {
    pub fn into_error(self, file: &str) -> Error {
        let Problem { problem, remedy } = self.problem;
        match self.location {
            Location::Line(line) => Error::input(file, Some(line), problem, remedy),
            Location::Row(row) => Error::input(file, None, format!("row {row}: {problem}"), remedy),
        }
    }
}

impl Error {
    /// A table has a header alone.
    pub(super) fn no_rows(file: &str) -> Error {
        Error::input(file, None, "it has columns but no rows", "leave the file out, or log at least one step")
    }
}

/// Reads what is no name of a column, or of no column.
#[inline(always)]
pub(super) fn read_raw<'t, R>(
    table: &'t impl Table,
    column: Option<usize>,
    how: impl FnOnce(Cell<'t>) -> Result<R, Problem>,
) -> Result<R, Problem> {
    match column {
        None => how(Cell::Absent),
        Some(column) => how(table.raw(column)).map_err(|problem| problem.of(&table.columns()[column])),
    }
}

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
