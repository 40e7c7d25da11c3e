//! Filters that remember the latest observations, alone or beside another state.
//!
//! Observations are categories, not numbers. Each has a code: a unit vector where there are few of
//! them, otherwise a random vector, so that a tree can separate any of them in a few splits.

use crate::data::{Action, ActionObservation, Alphabet, Fingerprints};
use crate::model::{Columns, Projection};
use crate::rng::Seed;
use crate::system::{Filter, Track};

/// Up to this number of observations codes are unit vectors.
const MOST_UNIT_CODES: usize = 32;
/// Numbers in a random code.
const CODE: usize = 16;

/// The codes of observations; those outside the alphabet have zeros.
#[derive(Clone, Debug)]
struct Codes {
    width: usize,
    table: Vec<f64>,
}

impl Codes {
    fn of(alphabet: &Alphabet) -> Codes {
        let symbols = alphabet.observations().len();
        if symbols <= MOST_UNIT_CODES {
            let table = (0..symbols * symbols).map(|i| if i % symbols == i / symbols { 1.0 } else { 0.0 }).collect();
            return Codes { width: symbols, table };
        }
        // By name, so that the same observation has the same code in every alphabet.
        let (columns, fingerprints) = (Columns::new(Projection::Spherical, CODE, Seed(0)), Fingerprints::of(alphabet));
        let mut table = vec![0.0; symbols * CODE];
        for (o, code) in table.chunks_exact_mut(CODE).enumerate() {
            columns.add(fingerprints.observation(o), columns.scale(), code);
        }
        Codes { width: CODE, table }
    }

    fn write(&self, ao: ActionObservation, out: &mut [f64]) {
        let first = ao.observation.index().saturating_mul(self.width);
        match self.table.get(first..first.saturating_add(self.width)) {
            Some(code) => out.copy_from_slice(code),
            None => out.fill(0.0),
        }
    }
}

/// The codes of the latest observations, the last first; zeros before the start of the episode.
#[derive(Clone, Debug)]
pub struct LastObservations {
    codes: Codes,
    state: Vec<f64>,
}

impl LastObservations {
    /// The last `count` observations.
    pub fn new(alphabet: &Alphabet, count: usize) -> LastObservations {
        let codes = Codes::of(alphabet);
        LastObservations { state: vec![0.0; count * codes.width], codes }
    }
}

impl Track for LastObservations {
    fn reset(&mut self) {
        self.state.fill(0.0);
    }

    fn observe(&mut self, ao: ActionObservation) {
        let kept = self.state.len() - self.codes.width;
        self.state.copy_within(..kept, self.codes.width);
        self.codes.write(ao, &mut self.state[..self.codes.width]);
    }
}

impl Filter for LastObservations {
    fn state(&self) -> &[f64] {
        &self.state
    }
}

/// Another filter's state followed by the last observation: a memory PSR (James et al. 2005).
#[derive(Clone, Debug)]
pub struct WithLast<F> {
    inner: F,
    codes: Codes,
    state: Vec<f64>,
}

impl<F: Filter> WithLast<F> {
    /// At the start of an episode, as `inner` must be.
    pub fn new(inner: F, alphabet: &Alphabet) -> WithLast<F> {
        let codes = Codes::of(alphabet);
        let mut state = inner.state().to_vec();
        state.resize(state.len() + codes.width, 0.0);
        WithLast { inner, codes, state }
    }

    fn refresh(&mut self) {
        let inner = self.inner.state();
        self.state[..inner.len()].copy_from_slice(inner);
    }
}

impl<F: Filter> Track for WithLast<F> {
    fn reset(&mut self) {
        self.inner.reset();
        self.state.fill(0.0);
        self.refresh();
    }

    fn observe(&mut self, ao: ActionObservation) {
        self.inner.observe(ao);
        self.refresh();
        let inner = self.inner.state().len();
        self.codes.write(ao, &mut self.state[inner..]);
    }

    fn observe_partial(&mut self, a: Action, pattern: &str) {
        self.inner.observe_partial(a, pattern);
        self.refresh();
        let inner = self.inner.state().len();
        self.state[inner..].fill(0.0);
    }
}

impl<F: Filter> Filter for WithLast<F> {
    fn state(&self) -> &[f64] {
        &self.state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alphabet(observations: usize) -> Alphabet {
        let mut alphabet = Alphabet::default();
        alphabet.intern_action("go");
        (0..observations).for_each(|o| {
            alphabet.intern_observation(&o.to_string());
        });
        alphabet
    }

    #[test]
    fn the_latest_observation_comes_first() {
        let mut last = LastObservations::new(&alphabet(3), 2);
        assert_eq!(last.state(), [0.0; 6]);
        last.observe(ActionObservation::new(0, 1));
        assert_eq!(last.state(), [0.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
        last.observe(ActionObservation::new(0, 2));
        assert_eq!(last.state(), [0.0, 0.0, 1.0, 0.0, 1.0, 0.0]);
        last.observe(ActionObservation::new(0, 9)); // not in the alphabet
        assert_eq!(last.state(), [0.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
        last.reset();
        assert_eq!(last.state(), [0.0; 6]);
    }

    #[test]
    fn many_observations_have_short_codes_that_differ() {
        let mut last = LastObservations::new(&alphabet(1000), 1);
        let mut codes: Vec<Vec<u64>> = (0..1000)
            .map(|o| {
                last.observe(ActionObservation::new(0, o));
                last.state().iter().map(|x| x.to_bits()).collect()
            })
            .collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!((codes.len(), codes[0].len()), (1000, CODE));
    }

    #[test]
    fn the_last_observation_follows_the_state() {
        let alphabet = alphabet(2);
        let mut both = WithLast::new(LastObservations::new(&alphabet, 1), &alphabet);
        both.observe(ActionObservation::new(0, 1));
        assert_eq!(both.state(), [0.0, 1.0, 0.0, 1.0]);
        both.reset();
        assert_eq!(both.state(), [0.0; 4]);
    }
}
