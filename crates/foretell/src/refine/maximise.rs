//! The M-step: the most probable parameters given expected counts and priors.

use super::expect::Lane;
use super::latent::{HardCounts, Latent};
use super::layout::{Layout, Ownership};

/// The prior of T(· | a, s) counts as this many steps.
const TRANSITION_PRIOR: f64 = 1.0;
/// The prior of E(· | s) counts as this many steps, where states are not owned by observations.
const EMISSION_PRIOR: f64 = 0.3;
/// The prior of P(k′ | k) counts as this many steps.
const MODE_PRIOR: f64 = 1.0;

impl Latent {
    /// The most probable parameters given the expected counts of all lanes.
    pub(super) fn maximise(&mut self, lanes: &[Lane]) {
        self.maximise_transitions(self.transition_counts(lanes));
        let counts = self.emission_counts(lanes);
        self.maximise_emissions(&counts);
        self.pack();
    }

    /// The expected number of each transition, in the order of `t`.
    fn transition_counts(&self, lanes: &[Lane]) -> Vec<f64> {
        let mut counts = vec![0.0; self.t.len()];
        for block in &self.blocks {
            let rows = block.places.chunks_exact(block.used).zip((block.first..).step_by(block.width));
            for ((places, first), t) in rows.zip(block.t.chunks_exact(block.width)) {
                for ((&place, i), t) in places.iter().zip(first..).zip(t) {
                    counts[place as usize] += t * lanes.iter().map(|lane| lane.counts[i]).sum::<f64>();
                }
            }
        }
        counts
    }

    /// The expected number of emissions of each symbol, along its active set.
    fn emission_counts(&self, lanes: &[Lane]) -> Vec<Vec<f64>> {
        let summed = |o: usize| -> Vec<f64> {
            (0..self.layout.active[o].len()).map(|i| lanes.iter().map(|lane| lane.emissions[o][i]).sum()).collect()
        };
        let mut counts: Vec<Vec<f64>> = (0..self.layout.active.len()).map(summed).collect();
        self.divide_incomplete(&mut counts);
        counts
    }

    /// Divides the counts of incomplete observations among the symbols that agree with them, in
    /// proportion to their probabilities. An observation of which nothing is known tells nothing of
    /// emissions, so its counts are dropped.
    fn divide_incomplete(&self, counts: &mut [Vec<f64>]) {
        let going_on = self.layout.patterns.iter().map(Vec::len).max().unwrap_or(0);
        for (incomplete, agreeing) in self.incomplete() {
            let counted = std::mem::take(&mut counts[incomplete]);
            if agreeing.len() < going_on {
                for (&s, (n, all)) in self.layout.active[incomplete].iter().zip(counted.iter().zip(&self.emissions[incomplete])) {
                    for &o in &agreeing {
                        if let Ok(place) = self.layout.active[o].binary_search(&s) {
                            counts[o][place] += n * self.emissions[o][place] / all;
                        }
                    }
                }
            }
            counts[incomplete] = vec![0.0; counted.len()];
        }
    }

    /// E of an incomplete observation: the sum over the symbols that agree with it.
    fn sum_incomplete(&mut self) {
        for (incomplete, agreeing) in self.incomplete() {
            let sum = |s: &u32| -> f64 {
                let of = |&o: &usize| self.layout.active[o].binary_search(s).map_or(0.0, |place| self.emissions[o][place]);
                agreeing.iter().map(of).sum()
            };
            self.emissions[incomplete] = self.layout.active[incomplete].iter().map(sum).collect();
        }
    }

    /// The place of each incomplete observation, and those of the symbols that agree with it.
    fn incomplete(&self) -> Vec<(usize, Vec<usize>)> {
        let Layout { patterns, .. } = &self.layout;
        let of_sensor = |first: usize| {
            let places = (first + self.layout.symbols()..).zip(patterns);
            places.map(move |(place, agreeing)| (place, agreeing.iter().map(|&o| first + o as usize).collect()))
        };
        self.layout.sensor_places().flat_map(of_sensor).collect()
    }

    /// The counts that the E-step expects, by state and place of the observation.
    pub(super) fn expected_counts(&self, lanes: &[Lane]) -> HardCounts {
        let mut counts = HardCounts::default();
        let transitions = self.transition_counts(lanes);
        for (a, of_action) in (0..).zip(transitions.chunks_exact(self.columns.len())) {
            for (s, row) in (0..).zip(self.starts.windows(2)) {
                let row = row[0]..row[1];
                let entries = self.columns[row.clone()].iter().zip(&of_action[row]).filter(|(_, n)| **n > 0.0);
                counts.transitions.extend(entries.map(|(&next, &n)| ((a, s, next), n)));
            }
        }
        let is_complete = |place: u32| self.is_complete(place as usize);
        for (o, (active, emitted)) in
            (0..).zip(self.layout.active.iter().zip(self.emission_counts(lanes))).filter(|(o, _)| is_complete(*o))
        {
            counts.emissions.extend(active.iter().zip(emitted).map(|(&s, n)| ((s, o), n)));
        }
        counts
    }

    pub(super) fn maximise_transitions(&mut self, counts: Vec<f64>) {
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

    /// Where states are owned, each emits its owner; otherwise E(o | s) is estimated.
    pub(super) fn maximise_emissions(&mut self, counts: &[Vec<f64>]) {
        if !matches!(self.layout.ownership, Ownership::Free) {
            self.emissions = self.layout.active.iter().map(|active| vec![1.0; active.len()]).collect();
            return self.sum_incomplete();
        }
        // Of each sensor, and of the start.
        let states = self.layout.states;
        let sensor = |place: usize| place / self.layout.places_of_sensor();
        let mut totals = vec![0.0; (self.layout.sensors + 1) * states];
        let prior = |place: usize| EMISSION_PRIOR * self.emitted.get(place).copied().unwrap_or(1.0);
        for (o, (active, counts)) in self.layout.active.iter().zip(counts).enumerate().filter(|(o, _)| self.is_complete(*o)) {
            let totals = &mut totals[sensor(o) * states..][..states];
            active.iter().zip(counts).for_each(|(&s, n)| totals[s as usize] += n + prior(o));
        }
        let emissions = |(o, (active, counts)): (usize, (&Vec<u32>, &Vec<f64>))| -> Vec<f64> {
            let totals = &totals[sensor(o) * states..][..states];
            active.iter().zip(counts).map(|(&s, n)| (n + prior(o)) / totals[s as usize]).collect()
        };
        self.emissions = self.layout.active.iter().zip(counts).enumerate().map(emissions).collect();
        self.sum_incomplete();
    }

    /// Whether a place is that of a symbol or of the start.
    fn is_complete(&self, place: usize) -> bool {
        place == self.layout.start() || self.layout.symbol_of(place).is_some()
    }

    /// Logarithm of the priors, up to a constant: EM maximises its sum with the log-likelihood.
    pub(super) fn log_prior(&self) -> f64 {
        let rows = || -> f64 { self.t.chunks_exact(self.columns.len()).map(|t| cross_entropy(&self.prior, t)).sum() };
        match &self.layout.ownership {
            Ownership::Owned { .. } => TRANSITION_PRIOR * rows(),
            Ownership::Free => {
                let emitted = self.emitted.iter().zip(&self.emissions).filter(|(p, _)| **p > 0.0);
                let emitted = emitted.map(|(p, e)| p * e.iter().map(|e| e.ln()).sum::<f64>());
                TRANSITION_PRIOR * rows() + EMISSION_PRIOR * emitted.sum::<f64>()
            }
            Ownership::Modes { modes, .. } => {
                let even = vec![1.0 / *modes as f64; self.switches.len()];
                TRANSITION_PRIOR * self.cross_entropy_of_symbols() + MODE_PRIOR * cross_entropy(&even, &self.switches)
            }
        }
    }

    /// Σ p ln q over rows, where p and q are summed over the states of each symbol, which are
    /// consecutive.
    fn cross_entropy_of_symbols(&self) -> f64 {
        let mut sum = 0.0;
        let (mut p, mut q) = (Vec::new(), Vec::new());
        for t in self.t.chunks_exact(self.columns.len()) {
            for row in self.starts.windows(2).map(|w| w[0]..w[1]) {
                p.clear();
                q.clear();
                let mut last = None;
                for i in row {
                    let owner = self.layout.owner_of(self.columns[i] as usize);
                    if last.replace(owner) != Some(owner) {
                        p.push(0.0);
                        q.push(0.0);
                    }
                    let k = p.len() - 1;
                    p[k] += self.prior[i];
                    q[k] += t[i];
                }
                sum += cross_entropy(&p, &q);
            }
        }
        sum
    }
}

/// Σ p ln q over the entries where p is positive.
fn cross_entropy(p: &[f64], q: &[f64]) -> f64 {
    p.iter().zip(q).filter(|(p, _)| **p > 0.0).map(|(p, q)| p * q.ln()).sum()
}
