//! What the columns of a table look like, from its first rows.

use rustc_hash::{FxHashMap, FxHashSet};

use super::cell::Cell;
use super::dates::Dates;
use super::fit::Kinds;
use super::schema::Schema;
use super::symbols::is_missing;
use super::table::{Advance, Table};
use crate::error::Result;

/// Rows that are looked at.
pub(super) const ROWS: usize = 20_000;
/// Cells after which no more rows are read: tables with thousands of columns need fewer.
const CELLS: usize = 1 << 22;
/// Different values that are shown.
const EXAMPLES: usize = 3;

/// The first rows of a table.
pub(super) struct Profile {
    pub names: Vec<String>,
    pub columns: Vec<Column>,
    pub rows: usize,
    /// The cells of all rows: a text for each.
    cells: Vec<Vec<Option<Box<str>>>>,
}

/// What a column looks like.
#[derive(Clone, Debug, Default)]
pub(super) struct Column {
    pub kinds: Kinds,
    /// Runs of rows with the same value.
    pub runs: usize,
    pub examples: Vec<String>,
    /// All values are 0, 1, true or false.
    pub is_flag: bool,
    /// All values are numbers in (0, 1].
    pub is_probability: bool,
    /// Seconds since 1970 of each row, if all values are dates.
    pub dates: Option<Vec<Option<f64>>>,
}

impl Profile {
    /// Reads the first rows.
    pub fn of(mut table: Box<dyn Table>, schema: &Schema) -> Result<Profile> {
        table.want(&(0..table.columns().len()).filter(|&column| table.can_read(column)).collect::<Vec<_>>())?;
        let mut cells: Vec<Vec<Option<Box<str>>>> = Vec::new();
        let mut kinds: Vec<Kinds> = Vec::new();
        let mut read = 0;
        while cells.len() < ROWS && read < CELLS {
            match table.advance()? {
                Advance::End => break,
                Advance::Malformed(_) => continue,
                Advance::Row => {}
            }
            kinds.resize_with(table.columns().len(), Kinds::default);
            read += kinds.len();
            let text = |(column, kinds): (usize, &mut Kinds)| {
                let cell = table.cell(column);
                kinds.add(cell, schema, table.is_typed());
                (!is_missing(cell, schema)).then(|| shown(cell))
            };
            cells.push(kinds.iter_mut().enumerate().map(text).collect());
        }
        let names = table.columns().to_vec();
        kinds.resize_with(names.len(), Kinds::default);
        let rows = cells.len();
        let mut profile = Profile { names, columns: Vec::new(), rows, cells };
        profile.columns = kinds.into_iter().enumerate().map(|(column, kinds)| profile.column(column, kinds)).collect();
        Ok(profile)
    }

    /// A cell, if it is not missing.
    pub fn cell(&self, row: usize, column: usize) -> Option<&str> {
        self.cells[row].get(column)?.as_deref()
    }

    /// A cell as a number or a date.
    pub fn time(&self, row: usize, column: usize) -> Option<f64> {
        match &self.columns[column].dates {
            Some(dates) => dates[row],
            None => self.cell(row, column)?.parse().ok().filter(|x: &f64| x.is_finite()),
        }
    }

    /// Pairs of consecutive rows of the same episode, where the values of a column name episodes.
    pub fn steps(&self, episode: Option<usize>) -> Vec<(usize, usize)> {
        let mut last: FxHashMap<Option<&str>, usize> = FxHashMap::default();
        let mut steps = Vec::new();
        for row in 0..self.rows {
            let id = episode.and_then(|column| self.cell(row, column));
            if let Some(before) = last.insert(id, row) {
                steps.push((before, row));
            }
        }
        steps
    }

    /// Whether `fine` has one value of `coarse` for each of its own.
    pub fn is_nested(&self, fine: usize, coarse: usize) -> bool {
        let mut of: FxHashMap<Option<&str>, Option<&str>> = FxHashMap::default();
        (0..self.rows).all(|row| {
            let coarse = self.cell(row, coarse);
            *of.entry(self.cell(row, fine)).or_insert(coarse) == coarse
        })
    }

    fn column(&self, column: usize, kinds: Kinds) -> Column {
        let values = || (0..self.rows).filter_map(|row| self.cell(row, column));
        let runs = (0..self.rows).filter(|&row| row == 0 || self.cell(row, column) != self.cell(row - 1, column)).count();
        let mut seen = FxHashSet::default();
        let examples = values().filter(|value| seen.insert(*value)).take(EXAMPLES).map(str::to_string).collect();
        let is_flag = values().all(|value| matches!(value, "0" | "1" | "true" | "false" | "True" | "False" | "TRUE" | "FALSE"));
        let in_unit = |value: &str| value.parse().is_ok_and(|p: f64| p > 0.0 && p <= 1.0);
        let dates = if kinds.numbers == 0 && kinds.present > 0 { self.dates(column) } else { None };
        Column { runs, examples, is_flag: is_flag && kinds.present > 0, is_probability: values().all(in_unit), dates, kinds }
    }

    fn dates(&self, column: usize) -> Option<Vec<Option<f64>>> {
        let texts: Vec<&str> = (0..self.rows).filter_map(|row| self.cell(row, column)).collect();
        let (Dates::Read(dates) | Dates::Ambiguous { month_first: dates, .. }) = Dates::of(&texts)?;
        let mut dates = dates.into_iter();
        Some((0..self.rows).map(|row| self.cell(row, column).and_then(|_| dates.next())).collect())
    }
}

impl Column {
    /// Number of different values.
    pub fn different(&self) -> usize {
        self.kinds.different.len()
    }
}

/// A cell as text.
fn shown(cell: Cell<'_>) -> Box<str> {
    match cell {
        Cell::Text(bytes) | Cell::List(bytes) => String::from_utf8_lossy(bytes).into(),
        Cell::Int(n) => n.to_string().into(),
        Cell::Float(x) => x.to_string().into(),
        Cell::Bool(flag) => flag.to_string().into(),
        Cell::Absent | Cell::Empty | Cell::Other(_) => "".into(),
    }
}
