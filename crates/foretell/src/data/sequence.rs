//! Sequences of action–observation pairs as 64-bit keys: hashes of their names, or nodes of a trie.

use rustc_hash::FxHashMap;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::symbols::{Action, ActionObservation, Alphabet, ObservationSymbol};

/// Key of the empty sequence, as a hash and as a node.
pub(crate) const EMPTY: u64 = 0;

/// Stands for a missing observation.
const MISSING: u64 = 0x4d49_5353_494e_4700;

/// Stands for a pair that an alphabet does not have.
const UNKNOWN: u64 = 0x554e_4b4e_4f57_4e00;

/// 64-bit fingerprints of the names of an alphabet.
///
/// Names, not indices: the key of a sequence is the same in every file and on every machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Fingerprints {
    actions: Vec<u64>,
    observations: Vec<u64>,
}

impl Fingerprints {
    pub(crate) fn of(alphabet: &Alphabet) -> Fingerprints {
        Fingerprints {
            actions: alphabet.actions().iter().map(|name| xxh3_64_with_seed(name.as_bytes(), 1)).collect(),
            observations: alphabet.observations().iter().map(fingerprint).collect(),
        }
    }

    /// Adds those of what an alphabet has gained. An observation has the same one whatever reward is
    /// part of it.
    pub(crate) fn extend_without_rewards(&mut self, alphabet: &Alphabet) {
        let (actions, observations) = self.sizes();
        if actions > alphabet.actions().len() || observations > alphabet.observations().len() {
            *self = Fingerprints::default();
        }
        let (actions, observations) = self.sizes();
        self.actions.extend(alphabet.actions()[actions..].iter().map(|name| xxh3_64_with_seed(name.as_bytes(), 1)));
        let rewards = alphabet.observes_rewards();
        self.observations.extend(alphabet.observations()[observations..].iter().map(|symbol| {
            let plain = symbol.split_reward().filter(|_| rewards).map(|(plain, _)| plain);
            fingerprint(plain.as_ref().unwrap_or(symbol))
        }));
    }

    /// How many actions and observations there are.
    pub(crate) fn sizes(&self) -> (usize, usize) {
        (self.actions.len(), self.observations.len())
    }

    pub(crate) fn action(&self, a: Action) -> u64 {
        self.actions[a.index()]
    }

    pub(crate) fn observation(&self, o: usize) -> u64 {
        self.observations[o]
    }

    /// The same, with one fingerprint for all pairs of which a symbol is not in the alphabet.
    pub(crate) fn pair_or_unknown(&self, ao: ActionObservation) -> u64 {
        let is_known = ao.observation.is_missing() || ao.observation.index() < self.observations.len();
        if is_known && ao.action.index() < self.actions.len() { self.pair(ao) } else { UNKNOWN }
    }

    /// A missing observation has a fingerprint of its own, which no count uses.
    pub(crate) fn pair(&self, ao: ActionObservation) -> u64 {
        let observation = if ao.observation.is_missing() { MISSING } else { self.observations[ao.observation.index()] };
        mix(self.actions[ao.action.index()].rotate_left(17) ^ observation)
    }
}

/// The fingerprint of an observation. Seeds keep the three kinds of names apart.
fn fingerprint(symbol: &ObservationSymbol) -> u64 {
    xxh3_64_with_seed(symbol.name.as_bytes(), if symbol.terminal { 3 } else { 2 })
}

/// The finaliser of MurmurHash3: a bijection in which every input bit reaches every output bit.
#[inline(always)]
pub(crate) fn mix(mut x: u64) -> u64 {
    x ^= x >> 33;
    x = x.wrapping_mul(0xff51_afd7_ed55_8ccd);
    x ^= x >> 33;
    x = x.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ (x >> 33)
}

/// The key of a sequence that is one pair longer.
#[inline(always)]
pub(crate) fn extend(key: u64, pair: u64) -> u64 {
    mix(key.rotate_left(29).wrapping_add(0x9e37_79b9_7f4a_7c15) ^ pair)
}

/// The distinct sequences seen so far, as a trie: exact, without collisions. A key is a node; the
/// root is [`EMPTY`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Vocabulary {
    children: FxHashMap<(u32, ActionObservation), u32>,
}

impl Vocabulary {
    /// Number of non-empty sequences; their nodes are 1 … len.
    pub(crate) fn len(&self) -> usize {
        self.children.len()
    }

    /// The node of a sequence one pair longer, added if it is new.
    pub(crate) fn intern(&mut self, node: u64, ao: ActionObservation) -> u64 {
        let next = self.children.len() as u32 + 1;
        u64::from(*self.children.entry((node as u32, ao)).or_insert(next))
    }

    /// Parent and last pair of all nodes but the root, in their order: a parent comes before its
    /// children.
    pub(crate) fn nodes(&self) -> Vec<(u32, ActionObservation)> {
        let mut nodes = vec![(0, ActionObservation::new(0, 0)); self.len()];
        self.children.iter().for_each(|(&step, &node)| nodes[node as usize - 1] = step);
        nodes
    }

    /// The node of a sequence one pair longer, if it was seen.
    pub(crate) fn find(&self, node: u64, ao: ActionObservation) -> Option<u64> {
        self.children.get(&(node as u32, ao)).map(|&n| u64::from(n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_depend_on_names_and_order_only() {
        let (mut one, mut two) = (Alphabet::default(), Alphabet::default());
        for name in ["N", "E"] {
            one.intern_action(name);
        }
        for name in ["E", "N"] {
            two.intern_action(name);
        }
        for alphabet in [&mut one, &mut two] {
            alphabet.intern_observation("wall");
        }
        let (f1, f2) = (Fingerprints::of(&one), Fingerprints::of(&two));
        let (north, east) = (ActionObservation::new(0, 0), ActionObservation::new(1, 0));
        assert_eq!(f1.pair(north), f2.pair(east), "the same names under other indices");
        let key = |f: &Fingerprints, x, y| extend(extend(EMPTY, f.pair(x)), f.pair(y));
        assert_eq!(key(&f1, north, east), key(&f2, east, north));
        assert_ne!(key(&f1, north, east), key(&f1, east, north));
    }

    #[test]
    fn a_terminal_observation_has_its_own_fingerprint() {
        let mut alphabet = Alphabet::default();
        alphabet.intern_action("a");
        alphabet.intern_observation("o");
        alphabet.intern_terminal_observation("o");
        let f = Fingerprints::of(&alphabet);
        assert_ne!(f.pair(ActionObservation::new(0, 0)), f.pair(ActionObservation::new(0, 1)));
    }

    #[test]
    fn a_vocabulary_names_each_sequence_once() {
        let mut words = Vocabulary::default();
        let (x, y) = (ActionObservation::new(0, 0), ActionObservation::new(1, 0));
        let xy = {
            let n = words.intern(EMPTY, x);
            words.intern(n, y)
        };
        let yx = {
            let n = words.intern(EMPTY, y);
            words.intern(n, x)
        };
        assert_ne!(xy, yx);
        assert_eq!(words.len(), 4);
        assert_eq!(words.find(words.find(EMPTY, x).unwrap(), y), Some(xy));
        assert_eq!(words.find(xy, x), None);
    }
}
