//! Tables in memory, as batches of Arrow columns.

use std::vec;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::DataType;

use super::cell::Cell;
use super::table::{Advance, Location, Table};
use crate::error::{Error, Result};

/// Batches of the same columns, one after the other.
pub(super) struct Batches {
    name: String,
    columns: Vec<String>,
    /// For each column, whether it will be read.
    wanted: Vec<bool>,
    waiting: vec::IntoIter<RecordBatch>,
    cells: Vec<Cells>,
    /// Rows in this batch, the current one, and rows in the batches before.
    len: usize,
    row: usize,
    before: u64,
}

/// A column of a batch, cast to one of the types a cell can have.
pub(super) enum Cells {
    Text(StringArray),
    Names(DictionaryArray<Int32Type>, StringArray),
    Int(Int64Array),
    Float(Float64Array),
    Bool(BooleanArray),
    Nothing,
}

impl Batches {
    /// A table called `name` in errors.
    pub fn new(name: String, batches: Vec<RecordBatch>) -> Batches {
        let columns = batches
            .first()
            .map_or(Vec::new(), |batch| batch.schema().fields().iter().map(|field| field.name().clone()).collect());
        let wanted = vec![false; columns.len()];
        Batches { name, columns, wanted, waiting: batches.into_iter(), cells: Vec::new(), len: 0, row: 0, before: 0 }
    }
}

impl Table for Batches {
    fn columns(&self) -> &[String] {
        &self.columns
    }

    fn want(&mut self, columns: &[usize]) -> Result<()> {
        columns.iter().for_each(|&column| self.wanted[column] = true);
        Ok(())
    }

    #[inline]
    fn advance(&mut self) -> Result<Advance> {
        self.row += 1;
        while self.row >= self.len {
            self.before += self.len as u64;
            let Some(batch) = self.waiting.next() else { return Ok(Advance::End) };
            (self.len, self.row) = (batch.num_rows(), 0);
            let columns = self.columns.iter().zip(batch.columns()).zip(&self.wanted);
            let cells = columns.map(|((column, array), wanted)| match wanted {
                true => Cells::of(column, array, &self.name),
                false => Ok(Cells::Nothing),
            });
            self.cells = cells.collect::<Result<_>>()?;
        }
        Ok(Advance::Row)
    }

    #[inline(always)]
    fn cell(&self, column: usize) -> Cell<'_> {
        self.cells[column].cell(self.row)
    }

    fn location(&self) -> Location {
        Location::Row(self.before + self.row as u64 + 1)
    }
}

impl Cells {
    /// The column of that name of a table called `table` in errors.
    pub fn of(column: &str, array: &ArrayRef, table: &str) -> Result<Cells> {
        Cells::cast(array).map_err(|error| {
            let problem = format!("column {column:?} has the type {}, which cannot be read{error}", array.data_type());
            Error::input(table, None, problem, "write it as strings, integers, floats or booleans")
        })
    }

    fn cast(array: &ArrayRef) -> Result<Cells, String> {
        let cast = |to: &DataType| arrow_cast::cast(array, to).map_err(|error| format!(" ({error})"));
        Ok(match array.data_type() {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Cells::Text(cast(&DataType::Utf8)?.as_string().clone()),
            DataType::Dictionary(_, values) if matches!(**values, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View) => {
                let names = cast(&DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)))?;
                let names = names.as_dictionary::<Int32Type>().clone();
                let values = names.values().as_string().clone();
                Cells::Names(names, values)
            }
            DataType::Dictionary(_, values) => Cells::cast(&cast(values)?)?,
            integer if integer.is_integer() => match cast(&DataType::Int64)? {
                // a number above the largest i64 became null
                less if less.null_count() > array.null_count() => Cells::Text(cast(&DataType::Utf8)?.as_string().clone()),
                all => Cells::Int(all.as_primitive::<Int64Type>().clone()),
            },
            float if float.is_floating() => Cells::Float(cast(&DataType::Float64)?.as_primitive::<Float64Type>().clone()),
            DataType::Boolean => Cells::Bool(array.as_boolean().clone()),
            DataType::Null => Cells::Nothing,
            _ => return Err(String::new()),
        })
    }

    #[inline(always)]
    pub fn cell(&self, row: usize) -> Cell<'_> {
        match self {
            Cells::Text(array) if array.is_valid(row) => Cell::Text(array.value(row).as_bytes()),
            Cells::Names(array, names) => match array.key(row) {
                Some(name) if names.is_valid(name) => Cell::Text(names.value(name).as_bytes()),
                _ => Cell::Empty,
            },
            Cells::Int(array) if array.is_valid(row) => Cell::Int(array.value(row)),
            Cells::Float(array) if array.is_valid(row) => Cell::Float(array.value(row)),
            Cells::Bool(array) if array.is_valid(row) => Cell::Bool(array.value(row)),
            _ => Cell::Empty,
        }
    }
}
