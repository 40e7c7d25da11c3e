//! Tables in CSV.

use super::cell::{Cell, Problem};
use super::dialect::{Dialect, plain_number};
use super::formula::unguarded;
use super::input::Input;
use super::records::{Record, Records};
use super::table::{Advance, Location, Table, check_columns};
use crate::error::{Error, Result};

/// A CSV file with a header.
pub(super) struct Csv {
    records: Records,
    columns: Vec<String>,
    /// Cells begin with a space, which belongs to the delimiter.
    spaced: bool,
}

impl Csv {
    /// Reads the header.
    pub fn open(mut input: Input) -> Result<Csv> {
        let file = input.name();
        let dialect = Dialect::of(input.peek()?);
        let mut records = Records::new(input, dialect);
        let columns: Result<Vec<String>, _> = match records.advance()? {
            Record::Fields => records.fields().map(|name| String::from_utf8(unguarded(name.trim_ascii()).to_vec())).collect(),
            Record::Malformed(problem) => {
                let remedy = format!("{}; {HEADER}", problem.remedy);
                return Err(Error::input(file, Some(records.line()), problem.problem, remedy));
            }
            Record::End => return Err(Error::input(file, None, "the file is empty", "leave it out, or log at least one step")),
        };
        match columns {
            Ok(columns) => {
                check_columns(&columns, 0, &file, Some(records.line()))?;
                Ok(Csv { records, columns, spaced: dialect.spaced })
            }
            Err(_) => Err(Error::input(file, Some(1), "the header is not valid UTF-8", "save the file with UTF-8 encoding")),
        }
    }
}

impl Csv {
    #[inline(always)]
    fn text(&self, column: usize) -> &[u8] {
        let text = self.records.field(column);
        if self.spaced { text.trim_ascii() } else { text }
    }

    /// What is wrong with a row of more or fewer cells than there are columns.
    #[cold]
    fn other_width(&self) -> Problem {
        let problem = format!("{} cells in a table of {} columns", self.records.len(), self.columns.len());
        let remedy = match self.columns.len() {
            1 => HEADER.to_string(),
            n if self.records.len() == n + 1 => {
                "quote cells that contain the delimiter; if rows begin with a name or a number, name that column too".into()
            }
            _ => "quote cells that contain the delimiter, and give every row a cell per column".into(),
        };
        Problem::new(problem, remedy)
    }
}

/// What the first line must be.
pub(super) const HEADER: &str = "the first line must name the columns, with commas, semicolons, tabs or | between them";

impl Table for Csv {
    fn columns(&self) -> &[String] {
        &self.columns
    }

    #[inline]
    fn advance(&mut self) -> Result<Advance> {
        Ok(match self.records.advance()? {
            Record::Fields if self.records.len() == self.columns.len() => Advance::Row,
            Record::Fields => Advance::Malformed(self.other_width()),
            Record::Malformed(problem) => Advance::Malformed(problem),
            Record::End => Advance::End,
        })
    }

    #[inline(always)]
    fn cell(&self, column: usize) -> Cell<'_> {
        match self.text(column) {
            b"" => Cell::Empty,
            text => Cell::Text(plain_number(unguarded(text))),
        }
    }

    #[inline(always)]
    fn raw(&self, column: usize) -> Cell<'_> {
        match self.text(column) {
            b"" => Cell::Empty,
            text => Cell::Text(text),
        }
    }

    fn location(&self) -> Location {
        Location::Line(self.records.line())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cells of a file, rows with ` / ` between them.
    fn cells(bytes: &[u8]) -> String {
        let mut table = Csv::open(Input::of_bytes(bytes)).unwrap();
        let mut rows = vec![table.columns().join(" ")];
        while let Advance::Row = table.advance().unwrap() {
            let text = |column| match table.cell(column) {
                Cell::Text(text) => String::from_utf8_lossy(text).to_string(),
                cell => cell.to_string(),
            };
            rows.push((0..table.columns().len()).map(text).collect::<Vec<_>>().join(" "));
        }
        rows.join(" / ")
    }

    #[test]
    fn a_comma_between_digits_is_a_decimal_point_where_semicolons_divide() {
        assert_eq!(cells(b"a;b;c\n1,5;-0,25;\"3,0\"\n1,2,3;x,5;5,\n"), "a b c / 1.5 -0.25 3 / 1,2,3 x,5 5,");
        assert_eq!(cells(b"a,b\n\"1,5\",2\n"), "a b / 1,5 2");
    }

    #[test]
    fn spaces_after_the_delimiter_belong_to_it_if_the_header_has_them() {
        assert_eq!(cells(b"a, b, \"c, d\"\nx, , \"y, z\"\n p,  q,r\n"), "a b c, d / x (empty) y, z / p q r");
        assert_eq!(cells(b"a,b\n x, y\n"), "a b /  x  y");
    }

    #[test]
    fn a_whole_number_has_one_name() {
        assert_eq!(cells(b"a,b,c,d\n1.0,-2.00,01.0,1.10\n.0,v1.0,1.0.0,10\n"), "a b c d / 1 -2 01.0 1.10 / .0 v1.0 1.0.0 10");
    }
}
