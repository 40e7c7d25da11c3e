//! Logs named on the command line.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;
use foretell::log::{OnBadEpisode, ReadOptions};
use foretell::{Error, Logs};
use tempfile::NamedTempFile;

/// The logs to read.
#[derive(clap::Args)]
pub struct LogArgs {
    /// Logs: CSV, JSON Lines or Parquet, also .gz; `-` is standard input
    #[arg(required = true, value_name = "LOGS")]
    logs: Vec<PathBuf>,
    /// Drop episodes that have a bad row, and count them, instead of stopping
    #[arg(long)]
    skip_bad_episodes: bool,
}

/// Opened logs, and the file that holds what came by standard input.
pub struct Opened {
    pub logs: Logs,
    spool: Option<NamedTempFile>,
}

impl Opened {
    /// The error, about standard input where it would name the temporary file.
    pub fn blame(&self, error: Error) -> Error {
        let Some(spool) = &self.spool else { return error };
        match error {
            Error::Input { file, line, problem, remedy } if Path::new(&file) == spool.path() => {
                Error::Input { file: "standard input".into(), line, problem, remedy }
            }
            other => other,
        }
    }

    /// The text, with standard input in place of the temporary file.
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
        LogArgs { logs, skip_bad_episodes: false }
    }

    /// A slip of the hand must not replace logs by what is made of them.
    pub fn refuse_as_output(&self, output: &Path) -> anyhow::Result<()> {
        let same = |log: &&PathBuf| log.canonicalize().is_ok_and(|log| output.canonicalize().is_ok_and(|out| out == log));
        match self.logs.iter().find(same) {
            Some(log) => anyhow::bail!("{} is one of the logs and would be overwritten; name another output", log.display()),
            None => Ok(()),
        }
    }

    /// Whether some come by standard input.
    pub fn has_standard_input(&self) -> bool {
        self.logs.iter().any(|log| log.as_os_str() == "-")
    }

    /// Logs are read more than once, so standard input is kept in a temporary file meanwhile.
    pub fn open(&self) -> anyhow::Result<Opened> {
        let mut spool = None;
        let mut paths = self.logs.clone();
        for path in paths.iter_mut().filter(|path| path.as_os_str() == "-") {
            if spool.is_some() {
                anyhow::bail!("standard input (-) can be given once only");
            }
            let mut file = tempfile::Builder::new()
                .prefix("stdin")
                .tempfile()
                .context("cannot create a temporary file for standard input")?;
            io::copy(&mut io::stdin().lock(), &mut file).context("cannot read standard input")?;
            *path = file.path().to_path_buf();
            spool = Some(file);
        }
        let on_bad = if self.skip_bad_episodes { OnBadEpisode::Skip } else { OnBadEpisode::Fail };
        Ok(Opened { logs: Logs::files(paths, ReadOptions { on_bad }), spool })
    }
}
