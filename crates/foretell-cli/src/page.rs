//! An HTML page about a model, a policy or a run, for readers who do not know the project.
//!
//! The contents are JSON inside a constant page, which draws itself in the browser without any
//! network. Missing parts say how to get them.

mod episodes;
mod gather;
mod headlines;
mod held_out;
mod parameters;
mod parts;
mod subject;
mod words;

use serde::Serialize;

use episodes::{Episodes, along, played};
use headlines::{Headline, for_model, for_policy};
use parameters::{Group, group};
use parts::{Data, Earned, Estimates, Foresight, Last, LogFile, Spectrum};

pub use held_out::HeldOut;
pub use subject::{Options, Subject};

use crate::run::Round;

const HTML: &str = include_str!("page/page.html");
const CSS: &str = include_str!("page/page.css");
/// Charts first: the page draws with them.
const SCRIPTS: [&str; 3] = [include_str!("page/charts.js"), include_str!("page/episodes.js"), include_str!("page/page.js")];

/// The subject of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    Model,
    Policy,
    Run,
}

/// A part of the page, or how to get it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part<T> {
    Here(T),
    Missing(String),
}

impl<T> Part<T> {
    /// A part that needs logs.
    fn needs_logs(what: &str) -> Part<T> {
        Part::Missing(format!("{what}: give held-out logs with --logs LOGS."))
    }

    /// The part, if it is not missing.
    pub fn here(&self) -> Option<&T> {
        match self {
            Part::Here(part) => Some(part),
            Part::Missing(_) => None,
        }
    }
}

/// The contents of a page.
#[derive(Debug, Serialize)]
pub struct Page {
    pub kind: Kind,
    /// As the user named the file.
    pub title: String,
    /// A description, in a few sentences.
    pub about: Vec<String>,
    /// The most important numbers.
    pub headlines: Vec<Headline>,
    /// Problems that readers should know first.
    pub warnings: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub earned: Option<Part<Earned>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimates: Option<Part<Estimates>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rounds: Vec<Round>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foresight: Option<Part<Foresight>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub episodes: Option<Part<Episodes>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spectrum: Option<Spectrum>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Part<Data>>,
    pub parameters: Vec<Group>,
    /// Provenance: names and values.
    pub provenance: Vec<(String, String)>,
}

impl Page {
    /// The page as an HTML file.
    pub fn html(&self) -> String {
        let data = unbroken(&serde_json::to_string(self).expect("a page is plain data"));
        let sentence = |h: &Headline| format!("<li><b>{}</b> {} <i>{}</i></li>", text(&h.value), text(&h.label), text(&h.note));
        let numbers: String = self.headlines.iter().map(sentence).collect();
        let about: String = self.about.iter().map(|sentence| format!("<p>{}</p>", text(sentence))).collect();
        fill(
            HTML,
            &[
                ("title", &text(&self.title)),
                ("style", CSS),
                ("about", &about),
                ("numbers", &numbers),
                ("data", &script(&data)),
                ("script", &SCRIPTS.concat()),
            ],
        )
    }
}

impl Page {
    /// How to get the parts that are missing.
    pub fn missing(&self) -> Vec<&str> {
        let parts = [hint(&self.earned), hint(&self.estimates), hint(&self.foresight), hint(&self.episodes), hint(&self.data)];
        parts.into_iter().flatten().collect()
    }
}

fn hint<T>(part: &Option<Part<T>>) -> Option<&str> {
    match part {
        Some(Part::Missing(hint)) => Some(hint),
        _ => None,
    }
}

/// The template with values in place of `{{name}}`. Values are not templates themselves.
fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut parts = template.split("{{");
    let mut filled = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let (name, rest) = part.split_once("}}").expect("every {{ of the template has its }}");
        let (_, value) = values.iter().find(|(own, _)| *own == name).expect("every name of the template has a value");
        filled.push_str(value);
        filled.push_str(rest);
    }
    filled
}

/// Text as HTML.
fn text(text: &str) -> String {
    let escaped = |c: char| match c {
        '&' => "&amp;".to_string(),
        '<' => "&lt;".to_string(),
        '>' => "&gt;".to_string(),
        '"' => "&quot;".to_string(),
        c if turns(c) => c.escape_unicode().to_string(),
        c => c.to_string(),
    };
    unbroken(text).chars().map(escaped).collect()
}

/// Text whose numbers are not broken across lines.
fn unbroken(text: &str) -> String {
    text.replace('\u{2009}', "\u{202f}").replace(" %", "\u{a0}%")
}

/// Whether a character changes the order in which those after it are shown, also outside its name.
fn turns(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// JSON that cannot be parsed as HTML, and turns no text: these characters occur in strings only.
fn script(json: &str) -> String {
    let escaped = |c: char| match c {
        '<' | '>' | '&' => format!("\\u{:04x}", u32::from(c)),
        c if turns(c) => format!("\\{}", c.escape_unicode()),
        c => c.to_string(),
    };
    json.chars().map(escaped).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> Page {
        let headline = Headline { value: "1 & 2".into(), label: "</noscript><b>".into(), note: "{{data}}".into() };
        Page {
            kind: Kind::Model,
            title: "<script>alert(1)</script>".into(),
            about: vec!["a \"b\" \u{202e}c".into()],
            headlines: vec![headline],
            warnings: vec![],
            earned: None,
            estimates: None,
            rounds: vec![],
            foresight: None,
            episodes: Some(Part::Missing("</script><b>&".into())),
            spectrum: None,
            data: None,
            parameters: vec![],
            provenance: vec![],
        }
    }

    /// What stands between two marks.
    fn between<'a>(text: &'a str, open: &str, close: &str) -> &'a str {
        text.split_once(open).unwrap().1.split_once(close).unwrap().0
    }

    #[test]
    fn names_cannot_become_part_of_the_page() {
        let html = page().html();
        assert_eq!(html.matches("<script").count(), 2, "the data and our own");
        assert_eq!(html.matches("</script>").count(), 2);
        assert_eq!(html.matches("</noscript>").count(), 1);
        assert!(html.contains("<title>&lt;script&gt;alert(1)&lt;/script&gt;"));
        let data = between(&html, "type=\"application/json\">", "</script>");
        let read: serde_json::Value = serde_json::from_str(data).unwrap();
        assert_eq!(read["episodes"]["missing"], "</script><b>&", "the browser reads what was meant");
        assert_eq!(read["headlines"][0]["note"], "{{data}}", "values are not templates");
    }

    #[test]
    fn a_page_needs_no_network_and_is_small() {
        let html = page().html();
        let rules = between(&html, "Content-Security-Policy\" content=\"", "\"");
        assert!(rules.starts_with("default-src 'none';") && !rules.contains("http"), "{rules}");
        for address in ["src=", "href=\"http", "@import", "url(", "fetch(", "XMLHttpRequest"] {
            assert!(!html.contains(address), "{address}");
        }
        assert!(html.len() < 200_000, "{}", html.len());
    }
}
