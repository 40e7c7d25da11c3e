//! The pass before EM: which symbols follow each other, and the first estimate of a candidate's
//! parameters.

use rayon::prelude::*;

use super::data::Data;
use super::latent::{HardCounts, Latent};
use super::layout::{Layout, MODES, START, Seen};
use crate::data::{ActionObservation, Alphabet, Trajectory};
use crate::error::{Error, Result};
use crate::math::cluster;
use crate::model::{Candidate, Linear, Model, PredictiveState, Predictor, StateLayout};
use crate::rng::Seed;
use crate::system::{Filter, Track};

/// Steps whose predictive states are clustered.
const SAMPLE: u64 = 1 << 18;
/// Linear states are clipped to this bound: larger ones are numerical accidents.
const STATE_BOUND: f64 = 20.0;
/// Share of a free state's emissions that is distributed over all symbols before EM begins.
const SPREAD: f64 = 0.03;
/// Most pairs of action and observation where emissions depend on both: each has a number for each
/// state.
const MOST_PLACES: usize = 1 << 14;
/// Most entries of T and its counts: 1 GiB.
const LARGEST: usize = 1 << 27;

/// The result of one pass over the logs.
pub(super) struct FirstLook {
    /// Dimension of the states that are clustered.
    dim: usize,
    /// The symbols of the logs.
    pub(super) seen: Seen,
    /// The symbols that agree with each incomplete observation.
    pub(super) patterns: Vec<Vec<u32>>,
    /// A sample of episodes with the state of a model after each step, concatenated: a linear one, or a
    /// recurrent network.
    pub(super) sample: Vec<(Vec<ActionObservation>, Vec<f32>)>,
    /// States merged from the histories of the sample, and the counts of its paths, where there are
    /// such states.
    pub(super) merged: Option<(Layout, HardCounts)>,
}

impl FirstLook {
    /// Before the first episode.
    fn new(model: &Model, data: &Data<'_>) -> Result<FirstLook> {
        let dim = match model.predictor() {
            Predictor::Recurrent(net) => net.hidden(),
            _ => model.linear().map(Linear::rank).ok_or_else(|| {
                Error::data("the model is not linear, and only linear models can be refined", "learn a linear model first")
            })?,
        };
        Ok(FirstLook { dim, seen: Seen::new(model.alphabet()), patterns: data.patterns(), sample: Vec::new(), merged: None })
    }

    /// One pass over all episodes.
    pub(super) fn of(model: &Model, data: &Data<'_>) -> Result<FirstLook> {
        let mut first_look = FirstLook::new(model, data)?;
        data.each(|first, episodes| first_look.add(model, data, first, episodes))?;
        Ok(first_look)
    }

    /// Adds a block of episodes, whose first has the number `first`.
    fn add(&mut self, model: &Model, data: &Data<'_>, first: u64, episodes: &[Trajectory]) {
        let dim = self.dim;
        add_symbols(data, first, episodes, &mut self.seen);
        let every = data.steps.div_ceil(SAMPLE);
        let is_taken = |(i, _): &(u64, &Trajectory)| !data.is_held_out(*i) && i.is_multiple_of(every);
        let taken: Vec<&Trajectory> = (first..).zip(episodes).filter(is_taken).map(|(_, z)| z).collect();
        self.sample.par_extend(taken.into_par_iter().map_init(
            || PredictiveState::new(model),
            |filter, z| {
                filter.reset();
                let mut states = Vec::with_capacity(z.steps.len() * dim);
                for &ao in &z.steps {
                    filter.observe(ao);
                    states.extend(filter.state().iter().map(|x| x.clamp(-STATE_BOUND, STATE_BOUND) as f32));
                }
                (z.steps.clone(), states)
            },
        ));
    }

    /// The first estimate of a candidate; `seed` is that of its clusters.
    pub(super) fn latent(&self, model: &Model, candidate: Candidate, seed: Seed) -> Result<Latent> {
        let alphabet = model.alphabet();
        // At most as many states as there are steps to distinguish them.
        let steps: usize = self.sample.iter().map(|(steps, _)| steps.len()).sum();
        let states = candidate.states.min(steps.max(1));
        let actions = alphabet.actions().len();
        let (layout, hard) = match candidate.layout {
            StateLayout::Modes => {
                let layout = Layout::modes(alphabet, MODES).with_patterns(&self.patterns);
                check_size(layout.states, actions, layout.most_transitions(&self.seen.triples))?;
                let hard = self.modes_in_turn(&layout, seed.stream("modes"));
                (layout, hard)
            }
            StateLayout::Owned | StateLayout::Auto => {
                let layout = Layout::owned(alphabet, &self.seen.symbols, states).with_patterns(&self.patterns);
                check_size(layout.states, actions, layout.most_transitions(&self.seen.triples))?;
                let hard = self.owned(&layout, seed.stream("clusters"));
                (layout, hard)
            }
            StateLayout::Merged => {
                let (layout, hard) = self.merged.as_ref().ok_or_else(|| {
                    let problem = "no deterministic automaton of moderate size fits these logs";
                    Error::data(problem, "choose another `layout`")
                })?;
                return Ok(Latent::new(layout.clone(), actions, hard, &self.seen));
            }
            StateLayout::Free | StateLayout::Sensing | StateLayout::Dense => {
                check_size(states, actions, states.saturating_mul(states))?;
                if candidate.layout == StateLayout::Sensing {
                    check_places(alphabet)?;
                }
                match candidate.layout {
                    StateLayout::Free => self.free(model, 1, states, seed.stream("clusters")),
                    StateLayout::Sensing => self.free(model, actions, states, seed.stream("clusters")),
                    _ => self.dense(model, states, seed.stream("dense")),
                }
            }
        };
        Ok(Latent::new(layout, actions, &hard, &self.seen))
    }

    /// Predictive states clustered within each class of the last observation.
    fn owned(&self, layout: &Layout, seed: Seed) -> HardCounts {
        let dim = self.dim;
        let mut points: Vec<Vec<f32>> = vec![Vec::new(); self.seen.symbols.len()];
        for (steps, states) in &self.sample {
            for (ao, state) in steps.iter().zip(states.chunks_exact(dim)) {
                let o = ao.observation.index();
                if o < points.len() && layout.active[o].len() > 1 {
                    points[o].extend_from_slice(state);
                }
            }
        }
        let centres =
            |(o, points): (usize, &Vec<f32>)| cluster::centres(points, dim, layout.active[o].len(), seed.index(o as u64));
        let centres: Vec<Vec<f32>> = points.par_iter().enumerate().map(centres).collect();
        self.counts(layout, |ao, state| {
            let o = ao.observation.index();
            let known = centres.get(o).filter(|centres| !centres.is_empty());
            let cluster = known.map_or(0, |centres| cluster::nearest(centres, state));
            layout.active[o][cluster]
        })
    }

    /// Predictive states clustered regardless of the observation, except where it ends the episode.
    fn free(&self, model: &Model, sensors: usize, states: usize, seed: Seed) -> (Layout, HardCounts) {
        let (dim, alphabet) = (self.dim, model.alphabet());
        let ends = |ao: &ActionObservation| alphabet.observations().get(ao.observation.index()).is_some_and(|o| o.terminal);
        let mut points = Vec::new();
        for (steps, all) in &self.sample {
            let going_on = steps.iter().zip(all.chunks_exact(dim)).filter(|(ao, _)| !ends(ao));
            going_on.for_each(|(_, state)| points.extend_from_slice(state));
        }
        let centres = cluster::centres(&points, dim, states, seed);
        let found = (centres.len() / dim).max(1);
        // The states of symbols that end episodes come after all others.
        let mut last = found as u32;
        let end: Vec<u32> = alphabet
            .observations()
            .iter()
            .map(|symbol| {
                last += u32::from(symbol.terminal);
                last
            })
            .collect();
        let assign = |ao: &ActionObservation, state: &[f32]| match ends(ao) {
            true => end[ao.observation.index()],
            false => 1 + cluster::nearest(&centres, state) as u32,
        };
        let layout = self.free_layout(alphabet, sensors, found, |_, _| 1.0);
        let hard = self.counts(&layout, assign);
        self.spread(alphabet, sensors, found, hard)
    }

    /// Free states that may emit symbols as given, if they do not depend on actions.
    fn free_layout(&self, alphabet: &Alphabet, sensors: usize, states: usize, emitted: impl Fn(u32, usize) -> f64) -> Layout {
        let layout = match sensors {
            1 => Layout::free(alphabet, states, emitted),
            _ => Layout::sensing(alphabet, states),
        };
        layout.with_patterns(&self.patterns)
    }

    /// The layout of free states with these counts, and the counts with part of the emissions
    /// distributed over all symbols.
    pub(super) fn spread(
        &self,
        alphabet: &Alphabet,
        sensors: usize,
        states: usize,
        mut hard: HardCounts,
    ) -> (Layout, HardCounts) {
        let places = self.seen.symbols.len() + self.patterns.len();
        let ends = alphabet.observations().iter().filter(|symbol| symbol.terminal).count();
        let all = states + ends + 1;
        let mut totals = vec![0.0; sensors * all];
        hard.emissions.iter().for_each(|(&(s, place), n)| totals[place as usize / places * all + s as usize] += n);
        let total = |s: u32, place: usize| totals[place / places * all + s as usize];
        let seen: Vec<Vec<f64>> = (0..sensors).map(|sensor| self.seen.by_sensor(sensors, sensor)).collect();
        let ends = |o: usize| alphabet.observations()[o].terminal;
        let going_on = |seen: &Vec<f64>| -> f64 { (0..seen.len()).filter(|&o| !ends(o)).map(|o| seen[o]).sum() };
        let going_on: Vec<f64> = seen.iter().map(|seen| going_on(seen).max(f64::MIN_POSITIVE)).collect();
        let emitted = |s: u32, place: usize| {
            let (sensor, o) = (place / places, place % places);
            let counted = hard.emissions.get(&(s, place as u32)).copied().unwrap_or(0.0) / total(s, place).max(1.0);
            (1.0 - SPREAD) * counted + SPREAD * seen[sensor][o] / going_on[sensor]
        };
        let layout = self.free_layout(alphabet, sensors, states, emitted);
        let spread: Vec<((u32, u32), f64)> = layout
            .active
            .iter()
            .enumerate()
            .filter(|(place, _)| layout.symbol_of(*place).is_some_and(|o| !alphabet.observations()[o].terminal))
            .flat_map(|(place, active)| active.iter().map(move |&s| (s, place)))
            .map(|(s, place)| ((s, place as u32), emitted(s, place) * total(s, place)))
            .collect();
        hard.emissions.extend(spread);
        (layout, hard)
    }

    /// States drawn at random.
    fn dense(&self, model: &Model, states: usize, seed: Seed) -> (Layout, HardCounts) {
        let alphabet = model.alphabet();
        let mut rng = seed.rng();
        let layout = Layout::free(alphabet, states, |_, _| 1.0).with_patterns(&self.patterns);
        let mut hard = HardCounts::default();
        for (steps, _) in &self.sample {
            let drawn = steps.iter().map(|ao| &layout.active[ao.observation.index()]);
            let drawn: Vec<u32> = drawn.map(|active| active[rng.below(active.len())]).collect();
            hard.add(&layout, steps, &drawn);
        }
        (layout, hard)
    }

    /// Modes that every episode passes through in order, changing at random times. So they differ
    /// from the first round of EM on if something hidden drifts. Modes drawn at random all have the
    /// same parameters, and EM may never separate them.
    fn modes_in_turn(&self, layout: &Layout, seed: Seed) -> HardCounts {
        let mut rng = seed.rng();
        let mut counts = HardCounts::default();
        for (steps, _) in &self.sample {
            let changes: Vec<usize> = (1..MODES).map(|_| rng.below(steps.len().max(1))).collect();
            let states = steps.iter().enumerate().map(|(t, ao)| {
                let mode = changes.iter().filter(|&&change| change < t).count();
                let active = &layout.active[ao.observation.index()];
                active[mode.min(active.len() - 1)]
            });
            let states: Vec<u32> = states.collect();
            counts.add(layout, steps, &states);
        }
        counts
    }

    fn counts(&self, layout: &Layout, assign: impl Fn(&ActionObservation, &[f32]) -> u32) -> HardCounts {
        let mut counts = HardCounts::default();
        for (steps, all) in &self.sample {
            let states: Vec<u32> = steps.iter().zip(all.chunks_exact(self.dim)).map(|(ao, state)| assign(ao, state)).collect();
            counts.add(layout, steps, &states);
        }
        counts
    }
}

/// The symbols of logs.
pub(super) fn symbols(data: &Data<'_>, alphabet: &Alphabet) -> Result<Seen> {
    let mut seen = Seen::new(alphabet);
    data.each(|first, episodes| add_symbols(data, first, episodes, &mut seen))?;
    Ok(seen)
}

/// Adds the symbols of a block of episodes, whose first has the number `first`.
fn add_symbols(data: &Data<'_>, first: u64, episodes: &[Trajectory], seen: &mut Seen) {
    for (i, z) in (first..).zip(episodes) {
        let mut before = (seen.symbols.len() + data.incomplete()) as u32;
        for &ao in &z.steps {
            seen.triples.insert((ao.action.0, before, ao.observation.0));
            before = ao.observation.0;
            if !data.is_held_out(i) {
                seen.count(ao);
            }
        }
    }
}

impl HardCounts {
    /// Counts an episode whose steps lead to these states. States of incomplete observations are not
    /// known well enough to be counted.
    pub(super) fn add(&mut self, layout: &Layout, steps: &[ActionObservation], states: &[u32]) {
        let mut before = Some(START as u32);
        for (&ao, &s) in steps.iter().zip(states) {
            let place = layout.place(ao);
            let known = layout.symbol_of(place).is_some();
            if let (true, Some(before)) = (known, before) {
                *self.transitions.entry((ao.action.0, before, s)).or_default() += 1.0;
            }
            if known {
                *self.emissions.entry((s, place as u32)).or_default() += 1.0;
            }
            before = known.then_some(s);
        }
    }
}

/// Whether there are few enough pairs of action and observation for emissions that depend on both.
pub(super) fn may_sense(alphabet: &Alphabet) -> bool {
    alphabet.actions().len().saturating_mul(alphabet.observations().len()) <= MOST_PLACES
}

fn check_places(alphabet: &Alphabet) -> Result<()> {
    if may_sense(alphabet) {
        return Ok(());
    }
    let problem = format!("there are more than {MOST_PLACES} pairs of action and observation");
    Err(Error::data(problem, "choose another `layout`"))
}

/// An error if T would not fit in memory.
pub(super) fn check_size(states: usize, actions: usize, transitions: usize) -> Result<()> {
    let entries = actions.saturating_mul(transitions);
    if entries <= LARGEST {
        return Ok(());
    }
    let problem = format!("{states} states would need {} GiB for their transitions", (entries >> 27) + 1);
    Err(Error::data(problem, "choose fewer states"))
}
