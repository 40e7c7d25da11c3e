//! Files to write, named on the command line.

use std::io;
use std::path::Path;

use anyhow::anyhow;

/// The folder a file is in.
pub fn folder(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Fails now, before any work, if the file could not be written later.
pub fn check(path: &Path) -> anyhow::Result<()> {
    if path == Path::new("-") {
        return Err(anyhow!("cannot write to standard output: this is no text; name a file"));
    }
    let folder = folder(path);
    if !folder.is_dir() {
        return Err(anyhow!("cannot write {}: there is no folder {}; create it first", path.display(), folder.display()));
    }
    if path.is_dir() {
        return Err(anyhow!("cannot write {}: it is a folder; name a file", path.display()));
    }
    // Without a name, so that nothing can be left behind.
    tempfile::tempfile_in(folder).map_err(|e| cannot_write(path, &e))?;
    Ok(())
}

/// What the system said, without the name of the temporary file.
pub fn cannot_write(path: &Path, error: &io::Error) -> anyhow::Error {
    anyhow!("cannot write {}: {}", path.display(), error.kind())
}
