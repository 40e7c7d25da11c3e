//! Work that can be stopped, as arguments of its command.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use foretell::Checkpoint;
use serde::Serialize;

use crate::input::LogArgs;

/// Where work leaves what it has done, and how often.
#[derive(clap::Args)]
pub struct CheckpointArgs {
    /// Folder to leave in what is done, so that the same command goes on there after being stopped at any moment; removed at the end
    #[arg(long, value_name = "DIR")]
    checkpoint: Option<PathBuf>,
    /// Least seconds between two saves; 0 saves whenever possible
    #[arg(long, value_name = "SECONDS", default_value_t = 30, requires = "checkpoint")]
    checkpoint_every: u32,
}

impl CheckpointArgs {
    /// What came by standard input is gone when the command is run again.
    pub fn refuse_standard_input(&self, logs: &LogArgs) -> anyhow::Result<()> {
        if self.checkpoint.is_some() && logs.has_standard_input() {
            anyhow::bail!("--checkpoint needs logs that are still there when the command is run again; give files in place of -");
        }
        Ok(())
    }

    /// Killed after its input was replaced, a command would begin anew with what it has made.
    pub fn refuse_same(&self, input: &Path, output: &Path) -> anyhow::Result<()> {
        let is_same = || Some(input.canonicalize().ok()? == output.canonicalize().ok()?);
        if self.checkpoint.is_some() && is_same() == Some(true) {
            anyhow::bail!("--checkpoint needs {} as it is until the end; name another output", input.display());
        }
        Ok(())
    }

    /// The checkpoint, if there is to be one. `work` makes what the result depends on.
    pub fn open<W: Serialize>(&self, work: impl FnOnce() -> foretell::Result<W>) -> foretell::Result<Option<Checkpoint>> {
        let Some(folder) = &self.checkpoint else { return Ok(None) };
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

/// Removes the checkpoint, if there is one: what came of the work is safe.
pub fn finish(checkpoint: Option<Checkpoint>) -> anyhow::Result<()> {
    checkpoint.map_or(Ok(()), |checkpoint| Ok(checkpoint.finish()?))
}

/// Says that work goes on, and from where.
pub fn say_resumed(folder: &Path, done: &str) {
    eprintln!("goes on from {}: {done}", folder.display());
}

/// The checkpoint, having said if work goes on there.
pub fn going_on(checkpoint: &mut Checkpoint) -> &mut Checkpoint {
    if checkpoint.goes_on() {
        say_resumed(checkpoint.folder(), "what was done is not done again");
    }
    checkpoint
}
