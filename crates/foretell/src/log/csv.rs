//! Tables in CSV.

use super::cell::{Cell, Problem};
use super::formula::unguarded;
use super::input::Input;
use super::records::{Record, Records};
use super::table::{Advance, Location, Table, check_columns};
use crate::error::{Error, Result};

/// A CSV file with a header.
pub(super) struct Csv {
    records: Records,
    columns: Vec<String>,
}

impl Csv {
    /// Reads the header.
    pub fn open(mut input: Input) -> Result<Csv> {
        let file = input.name();
        let delimiter = delimiter(input.peek()?);
        let mut records = Records::new(input, delimiter);
        let columns: Result<Vec<String>, _> = match records.advance()? {
            Record::Fields => records.fields().map(|name| String::from_utf8(unguarded(name.trim_ascii()).to_vec())).collect(),
            Record::Malformed(problem) => {
                return Err(Error::input(file, Some(records.line()), problem.problem, problem.remedy));
            }
            Record::End => return Err(Error::input(file, None, "the file is empty", "leave it out, or log at least one step")),
        };
        match columns {
            Ok(columns) => {
                check_columns(&columns, 0, &file, Some(records.line()))?;
                Ok(Csv { records, columns })
            }
            Err(_) => Err(Error::input(file, Some(1), "the header is not valid UTF-8", "save the file with UTF-8 encoding")),
        }
    }
}

impl Table for Csv {
    fn columns(&self) -> &[String] {
        &self.columns
    }

    #[inline]
    fn advance(&mut self) -> Result<Advance> {
        Ok(match self.records.advance()? {
            Record::Fields if self.records.len() == self.columns.len() => Advance::Row,
            Record::Fields => {
                let problem = format!("{} cells in a table of {} columns", self.records.len(), self.columns.len());
                Advance::Malformed(Problem::new(
                    problem,
                    "quote cells that contain the delimiter, and give every row a cell per column",
                ))
            }
            Record::Malformed(problem) => Advance::Malformed(problem),
            Record::End => Advance::End,
        })
    }

    #[inline(always)]
    fn cell(&self, column: usize) -> Cell<'_> {
        match self.records.field(column) {
            b"" => Cell::Empty,
            text => Cell::Text(unguarded(text)),
        }
    }

    fn location(&self) -> Location {
        Location::Line(self.records.line())
    }
}

/// A comma, unless the header has none and one of the others.
fn delimiter(begin: &[u8]) -> u8 {
    let header = begin.split(|&byte| byte == b'\n').find(|line| !line.trim_ascii().is_empty()).unwrap_or_default();
    [b',', b';', b'\t'].into_iter().find(|delimiter| header.contains(delimiter)).unwrap_or(b',')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delimiter_is_found_in_the_header() {
        assert_eq!(delimiter(b"a,b;c\n"), b',');
        assert_eq!(delimiter(b"\na;b\n1,2\n"), b';');
        assert_eq!(delimiter(b"a\tb"), b'\t');
        assert_eq!(delimiter(b"a"), b',');
    }
}
