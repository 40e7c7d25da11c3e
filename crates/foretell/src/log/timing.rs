//! Whether the observations of rows seem to have been seen before the actions of their rows, not
//! after them.
//!
//! If o_t answers a_t, it depends on a_t, and o_{t+1} depends on a_t only through the past. If o_t
//! was seen before a_t, o_{t+1} depends on a_t, and o_t does so only as far as a_t was chosen on it;
//! then a_t depends on the row before, but only through o_t; or not on o_t at all if actions are
//! random.
//! These are conditional mutual informations. Each is compared with that of actions shuffled among
//! rows in the same condition, because estimates from few counts are too large.

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::data::{ActionObservation, Trajectory};
use crate::rng::{Rng, Seed};

/// Steps that are used at most: enough for an effect of 0.01 nats, in a fraction of a second.
const MOST_STEPS: usize = 20_000;
/// Steps that are used at least.
const FEW_STEPS: usize = 200;
/// Shuffles behind mean and standard deviation without dependence.
const SHUFFLES: u64 = 20;
/// Standard deviations above that mean from which on there is a dependence. The standard deviation
/// of 20 shuffles is itself uncertain by a sixth.
const CLEAR: f64 = 5.0;
/// Standard deviations below which there is none to be seen.
const UNCLEAR: f64 = 3.0;
/// A dependence smaller than this share of another one counts as none beside it.
const SMALL: f64 = 0.1;

/// A dependence in nats, above what shuffled data show.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Dependence {
    /// I − its mean over shuffles.
    pub nats: f64,
    /// The same in standard deviations of shuffles.
    pub deviations: f64,
}

/// How actions and observations of neighbouring rows depend on each other.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Timing {
    /// I(a_t ; o_t | o_{t−1}, a_{t−1}): within a row.
    pub own_row: Dependence,
    /// I(a_t ; o_{t+1} | o_t, a_{t+1}): of the next row's observation on the action.
    pub next_row: Dependence,
    /// I(a_t ; o_{t−1} | o_t): of the action on the observation of the row before, beyond its own.
    pub row_before: Dependence,
    /// I(a_t ; a_{t−1}, o_{t−1}): of the action on the row before. Where actions are random there is
    /// none, whatever hidden states make of next_row.
    pub chosen: Dependence,
}

impl Timing {
    /// Whether observations seem to have been seen before the actions of their rows.
    pub fn seems_before_action(&self) -> bool {
        let random = self.own_row.deviations < UNCLEAR;
        let chosen_on_it = self.own_row.deviations > CLEAR
            && self.chosen.deviations > CLEAR
            && self.row_before.deviations < UNCLEAR
            && self.row_before.nats < SMALL * self.own_row.nats;
        self.next_row.deviations > CLEAR && (random || chosen_on_it)
    }

    /// What to do about it, if they do.
    pub fn sentence(&self) -> Option<String> {
        self.seems_before_action().then(|| {
            "the action of a row acts on the observation of the next row, not on that of its own: each row seems to hold what was \
             seen before its action; then shift observations (`shift_observation`)"
                .to_string()
        })
    }
}

/// Collects rows.
#[derive(Clone, Debug, Default)]
pub(super) struct TimingTally {
    own_row: Vec<Triple>,
    next_row: Vec<Triple>,
    row_before: Vec<Triple>,
    chosen: Vec<Triple>,
    /// Numbers of the rows that were seen.
    rows: FxHashMap<(u32, u32), u32>,
}

/// A condition, and two symbols that may depend on each other given it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Triple {
    given: [u32; 2],
    x: u32,
    y: u32,
}

impl TimingTally {
    pub fn add(&mut self, z: &Trajectory) {
        if self.is_full() {
            return;
        }
        let known = |ao: &ActionObservation| (!ao.observation.is_missing()).then_some((ao.action.0, ao.observation.0));
        for pair in z.steps.windows(2) {
            if let (Some((a, o)), Some((b, p))) = (known(&pair[0]), known(&pair[1])) {
                self.own_row.push(Triple { given: [o, a], x: b, y: p });
                self.row_before.push(Triple { given: [p, 0], x: b, y: o });
                self.next_row.push(Triple { given: [o, b], x: a, y: p });
                let next = self.rows.len() as u32;
                let row = *self.rows.entry((a, o)).or_insert(next);
                self.chosen.push(Triple { given: [0, 0], x: b, y: row });
            }
        }
    }

    pub fn is_full(&self) -> bool {
        self.own_row.len() >= MOST_STEPS
    }

    /// The dependences; `None` for few rows.
    pub fn finish(self) -> Option<Timing> {
        let dependence = |name: &str, triples| dependence(triples, Seed(0).stream("timing").stream(name));
        (self.own_row.len() >= FEW_STEPS).then(|| Timing {
            own_row: dependence("own", self.own_row),
            next_row: dependence("next", self.next_row),
            row_before: dependence("before", self.row_before),
            chosen: dependence("chosen", self.chosen),
        })
    }
}

fn dependence(mut triples: Vec<Triple>, seed: Seed) -> Dependence {
    triples.sort_unstable();
    let found = information(&triples);
    let shuffled: Vec<f64> = (0..SHUFFLES)
        .map(|i| {
            let mut copy = triples.clone();
            let mut rng = seed.index(i).rng();
            copy.chunk_by_mut(|p, q| p.given == q.given).for_each(|rows| shuffle(rows, &mut rng));
            information(&copy)
        })
        .collect();
    let n = shuffled.len() as f64;
    let mean = shuffled.iter().sum::<f64>() / n;
    let sd = (shuffled.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
    // Without variation among shuffles, nothing can depend on anything.
    let deviations = if sd > 0.0 { (found - mean) / sd } else { 0.0 };
    Dependence { nats: found - mean, deviations }
}

/// Permutes x among the rows of a condition.
fn shuffle(rows: &mut [Triple], rng: &mut Rng) {
    for i in (1..rows.len()).rev() {
        let j = rng.below(i + 1);
        (rows[i].x, rows[j].x) = (rows[j].x, rows[i].x);
    }
}

/// I(x ; y | given) of the counts, where the rows of each condition are together.
fn information(rows: &[Triple]) -> f64 {
    let mut sum = 0.0;
    for rows in rows.chunk_by(|p, q| p.given == q.given).filter(|rows| rows.len() > 1) {
        let (mut both, mut xs, mut ys) = (FxHashMap::default(), FxHashMap::default(), FxHashMap::default());
        for row in rows {
            *both.entry((row.x, row.y)).or_insert(0.0) += 1.0;
            *xs.entry(row.x).or_insert(0.0) += 1.0;
            *ys.entry(row.y).or_insert(0.0) += 1.0;
        }
        let n = rows.len() as f64;
        let mut terms: Vec<f64> = both.iter().map(|(&(x, y), &k): (_, &f64)| k * (k * n / (xs[&x] * ys[&y])).ln()).collect();
        // the order of a map must not reach the result
        terms.sort_unstable_by(f64::total_cmp);
        sum += terms.iter().sum::<f64>();
    }
    sum / rows.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_information_is_that_of_the_definition() {
        // Given 0: x = y, each of two values half of the time; given 1: independent.
        let rows = |given: u32, pairs: [(u32, u32); 4]| pairs.map(|(x, y)| Triple { given: [given, 0], x, y });
        let all = [rows(0, [(0, 0), (0, 0), (1, 1), (1, 1)]), rows(1, [(0, 0), (0, 1), (1, 0), (1, 1)])].concat();
        assert!((information(&all) - 0.5 * 2f64.ln()).abs() < 1e-12);
    }

    #[test]
    fn independent_symbols_show_no_dependence() {
        let mut rng = Seed(3).rng();
        let rows = |dependent: bool, rng: &mut Rng| -> Vec<Triple> {
            let mut row = || {
                let (x, noise) = (rng.below(3) as u32, rng.below(4) as u32);
                Triple { given: [rng.below(5) as u32, 0], x, y: if dependent && noise == 0 { x } else { noise } }
            };
            (0..2000).map(|_| row()).collect()
        };
        assert!(dependence(rows(false, &mut rng), Seed(1)).deviations.abs() < UNCLEAR);
        assert!(dependence(rows(true, &mut rng), Seed(1)).deviations > CLEAR);
    }
}
