//! Columns and cells of tables that are written.

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// Names.
    Text,
    /// Whole numbers.
    Integer,
    /// Numbers.
    Number,
    /// True or false.
    Flag,
}

/// A cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CellValue<'a> {
    /// Nothing.
    Missing,
    /// A name.
    Text(&'a str),
    /// A whole number.
    Integer(i64),
    /// A number.
    Number(f64),
    /// True or false.
    Flag(bool),
}
