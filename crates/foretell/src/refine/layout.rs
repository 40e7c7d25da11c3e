//! Which latent states there are, and the symbols that each can emit.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::data::{ActionObservation, Alphabet, Observation};

/// Modes of the hidden-mode layout.
pub(super) const MODES: usize = 2;
/// Two symbols in sequence: the action between them, then their indices. The start of an episode
/// has the index after the last.
pub(super) type Triple = (u32, u32, u32);

/// What was seen in logs.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// All pairs of symbols in sequence, with the action between them.
    pub(super) triples: FxHashSet<Triple>,
    /// How often each symbol was seen in training episodes.
    pub(super) symbols: Vec<f64>,
    /// The same after each action: of (a, o).
    pub(super) after: FxHashMap<(u32, u32), f64>,
}

impl Seen {
    /// Nothing yet.
    pub(super) fn new(alphabet: &Alphabet) -> Seen {
        Seen { symbols: vec![0.0; alphabet.observations().len()], ..Seen::default() }
    }

    /// Counts a step of a training episode. Incomplete observations, which have the indices after
    /// those of symbols, are not counted.
    pub(super) fn count(&mut self, ao: ActionObservation) {
        if let Some(symbol) = self.symbols.get_mut(ao.observation.index()) {
            *symbol += 1.0;
            *self.after.entry((ao.action.0, ao.observation.0)).or_default() += 1.0;
        }
    }

    /// The share of each symbol.
    pub(super) fn shares(&self) -> Vec<f64> {
        let total: f64 = self.symbols.iter().map(|n| n + 0.5).sum();
        self.symbols.iter().map(|n| (n + 0.5) / total).collect()
    }

    /// How often each symbol was seen with a sensor of a layout: after its action, if there are several.
    pub(super) fn by_sensor(&self, sensors: usize, sensor: usize) -> Vec<f64> {
        if sensors == 1 {
            return self.symbols.clone();
        }
        let after = |o: u32| self.after.get(&(sensor as u32, o)).copied().unwrap_or(0.0);
        (0..self.symbols.len() as u32).map(after).collect()
    }

    /// For each place of a layout the share of its symbol, among those after the action of its sensor
    /// if there are several; 0 for incomplete observations.
    pub(super) fn emitted(&self, layout: &Layout) -> Vec<f64> {
        let shares = self.shares();
        let of_action = |sensor: usize| -> Vec<f64> {
            let seen = self.by_sensor(layout.sensors, sensor);
            let total = 1.0 + seen.iter().sum::<f64>();
            seen.iter().zip(&shares).map(|(n, share)| (n + share) / total).collect()
        };
        let incomplete = vec![0.0; layout.patterns.len()];
        let of_sensor = |sensor: usize| if layout.sensors == 1 { shares.clone() } else { of_action(sensor) };
        (0..layout.sensors).flat_map(|sensor| [of_sensor(sensor), incomplete.clone()].concat()).collect()
    }
}

/// The state before the first step.
pub(super) const START: usize = 0;
/// A state is not active for a symbol with a smaller share of its emissions.
const ACTIVE: f64 = 1e-3;

/// States, and the symbols they can emit. State 0 is the start; each symbol that ends an episode
/// has one state.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) states: usize,
    pub(super) ownership: Ownership,
    /// The number of actions, if what a state emits depends on the action that led to it; 1 if it
    /// does not.
    pub(super) sensors: usize,
    /// For each sensor: for each symbol the states that can emit it, ascending; then for each
    /// incomplete observation those that can emit a symbol that agrees with it. Last, the start.
    pub(super) active: Vec<Vec<u32>>,
    /// The symbols that agree with each incomplete observation.
    pub(super) patterns: Vec<Vec<u32>>,
}

/// Which states emit which symbols.
#[derive(Clone, Debug)]
pub(super) enum Ownership {
    /// Each state belongs to one symbol.
    Owned {
        /// For each state its symbol.
        owner: Vec<u32>,
    },
    /// Each symbol has one state for each mode. The next symbol depends on both, the next mode only
    /// on the mode.
    Modes {
        /// For each state its symbol.
        owner: Vec<u32>,
        /// For each symbol whether it ends the episode: then it has a single state.
        ends: Vec<bool>,
        modes: usize,
    },
    /// A state may emit several symbols.
    Free,
}

impl Layout {
    /// States owned by symbols: their number is proportional to the square root of the symbol's
    /// count, about `states` in all and at least one each.
    pub(super) fn owned(alphabet: &Alphabet, seen: &[f64], states: usize) -> Layout {
        let ends = |o: usize| alphabet.is_terminal(Observation(o as u32));
        let going_on = || (0..seen.len()).filter(|&o| !ends(o));
        let share = |scale: f64, o: usize| ((scale * (seen[o] + 1.0).sqrt()).round() as usize).max(1);
        // Bisection for the scale that gives the wanted number of states.
        let (mut low, mut high) = (0.0, states as f64);
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            let all: usize = going_on().map(|o| share(middle, o)).sum();
            if all > states { high = middle } else { low = middle }
        }
        let sizes: Vec<usize> = (0..seen.len()).map(|o| if ends(o) { 1 } else { share(low, o) }).collect();
        Layout::of_sizes(&sizes)
    }

    /// So many states owned by each symbol.
    pub(super) fn of_sizes(sizes: &[usize]) -> Layout {
        let (active, owner) = consecutive(sizes);
        Layout { states: owner.len(), active, ownership: Ownership::Owned { owner }, sensors: 1, patterns: Vec::new() }
    }

    /// Owned states with these active sets; `None` if there can be no such states.
    pub(super) fn owned_of_sets(active: Vec<Vec<u32>>) -> Option<Layout> {
        let sizes: Vec<usize> = active.iter().take(active.len().checked_sub(1)?).map(Vec::len).collect();
        Some(Layout::of_sizes(&sizes)).filter(|layout| layout.active == active)
    }

    /// Free states with these active sets for each of the sensors; `None` if there can be no such
    /// states.
    pub(super) fn free_of_sets(active: Vec<Vec<u32>>, sensors: usize) -> Option<Layout> {
        // Every state but the start can emit something.
        let states = active.iter().flatten().max()?.checked_add(1)?;
        if states as usize > active.iter().map(Vec::len).sum() {
            return None;
        }
        let is_ascending = |set: &Vec<u32>| set.is_sorted_by(|x, y| x < y) && !set.is_empty();
        let is_start = |set: &Vec<u32>| set[..] == [START as u32];
        let (start, others) = active.split_last()?;
        let is_right = is_start(start) && others.iter().all(|set| is_ascending(set) && set[0] != START as u32);
        let (states, ownership) = (states as usize, Ownership::Free);
        is_right.then_some(Layout { states, active, ownership, sensors, patterns: Vec::new() })
    }

    /// One state for each symbol and mode.
    pub(super) fn modes(alphabet: &Alphabet, modes: usize) -> Layout {
        let ends: Vec<bool> = alphabet.observations().iter().map(|o| o.terminal).collect();
        let sizes: Vec<usize> = ends.iter().map(|&ends| if ends { 1 } else { modes }).collect();
        let (active, owner) = consecutive(&sizes);
        let (states, ownership) = (owner.len(), Ownership::Modes { owner, ends, modes });
        Layout { states, active, ownership, sensors: 1, patterns: Vec::new() }
    }

    /// `states` states, of which s emits o if `emitted(s, o)`, the share of o in its emissions, is
    /// not too small; then one state for each symbol that ends the episode.
    pub(super) fn free(alphabet: &Alphabet, states: usize, emitted: impl Fn(u32, usize) -> f64) -> Layout {
        let mut next = states as u32 + 1;
        let mut active = Vec::with_capacity(alphabet.observations().len() + 1);
        let everyone: Vec<u32> = (1..=states as u32).collect();
        for (o, symbol) in alphabet.observations().iter().enumerate() {
            if symbol.terminal {
                active.push(vec![next]);
                next += 1;
                continue;
            }
            let mut set: Vec<u32> = everyone.iter().copied().filter(|&s| emitted(s, o) > ACTIVE).collect();
            if set.is_empty() {
                let most = everyone.iter().copied().max_by(|&x, &y| emitted(x, o).total_cmp(&emitted(y, o)));
                set.extend(most);
            }
            // A set of more than half of the states is extended to all of them, so that such sets
            // share their blocks.
            active.push(if 2 * set.len() > states { everyone.clone() } else { set });
        }
        active.push(vec![START as u32]);
        Layout { states: next as usize, active, ownership: Ownership::Free, sensors: 1, patterns: Vec::new() }
    }

    /// `states` states, each of which may emit any symbol, as the action that led to it has it; then
    /// one state for each symbol that ends the episode.
    pub(super) fn sensing(alphabet: &Alphabet, states: usize) -> Layout {
        let sensors = alphabet.actions().len();
        let Layout { states, active, ownership, .. } = Layout::free(alphabet, states, |_, _| 1.0);
        let (start, of_one) = active.split_last().expect("the start has a set of its own");
        let mut active = vec![of_one; sensors].concat();
        active.push(start.clone());
        Layout { states, active, ownership, sensors, patterns: Vec::new() }
    }

    /// With incomplete observations, given by the symbols that agree with each.
    pub(super) fn with_patterns(mut self, patterns: &[Vec<u32>]) -> Layout {
        let (width, symbols) = (self.places_of_sensor(), self.symbols());
        let start = self.active.pop().unwrap_or_default();
        let mut active = Vec::with_capacity(self.sensors * (symbols + patterns.len()) + 1);
        for of_sensor in self.active.chunks_exact(width) {
            active.extend_from_slice(&of_sensor[..symbols]);
            for pattern in patterns {
                let mut states: Vec<u32> = pattern.iter().flat_map(|&o| of_sensor[o as usize].iter().copied()).collect();
                states.sort_unstable();
                states.dedup();
                active.push(states);
            }
        }
        active.push(start);
        Layout { active, patterns: patterns.to_vec(), ..self }
    }

    /// Number of symbols.
    pub(super) fn symbols(&self) -> usize {
        self.places_of_sensor() - self.patterns.len()
    }

    /// Number of symbols and incomplete observations: the places of a sensor.
    pub(super) fn places_of_sensor(&self) -> usize {
        (self.active.len() - 1) / self.sensors
    }

    /// The place of a step's observation among active sets and emissions.
    pub(super) fn place(&self, ao: ActionObservation) -> usize {
        self.place_of(ao.action.index(), ao.observation.index())
    }

    /// The place of an observation after an action.
    pub(super) fn place_of(&self, action: usize, observation: usize) -> usize {
        if self.sensors == 1 { observation } else { action * self.places_of_sensor() + observation }
    }

    /// The place of the start, after all others.
    pub(super) fn start(&self) -> usize {
        self.active.len() - 1
    }

    /// Where the places of each sensor begin.
    pub(super) fn sensor_places(&self) -> impl Iterator<Item = usize> + use<> {
        let width = self.places_of_sensor();
        (0..self.sensors).map(move |sensor| sensor * width)
    }

    /// The symbol of a place; `None` for the start and incomplete observations.
    pub(super) fn symbol_of(&self, place: usize) -> Option<usize> {
        Some(place % self.places_of_sensor()).filter(|&o| place < self.start() && o < self.symbols())
    }

    /// Upper bound on the number of transitions between states whose symbols were seen in sequence.
    pub(super) fn most_transitions(&self, triples: &FxHashSet<Triple>) -> usize {
        let pairs: FxHashSet<(u32, u32)> = triples.iter().map(|&(_, o, next)| (o, next)).collect();
        let size = |o: u32| self.active[o as usize].len();
        let total = pairs.iter().map(|&(o, next)| size(o).saturating_mul(size(next))).fold(0usize, usize::saturating_add);
        total.min(self.states.saturating_mul(self.states))
    }

    /// The symbol that owns a state; the start has the index after the last.
    pub(super) fn owner_of(&self, s: usize) -> usize {
        match &self.ownership {
            Ownership::Owned { owner } | Ownership::Modes { owner, .. } => owner[s] as usize,
            Ownership::Free => self.start(),
        }
    }

    /// The mode of a state; `None` for the start and for the ends.
    pub(super) fn mode_of(&self, s: usize) -> Option<usize> {
        match &self.ownership {
            Ownership::Modes { owner, ends, .. } if s != START && !ends[owner[s] as usize] => {
                Some(s - self.active[owner[s] as usize][0] as usize)
            }
            _ => None,
        }
    }
}

/// Consecutive states for each symbol, after the start: the active sets, and the owner of each
/// state.
fn consecutive(sizes: &[usize]) -> (Vec<Vec<u32>>, Vec<u32>) {
    let mut owner = vec![sizes.len() as u32];
    let mut active = Vec::with_capacity(sizes.len() + 1);
    for (o, &size) in sizes.iter().enumerate() {
        let first = owner.len() as u32;
        active.push((first..first + size as u32).collect());
        owner.resize(owner.len() + size, o as u32);
    }
    active.push(vec![START as u32]);
    (active, owner)
}
