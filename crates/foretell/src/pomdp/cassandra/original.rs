//! What a written model was before: names that the format cannot bear, and which states and observations end episodes.
//!
//! Comments at the head of the text say so, one a line; other programs skip them, and reading gives back what was written.

use rustc_hash::FxHashMap;

use crate::pomdp::PomdpTables;

/// The first line of a text whose comments are these.
pub(super) const MARK: &str = "# A model written by Foretell.";

const ENDS: &str = ", which ends the episode";
const THE_END: &str = "the end";

/// What a name in the text stands for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Meaning {
    /// A name of the model, and whether the state or observation ends the episode.
    Name { name: String, ends: bool },
    /// What comes after the end of an episode; the model has no such thing.
    TheEnd,
}

impl Meaning {
    /// The comment that says so, for a state, action or observation; none where there is nothing to say.
    pub(super) fn comment(&self, kind: &str, written: &str) -> Option<String> {
        match self {
            Meaning::Name { name, ends: false } if name == written => None,
            Meaning::Name { name, ends } => {
                let name = serde_json::Value::from(name.as_str());
                Some(format!("# {kind} {written}: {name}{}", if *ends { ENDS } else { "" }))
            }
            Meaning::TheEnd => Some(format!("# {kind} {written}: {THE_END}")),
        }
    }

    /// Kind, written name and meaning.
    fn parse(comment: &str) -> Option<(&str, &str, Meaning)> {
        let (subject, meaning) = comment.strip_prefix("# ")?.split_once(": ")?;
        let (kind, written) = subject.split_once(' ')?;
        if meaning == THE_END {
            return Some((kind, written, Meaning::TheEnd));
        }
        let (quoted, ends) = meaning.strip_suffix(ENDS).map_or((meaning, false), |quoted| (quoted, true));
        Some((kind, written, Meaning::Name { name: serde_json::from_str(quoted).ok()?, ends }))
    }
}

/// The tables as they were before they were written; as they are, if the text has no such comments or does not keep to them.
pub(super) fn restored(text: &str, tables: PomdpTables) -> PomdpTables {
    let mut lines = text.lines();
    if lines.next() != Some(MARK) {
        return tables;
    }
    let comments: FxHashMap<(&str, &str), Meaning> = lines
        .map_while(|line| line.starts_with('#').then(|| Meaning::parse(line)))
        .flatten()
        .map(|(kind, written, meaning)| ((kind, written), meaning))
        .collect();
    let meanings = |kind, names: &[String]| -> Vec<Meaning> {
        let plain = |name: &String| Meaning::Name { name: name.clone(), ends: false };
        names.iter().map(|name| comments.get(&(kind, name.as_str())).cloned().unwrap_or_else(|| plain(name))).collect()
    };
    let states = meanings("state", &tables.states);
    let actions = meanings("action", &tables.actions);
    let observations = meanings("observation", &tables.observations);
    if !is_kept_to(&tables, &states, &observations) {
        return tables;
    }
    rebuilt(tables, states, actions, observations)
}

fn ends(meaning: &Meaning) -> bool {
    matches!(meaning, Meaning::Name { ends: true, .. })
}

/// Whether only states that end an episode emit what ends it, and lead to what comes after, which is last.
fn is_kept_to(tables: &PomdpTables, states: &[Meaning], observations: &[Meaning]) -> bool {
    let going_on = |meanings: &[Meaning]| meanings.iter().position(|m| *m == Meaning::TheEnd).unwrap_or(meanings.len());
    let (after, silence) = (going_on(states), going_on(observations));
    let is_last = |place: usize, all: &[Meaning]| place + 1 >= all.len();
    let leads_there = |s: usize| tables.transitions.iter().any(|rows| rows[s].iter().any(|&(to, p)| to == after && p > 0.0));
    let is_fit = |s: usize, o: usize| o != silence && ends(&states[s]) == ends(&observations[o]);
    let emits_fitly = |s: usize| tables.emissions.iter().all(|rows| rows[s].iter().all(|&(o, p)| p == 0.0 || is_fit(s, o)));
    is_last(after, states)
        && is_last(silence, observations)
        && (0..after).all(|s| emits_fitly(s) && (ends(&states[s]) || !leads_there(s)))
        && tables.start.iter().all(|&(s, p)| p == 0.0 || s != after)
}

fn rebuilt(tables: PomdpTables, states: Vec<Meaning>, actions: Vec<Meaning>, observations: Vec<Meaning>) -> PomdpTables {
    let names = |meanings: &[Meaning]| -> Vec<String> {
        let name = |meaning: &Meaning| match meaning {
            Meaning::Name { name, .. } => Some(name.clone()),
            Meaning::TheEnd => None,
        };
        meanings.iter().filter_map(name).collect()
    };
    let terminal: Vec<bool> = states.iter().filter(|meaning| **meaning != Meaning::TheEnd).map(ends).collect();
    let n = terminal.len();
    // An observation that ends an episode may have the name of one that does not.
    let mut unique: Vec<String> = Vec::new();
    let mut known: FxHashMap<String, usize> = FxHashMap::default();
    let place = |name: String| {
        *known.entry(name.clone()).or_insert_with(|| {
            unique.push(name);
            unique.len() - 1
        })
    };
    let places: Vec<usize> = names(&observations).into_iter().map(place).collect();
    let without_end = |table: Vec<Vec<_>>| table.into_iter().map(|rows| rows.into_iter().take(n).collect()).collect();
    let mut emissions: Vec<Vec<Vec<(usize, f64)>>> = without_end(tables.emissions);
    for (o, _) in emissions.iter_mut().flatten().flatten() {
        *o = places[*o];
    }
    let is_inside = |which: Option<usize>, size: usize| which.is_none_or(|i| i < size);
    let rewards = tables
        .rewards
        .into_iter()
        .filter(|rule| is_inside(rule.from, n) && is_inside(rule.to, n) && is_inside(rule.observation, places.len()));
    PomdpTables {
        discount: tables.discount,
        states: names(&states),
        actions: names(&actions),
        rewards: rewards
            .map(|mut rule| {
                rule.observation = rule.observation.map(|o| places[o]);
                rule
            })
            .collect(),
        observations: unique,
        terminal,
        start: tables.start,
        transitions: without_end(tables.transitions),
        emissions,
    }
}
