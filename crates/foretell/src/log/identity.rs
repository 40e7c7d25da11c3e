//! The identity of logs, without reading their files.

use std::fs;
use std::path::Path;
use std::time::UNIX_EPOCH;

use serde::Serialize;
use xxhash_rust::xxh3::Xxh3;

use super::half::HalfFilter;
use super::schema::Schema;
use super::{Logs, OnBadEpisode, Origin};
use crate::data::{Alphabet, End, Trajectory};
use crate::error::{Error, Result};

/// Identifies logs: names, sizes and modification times of files, or a digest of trajectories in
/// memory.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Identity {
    of: Content,
    #[serde(skip_serializing_if = "Option::is_none")]
    half: Option<(u64, bool)>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Content {
    Files {
        files: Vec<File>,
        skips_bad_episodes: bool,
        #[serde(skip_serializing_if = "is_empty")]
        schema: Box<Schema>,
    },
    Memory {
        digest: String,
    },
}

fn is_empty(schema: &Schema) -> bool {
    schema.is_empty()
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct File {
    name: String,
    bytes: u64,
    /// Seconds and nanoseconds since 1970.
    changed: Option<(u64, u32)>,
}

impl Logs {
    /// Identifies these logs, for example for a [`Checkpoint`](crate::Checkpoint).
    pub fn identity(&self) -> Result<Identity> {
        let of = match &self.origin {
            Origin::Files { paths, options, .. } => Content::Files {
                files: paths.iter().map(|path| File::of(path)).collect::<Result<_>>()?,
                skips_bad_episodes: options.on_bad == OnBadEpisode::Skip,
                schema: Box::new((*options.schema).clone()),
            },
            Origin::Memory { earlier, trajectories } => Content::Memory { digest: digest(&earlier.alphabet, trajectories) },
        };
        Ok(Identity { of, half: self.half.as_ref().map(HalfFilter::identity) })
    }
}

impl File {
    fn of(path: &Path) -> Result<File> {
        let metadata = fs::metadata(path).map_err(Error::io("read", path))?;
        // Not every system records modification times.
        let changed = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let changed = changed.map(|since| (since.as_secs(), since.subsec_nanos()));
        Ok(File { name: path.display().to_string(), bytes: metadata.len(), changed })
    }
}

fn digest(alphabet: &Alphabet, trajectories: &[Trajectory]) -> String {
    let mut hash = Xxh3::new();
    hash.update(serde_json::to_string(alphabet).expect("an alphabet is plain data").as_bytes());
    for Trajectory { steps, rewards, action_probabilities, end, .. } in trajectories {
        let lengths = [steps.len(), rewards.len(), action_probabilities.len(), usize::from(*end == End::Terminated)];
        lengths.iter().for_each(|n| hash.update(&(*n as u64).to_le_bytes()));
        for ao in steps {
            hash.update(&ao.action.0.to_le_bytes());
            hash.update(&ao.observation.0.to_le_bytes());
        }
        // NaN stands for a missing reward; rewards are finite.
        let numbers = rewards.iter().map(|r| r.unwrap_or(f64::NAN)).chain(action_probabilities.iter().copied());
        numbers.for_each(|x| hash.update(&x.to_le_bytes()));
    }
    format!("{:016x}", hash.digest())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::ActionObservation;
    use crate::log::ReadOptions;
    use crate::rng::Seed;

    #[test]
    fn files_are_identified_by_name_size_and_time() {
        let folder = tempfile::tempdir().unwrap();
        let [walks, copy] = ["walks.csv", "copy.csv"].map(|name| folder.path().join(name));
        let identity = |path: &Path| Logs::files([path], ReadOptions::default()).identity().unwrap();
        fs::write(&walks, "action,observation\nN,wall\n").unwrap();
        fs::copy(&walks, &copy).unwrap();
        let first = identity(&walks);
        assert_eq!(first, identity(&walks));
        assert_ne!(first, identity(&copy));
        let skipping = Logs::files([&walks], ReadOptions { on_bad: OnBadEpisode::Skip, ..ReadOptions::default() });
        assert_ne!(first, skipping.identity().unwrap());
        fs::File::options().append(true).open(&walks).unwrap().set_modified(UNIX_EPOCH).unwrap();
        assert_ne!(first, identity(&walks));
        fs::remove_file(&walks).unwrap();
        let message = Logs::files([&walks], ReadOptions::default()).identity().unwrap_err().to_string();
        assert!(message.contains("walks.csv"), "{message}");
    }

    #[test]
    fn trajectories_in_memory_are_identified_by_their_content() {
        let mut alphabet = Alphabet::default();
        alphabet.intern_action("N");
        alphabet.intern_observation("wall");
        let step = ActionObservation::new(0, 0);
        let z = |rewards: Vec<Option<f64>>, probabilities: Vec<f64>| Trajectory {
            steps: vec![step; rewards.len()],
            rewards,
            action_probabilities: probabilities,
            end: End::Truncated,
            about: Default::default(),
        };
        let all = [
            vec![],
            vec![z(vec![Some(1.0)], vec![])],
            vec![z(vec![None], vec![])],
            vec![z(vec![Some(1.0)], vec![1.0])],
            vec![z(vec![Some(1.0); 2], vec![])],
            vec![z(vec![Some(1.0)], vec![]); 2],
        ];
        let logs = all.map(|trajectories| Logs::memory(alphabet.clone(), trajectories));
        let halves = [false, true].map(|other| logs[5].half(Seed(1), other));
        let identities: Vec<Identity> = logs.iter().chain(&halves).map(|logs| logs.identity().unwrap()).collect();
        for (i, identity) in identities.iter().enumerate() {
            assert!(identities[..i].iter().all(|other| other != identity), "{i}");
        }
    }
}
