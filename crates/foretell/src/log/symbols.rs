//! Where the action or the observation of a row comes from: one column, or several whose values are
//! joined, some of them divided into cells.

use super::cell::{Cell, Problem, SEPARATOR};
use super::schema::Schema;
use super::table::{Table, read};
use crate::encode::Encoder;

/// Where a symbol comes from.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Symbols {
    /// There is no column: the symbol is always the same.
    Nothing,
    In(usize),
    /// The values of several columns joined, each after its label: `colour=red|side=left`, or
    /// `0|1|1`.
    Across(Vec<Part>),
}

/// One of several values that make a symbol.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Part {
    /// One column, or several that are divided together.
    pub columns: Vec<usize>,
    /// `colour=`, or nothing where the parts are numbered.
    pub label: String,
    pub cells: Option<Cells>,
}

/// An encoder, and the labels of its cells.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cells {
    pub encoder: Encoder,
    pub labels: Vec<String>,
}

/// The name of the action of a system without actions.
pub(super) const NO_ACTION: &str = "none";
/// Stands for a part that is missing.
pub(super) const UNKNOWN_PART: &str = "?";

impl Cells {
    pub fn new(encoder: Encoder) -> Cells {
        Cells { labels: (0..encoder.cells()).map(|cell| encoder.label(cell)).collect(), encoder }
    }
}

impl Symbols {
    /// Its columns.
    pub fn columns(&self) -> Vec<usize> {
        match self {
            Symbols::Nothing => Vec::new(),
            Symbols::In(column) => vec![*column],
            Symbols::Across(parts) => parts.iter().flat_map(|part| part.columns.iter().copied()).collect(),
        }
    }

    /// Appends the name of the symbol in this row. Returns how many of its parts are missing; they
    /// are `?` in the name.
    pub fn push_name(&self, table: &impl Table, schema: &Schema, name: &mut String) -> Result<usize, Problem> {
        match self {
            Symbols::Nothing => name.push_str(NO_ACTION),
            Symbols::In(column) => {
                if is_missing(table.cell(*column), schema) {
                    name.push_str(UNKNOWN_PART);
                    return Ok(1);
                }
                read(table, Some(*column), |cell| cell.push_name(name))?;
            }
            Symbols::Across(parts) => {
                let (begin, mut missing) = (name.len(), 0);
                for part in parts {
                    if name.len() > begin {
                        name.push(SEPARATOR);
                    }
                    missing += usize::from(!part.push(table, schema, name)?);
                }
                return Ok(missing);
            }
        }
        Ok(0)
    }

    /// How many parts it has.
    pub fn parts(&self) -> usize {
        match self {
            Symbols::Nothing | Symbols::In(_) => 1,
            Symbols::Across(parts) => parts.len(),
        }
    }
}

impl Part {
    /// Appends its label and value; false if the value is missing.
    fn push(&self, table: &impl Table, schema: &Schema, name: &mut String) -> Result<bool, Problem> {
        name.push_str(&self.label);
        if self.columns.iter().any(|&column| is_missing(table.cell(column), schema)) {
            name.push_str(UNKNOWN_PART);
            return Ok(false);
        }
        let begin = name.len();
        match &self.cells {
            None => {
                read(table, Some(self.columns[0]), |cell| cell.push_name(name))?;
                // otherwise (a|b, c) and (a, b|c) would be one symbol
                if name[begin..].contains(SEPARATOR) {
                    let problem = format!("{} {:?} contains {SEPARATOR}", table.columns()[self.columns[0]], &name[begin..]);
                    return Err(Problem::new(problem, "it joins the columns of a symbol; replace it by another character"));
                }
            }
            Some(Cells { encoder, labels }) if encoder.is_numeric() => {
                let numbers = self.columns.iter().map(|&column| read(table, Some(column), Cell::measurement));
                let numbers = numbers.collect::<Result<Vec<f64>, Problem>>()?;
                let cell = encoder.cell_of_numbers(&numbers).expect("measurements are finite");
                name.push_str(&labels[cell]);
            }
            Some(Cells { encoder, labels }) => {
                let mut scratch = String::new();
                read(table, Some(self.columns[0]), |cell| cell.push_name(&mut scratch))?;
                let cell = encoder.cell_of_name(&scratch).expect("cells of names");
                name.push_str(&labels[cell]);
            }
        }
        Ok(true)
    }
}

/// Whether a cell holds no value.
#[inline]
pub(super) fn is_missing(cell: Cell<'_>, schema: &Schema) -> bool {
    match cell {
        Cell::Absent | Cell::Empty => true,
        Cell::Text(text) => schema.is_missing(text),
        Cell::Float(x) => x.is_nan(),
        _ => false,
    }
}
