//! Output files named on the command line.

use std::io::{self, Write};
use std::path::Path;

use anyhow::anyhow;

/// The folder a file is in.
pub fn folder(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Fails before any work if the file cannot be written.
pub fn check(path: &Path) -> anyhow::Result<()> {
    if path == Path::new("-") {
        return Err(anyhow!("cannot write to standard output: the output is binary; name a file"));
    }
    let folder = folder(path);
    if !folder.is_dir() {
        return Err(anyhow!("cannot write {}: there is no folder {}; create it first", path.display(), folder.display()));
    }
    if path.is_dir() {
        return Err(anyhow!("cannot write {}: it is a folder; name a file", path.display()));
    }
    // An unnamed file leaves nothing behind.
    tempfile::tempfile_in(folder).map_err(|e| cannot_write(path, &e))?;
    Ok(())
}

/// Writes text to a file atomically.
pub fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".foretell");
    // Temporary files are private by default; this one gets the permissions of any new file.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.tempfile_in(folder(path)).map_err(|e| cannot_write(path, &e))?;
    file.write_all(text.as_bytes()).and_then(|()| file.as_file().sync_all()).map_err(|e| cannot_write(path, &e))?;
    file.persist(path).map_err(|e| cannot_write(path, &e.error))?;
    Ok(())
}

/// The error of the system, without the name of the temporary file.
pub fn cannot_write(path: &Path, error: &io::Error) -> anyhow::Error {
    anyhow!("cannot write {}: {}", path.display(), error.kind())
}
