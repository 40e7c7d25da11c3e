//! The ids of the episodes read so far.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;
use xxhash_rust::xxh3::xxh3_64;

/// A set of episode ids.
///
/// Integers are kept as intervals, so that consecutive ids take no memory.
/// Other ids are kept as 64-bit hashes: the probability that two of a million ids collide is 3 in
/// 10⁸, and then an error names the id.
#[derive(Default)]
pub(super) struct EpisodeIds {
    /// First ↦ last of each interval; intervals neither overlap nor touch.
    intervals: BTreeMap<i64, i64>,
    hashes: FxHashSet<u64>,
}

impl EpisodeIds {
    /// Adds an id; false if it was there already.
    pub fn insert(&mut self, id: &str) -> bool {
        match id.parse::<i64>() {
            // "007" and "+7" are other ids than "7"
            Ok(n) if is_canonical(id) => self.insert_integer(n),
            _ => self.hashes.insert(xxh3_64(id.as_bytes())),
        }
    }

    fn insert_integer(&mut self, n: i64) -> bool {
        let below = self.intervals.range(..=n).next_back().map(|(&first, &last)| (first, last));
        if below.is_some_and(|(_, last)| last >= n) {
            return false;
        }
        let first = match below {
            Some((first, last)) if last.checked_add(1) == Some(n) => first,
            _ => n,
        };
        let last = n.checked_add(1).and_then(|next| self.intervals.remove(&next)).unwrap_or(n);
        self.intervals.insert(first, last);
        true
    }
}

fn is_canonical(integer: &str) -> bool {
    let digits = integer.strip_prefix('-').unwrap_or(integer);
    integer == "0" || digits.starts_with(|c: char| ('1'..='9').contains(&c))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ids_that_count_up_take_one_interval() {
        let mut seen = EpisodeIds::default();
        assert!((0..10_000).all(|n| seen.insert(&n.to_string())));
        assert_eq!((seen.intervals.len(), seen.hashes.len()), (1, 0));
        assert!(!seen.insert("77"));
    }

    #[test]
    fn numbers_at_the_edge_are_ids_too() {
        let mut seen = EpisodeIds::default();
        for id in ["9223372036854775807", "-9223372036854775808", "9223372036854775808", "007", "7", "-0", "0", "+7", ""] {
            assert!(seen.insert(id), "{id}");
            assert!(!seen.insert(id), "{id}");
        }
    }

    proptest! {
        #[test]
        fn it_is_a_set(ids in prop::collection::vec(-20i64..20, 0..60)) {
            let (mut seen, mut set) = (EpisodeIds::default(), HashSet::new());
            for id in ids {
                prop_assert_eq!(seen.insert(&id.to_string()), set.insert(id));
            }
        }
    }
}
