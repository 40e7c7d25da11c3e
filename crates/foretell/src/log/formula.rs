//! Texts that a spreadsheet would run as formulas.
//!
//! Whoever opens a CSV file in a spreadsheet runs what begins with `=`, `+`, `-` or `@`, and names in
//! logs may be anybody's. A leading apostrophe is how spreadsheets themselves mark a text. The files
//! written here have it, and reading CSV takes it away, so that every name comes back.

use std::borrow::Cow;

const APOSTROPHE: u8 = b'\'';

/// The text as a cell of CSV holds it: with an apostrophe before what would be a formula.
///
/// Numbers are no formulas, and neither is a single character.
pub(super) fn guarded(text: &str) -> Cow<'_, str> {
    match is_formula(text.as_bytes()) {
        true => Cow::Owned(format!("'{text}")),
        false => Cow::Borrowed(text),
    }
}

/// The text of a cell of CSV, without the apostrophe that marks it as a text.
#[inline(always)]
pub(super) fn unguarded(cell: &[u8]) -> &[u8] {
    match cell {
        [APOSTROPHE, text @ ..] if is_formula(text) => text,
        _ => cell,
    }
}

/// Whether a text begins like a formula, perhaps after apostrophes: those are marked too, so that
/// exactly one is taken away.
fn is_formula(text: &[u8]) -> bool {
    let marks = text.iter().take_while(|&&byte| byte == APOSTROPHE).count();
    let is_number = || std::str::from_utf8(text).is_ok_and(|text| text.parse().is_ok_and(f64::is_finite));
    match &text[marks..] {
        [b'=' | b'@' | b'\t' | b'\r', _, ..] => true,
        [b'+' | b'-', _, ..] => !is_number(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn formulas_are_marked_and_names_are_not() {
        for formula in ["=1+1", "@SUM(A1)", "+1+cmd|' /C calc'!A0", "-a", "\t=1", "'=1", "''-a", "-inf"] {
            assert_eq!(guarded(formula), format!("'{formula}"));
        }
        for name in ["N", "-1", "+0.5", "-1e3", "+", "-", "=", "'", "'tis", "don't", "a=b", ""] {
            assert_eq!(guarded(name), name);
        }
    }

    proptest! {
        #[test]
        fn every_name_comes_back(name in r"['=+@\t\r1a-]{0,6}") {
            let cell = guarded(&name);
            prop_assert_eq!(unguarded(cell.as_bytes()), name.as_bytes());
            prop_assert!(!cell.starts_with(['=', '@', '\t', '\r']) || cell.len() == 1);
        }
    }
}
