//! Parameters in the name of a domain: `NAME:key=value,key=value`.

use std::fmt::Display;
use std::str::FromStr;

use crate::error::{Error, Result};

/// The keys and values after the colon. A domain [takes](Settings::take) the keys it knows; any key
/// left at the [end](Settings::finish) is an error.
pub(super) struct Settings<'a> {
    /// All of the name, as given.
    name: &'a str,
    /// The keys not yet taken.
    left: Vec<(&'a str, &'a str)>,
    /// The keys that the domain knows, each with its default and what it may be.
    known: Vec<(&'static str, String)>,
}

impl<'a> Settings<'a> {
    /// The name before the first colon, and what comes after it.
    pub fn split(name: &'a str) -> (&'a str, Settings<'a>) {
        let (base, list) = name.split_once(':').map_or((name, None), |(base, list)| (base, Some(list)));
        let pair = |text: &'a str| text.split_once('=').unwrap_or((text, ""));
        let left = list.map_or(Vec::new(), |list| list.split(',').map(pair).collect());
        (base, Settings { name, left, known: Vec::new() })
    }

    /// All of the name, as given.
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// The value of `key`, or the default; `meaning` describes valid values.
    pub fn take<T: FromStr + Display>(&mut self, key: &'static str, default: T, meaning: &str) -> Result<T> {
        self.known.push((key, format!("{key}={default} ({meaning})")));
        let Some(i) = self.left.iter().position(|&(given, _)| given == key) else { return Ok(default) };
        let (_, value) = self.left.remove(i);
        let shown = if value.is_empty() { "nothing" } else { value };
        value.parse().map_err(|_| Error::parameter(key, shown, format!("must be {meaning}, such as {key}={default}")))
    }

    /// Whether every key was taken, once.
    pub fn finish(self) -> Result<()> {
        let Some((key, _)) = self.left.first() else { return Ok(()) };
        let (base, _) = Settings::split(self.name);
        let twice = self.known.iter().any(|(known, _)| known == key);
        let problem = if twice { format!("{key:?} is given twice") } else { format!("{base} has no parameter {key:?}") };
        let list: Vec<&str> = self.known.iter().map(|(_, what)| what.as_str()).collect();
        let remedy = match list[..] {
            [] => format!("{base} takes none"),
            _ => format!("write {base}:key=value,key=value with {}", list.join(", ")),
        };
        Err(Error::parameter("domain", self.name, format!("{problem}; {remedy}")))
    }
}
