//! The pages of a Parquet file, as its decoder gets them: none that takes far more memory than it has
//! bytes.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReader, RowGroups};
use parquet::arrow::parquet_to_arrow_field_levels;
use parquet::column::page::{Page, PageIterator, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::schema::types::ColumnDescPtr;

use super::page_header::PageHeader;
use super::page_values::{check_page, check_type};
use super::watched::Stop;
use crate::limits::{PAGE, RATIO, UNPACKED};

/// A reader of some columns of a file, so many rows at once.
pub(super) fn batches(
    source: Arc<Source>,
    of: &ArrowReaderMetadata,
    columns: &[usize],
    rows: usize,
) -> Result<ParquetRecordBatchReader> {
    let (metadata, schema) = (of.metadata().clone(), of.parquet_schema());
    let mask = ProjectionMask::roots(schema, columns.iter().copied());
    let mut wanted = (0..schema.num_columns()).filter(|&leaf| mask.leaf_included(leaf));
    wanted.try_for_each(|leaf| check_type(&schema.column(leaf)))?;
    let levels = parquet_to_arrow_field_levels(schema, mask, Some(of.schema().fields()))?;
    ParquetRecordBatchReader::try_new_with_row_groups(&levels, &Groups { source, metadata }, rows, None)
}

/// A file whose headers of pages are checked before the decoder reads them.
pub(super) struct Source {
    file: File,
    bytes: u64,
    limit: Limit,
}

/// What a page may unpack to.
#[derive(Clone)]
struct Limit {
    /// Bytes that it may always unpack to.
    bytes: u64,
    /// What there is to say of one that unpacks to more.
    refused: Arc<OnceLock<Stop>>,
}

impl Source {
    /// A file of so many bytes, of which as many columns are read at once: a page of each is in
    /// memory, and its dictionary.
    pub fn new(file: File, bytes: u64, columns: usize) -> Source {
        let share = most_unpacked(bytes) / (2 * columns.max(1) as u64);
        Source { file, bytes, limit: Limit { bytes: share.max(PAGE), refused: Arc::default() } }
    }

    /// Why it was not read on.
    pub fn refused(&self) -> Option<Stop> {
        self.limit.refused.get().copied()
    }
}

/// Bytes that a file of so many may unpack to.
pub(super) fn most_unpacked(packed: u64) -> u64 {
    UNPACKED.max(packed.saturating_mul(RATIO))
}

impl Limit {
    fn check(&self, header: PageHeader) -> io::Result<()> {
        let to = self.bytes.max(header.packed.saturating_mul(RATIO));
        if header.unpacked <= to {
            return Ok(());
        }
        Err(io::Error::other(*self.refused.get_or_init(|| Stop::Unpacks { packed: header.packed, to })))
    }
}

impl Length for Source {
    fn len(&self) -> u64 {
        self.bytes
    }
}

impl ChunkReader for Source {
    type T = Headers;

    fn get_read(&self, start: u64) -> Result<Headers> {
        Ok(Headers { input: self.file.get_read(start)?, unchecked: Some(self.limit.clone()) })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        match start.checked_add(length as u64) {
            Some(end) if end <= self.bytes => self.file.get_bytes(start, length),
            _ => Err(ParquetError::EOF(format!("a page of {length} bytes ends behind the file"))),
        }
    }
}

/// A file from the header of a page on, which is checked when the first byte of it is read. The
/// decoder opens files without reading them, where it knows the header.
pub(super) struct Headers {
    input: BufReader<File>,
    unchecked: Option<Limit>,
}

impl Read for Headers {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(limit) = self.unchecked.take() {
            let header = PageHeader::read(&mut self.input)?;
            limit.check(header)?;
            self.input.seek_relative(-(header.length as i64))?;
        }
        self.input.read(buffer)
    }
}

/// All row groups of a file.
struct Groups {
    source: Arc<Source>,
    metadata: Arc<ParquetMetaData>,
}

impl RowGroups for Groups {
    fn num_rows(&self) -> usize {
        self.row_groups().map(|group| group.num_rows().max(0) as usize).fold(0, usize::saturating_add)
    }

    fn column_chunks(&self, column: usize) -> Result<Box<dyn PageIterator>> {
        let (source, metadata) = (self.source.clone(), self.metadata.clone());
        Ok(Box::new(Chunks { groups: 0..metadata.num_row_groups(), source, metadata, column }))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(self.metadata.row_groups().iter())
    }

    fn metadata(&self) -> &ParquetMetaData {
        &self.metadata
    }
}

/// A column in all row groups.
struct Chunks {
    groups: Range<usize>,
    source: Arc<Source>,
    metadata: Arc<ParquetMetaData>,
    column: usize,
}

impl Iterator for Chunks {
    type Item = Result<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        let group = self.metadata.row_group(self.groups.next()?);
        let chunk = group.column(self.column);
        let pages = SerializedPageReader::new(self.source.clone(), chunk, group.num_rows() as usize, None);
        Some(pages.map(|pages| Box::new(Pages { pages, column: chunk.column_descr_ptr() }) as _))
    }
}

impl PageIterator for Chunks {}

/// The pages of a column in a row group, checked.
struct Pages {
    pages: SerializedPageReader<Source>,
    column: ColumnDescPtr,
}

impl Iterator for Pages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Result<Page>> {
        self.get_next_page().transpose()
    }
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        page.iter().try_for_each(|page| check_page(page, &self.column))?;
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.pages.at_record_boundary()
    }
}
