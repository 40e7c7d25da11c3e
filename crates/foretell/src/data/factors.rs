//! The parts of observations: what a name made of several columns says in each of them.

use std::collections::BTreeMap;

use super::symbols::{Alphabet, Observation, SEPARATOR};

/// Most parts, and most values of all symbols together (256 MiB): names beyond that are whole.
const MOST_PARTS: usize = 1000;
const MOST_VALUES: usize = 1 << 26;

/// The observations of an alphabet by their parts.
///
/// If all names of observations within an episode have the same number of parts, more than one,
/// separated by `|`, there is a factor for each part, and before them one for whether the episode
/// ends. Otherwise the only factor is the symbol itself. Names that end an episode may have fewer
/// or more parts: what is missing is a value of its own, and what is left over belongs to the last.
/// Names of more than 1000 parts are whole.
///
/// ```
/// use foretell::Alphabet;
/// use foretell::data::Factors;
///
/// let mut alphabet = Alphabet::default();
/// for name in ["door=open|light=on", "door=open|light=off", "door=shut|light=on"] {
///     alphabet.intern_observation(name);
/// }
/// let factors = Factors::of(&alphabet);
/// assert_eq!(factors.sizes(), [1, 2, 2]); // no episode ends
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Factors {
    /// The number of values of each factor.
    sizes: Vec<usize>,
    /// The value of each factor, symbol by symbol.
    values: Vec<u32>,
}

impl Factors {
    /// The factors of the observations of an alphabet.
    pub fn of(alphabet: &Alphabet) -> Factors {
        match parts(alphabet) {
            Some(parts) if parts <= MOST_PARTS && parts * alphabet.observations().len() <= MOST_VALUES => {
                Factors::by_parts(alphabet, parts)
            }
            _ => Factors::whole(alphabet.observations().len()),
        }
    }

    /// A single factor: the symbol.
    pub fn whole(symbols: usize) -> Factors {
        Factors { sizes: vec![symbols], values: (0..symbols as u32).collect() }
    }

    fn by_parts(alphabet: &Alphabet, parts: usize) -> Factors {
        let mut known: Vec<BTreeMap<&str, u32>> = vec![BTreeMap::new(); parts];
        let mut values = Vec::new();
        let mut endings = BTreeMap::new();
        for symbol in alphabet.observations() {
            let next = endings.len() as u32;
            values.push(*endings.entry(symbol.terminal).or_insert(next));
            let mut names = symbol.name.splitn(parts, SEPARATOR);
            for known in &mut known {
                let (name, next) = (names.next().unwrap_or_default(), known.len() as u32);
                values.push(*known.entry(name).or_insert(next));
            }
        }
        Factors { sizes: std::iter::once(endings.len()).chain(known.iter().map(BTreeMap::len)).collect(), values }
    }

    /// The number of values of each factor.
    pub fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// The value of each factor of an observation.
    pub fn values(&self, o: Observation) -> &[u32] {
        &self.values[o.index() * self.sizes.len()..][..self.sizes.len()]
    }
}

/// The number of parts that all names within an episode have, if it is more than one.
fn parts(alphabet: &Alphabet) -> Option<usize> {
    let mut counts = alphabet.observations().iter().filter(|o| !o.terminal).map(|o| o.name.split(SEPARATOR).count());
    let first = counts.next().filter(|&n| n > 1)?;
    counts.all(|n| n == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alphabet(names: &[(&str, bool)]) -> Alphabet {
        let mut alphabet = Alphabet::default();
        for &(name, terminal) in names {
            alphabet.intern(name, terminal);
        }
        alphabet
    }

    #[test]
    fn names_of_the_same_number_of_parts_are_split() {
        let factors = Factors::of(&alphabet(&[("a|x", false), ("a|y", false), ("b|x", false), ("a|x", true)]));
        assert_eq!(factors.sizes(), [2, 2, 2]);
        let values: Vec<_> = (0..4).map(|o| factors.values(Observation(o)).to_vec()).collect();
        assert_eq!(values, [[0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0]]);
    }

    #[test]
    fn names_of_different_numbers_of_parts_are_whole() {
        for names in [[("a|x", false), ("a", false)], [("a", false), ("b", true)], [("a|x", true), ("a|y", true)]] {
            assert_eq!(Factors::of(&alphabet(&names)), Factors::whole(2), "{names:?}");
        }
    }

    #[test]
    fn an_ending_of_other_parts_is_still_one_symbol() {
        let factors = Factors::of(&alphabet(&[("a|x|1", false), ("b|x|1", false), ("extinct", true), ("a|x|1|2", true)]));
        assert_eq!(factors.sizes(), [2, 3, 2, 3]);
        let all: std::collections::BTreeSet<_> = (0..4).map(|o| factors.values(Observation(o))).collect();
        assert_eq!(all.len(), 4, "no two symbols have the same values");
    }
}
