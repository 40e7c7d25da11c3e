//! The episodes of refinement, over which it passes many times: in memory where they fit, otherwise
//! read again each time.

use crate::data::{Alphabet, HELD_OUT, Trajectory, is_held_out};
use crate::error::{Error, Result};
use crate::log::Logs;

/// Most steps for which episodes are kept in memory (about 100 MiB).
const MOST_KEPT: usize = 1 << 22;
/// Steps read at a time where episodes are not kept.
const BATCH: usize = 1 << 17;
/// With fewer episodes than this none is held out.
const LEAST_FOR_HOLDING_OUT: u64 = HELD_OUT;

/// The episodes of refinement.
pub(crate) struct Data<'a> {
    logs: &'a Logs,
    alphabet: Alphabet,
    kept: Option<Vec<Trajectory>>,
    pub(super) episodes: u64,
    pub(super) steps: u64,
}

impl<'a> Data<'a> {
    /// Logs whose symbols must all be in the alphabet.
    pub(crate) fn new(logs: &'a Logs, alphabet: &Alphabet) -> Result<Data<'a>> {
        Data::with_room(logs, alphabet, MOST_KEPT)
    }

    /// The same with at most `room` steps kept in memory.
    pub(super) fn with_room(logs: &'a Logs, alphabet: &Alphabet, room: usize) -> Result<Data<'a>> {
        let mut data = Data { logs, alphabet: alphabet.clone(), kept: None, episodes: 0, steps: 0 };
        let (mut kept, mut episodes, mut steps) = (Some(Vec::new()), 0, 0);
        let mut reader = logs.open(alphabet.clone())?;
        for z in reader.by_ref() {
            let z = z?;
            episodes += 1;
            steps += z.steps.len();
            if steps > room {
                kept = None;
            }
            kept.iter_mut().for_each(|kept| kept.push(z.clone()));
        }
        let read_alphabet = reader.alphabet();
        let unknown = read_alphabet.observations().get(alphabet.observations().len()).map(ToString::to_string);
        if let Some(name) = unknown.or_else(|| read_alphabet.actions().get(alphabet.actions().len()).cloned()) {
            let problem = format!("{name:?} is in the logs, but was not seen when the model was learned");
            return Err(Error::data(problem, "learn the model from these logs, then refine it"));
        }
        if steps == 0 {
            return Err(Error::NoSteps);
        }
        (data.kept, data.episodes, data.steps) = (kept, episodes, steps as u64);
        Ok(data)
    }

    /// Number of steps.
    pub(crate) fn steps(&self) -> u64 {
        self.steps
    }

    /// Calls `work` with all episodes in order, in blocks, with the number of the first of each
    /// block.
    pub(super) fn each(&self, mut work: impl FnMut(u64, &[Trajectory])) -> Result<()> {
        if let Some(kept) = &self.kept {
            work(0, kept);
            return Ok(());
        }
        let mut reader = self.logs.open(self.alphabet.clone())?;
        let (mut first, mut batch, mut steps) = (0, Vec::new(), 0);
        while let Some(z) = reader.next().transpose()? {
            steps += z.steps.len();
            batch.push(z);
            if steps >= BATCH {
                work(first, &batch);
                first += batch.len() as u64;
                steps = 0;
                batch.clear();
            }
        }
        work(first, &batch);
        Ok(())
    }

    /// Whether there are enough episodes to hold some out.
    pub(super) fn holds_out(&self) -> bool {
        self.episodes >= LEAST_FOR_HOLDING_OUT
    }

    /// Whether the `i`-th episode is held out.
    pub(super) fn is_held_out(&self, i: u64) -> bool {
        self.holds_out() && is_held_out(i)
    }
}
