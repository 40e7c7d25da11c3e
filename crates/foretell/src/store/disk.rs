//! What the operating system does where a file is written. In tests it fails where `faults` says so.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::temporary;

/// A file that is written.
pub(super) struct Disk(File);

impl Disk {
    /// A new temporary file in the folder of `target`, and its name.
    pub(super) fn create_beside(target: &Path) -> io::Result<(PathBuf, Disk)> {
        #[cfg(test)]
        faults::before(faults::Step::Create)?;
        let (path, file) = temporary::create_beside(target)?;
        Ok((path, Disk(file)))
    }

    /// Waits until everything is on the disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        #[cfg(test)]
        faults::before(faults::Step::Sync)?;
        self.0.sync_all()
    }
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        #[cfg(test)]
        let bytes = &bytes[..faults::before_write(bytes.len())?];
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Puts a file in the place of another.
pub(super) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    #[cfg(test)]
    faults::before(faults::Step::Rename)?;
    fs::rename(from, to)
}

/// Failures of the operating system, at will.
#[cfg(test)]
pub(crate) mod faults {
    use std::cell::Cell;
    use std::io::{self, ErrorKind};

    /// What can fail besides writing.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Step {
        Create,
        Sync,
        Rename,
    }

    /// What goes wrong.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Fault {
        /// A step other than writing.
        At(Step, ErrorKind),
        /// Writing, once so many bytes are written.
        AfterBytes(usize, ErrorKind),
        /// No error: at most so many bytes are written at once.
        Short(usize),
        /// No error: a signal interrupts every other write, and the others are short.
        Interrupted,
    }

    thread_local! {
        static FAULT: Cell<Option<Fault>> = const { Cell::new(None) };
        static WRITTEN: Cell<usize> = const { Cell::new(0) };
        static CALLS: Cell<usize> = const { Cell::new(0) };
    }

    /// Runs what goes wrong on this thread.
    pub(crate) fn with<T>(fault: Fault, work: impl FnOnce() -> T) -> T {
        FAULT.set(Some(fault));
        WRITTEN.set(0);
        CALLS.set(0);
        let done = work();
        FAULT.set(None);
        done
    }

    pub(super) fn before(step: Step) -> io::Result<()> {
        match FAULT.get() {
            Some(Fault::At(at, kind)) if at == step => Err(kind.into()),
            _ => Ok(()),
        }
    }

    /// How many of these bytes are written.
    pub(super) fn before_write(length: usize) -> io::Result<usize> {
        CALLS.set(CALLS.get() + 1);
        let taken = match FAULT.get() {
            Some(Fault::AfterBytes(most, kind)) if WRITTEN.get() >= most => return Err(kind.into()),
            Some(Fault::AfterBytes(most, _)) => length.min(most - WRITTEN.get()),
            Some(Fault::Short(most)) => length.min(most),
            Some(Fault::Interrupted) if CALLS.get() % 2 == 1 => return Err(ErrorKind::Interrupted.into()),
            Some(Fault::Interrupted) => length.div_ceil(3),
            Some(Fault::At(..)) | None => length,
        };
        WRITTEN.set(WRITTEN.get() + taken);
        Ok(taken)
    }
}
