//! Tables in Parquet.

use std::cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;

use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReader};

use super::batches::{Cells, is_readable};
use super::cell::Cell;
use super::footer::check_footer;
use super::pages::{self, Source, most_unpacked};
use super::table::{Advance, Location, Table, check_columns};
use super::watched::{Stop, Watched};
use crate::error::{Error, Result};

/// A Parquet file, read batch by batch.
pub(super) struct Parquet {
    name: String,
    file: Watched,
    metadata: ArrowReaderMetadata,
    columns: Vec<String>,
    batches: Option<(Arc<Source>, ParquetRecordBatchReader)>,
    /// For each column, its index among those that are read.
    slots: Vec<Option<usize>>,
    cells: Vec<Cells>,
    /// Rows in this batch, the current one, and rows in the batches before.
    len: usize,
    row: usize,
    before: u64,
}

const BATCH: usize = 1 << 12; // rows; a batch of the columns that are read fits the cache
const ROW: u64 = 8; // bytes that a row takes at least, unpacked: the keys of an action and an observation

impl Parquet {
    /// Reads the schema.
    pub fn open(name: String, file: Watched) -> Result<Parquet> {
        guard(&name, || check_footer(file.file(), file.len()))?;
        let metadata = guard(&name, || ArrowReaderMetadata::load(file.file(), Default::default()))?;
        if !has_sound_offsets(&metadata) {
            return Err(broken(&name, &"a column begins or ends before the file"));
        }
        let columns: Vec<_> = metadata.schema().fields().iter().map(|field| field.name().clone()).collect();
        check_columns(&columns, 0, &name, None)?;
        check_unpacked(&metadata).map_err(|stop| stop.of(name.clone()))?;
        let slots = vec![None; columns.len()];
        Ok(Parquet { name, file, metadata, columns, batches: None, slots, cells: Vec::new(), len: 0, row: 0, before: 0 })
    }

    /// Takes the columns of the next batch, if there is one.
    fn next_batch(&mut self) -> Result<bool> {
        self.before += self.len as u64;
        (self.len, self.row) = (0, 0);
        let Some((source, batches)) = &mut self.batches else { return Ok(false) };
        let batch = guard(&self.name, || batches.next().transpose());
        // Of a file that changed it says more than what came of that.
        self.file.check().map_err(|error| failed(&self.name, error))?;
        if let Some(stop) = source.refused() {
            return Err(stop.of(self.name.clone()));
        }
        let Some(batch) = batch? else { return Ok(false) };
        self.len = batch.num_rows();
        self.check_rows().map_err(|stop| stop.of(self.name.clone()))?;
        self.cells.clear();
        let schema = batch.schema();
        let cells = schema.fields().iter().zip(batch.columns()).map(|(field, array)| Cells::of(field.name(), array, &self.name));
        self.cells = guarded(|| cells.collect::<Result<_>>()).unwrap_or_else(|| Err(broken(&self.name, &CONTRADICTS)))?;
        Ok(true)
    }

    /// Refuses more rows than the size of the file explains: a column that repeats a value takes no
    /// bytes, but each of its steps takes memory.
    fn check_rows(&self) -> Result<(), Stop> {
        let (packed, rows) = (self.file.len(), self.before + self.len as u64);
        let to = most_unpacked(packed);
        if rows.saturating_mul(ROW) > to { Err(Stop::Unpacks { packed, to }) } else { Ok(()) }
    }
}

impl Table for Parquet {
    fn columns(&self) -> &[String] {
        &self.columns
    }

    fn want(&mut self, columns: &[usize]) -> Result<()> {
        let mut wanted = columns.to_vec();
        wanted.sort_unstable();
        for (slot, &column) in wanted.iter().enumerate() {
            self.slots[column] = Some(slot);
        }
        let file = self.file.file().try_clone().map_err(Error::io("read", &self.name))?;
        let source = Arc::new(Source::new(file, self.file.len(), wanted.len()));
        let batches = guard(&self.name, || pages::batches(source.clone(), &self.metadata, &wanted, BATCH))?;
        self.batches = Some((source, batches));
        Ok(())
    }

    #[inline]
    fn advance(&mut self) -> Result<Advance> {
        self.row += 1;
        while self.row >= self.len {
            if !self.next_batch()? {
                return Ok(Advance::End);
            }
        }
        Ok(Advance::Row)
    }

    #[inline(always)]
    fn cell(&self, column: usize) -> Cell<'_> {
        match self.slots[column] {
            Some(slot) => self.cells[slot].cell(self.row),
            None => Cell::Absent,
        }
    }

    fn location(&self) -> Location {
        Location::Row(self.before + self.row as u64 + 1)
    }

    fn can_read(&self, column: usize) -> bool {
        is_readable(self.metadata.schema().field(column).data_type())
    }

    fn is_typed(&self) -> bool {
        true
    }
}

thread_local! {
    /// How many decoders of foreign files this thread is in.
    static DECODING: cell::Cell<u32> = const { cell::Cell::new(0) };
}

/// Whether this thread is decoding a file of another format, where a panic means that the file is
/// damaged and is reported as an error. A panic hook should then say nothing.
///
/// ```
/// let say = std::panic::take_hook();
/// std::panic::set_hook(Box::new(move |panic| {
///     if !foretell::log::is_decoding() {
///         say(panic);
///     }
/// }));
/// ```
pub fn is_decoding() -> bool {
    DECODING.get() > 0
}

/// What a decoder returns; `None` if it panics. The parquet crate has assertions that a broken file
/// can trip; such a file is an error like any other.
fn guarded<R>(decode: impl FnOnce() -> R) -> Option<R> {
    DECODING.set(DECODING.get() + 1);
    let decoded = panic::catch_unwind(AssertUnwindSafe(decode));
    DECODING.set(DECODING.get() - 1);
    decoded.ok()
}

fn guard<R, E: std::fmt::Display>(name: &str, read: impl FnOnce() -> Result<R, E>) -> Result<R> {
    match guarded(read) {
        Some(result) => result.map_err(|error| broken(name, &error)),
        None => Err(broken(name, &CONTRADICTS)),
    }
}

const CONTRADICTS: &str = "it contradicts itself";

/// The error of a read that failed.
fn failed(name: &str, error: std::io::Error) -> Error {
    match Stop::within(&error) {
        Some(stop) => stop.of(name.to_string()),
        None => Error::io("read", name)(error),
    }
}

/// Refuses columns that unpack to far more than they are: they would be held in memory.
fn check_unpacked(metadata: &ArrowReaderMetadata) -> Result<(), Stop> {
    let groups = metadata.metadata().row_groups().iter().flat_map(|group| group.columns());
    for column in groups {
        let (packed, unpacked) = (column.compressed_size() as u64, column.uncompressed_size().max(0) as u64);
        let to = most_unpacked(packed);
        if unpacked > to {
            return Err(Stop::Unpacks { packed, to });
        }
    }
    Ok(())
}

/// Checked here, because the parquet crate asserts it.
fn has_sound_offsets(metadata: &ArrowReaderMetadata) -> bool {
    let columns = metadata.metadata().row_groups().iter().flat_map(|group| group.columns());
    columns.into_iter().all(|column| {
        column.compressed_size() >= 0 && column.data_page_offset() >= 0 && column.dictionary_page_offset().unwrap_or(0) >= 0
    })
}

fn broken(name: &str, error: &dyn std::fmt::Display) -> Error {
    Error::input(name, None, format!("the Parquet file is broken ({error})"), "copy or write the file again")
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::sync::Arc;

    use arrow_array::builder::{Float64Builder, ListBuilder};
    use arrow_array::types::{Int32Type, UInt8Type};
    use arrow_array::{
        Array, ArrayRef, BinaryArray, BooleanArray, Decimal128Array, DictionaryArray, DurationMillisecondArray, Float32Array,
        Float64Array, Int8Array, Int64Array, LargeStringArray, NullArray, RecordBatch, StringArray, StringViewArray, UInt8Array,
        UInt16Array, UInt64Array,
    };
    use parquet::arrow::ArrowWriter;

    use super::*;
    use crate::data::{Alphabet, Trajectory};
    use crate::log::{Logs, ReadOptions};

    /// The names of the observations of a table with that column.
    fn observations(column: ArrayRef) -> Result<Vec<String>> {
        let actions: ArrayRef = Arc::new(StringArray::from(vec!["N"; column.len()]));
        let ignored: ArrayRef = Arc::new(NullArray::new(column.len()));
        let columns = [("action", actions, false), ("x", ignored, true), ("observation", column, true)];
        let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("walks.parquet");
        let mut writer = ArrowWriter::try_new(File::create(&path).unwrap(), batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let mut reader = Logs::files([path], ReadOptions::default()).open(Alphabet::default())?;
        let trajectories: Vec<Trajectory> = reader.by_ref().collect::<Result<_>>()?;
        let steps = trajectories.iter().flat_map(|z| &z.steps);
        Ok(steps.map(|step| reader.alphabet().symbol(step.observation).name.clone()).collect())
    }

    #[test]
    fn every_type_of_name_is_read() {
        let dictionary: DictionaryArray<Int32Type> = ["b", "a", "b"].into_iter().collect();
        let keyed = DictionaryArray::<UInt8Type>::new(UInt8Array::from(vec![1, 0, 1]), Arc::new(Int64Array::from(vec![7, 9])));
        let decimals = Decimal128Array::from(vec![150, 300, 0]).with_precision_and_scale(9, 2).unwrap();
        let whole = Decimal128Array::from(vec![100, 300, 0]).with_precision_and_scale(9, 2).unwrap();
        assert!(observations(Arc::new(decimals)).unwrap_err().to_string().contains("1.5 is not a whole number"));
        let columns: [(ArrayRef, [&str; 3]); 14] = [
            (Arc::new(whole), ["1", "3", "0"]),
            (Arc::new(BinaryArray::from_vec(vec![b"b", b"a", b"b"])), ["b", "a", "b"]),
            (Arc::new(DurationMillisecondArray::from(vec![1000, 3000, 0])), ["1", "3", "0"]),
            (Arc::new(StringArray::from(vec!["b", "a", "b"])), ["b", "a", "b"]),
            (Arc::new(LargeStringArray::from(vec!["b", "a", "b"])), ["b", "a", "b"]),
            (Arc::new(StringViewArray::from(vec!["b", "a", "b"])), ["b", "a", "b"]),
            (Arc::new(dictionary), ["b", "a", "b"]),
            (Arc::new(keyed), ["9", "7", "9"]),
            (Arc::new(UInt16Array::from(vec![1, 0, 3])), ["1", "0", "3"]),
            (Arc::new(Int8Array::from(vec![-1, 0, 3])), ["-1", "0", "3"]),
            (Arc::new(Float32Array::from(vec![-1.0, -0.0, 3.0])), ["-1", "0", "3"]),
            (Arc::new(UInt64Array::from(vec![0, 1, 2])), ["0", "1", "2"]),
            (Arc::new(UInt64Array::from(vec![0, 1, u64::MAX])), ["0", "1", "18446744073709551615"]),
            (Arc::new(BooleanArray::from(vec![true, false, true])), ["true", "false", "true"]),
        ];
        for (column, names) in columns {
            assert_eq!(observations(column).unwrap(), names);
        }
    }

    #[test]
    fn a_panic_of_the_parquet_crate_is_an_error() {
        let message = guard("walks.parquet", || -> Result<(), String> { panic!("as on a file that contradicts itself") });
        assert!(message.unwrap_err().to_string().starts_with("walks.parquet: the Parquet file is broken"));
    }

    #[test]
    fn a_column_that_cannot_be_a_name_is_an_error() {
        let mut list = ListBuilder::new(Float64Builder::new());
        list.append_value([Some(1.5), Some(2.0)]);
        let columns: [(ArrayRef, &str); 2] = [
            (Arc::new(Float64Array::from(vec![1.0, 0.5])), "row 2: observation 0.5 is not a whole number"),
            (Arc::new(list.finish()), "has the type"),
        ];
        for (column, problem) in columns {
            let message = observations(column).unwrap_err().to_string();
            assert!(message.contains(problem), "{message}");
        }
    }
}
