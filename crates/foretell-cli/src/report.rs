//! Tables and numbers for people.

use std::io::{self, Write};

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use foretell::data::escaped;
use serde::Serialize;

/// A plain table: names to the left, columns of numbers to the right.
pub fn table(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header.iter().map(|cell| escaped(cell)));
    // The first column names the row, also where the names are numbers.
    let mut right: Vec<bool> = (0..header.len()).map(|i| i > 0).collect();
    for row in rows {
        right.iter_mut().zip(&row).for_each(|(right, cell)| *right &= is_number(cell));
        table.add_row(row.iter().map(|cell| escaped(cell)));
    }
    for (i, right) in right.into_iter().enumerate() {
        if let (true, Some(column)) = (right, table.column_mut(i)) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let text: Vec<String> = table.lines().map(|line| format!(" {}", line.trim_end())).collect();
    text.join("\n")
}

/// The flag of a parameter of the library.
pub fn flag(parameter: &str) -> String {
    format!("--{}", parameter.replace('_', "-"))
}

/// A text of the library, with parameters in backticks replaced by flags.
pub fn with_flags(text: &str) -> String {
    let is_parameter = |word: &str| !word.is_empty() && word.bytes().all(|c| c.is_ascii_lowercase() || c == b'_');
    let parts: Vec<&str> = text.split('`').collect();
    let mut shown = String::new();
    for (i, part) in parts.iter().enumerate() {
        match i % 2 == 1 && i + 1 < parts.len() {
            true if is_parameter(part) => shown.push_str(&flag(part)),
            true => shown.push_str(&format!("`{part}`")),
            false if i % 2 == 1 => shown.push_str(&format!("`{part}")),
            false => shown.push_str(part),
        }
    }
    shown
}

/// 1234567 as `1 234 567`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push('\u{2009}');
        }
        text.push(digit);
    }
    text
}

/// A number as this module writes it, or the dash for a missing one.
fn is_number(cell: &str) -> bool {
    cell == "–" || cell.replace('\u{2009}', "").trim_end_matches(" %").parse::<f64>().is_ok()
}

/// `1 episode`, `2 episodes`.
pub fn plural(n: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(n), if n == 1 { "" } else { "s" })
}

/// A number and half its interval, where there is one.
pub fn with_ci95(x: f64, ci95: Option<f64>) -> String {
    match ci95 {
        Some(half) => format!("{x:.4} ± {half:.4}"),
        None => format!("{x:.4} (± n/a: one episode)"),
    }
}

/// 0.0123 as `1.23 %`.
pub fn percent(share: f64) -> String {
    let digits = if share == 0.0 || share >= 0.1 { 1 } else { 2 };
    format!("{:.digits$} %", 100.0 * share)
}

/// The largest value first, each with the index it had.
pub fn ranked(values: &[f64]) -> Vec<(usize, f64)> {
    let mut ranked: Vec<(usize, f64)> = values.iter().copied().enumerate().collect();
    ranked.sort_by(|x, y| y.1.total_cmp(&x.1));
    ranked
}

/// Writes text to standard output. What names hold cannot move the cursor or change colours.
pub fn say(text: impl AsRef<str>) -> io::Result<()> {
    let lines: Vec<_> = text.as_ref().split('\n').map(harmless).collect();
    writeln!(io::stdout().lock(), "{}", lines.join("\n"))
}

/// Writes a line to standard error. Whoever closed it, or has no more room for it, does not want to
/// know.
pub fn complain(text: impl AsRef<str>) {
    let _ = writeln!(io::stderr(), "{}", harmless(text.as_ref()));
}

/// A line of text with its control characters escaped.
fn harmless(line: &str) -> String {
    let of_char = |c: char| escaped(c.encode_utf8(&mut [0; 4])).into_owned();
    line.chars().map(|c| if c == '\\' { c.to_string() } else { of_char(c) }).collect()
}

/// Writes a value to standard output as JSON.
pub fn json(value: &impl Serialize) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, value).map_err(io::Error::from)?;
    writeln!(out)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_left_and_numbers_right() {
        let rows = [["a", "1", "open"], ["b", "1\u{2009}000", "...."]].map(|row| row.map(String::from).to_vec());
        let text = table(&["key", "steps", "view"], rows);
        assert_eq!(text, "  key  steps  view\n  a        1  open\n  b    1\u{2009}000  ....");
    }

    #[test]
    fn names_do_not_command_the_terminal() {
        assert_eq!(harmless("a\u{1b}[2Jb\\n\u{202e}c\nd"), r"a\u{1b}[2Jb\n\u{202e}c\nd");
        let text = table(&["name"], [vec!["two\nlines\u{7}".to_string()]]);
        assert_eq!(text, "  name\n  two\\nlines\\u{7}");
    }

    #[test]
    fn numbers_are_readable() {
        assert_eq!(count(1_234_567), "1\u{2009}234\u{2009}567");
        assert_eq!(count(12), "12");
        assert_eq!(plural(1, "step"), "1 step");
        assert_eq!(percent(0.5), "50.0 %");
        assert_eq!(percent(0.0104), "1.04 %");
    }
}
