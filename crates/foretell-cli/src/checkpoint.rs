//! Arguments of commands that can be stopped and resumed.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use foretell::Checkpoint;
use serde::Serialize;

use crate::input::LogArgs;
use crate::{interrupt, report};

/// Where progress is saved, and how often.
#[derive(clap::Args)]
pub struct CheckpointArgs {
    /// Folder for saved progress: the same command resumes from it if it was stopped; removed at
    /// the end
    #[arg(long, value_name = "DIR")]
    checkpoint: Option<PathBuf>,
    /// Minimum time between two saves, in seconds; 0 saves whenever possible
    #[arg(long, value_name = "SECONDS", default_value_t = 30, requires = "checkpoint")]
    checkpoint_every: u32,
}

impl CheckpointArgs {
    /// Refuses standard input, which is gone when the command is run again.
    pub fn refuse_standard_input(&self, logs: &LogArgs) -> anyhow::Result<()> {
        if self.checkpoint.is_some() && logs.has_standard_input() {
            anyhow::bail!(
                "--checkpoint cannot be used with standard input, which is gone when the command is run again; give files instead of -"
            );
        }
        Ok(())
    }

    /// Refuses to replace the input: a command that is killed after that would restart from its own
    /// output.
    pub fn refuse_same(&self, input: &Path, output: &Path) -> anyhow::Result<()> {
        let is_same = || Some(input.canonicalize().ok()? == output.canonicalize().ok()?);
        if self.checkpoint.is_some() && is_same() == Some(true) {
            anyhow::bail!("--checkpoint needs {} unchanged until the end; choose another --output", input.display());
        }
        Ok(())
    }

    /// The checkpoint, if requested. `work` returns everything that the result depends on.
    pub fn open<W: Serialize>(&self, work: impl FnOnce() -> foretell::Result<W>) -> foretell::Result<Option<Checkpoint>> {
        let Some(folder) = &self.checkpoint else { return Ok(None) };
        interrupt::clean_up_in(folder);
        let every = Duration::from_secs(self.checkpoint_every.into());
        let mut last = Instant::now();
        let due = move || {
            let is_due = last.elapsed() >= every;
            if is_due {
                last = Instant::now();
            }
            is_due
        };
        Checkpoint::open(folder, &work()?, due).map(Some)
    }
}

/// Removes the checkpoint, if there is one, after the result was written.
pub fn finish(checkpoint: Option<Checkpoint>) -> anyhow::Result<()> {
    checkpoint.map_or(Ok(()), |checkpoint| Ok(checkpoint.finish()?))
}

/// Reports that work resumes, and from where.
pub fn report_resumed(folder: &Path, done: &str) {
    report::complain(format!("resuming from {}: {done}", folder.display()));
}

/// Reports if work resumes from the checkpoint, and returns it.
pub fn report_if_resumed(checkpoint: &mut Checkpoint) -> &mut Checkpoint {
    if checkpoint.goes_on() {
        report_resumed(checkpoint.folder(), "finished parts are not repeated");
    }
    checkpoint
}
