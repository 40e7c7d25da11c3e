//! The source of episodes for learning: batch by batch, once for each pass.

use crate::data::{Alphabet, Digest, EpisodeKeys, Episodes, Trajectory};
use crate::error::Result;
use crate::log::{Logs, Position, Reader};
use crate::model::Weighting;

/// Most batches of logs that are kept in memory between passes (2 MiB).
const MOST_KEPT: usize = 16;

/// An empty batch; with the probabilities of actions where `weighting` needs them.
pub(crate) fn empty_batch(weighting: Weighting) -> Episodes {
    if weighting == Weighting::None { Episodes::default() } else { Episodes::with_probabilities() }
}

/// Replaces the episodes of a batch by the next ones.
fn refill(batch: &mut Episodes, reader: &mut Reader, digest: &mut Option<(&mut Digest, EpisodeKeys)>) -> Result<()> {
    batch.clear();
    while !batch.is_full() {
        let Some(z) = reader.next().transpose()? else { break };
        if let Some((digest, keys)) = digest {
            digest.add(keys.key(reader.alphabet(), &z), 1);
        }
        batch.push(&z, 1.0)?;
    }
    Ok(())
}

/// The batches of weighted episodes.
pub(super) fn batches(episodes: &[(Trajectory, f64)], weighting: Weighting) -> Result<Vec<Held>> {
    let mut batches: Vec<Held> = Vec::new();
    for (i, (z, weight)) in (1..).zip(episodes) {
        if batches.last().is_none_or(|(batch, _)| batch.is_full()) {
            batches.push((empty_batch(weighting), Position::default()));
        }
        let (batch, end) = batches.last_mut().expect("there is one now");
        batch.push(z, *weight)?;
        *end = Position::of_episode(i);
    }
    Ok(batches)
}

/// A batch in memory, and where it ends.
pub(super) type Held = (Episodes, Position);

/// The source of episodes.
#[derive(Clone, Copy)]
pub(crate) enum Source<'a> {
    Logs(&'a Logs),
    Held(&'a Alphabet, &'a [Held]),
}

/// What has been read up to the end of a batch.
pub(crate) struct SeenSoFar<'a> {
    pub(crate) alphabet: &'a Alphabet,
    /// Where the next batch begins.
    pub(crate) position: Position,
}

impl Source<'_> {
    /// Calls `work` with all episodes from `begin` on, batch by batch, reading ahead during the
    /// work. Returns the alphabet of what was read and the number of episodes skipped.
    pub(crate) fn each_batch(
        &self,
        alphabet: Alphabet,
        begin: Position,
        weighting: Weighting,
        work: impl FnMut(SeenSoFar<'_>, &Episodes) -> Result<()> + Send,
    ) -> Result<(Alphabet, u64)> {
        self.each_batch_hashed(alphabet, begin, weighting, None, work)
    }

    /// The same, which also adds the hashes of episodes that are read from logs to a digest.
    pub(crate) fn each_batch_hashed(
        &self,
        alphabet: Alphabet,
        begin: Position,
        weighting: Weighting,
        digest: Option<&mut Digest>,
        mut work: impl FnMut(SeenSoFar<'_>, &Episodes) -> Result<()> + Send,
    ) -> Result<(Alphabet, u64)> {
        match self {
            Source::Held(alphabet, batches) => {
                let done = batches.iter().position(|(_, end)| *end == begin).map_or(0, |last| last + 1);
                for (batch, position) in &batches[done..] {
                    work(SeenSoFar { alphabet, position: *position }, batch)?;
                }
                Ok(((*alphabet).clone(), 0))
            }
            Source::Logs(logs) => {
                let mut reader = logs.open_at(alphabet, begin)?;
                // Two batches alternate: one is processed while the other is read.
                let (mut batch, mut next) = (empty_batch(weighting), empty_batch(weighting));
                let mut digest = digest.map(|digest| (digest, EpisodeKeys::default()));
                refill(&mut batch, &mut reader, &mut digest)?;
                while batch.len() > 0 {
                    let (alphabet, position) = (reader.alphabet().clone(), reader.position());
                    let work = || work(SeenSoFar { alphabet: &alphabet, position }, &batch);
                    let (read, worked) = rayon::join(|| refill(&mut next, &mut reader, &mut digest), work);
                    worked.and(read)?;
                    std::mem::swap(&mut batch, &mut next);
                }
                Ok((reader.alphabet().clone(), reader.skipped()))
            }
        }
    }
}

/// The batches of small logs, kept so that they need not be read again.
pub(super) struct BatchCache(Option<Vec<Held>>);

impl BatchCache {
    pub(crate) fn new() -> BatchCache {
        BatchCache(Some(Vec::new()))
    }

    pub(crate) fn add(&mut self, batch: &Episodes, end: Position) {
        match &mut self.0 {
            Some(batches) if batches.len() < MOST_KEPT => batches.push((batch.clone(), end)),
            kept => *kept = None,
        }
    }

    /// All batches, if there are few enough.
    pub(crate) fn all(&self) -> Option<&[Held]> {
        self.0.as_deref()
    }

    /// Keeps no batches from now on, because some were not seen.
    pub(crate) fn forget(&mut self) {
        self.0 = None;
    }
}
