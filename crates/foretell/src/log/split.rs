//! Dividing the rows of tables into two files, as they are: all rows of an episode, or of a group
//! of episodes, go to the same file.

use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::cell::Cell;
use super::columns::Columns;
use super::sheet::Sheet;
use super::sheet_types::{CellValue, ColumnKind};
use super::table::{Advance, LocatedProblem, Table};
use super::watched::Versions;
use super::{Format, Schema, open_as_written};
use crate::error::{Error, Result};
use crate::rng::Seed;

/// How many rows and groups went to each file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Split {
    /// The columns whose values were kept together.
    pub by: Vec<String>,
    /// Groups of rows, in the first and in the second file.
    pub groups: [u64; 2],
    /// Rows.
    pub rows: [u64; 2],
}

/// The rows of tables on their way into two files.
struct Splitter {
    by: Vec<String>,
    versions: Versions,
    /// For each group whether it goes to the second file, once that is decided.
    second: FxHashMap<String, bool>,
    /// In order of first appearance.
    groups: Vec<String>,
    columns: Vec<(String, Option<ColumnKind>)>,
    /// What stands for a missing value.
    schema: Schema,
    /// A file is written whose format has types, so that numbers in text must become numbers.
    types: bool,
}

/// Writes a random `share` of the groups of rows to the second of two files and the others to the
/// first. Groups are the values of the columns `by`, or those that name episodes in the schema.
pub fn split(paths: &[PathBuf], schema: &Schema, by: &[String], share: f64, seed: Seed, outputs: [&Path; 2]) -> Result<Split> {
    if !(share > 0.0 && share < 1.0) {
        return Err(Error::parameter("test", share, "must be between 0 and 1"));
    }
    let versions = Versions::default();
    let by = match by.is_empty() {
        false => by.to_vec(),
        true => {
            let path = paths.first().ok_or_else(|| Error::data("no log files were given", "name at least one"))?;
            let table = open_as_written(path, &versions)?;
            let columns = Columns::find(&path.display().to_string(), table.columns(), schema)?;
            let names: Vec<String> = columns.episode.iter().map(|&column| table.columns()[column].clone()).collect();
            if names.is_empty() {
                return Err(Error::input(
                    path.display().to_string(),
                    None,
                    "no column names the episodes",
                    "say by which column to split (`by`)",
                ));
            }
            names
        }
    };
    let types = outputs.iter().any(|path| Format::of_name(path) != Some(Format::Csv));
    let mut splitter = Splitter {
        by,
        versions,
        second: FxHashMap::default(),
        groups: Vec::new(),
        columns: Vec::new(),
        schema: schema.as_given(),
        types,
    };
    for path in paths {
        splitter.look(path)?;
    }
    splitter.decide(share, seed)?;
    let columns: Vec<(String, ColumnKind)> =
        splitter.columns.iter().map(|(name, kind)| (name.clone(), kind.unwrap_or(ColumnKind::Text))).collect();
    let [first, second] = outputs;
    let mut sheets = [Sheet::create(first, columns.clone())?, Sheet::create(second, columns)?];
    let mut rows = [0; 2];
    for path in paths {
        splitter.write(path, &mut sheets, &mut rows)?;
    }
    sheets.into_iter().try_for_each(Sheet::finish)?;
    let of_second = splitter.second.values().filter(|second| **second).count() as u64;
    Ok(Split { by: splitter.by, groups: [splitter.groups.len() as u64 - of_second, of_second], rows })
}

impl Splitter {
    /// Collects groups, and the kinds of columns.
    fn look(&mut self, path: &Path) -> Result<()> {
        let file = path.display().to_string();
        let mut table = open_whole(path, &self.versions)?;
        let places = self.places(&file, &table)?;
        let mut width = 0;
        while next(&file, &mut table)? {
            for column in self.columns.len()..table.columns().len() {
                self.columns.push((table.columns()[column].clone(), None));
            }
            let new = width..table.columns().len();
            if new.clone().any(|column| self.columns[column].0 != table.columns()[column]) {
                return Err(Error::input(
                    &file,
                    None,
                    "its columns differ from those of the first table",
                    "split each table by itself",
                ));
            }
            width = new.end;
            for column in 0..table.columns().len() {
                let kind = kind_of(table.cell(column), (self.types && !table.is_typed()).then_some(&self.schema));
                self.columns[column].1 = joined(self.columns[column].1, kind);
            }
            let group = group(&file, &table, &places)?;
            if !self.second.contains_key(&group) {
                self.groups.push(group.clone());
                self.second.insert(group, false);
            }
        }
        Ok(())
    }

    fn places(&self, file: &str, table: &dyn Table) -> Result<Vec<usize>> {
        let place = |name: &String| {
            table.columns().iter().position(|column| column == name).ok_or_else(|| {
                let problem = format!("no column {name:?} to split by; columns found: {}", table.columns().join(", "));
                Error::input(file, None, problem, "give the name of a column")
            })
        };
        let places = self.by.iter().map(place).collect::<Result<Vec<_>>>()?;
        Ok(places)
    }

    /// Draws the groups of the second file: the share of all, and at least one in each file.
    fn decide(&mut self, share: f64, seed: Seed) -> Result<()> {
        let n = self.groups.len();
        if n < 2 {
            let problem = format!("there is only one value of {}, which cannot be split", self.by.join(" and "));
            return Err(Error::data(problem, "split by another column"));
        }
        let wanted = ((share * n as f64).round() as usize).clamp(1, n - 1);
        let mut rng = seed.rng();
        let mut order: Vec<usize> = (0..n).collect();
        (1..n).for_each(|i| order.swap(i, rng.below(i + 1)));
        for &i in &order[..wanted] {
            self.second.insert(self.groups[i].clone(), true);
        }
        Ok(())
    }

    fn write(&self, path: &Path, sheets: &mut [Sheet; 2], rows: &mut [u64; 2]) -> Result<()> {
        let file = path.display().to_string();
        let mut table = open_whole(path, &self.versions)?;
        let places = self.places(&file, &table)?;
        while next(&file, &mut table)? {
            let to = usize::from(self.second.get(&group(&file, &table, &places)?).copied().unwrap_or(false));
            let texts = (0..self.columns.len()).map(|column| text(&file, &table, column)).collect::<Result<Vec<String>>>()?;
            let cells: Vec<CellValue<'_>> = (self.columns.iter().enumerate())
                .map(|(column, (_, kind))| self.value(cell(&table, column), *kind, &texts[column]))
                .collect();
            sheets[to].row(&cells)?;
            rows[to] += 1;
        }
        Ok(())
    }
}

/// A table of which all columns are read.
fn open_whole(path: &Path, versions: &Versions) -> Result<Box<dyn Table>> {
    let mut table = open_as_written(path, versions)?;
    table.want(&(0..table.columns().len()).collect::<Vec<_>>())?;
    Ok(table)
}

fn cell(table: &dyn Table, column: usize) -> Cell<'_> {
    if column < table.columns().len() { table.cell(column) } else { Cell::Absent }
}

/// Goes to the next row, if there is one; all columns are read.
fn next(file: &str, table: &mut Box<dyn Table>) -> Result<bool> {
    match table.advance()? {
        Advance::Row => Ok(true),
        Advance::End => Ok(false),
        Advance::Malformed(problem) => Err(LocatedProblem { location: table.location(), problem }.into_error(file)),
    }
}

fn group(file: &str, table: &dyn Table, places: &[usize]) -> Result<String> {
    let values = places.iter().map(|&column| text(file, table, column)).collect::<Result<Vec<String>>>()?;
    Ok(values.join("\u{1f}"))
}

/// A cell as text. What cannot be written is an error, so that nothing is lost.
fn text(file: &str, table: &dyn Table, column: usize) -> Result<String> {
    let (cell, mut text) = (cell(table, column), String::new());
    match cell {
        Cell::Absent | Cell::Empty => {}
        Cell::Float(x) => text = format!("{x:?}"),
        cell => cell.push_name(&mut text).map_err(|problem| {
            let problem = problem.of(&table.columns()[column]);
            LocatedProblem { location: table.location(), problem }.into_error(file)
        })?,
    }
    Ok(text)
}

/// The kind of a cell, if it has a value. Texts are looked at where a schema says what is missing
/// among them.
fn kind_of(cell: Cell<'_>, schema: Option<&Schema>) -> Option<ColumnKind> {
    match cell {
        Cell::Absent | Cell::Empty => None,
        Cell::Int(_) => Some(ColumnKind::Integer),
        Cell::Float(_) => Some(ColumnKind::Number),
        Cell::Bool(_) => Some(ColumnKind::Flag),
        Cell::Text(text) => match schema {
            Some(schema) if schema.is_missing(text) => None,
            Some(_) => Some(kind_of_text(text)),
            None => Some(ColumnKind::Text),
        },
        Cell::List(_) | Cell::Other(_) => Some(ColumnKind::Text),
    }
}

/// A number only if nothing is lost: `007` is a name.
fn kind_of_text(text: &[u8]) -> ColumnKind {
    let text = std::str::from_utf8(text).unwrap_or_default();
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_plain = digits.starts_with(|c: char| c.is_ascii_digit())
        && !(digits.len() > 1 && digits.starts_with('0') && !digits.starts_with("0."));
    match (text.parse::<i64>(), text.parse::<f64>()) {
        (Ok(_), _) if is_plain => ColumnKind::Integer,
        (_, Ok(x)) if is_plain && x.is_finite() && digits.contains(['.', 'e', 'E']) => ColumnKind::Number,
        _ => ColumnKind::Text,
    }
}

/// The kind of a column that had values of one kind and now has one of another.
fn joined(kind: Option<ColumnKind>, own: Option<ColumnKind>) -> Option<ColumnKind> {
    match (kind, own) {
        (None, other) | (other, None) => other,
        (Some(kind), Some(own)) if kind == own => Some(own),
        (Some(ColumnKind::Integer | ColumnKind::Number), Some(ColumnKind::Integer | ColumnKind::Number)) => {
            Some(ColumnKind::Number)
        }
        _ => Some(ColumnKind::Text),
    }
}

impl Splitter {
    fn value<'a>(&self, cell: Cell<'_>, kind: Option<ColumnKind>, text: &'a str) -> CellValue<'a> {
        let number = || text.parse().ok().map(CellValue::Number);
        match (cell, kind) {
            (Cell::Absent | Cell::Empty, _) => CellValue::Missing,
            (Cell::Int(n), Some(ColumnKind::Integer)) => CellValue::Integer(n),
            (Cell::Int(n), Some(ColumnKind::Number)) => CellValue::Number(n as f64),
            (Cell::Float(x), Some(ColumnKind::Number)) => CellValue::Number(x),
            (Cell::Bool(flag), Some(ColumnKind::Flag)) => CellValue::Flag(flag),
            (Cell::Text(_), Some(ColumnKind::Integer | ColumnKind::Number)) if self.schema.is_missing(text.as_bytes()) => {
                CellValue::Missing
            }
            (Cell::Text(_), Some(ColumnKind::Integer)) => text.parse().map_or(CellValue::Text(text), CellValue::Integer),
            (Cell::Text(_), Some(ColumnKind::Number)) => number().unwrap_or(CellValue::Text(text)),
            _ => CellValue::Text(text),
        }
    }
}
