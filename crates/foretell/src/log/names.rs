//! Logs that are named by folders and patterns.

use std::cmp::Ordering;
use std::path::{Component, Path, PathBuf};
use std::{fs, io};

use super::Format;
use crate::error::{Error, Result};

/// The files that a path stands for: the logs in a folder, the matches of a pattern such as
/// `logs/*.csv`, or the file itself. Numbers in names are sorted as numbers: `part-2` before
/// `part-10`.
pub fn expand(argument: &Path) -> Result<Vec<PathBuf>> {
    if argument.is_dir() {
        return in_folder(argument);
    }
    if argument.exists() || !argument.components().any(is_pattern) {
        return Ok(vec![argument.to_path_buf()]);
    }
    let found = matching(argument)?;
    if found.is_empty() {
        let folder = argument.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let remedy = match folder.is_dir() {
            true => format!("give another pattern, or the folder {} for all logs in it", folder.display()),
            false => format!("nor is there a folder {}: check the path", folder.display()),
        };
        return Err(Error::data(format!("no file matches {}", argument.display()), remedy));
    }
    let files = found.iter().map(|path| if path.is_dir() { in_folder(path) } else { Ok(vec![path.clone()]) });
    Ok(files.collect::<Result<Vec<_>>>()?.concat())
}

/// The logs in a folder, without those in subfolders.
fn in_folder(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut logs = entries(folder)?;
    logs.retain(|path| Format::of_name(path).is_some() && !is_hidden(&name(path)) && path.is_file());
    if logs.is_empty() {
        let endings = "names that end in .csv, .jsonl, .ndjson or .parquet, the first three also .gz";
        let problem = format!("the folder {} contains no logs", folder.display());
        return Err(Error::data(problem, format!("looked for {endings}")));
    }
    logs.sort_by(|a, b| by_number(&name(a), &name(b)));
    Ok(logs)
}

/// All matches of a pattern, in order.
fn matching(pattern: &Path) -> Result<Vec<PathBuf>> {
    let mut found = vec![PathBuf::new()];
    for part in pattern.components() {
        let text: Vec<char> = part.as_os_str().to_string_lossy().chars().collect();
        let mut next = Vec::new();
        for path in found {
            if !is_pattern(part) {
                next.extend(Some(path.join(part)).filter(|path| path.exists()));
            } else if path.as_os_str().is_empty() || path.is_dir() {
                let mut inside = entries(&path)?;
                inside.retain(|path| is_hidden(&name(path)) == text.starts_with(&['.']) && fits(&text, &chars(path)));
                inside.sort_by(|a, b| by_number(&name(a), &name(b)));
                next.extend(inside);
            }
        }
        found = next;
    }
    Ok(found)
}

/// The entries of a folder; the empty path is the current directory.
fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let place = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let entries = fs::read_dir(place).and_then(|entries| entries.collect::<io::Result<Vec<_>>>());
    let entries = entries.map_err(Error::io("list", place))?;
    Ok(entries.into_iter().map(|entry| folder.join(entry.file_name())).collect())
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn chars(path: &Path) -> Vec<char> {
    name(path).chars().collect()
}

fn is_hidden(name: &str) -> bool {
    name.starts_with('.')
}

fn is_pattern(part: Component<'_>) -> bool {
    matches!(part, Component::Normal(text) if text.to_string_lossy().contains(['*', '?', '[']))
}

/// Whether a name fits a pattern of `*` (anything), `?` (one character), `[a-z]` and `[!a-z]` (one
/// of these, none of them).
pub(super) fn fits(pattern: &[char], name: &[char]) -> bool {
    match pattern {
        [] => name.is_empty(),
        ['*', rest @ ..] => (0..=name.len()).any(|skipped| fits(rest, &name[skipped..])),
        ['[', rest @ ..] if closing(rest).is_some() => {
            let (set, rest) = rest.split_at(closing(rest).unwrap_or(0));
            matches!(name, [first, others @ ..] if is_in(set, *first) && fits(&rest[1..], others))
        }
        [wanted, rest @ ..] => {
            matches!(name, [first, others @ ..] if (*wanted == '?' || wanted == first) && fits(rest, others))
        }
    }
}

/// Where the set after a `[` ends. A `]` that comes first belongs to the set.
fn closing(set: &[char]) -> Option<usize> {
    let first = 1 + usize::from(set.starts_with(&['!']));
    (first..set.len()).find(|&i| set[i] == ']')
}

fn is_in(set: &[char], c: char) -> bool {
    let (mut set, wanted) = set.strip_prefix(&['!']).map_or((set, true), |set| (set, false));
    let mut found = false;
    while let [low, rest @ ..] = set {
        (found, set) = match rest {
            ['-', high, rest @ ..] => (found || (*low..=*high).contains(&c), rest),
            _ => (found || *low == c, rest),
        };
    }
    found == wanted
}

/// Compares names, with numbers in them compared as numbers: `part-2` before `part-10`.
pub(super) fn by_number(a: &str, b: &str) -> Ordering {
    let (mut x, mut y) = (a, b);
    while let (Some(p), Some(q)) = (x.chars().next(), y.chars().next()) {
        let order = match (digits(x), digits(y)) {
            (0, _) | (_, 0) => {
                (x, y) = (&x[p.len_utf8()..], &y[q.len_utf8()..]);
                p.cmp(&q)
            }
            (n, m) => {
                let (i, j) = (x[..n].trim_start_matches('0'), y[..m].trim_start_matches('0'));
                (x, y) = (&x[n..], &y[m..]);
                (i.len(), i).cmp(&(j.len(), j))
            }
        };
        if order.is_ne() {
            return order;
        }
    }
    x.len().cmp(&y.len()).then_with(|| a.cmp(b))
}

/// How many digits a text begins with.
fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// The words of a name: `userId`, `user_id` and `User.ID` are `user` and `id`.
pub(super) fn words(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut last_lower = false;
    for c in name.chars() {
        if !c.is_alphanumeric() || c.is_uppercase() && last_lower {
            parts.push(String::new());
        }
        last_lower = c.is_lowercase();
        if c.is_alphanumeric() {
            parts.last_mut().expect("there is one").extend(c.to_lowercase());
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_are_sorted_as_numbers() {
        let order = ["1", "2.csv", "10.csv", "a", "a-b", "part-02", "part-2", "part-2b", "part-10", "part-18446744073709551616"];
        for pair in order.windows(2) {
            assert_eq!(by_number(pair[0], pair[1]), Ordering::Less, "{pair:?}");
            assert_eq!(by_number(pair[1], pair[0]), Ordering::Greater, "{pair:?}");
        }
    }

    #[test]
    fn names_fit_patterns_as_in_a_shell() {
        let fit = |pattern: &str, name: &str| fits(&pattern.chars().collect::<Vec<_>>(), &name.chars().collect::<Vec<_>>());
        for (pattern, name) in [
            ("*.csv", "a.csv"),
            ("*", ""),
            ("a*b*c", "aXbbYc"),
            ("?.csv", "é.csv"),
            ("part-[0-4].csv", "part-3.csv"),
            ("part-[!0-4].csv", "part-7.csv"),
            ("[]x]", "]"),
            ("[a-]", "-"),
            ("a[", "a["),
        ] {
            assert!(fit(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in
            [("*.csv", "a.csv.gz"), ("?.csv", ".csv"), ("part-[0-4].csv", "part-7.csv"), ("[!a]", "a"), ("a*b", "ac"), ("", "a")]
        {
            assert!(!fit(pattern, name), "{pattern} {name}");
        }
    }

    /// The files that an argument stands for in a folder with such files.
    fn expanded(files: &[&str], argument: &str) -> Result<Vec<String>, String> {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let inside = |path: &PathBuf| path.strip_prefix(folder.path()).unwrap().display().to_string();
        match expand(&folder.path().join(argument)) {
            Ok(paths) => Ok(paths.iter().map(inside).collect()),
            Err(e) => Err(e.to_string().replace(&format!("{}/", folder.path().display()), "")),
        }
    }

    #[test]
    fn a_folder_means_the_logs_in_it() {
        let files = ["logs/b-10.csv", "logs/b-9.csv.gz", "logs/A.PARQUET", "logs/notes.txt", "logs/.b-1.csv", "logs/in/c.csv"];
        assert_eq!(expanded(&files, "logs").unwrap(), ["logs/A.PARQUET", "logs/b-9.csv.gz", "logs/b-10.csv"]);
        let said = expanded(&["logs/notes.txt"], "logs").unwrap_err();
        assert!(
            said.starts_with("the folder ") && said.contains("contains no logs; looked for names that end in .csv"),
            "{said}"
        );
    }

    #[test]
    fn a_pattern_means_what_matches_it() {
        let files = ["2/a.csv", "10/a.csv", "10/b.jsonl", "2/.a.csv", "x/in/a.csv"];
        assert_eq!(expanded(&files, "*/?.csv").unwrap(), ["2/a.csv", "10/a.csv"]);
        assert_eq!(expanded(&files, "[0-9]*").unwrap(), ["2/a.csv", "10/a.csv", "10/b.jsonl"]);
        assert_eq!(expanded(&files, "*/in/a.csv").unwrap(), ["x/in/a.csv"]);
        assert_eq!(expanded(&files, "2/.*").unwrap(), ["2/.a.csv"]);
        let said = expanded(&files, "2/*.parquet").unwrap_err();
        assert_eq!(said, "no file matches 2/*.parquet; give another pattern, or the folder 2 for all logs in it");
    }

    #[test]
    fn a_file_with_exactly_that_name_is_preferred_to_a_pattern() {
        assert_eq!(expanded(&["a*.csv", "ab.csv"], "a*.csv").unwrap(), ["a*.csv"]);
        assert_eq!(expanded(&[], "missing.csv").unwrap(), ["missing.csv"], "an error comes when it is read");
    }

    #[test]
    fn names_are_divided_into_words() {
        for name in ["userId", "user_id", "User.ID", "user id"] {
            assert_eq!(words(name), ["user", "id"], "{name}");
        }
        assert_eq!(words("PTNUM"), ["ptnum"]);
    }
}
