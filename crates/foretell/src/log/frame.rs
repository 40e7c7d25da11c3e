//! The rows of a table in memory, put in order: sorted within their episodes, or taken from the
//! columns of a wide table.

use rustc_hash::FxHashMap;

use super::cell::{Cell, Problem};
use super::columns::Columns;
use super::dates::Dates;
use super::names::by_number;
use super::schema::{ROW, Role, Schema};
use super::symbols::is_missing;
use super::table::{Advance, LocatedProblem, Location, Table};
use crate::error::{Error, Result};

/// Names of the columns that a wide table gets.
const EPISODE: &str = "episode_id";
const OBSERVATION: &str = "observation";

/// A table in memory.
pub(super) struct Frame {
    columns: Vec<String>,
    is_typed: bool,
    /// The cells of all rows, in those columns that are kept.
    rows: Vec<Vec<Value>>,
    /// For each column its place in a row, if it is kept.
    places: Vec<Option<u32>>,
    locations: Vec<Location>,
    /// Text of all cells.
    text: Vec<u8>,
    /// The rows in their order, and the number of those already visited.
    order: Vec<u32>,
    visited: usize,
    notes: Vec<String>,
}

/// A [`Cell`] whose text is in [`Frame::text`].
#[derive(Clone, Copy)]
enum Value {
    Text { begin: usize, end: usize },
    List { begin: usize, end: usize },
    Plain(Cell<'static>),
}

impl Frame {
    /// Reads all of a table and puts its rows in order.
    pub fn arrange(file: &str, mut table: impl Table, schema: &Schema) -> Result<Frame> {
        let is_typed = table.is_typed();
        let mut frame = match schema.wide.is_empty() {
            true => Frame::read(file, &mut table, schema)?,
            false => Frame::unfold(file, &mut table, schema)?,
        };
        frame.is_typed = is_typed;
        let columns = Columns::find(file, &frame.columns, schema)?;
        if let Some(by) = schema.given(Role::Sort).filter(|by| !by.is_empty()) {
            frame.sort(file, (!columns.rows_are_episodes).then_some(&columns.episode), by)?;
        }
        Ok(frame)
    }

    fn new(columns: Vec<String>) -> Frame {
        Frame {
            places: (0..columns.len() as u32).map(Some).collect(),
            columns,
            is_typed: false,
            rows: Vec::new(),
            locations: Vec::new(),
            text: Vec::new(),
            order: Vec::new(),
            visited: 0,
            notes: Vec::new(),
        }
    }

    fn read(file: &str, table: &mut impl Table, schema: &Schema) -> Result<Frame> {
        let mut wanted = Columns::find(file, table.columns(), schema)?.used();
        let sort = schema.given(Role::Sort).unwrap_or_default();
        wanted.extend((0..table.columns().len()).filter(|&column| sort.contains(&table.columns()[column])));
        wanted.sort_unstable();
        wanted.dedup();
        table.want(&wanted)?;
        let mut frame = Frame::new(Vec::new());
        let mut kept = Vec::new();
        while next(file, table)? {
            for column in frame.places.len()..table.columns().len() {
                let is_kept = wanted.contains(&column) || !Columns::is_of_no_use(&table.columns()[column], schema);
                frame.places.push(is_kept.then_some(kept.len() as u32));
                kept.extend(is_kept.then_some(column));
            }
            let cells = kept.iter().map(|&column| frame.store(table.cell(column))).collect();
            frame.push(cells, table.location());
        }
        frame.columns = table.columns().to_vec();
        Ok(frame)
    }

    /// One row for each value of the wide columns; those at the end of a row that are missing are
    /// left out.
    fn unfold(file: &str, table: &mut impl Table, schema: &Schema) -> Result<Frame> {
        let names = table.columns().to_vec();
        let (wide, others): (Vec<usize>, Vec<usize>) = (0..names.len()).partition(|&i| schema.is_wide(&names[i], &names));
        if wide.len() < 2 {
            let problem = format!("{} column(s) match {}", wide.len(), schema.wide.join(", "));
            return Err(Error::input(file, None, problem, "give a pattern such as 'm_*', or the first and the last as Jan..Dec"));
        }
        table.want(&(0..names.len()).collect::<Vec<_>>())?;
        let mut columns: Vec<String> = others.iter().map(|&i| names[i].clone()).collect();
        let taken = columns.iter().find(|name| *name == OBSERVATION || *name == EPISODE && schema.episode.is_none());
        if let Some(name) = taken {
            let problem = format!("column {name:?} has the name that the values of the wide columns get");
            return Err(Error::input(file, None, problem, "rename it"));
        }
        columns.extend([OBSERVATION.to_string(), EPISODE.to_string()]);
        let mut frame = Frame::new(columns);
        let mut number = 0;
        while next(file, table)? {
            number += 1;
            let last = wide.iter().rposition(|&column| !is_missing(table.cell(column), schema));
            let fixed: Vec<Value> = others.iter().map(|&column| frame.store(table.cell(column))).collect();
            for &column in &wide[..last.map_or(0, |last| last + 1)] {
                let mut cells = fixed.clone();
                cells.extend([frame.store(table.cell(column)), Value::Plain(Cell::Int(number))]);
                frame.push(cells, table.location());
            }
        }
        Ok(frame)
    }

    fn push(&mut self, cells: Vec<Value>, location: Location) {
        self.order.push(self.rows.len() as u32);
        self.rows.push(cells);
        self.locations.push(location);
    }

    fn store(&mut self, cell: Cell<'_>) -> Value {
        let mut keep = |bytes: &[u8]| {
            let begin = self.text.len();
            self.text.extend_from_slice(bytes);
            (begin, self.text.len())
        };
        match cell {
            Cell::Text(bytes) => {
                let (begin, end) = keep(bytes);
                Value::Text { begin, end }
            }
            Cell::List(bytes) => {
                let (begin, end) = keep(bytes);
                Value::List { begin, end }
            }
            Cell::Absent => Value::Plain(Cell::Absent),
            Cell::Empty => Value::Plain(Cell::Empty),
            Cell::Int(n) => Value::Plain(Cell::Int(n)),
            Cell::Float(x) => Value::Plain(Cell::Float(x)),
            Cell::Bool(flag) => Value::Plain(Cell::Bool(flag)),
            Cell::Other(what) => Value::Plain(Cell::Other(what)),
        }
    }

    fn at(&self, row: usize, column: usize) -> Cell<'_> {
        match self.places[column].and_then(|place| self.rows[row].get(place as usize)) {
            None => Cell::Absent,
            Some(Value::Text { begin, end }) => Cell::Text(&self.text[*begin..*end]),
            Some(Value::List { begin, end }) => Cell::List(&self.text[*begin..*end]),
            Some(Value::Plain(cell)) => *cell,
        }
    }

    /// Sorts rows by episode, in order of first appearance, then by columns, of which the first counts
    /// most. Without episodes, each row is one.
    fn sort(&mut self, file: &str, episode: Option<&[usize]>, by: &[String]) -> Result<()> {
        let mut ids: FxHashMap<String, u32> = FxHashMap::default();
        let mut of_row = Vec::with_capacity(self.rows.len());
        let rows_are_episodes = episode.is_none();
        for row in 0..self.rows.len() {
            let mut id = if rows_are_episodes { row.to_string() } else { String::new() };
            for &column in episode.unwrap_or_default() {
                id.push('|');
                // an unreadable id is reported by the reader, which names the row
                let _ = self.at(row, column).push_name(&mut id);
            }
            let next = ids.len() as u32;
            of_row.push(*ids.entry(id).or_insert(next));
        }
        let columns = by.iter().filter(|name| *name != ROW);
        let keys = columns.map(|name| self.keys(file, name, &of_row)).collect::<Result<Vec<_>>>()?;
        self.order.sort_by(|&x, &y| {
            let (x, y) = (x as usize, y as usize);
            let by_keys = keys.iter().map(|keys| keys[x].total_cmp(&keys[y]));
            by_keys.fold(of_row[x].cmp(&of_row[y]), std::cmp::Ordering::then)
        });
        Ok(())
    }

    /// The values of a column as numbers: numbers, dates, or the place of each text among all.
    fn keys(&mut self, file: &str, by: &str, episode: &[u32]) -> Result<Vec<f64>> {
        let column = self.columns.iter().position(|name| name == by).ok_or_else(|| {
            Error::input(
                file,
                None,
                format!("no column {by:?} to sort by"),
                "give the name of a column, or row for the order in the file",
            )
        })?;
        let numbers: Option<Vec<f64>> =
            (0..self.rows.len()).map(|row| self.at(row, column).number().filter(|x| x.is_finite())).collect();
        if let Some(numbers) = numbers {
            return Ok(numbers);
        }
        let text = |row: usize| match self.at(row, column) {
            Cell::Text(text) if !text.is_empty() => Ok(String::from_utf8_lossy(text)),
            cell => {
                let problem =
                    Problem::new(format!("{by} {cell} cannot be sorted by"), "give every row a number, a date or a text there");
                Err(LocatedProblem { location: self.locations[row], problem }.into_error(file))
            }
        };
        let texts = (0..self.rows.len()).map(text).collect::<Result<Vec<_>>>()?;
        let texts: Vec<&str> = texts.iter().map(AsRef::as_ref).collect();
        let (keys, note) = match Dates::of(&texts) {
            Some(Dates::Read(dates)) => (dates, None),
            Some(Dates::Ambiguous { month_first, day_first }) => likelier(by, month_first, day_first, episode),
            None => {
                let note = format!(
                    "{by:?} is neither a number nor a date in all rows: rows are sorted by its text, with numbers in it as numbers"
                );
                (places(&texts), Some(note))
            }
        };
        self.notes.extend(note);
        Ok(keys)
    }
}

/// The place of each text among all, where numbers in them count as numbers.
fn places(texts: &[&str]) -> Vec<f64> {
    let mut sorted = texts.to_vec();
    sorted.sort_unstable_by(|x, y| by_number(x, y));
    sorted.dedup();
    texts.iter().map(|text| sorted.partition_point(|other| by_number(other, text).is_lt()) as f64).collect()
}

/// Of two ways to read dates the one in which more rows of an episode follow the row before, and a
/// note about it.
fn likelier(by: &str, month_first: Vec<f64>, day_first: Vec<f64>, episode: &[u32]) -> (Vec<f64>, Option<String>) {
    let in_order = |times: &[f64]| {
        let mut last: FxHashMap<u32, f64> = FxHashMap::default();
        let follows = |(&of, &time): (&u32, &f64)| last.insert(of, time).is_some_and(|before| before <= time);
        episode.iter().zip(times).map(follows).filter(|follows| *follows).count()
    };
    let (months, days) = (in_order(&month_first), in_order(&day_first));
    let (first, why) = match months.cmp(&days) {
        std::cmp::Ordering::Less => ("day", "in which more rows are in order"),
        std::cmp::Ordering::Equal => ("month", "as in the United States"),
        std::cmp::Ordering::Greater => ("month", "in which more rows are in order"),
    };
    let note = format!(
        "dates of {by:?} could be read in two ways: they are read with the {first} first, {why}; write 2026-11-18 to be sure"
    );
    (if first == "day" { day_first } else { month_first }, Some(note))
}

/// Goes to the next row, if there is one. Rows that are put in order cannot be skipped, because
/// their episode is unknown.
fn next(file: &str, table: &mut impl Table) -> Result<bool> {
    match table.advance()? {
        Advance::Row => Ok(true),
        Advance::End => Ok(false),
        Advance::Malformed(problem) => Err(LocatedProblem { location: table.location(), problem }.into_error(file)),
    }
}

impl Table for Frame {
    fn columns(&self) -> &[String] {
        &self.columns
    }

    fn advance(&mut self) -> Result<Advance> {
        self.visited += 1;
        Ok(if self.visited <= self.order.len() { Advance::Row } else { Advance::End })
    }

    fn cell(&self, column: usize) -> Cell<'_> {
        self.at(self.order[self.visited - 1] as usize, column)
    }

    fn location(&self) -> Location {
        self.locations[self.order[self.visited - 1] as usize]
    }

    fn is_typed(&self) -> bool {
        self.is_typed
    }

    fn notes(&self) -> &[String] {
        &self.notes
    }
}
