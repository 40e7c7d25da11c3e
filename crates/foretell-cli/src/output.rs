//! Output files named on the command line.

use std::fs::File;
#[cfg(unix)]
use std::fs::{Metadata, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use foretell::store;
use foretell_plots::Figure;

use crate::interrupt;

/// The folder a file is in.
pub fn folder(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Fails before any work if an output cannot be written, or is one of the files that are read.
pub fn check<'p>(outputs: impl IntoIterator<Item = &'p PathBuf>, inputs: &[PathBuf]) -> anyhow::Result<()> {
    let mut targets: Vec<PathBuf> = Vec::new();
    for path in outputs {
        let target = writable(path)?;
        if targets.contains(&target) {
            return Err(anyhow!("{} is named twice as an output; give each output a file of its own", path.display()));
        }
        if inputs.iter().any(|input| input.canonicalize().is_ok_and(|input| input == target)) {
            return Err(anyhow!("{} is read by this command and would be overwritten; name another output", path.display()));
        }
        targets.push(target);
    }
    Ok(())
}

/// The file behind the name of an output, if it can be written.
fn writable(path: &Path) -> anyhow::Result<PathBuf> {
    if path == Path::new("-") {
        return Err(anyhow!("cannot write to standard output: the output is binary; name a file"));
    }
    if !folder(path).is_dir() {
        let folder = folder(path).display();
        return Err(anyhow!("cannot write {}: there is no folder {folder}; create it first", path.display()));
    }
    let target = store::file_behind(path).map_err(|e| anyhow!("cannot write {}: {}; name a file", path.display(), e))?;
    // An unnamed file leaves nothing behind.
    tempfile::tempfile_in(folder(&target)).map_err(|e| cannot_write(path, &e))?;
    interrupt::clean_up_in(folder(&target));
    Ok(target.canonicalize().unwrap_or(target))
}

/// Keeps other processes from changing a file until the lock is dropped; of two that change it at once
/// only one does. There is no lock on a file that does not exist, nor where the system has none.
#[cfg(unix)]
pub fn lock(path: &Path) -> anyhow::Result<Option<File>> {
    use std::os::unix::fs::MetadataExt;
    loop {
        let Ok(file) = File::open(path) else { return Ok(None) };
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            return Err(anyhow!("another process is changing {}; run this again when it has ended", path.display()));
        }
        // Between the two, another process may have put its result in the place of this file.
        let number = |metadata: Metadata| (metadata.dev(), metadata.ino());
        if file.metadata().ok().map(number) == path.metadata().ok().map(number) {
            return Ok(Some(file));
        }
    }
}

/// Locks would keep this process from reading the file too.
#[cfg(not(unix))]
pub fn lock(_: &Path) -> anyhow::Result<Option<File>> {
    Ok(None)
}

/// Draws figures side by side into a file, .svg or .png.
pub fn plot(figures: &[Figure], path: &Path) -> anyhow::Result<()> {
    Ok(store::write(path, &foretell_plots::drawn(figures, path)?)?)
}

/// The error of the system, without the name of the temporary file.
pub fn cannot_write(path: &Path, error: &io::Error) -> anyhow::Error {
    anyhow!("cannot write {}: {}", path.display(), error.kind())
}
