//! Where learning gets its episodes from, batch by batch, as often as there are passes.

use crate::data::{ActionObservation, Alphabet, End, Trajectory};
use crate::error::Result;
use crate::log::{Logs, Reader};

/// Steps read before they are worked on: large enough to share among threads, small enough to stay in cache.
const BATCH_STEPS: usize = 1 << 14;
/// Batches up to which logs are kept in memory between passes (2 MiB).
const MOST_KEPT: usize = 16;

/// Episodes laid end to end, without their rewards.
#[derive(Clone, Debug, Default)]
pub(crate) struct Episodes {
    steps: Vec<ActionObservation>,
    ends: Vec<Ending>,
}

#[derive(Clone, Copy, Debug)]
struct Ending {
    /// Where the steps of the episode end.
    at: usize,
    how: End,
    weight: f64,
}

/// One of [`Episodes`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Episode<'a> {
    pub(crate) steps: &'a [ActionObservation],
    pub(crate) end: End,
    /// How often it counts.
    pub(crate) weight: f64,
}

impl Episodes {
    pub(crate) fn push(&mut self, z: &Trajectory, weight: f64) {
        self.steps.extend_from_slice(&z.steps);
        self.ends.push(Ending { at: self.steps.len(), how: z.end, weight });
    }

    /// The steps of all episodes.
    pub(crate) fn steps(&self) -> &[ActionObservation] {
        &self.steps
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Episode<'_>> {
        let mut first = 0;
        self.ends.iter().map(move |end| {
            let steps = &self.steps[std::mem::replace(&mut first, end.at)..end.at];
            Episode { steps, end: end.how, weight: end.weight }
        })
    }

    fn is_full(&self) -> bool {
        self.steps.len() >= BATCH_STEPS
    }

    /// Takes the next episodes in place of those it had.
    fn read(&mut self, reader: &mut Reader) -> Result<()> {
        self.steps.clear();
        self.ends.clear();
        while !self.is_full() {
            let Some(z) = reader.next() else { break };
            self.push(&z?, 1.0);
        }
        Ok(())
    }
}

/// The batches of weighted episodes.
pub(crate) fn batches(episodes: &[(Trajectory, f64)]) -> Vec<Episodes> {
    let mut batches = vec![Episodes::default()];
    for (z, weight) in episodes {
        if batches.last().is_some_and(Episodes::is_full) {
            batches.push(Episodes::default());
        }
        batches.last_mut().expect("there is one from the start").push(z, *weight);
    }
    batches
}

/// Where episodes come from.
#[derive(Clone, Copy)]
pub(crate) enum Source<'a> {
    Logs(&'a Logs),
    Held(&'a Alphabet, &'a [Episodes]),
}

impl Source<'_> {
    /// Gives `work` all episodes, batch by batch, reading ahead while it works. Returns the alphabet met and the number of
    /// episodes skipped.
    pub(crate) fn each_batch(
        &self,
        alphabet: Alphabet,
        mut work: impl FnMut(&Alphabet, &Episodes) + Send,
    ) -> Result<(Alphabet, u64)> {
        match self {
            Source::Held(alphabet, batches) => {
                batches.iter().for_each(|batch| work(alphabet, batch));
                Ok(((*alphabet).clone(), 0))
            }
            Source::Logs(logs) => {
                let mut reader = logs.open(alphabet)?;
                // Two batches take turns: one is worked on while the other is read.
                let (mut batch, mut next) = (Episodes::default(), Episodes::default());
                batch.read(&mut reader)?;
                while batch.len() > 0 {
                    let met = reader.alphabet().clone();
                    rayon::join(|| next.read(&mut reader), || work(&met, &batch)).0?;
                    std::mem::swap(&mut batch, &mut next);
                }
                Ok((reader.alphabet().clone(), reader.skipped()))
            }
        }
    }
}

/// The batches of small logs, kept so that they need not be read again.
pub(crate) struct Kept(Option<Vec<Episodes>>);

impl Kept {
    pub(crate) fn new() -> Kept {
        Kept(Some(Vec::new()))
    }

    pub(crate) fn add(&mut self, batch: &Episodes) {
        match &mut self.0 {
            Some(batches) if batches.len() < MOST_KEPT => batches.push(batch.clone()),
            kept => *kept = None,
        }
    }

    /// All batches, if they were few enough.
    pub(crate) fn all(&self) -> Option<&[Episodes]> {
        self.0.as_deref()
    }
}
