//! Files that must stay as they are from the first pass over them to the last.

use std::fmt;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use rustc_hash::FxHashMap;

use crate::error::{Error, Result};

/// A state of a file. Whoever writes to it changes its size or its time, and whoever replaces it
/// its number.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Version {
    bytes: u64,
    /// Not every system records it.
    changed: Option<SystemTime>,
    number: (u64, u64),
}

impl Version {
    fn of(metadata: &Metadata) -> Version {
        #[cfg(unix)]
        let number = (std::os::unix::fs::MetadataExt::dev(metadata), std::os::unix::fs::MetadataExt::ino(metadata));
        #[cfg(not(unix))]
        let number = (0, 0);
        Version { bytes: metadata.len(), changed: metadata.modified().ok(), number }
    }
}

/// The state in which each file of logs was opened first. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Versions(Arc<Mutex<FxHashMap<PathBuf, Version>>>);

impl Versions {
    /// Opens a file, unless it changed since it was opened first.
    pub fn open(&self, path: &Path) -> Result<Watched> {
        let failed = |error| Error::io("read", path)(error);
        let file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if !metadata.is_file() {
            let problem = if metadata.is_dir() { "it is a folder" } else { "it is not a file that can be read more than once" };
            return Err(Error::input(path.display().to_string(), None, problem, "give a file, or - for standard input"));
        }
        let now = Version::of(&metadata);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let first = known.entry(path.to_path_buf()).or_insert_with(|| now.clone()).clone();
        drop(known);
        let watched = Watched { file, first };
        watched.check_version(now).map_err(|stop| stop.of(path.display().to_string()))?;
        Ok(watched)
    }
}

/// A file of which only one state is read: what was read before it changed may be used, and after
/// that every read fails.
pub(super) struct Watched {
    file: File,
    first: Version,
}

impl Watched {
    /// For formats that read it in another order.
    #[cfg_attr(not(feature = "parquet"), expect(dead_code))]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Bytes of the file.
    pub fn len(&self) -> u64 {
        self.first.bytes
    }

    /// Fails if the file changed. What was read from it before this call is of its first state.
    pub fn check(&self) -> io::Result<()> {
        self.check_version(Version::of(&self.file.metadata()?)).map_err(io::Error::other)
    }

    fn check_version(&self, now: Version) -> Result<(), Stop> {
        if now == self.first { Ok(()) } else { Err(Stop::Changed { from: self.first.bytes, to: now.bytes }) }
    }
}

impl Read for Watched {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read(buffer)?;
        self.check()?;
        Ok(n)
    }
}

/// Why reading stops, where the system sees no error.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stop {
    /// The file had as many bytes, and has as many now.
    Changed { from: u64, to: u64 },
    /// So many bytes unpack to more than that.
    Unpacks { packed: u64, to: u64 },
}

impl Stop {
    /// The reason in an error of a reader.
    pub fn within(error: &io::Error) -> Option<Stop> {
        error.get_ref()?.downcast_ref::<Stop>().copied()
    }

    /// The error of a file.
    pub fn of(self, file: String) -> Error {
        let remedy = match self {
            Stop::Changed { .. } => "wait until nothing writes to it and read it again, or give a copy",
            Stop::Unpacks { .. } => "if it is no mistake, unpack it, and give the unpacked file",
        };
        Error::input(file, None, self.to_string(), remedy)
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stop::Changed { from, to } if from == to => f.write_str("it changed while it was read"),
            Stop::Changed { from, to } => write!(f, "it changed while it was read, from {from} bytes to {to}"),
            Stop::Unpacks { packed, to } => write!(f, "its {packed} bytes unpack to more than {to}"),
        }
    }
}

impl std::error::Error for Stop {}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use super::*;

    fn said(result: Result<Watched>) -> String {
        result.err().unwrap().to_string()
    }

    #[test]
    fn a_file_that_changed_is_not_read_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("walks.csv");
        fs::write(&path, "one\n").unwrap();
        let versions = Versions::default();
        let mut watched = versions.open(&path).unwrap();
        assert_eq!(watched.read(&mut [0; 2]).unwrap(), 2);
        File::options().append(true).open(&path).unwrap().write_all(b"two\n").unwrap();
        let stop = Stop::within(&watched.read(&mut [0; 2]).unwrap_err()).unwrap();
        assert!(matches!(stop, Stop::Changed { from: 4, to: 8 }), "{stop}");
        assert!(said(versions.clone().open(&path)).contains("changed while it was read, from 4 bytes to 8; wait"));
        assert!(Versions::default().open(&path).is_ok(), "whoever begins now reads what is there now");
    }

    #[test]
    fn a_file_that_was_replaced_is_another_one() {
        let folder = tempfile::tempdir().unwrap();
        let [path, other] = ["walks.csv", "other.csv"].map(|name| folder.path().join(name));
        fs::write(&path, "one\n").unwrap();
        let versions = Versions::default();
        let mut watched = versions.open(&path).unwrap();
        fs::write(&other, "two\n").unwrap();
        File::options().write(true).open(&other).unwrap().set_modified(fs::metadata(&path).unwrap().modified().unwrap()).unwrap();
        fs::rename(&other, &path).unwrap();
        assert_eq!(watched.read(&mut [0; 4]).unwrap(), 4, "the one that was opened is as it was");
        if cfg!(unix) {
            assert!(said(versions.open(&path)).contains("it changed while it was read; wait"));
        }
    }

    #[test]
    fn a_folder_is_no_log() {
        let folder = tempfile::tempdir().unwrap();
        assert!(said(Versions::default().open(folder.path())).contains("it is a folder"));
    }
}
