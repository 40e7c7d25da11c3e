//! Batches of episodes: what the passes of learning work on.

use super::overlap::Overlap;
use super::symbols::ActionObservation;
use super::trajectory::{End, Trajectory};
use crate::error::{Error, Result};

/// Steps in a batch: large enough to share among threads, small enough to stay in cache.
const BATCH_STEPS: usize = 1 << 14;

/// One of that many episodes is held out.
pub(crate) const HELD_OUT: u64 = 10;

/// Whether the `i`-th episode, counted from 0, is held out: the last of every ten.
pub(crate) fn is_held_out(i: u64) -> bool {
    i % HELD_OUT == HELD_OUT - 1
}

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
    /// Its weight in all sums.
    pub(crate) weight: f64,
    /// π(a|h) of its steps, where they are needed.
    pub(crate) probabilities: &'a [f64],
}

impl Episodes {
    /// An empty batch that keeps the probabilities of actions.
    pub(crate) fn with_probabilities() -> Episodes {
        Episodes { with_probabilities: true, ..Episodes::default() }
    }

    pub(crate) fn push(&mut self, z: &Trajectory, weight: f64) -> Result<()> {
        if self.with_probabilities && z.action_probabilities.len() != z.steps.len() {
            return Err(Error::data(
                "weighting by propensity needs the probability of every action, but an episode of the logs has none",
                "add a column action_prob, or learn without `weighting`",
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

    /// Whether it keeps the probabilities of actions.
    pub(crate) fn has_probabilities(&self) -> bool {
        self.with_probabilities
    }

    /// Sums over the probabilities of its actions.
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

    /// Whether it has at least `BATCH_STEPS` steps.
    pub(crate) fn is_full(&self) -> bool {
        self.steps.len() >= BATCH_STEPS
    }
}
