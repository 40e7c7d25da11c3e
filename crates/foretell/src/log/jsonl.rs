//! Tables in JSON Lines: one object per line.

use std::fmt;
use std::io::{BufRead, Read};

use rustc_hash::FxHashMap;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::cell::{Cell, Problem, SEPARATOR};
use super::input::Input;
use super::table::{Advance, Location, Table, check_columns};
use crate::error::{Error, Result};
use crate::limits::LINE;

/// A file with one JSON object per line.
pub(super) struct JsonLines {
    input: Input,
    line: u64,
    bytes: Vec<u8>,
    row: Row,
    /// The first row was read for its keys and is not yet returned.
    first: Option<Advance>,
}

/// The cells of one line. Keys are columns, in order of first appearance.
#[derive(Default)]
struct Row {
    columns: Vec<String>,
    indices: FxHashMap<String, usize>,
    values: Vec<Value>,
    /// The columns that this line has.
    given: Vec<usize>,
    /// The strings of this line, concatenated.
    text: String,
}

/// A [`Cell`] whose text is in [`Row::text`].
#[derive(Clone, Copy, PartialEq)]
enum Value {
    Absent,
    Text { begin: usize, end: usize },
    List { begin: usize, end: usize },
    Plain(Cell<'static>),
}

impl JsonLines {
    /// Reads the first line, whose keys are the columns.
    pub fn open(input: Input) -> Result<JsonLines> {
        let mut table = JsonLines { input, line: 0, bytes: Vec::new(), row: Row::default(), first: None };
        match table.advance()? {
            Advance::Malformed(Problem { problem, remedy }) => {
                Err(Error::input(table.input.name(), Some(table.line), problem, remedy))
            }
            Advance::End => {
                Err(Error::input(table.input.name(), None, "the file is empty", "leave it out, or log at least one step"))
            }
            first => Ok(JsonLines { first: Some(first), ..table }),
        }
    }
}

impl Table for JsonLines {
    fn columns(&self) -> &[String] {
        &self.row.columns
    }

    fn advance(&mut self) -> Result<Advance> {
        if let Some(first) = self.first.take() {
            return Ok(first);
        }
        loop {
            self.bytes.clear();
            self.line += 1;
            let read = self.input.bytes.by_ref().take(LINE as u64 + 1).read_until(b'\n', &mut self.bytes);
            match read.map_err(|source| self.input.failed(source))? {
                0 => return Ok(Advance::End),
                n if n > LINE => {
                    let problem = format!("a line of more than {} MiB", LINE >> 20);
                    return Err(Error::input(self.input.name(), Some(self.line), problem, "write one object per line"));
                }
                _ => {}
            }
            if !self.bytes.trim_ascii().is_empty() {
                let known = self.row.columns.len();
                let parsed = self.row.parse(&self.bytes);
                if self.row.columns.len() > known {
                    check_columns(&self.row.columns, known, &self.input.name(), Some(self.line))?;
                }
                return Ok(match parsed {
                    Ok(()) => Advance::Row,
                    Err(error) => Advance::Malformed(malformed(&error)),
                });
            }
        }
    }

    #[inline(always)]
    fn cell(&self, column: usize) -> Cell<'_> {
        match self.row.values[column] {
            Value::Absent => Cell::Absent,
            Value::Text { begin, end } => Cell::Text(&self.row.text.as_bytes()[begin..end]),
            Value::List { begin, end } => Cell::List(&self.row.text.as_bytes()[begin..end]),
            Value::Plain(cell) => cell,
        }
    }

    fn location(&self) -> Location {
        Location::Line(self.line)
    }

    fn is_typed(&self) -> bool {
        true
    }
}

fn malformed(error: &serde_json::Error) -> Problem {
    let text = error.to_string();
    // serde_json sees one line only
    if error.line() == 0 {
        return Problem::new(text, "save the file with UTF-8 encoding");
    }
    let what = text.strip_suffix(&format!(" at line {} column {}", error.line(), error.column())).unwrap_or(&text);
    Problem::new(
        format!("not a JSON object ({what}, at column {})", error.column()),
        "write one object per line, such as {\"action\": \"N\", …}",
    )
}

impl Row {
    fn parse(&mut self, line: &[u8]) -> serde_json::Result<()> {
        self.text.clear();
        // Not all of them: there may be far more keys in all than in a line.
        for column in self.given.drain(..) {
            self.values[column] = Value::Absent;
        }
        // checked once for the line, it need not be for every string
        let line = std::str::from_utf8(line).map_err(|_| serde_json::Error::custom("it is not valid UTF-8"))?;
        let mut json = serde_json::Deserializer::from_str(line);
        json.deserialize_map(&mut *self)?;
        json.end()
    }
}

impl<'de> Visitor<'de> for &mut Row {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut guess = 0;
        while let Some(column) = map.next_key_seed(Key { row: self, guess })? {
            if self.values[column] != Value::Absent {
                return Err(A::Error::custom(format_args!("the key {:?} appears twice", self.columns[column])));
            }
            self.given.push(column);
            self.values[column] = map.next_value_seed(Text { text: &mut self.text, depth: 0 })?;
            guess = column + 1;
        }
        Ok(())
    }
}

/// Finds the column of a key; lines mostly have the same keys in the same order.
struct Key<'r> {
    row: &'r mut Row,
    guess: usize,
}

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = usize;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<usize, D::Error> {
        json.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = usize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<usize, E> {
        let Key { row, guess } = self;
        if row.columns.get(guess).is_some_and(|column| column == key) {
            return Ok(guess);
        }
        if let Some(&column) = row.indices.get(key) {
            return Ok(column);
        }
        row.columns.push(key.to_string());
        row.values.push(Value::Absent);
        row.indices.insert(key.to_string(), row.columns.len() - 1);
        Ok(row.columns.len() - 1)
    }
}

/// Reads a value and appends its text.
struct Text<'t> {
    text: &'t mut String,
    /// Nesting depth of arrays.
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for Text<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Value, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Text<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Plain(Cell::Bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Plain(Cell::Int(value)))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Value, E> {
        match i64::try_from(value) {
            Ok(value) => self.visit_i64(value),
            Err(_) => self.visit_str(&value.to_string()),
        }
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Plain(Cell::Float(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        let begin = self.text.len();
        self.text.push_str(value);
        Ok(Value::Text { begin, end: self.text.len() })
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Plain(Cell::Empty))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Value::Plain(Cell::Other("is an object")))
    }

    /// An array of scalars is one name, its elements joined.
    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Value, A::Error> {
        if self.depth > 0 {
            while array.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(Value::Plain(Cell::Other("is an array of arrays")));
        }
        let begin = self.text.len();
        let (mut joined, mut element) = (String::new(), String::new());
        let mut bad: Option<Cell<'static>> = None;
        while let Some(value) = array.next_element_seed(Text { text: &mut element, depth: 1 })? {
            let cell = match value {
                Value::Plain(cell) => cell,
                _ => Cell::Text(element.as_bytes()),
            };
            if !joined.is_empty() {
                joined.push(SEPARATOR);
            }
            let from = joined.len();
            bad = bad.or(match cell {
                Cell::Other(_) => Some(Cell::Other("is an array of arrays or objects")),
                Cell::Float(x) if x.fract() != 0.0 => Some(Cell::Other("is an array with a fraction in it")),
                cell if cell.push_name(&mut joined).is_err() => Some(Cell::Other("is an array with an empty element")),
                _ if joined[from..].contains(SEPARATOR) => Some(Cell::Other("is an array with an element that contains |")),
                _ => None,
            });
            element.clear();
        }
        if joined.is_empty() {
            bad = bad.or(Some(Cell::Other("is an empty array")));
        }
        self.text.push_str(&joined);
        let end = self.text.len();
        Ok(bad.map_or(Value::List { begin, end }, Value::Plain))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_may_change_their_order_and_go_missing() {
        let lines = "{\"a\": 1, \"b\": \"x\"}\n\n{\"b\": \"\\u00e9\", \"c\": null}\n{\"a\": 18446744073709551615}";
        let mut table = JsonLines::open(Input::of_bytes(lines.as_bytes())).unwrap();
        let mut rows = Vec::new();
        while let Advance::Row = table.advance().unwrap() {
            let cells: Vec<_> = (0..table.columns().len()).map(|column| table.cell(column).to_string()).collect();
            rows.push(format!("{:?} {}", table.location(), cells.join(" ")));
        }
        assert_eq!(
            rows,
            ["Line(1) 1 \"x\"", "Line(3) (empty) \"é\" (empty)", "Line(4) \"18446744073709551615\" (empty) (empty)"]
        );
        assert_eq!(table.columns(), ["a", "b", "c"]);
    }
}
