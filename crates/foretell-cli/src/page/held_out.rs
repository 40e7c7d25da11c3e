//! The held-out logs of a page.

use std::fs::File;
use std::path::{Path, PathBuf};

use foretell::store::digest_of;
use foretell::{Alphabet, Error, Summary, Trajectory};

use super::words::shown;
use super::{Data, LogFile};
use crate::input::Opened;

/// Maximum number of episodes in memory, where all are needed at once.
const MOST_IN_MEMORY: usize = 10_000;

/// Logs that were not used for training.
pub struct HeldOut {
    pub(super) opened: Opened,
}

impl HeldOut {
    pub fn new(opened: Opened) -> HeldOut {
        HeldOut { opened }
    }

    /// The first episodes, over an alphabet.
    pub(super) fn first_episodes(&self, alphabet: Alphabet) -> anyhow::Result<Vec<Trajectory>> {
        let episodes = self.opened.logs.open(alphabet)?.take(MOST_IN_MEMORY).collect::<Result<_, _>>();
        Ok(episodes.map_err(|e| self.opened.blame(e))?)
    }

    /// Their summary.
    pub(super) fn data(&self) -> anyhow::Result<Data> {
        let mut summary = Summary::of(&self.opened.logs).map_err(|e| self.opened.blame(e))?;
        for finding in &mut summary.findings {
            for path in &self.opened.paths {
                *finding = finding.replace(&path.display().to_string(), &self.name(path));
            }
        }
        let files = self.opened.paths.iter().map(|path| self.file(path)).collect::<Result<_, Error>>()?;
        Ok(Data::of(&summary, files))
    }

    fn file(&self, path: &PathBuf) -> Result<LogFile, Error> {
        let file = File::open(path).map_err(Error::io("read", path))?;
        let bytes = file.metadata().map_err(Error::io("read", path))?.len();
        Ok(LogFile { name: self.name(path), bytes, digest: digest_of(file).map_err(Error::io("read", path))? })
    }

    fn name(&self, path: &Path) -> String {
        shown(&self.opened.rename(&path.display().to_string()))
    }
}
