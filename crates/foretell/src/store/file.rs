//! Files that appear whole or not at all.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::disk::{self, Disk};
use crate::error::{Error, Result};
use crate::temporary;

/// A file written under a temporary name beside its target, which takes its place in
/// [`AtomicFile::commit`].
///
/// Dropped before that, it leaves nothing behind.
pub(crate) struct AtomicFile {
    target: PathBuf,
    temporary: PathBuf,
    file: BufWriter<Disk>,
    committed: bool,
}

impl AtomicFile {
    /// Starts the file that will be `path`.
    pub(crate) fn create(path: impl AsRef<Path>) -> Result<AtomicFile> {
        let path = path.as_ref();
        let target = temporary::file_behind(path).map_err(Error::io("create", path))?;
        let (temporary, file) = Disk::create_beside(&target).map_err(Error::io("create", path))?;
        Ok(AtomicFile { target, temporary, file: BufWriter::new(file), committed: false })
    }

    /// Puts the finished file in its place.
    pub(crate) fn commit(mut self) -> Result<()> {
        self.file.flush().map_err(Error::io("write", &self.target))?;
        self.file.get_ref().sync().map_err(Error::io("write", &self.target))?;
        disk::rename(&self.temporary, &self.target).map_err(Error::io("create", &self.target))?;
        self.committed = true;
        temporary::settle(&self.target);
        Ok(())
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if !self.committed {
            // If the temporary file cannot be removed, nothing more can be done here.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// Writes a file, which appears whole or not at all.
pub fn write(path: impl AsRef<Path>, bytes: &[u8]) -> Result<()> {
    let path = path.as_ref();
    let mut file = AtomicFile::create(path)?;
    file.write_all(bytes).map_err(Error::io("write", path))?;
    file.commit()
}

/// The name of the file that a temporary one of that name would have become; `None` if it is no temporary file of ours.
pub(super) fn target_of(name: &str) -> Option<&str> {
    temporary::parts(name).map(|(target, _)| target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_temporary_file_is_recognised() {
        let folder = tempfile::tempdir().unwrap();
        let file = AtomicFile::create(folder.path().join("model.safetensors")).unwrap();
        assert_eq!(target_of(&names(folder.path())[0]), Some("model.safetensors"));
        drop(file);
        for other in ["model.safetensors", ".model.tmp", ".model.1.tmp", ".model.a-1.tmp", "model.1-1.tmp", ".model.1-.tmp"] {
            assert_eq!(target_of(other), None, "{other}");
        }
    }

    fn names(folder: &Path) -> Vec<String> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_file_is_visible_only_after_commit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model");
        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"whole").unwrap();
        assert!(!path.exists());
        file.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        assert_eq!(names(folder.path()), ["model"]);
    }

    #[test]
    fn a_dropped_file_leaves_the_old_one_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model");
        fs::write(&path, "old").unwrap();
        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"half").unwrap();
        drop(file);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(folder.path()), ["model"]);
    }

    #[test]
    fn a_folder_or_device_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        assert!(AtomicFile::create(folder.path()).is_err());
        assert!(AtomicFile::create("/dev/null").is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let mut new = AtomicFile::create(&link).unwrap();
        new.write_all(b"new").unwrap();
        new.commit().unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&file).unwrap(), b"new");
    }
}
