//! What the columns of a table look like, from its first rows.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHashSet, FxHasher};

use super::cell::Cell;
use super::dates::Dates;
use super::fit::Kinds;
use super::schema::Schema;
use super::symbols::is_missing;
use super::table::{Advance, LocatedProblem, Table};
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
    /// The first row that cannot be divided into cells.
    pub malformed: Option<LocatedProblem>,
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
        let (mut read, mut malformed) = (0, None);
        while cells.len() < ROWS && read < CELLS {
            match table.advance()? {
                Advance::End => break,
                Advance::Malformed(problem) => {
                    malformed.get_or_insert(LocatedProblem { location: table.location(), problem });
                    continue;
                }
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
        let mut profile = Profile { names, columns: Vec::new(), rows, malformed, cells };
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

    /// A cell as a flag.
    pub fn flag(&self, row: usize, column: usize) -> Option<bool> {
        Cell::Text(self.cell(row, column)?.as_bytes()).mark().ok()
    }

    /// Pairs of consecutive rows of the same episode, where the values of columns together name
    /// episodes.
    pub fn steps(&self, episode: &[usize]) -> Vec<(usize, usize)> {
        let mut last: FxHashMap<u64, usize> = FxHashMap::default();
        let mut steps = Vec::new();
        for row in 0..self.rows {
            if let Some(before) = last.insert(self.key(row, episode), row) {
                steps.push((before, row));
            }
        }
        steps
    }

    /// A hash of the values of several columns in a row.
    fn key(&self, row: usize, columns: &[usize]) -> u64 {
        let mut hasher = FxHasher::default();
        columns.iter().for_each(|&column| self.cell(row, column).hash(&mut hasher));
        hasher.finish()
    }

    /// Whether no two rows have the same values of these columns.
    pub fn is_key(&self, columns: &[usize]) -> bool {
        let mut seen = FxHashSet::default();
        (0..self.rows).all(|row| seen.insert(self.key(row, columns)))
    }

    /// Whether rows with the same values of these columns follow each other.
    pub fn are_in_blocks(&self, columns: &[usize]) -> bool {
        let (mut seen, mut last) = (FxHashSet::default(), None);
        (0..self.rows).all(|row| {
            let key = Some(self.key(row, columns));
            let begins = last != key;
            last = key;
            !begins || seen.insert(key)
        })
    }

    /// Numbers of 9s or 8s that lie far from all others of a column, as codes for missing values do,
    /// and how often they occur.
    pub fn codes(&self, column: usize) -> Vec<(String, usize)> {
        let of = &self.columns[column].kinds;
        if of.numbers < of.present {
            return Vec::new();
        }
        let is_code = |text: &str| {
            let digits = text.strip_prefix('-').unwrap_or(text).as_bytes();
            let least = if text.starts_with('-') { 1 } else { 2 };
            digits.len() >= least && matches!(digits, [b'8' | b'9', ..]) && digits.iter().all(|digit| *digit == digits[0])
        };
        let mut codes: BTreeMap<&str, usize> = BTreeMap::new();
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for text in (0..self.rows).filter_map(|row| self.cell(row, column)) {
            match text.parse::<f64>() {
                _ if is_code(text) => *codes.entry(text).or_default() += 1,
                Ok(x) if x.is_finite() => (low, high) = (low.min(x), high.max(x)),
                _ => {}
            }
        }
        let is_far =
            |code: f64| low < high && (code < low && (low >= 0.0 || low - code > high - low) || code - high > 2.0 * (high - low));
        let far = codes.into_iter().filter(|(text, count)| *count > 1 && text.parse().is_ok_and(is_far));
        far.map(|(text, count)| (text.to_string(), count)).collect()
    }

    /// How many runs of rows have the same values of these columns.
    pub fn runs(&self, columns: &[usize]) -> usize {
        (0..self.rows).filter(|&row| row == 0 || self.key(row, columns) != self.key(row - 1, columns)).count()
    }

    /// Whether a column counts the rows of the file.
    pub fn counts_rows(&self, column: usize) -> bool {
        let number = |row: usize| self.cell(row, column)?.parse::<f64>().ok();
        (1..self.rows).all(|row| number(row - 1).zip(number(row)).is_some_and(|(x, y)| y == x + 1.0))
    }

    /// How many pairs of rows have the same values of these columns.
    pub fn pairs(&self, columns: &[usize]) -> f64 {
        let mut counts: FxHashMap<u64, f64> = FxHashMap::default();
        (0..self.rows).for_each(|row| *counts.entry(self.key(row, columns)).or_default() += 1.0);
        // whole numbers, so that the order of the map does not matter
        counts.values().map(|n| n * (n - 1.0) / 2.0).sum()
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
        let is_flag = values().all(|value| Cell::Text(value.as_bytes()).mark().is_ok());
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
