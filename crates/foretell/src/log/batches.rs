//! Tables in memory, as batches of Arrow columns.

use std::vec;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Date64Type, Decimal128Type, DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType,
    DurationSecondType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, Time32MillisecondType,
    Time32SecondType, Time64MicrosecondType, Time64NanosecondType, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    AnyDictionaryArray, Array, ArrayRef, BooleanArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray,
};
use arrow_schema::{DataType, TimeUnit};

use super::cell::{Cell, SEPARATOR};
use super::dates::DAY;
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
    /// The strings of a dictionary, by keys.
    Names(Int32Array, StringArray),
    /// Other values of a dictionary, by keys.
    Keyed(Int32Array, Box<Cells>),
    Int(Int64Array),
    Float(Float64Array),
    Bool(BooleanArray),
    /// The elements of lists, joined.
    List(StringArray),
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

    fn can_read(&self, column: usize) -> bool {
        let schema = self.waiting.as_slice().first().map(RecordBatch::schema);
        schema.is_none_or(|schema| is_readable(schema.field(column).data_type()))
    }

    fn is_typed(&self) -> bool {
        true
    }
}

impl Cells {
    /// The column of that name of a table called `table` in errors.
    pub fn of(column: &str, array: &ArrayRef, table: &str) -> Result<Cells> {
        Cells::cast(array).ok_or_else(|| {
            let problem = format!("column {column:?} has the type {}, which cannot be read", array.data_type());
            Error::input(table, None, problem, "write it as strings, integers, floats or booleans")
        })
    }

    /// By hand, for the few types that logs have: the casts of Arrow between all types are a large dependency.
    fn cast(array: &ArrayRef) -> Option<Cells> {
        macro_rules! widened {
            ($from:ty) => {
                Cells::Int(array.as_primitive::<$from>().unary::<_, Int64Type>(i64::from))
            };
        }
        macro_rules! seconds {
            ($from:ty, $units:expr) => {
                Cells::Float(array.as_primitive::<$from>().unary::<_, Float64Type>(|time| time as f64 / $units))
            };
        }
        Some(match array.data_type() {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Cells::Text(strings(array)?),
            DataType::Dictionary(..) => Cells::of_dictionary(array.as_any_dictionary())?,
            DataType::Int8 => widened!(Int8Type),
            DataType::Int16 => widened!(Int16Type),
            DataType::Int32 => widened!(Int32Type),
            DataType::Int64 => Cells::Int(array.as_primitive::<Int64Type>().clone()),
            DataType::UInt8 => widened!(UInt8Type),
            DataType::UInt16 => widened!(UInt16Type),
            DataType::UInt32 => widened!(UInt32Type),
            DataType::UInt64 => {
                let numbers = array.as_primitive::<UInt64Type>();
                match numbers.try_unary::<_, Int64Type, _>(i64::try_from) {
                    Ok(all) => Cells::Int(all),
                    // A name need not be a number that fits.
                    Err(_) => Cells::Text(numbers.iter().map(|n| n.map(|n| n.to_string())).collect()),
                }
            }
            DataType::Float16 => Cells::Float(array.as_primitive::<Float16Type>().unary(|x| x.to_f64())),
            DataType::Float32 => Cells::Float(array.as_primitive::<Float32Type>().unary(f64::from)),
            DataType::Float64 => Cells::Float(array.as_primitive::<Float64Type>().clone()),
            DataType::Boolean => Cells::Bool(array.as_boolean().clone()),
            // Times are seconds since 1970, as dates in text are.
            DataType::Date32 => seconds!(Date32Type, 1.0 / DAY),
            DataType::Date64 => seconds!(Date64Type, 1e3),
            DataType::Timestamp(TimeUnit::Second, _) => seconds!(TimestampSecondType, 1.0),
            DataType::Timestamp(TimeUnit::Millisecond, _) => seconds!(TimestampMillisecondType, 1e3),
            DataType::Timestamp(TimeUnit::Microsecond, _) => seconds!(TimestampMicrosecondType, 1e6),
            DataType::Timestamp(TimeUnit::Nanosecond, _) => seconds!(TimestampNanosecondType, 1e9),
            DataType::Time32(TimeUnit::Second) => seconds!(Time32SecondType, 1.0),
            DataType::Time32(_) => seconds!(Time32MillisecondType, 1e3),
            DataType::Time64(TimeUnit::Microsecond) => seconds!(Time64MicrosecondType, 1e6),
            DataType::Time64(_) => seconds!(Time64NanosecondType, 1e9),
            DataType::Duration(TimeUnit::Second) => seconds!(DurationSecondType, 1.0),
            DataType::Duration(TimeUnit::Millisecond) => seconds!(DurationMillisecondType, 1e3),
            DataType::Duration(TimeUnit::Microsecond) => seconds!(DurationMicrosecondType, 1e6),
            DataType::Duration(TimeUnit::Nanosecond) => seconds!(DurationNanosecondType, 1e9),
            DataType::Decimal128(_, scale) => {
                let unit = 10f64.powi(i32::from(*scale));
                Cells::Float(array.as_primitive::<Decimal128Type>().unary(|n| n as f64 / unit))
            }
            // Strings of writers that do not say so.
            DataType::Binary => Cells::Text(texts(array.as_binary::<i32>().iter())?),
            DataType::LargeBinary => Cells::Text(texts(array.as_binary::<i64>().iter())?),
            DataType::List(_) => joined(array.as_list::<i32>().iter())?,
            DataType::LargeList(_) => joined(array.as_list::<i64>().iter())?,
            DataType::Null => Cells::Nothing,
            _ => return None,
        })
    }

    fn of_dictionary(array: &dyn AnyDictionaryArray) -> Option<Cells> {
        if array.values().is_empty() {
            return Some(Cells::Nothing);
        }
        let keys = array.normalized_keys().into_iter().map(|key| key as i32).collect::<Vec<_>>();
        let keys = Int32Array::new(keys.into(), array.nulls().cloned());
        Some(match strings(array.values()) {
            Some(names) => Cells::Names(keys, names),
            None => Cells::Keyed(keys, Box::new(Cells::cast(array.values())?)),
        })
    }

    #[inline(always)]
    pub fn cell(&self, row: usize) -> Cell<'_> {
        match self {
            Cells::Text(array) if array.is_valid(row) => Cell::Text(array.value(row).as_bytes()),
            Cells::Names(keys, names) if keys.is_valid(row) => match keys.value(row) as usize {
                name if names.is_valid(name) => Cell::Text(names.value(name).as_bytes()),
                _ => Cell::Empty,
            },
            Cells::Keyed(keys, values) if keys.is_valid(row) => values.cell(keys.value(row) as usize),
            Cells::Int(array) if array.is_valid(row) => Cell::Int(array.value(row)),
            Cells::Float(array) if array.is_valid(row) => Cell::Float(array.value(row)),
            Cells::Bool(array) if array.is_valid(row) => Cell::Bool(array.value(row)),
            Cells::List(array) if array.is_valid(row) => Cell::List(array.value(row).as_bytes()),
            _ => Cell::Empty,
        }
    }
}

/// Lists of names and integers; `None` if an element is neither.
fn joined(lists: impl Iterator<Item = Option<ArrayRef>>) -> Option<Cells> {
    let join = |list: ArrayRef| {
        let (elements, mut names) = (Cells::cast(&list)?, String::new());
        for i in 0..list.len() {
            if i > 0 {
                names.push(SEPARATOR);
            }
            elements.cell(i).push_name(&mut names).ok()?;
        }
        Some(names)
    };
    let lists = lists.map(|list| list.map_or(Some(None), |list| join(list).map(Some)));
    lists.collect::<Option<Vec<Option<String>>>>().map(|lists| Cells::List(lists.into()))
}

/// Whether a column of that type can be read.
pub(super) fn is_readable(of: &DataType) -> bool {
    match of {
        DataType::Dictionary(_, values) => is_readable(values),
        DataType::List(of) | DataType::LargeList(of) => !of.data_type().is_floating() && is_readable(of.data_type()),
        _ => Cells::cast(&arrow_array::new_empty_array(of)).is_some(),
    }
}

/// Bytes as strings; `None` if they are not in UTF-8.
fn texts<'a>(bytes: impl Iterator<Item = Option<&'a [u8]>>) -> Option<StringArray> {
    let text = |bytes: &'a [u8]| std::str::from_utf8(bytes).ok().map(Some);
    let texts = bytes.map(|bytes| bytes.map_or(Some(None), text));
    texts.collect::<Option<Vec<Option<&str>>>>().map(StringArray::from)
}

/// Strings of any layout; `None` if the array has none.
fn strings(array: &ArrayRef) -> Option<StringArray> {
    match array.data_type() {
        DataType::Utf8 => Some(array.as_string::<i32>().clone()),
        DataType::LargeUtf8 => Some(array.as_string::<i64>().iter().collect()),
        DataType::Utf8View => Some(array.as_string_view().iter().collect()),
        _ => None,
    }
}
