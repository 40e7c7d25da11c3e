//! Logs named on the command line.

use std::io;
use std::path::PathBuf;

use anyhow::Context;
use foretell::Logs;
use foretell::log::{OnBadEpisode, ReadOptions};
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
    _spool: Option<NamedTempFile>,
}

impl LogArgs {
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
        Ok(Opened { logs: Logs::files(paths, ReadOptions { on_bad }), _spool: spool })
    }
}
