//! What short texts meant the last time.

use super::cell::{Cell, Problem};

/// Remembers what short texts mean, so that names and numbers that come again and again are not parsed again.
///
/// Looking up a name otherwise costs a check of its encoding and a hash: with this, reading takes about half the time.
pub(super) struct Recent<V> {
    slots: Vec<(u128, V)>,
}

const SLOTS: usize = 256; // most alphabets are smaller, and it stays in the first cache

impl<V: Copy + Default> Recent<V> {
    /// What `cell` means: what `read` said about its text earlier, or says now.
    #[inline(always)]
    pub fn get<'c>(&mut self, cell: Cell<'c>, read: impl FnOnce(Cell<'c>) -> Result<Meaning<V>, Problem>) -> Result<V, Problem> {
        let Cell::Text(text) = cell else { return read(cell).map(Meaning::value) };
        let Some(key) = key(text) else { return read(cell).map(Meaning::value) };
        let slot = slot(key);
        let (known, value) = self.slots[slot];
        if known == key {
            return Ok(value);
        }
        match read(cell)? {
            Meaning::Lasting(value) => {
                self.slots[slot] = (key, value);
                Ok(value)
            }
            Meaning::Passing(value) => Ok(value),
        }
    }
}

/// What a text means.
pub(super) enum Meaning<V> {
    /// Now and later.
    Lasting(V),
    /// Only now.
    Passing(V),
}

impl<V> Meaning<V> {
    pub fn value(self) -> V {
        match self {
            Meaning::Lasting(value) | Meaning::Passing(value) => value,
        }
    }
}

impl<V: Copy + Default> Default for Recent<V> {
    fn default() -> Self {
        Recent { slots: vec![(0, V::default()); SLOTS] } // no text has the key 0
    }
}

/// The bytes of a text of up to 15 bytes behind a 1, so that no two texts have the same.
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
    fn lasting_meanings_are_kept_and_passing_ones_are_not() {
        let mut recent = Recent::<u32>::default();
        let mut say = |text: &str, meaning| recent.get(Cell::Text(text.as_bytes()), |_| Ok(meaning)).unwrap();
        assert_eq!(say("a", Meaning::Passing(1)), 1);
        assert_eq!(say("a", Meaning::Lasting(2)), 2);
        assert_eq!(say("a", Meaning::Lasting(3)), 2);
        assert_eq!(say("\0a", Meaning::Lasting(4)), 4);
        assert_eq!(say("a text of 16 bytes", Meaning::Lasting(5)), 5);
        assert_eq!(say("a text of 16 bytes", Meaning::Lasting(6)), 6);
    }

    #[test]
    fn an_error_is_not_kept() {
        let mut recent = Recent::<u32>::default();
        assert!(recent.get(Cell::Text(b"a"), |_| Err(Problem::new("bad", ""))).is_err());
        assert_eq!(recent.get(Cell::Text(b"a"), |_| Ok(Meaning::Lasting(1))), Ok(1));
    }
}
