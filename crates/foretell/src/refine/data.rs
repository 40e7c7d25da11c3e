//! The episodes of refinement, over which it passes many times: in memory where they fit, otherwise
//! read again each time.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::data::{Alphabet, HELD_OUT, Observation, ObservationSymbol, Trajectory, is_held_out};
use crate::error::{Error, Result};
use crate::log::Logs;

/// Most steps for which episodes are kept in memory (about 100 MiB).
const MOST_KEPT: usize = 1 << 22;
/// Steps read at a time where episodes are not kept.
const BATCH: usize = 1 << 17;
/// With fewer episodes than this none is held out.
const LEAST_FOR_HOLDING_OUT: u64 = HELD_OUT;

/// The name of an observation of which nothing is known.
const UNKNOWN: &str = "?";

/// What is known of the missing observation of a step. Parts that agree with no symbol tell
/// nothing.
fn pattern(z: &Trajectory, t: usize, alphabet: &Alphabet) -> Arc<str> {
    let partial = z.about.partial.iter().find(|(step, _)| *step as usize == t);
    let partial = partial.filter(|(_, name)| !alphabet.agreeing(name).is_empty());
    partial.map_or_else(|| UNKNOWN.into(), |(_, name)| name.clone())
}

/// Numbers the incomplete observations of an episode after the symbols.
fn number_missing(names: &[Arc<str>], symbols: usize, z: &mut Trajectory) {
    for t in 0..z.steps.len() {
        if z.steps[t].observation.is_missing() {
            let partial = z.about.partial.iter().find(|(step, _)| *step as usize == t).map(|(_, name)| name);
            let at = partial.and_then(|name| names.iter().position(|other| other == name));
            let at = at.or_else(|| names.iter().position(|name| &**name == UNKNOWN)).unwrap_or_default();
            z.steps[t].observation = Observation((symbols + at) as u32);
        }
    }
}

/// The episodes of refinement.
pub(crate) struct Data<'a> {
    logs: &'a Logs,
    alphabet: Alphabet,
    /// Names of observations of which only some parts are known, in order; none of them is `?` for
    /// an observation that is missing wholly.
    names: Vec<Arc<str>>,
    /// For each episode whether it is held out, where episodes belong to groups: a group is held out
    /// as a whole.
    held: Option<Vec<bool>>,
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
        let mut data =
            Data { logs, alphabet: alphabet.clone(), names: Vec::new(), held: None, kept: None, episodes: 0, steps: 0 };
        let (mut kept, mut episodes, mut steps) = (Some(Vec::new()), 0, 0);
        let (mut groups, mut units): (FxHashMap<Arc<str>, u64>, Vec<Option<u64>>) = Default::default();
        let mut reader = logs.open(alphabet.clone())?;
        for z in reader.by_ref() {
            let mut z = z?;
            data.name_missing(&mut z);
            units.push(z.about.group.as_ref().map(|group| {
                let next = groups.len() as u64;
                *groups.entry(group.clone()).or_insert(next)
            }));
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
        if groups.len() as u64 >= LEAST_FOR_HOLDING_OUT {
            data.held = Some((0..).zip(units).map(|(i, unit)| is_held_out(unit.unwrap_or(i))).collect());
        }
        (data.kept, data.episodes, data.steps) = (kept, episodes, steps as u64);
        Ok(data)
    }

    /// The symbols that agree with each observation that is not wholly known. Steps refer to the
    /// i-th of them by the index after the last symbol, plus i.
    pub(super) fn patterns(&self) -> Vec<Vec<u32>> {
        let agreeing = |name: &Arc<str>| -> Vec<u32> {
            let going_on = |(_, symbol): &(u32, &ObservationSymbol)| !symbol.terminal;
            match &**name {
                UNKNOWN => (0..).zip(self.alphabet.observations()).filter(going_on).map(|(o, _)| o).collect(),
                name => self.alphabet.agreeing(name).into_iter().map(|o| o.0).collect(),
            }
        };
        self.names.iter().map(agreeing).collect()
    }

    /// Number of incomplete observations.
    pub(super) fn incomplete(&self) -> usize {
        self.names.len()
    }

    /// Adds new names of incomplete observations, and numbers them.
    fn name_missing(&mut self, z: &mut Trajectory) {
        let missing = z.steps.iter().enumerate().filter(|(_, ao)| ao.observation.is_missing());
        for (t, _) in missing {
            let name = pattern(z, t, &self.alphabet);
            if !self.names.contains(&name) {
                self.names.push(name);
            }
        }
        number_missing(&self.names, self.alphabet.observations().len(), z);
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
        while let Some(mut z) = reader.next().transpose()? {
            number_missing(&self.names, self.alphabet.observations().len(), &mut z);
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
        match &self.held {
            Some(held) => held.get(i as usize).copied().unwrap_or(false),
            None => self.holds_out() && is_held_out(i),
        }
    }
}
