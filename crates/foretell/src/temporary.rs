//! Temporary files beside the files that they become: which file that is, who may read them
//! meanwhile, and which of them were left by a process that was killed.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

/// Links to links that are followed, as many as Linux follows.
const MOST_LINKS: usize = 40;

/// The file that is replaced when `path` is written: behind links, also where there is none yet.
///
/// A rename would replace a link, or even a device such as /dev/null; anything but a regular file is
/// refused.
pub fn file_behind(path: impl AsRef<Path>) -> io::Result<PathBuf> {
    let path = path.as_ref();
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => fs::canonicalize(path),
        Ok(metadata) if metadata.is_dir() => Err(refused("it is a folder")),
        Ok(_) => Err(refused("it exists and is not a regular file")),
        Err(_) => {
            let mut target = path.to_path_buf();
            for _ in 0..MOST_LINKS {
                let Ok(next) = fs::read_link(&target) else { return Ok(target) };
                // An absolute link replaces the folder.
                target = folder(&target).join(next);
            }
            Err(refused("too many links lead from one to another"))
        }
    }
}

fn refused(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

/// The folder of a file.
fn folder(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A new file in the folder of `target`, under a name no other call or process uses. It can be read
/// by those who can read the file that it will replace, and is locked as long as it is written.
pub(crate) fn create_beside(target: &Path) -> io::Result<(PathBuf, File)> {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let name = target.file_name().ok_or_else(|| refused("it has no file name"))?;
    remove_abandoned(target);
    let replaced = fs::metadata(target).ok();
    loop {
        let call = CALLS.fetch_add(1, Ordering::Relaxed);
        let temporary = target.with_file_name(name_of(name, process::id(), call));
        match create_like(&temporary, replaced.as_ref()) {
            // A process that removes what was left behind may have taken it for that.
            Ok(file) if is_ours(&file, &temporary) => return Ok((temporary, file)),
            Ok(_) => continue,
            // Left by a killed process with the same id.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(error),
        }
    }
}

/// Creates a file with the permissions of the one that it will replace, from its first moment on.
fn create_like(path: &Path, replaced: Option<&Metadata>) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    let Some(replaced) = replaced else { return options.open(path) };
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    // Not all file systems have permissions.
    let _ = file.set_permissions(replaced.permissions());
    Ok(file)
}

/// Locks a new file, and returns whether it is still there: locked only by us, or on a file system
/// without locks.
fn is_ours(file: &File, path: &Path) -> bool {
    !matches!(file.try_lock(), Err(fs::TryLockError::WouldBlock)) && path.exists()
}

/// Waits until the new name of a file is on the disk, where the system can do that.
pub(crate) fn settle(renamed: &Path) {
    if cfg!(unix) {
        let _ = File::open(folder(renamed)).and_then(|folder| folder.sync_all());
    }
}

/// Removes the temporary files of a target whose processes ended before they could.
pub fn remove_abandoned(target: impl AsRef<Path>) {
    let target = target.as_ref();
    let is_of_target = |name: &str| parts(name).is_some_and(|(of, _)| Some(OsStr::new(of)) == target.file_name());
    for path in temporaries(folder(target), is_of_target) {
        // Whoever still writes it holds its lock. What cannot be opened or removed is left alone.
        let removed = OpenOptions::new().write(true).open(&path).and_then(|file| match file.try_lock() {
            Ok(()) => fs::remove_file(&path),
            Err(_) => Ok(()),
        });
        let _ = removed;
    }
}

/// Removes the temporary files that this process is writing in a folder, before it ends without
/// finishing them.
pub fn remove_unfinished(folder: impl AsRef<Path>) {
    for path in temporaries(folder.as_ref(), |name| parts(name).is_some_and(|(_, id)| id == process::id())) {
        let _ = fs::remove_file(path);
    }
}

fn temporaries(folder: &Path, is_one: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    entries.filter(|entry| entry.file_name().to_str().is_some_and(&is_one)).map(|entry| entry.path()).collect()
}

fn name_of(target: &OsStr, process: u32, call: u64) -> OsString {
    let mut hidden = OsString::from(".");
    hidden.push(target);
    hidden.push(format!(".{process}-{call}.tmp"));
    hidden
}

/// The file that a temporary one of that name would have become, and the process that wrote it;
/// `None` if it is no temporary file of ours.
pub(crate) fn parts(name: &str) -> Option<(&str, u32)> {
    let (target, process) = name.strip_prefix('.')?.strip_suffix(".tmp")?.rsplit_once('.')?;
    let (id, call) = process.split_once('-')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    (is_number(id) && is_number(call)).then_some((target, id.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn what_a_killed_process_left_is_removed_and_what_is_written_stays() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("model");
        let (written, _locked) = create_beside(&target).unwrap();
        for name in [".model.77-0.tmp", ".other.77-0.tmp", ".model.tmp", "model.77-0.tmp"] {
            fs::write(folder.path().join(name), "half").unwrap();
        }
        let (next, file) = create_beside(&target).unwrap();
        let own = [&written, &next].map(|path| path.file_name().unwrap().to_str().unwrap().to_string());
        let mut expected = [&own[..], &[".other.77-0.tmp", ".model.tmp", "model.77-0.tmp"].map(String::from)].concat();
        expected.sort();
        assert_eq!(names(folder.path()), expected);
        drop(file);
        remove_unfinished(folder.path());
        assert_eq!(names(folder.path()), [".model.tmp", ".other.77-0.tmp", "model.77-0.tmp"]);
    }

    #[cfg(unix)]
    #[test]
    fn nobody_else_can_read_what_replaces_a_private_file() {
        use std::os::unix::fs::{MetadataExt, PermissionsExt};
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("model");
        for mode in [0o600, 0o640, 0o604] {
            fs::write(&target, "old").unwrap();
            fs::set_permissions(&target, fs::Permissions::from_mode(mode)).unwrap();
            let (temporary, _file) = create_beside(&target).unwrap();
            assert_eq!(fs::metadata(&temporary).unwrap().mode() & 0o777, mode);
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_to_no_file_leads_to_where_it_will_be() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        symlink("second", path("first")).unwrap();
        symlink("model", path("second")).unwrap();
        assert_eq!(file_behind(path("first")).unwrap(), path("model"));
        symlink("round", path("round")).unwrap();
        assert!(file_behind(path("round")).is_err());
        assert!(file_behind(folder.path()).is_err() && file_behind("/dev/null").is_err());
    }
}
