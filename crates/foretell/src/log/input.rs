//! Opening a log: its format and compression by the file name, or else by the first bytes.

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;

use super::watched::{Stop, Versions, Watched};
use crate::error::{Error, Result};
use crate::limits::{RATIO, UNPACKED};

/// The format of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Comma-separated values with a header.
    Csv,
    /// One JSON object per line.
    JsonLines,
    /// Parquet; needs the feature `parquet`.
    Parquet,
}

impl Format {
    /// The format by the extension of a file, which may be followed by `.gz`; `None` if it is not
    /// one of a log.
    pub fn of_name(path: impl AsRef<Path>) -> Option<Format> {
        Kind::of(path.as_ref()).format
    }
}

/// Format and compression, by the name of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    /// `None` if the extension is unknown.
    pub format: Option<Format>,
    pub gzip: bool,
}

impl Kind {
    /// By the extension.
    pub fn of(path: &Path) -> Kind {
        let lower = |extension: &OsStr| extension.to_string_lossy().to_lowercase();
        match path.extension().map(lower).as_deref() {
            Some("csv") => Kind { format: Some(Format::Csv), gzip: false },
            Some("jsonl" | "ndjson") => Kind { format: Some(Format::JsonLines), gzip: false },
            Some("parquet") => Kind { format: Some(Format::Parquet), gzip: false },
            Some("gz") => Kind { gzip: true, ..Kind::of(&path.with_extension("")) },
            _ => Kind { format: None, gzip: false },
        }
    }
}

/// An opened log.
pub(super) enum Opened {
    Csv(Input),
    JsonLines(Input),
    #[cfg_attr(not(feature = "parquet"), expect(dead_code))]
    Parquet(Watched),
}

/// Whether a file begins like safetensors: the length of a header, then the header in JSON.
fn is_safetensors(begin: &[u8]) -> bool {
    matches!(begin.first_chunk(), Some(length) if u64::from_le_bytes(*length) < 1 << 40) && begin.get(8..10) == Some(b"{\"")
}

/// What files that are no logs begin with, what they are, and what to do about it.
const FOREIGN: [(&[u8], &str, &str); 15] = [
    (b"PK\x03\x04", "it is a spreadsheet such as .xlsx, or a zip archive", "save the sheet as CSV, or unpack the archive"),
    (b"\xd0\xcf\x11\xe0", "it is a spreadsheet such as .xls", "save the sheet as CSV"),
    (b"\xff\xfe", "it is in UTF-16, as Excel writes Unicode text", "save it as CSV with UTF-8 encoding"),
    (b"\xfe\xff", "it is in UTF-16", "save it with UTF-8 encoding"),
    (b"BZh", "it is compressed by bzip2", "unpack it, or compress it by gzip"),
    (b"\xfd7zXZ", "it is compressed by xz", "unpack it, or compress it by gzip"),
    (b"\x28\xb5\x2f\xfd", "it is compressed by zstd", "unpack it, or compress it by gzip"),
    (b"ARROW1", "it is a table of Arrow or Feather", "save it as Parquet"),
    (b"FEA1", "it is a table of Feather", "save it as Parquet"),
    (b"\x89HDF", "it is an HDF5 file", "save its table as Parquet or CSV"),
    (b"\x93NUMPY", "it is an array of NumPy", "save it as CSV with a header, or read it in Python"),
    (b"SQLite format 3", "it is a database of SQLite", "save its table as CSV"),
    (b"RDX", "it is a data file of R", "save its table with write.csv"),
    (b"X\n\0\0\0", "it is a data file of R", "save its table with write.csv"),
    (b"$FL", "it is a data file of SPSS", "save its table as CSV"),
];

/// A problem and a remedy if the file is of another program.
fn foreign(begin: &[u8]) -> Option<(&'static str, &'static str)> {
    let text = begin.trim_ascii_start();
    let starts = |with: &str| text.get(..with.len()).is_some_and(|head| head.eq_ignore_ascii_case(with.as_bytes()));
    if starts("<!doctype html") || starts("<html") {
        return Some(("it is a web page", "download the table itself"));
    }
    if matches!(begin, [0x80, 2..=5, ..]) {
        return Some(("it is a pickle of Python", "save its table as Parquet or CSV"));
    }
    if begin.contains(&b'\r') && begin.len() < BUFFER && !begin.contains(&b'\n') {
        return Some(("its lines end with \\r alone", "save it with the line ends of Unix or Windows"));
    }
    FOREIGN.iter().find(|(magic, ..)| begin.starts_with(magic)).map(|(_, problem, remedy)| (*problem, *remedy))
}

/// Opens a log.
pub(super) fn open(path: &Path, versions: &Versions) -> Result<Opened> {
    let file = versions.open(path)?;
    let packed = file.len();
    let mut kind = Kind::of(path);
    if kind == (Kind { format: Some(Format::Parquet), gzip: false }) {
        return Ok(Opened::Parquet(file));
    }
    let mut input = Input { path: path.to_path_buf(), gzip: false, bytes: Box::new(BufReader::with_capacity(BUFFER, file)) };
    let begin = input.peek()?;
    if is_safetensors(begin) {
        return Err(Error::input(input.name(), None, "it is a model or a policy, not a log", "give the logs in its place"));
    }
    if kind.format.is_none() && !kind.gzip && begin.starts_with(b"PAR1") {
        return versions.open(path).map(Opened::Parquet);
    }
    kind.gzip |= kind.format.is_none() && begin.starts_with(&[0x1f, 0x8b]);
    if kind.gzip {
        let unpacked = Unpacked { decoder: MultiGzDecoder::new(input.bytes), packed, bytes: 0 };
        let bytes = BufReader::with_capacity(BUFFER, unpacked);
        input = Input { bytes: Box::new(bytes), gzip: true, ..input };
    }
    let begin = input.peek()?;
    if begin.trim_ascii().is_empty() {
        return Err(Error::input(input.name(), None, "the file is empty", "leave it out, or log at least one step"));
    }
    if let Some((problem, remedy)) = foreign(begin) {
        return Err(Error::input(input.name(), None, problem, remedy));
    }
    if begin.starts_with(BOM) {
        input.bytes.consume(BOM.len());
    }
    match kind.format.map_or_else(|| input.sniff(), Ok)? {
        Format::Csv => Ok(Opened::Csv(input)),
        Format::JsonLines => Ok(Opened::JsonLines(input)),
        Format::Parquet => Err(Error::input(
            input.name(),
            None,
            "Parquet inside gzip cannot be read",
            "unpack it; Parquet is already compressed",
        )),
    }
}

const BUFFER: usize = 1 << 18; // large reads are few system calls; more than 256 KiB gains nothing
const BOM: &[u8] = b"\xEF\xBB\xBF"; // spreadsheets write it before UTF-8

/// The content of a compressed file, up to the most that it may unpack to.
struct Unpacked<D> {
    decoder: D,
    /// Bytes of the file, and those unpacked so far.
    packed: u64,
    bytes: u64,
}

impl<D: Read> Read for Unpacked<D> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.decoder.read(buffer)?;
        self.bytes += n as u64;
        let most = UNPACKED.max(self.packed.saturating_mul(RATIO));
        if self.bytes > most { Err(io::Error::other(Stop::Unpacks { packed: self.packed, to: most })) } else { Ok(n) }
    }
}

/// The text of a file, unpacked.
pub(super) struct Input {
    path: PathBuf,
    gzip: bool,
    pub bytes: Box<dyn BufRead + Send>,
}

impl Input {
    /// The file as the user named it.
    pub fn name(&self) -> String {
        self.path.display().to_string()
    }

    #[cfg(test)]
    pub fn of_bytes(bytes: &[u8]) -> Input {
        Input { path: "bytes".into(), gzip: false, bytes: Box::new(io::Cursor::new(bytes.to_vec())) }
    }

    /// The error behind an [`io::Error`] of `bytes`.
    pub fn failed(&self, source: io::Error) -> Error {
        if let Some(stop) = Stop::within(&source) {
            return stop.of(self.name());
        }
        match self.gzip {
            true => {
                Error::input(self.name(), None, format!("the gzip data is broken ({source})"), "copy or compress the file again")
            }
            false => Error::io("read", &self.path)(source),
        }
    }

    /// The first bytes, without consuming them.
    pub fn peek(&mut self) -> Result<&[u8]> {
        // two calls, because the borrow of the first would outlive its error
        if let Err(source) = self.bytes.fill_buf() {
            return Err(self.failed(source));
        }
        self.bytes.fill_buf().map_err(Error::io("read", &self.path))
    }

    fn sniff(&mut self) -> Result<Format> {
        Ok(match self.peek()?.trim_ascii_start() {
            [b'{' | b'[', ..] => Format::JsonLines,
            [b'P', b'A', b'R', b'1', ..] => Format::Parquet,
            _ => Format::Csv,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_other_programs_are_named() {
        let problem = |begin: &[u8]| foreign(begin).map(|(problem, _)| problem);
        assert_eq!(problem(b"PK\x03\x04\x14\0"), Some("it is a spreadsheet such as .xlsx, or a zip archive"));
        assert_eq!(problem(b"\n<!DOCTYPE HTML><html>"), Some("it is a web page"));
        assert_eq!(problem(b"\x80\x04\x95"), Some("it is a pickle of Python"));
        assert_eq!(problem(b"a,b\r1,2\r"), Some("its lines end with \\r alone"));
        for log in [&b"a,b\r\n1,2\r\n"[..], b"a,b", b"{\"a\": 1}\n", b"PAR1", b"\xEF\xBB\xBFa,b\n"] {
            assert_eq!(problem(log), None);
        }
    }

    #[test]
    fn the_format_is_found_by_the_file_name() {
        let kind = |name: &str| Kind::of(Path::new(name));
        assert_eq!(kind("a.csv"), Kind { format: Some(Format::Csv), gzip: false });
        assert_eq!(kind("a.CSV.GZ"), Kind { format: Some(Format::Csv), gzip: true });
        assert_eq!(kind("a.ndjson.gz"), Kind { format: Some(Format::JsonLines), gzip: true });
        assert_eq!(kind("a.parquet"), Kind { format: Some(Format::Parquet), gzip: false });
        assert_eq!(kind("a.gz"), Kind { format: None, gzip: true });
        assert_eq!(kind("a.txt"), Kind { format: None, gzip: false });
        assert_eq!(kind(".gz"), Kind { format: None, gzip: false });
        assert_eq!((Format::of_name("a.csv.gz"), Format::of_name("a.txt")), (Some(Format::Csv), None));
    }
}
