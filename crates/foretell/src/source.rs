//! Where learning gets its episodes from, batch by batch, as often as there are passes.

use crate::data::{ActionObservation, Alphabet, End, Trajectory};
use crate::error::{Error, Result};
use crate::log::{Logs, Overlap, Position, Reader};
use crate::params::Weighting;

/// Steps read before they are worked on: large enough to share among threads, small enough to stay in cache.
const BATCH_STEPS: usize = 1 << 14;
/// Batches up to which logs are kept in memory between passes (2 MiB).
const MOST_KEPT: usize = 16;

/// Episodes laid end to end, without their rewards.
#[derive(Clone, Debug, Default)]
pub(crate) struct Episodes {
    with_probabilities: bool,
    steps: Vec<ActionObservation>,
    /// π(a|h) of each step, or nothing.
    probabilities: Vec<f64>,
    overlap: Overlap,
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
    /// π(a|h) of its steps, where they are needed.
    pub(crate) probabilities: &'a [f64],
}

impl Episodes {
    /// To be filled; with the probabilities of actions where `weighting` needs them.
    pub(crate) fn new(weighting: Weighting) -> Episodes {
        Episodes { with_probabilities: weighting != Weighting::None, ..Episodes::default() }
    }

    pub(crate) fn push(&mut self, z: &Trajectory, weight: f64) -> Result<()> {
        if self.with_probabilities && z.action_probabilities.len() != z.steps.len() {
            return Err(Error::data(
                "weighting by propensity needs the probability of every action, and an episode of the logs has none",
                "add a column action_prob, or learn without --weighting",
            ));
        }
        self.overlap.add(z);
        self.push_episode(Episode { steps: &z.steps, end: z.end, weight, probabilities: &z.action_probabilities });
        Ok(())
    }

    /// Adds an episode of another batch.
    pub(crate) fn push_episode(&mut self, z: Episode<'_>) {
        self.steps.extend_from_slice(z.steps);
        if self.with_probabilities {
            self.probabilities.extend_from_slice(z.probabilities);
        }
        self.ends.push(Ending { at: self.steps.len(), how: z.end, weight: z.weight });
    }

    /// The steps of all episodes.
    pub(crate) fn steps(&self) -> &[ActionObservation] {
        &self.steps
    }

    /// π(a|h) of all steps, where they are needed.
    pub(crate) fn probabilities(&self) -> &[f64] {
        &self.probabilities
    }

    /// How likely its actions were.
    pub(crate) fn overlap(&self) -> &Overlap {
        &self.overlap
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Episode<'_>> {
        let mut first = 0;
        self.ends.iter().map(move |end| {
            let range = std::mem::replace(&mut first, end.at)..end.at;
            let probabilities = self.probabilities.get(range.clone()).unwrap_or_default();
            Episode { steps: &self.steps[range], end: end.how, weight: end.weight, probabilities }
        })
    }

    pub(crate) fn clear(&mut self) {
        self.steps.clear();
        self.probabilities.clear();
        self.overlap = Overlap::default();
        self.ends.clear();
    }

    /// Whether it has as many steps as are worked on at once.
    pub(crate) fn is_full(&self) -> bool {
        self.steps.len() >= BATCH_STEPS
    }

    /// Takes the next episodes in place of those it had.
    fn read(&mut self, reader: &mut Reader) -> Result<()> {
        self.clear();
        while !self.is_full() {
            let Some(z) = reader.next() else { break };
            self.push(&z?, 1.0)?;
        }
        Ok(())
    }
}

/// The batches of weighted episodes.
pub(crate) fn batches(episodes: &[(Trajectory, f64)], weighting: Weighting) -> Result<Vec<Held>> {
    let mut batches: Vec<Held> = Vec::new();
    for (i, (z, weight)) in (1..).zip(episodes) {
        if batches.last().is_none_or(|(batch, _)| batch.is_full()) {
            batches.push((Episodes::new(weighting), Position::default()));
        }
        let (batch, end) = batches.last_mut().expect("there is one now");
        batch.push(z, *weight)?;
        *end = Position::of_episode(i);
    }
    Ok(batches)
}

/// A batch in memory, and where it ends.
pub(crate) type Held = (Episodes, Position);

/// Where episodes come from.
#[derive(Clone, Copy)]
pub(crate) enum Source<'a> {
    Logs(&'a Logs),
    Held(&'a Alphabet, &'a [Held]),
}

/// What was met up to the end of a batch.
pub(crate) struct Met<'a> {
    pub(crate) alphabet: &'a Alphabet,
    /// Where the next batch begins.
    pub(crate) position: Position,
}

impl Source<'_> {
    /// Gives `work` all episodes from `begin` on, batch by batch, reading ahead while it works. Returns the alphabet met and the
    /// number of episodes skipped.
    pub(crate) fn each_batch(
        &self,
        alphabet: Alphabet,
        begin: Position,
        weighting: Weighting,
        mut work: impl FnMut(Met<'_>, &Episodes) -> Result<()> + Send,
    ) -> Result<(Alphabet, u64)> {
        match self {
            Source::Held(alphabet, batches) => {
                let done = batches.iter().position(|(_, end)| *end == begin).map_or(0, |last| last + 1);
                for (batch, position) in &batches[done..] {
                    work(Met { alphabet, position: *position }, batch)?;
                }
                Ok(((*alphabet).clone(), 0))
            }
            Source::Logs(logs) => {
                let mut reader = logs.open_at(alphabet, begin)?;
                // Two batches take turns: one is worked on while the other is read.
                let (mut batch, mut next) = (Episodes::new(weighting), Episodes::new(weighting));
                batch.read(&mut reader)?;
                while batch.len() > 0 {
                    let (alphabet, position) = (reader.alphabet().clone(), reader.position());
                    let work = || work(Met { alphabet: &alphabet, position }, &batch);
                    let (read, worked) = rayon::join(|| next.read(&mut reader), work);
                    worked.and(read)?;
                    std::mem::swap(&mut batch, &mut next);
                }
                Ok((reader.alphabet().clone(), reader.skipped()))
            }
        }
    }
}

/// The batches of small logs, kept so that they need not be read again.
pub(crate) struct Kept(Option<Vec<Held>>);

impl Kept {
    pub(crate) fn new() -> Kept {
        Kept(Some(Vec::new()))
    }

    pub(crate) fn add(&mut self, batch: &Episodes, end: Position) {
        match &mut self.0 {
            Some(batches) if batches.len() < MOST_KEPT => batches.push((batch.clone(), end)),
            kept => *kept = None,
        }
    }

    /// All batches, if they were few enough.
    pub(crate) fn all(&self) -> Option<&[Held]> {
        self.0.as_deref()
    }

    /// From now on none: some were not seen.
    pub(crate) fn forget(&mut self) {
        self.0 = None;
    }
}
