//! Writing rows as Parquet.

use std::io;
use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Float64Builder, Int64Builder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;

use super::super::sheet_types::{CellValue, ColumnKind};
use super::{COLUMNS, Output, Row};

const BATCH: usize = 1 << 15; // rows that are gathered before they are encoded
const ROW_GROUP: usize = 1 << 20; // rows that are held in memory, encoded, before they are written
/// Columns of numbers that rise by one or restart: their differences take a few bits each.
const COUNTS: [&str; 2] = ["episode_id", "step"];

/// Rows on their way into a Parquet file. Strings are encoded by a dictionary, which is the
/// default.
pub(super) struct ParquetRows {
    file: ArrowWriter<Output>,
    schema: Arc<Schema>,
    batch: Batch,
}

#[derive(Default)]
struct Batch {
    rows: usize,
    episode_id: Int64Builder,
    step: Int64Builder,
    action: StringBuilder,
    observation: StringBuilder,
    reward: Float64Builder,
    terminated: BooleanBuilder,
    truncated: BooleanBuilder,
    action_prob: Float64Builder,
    available: StringBuilder,
}

impl ParquetRows {
    pub fn begin(output: Output, columns: &[&str]) -> io::Result<ParquetRows> {
        let fields: Vec<_> = columns
            .iter()
            .map(|&name| Field::new(name, data_type(name), matches!(name, "reward" | "observation" | "available")))
            .collect();
        let schema = Arc::new(Schema::new(fields));
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_max_row_group_row_count(Some(ROW_GROUP))
            .set_statistics_enabled(EnabledStatistics::Chunk);
        let properties = COUNTS.map(ColumnPath::from).into_iter().fold(properties, |properties, column| {
            let properties = properties.set_column_dictionary_enabled(column.clone(), false);
            properties.set_column_encoding(column, Encoding::DELTA_BINARY_PACKED)
        });
        let file = ArrowWriter::try_new(output, schema.clone(), Some(properties.build()))?;
        Ok(ParquetRows { file, schema, batch: Batch::default() })
    }

    pub fn write(&mut self, row: Row<'_>) -> io::Result<()> {
        let batch = &mut self.batch;
        batch.episode_id.append_value(row.episode_id);
        batch.step.append_value(row.step);
        batch.action.append_value(row.action);
        batch.observation.append_option(row.observation);
        batch.reward.append_option(row.reward);
        batch.terminated.append_value(row.terminated);
        batch.truncated.append_value(row.truncated);
        batch.action_prob.append_option(row.action_prob);
        batch.available.append_option(row.available.filter(|list| !list.is_empty()));
        batch.rows += 1;
        if batch.rows == BATCH { self.flush() } else { Ok(()) }
    }

    pub fn finish(mut self) -> io::Result<Output> {
        self.flush()?;
        Ok(self.file.into_inner()?)
    }

    fn flush(&mut self) -> io::Result<()> {
        let columns = COLUMNS.iter().zip(self.batch.take());
        let columns = columns.filter(|(name, _)| self.schema.field_with_name(name).is_ok()).map(|(_, column)| column).collect();
        let batch = RecordBatch::try_new(self.schema.clone(), columns).map_err(io::Error::other)?;
        Ok(self.file.write(&batch)?)
    }
}

impl Batch {
    /// The columns, in the order of `COLUMNS`.
    fn take(&mut self) -> Vec<ArrayRef> {
        self.rows = 0;
        vec![
            Arc::new(self.episode_id.finish()),
            Arc::new(self.step.finish()),
            Arc::new(self.action.finish()),
            Arc::new(self.observation.finish()),
            Arc::new(self.reward.finish()),
            Arc::new(self.terminated.finish()),
            Arc::new(self.truncated.finish()),
            Arc::new(self.action_prob.finish()),
            Arc::new(self.available.finish()),
        ]
    }
}

fn data_type(column: &str) -> DataType {
    match column {
        "episode_id" | "step" => DataType::Int64,
        "action" | "observation" | "available" => DataType::Utf8,
        "terminated" | "truncated" => DataType::Boolean,
        _ => DataType::Float64,
    }
}

/// Rows of any columns on their way into a Parquet file.
pub(in crate::log) struct AnyParquet {
    file: ArrowWriter<Output>,
    schema: Arc<Schema>,
    columns: Vec<Builder>,
    rows: usize,
}

enum Builder {
    Text(StringBuilder),
    Integer(Int64Builder),
    Number(Float64Builder),
    Flag(BooleanBuilder),
}

impl AnyParquet {
    pub fn begin(output: Output, columns: &[(String, ColumnKind)]) -> io::Result<AnyParquet> {
        let kind = |kind: ColumnKind| match kind {
            ColumnKind::Text => (DataType::Utf8, Builder::Text(StringBuilder::new())),
            ColumnKind::Integer => (DataType::Int64, Builder::Integer(Int64Builder::new())),
            ColumnKind::Number => (DataType::Float64, Builder::Number(Float64Builder::new())),
            ColumnKind::Flag => (DataType::Boolean, Builder::Flag(BooleanBuilder::new())),
        };
        let (types, builders): (Vec<DataType>, Vec<Builder>) = columns.iter().map(|(_, of)| kind(*of)).unzip();
        let fields: Vec<Field> = columns.iter().zip(types).map(|((name, _), of)| Field::new(name, of, true)).collect();
        let schema = Arc::new(Schema::new(fields));
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let file = ArrowWriter::try_new(output, schema.clone(), Some(properties))?;
        Ok(AnyParquet { file, schema, columns: builders, rows: 0 })
    }

    pub fn row(&mut self, cells: &[CellValue<'_>]) -> io::Result<()> {
        for (builder, cell) in self.columns.iter_mut().zip(cells) {
            match (builder, cell) {
                (Builder::Text(builder), CellValue::Text(text)) => builder.append_value(text),
                (Builder::Integer(builder), CellValue::Integer(n)) => builder.append_value(*n),
                (Builder::Number(builder), CellValue::Number(x)) => builder.append_value(*x),
                (Builder::Flag(builder), CellValue::Flag(flag)) => builder.append_value(*flag),
                (Builder::Text(builder), _) => builder.append_null(),
                (Builder::Integer(builder), _) => builder.append_null(),
                (Builder::Number(builder), _) => builder.append_null(),
                (Builder::Flag(builder), _) => builder.append_null(),
            }
        }
        self.rows += 1;
        if self.rows == BATCH { self.flush() } else { Ok(()) }
    }

    pub fn finish(mut self) -> io::Result<Output> {
        self.flush()?;
        Ok(self.file.into_inner()?)
    }

    fn flush(&mut self) -> io::Result<()> {
        let finish = |builder: &mut Builder| -> ArrayRef {
            match builder {
                Builder::Text(builder) => Arc::new(builder.finish()),
                Builder::Integer(builder) => Arc::new(builder.finish()),
                Builder::Number(builder) => Arc::new(builder.finish()),
                Builder::Flag(builder) => Arc::new(builder.finish()),
            }
        };
        let columns = self.columns.iter_mut().map(finish).collect();
        self.rows = 0;
        let batch = RecordBatch::try_new(self.schema.clone(), columns).map_err(io::Error::other)?;
        Ok(self.file.write(&batch)?)
    }
}
