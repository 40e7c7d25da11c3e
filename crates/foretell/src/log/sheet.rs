//! Tables of any columns, as results are written: CSV, JSON Lines or Parquet by the extension.

use std::io::{self, Write};
use std::path::Path;

use super::formula::guarded;
use super::input::Format;
use super::sheet_types::{CellValue, ColumnKind};
#[cfg(feature = "parquet")]
use super::write::AnyParquet;
use super::write::{Output, create, csv_error};
use crate::error::{Error, Result};

/// Writes a table row by row. The file appears in [`Sheet::finish`]. In CSV, a text that a spreadsheet
/// would run as a formula, such as `=1+1`, has an apostrophe before it, which reading takes away.
///
/// ```
/// use foretell::log::{CellValue, ColumnKind, Sheet};
///
/// let folder = std::env::temp_dir();
/// let path = folder.join("foretell-sheet.csv");
/// let mut sheet = Sheet::create(&path, vec![("name".into(), ColumnKind::Text), ("p".into(), ColumnKind::Number)])?;
/// sheet.row(&[CellValue::Text("a,b"), CellValue::Number(0.5)])?;
/// sheet.finish()?;
/// assert_eq!(std::fs::read_to_string(&path).unwrap(), "name,p\n\"a,b\",0.5\n");
/// # std::fs::remove_file(path).unwrap();
/// # Ok::<(), foretell::Error>(())
/// ```
pub struct Sheet {
    path: std::path::PathBuf,
    columns: Vec<(String, ColumnKind)>,
    rows: Rows,
}

enum Rows {
    Csv(Box<csv::Writer<Output>>),
    JsonLines(Output),
    #[cfg(feature = "parquet")]
    Parquet(Box<AnyParquet>),
}

impl Sheet {
    /// Starts a file with these columns.
    pub fn create(path: impl AsRef<Path>, columns: Vec<(String, ColumnKind)>) -> Result<Sheet> {
        let path = path.as_ref();
        let (format, output) = create(path)?;
        let rows = match format {
            Format::Csv => {
                let mut rows = csv::Writer::from_writer(output);
                let header = rows.write_record(columns.iter().map(|(name, _)| guarded(name).into_owned()));
                header.map_err(csv_error).map_err(Error::io("write", path))?;
                Rows::Csv(Box::new(rows))
            }
            Format::JsonLines => Rows::JsonLines(output),
            #[cfg(feature = "parquet")]
            Format::Parquet => Rows::Parquet(Box::new(AnyParquet::begin(output, &columns).map_err(Error::io("write", path))?)),
            #[cfg(not(feature = "parquet"))]
            Format::Parquet => return Err(Error::data("this build of foretell cannot write Parquet", "write CSV")),
        };
        Ok(Sheet { path: path.to_path_buf(), columns, rows })
    }

    /// Writes a row: a cell for each column, of its kind or missing.
    pub fn row(&mut self, cells: &[CellValue<'_>]) -> Result<()> {
        assert_eq!(cells.len(), self.columns.len(), "a cell for each column");
        let written = match &mut self.rows {
            Rows::Csv(rows) => write_csv(rows, cells),
            Rows::JsonLines(output) => write_json(output, &self.columns, cells),
            #[cfg(feature = "parquet")]
            Rows::Parquet(rows) => rows.row(cells),
        };
        written.map_err(Error::io("write", &self.path))
    }

    /// Completes the table and moves the file to its path.
    pub fn finish(self) -> Result<()> {
        let output = match self.rows {
            Rows::Csv(rows) => rows.into_inner().map_err(|error| error.into_error()),
            Rows::JsonLines(output) => Ok(output),
            #[cfg(feature = "parquet")]
            Rows::Parquet(rows) => rows.finish(),
        };
        output.map_err(Error::io("write", &self.path))?.commit(&self.path)
    }
}

fn write_csv(rows: &mut csv::Writer<Output>, cells: &[CellValue<'_>]) -> io::Result<()> {
    let mut write = || {
        for cell in cells {
            match cell {
                CellValue::Missing => rows.write_field("")?,
                CellValue::Text(text) => rows.write_field(&*guarded(text))?,
                CellValue::Integer(n) => rows.write_field(n.to_string())?,
                CellValue::Number(x) => rows.write_field(format!("{x:?}"))?,
                CellValue::Flag(flag) => rows.write_field(if *flag { "true" } else { "false" })?,
            }
        }
        rows.write_record(None::<&[u8]>)
    };
    write().map_err(csv_error)
}

fn write_json(output: &mut Output, columns: &[(String, ColumnKind)], cells: &[CellValue<'_>]) -> io::Result<()> {
    let value = |cell: &CellValue<'_>| match cell {
        CellValue::Missing => serde_json::Value::Null,
        CellValue::Text(text) => (*text).into(),
        CellValue::Integer(n) => (*n).into(),
        CellValue::Number(x) => (*x).into(),
        CellValue::Flag(flag) => (*flag).into(),
    };
    output.write_all(b"{")?;
    for (i, ((name, _), cell)) in columns.iter().zip(cells).enumerate() {
        if i > 0 {
            output.write_all(b",")?;
        }
        serde_json::to_writer(&mut *output, name)?;
        output.write_all(b":")?;
        serde_json::to_writer(&mut *output, &value(cell))?;
    }
    output.write_all(b"}\n")
}
