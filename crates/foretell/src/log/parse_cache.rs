//! A cache of parsed short texts.

use super::cell::{Cell, Problem};

/// Caches the values of short texts, so that frequent names and numbers are not parsed again.
///
/// Without it, looking up a name costs a check of its encoding and a hash; with it, reading takes
/// about half the time.
pub(super) struct ParseCache<V> {
    slots: Vec<(u128, V)>,
}

const SLOTS: usize = 256; // most alphabets are smaller, and it stays in the first-level cache

impl<V: Copy + Default> ParseCache<V> {
    /// The value of `cell`: cached, or what `read` returns now.
    #[inline(always)]
    pub fn get<'c>(&mut self, cell: Cell<'c>, read: impl FnOnce(Cell<'c>) -> Result<Parsed<V>, Problem>) -> Result<V, Problem> {
        let Cell::Text(text) = cell else { return read(cell).map(Parsed::value) };
        let Some(key) = key(text) else { return read(cell).map(Parsed::value) };
        let slot = slot(key);
        let (known, value) = self.slots[slot];
        if known == key {
            return Ok(value);
        }
        match read(cell)? {
            Parsed::Cacheable(value) => {
                self.slots[slot] = (key, value);
                Ok(value)
            }
            Parsed::Temporary(value) => Ok(value),
        }
    }
}

/// The value of a text.
pub(super) enum Parsed<V> {
    /// It may be cached.
    Cacheable(V),
    /// It may change, so it is not cached.
    Temporary(V),
}

impl<V> Parsed<V> {
    pub fn value(self) -> V {
        match self {
            Parsed::Cacheable(value) | Parsed::Temporary(value) => value,
        }
    }
}

impl<V: Copy + Default> Default for ParseCache<V> {
    fn default() -> Self {
        ParseCache { slots: vec![(0, V::default()); SLOTS] } // no text has the key 0
    }
}

/// A 1 followed by the bytes of a text of at most 15 bytes: different for different texts.
#[inline(always)]
fn key(text: &[u8]) -> Option<u128> {
    (text.len() < 16).then(|| text.iter().fold(1, |key, &byte| key << 8 | u128::from(byte)))
}

#[inline(always)]
fn slot(key: u128) -> usize {
    let mixed = (key as u64 ^ (key >> 64) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15); // 2⁶⁴ / golden ratio
    (mixed >> 56) as usize % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_cacheable_values_are_kept() {
        let mut cache = ParseCache::<u32>::default();
        let mut say = |text: &str, meaning| cache.get(Cell::Text(text.as_bytes()), |_| Ok(meaning)).unwrap();
        assert_eq!(say("a", Parsed::Temporary(1)), 1);
        assert_eq!(say("a", Parsed::Cacheable(2)), 2);
        assert_eq!(say("a", Parsed::Cacheable(3)), 2);
        assert_eq!(say("\0a", Parsed::Cacheable(4)), 4);
        assert_eq!(say("a text of 16 bytes", Parsed::Cacheable(5)), 5);
        assert_eq!(say("a text of 16 bytes", Parsed::Cacheable(6)), 6);
    }

    #[test]
    fn an_error_is_not_kept() {
        let mut cache = ParseCache::<u32>::default();
        assert!(cache.get(Cell::Text(b"a"), |_| Err(Problem::new("bad", ""))).is_err());
        assert_eq!(cache.get(Cell::Text(b"a"), |_| Ok(Parsed::Cacheable(1))), Ok(1));
    }
}
