//! How the cells of a text file are divided.

/// Characters that divide cells; of equals, the first is taken.
const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];
/// Rows after the header that must have as many cells.
const COMPARED: usize = 5;

/// How the cells of a text file are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dialect {
    pub delimiter: u8,
    /// Spaces follow the delimiter, as in `a, b`.
    pub spaced: bool,
}

impl Dialect {
    /// By the first rows: the delimiter that divides them into equally many cells, and the header
    /// into the most.
    pub fn of(begin: &[u8]) -> Dialect {
        let rows: Vec<&[u8]> =
            begin.split(|&byte| byte == b'\n').filter(|row| !row.trim_ascii().is_empty()).take(1 + COMPARED).collect();
        let Some((header, others)) = rows.split_first() else { return Dialect { delimiter: b',', spaced: false } };
        // the last row may be cut by the buffer
        let others = &others[..others.len().saturating_sub(usize::from(others.len() < COMPARED && !begin.ends_with(b"\n")))];
        let rank = |&delimiter: &u8| {
            let cells = dividers(header, delimiter).len();
            let agree = others.iter().filter(|row| dividers(row, delimiter).len() == cells).count();
            (cells > 0).then_some((agree == others.len(), cells))
        };
        let ranked = DELIMITERS.iter().rev().filter_map(|delimiter| Some((rank(delimiter)?, *delimiter)));
        let delimiter = ranked.max_by_key(|(rank, _)| *rank).map_or(b',', |(_, delimiter)| delimiter);
        let at = dividers(header, delimiter);
        Dialect { delimiter, spaced: !at.is_empty() && at.iter().all(|&at| header.get(at + 1) == Some(&b' ')) }
    }

    /// Whether `1,5` is a number.
    pub fn has_decimal_commas(self) -> bool {
        self.delimiter == b';'
    }
}

/// Where a delimiter stands outside quotes.
fn dividers(row: &[u8], delimiter: u8) -> Vec<usize> {
    let mut is_quoted = false;
    let mut at = Vec::new();
    for (i, &byte) in row.iter().enumerate() {
        is_quoted ^= byte == b'"';
        at.extend((byte == delimiter && !is_quoted).then_some(i));
    }
    at
}

/// A whole number without `.0`, so that `1.0` and `1` are one name, as they are in formats with
/// types; any other text is unchanged.
#[inline(always)]
pub(super) fn plain_number(text: &[u8]) -> &[u8] {
    match text {
        [.., b'0' | b'.', b'0'] => without_zeros(text),
        _ => text,
    }
}

#[inline(never)]
fn without_zeros(text: &[u8]) -> &[u8] {
    // Mostly there is one zero, and nothing to be found.
    let point = match text {
        [.., b'.', _] => Some(text.len() - 2),
        _ => text.iter().position(|&byte| byte == b'.'),
    };
    let Some(point) = point else { return text };
    let (whole, zeros) = (&text[..point], &text[point + 1..]);
    let digits = whole.strip_prefix(b"-").unwrap_or(whole);
    let is_number = match digits {
        [b'0'] => whole.len() == 1,
        [b'1'..=b'9', others @ ..] => others.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    if is_number && zeros.iter().all(|&byte| byte == b'0') { whole } else { text }
}

/// Where the comma of a number such as `-1,5` stands.
pub(super) fn decimal_comma(text: &[u8]) -> Option<usize> {
    let at = text.iter().position(|&byte| byte == b',')?;
    let whole = text[..at].strip_prefix(b"-").unwrap_or(&text[..at]);
    let (part, exponent) = match text[at + 1..].iter().position(|byte| byte.eq_ignore_ascii_case(&b'e')) {
        Some(e) => (&text[at + 1..at + 1 + e], &text[at + 2 + e..]),
        None => (&text[at + 1..], &b"0"[..]),
    };
    let exponent = exponent.strip_prefix(b"-").or(exponent.strip_prefix(b"+")).unwrap_or(exponent);
    let is_digits = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    (is_digits(whole) && is_digits(part) && is_digits(exponent)).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delimiter_divides_all_rows_into_as_many_cells() {
        let delimiter = |text: &str| Dialect::of(text.as_bytes()).delimiter as char;
        assert_eq!(delimiter("a,b;c\n"), ',');
        assert_eq!(delimiter("\na;b\n1,2\n"), ';');
        assert_eq!(delimiter("a\tb"), '\t');
        assert_eq!(delimiter("a"), ',');
        assert_eq!(delimiter("a|b|c\n1|x,y|3\n"), '|');
        assert_eq!(delimiter("\"last, first\";b\nx;1\n"), ';', "a comma in quotes divides nothing");
        assert_eq!(delimiter("a;b, in mm;c\n1;2;3\n4;5,5;6\n"), ';');
        assert_eq!(delimiter("a,b\nx;y,1\nz,2\n"), ',');
    }

    #[test]
    fn spaces_belong_to_the_delimiter_if_all_have_one() {
        assert!(Dialect::of(b"a, b, c\n").spaced);
        assert!(!Dialect::of(b"a, b,c\n").spaced);
        assert!(!Dialect::of(b"a b\n").spaced);
    }

    #[test]
    fn numbers_with_decimal_commas_are_recognised() {
        for yes in ["1,5", "-0,25", "12,5e-3", "1,0E+5"] {
            assert!(decimal_comma(yes.as_bytes()).is_some(), "{yes}");
        }
        for no in ["1", ",5", "5,", "1,2,3", "x,5", "1,5x", "1,5e", "", "-,5"] {
            assert!(decimal_comma(no.as_bytes()).is_none(), "{no}");
        }
    }
}
