//! How long it took until a row, as part of its action.

use super::cell::{Cell, Problem};
use super::dates::{DAY, date};
use super::schema::{ELAPSED, Schema};
use super::symbols::Cells;
use crate::encode::Encoder;
use crate::error::{Error, Result};

/// The column of the time, and the cells of differences.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Elapsed {
    pub column: usize,
    /// `None` while they are being fitted.
    cells: Option<Cells>,
}

/// The label of the first row of an episode.
pub(super) const FIRST: &str = "first";
const YEAR: f64 = 365.25 * DAY;

/// Units of time: as they are written, as columns are named, and in seconds.
const UNITS: [(&str, &str, f64); 7] = [
    ("s", "second", 1.0),
    ("min", "minute", 60.0),
    ("h", "hour", 3600.0),
    ("d", "day", DAY),
    ("w", "week", 7.0 * DAY),
    ("m", "month", YEAR / 12.0),
    ("y", "year", YEAR),
];

impl Elapsed {
    /// The elapsed time of a column. Its cells are those given, or those fitted to logs.
    pub fn new(column: usize, name: &str, schema: &Schema, file: &str) -> Result<Elapsed> {
        if !schema.elapsed_bins.is_empty() {
            let encoder = given(name, &schema.elapsed_bins).map_err(|problem| {
                Error::input(file, None, problem, "give ascending durations, such as 3m,1y, or numbers in the unit of the column")
            })?;
            return Ok(Elapsed { column, cells: Some(encoder) });
        }
        Ok(Elapsed { column, cells: schema.encoders.get(ELAPSED).cloned().map(Cells::new) })
    }

    /// Appends the cell of the time from `before` to `now` to the name of an action.
    pub fn push(&self, before: Option<f64>, now: f64, name: &mut String) {
        name.push_str("elapsed=");
        let cell = before.zip(self.cells.as_ref()).map(|(before, cells)| {
            let cell = cells.encoder.cell_of_numbers(&[now - before]).expect("times are finite");
            &cells.labels[cell]
        });
        name.push_str(cell.map_or(FIRST, String::as_str));
    }
}

/// Cells between durations, labelled as they were written.
fn given(column: &str, durations: &[String]) -> std::result::Result<Cells, String> {
    let cuts = durations.iter().map(|text| in_unit_of(column, text)).collect::<std::result::Result<Vec<f64>, String>>()?;
    if cuts.windows(2).any(|pair| pair[0] >= pair[1]) || cuts.iter().any(|cut| !cut.is_finite()) {
        return Err(format!("the elapsed times {} are not ascending", durations.join(",")));
    }
    let bound = |i: usize| durations.get(i).cloned().unwrap_or_default();
    let label = |i: usize| format!("{}..{}", i.checked_sub(1).map(bound).unwrap_or_default(), bound(i));
    let labels = (0..=cuts.len()).map(label).collect();
    let (low, high) = (0.0, cuts.last().copied().unwrap_or(0.0));
    Ok(Cells { encoder: Encoder::Cuts { cuts, low, high }, labels })
}

/// A duration such as `3m`, or a number, in the unit of a column: numbers in a column of years are
/// compared in years, dates in seconds.
fn in_unit_of(column: &str, text: &str) -> std::result::Result<f64, String> {
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let number: f64 = number.trim().parse().map_err(|_| format!("the elapsed time {text:?} is not a duration"))?;
    match (unit, UNITS.iter().find(|(short, ..)| *short == unit)) {
        ("", _) => Ok(number),
        (_, Some((_, _, seconds))) => Ok(number * seconds / unit_of_name(column)),
        (_, None) => {
            let known: Vec<&str> = UNITS.iter().map(|(short, ..)| *short).collect();
            Err(format!("the elapsed time {text:?} has an unknown unit; units are {}", known.join(", ")))
        }
    }
}

/// The cells of elapsed times that a schema gives.
pub(super) fn cells(schema: &Schema) -> Option<Cells> {
    given(schema.elapsed.as_ref()?.first()?, &schema.elapsed_bins).ok()
}

/// A duration in the unit of the column of elapsed times.
pub(super) fn duration(schema: &Schema, text: &str) -> Option<f64> {
    in_unit_of(schema.elapsed.as_ref()?.first()?, text.trim()).ok().filter(|x| x.is_finite())
}

/// Seconds of the unit that the name of a column ends with, such as `years`; dates are in seconds.
fn unit_of_name(column: &str) -> f64 {
    let name = column.to_lowercase();
    let unit = UNITS.iter().find(|(_, word, _)| name.ends_with(word) || name.ends_with(&format!("{word}s")));
    unit.map_or(1.0, |(.., seconds)| *seconds)
}

impl Cell<'_> {
    /// A number, or the seconds since 1970 of a [`date`].
    pub fn time(self) -> std::result::Result<f64, Problem> {
        let date = if let Cell::Text(text) = self { std::str::from_utf8(text).ok().and_then(date) } else { None };
        match self.number().or(date).filter(|time| time.is_finite()) {
            Some(time) => Ok(time),
            None => Err(Problem::new(
                format!("{self} is neither a number nor a date"),
                "write times as numbers or as 2024-03-01T12:30:05",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_compared_in_the_unit_of_the_column() {
        let labels = |column: &str, x: f64| {
            let cells = given(column, &["3m".into(), "1y".into()]).unwrap();
            cells.labels[cells.encoder.cell_of_numbers(&[x]).unwrap()].clone()
        };
        assert_eq!(labels("years", 0.2), "..3m");
        assert_eq!(labels("years", 0.3), "3m..1y");
        assert_eq!(labels("age_days", 366.0), "1y..");
        assert_eq!(labels("when", 100.0 * DAY), "3m..1y");
        for wrong in [&["1y", "3m"][..], &["x"], &["3q"], &["nan"]] {
            assert!(given("years", &wrong.iter().map(ToString::to_string).collect::<Vec<_>>()).is_err(), "{wrong:?}");
        }
    }
}
