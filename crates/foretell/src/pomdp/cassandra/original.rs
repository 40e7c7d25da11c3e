//! Original names in written models: names that the format cannot express, and which states and
//! observations end episodes.
//!
//! Comments at the head of the text record them, one per line. Other
//! programs skip them, and reading restores the original.

use rustc_hash::FxHashMap;

use crate::pomdp::PomdpTables;

/// The first line of a text with these comments.
pub(super) const MARK: &str = "# A model written by Foretell.";

const ENDS: &str = ", which ends the episode";
const THE_END: &str = "the end";

/// What a name in the text stands for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Original {
    /// A name of the model, and whether the state or observation ends the episode.
    Name { name: String, ends: bool },
    /// The state or observation after the end of an episode, which the model does not have.
    TheEnd,
}

impl Original {
    /// The comment for a state, action or observation; none if the name is unchanged.
    pub(super) fn comment(&self, kind: &str, written: &str) -> Option<String> {
        match self {
            Original::Name { name, ends: false } if name == written => None,
            Original::Name { name, ends } => {
                let name = serde_json::Value::from(name.as_str());
                Some(format!("# {kind} {written}: {name}{}", if *ends { ENDS } else { "" }))
            }
            Original::TheEnd => Some(format!("# {kind} {written}: {THE_END}")),
        }
    }

    /// Kind, written name and original.
    fn parse(comment: &str) -> Option<(&str, &str, Original)> {
        let (subject, original) = comment.strip_prefix("# ")?.split_once(": ")?;
        let (kind, written) = subject.split_once(' ')?;
        if original == THE_END {
            return Some((kind, written, Original::TheEnd));
        }
        let (quoted, ends) = original.strip_suffix(ENDS).map_or((original, false), |quoted| (quoted, true));
        Some((kind, written, Original::Name { name: serde_json::from_str(quoted).ok()?, ends }))
    }
}

/// The original tables; unchanged if the text has no such comments or contradicts them.
pub(super) fn restored(text: &str, tables: PomdpTables) -> PomdpTables {
    let mut lines = text.lines();
    if lines.next() != Some(MARK) {
        return tables;
    }
    let comments: FxHashMap<(&str, &str), Original> = lines
        .map_while(|line| line.starts_with('#').then(|| Original::parse(line)))
        .flatten()
        .map(|(kind, written, original)| ((kind, written), original))
        .collect();
    let originals = |kind, names: &[String]| -> Vec<Original> {
        let plain = |name: &String| Original::Name { name: name.clone(), ends: false };
        names.iter().map(|name| comments.get(&(kind, name.as_str())).cloned().unwrap_or_else(|| plain(name))).collect()
    };
    let states = originals("state", &tables.states);
    let actions = originals("action", &tables.actions);
    let observations = originals("observation", &tables.observations);
    if !is_consistent(&tables, &states, &observations) {
        return tables;
    }
    rebuilt(tables, states, actions, observations)
}

fn ends(original: &Original) -> bool {
    matches!(original, Original::Name { ends: true, .. })
}

/// Whether only terminal states emit terminal observations and lead to the end state, which is
/// last.
fn is_consistent(tables: &PomdpTables, states: &[Original], observations: &[Original]) -> bool {
    let before_end = |originals: &[Original]| originals.iter().position(|m| *m == Original::TheEnd).unwrap_or(originals.len());
    let (after, silence) = (before_end(states), before_end(observations));
    let is_last = |place: usize, all: &[Original]| place + 1 >= all.len();
    let leads_there = |s: usize| tables.transitions.iter().any(|rows| rows[s].iter().any(|&(to, p)| to == after && p > 0.0));
    let is_fit = |s: usize, o: usize| o != silence && ends(&states[s]) == ends(&observations[o]);
    let emits_fitly = |s: usize| tables.emissions.iter().all(|rows| rows[s].iter().all(|&(o, p)| p == 0.0 || is_fit(s, o)));
    is_last(after, states)
        && is_last(silence, observations)
        && (0..after).all(|s| emits_fitly(s) && (ends(&states[s]) || !leads_there(s)))
        && tables.start.iter().all(|&(s, p)| p == 0.0 || s != after)
}

fn rebuilt(tables: PomdpTables, states: Vec<Original>, actions: Vec<Original>, observations: Vec<Original>) -> PomdpTables {
    let names = |originals: &[Original]| -> Vec<String> {
        let name = |original: &Original| match original {
            Original::Name { name, .. } => Some(name.clone()),
            Original::TheEnd => None,
        };
        originals.iter().filter_map(name).collect()
    };
    let terminal: Vec<bool> = states.iter().filter(|original| **original != Original::TheEnd).map(ends).collect();
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
