//! A hidden Markov model driven by actions, fitted by EM that visits only the states that can emit
//! the observations seen.
//!
//! State s ~ T(· | a, s₋), observation o ~ E(· | s). Only the states of act(o) = {s : E(o | s) > 0}
//! can have emitted o, so a step o → o′ costs |act(o)|·|act(o′)| operations. The start of an
//! episode is a state of its own that is never entered again.
//!
//! EM finds a maximum a posteriori estimate. T(· | a, s) has a Dirichlet prior around the row of s
//! pooled over actions, which is itself backed off to the frequency of each state. E(· | s) has one
//! around the frequency of symbols. Both priors are fixed beforehand, so no round can lower the
//! penalised likelihood.

use rustc_hash::{FxHashMap, FxHashSet};

use super::layout::{Layout, START, Seen, Triple};
use crate::data::Alphabet;

/// Share of that prior that goes to all states by their frequency, whatever followed s.
const BACK_OFF: f64 = 0.1;
/// Up to this many entries T is dense; above that, only states whose observations were seen in
/// sequence have entries.
const LARGEST_DENSE: usize = 1 << 22;

/// Numbers that are processed together: vectors of states are padded to whole groups.
pub(super) const GROUP: usize = 4;

/// Counts of one assignment of states to steps.
#[derive(Debug, Default)]
pub(super) struct HardCounts {
    /// (a, s, s′)
    pub(super) transitions: FxHashMap<(u32, u32, u32), f64>,
    /// (s, place of the observation)
    pub(super) emissions: FxHashMap<(u32, u32), f64>,
}

#[derive(Clone, Debug)]
pub(super) struct Latent {
    pub(super) layout: Layout,
    pub(super) actions: usize,
    /// Distinct active sets, and the index of the one of each symbol (and of the start).
    pub(super) sets: Vec<Vec<u32>>,
    pub(super) set_of: Vec<u32>,
    /// E(o | s) for each place of an observation, along its active set.
    pub(super) emissions: Vec<Vec<f64>>,
    /// The same with zeros up to the padded length of the set.
    pub(super) padded_emissions: Vec<Vec<f64>>,
    /// Columns of the row of each state, the same for all actions.
    pub(super) columns: Vec<u32>,
    /// Where the row of each state begins in `columns`.
    pub(super) starts: Vec<usize>,
    /// Prior mean of each row of T.
    pub(super) prior: Vec<f64>,
    /// T(s′ | a, s), by action, along `columns`.
    pub(super) t: Vec<f64>,
    /// P(k′ | k), where there are modes; last, the first mode of an episode.
    pub(super) switches: Vec<f64>,
    /// Share of each symbol.
    pub(super) unigram: Vec<f64>,
    /// The prior mean of emissions: the same for each place of an observation.
    pub(super) emitted: Vec<f64>,
    pub(super) blocks: Vec<Block>,
    pub(super) block_of: FxHashMap<(u32, u32, u32), u32>,
    /// Entries of all blocks.
    pub(super) entries: usize,
}

/// T(· | a, ·) between two active sets, by rows.
#[derive(Clone, Debug)]
pub(super) struct Block {
    /// The index of each entry in `Latent::t`.
    pub(super) places: Vec<u32>,
    /// Number of entries of a row, without padding.
    pub(super) used: usize,
    /// The entries, with zeros up to the padded length of the set.
    pub(super) t: Vec<f64>,
    pub(super) width: usize,
    /// Index of its first count.
    pub(super) first: usize,
}

impl Latent {
    /// From the counts of a first assignment.
    pub(super) fn new(layout: Layout, actions: usize, hard: &HardCounts, seen: &Seen) -> Latent {
        let mut sets: Vec<Vec<u32>> = Vec::new();
        let mut known: FxHashMap<&[u32], u32> = FxHashMap::default();
        let mut set_of = Vec::with_capacity(layout.active.len());
        for active in &layout.active {
            let id = *known.entry(active).or_insert_with(|| {
                sets.push(active.clone());
                sets.len() as u32 - 1
            });
            set_of.push(id);
        }
        let (starts, columns) = support(&layout, actions, &seen.triples);
        let emitted = seen.emitted(&layout);
        let mut latent = Latent {
            emissions: vec![Vec::new(); layout.active.len()],
            padded_emissions: Vec::new(),
            prior: vec![0.0; columns.len()],
            t: vec![0.0; actions * columns.len()],
            layout,
            actions,
            sets,
            set_of,
            columns,
            starts,
            switches: Vec::new(),
            unigram: seen.shares(),
            emitted,
            blocks: Vec::new(),
            block_of: FxHashMap::default(),
            entries: 0,
        };
        latent.find_blocks(&seen.triples);
        latent.set_prior(hard);
        latent.start_from(hard);
        latent
    }

    fn find_blocks(&mut self, triples: &FxHashSet<Triple>) {
        // The sets of a symbol are the same for all sensors, and the start comes after all places.
        let places = self.layout.places_of_sensor();
        let set = |o: u32| self.set_of[if o as usize == places { self.layout.start() } else { o as usize }];
        let mut keys: Vec<_> = triples.iter().map(|&(a, o, next)| (a, set(o), set(next))).collect();
        keys.sort_unstable();
        keys.dedup();
        for (i, &(a, from, to)) in keys.iter().enumerate() {
            let (from, to) = (&self.sets[from as usize], &self.sets[to as usize]);
            let place = |s: u32, next: u32| {
                let place = self.place(s, next).expect("a row has every column that a block of it needs");
                (a as usize * self.columns.len() + place) as u32
            };
            let places: Vec<u32> =
                from.iter().flat_map(|&s| to.iter().map(move |&next| (s, next))).map(|(s, x)| place(s, x)).collect();
            let (used, width) = (to.len(), padded(to.len()));
            let block = Block { t: vec![0.0; from.len() * width], width, used, first: self.entries, places };
            self.entries += block.t.len();
            self.blocks.push(block);
            self.block_of.insert(keys[i], i as u32);
        }
    }

    /// The index of T(s′ | a, s) in the rows of an action.
    fn place(&self, s: u32, next: u32) -> Option<usize> {
        let (first, end) = (self.starts[s as usize], self.starts[s as usize + 1]);
        self.columns[first..end].binary_search(&next).ok().map(|i| first + i)
    }

    /// The rows pooled over actions, backed off to the frequency of each state.
    fn set_prior(&mut self, hard: &HardCounts) {
        let mut frequency = vec![0.5; self.layout.states];
        frequency[START] = 0.0;
        for (&(_, s, next), n) in sorted(&hard.transitions) {
            frequency[next as usize] += n;
            // A step may have been assigned to a state that hardly emits its symbol. T then has no
            // entry for it.
            if let Some(place) = self.place(s, next) {
                self.prior[place] += n;
            }
        }
        for s in 0..self.layout.states {
            let row = self.starts[s]..self.starts[s + 1];
            let (pooled, columns) = (&mut self.prior[row.clone()], &self.columns[row]);
            let sum: f64 = pooled.iter().sum();
            let all: f64 = columns.iter().map(|&j| frequency[j as usize]).sum();
            let share = if sum > 0.0 { BACK_OFF } else { 1.0 };
            for (p, &j) in pooled.iter_mut().zip(columns) {
                *p = share * frequency[j as usize] / all + if sum > 0.0 { (1.0 - share) * *p / sum } else { 0.0 };
            }
        }
    }

    fn start_from(&mut self, hard: &HardCounts) {
        let mut counts = vec![0.0; self.t.len()];
        for (&(a, s, next), n) in sorted(&hard.transitions) {
            if let Some(place) = self.place(s, next) {
                counts[a as usize * self.columns.len() + place] += n;
            }
        }
        self.maximise_transitions(counts);
        let emitted = |(o, active): (usize, &Vec<u32>)| -> Vec<f64> {
            active.iter().map(|&s| hard.emissions.get(&(s, o as u32)).copied().unwrap_or(0.0)).collect()
        };
        let counts: Vec<Vec<f64>> = self.layout.active.iter().enumerate().map(emitted).collect();
        self.maximise_emissions(&counts);
        self.pack();
    }

    /// T and E.
    #[cfg(test)]
    pub(super) fn parameters(&self) -> (&[f64], &[Vec<f64>]) {
        (&self.t, &self.emissions)
    }

    /// Copies T into the blocks, and E into its padded form.
    pub(super) fn pack(&mut self) {
        for Block { places, used, t, width, .. } in &mut self.blocks {
            for (t, places) in t.chunks_exact_mut(*width).zip(places.chunks_exact(*used)) {
                t.iter_mut().zip(places).for_each(|(t, &place)| *t = self.t[place as usize]);
            }
        }
        self.padded_emissions = self.emissions.clone();
        self.padded_emissions.iter_mut().for_each(|e| e.resize(padded(e.len()), 0.0));
    }

    /// The symbols that each state emits after an action, with E(o | s) or E(o | a, s).
    pub(super) fn emission_rows(&self, action: usize) -> Vec<Vec<(usize, f64)>> {
        let mut rows = vec![Vec::new(); self.layout.states];
        for o in 0..self.unigram.len() {
            let place = self.layout.place_of(action, o);
            let (active, emissions) = (&self.layout.active[place], &self.emissions[place]);
            active.iter().zip(emissions).for_each(|(&s, &e)| rows[s as usize].push((o, e)));
        }
        rows
    }

    /// With other parameters: T by action along the columns, E along the active sets.
    #[cfg(test)]
    pub(super) fn with(mut self, t: Vec<f64>, emissions: Vec<Vec<f64>>) -> Latent {
        (self.t, self.emissions) = (t, emissions);
        self.pack();
        self
    }

    /// Whether rows have entries only for symbols seen in sequence.
    pub(super) fn is_sparse(&self) -> bool {
        self.actions * self.layout.states * self.layout.states > LARGEST_DENSE
    }

    /// The number of states without the start and those that end episodes.
    pub(super) fn going_on(&self, alphabet: &Alphabet) -> usize {
        let ends = alphabet.observations().iter().filter(|symbol| symbol.terminal).count();
        self.layout.states - ends - 1
    }

    /// Share of each symbol.
    pub(super) fn unigram(&self) -> &[f64] {
        &self.unigram
    }
}

/// The padded length of a set's vectors: whole groups of [`GROUP`], except where they are shorter
/// than one.
pub(super) fn padded(states: usize) -> usize {
    if states < GROUP { states } else { states.next_multiple_of(GROUP) }
}

/// Entries sorted by key: sums must not depend on the order of a hash map.
fn sorted<K: Ord + Copy, V>(map: &FxHashMap<K, V>) -> Vec<(&K, &V)> {
    let mut all: Vec<(&K, &V)> = map.iter().collect();
    all.sort_unstable_by_key(|(key, _)| **key);
    all
}

/// Where rows begin, and the columns of each.
fn support(layout: &Layout, actions: usize, triples: &FxHashSet<Triple>) -> (Vec<usize>, Vec<u32>) {
    let n = layout.states;
    let mut rows: Vec<Vec<u32>> = vec![Vec::new(); n];
    if actions * n * n <= LARGEST_DENSE {
        rows.fill((1..n as u32).collect());
    } else {
        let mut pairs: Vec<(u32, u32)> = triples.iter().map(|&(_, o, next)| (o, next)).collect();
        pairs.sort_unstable();
        pairs.dedup();
        for (o, next) in pairs {
            for &s in &layout.active[o as usize] {
                rows[s as usize].extend(&layout.active[next as usize]);
            }
        }
        for row in &mut rows {
            row.sort_unstable();
            row.dedup();
        }
    }
    let mut starts = vec![0];
    starts.extend(rows.iter().scan(0, |end, row| {
        *end += row.len();
        Some(*end)
    }));
    (starts, rows.concat())
}
