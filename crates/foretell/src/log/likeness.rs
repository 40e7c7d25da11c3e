//! Names that are probably meant to be the same, and columns that never change.

use std::collections::{BTreeMap, BTreeSet};

use crate::data::SEPARATOR;

/// Pairs of names that are shown.
const SHOWN: usize = 3;

/// A sentence about names that differ only in case or spaces, such as `Yes ` and `yes`.
pub(super) fn look_alikes<'a>(what: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut groups: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for name in names {
        groups.entry(likeness(name)).or_default().insert(name);
    }
    let several: Vec<&BTreeSet<&str>> = groups.values().filter(|names| names.len() > 1).collect();
    let shown = |names: &&BTreeSet<&str>| names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(" and ");
    let list: Vec<String> = several.iter().take(SHOWN).map(shown).collect();
    let dots = if several.len() > SHOWN { "; …" } else { "" };
    (!several.is_empty()).then(|| {
        format!(
            "{what}s that differ only in case or spaces are read as different ones: {}{dots}; write them alike",
            list.join("; ")
        )
    })
}

/// A sentence about an observation of spaces alone.
pub(super) fn blanks<'a>(mut names: impl Iterator<Item = &'a str>) -> Option<String> {
    let is_blank = |name: &str| {
        name.split(SEPARATOR)
            .map(|part| part.split_once('=').map_or(part, |(_, value)| value))
            .any(|value| value.trim().is_empty())
    };
    let blank = names.find(|name| is_blank(name))?;
    Some(format!(
        "the observation {blank:?} has a value of spaces alone: if it stands for a missing value, say so (`missing`), with the \
         spaces in double quotes"
    ))
}

fn likeness(name: &str) -> String {
    let part = |part: &str| match part.split_once('=') {
        Some((label, value)) => format!("{label}={}", value.trim().to_lowercase()),
        None => part.trim().to_lowercase(),
    };
    name.split(SEPARATOR).map(part).collect::<Vec<_>>().join("|")
}

/// The values of each labelled part of names such as `speed=1..2|flag=1`.
pub(super) fn parts<'a>(names: impl Iterator<Item = &'a str>) -> BTreeMap<&'a str, BTreeSet<&'a str>> {
    let mut values: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for part in names.flat_map(|name| name.split(SEPARATOR)) {
        if let Some((column, value)) = part.split_once('=') {
            values.entry(column).or_default().insert(value);
        }
    }
    values
}

/// A sentence about columns that are the same in all of these names, while others change.
pub(super) fn constant_columns<'a>(names: impl Iterator<Item = &'a str>) -> Option<String> {
    let values = parts(names);
    let constant: Vec<String> = (values.iter())
        .filter_map(|(column, values)| if values.len() == 1 { Some((column, values.first()?)) } else { None })
        .map(|(column, value)| format!("{column} is always {value:?}"))
        .collect();
    let some = !constant.is_empty() && constant.len() < values.len();
    some.then(|| format!("columns that never change tell nothing, and can be left out: {}", constant.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_look_alike_are_listed() {
        let said = look_alikes("observation", ["Yes ", "yes", "no", "x=A|y=1", "x= a|y=1", "x=a|y=2"].into_iter()).unwrap();
        assert!(said.contains(r#""Yes " and "yes""#) && said.contains(r#""x= a|y=1" and "x=A|y=1""#), "{said}");
        assert_eq!(look_alikes("action", ["N", "S", "1", "10"].into_iter()), None);
    }

    #[test]
    fn a_value_of_spaces_is_noticed() {
        assert!(blanks(["a", "x=1|y= "].into_iter()).unwrap().contains("x=1|y= "));
        assert_eq!(blanks(["a b", "x=1|y=2"].into_iter()), None);
    }

    #[test]
    fn constant_columns_are_listed_unless_all_are() {
        let said = constant_columns(["x=1|y=2", "x=2|y=2"].into_iter()).unwrap();
        assert!(said.contains("y is always \"2\"") && !said.contains("x is"), "{said}");
        assert_eq!(constant_columns(["x=1|y=2"].into_iter()), None);
        assert_eq!(constant_columns(["a", "b"].into_iter()), None);
    }
}
