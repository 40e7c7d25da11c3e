//! Checksums of files, over every byte of them.
//!
//! The digits are part of the header, so the checksum is that of the file with zeros in their place.

use std::ops::Range;

use xxhash_rust::xxh3::Xxh3;

/// What stands before the digits: JSON within a string of JSON.
const BEFORE: &[u8] = br#"\"checksum\":\""#;
/// In place of the digits, while they are not known.
pub(super) const ZEROS: &str = "00000000000000000000000000000000";

/// What the checksum of a file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seal {
    /// There is none.
    Missing,
    /// Every byte is as it was written.
    Whole,
    /// Some byte is not.
    Broken,
}

/// The bytes of a model, a policy or another safetensors file of Foretell, with the checksum that
/// belongs to them; unchanged if they have none.
///
/// Only for files that were changed on purpose, such as arrays that were replaced: a wrong checksum
/// says that a file is damaged.
///
/// ```
/// # use foretell::{LearnParams, Logs, Model, Seed, domains, learn, store};
/// # let tiger = domains::get("tiger")?;
/// # let logs = Logs::memory(tiger.alphabet().clone(), domains::sample(&tiger, 50, 10, Seed(1)).collect());
/// let mut bytes = learn(&logs, &LearnParams { rank: 2, ..LearnParams::default() })?.to_bytes();
/// // The last bit of the first number behind the header.
/// let first = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
/// bytes[first] ^= 1;
/// assert!(Model::from_bytes(&bytes, "changed").unwrap_err().to_string().contains("checksum"));
/// assert!(Model::from_bytes(&store::sealed(bytes), "changed").is_ok());
/// # Ok::<(), foretell::Error>(())
/// ```
pub fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    if let Some(place) = place(&bytes) {
        let digits = digits(&bytes, &place);
        bytes[place].copy_from_slice(digits.as_bytes());
    }
    bytes
}

/// Compares the checksum of a file with its bytes.
pub(super) fn check(bytes: &[u8]) -> Seal {
    match place(bytes) {
        None => Seal::Missing,
        Some(place) if bytes[place.clone()] == *digits(bytes, &place).as_bytes() => Seal::Whole,
        Some(_) => Seal::Broken,
    }
}

/// Where the digits are.
fn place(bytes: &[u8]) -> Option<Range<usize>> {
    let (length, rest) = bytes.split_first_chunk()?;
    let header = rest.get(..usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    let first = header.windows(BEFORE.len()).position(|text| text == BEFORE)? + BEFORE.len();
    header.get(first..first + ZEROS.len())?;
    let first = first + length.len();
    Some(first..first + ZEROS.len())
}

/// The checksum: XXH3 of 128 bits, which changes with every single bit and, by accident, is the same
/// once in 3·10³⁸ times.
fn digits(bytes: &[u8], place: &Range<usize>) -> String {
    let mut hash = Xxh3::new();
    hash.update(&bytes[..place.start]);
    hash.update(ZEROS.as_bytes());
    hash.update(&bytes[place.end..]);
    format!("{:032x}", hash.digest128())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, rest: &[u8]) -> Vec<u8> {
        [&(header.len() as u64).to_le_bytes(), header.as_bytes(), rest].concat()
    }

    #[test]
    fn a_checksum_covers_every_byte_and_itself() {
        let whole = sealed(file(&format!(r#"{{"foretell":"{{\"checksum\":\"{ZEROS}\",\"a\":1}}"}}"#), b"numbers"));
        assert_eq!(check(&whole), Seal::Whole);
        assert_eq!(sealed(whole.clone()), whole);
        for (i, bit) in (0..whole.len()).flat_map(|i| (0..8).map(move |bit| (i, bit))) {
            let mut changed = whole.clone();
            changed[i] ^= 1 << bit;
            assert_ne!(check(&changed), Seal::Whole, "bit {bit} of byte {i}");
        }
    }

    #[test]
    fn what_has_no_checksum_stays_as_it_is() {
        let cut = format!(r#"\"checksum\":\"{}"#, &ZEROS[1..]);
        for bytes in [vec![], b"short".to_vec(), vec![255; 40], file("{}", b"numbers"), file(&cut, b"0123")] {
            assert_eq!(check(&bytes), Seal::Missing);
            assert_eq!(sealed(bytes.clone()), bytes);
        }
    }
}
