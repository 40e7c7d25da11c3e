//! Checkpoints: long work saves its progress in a folder, and continues from there if it is
//! interrupted.
//!
//! Progress is saved in parts. Each part is written atomically and its checksum is
//! verified when it is read. The content of a part depends only on the identity of the work, so a
//! lost part is computed again, bit for bit the same.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::file::{self, AtomicFile};
use crate::error::{Error, Result};

/// Identifies the work that the parts belong to. It is written before the first part and removed
/// before them.
const IDENTITY: &str = "work.json";
/// Locked by the process that uses the folder.
const LOCK: &str = "lock";
/// The extension of parts.
const PART: &str = ".part";
/// Attempts to take the lock, and the pause between them: a process that was just killed may still
/// hold it.
const ATTEMPTS: usize = 20;
const PAUSE: Duration = Duration::from_millis(50);

/// A folder in which long work saves its progress, to continue from there if it is interrupted.
///
/// ```
/// # let folder = std::env::temp_dir().join(format!("foretell-checkpoint-{}", std::process::id()));
/// use foretell::{Checkpoint, LearnParams, Logs, RefineParams, Refinement, Seed, domains, learn};
///
/// let maze = domains::get("colored-gridworld")?;
/// let logs = Logs::memory(maze.alphabet().clone(), domains::sample(&maze, 100, 13, Seed(1)).collect());
/// let (learning, params) = (LearnParams { rank: 5, ..LearnParams::default() }, RefineParams { em_rounds: 2, ..RefineParams::default() });
/// let model = learn(&logs, &learning)?;
///
/// // Whenever a clock says so; here, always.
/// let mut checkpoint = Checkpoint::open(&folder, &(logs.identity()?, &learning, &params), || true)?;
/// let mut refinement = Refinement::new(&model, &logs, &params)?.checkpointed(&mut checkpoint)?;
/// refinement.by_ref().collect::<foretell::Result<Vec<_>>>()?;
/// let refined = refinement.finish()?;
/// // … write the model to its file, then:
/// checkpoint.finish()?;
/// # assert!(refined.latent().is_some() && !folder.exists());
/// # Ok::<(), foretell::Error>(())
/// ```
pub struct Checkpoint {
    folder: PathBuf,
    due: Box<dyn FnMut() -> bool + Send>,
    has_parts: bool,
    lock: File,
}

impl Checkpoint {
    /// Begins work in a folder, or continues it.
    ///
    /// `work` is everything that the result depends on; a folder in which other work was begun is
    /// refused. `due` returns whether it is time to save.
    pub fn open(
        folder: impl Into<PathBuf>,
        work: &impl Serialize,
        due: impl FnMut() -> bool + Send + 'static,
    ) -> Result<Checkpoint> {
        let folder = folder.into();
        if folder.is_file() {
            return Err(Error::data(format!("{} is a file", folder.display()), "name a folder for the checkpoint"));
        }
        fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
        let lock = lock(&folder)?;
        let work = json!({ "foretell": env!("CARGO_PKG_VERSION"), "work": work });
        let path = folder.join(IDENTITY);
        let begun = match fs::read_to_string(&path) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(Error::io("read", &path)(error)),
        };
        if let Some(begun) = &begun {
            check_identity(&folder, begun, &work)?;
        }
        let mut checkpoint = Checkpoint { folder, due: Box::new(due), has_parts: false, lock };
        // Parts without an identity were left by a process that was stopped while it removed them.
        checkpoint.clean(if begun.is_some() { is_left_over } else { is_ours })?;
        if begun.is_none() {
            file::write(&path, format!("{work:#}\n").as_bytes())?;
        }
        checkpoint.has_parts = checkpoint.names()?.iter().any(|name| is_part(name));
        Ok(checkpoint)
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether it continues earlier work: some part had been saved when it was opened.
    pub fn goes_on(&self) -> bool {
        self.has_parts
    }

    /// Whether it is time to save.
    pub fn is_due(&mut self) -> bool {
        (self.due)()
    }

    /// The saved bytes of a part; `None` if it was not saved.
    pub fn load(&self, part: &str) -> Result<Option<Vec<u8>>> {
        let path = self.path(part);
        let mut bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io("read", &path)(error)),
        };
        match bytes.split_last_chunk() {
            Some((content, hash)) if xxh3_64(content) == u64::from_le_bytes(*hash) => {
                bytes.truncate(bytes.len() - size_of::<u64>())
            }
            _ => return Err(damaged(&path, "it is cut short, or not as it was written, and the progress saved there is lost")),
        }
        Ok(Some(bytes))
    }

    /// Saves a part and replaces its earlier version, which stays if this fails. `part` must be a
    /// valid file name.
    pub fn save(&mut self, part: &str, bytes: &[u8]) -> Result<()> {
        let path = self.path(part);
        let mut file = AtomicFile::create(&path)?;
        for bytes in [bytes, &xxh3_64(bytes).to_le_bytes()] {
            file.write_all(bytes).map_err(Error::io("write", &path))?;
        }
        file.commit()
    }

    /// Removes a part that is no longer needed.
    pub fn remove(&mut self, part: &str) -> Result<()> {
        remove(&self.path(part))
    }

    /// Removes the checkpoint once the work is done and its result is saved; and the folder, if it
    /// is then empty.
    pub fn finish(self) -> Result<()> {
        remove(&self.folder.join(IDENTITY))?;
        self.clean(is_ours)?;
        drop(self.lock);
        remove(&self.folder.join(LOCK))?;
        // The folder may contain other files, or be the current directory.
        let _ = fs::remove_dir(&self.folder);
        Ok(())
    }

    /// The file of a part, for messages.
    pub(crate) fn path(&self, part: &str) -> PathBuf {
        assert!(!part.contains(['/', '\\']), "{part:?} is not a file name");
        self.folder.join(format!("{part}{PART}"))
    }

    fn names(&self) -> Result<Vec<String>> {
        let entries = fs::read_dir(&self.folder).map_err(Error::io("read", &self.folder))?;
        // A name that is not UTF-8 is not ours.
        Ok(entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect())
    }

    fn clean(&self, is_removed: fn(&str) -> bool) -> Result<()> {
        self.names()?.iter().filter(|name| is_removed(name)).try_for_each(|name| remove(&self.folder.join(name)))
    }
}

/// A hash of bytes that work depends on.
pub fn digest(bytes: &[u8]) -> String {
    format!("{:016x}", xxh3_64(bytes))
}

/// [`digest`] of all that can be read.
pub fn digest_of(mut bytes: impl Read) -> io::Result<String> {
    let (mut hash, mut chunk) = (Xxh3::new(), vec![0; 1 << 16]);
    loop {
        match bytes.read(&mut chunk) {
            Ok(0) => return Ok(format!("{:016x}", hash.digest())),
            Ok(n) => hash.update(&chunk[..n]),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// The remedy for a part that cannot be used.
pub(crate) const AGAIN: &str = "remove the folder and start again";

fn damaged(path: &Path, problem: &str) -> Error {
    Error::input(path.display().to_string(), None, problem, AGAIN)
}

/// Makes sure that no other process uses the folder.
fn lock(folder: &Path) -> Result<File> {
    let path = folder.join(LOCK);
    let lock = File::options().write(true).create(true).truncate(false).open(&path).map_err(Error::io("create", &path))?;
    for _ in 0..ATTEMPTS {
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) => thread::sleep(PAUSE),
            // Some file systems have no locks; the user must then avoid two processes.
            Ok(()) | Err(TryLockError::Error(_)) => return Ok(lock),
        }
    }
    let problem = format!("another process uses {}", folder.display());
    Err(Error::data(problem, "wait for it, or name another folder"))
}

fn check_identity(folder: &Path, begun: &str, work: &Value) -> Result<()> {
    let path = folder.join(IDENTITY);
    let text = begun;
    let begun: Value = serde_json::from_str(text).map_err(|e| damaged(&path, &format!("it is damaged ({e})")))?;
    if begun == *work {
        // Some damage says the same in other characters.
        let is_whole = *text == format!("{begun:#}\n");
        return if is_whole { Ok(()) } else { Err(damaged(&path, "it is not as it was written")) };
    }
    let differing = |x: &Value, y: &Value| -> Vec<String> {
        let fields = x.as_object().into_iter().flatten();
        fields.filter(|(name, value)| y.get(name) != Some(value)).map(|(name, _)| name.clone()).collect()
    };
    let mut names = differing(&work["work"], &begun["work"]);
    if begun["foretell"] != work["foretell"] {
        names.push("version of foretell".into());
    }
    let what = if names.is_empty() { "other work".into() } else { format!("other work (it differs in: {})", names.join(", ")) };
    let problem = format!("the checkpoint in {} is of {what}", folder.display());
    Err(Error::data(problem, "finish that work, remove the folder or name another"))
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io("remove", path)(error)),
        _ => Ok(()),
    }
}

fn is_part(name: &str) -> bool {
    name.ends_with(PART) && !name.starts_with('.')
}

/// Whether a file was left by a process that was killed while it wrote.
fn is_left_over(name: &str) -> bool {
    file::target_of(name).is_some_and(|target| target == IDENTITY || is_part(target))
}

fn is_ours(name: &str) -> bool {
    is_part(name) || is_left_over(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(folder: &Path, work: &Value) -> Result<Checkpoint> {
        Checkpoint::open(folder, work, || true)
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_digest_is_the_same_read_at_once_or_in_parts() {
        let bytes: Vec<u8> = (0..200_000u32).map(|i| (i % 251) as u8).collect();
        assert_eq!(digest_of(&bytes[..]).unwrap(), digest(&bytes));
        let (first, rest) = bytes.split_at(77);
        assert_eq!(digest_of(first.chain(rest)).unwrap(), digest(&bytes));
        assert_ne!(digest_of(rest).unwrap(), digest(&bytes));
    }

    #[test]
    fn saved_parts_survive_an_interruption() {
        let above = tempfile::tempdir().unwrap();
        let folder = above.path().join("new/folder");
        let mut checkpoint = open(&folder, &json!(1)).unwrap();
        assert!(!checkpoint.goes_on() && checkpoint.is_due());
        assert_eq!(checkpoint.load("moments").unwrap(), None);
        checkpoint.save("moments", b"old").unwrap();
        checkpoint.save("moments", b"new").unwrap();
        drop(checkpoint);
        let mut checkpoint = open(&folder, &json!(1)).unwrap();
        assert!(checkpoint.goes_on());
        assert_eq!(checkpoint.load("moments").unwrap().unwrap(), b"new");
        checkpoint.remove("moments").unwrap();
        checkpoint.remove("moments").unwrap();
        assert_eq!(checkpoint.load("moments").unwrap(), None);
        checkpoint.finish().unwrap();
        assert!(!folder.exists());
    }

    #[test]
    fn other_work_is_refused_and_its_parts_stay() {
        let folder = tempfile::tempdir().unwrap();
        let work = |rank: usize| json!({ "logs": "walks.csv", "rank": rank });
        open(folder.path(), &work(5)).unwrap().save("moments", b"five").unwrap();
        let message = open(folder.path(), &work(6)).err().unwrap().to_string();
        assert!(message.contains("(it differs in: rank); finish that work, remove the folder or name another"), "{message}");
        assert_eq!(open(folder.path(), &work(5)).unwrap().load("moments").unwrap().unwrap(), b"five");
    }

    #[test]
    fn two_processes_do_not_share_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let first = open(folder.path(), &json!(1)).unwrap();
        let message = open(folder.path(), &json!(1)).err().unwrap().to_string();
        assert!(message.starts_with("another process uses"), "{message}");
        drop(first);
        open(folder.path(), &json!(1)).unwrap();
    }

    #[test]
    fn leftovers_of_a_killed_process_are_removed_and_other_files_stay() {
        let folder = tempfile::tempdir().unwrap();
        open(folder.path(), &json!(1)).unwrap().save("moments", b"whole").unwrap();
        for name in [".moments.part.77-0.tmp", ".work.json.77-1.tmp", "notes.txt", ".notes.txt.swp", ".model.77-0.tmp"] {
            fs::write(folder.path().join(name), "half").unwrap();
        }
        let checkpoint = open(folder.path(), &json!(1)).unwrap();
        let theirs = [".model.77-0.tmp", ".notes.txt.swp"];
        assert_eq!(names(folder.path()), [&theirs[..], &["lock", "moments.part", "notes.txt", "work.json"]].concat());
        checkpoint.finish().unwrap();
        assert_eq!(names(folder.path()), [&theirs[..], &["notes.txt"]].concat());
    }

    #[test]
    fn parts_without_an_identity_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        open(folder.path(), &json!(1)).unwrap().save("moments", b"of work 1").unwrap();
        fs::remove_file(folder.path().join(IDENTITY)).unwrap();
        let checkpoint = open(folder.path(), &json!(2)).unwrap();
        assert!(!checkpoint.goes_on());
        assert_eq!(checkpoint.load("moments").unwrap(), None);
    }

    #[test]
    fn every_damage_is_detected() {
        let folder = tempfile::tempdir().unwrap();
        let mut checkpoint = open(folder.path(), &json!(1)).unwrap();
        checkpoint.save("moments", b"numbers").unwrap();
        let path = checkpoint.path("moments");
        let whole = fs::read(&path).unwrap();
        let flipped = |i: usize| whole.iter().enumerate().map(|(j, x)| if i == j { x ^ 1 } else { *x }).collect::<Vec<u8>>();
        let cut = (0..whole.len()).map(|n| whole[..n].to_vec());
        for bytes in cut.chain((0..whole.len()).map(flipped)) {
            fs::write(&path, bytes).unwrap();
            let message = checkpoint.load("moments").unwrap_err().to_string();
            assert!(message.contains("moments.part") && message.ends_with(AGAIN), "{message}");
        }
        drop(checkpoint);
        fs::write(folder.path().join(IDENTITY), "{").unwrap();
        let message = open(folder.path(), &json!(1)).err().unwrap().to_string();
        assert!(message.contains("work.json: it is damaged") && message.ends_with(AGAIN), "{message}");
    }

    #[test]
    fn a_save_that_fails_is_an_error_and_loses_nothing() {
        let above = tempfile::tempdir().unwrap();
        let (folder, away) = (above.path().join("here"), above.path().join("away"));
        let mut checkpoint = open(&folder, &json!(1)).unwrap();
        checkpoint.save("moments", b"old").unwrap();
        fs::rename(&folder, &away).unwrap();
        let message = checkpoint.save("moments", b"new").unwrap_err().to_string();
        assert!(message.starts_with("cannot create") && message.contains("moments.part"), "{message}");
        fs::rename(&away, &folder).unwrap();
        assert_eq!(checkpoint.load("moments").unwrap().unwrap(), b"old");
    }

    #[test]
    fn a_file_in_place_of_the_folder_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "mine").unwrap();
        let message = open(&path, &json!(1)).err().unwrap().to_string();
        assert!(message.ends_with("file is a file; name a folder for the checkpoint"), "{message}");
    }
}
