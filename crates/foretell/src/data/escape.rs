//! Names as text that a person or a program reads line by line.

use std::borrow::Cow;

/// The name without control characters and without characters that change the order in which others
/// are shown: as `\n`, `\t` or `\u{1b}`. A terminal then shows it as it is, and it takes one line.
///
/// A backslash becomes `\\` in names that would otherwise look like another one, escaped, so that
/// different names stay different, and [`unescaped`] returns each of them.
///
/// ```
/// use foretell::data::{escaped, unescaped};
///
/// assert_eq!(escaped("wall"), "wall");
/// assert_eq!(escaped("two\nlines"), r"two\nlines");
/// assert_eq!(escaped(r"two\nlines"), r"two\\nlines");
/// assert_eq!(escaped(r"C:\dir"), r"C:\dir");
/// assert_eq!(escaped("\u{1b}[31mred"), r"\u{1b}[31mred");
/// assert_eq!(unescaped(r"two\nlines"), "two\nlines");
/// ```
pub fn escaped(name: &str) -> Cow<'_, str> {
    if !name.contains(is_escaped) && matches!(unescaped(name), Cow::Borrowed(_)) {
        return Cow::Borrowed(name);
    }
    let mut text = String::with_capacity(name.len() + 8);
    for c in name.chars() {
        match c {
            '\\' => text.push_str(r"\\"),
            '\n' => text.push_str(r"\n"),
            '\r' => text.push_str(r"\r"),
            '\t' => text.push_str(r"\t"),
            c if is_escaped(c) => text.extend(c.escape_unicode()),
            c => text.push(c),
        }
    }
    Cow::Owned(text)
}

/// The name that [`escaped`] shows in this way.
pub fn unescaped(text: &str) -> Cow<'_, str> {
    let mut name: Option<String> = None;
    let (mut rest, mut done) = (text, 0);
    while let Some(at) = rest.find('\\') {
        let here = done + at;
        let Some((c, length)) = escape(&text[here..]) else {
            if let Some(name) = &mut name {
                name.push_str(&text[done..=here]);
            }
            (rest, done) = (&text[here + 1..], here + 1);
            continue;
        };
        let name = name.get_or_insert_with(|| text[..done].to_string());
        name.push_str(&text[done..here]);
        name.push(c);
        (rest, done) = (&text[here + length..], here + length);
    }
    match name {
        Some(name) => Cow::Owned(name + rest),
        None => Cow::Borrowed(text),
    }
}

/// The character that a text beginning with a backslash stands for, and the length of its escape.
fn escape(text: &str) -> Option<(char, usize)> {
    let plain = |c| Some((c, 2));
    match text.as_bytes().get(1)? {
        b'\\' => plain('\\'),
        b'n' => plain('\n'),
        b'r' => plain('\r'),
        b't' => plain('\t'),
        b'u' => {
            let digits = text.strip_prefix(r"\u{")?;
            let digits = &digits[..digits.find('}')?];
            let c = char::from_u32(u32::from_str_radix(digits, 16).ok()?)?;
            Some((c, digits.len() + r"\u{}".len()))
        }
        _ => None,
    }
}

/// Control characters, line ends of Unicode, and marks that turn the direction of text.
fn is_escaped(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn names_come_back_and_stay_different(name in r"[a\\nrtu{1b}\n\r\t\u{1b}\u{202e}\u{7f}é]{0,12}", other in r"[a\\nu{1b}\n\u{1b}]{0,4}") {
            let shown = escaped(&name);
            prop_assert!(!shown.contains(is_escaped), "{shown:?}");
            prop_assert_eq!(unescaped(&shown), &*name);
            prop_assert_eq!(escaped(&other) == shown, other == name);
        }
    }
}
