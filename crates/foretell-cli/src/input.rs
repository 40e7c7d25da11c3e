//! Logs named on the command line.

use std::collections::HashSet;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{env, process};

use anyhow::Context;
use foretell::log::{Guess, OnBadEpisode, ReadOptions, expand};
use foretell::{Error, Logs, Model, Plan, Schema, store};
use tempfile::NamedTempFile;

use crate::schema::{SchemaArgs, flags};
use crate::{interrupt, progress};

/// Bytes of standard input that are read at once.
const CHUNK: usize = 1 << 18;

/// The logs to read.
#[derive(clap::Args)]
pub struct LogArgs {
    /// Logs: CSV, JSON Lines or Parquet files, the first two also .gz; a folder stands for all logs
    /// in it, a quoted pattern such as 'logs/*.csv' for all matching files, `-` for standard input
    #[arg(required = true, value_name = "LOGS")]
    logs: Vec<PathBuf>,
    /// Skip and count episodes with a bad row, instead of stopping with an error
    #[arg(long)]
    skip_bad_episodes: bool,
    #[command(flatten)]
    schema: SchemaArgs,
}

/// Opened logs, and the temporary file with the contents of standard input.
pub struct Opened {
    pub logs: Logs,
    pub paths: Vec<PathBuf>,
    spool: Option<NamedTempFile>,
}

impl Opened {
    /// The error, which names standard input instead of the temporary file.
    pub fn blame(&self, error: Error) -> Error {
        let Some(spool) = &self.spool else { return error };
        match error {
            Error::Input { file, line, problem, remedy } if Path::new(&file) == spool.path() => {
                Error::Input { file: "standard input".into(), line, problem, remedy }
            }
            other => other,
        }
    }

    /// An error of columns that were not recognised, with a guess of what they mean.
    fn with_guess(&self, error: Error) -> anyhow::Error {
        let guess = self.logs.guess().ok().flatten().filter(|guess| guess.problem.is_some() && guess.unread.is_none());
        let error = anyhow::Error::from(self.blame(error));
        match guess {
            Some(guess) => {
                let error = crate::report::with_flags(&error.to_string());
                anyhow::anyhow!("{error}. A guess to start from: {}", flags(&guess.schema))
            }
            None => error,
        }
    }

    /// The text, which names standard input instead of the temporary file.
    pub fn rename(&self, text: &str) -> String {
        match &self.spool {
            Some(spool) => text.replace(&spool.path().display().to_string(), "standard input"),
            None => text.to_string(),
        }
    }
}

impl LogArgs {
    /// These logs; a bad row is an error.
    pub fn of(logs: Vec<PathBuf>) -> LogArgs {
        LogArgs::with(logs, SchemaArgs::default())
    }

    /// The same with what is said of their columns.
    pub fn with(logs: Vec<PathBuf>, schema: SchemaArgs) -> LogArgs {
        LogArgs { logs, skip_bad_episodes: false, schema }
    }

    /// The files that are read: the logs, and what is said of their columns.
    pub fn files(&self) -> anyhow::Result<Vec<PathBuf>> {
        Ok(self.paths()?.into_iter().chain(self.schema.file()).collect())
    }

    /// The logs as the user named them.
    pub fn named(&self) -> String {
        let names = self.logs.iter().map(|log| if is_stdin(log) { "standard input".into() } else { log.display().to_string() });
        names.collect::<Vec<String>>().join(", ")
    }

    /// Whether standard input is one of them.
    pub fn has_standard_input(&self) -> bool {
        self.logs.iter().any(|log| log.as_os_str() == "-")
    }

    /// Opens them to learn from: what columns mean is guessed where that is safe, and measured ones
    /// are divided into cells. Says what was guessed.
    pub fn open(&self) -> anyhow::Result<Opened> {
        let (opened, guess) = self.understand(self.open_as_given()?)?;
        guess.iter().flat_map(|guess| &guess.doubts).for_each(|doubt| progress::note(&crate::report::with_flags(doubt)));
        Ok(opened)
    }

    /// Opens them with what is said about their columns.
    pub fn open_as_given(&self) -> anyhow::Result<Opened> {
        self.open_with(Arc::new(self.schema.schema()?))
    }

    /// The logs with what is guessed about their columns, and the guess.
    pub fn understand(&self, opened: Opened) -> anyhow::Result<(Opened, Option<Guess>)> {
        let (logs, guess) = opened.logs.understood().map_err(|e| opened.with_guess(e))?;
        for sentence in guess.iter().flat_map(Guess::sentences) {
            progress::note(&format!("read as {sentence}"));
        }
        let logs = logs.fitted().map_err(|e| opened.blame(e))?;
        for (key, encoder) in logs.schema().encoders.iter().filter(|(key, _)| !logs.schema().bins.contains_key(*key)) {
            let cells = (0..encoder.cells()).map(|cell| encoder.label(cell)).collect::<Vec<_>>().join(", ");
            progress::note(&format!(
                "{key} is measured, and divided into {} cells: {cells}; --bins '{key}=category' keeps its values as names",
                encoder.cells()
            ));
        }
        Ok((Opened { logs, ..opened }, guess))
    }

    /// Opens them for a model or policy, whose schema they have.
    pub fn open_for(&self, schema: &Arc<Schema>) -> anyhow::Result<Opened> {
        let given = self.schema.schema()?;
        if given.is_empty() {
            return self.open_with(schema.clone());
        }
        if schema.is_empty() {
            return self.open_with(Arc::new(given));
        }
        if given != schema.as_given() {
            anyhow::bail!(
                "the columns of these logs are given as {}, but those that were learned from were read as {}; leave these flags \
                 out, or learn again",
                flags(&given),
                flags(schema)
            );
        }
        self.open_with(schema.clone())
    }

    /// Opens them. Logs are read more than once, so standard input is copied to a temporary file.
    fn open_with(&self, schema: Arc<Schema>) -> anyhow::Result<Opened> {
        let mut spool = None;
        let mut paths = self.paths()?;
        refuse_twice(&paths)?;
        for path in paths.iter_mut().filter(|path| is_stdin(path)) {
            if spool.is_some() {
                anyhow::bail!("standard input (-) is given more than once; give it once");
            }
            let mut file = temporary().map_err(|e| cannot_store(&e))?;
            copy(&mut io::stdin().lock(), &mut file)?;
            *path = file.path().to_path_buf();
            spool = Some(file);
        }
        let on_bad = if self.skip_bad_episodes { OnBadEpisode::Skip } else { OnBadEpisode::Fail };
        Ok(Opened { logs: Logs::files(paths.clone(), ReadOptions { on_bad, schema }), paths, spool })
    }

    /// The files that the arguments stand for, and `-`.
    fn paths(&self) -> anyhow::Result<Vec<PathBuf>> {
        let files = self.logs.iter().map(|log| if is_stdin(log) { Ok(vec![log.clone()]) } else { expand(log) });
        Ok(files.collect::<foretell::Result<Vec<_>>>()?.concat())
    }
}

/// Reads a model, and tells what a user should know of its file.
pub fn model(path: impl AsRef<Path>) -> foretell::Result<Model> {
    let model = Model::load(path)?;
    model.origin().note.iter().for_each(|note| progress::note(note));
    Ok(model)
}

/// Reads a policy, and tells what a user should know of its file.
pub fn policy(path: impl AsRef<Path>) -> foretell::Result<Plan> {
    let plan = Plan::load(path)?;
    plan.note().into_iter().for_each(progress::note);
    Ok(plan)
}

/// Refuses a file that is given twice, since its episodes would count twice.
pub fn refuse_twice(paths: &[PathBuf]) -> anyhow::Result<()> {
    let mut seen = HashSet::new();
    match paths.iter().find(|path| path.canonicalize().is_ok_and(|path| path.is_file() && !seen.insert(path))) {
        Some(path) => anyhow::bail!("{} is given twice and would count twice; name it once", path.display()),
        None => Ok(()),
    }
}

/// A file for standard input that only this user can read. What killed processes left of theirs is
/// removed.
fn temporary() -> io::Result<NamedTempFile> {
    let target = env::temp_dir().join("foretell-stdin");
    store::remove_abandoned(&target);
    interrupt::clean_up_in(&env::temp_dir());
    for call in 0.. {
        let name = format!(".foretell-stdin.{}-{call}", process::id());
        match tempfile::Builder::new().prefix(&name).suffix(".tmp").rand_bytes(0).tempfile() {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            file => {
                // On a file system without locks nobody removes it.
                return file.inspect(|file| file.as_file().try_lock().unwrap_or_default());
            }
        }
    }
    unreachable!("names are numbered without end")
}

fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Copies standard input to a file.
fn copy(input: &mut impl Read, file: &mut impl Write) -> anyhow::Result<()> {
    let mut chunk = vec![0; CHUNK];
    loop {
        let read = match input.read(&mut chunk) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            read => read.context("cannot read standard input")?,
        };
        if read == 0 {
            return file.flush().map_err(|e| cannot_store(&e));
        }
        file.write_all(&chunk[..read]).map_err(|e| cannot_store(&e))?;
    }
}

fn cannot_store(error: &io::Error) -> anyhow::Error {
    let folder = env::temp_dir();
    anyhow::anyhow!(
        "cannot store standard input in the temporary folder {}: {}; set TMPDIR to a folder with enough space, or give files",
        folder.display(),
        error.kind()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk that is soon full.
    struct Small(usize);

    impl Write for Small {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_temporary_folder_has_a_remedy() {
        let input = vec![b'x'; 3 * CHUNK];
        assert!(copy(&mut &input[..], &mut Small(3 * CHUNK)).is_ok());
        let said = copy(&mut &input[..], &mut Small(2 * CHUNK)).unwrap_err().to_string();
        assert!(said.contains("no storage space") && said.contains("set TMPDIR to a folder with enough space"), "{said}");
    }
}
