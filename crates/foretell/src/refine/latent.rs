//! A hidden Markov model driven by actions, while it is fitted: EM that touches only the states which can emit what was seen.
//!
//! State s ~ T(· | a, s₋), observation o ~ E(· | s). Only the states of act(o) = {s : E(o | s) > 0} can have emitted o, so a step
//! o → o′ costs |act(o)|·|act(o′)| operations. The start of an episode is a state of its own that is never entered again.
//!
//! EM is that of a maximum a posteriori: T(· | a, s) has a Dirichlet prior around the row of s pooled over actions, which is
//! itself backed off to how often each state is met; E(· | s) has one around the frequency of symbols. Both are fixed
//! beforehand, so that no round can lower the penalised likelihood.

use rustc_hash::{FxHashMap, FxHashSet};

use super::layout::{Layout, Ownership, START};
use crate::data::ActionObservation;

/// How many steps the prior of T(· | a, s) is worth.
const TRANSITION_PRIOR: f64 = 1.0;
/// Share of that prior that goes to all states by how often they are met, whatever followed s.
const BACK_OFF: f64 = 0.1;
/// How many steps the prior of E(· | s) is worth, where states are not owned by observations.
const EMISSION_PRIOR: f64 = 0.3;
/// How many steps the prior of P(k′ | k) is worth.
const MODE_PRIOR: f64 = 1.0;
/// Up to so many numbers T is dense; beyond, it has entries only between states whose observations were met in sequence.
const LARGEST_DENSE: usize = 1 << 22;
/// States that hold less of the belief are left out of a step: their share of any count is below it.
const NEGLIGIBLE: f64 = 1e-9;

/// Two symbols in sequence: the action between them, and their indices; the start of an episode has the index after the last.
pub(super) type Triple = (u32, u32, u32);

/// What one assignment of states to steps counts.
#[derive(Debug, Default)]
pub(super) struct HardCounts {
    /// (a, s, s′)
    pub(super) transitions: FxHashMap<(u32, u32, u32), f64>,
    /// (s, o)
    pub(super) emissions: FxHashMap<(u32, u32), f64>,
}

#[derive(Clone, Debug)]
pub(super) struct Latent {
    pub(super) layout: Layout,
    pub(super) actions: usize,
    /// Distinct active sets, and for each symbol (and the start) which is its own.
    sets: Vec<Vec<u32>>,
    set_of: Vec<u32>,
    /// E(o | s) for each symbol o, along its active set.
    emissions: Vec<Vec<f64>>,
    /// Columns of the row of each state, the same for all actions.
    pub(super) columns: Vec<u32>,
    /// Where the row of each state begins in `columns`.
    pub(super) starts: Vec<usize>,
    /// Prior mean of each row of T.
    prior: Vec<f64>,
    /// T(s′ | a, s), by action, along `columns`.
    pub(super) t: Vec<f64>,
    /// P(k′ | k), where there are modes; last, the first mode of an episode.
    switches: Vec<f64>,
    /// Share of each symbol.
    unigram: Vec<f64>,
    blocks: Vec<Block>,
    block_of: FxHashMap<(u32, u32, u32), u32>,
    /// Entries of all blocks.
    entries: usize,
}

/// T(· | a, ·) between two active sets, by rows.
#[derive(Clone, Debug)]
struct Block {
    /// Where each entry is in `Latent::t`.
    places: Vec<u32>,
    t: Vec<f64>,
    width: usize,
    /// Where its counts begin.
    first: usize,
}

/// Sums over episodes, and room to work in.
#[derive(Clone, Debug, Default)]
pub(super) struct Lane {
    /// For each block entry Σ α(s) β(s′): times T it is the expected number of transitions.
    counts: Vec<f64>,
    /// For each symbol, along its active set: expected visits.
    emissions: Vec<Vec<f64>>,
    pub(super) log_likelihood: f64,
    pub(super) steps: u64,
    work: Work,
}

/// What one episode needs.
#[derive(Clone, Debug, Default)]
struct Work {
    /// α of the states before and after each step, one after the other, and where each begins.
    alpha: Vec<f64>,
    begin: Vec<usize>,
    scale: Vec<f64>,
    block: Vec<u32>,
    beta: Vec<f64>,
    weighted: Vec<f64>,
}

impl Lane {
    /// Adds the counts of another lane, `weight` times.
    #[cfg(test)]
    pub(super) fn add(&mut self, other: &Lane, weight: f64) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(x, y)| *x += weight * y);
        for (mine, other) in self.emissions.iter_mut().zip(&other.emissions) {
            mine.iter_mut().zip(other).for_each(|(x, y)| *x += weight * y);
        }
    }
}

impl Latent {
    /// From the counts of a first assignment. `triples` are all symbols met in sequence, `seen` how often each symbol was.
    pub(super) fn new(layout: Layout, actions: usize, hard: &HardCounts, triples: &FxHashSet<Triple>, seen: &[f64]) -> Latent {
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
        let total: f64 = seen.iter().map(|n| n + 0.5).sum();
        let unigram: Vec<f64> = seen.iter().map(|n| (n + 0.5) / total).collect();
        let (starts, columns) = support(&layout, actions, triples);
        let mut latent = Latent {
            emissions: vec![Vec::new(); layout.active.len()],
            prior: vec![0.0; columns.len()],
            t: vec![0.0; actions * columns.len()],
            layout,
            actions,
            sets,
            set_of,
            columns,
            starts,
            switches: Vec::new(),
            unigram,
            blocks: Vec::new(),
            block_of: FxHashMap::default(),
            entries: 0,
        };
        latent.find_blocks(triples);
        latent.set_prior(hard);
        latent.start_from(hard);
        latent
    }

    fn find_blocks(&mut self, triples: &FxHashSet<Triple>) {
        let of_sets = triples.iter().map(|&(a, o, next)| (a, self.set_of[o as usize], self.set_of[next as usize]));
        let mut keys: Vec<_> = of_sets.collect();
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
            let block = Block { t: vec![0.0; places.len()], width: to.len(), first: self.entries, places };
            self.entries += block.places.len();
            self.blocks.push(block);
            self.block_of.insert(keys[i], i as u32);
        }
    }

    /// Where T(s′ | a, s) is in the rows of an action.
    fn place(&self, s: u32, next: u32) -> Option<usize> {
        let (first, end) = (self.starts[s as usize], self.starts[s as usize + 1]);
        self.columns[first..end].binary_search(&next).ok().map(|i| first + i)
    }

    /// The rows pooled over actions, backed off to how often each state is met.
    fn set_prior(&mut self, hard: &HardCounts) {
        let mut met = vec![0.5; self.layout.states];
        met[START] = 0.0;
        for (&(_, s, next), n) in sorted(&hard.transitions) {
            met[next as usize] += n;
            let place = self.place(s, next).expect("what was counted was met in sequence");
            self.prior[place] += n;
        }
        for s in 0..self.layout.states {
            let row = self.starts[s]..self.starts[s + 1];
            let (pooled, columns) = (&mut self.prior[row.clone()], &self.columns[row]);
            let sum: f64 = pooled.iter().sum();
            let all: f64 = columns.iter().map(|&j| met[j as usize]).sum();
            let share = if sum > 0.0 { BACK_OFF } else { 1.0 };
            for (p, &j) in pooled.iter_mut().zip(columns) {
                *p = share * met[j as usize] / all + if sum > 0.0 { (1.0 - share) * *p / sum } else { 0.0 };
            }
        }
    }

    fn start_from(&mut self, hard: &HardCounts) {
        let mut counts = vec![0.0; self.t.len()];
        for (&(a, s, next), n) in sorted(&hard.transitions) {
            let place = self.place(s, next).expect("what was counted was met in sequence");
            counts[a as usize * self.columns.len() + place] += n;
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

    /// A lane with nothing in it.
    pub(super) fn lane(&self) -> Lane {
        Lane {
            counts: vec![0.0; self.entries],
            emissions: self.layout.active.iter().map(|active| vec![0.0; active.len()]).collect(),
            ..Lane::default()
        }
    }

    fn pack(&mut self) {
        for block in &mut self.blocks {
            block.t.iter_mut().zip(&block.places).for_each(|(t, &place)| *t = self.t[place as usize]);
        }
    }

    /// ln P(o_1 … o_n ‖ a_1 … a_n), added to the lane.
    pub(super) fn score(&self, steps: &[ActionObservation], lane: &mut Lane) {
        lane.log_likelihood += self.forward(steps, &mut lane.work);
        lane.steps += steps.len() as u64;
    }

    /// Adds the expected counts of an episode.
    pub(super) fn expect(&self, steps: &[ActionObservation], lane: &mut Lane) {
        self.score(steps, lane);
        self.backward(steps, lane);
    }

    /// Calls `see` with the active set and the belief over it before each step.
    pub(super) fn track(&self, steps: &[ActionObservation], lane: &mut Lane, mut see: impl FnMut(usize, &[u32], &[f64])) {
        self.score(steps, lane);
        let mut before = self.layout.active.len() - 1;
        for (t, ao) in steps.iter().enumerate() {
            let set = &self.sets[self.set_of[before] as usize];
            let begin = lane.work.begin[t];
            see(t, set, &lane.work.alpha[begin..begin + set.len()]);
            before = ao.observation.0 as usize;
        }
    }

    /// Fills α, normalised at every step.
    fn forward(&self, steps: &[ActionObservation], work: &mut Work) -> f64 {
        let Work { alpha, begin, scale, block: blocks, .. } = work;
        alpha.clear();
        begin.clear();
        scale.clear();
        blocks.clear();
        alpha.push(1.0);
        begin.push(0);
        let mut before = self.set_of[self.layout.active.len() - 1];
        let mut log_likelihood = 0.0;
        for ao in steps {
            let o = ao.observation.0 as usize;
            let next = self.set_of[o];
            let id = self.block_of[&(ao.action.0, before, next)];
            let block = &self.blocks[id as usize];
            let (first, middle) = (begin[begin.len() - 1], alpha.len());
            alpha.resize(middle + block.width, 0.0);
            let (now, after) = alpha[first..].split_at_mut(middle - first);
            for (&weight, row) in now.iter().zip(block.t.chunks_exact(block.width)) {
                if weight > NEGLIGIBLE {
                    after.iter_mut().zip(row).for_each(|(x, t)| *x += weight * t);
                }
            }
            after.iter_mut().zip(&self.emissions[o]).for_each(|(x, e)| *x *= e);
            // Priors keep every sum positive; the least of numbers stands in where rounding does not.
            let sum = after.iter().sum::<f64>().max(f64::MIN_POSITIVE);
            after.iter_mut().for_each(|x| *x /= sum);
            log_likelihood += sum.ln();
            begin.push(middle);
            scale.push(sum);
            blocks.push(id);
            before = next;
        }
        log_likelihood
    }

    /// β from the last step to the first, and with it the counts.
    fn backward(&self, steps: &[ActionObservation], lane: &mut Lane) {
        let Lane { counts, emissions, work, .. } = lane;
        let Work { alpha, begin, scale, block: blocks, beta, weighted } = work;
        beta.clear();
        beta.resize(alpha.len() - begin[steps.len()], 1.0);
        for (t, ao) in steps.iter().enumerate().rev() {
            let o = ao.observation.0 as usize;
            let (first, middle) = (begin[t], begin[t + 1]);
            let end = middle + beta.len();
            let after = &alpha[middle..end];
            emissions[o].iter_mut().zip(after).zip(&*beta).for_each(|((n, x), b)| *n += x * b);
            weighted.clear();
            weighted.extend(beta.iter().zip(&self.emissions[o]).map(|(b, e)| b * e / scale[t]));
            let block = &self.blocks[blocks[t] as usize];
            let now = &alpha[first..middle];
            let counts = &mut counts[block.first..block.first + block.t.len()];
            beta.clear();
            for ((&weight, row), counts) in
                now.iter().zip(block.t.chunks_exact(block.width)).zip(counts.chunks_exact_mut(block.width))
            {
                beta.push(row.iter().zip(&*weighted).map(|(t, w)| t * w).sum());
                if weight > NEGLIGIBLE {
                    counts.iter_mut().zip(&*weighted).for_each(|(n, w)| *n += weight * w);
                }
            }
        }
    }

    /// The most probable parameters given the expected counts of all lanes.
    pub(super) fn maximise(&mut self, lanes: &[Lane]) {
        let mut counts = vec![0.0; self.t.len()];
        for block in &self.blocks {
            for (i, (&place, t)) in block.places.iter().zip(&block.t).enumerate() {
                counts[place as usize] += t * lanes.iter().map(|lane| lane.counts[block.first + i]).sum::<f64>();
            }
        }
        self.maximise_transitions(counts);
        let summed = |o: usize| -> Vec<f64> {
            (0..self.layout.active[o].len()).map(|i| lanes.iter().map(|lane| lane.emissions[o][i]).sum()).collect()
        };
        let counts: Vec<Vec<f64>> = (0..self.layout.active.len()).map(summed).collect();
        self.maximise_emissions(&counts);
        self.pack();
    }

    fn maximise_transitions(&mut self, counts: Vec<f64>) {
        match &self.layout.ownership {
            Ownership::Modes { modes, .. } => self.maximise_modes(&counts, *modes),
            Ownership::Owned { .. } | Ownership::Free => self.maximise_rows(&counts),
        }
    }

    fn maximise_rows(&mut self, counts: &[f64]) {
        let n = self.columns.len();
        for (t, counts) in self.t.chunks_exact_mut(n).zip(counts.chunks_exact(n)) {
            for row in self.starts.windows(2).map(|w| w[0]..w[1]) {
                let total = TRANSITION_PRIOR + counts[row.clone()].iter().sum::<f64>();
                for i in row {
                    t[i] = (counts[i] + TRANSITION_PRIOR * self.prior[i]) / total;
                }
            }
        }
    }

    /// T((o′, k′) | a, (o, k)) = P(o′ | a, o, k)·P(k′ | k)
    fn maximise_modes(&mut self, counts: &[f64], modes: usize) {
        let n = self.columns.len();
        // The start has a row of its own.
        let mut switches = vec![MODE_PRIOR / modes as f64; (modes + 1) * modes];
        let mode = |s: usize| self.layout.mode_of(s);
        for counts in counts.chunks_exact(n) {
            for s in 0..self.layout.states {
                let from = mode(s).unwrap_or(modes);
                let row = self.starts[s]..self.starts[s + 1];
                for (&next, n) in self.columns[row.clone()].iter().zip(&counts[row]) {
                    if let Some(to) = mode(next as usize) {
                        switches[from * modes + to] += n;
                    }
                }
            }
        }
        for row in switches.chunks_exact_mut(modes) {
            let total: f64 = row.iter().sum();
            row.iter_mut().for_each(|p| *p /= total);
        }
        let mut by_symbol = vec![0.0; self.layout.active.len()];
        for (t, counts) in self.t.chunks_exact_mut(n).zip(counts.chunks_exact(n)) {
            for s in 0..self.layout.states {
                let row = self.starts[s]..self.starts[s + 1];
                let owner = |i: usize| self.layout.owner_of(self.columns[i] as usize);
                let mut total = 0.0;
                for i in row.clone() {
                    let count = counts[i] + TRANSITION_PRIOR * self.prior[i];
                    by_symbol[owner(i)] += count;
                    total += count;
                }
                let from = mode(s).unwrap_or(modes);
                for i in row.clone() {
                    let switch = mode(self.columns[i] as usize).map_or(1.0, |to| switches[from * modes + to]);
                    t[i] = by_symbol[owner(i)] / total * switch;
                }
                row.for_each(|i| by_symbol[owner(i)] = 0.0);
            }
        }
        self.switches = switches;
    }

    /// Where states are owned, each emits its owner. Else E(o | s) is estimated.
    fn maximise_emissions(&mut self, counts: &[Vec<f64>]) {
        if !matches!(self.layout.ownership, Ownership::Free) {
            self.emissions = self.layout.active.iter().map(|active| vec![1.0; active.len()]).collect();
            return;
        }
        let mut totals = vec![0.0; self.layout.states];
        let prior = |o: usize| EMISSION_PRIOR * self.unigram.get(o).copied().unwrap_or(1.0);
        for (o, (active, counts)) in self.layout.active.iter().zip(counts).enumerate() {
            active.iter().zip(counts).for_each(|(&s, n)| totals[s as usize] += n + prior(o));
        }
        let emissions = |(o, (active, counts)): (usize, (&Vec<u32>, &Vec<f64>))| -> Vec<f64> {
            active.iter().zip(counts).map(|(&s, n)| (n + prior(o)) / totals[s as usize]).collect()
        };
        self.emissions = self.layout.active.iter().zip(counts).enumerate().map(emissions).collect();
    }

    /// ln of the priors, up to a constant: what EM maximises besides the likelihood.
    pub(super) fn log_prior(&self) -> f64 {
        let rows = || -> f64 { self.t.chunks_exact(self.columns.len()).map(|t| cross_entropy(&self.prior, t)).sum() };
        match &self.layout.ownership {
            Ownership::Owned { .. } => TRANSITION_PRIOR * rows(),
            Ownership::Free => {
                let emitted = self.unigram.iter().zip(&self.emissions).map(|(p, e)| p * e.iter().map(|e| e.ln()).sum::<f64>());
                TRANSITION_PRIOR * rows() + EMISSION_PRIOR * emitted.sum::<f64>()
            }
            Ownership::Modes { modes, .. } => {
                let even = vec![1.0 / *modes as f64; self.switches.len()];
                TRANSITION_PRIOR * self.cross_entropy_of_symbols() + MODE_PRIOR * cross_entropy(&even, &self.switches)
            }
        }
    }

    /// Σ p ln q over rows, where p and q are summed over the states of each symbol.
    fn cross_entropy_of_symbols(&self) -> f64 {
        let mut sum = 0.0;
        let (mut p, mut q) = (vec![0.0; self.layout.active.len()], vec![0.0; self.layout.active.len()]);
        for t in self.t.chunks_exact(self.columns.len()) {
            for row in self.starts.windows(2).map(|w| w[0]..w[1]) {
                p.fill(0.0);
                q.fill(0.0);
                for i in row {
                    let owner = self.layout.owner_of(self.columns[i] as usize);
                    p[owner] += self.prior[i];
                    q[owner] += t[i];
                }
                sum += cross_entropy(&p, &q);
            }
        }
        sum
    }

    /// The symbols that each state emits, with E(o | s).
    pub(super) fn emission_rows(&self) -> Vec<Vec<(usize, f64)>> {
        let mut rows = vec![Vec::new(); self.layout.states];
        for (o, (active, emissions)) in self.layout.active.iter().zip(&self.emissions).enumerate().take(self.unigram.len()) {
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

    /// Whether rows have entries only for what was met in sequence.
    pub(super) fn is_sparse(&self) -> bool {
        self.actions * self.layout.states * self.layout.states > LARGEST_DENSE
    }

    /// Share of each symbol.
    pub(super) fn unigram(&self) -> &[f64] {
        &self.unigram
    }
}

/// Σ p ln q over the entries where p is positive.
fn cross_entropy(p: &[f64], q: &[f64]) -> f64 {
    p.iter().zip(q).filter(|(p, _)| **p > 0.0).map(|(p, q)| p * q.ln()).sum()
}

/// In the order of their keys: sums must not depend on that of a hash map.
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
