//! Models as texts in Cassandra's format.
//!
//! The format has no terminal states. Terminal observations get names of their own; from a terminal
//! state every action leads to one more state, `end`, which emits `end`, pays nothing and is never
//! left. Comments record the original names.

use std::fmt::Write;

use rustc_hash::FxHashSet;

use super::original::{MARK, Original};
use crate::data::{Action, Observation};
use crate::pomdp::Pomdp;

/// Words with a original in the format.
const RESERVED: [&str; 19] = [
    "discount",
    "values",
    "states",
    "actions",
    "observations",
    "start",
    "include",
    "exclude",
    "uniform",
    "identity",
    "reset",
    "reward",
    "rewards",
    "cost",
    "costs",
    "T",
    "O",
    "OO",
    "R",
];

/// [`Pomdp::to_cassandra`]
pub(in crate::pomdp) fn write(pomdp: &Pomdp) -> String {
    let mut text = Text { pomdp, names: Names::of(pomdp), out: String::new() };
    // Writing to a string cannot fail.
    text.all().expect("a string takes any text");
    text.out
}

struct Text<'a> {
    pomdp: &'a Pomdp,
    names: Names,
    out: String,
}

impl Text<'_> {
    fn all(&mut self) -> std::fmt::Result {
        self.head()?;
        for a in 0..self.pomdp.alphabet().actions().len() {
            self.transitions(a)?;
            self.emissions(a)?;
            self.rewards(a)?;
        }
        Ok(())
    }

    fn head(&mut self) -> std::fmt::Result {
        let Text { pomdp, names, out } = self;
        writeln!(out, "{MARK}")?;
        names.comments.iter().try_for_each(|line| writeln!(out, "{line}"))?;
        writeln!(out, "discount: {}\nvalues: reward", pomdp.discount())?;
        for (heading, names) in [("states", &names.states), ("actions", &names.actions), ("observations", &names.observations)] {
            writeln!(out, "{heading}: {}", names.join(" "))?;
        }
        if names.states.len() == 1 {
            return writeln!(out, "start: uniform"); // a single number could be read as a state
        }
        let mut start = vec![0.0; names.states.len()];
        pomdp.start().for_each(|(s, p)| start[s] = p);
        let start: Vec<String> = start.iter().map(f64::to_string).collect();
        writeln!(out, "start: {}", start.join(" "))
    }

    fn transitions(&mut self, a: usize) -> std::fmt::Result {
        let Names { states, actions, .. } = &self.names;
        writeln!(self.out)?;
        for (s, from) in states.iter().enumerate() {
            if s == self.pomdp.states().len() || self.pomdp.is_terminal(s) {
                writeln!(self.out, "T: {} : {from} : {} 1", actions[a], states[states.len() - 1])?;
                continue;
            }
            for (to, p) in self.pomdp.transitions(Action(a as u32), s) {
                writeln!(self.out, "T: {} : {from} : {} {p}", actions[a], states[to])?;
            }
        }
        Ok(())
    }

    fn emissions(&mut self, a: usize) -> std::fmt::Result {
        let Names { states, actions, observations, .. } = &self.names;
        for (s, state) in states.iter().enumerate() {
            if s == self.pomdp.states().len() {
                writeln!(self.out, "O: {} : {state} : {} 1", actions[a], observations[observations.len() - 1])?;
                continue;
            }
            for (o, p) in self.pomdp.emissions(Action(a as u32), s) {
                writeln!(self.out, "O: {} : {state} : {} {p}", actions[a], observations[o.index()])?;
            }
        }
        Ok(())
    }

    /// One line where R(a, s, s', o) is the same for all s' and o that can follow, or one for each
    /// s', or for each s' and o.
    fn rewards(&mut self, a: usize) -> std::fmt::Result {
        let Names { states, actions, observations, .. } = &self.names;
        let (pomdp, out, action) = (self.pomdp, &mut self.out, Action(a as u32));
        for s in 0..pomdp.states().len() {
            let after = |to: usize| -> Vec<(Observation, f64)> {
                pomdp.emissions(action, to).map(|(o, _)| (o, pomdp.reward(action, s, to, o))).collect()
            };
            let all: Vec<(usize, Vec<(Observation, f64)>)> =
                pomdp.transitions(action, s).map(|(to, _)| (to, after(to))).collect();
            let head = format!("R: {} : {}", actions[a], states[s]);
            if let Some(r) = common(all.iter().flat_map(|(_, row)| row)) {
                entry(out, &format!("{head} : * : *"), r)?;
                continue;
            }
            for (to, row) in &all {
                let head = format!("{head} : {}", states[*to]);
                if let Some(r) = common(row) {
                    entry(out, &format!("{head} : *"), r)?;
                    continue;
                }
                for (o, r) in row {
                    entry(out, &format!("{head} : {}", observations[o.index()]), *r)?;
                }
            }
        }
        Ok(())
    }
}

/// A reward, unless it is 0, which is the default.
fn entry(out: &mut String, place: &str, reward: f64) -> std::fmt::Result {
    match reward {
        0.0 => Ok(()),
        // Without a point some readers take it for an integer of 32 bits.
        _ if reward.fract() == 0.0 && reward.abs() > f64::from(i32::MAX) => writeln!(out, "{place} {reward:.1}"),
        _ => writeln!(out, "{place} {reward}"),
    }
}

/// The reward, if all are equal.
fn common<'a>(row: impl IntoIterator<Item = &'a (Observation, f64)>) -> Option<f64> {
    let mut rewards = row.into_iter().map(|(_, r)| *r);
    let first = rewards.next()?;
    rewards.all(|r| r == first).then_some(first)
}

/// Names that the format can express. Where there are terminal states, the last state and the last
/// observation are `end`.
struct Names {
    states: Vec<String>,
    actions: Vec<String>,
    observations: Vec<String>,
    /// Comments with the original names, where these differ.
    comments: Vec<String>,
}

impl Names {
    fn of(pomdp: &Pomdp) -> Names {
        let is_terminal = |s: usize| pomdp.is_terminal(s);
        let the_end = (0..pomdp.states().len()).any(is_terminal).then(|| ("end".to_string(), Original::TheEnd));
        let original = |name: &String, ends| (name.clone(), Original::Name { name: name.clone(), ends });
        let states = pomdp.states().iter().enumerate().map(|(s, name)| original(name, is_terminal(s)));
        let actions = pomdp.alphabet().actions().iter().map(|name| original(name, false));
        let observations = pomdp.alphabet().observations().iter().map(|symbol| {
            let (name, original) = original(&symbol.name, symbol.terminal);
            (if symbol.terminal { format!("{name}_end") } else { name }, original)
        });
        let mut comments = Vec::new();
        Names {
            states: named("state", states.chain(the_end.clone()), &mut comments),
            actions: named("action", actions, &mut comments),
            observations: named("observation", observations.chain(the_end), &mut comments),
            comments,
        }
    }
}

/// Unique names of letters, digits, `_` and `-` that begin with a letter, made from the names
/// wanted; a comment records the original where it differs.
fn named(kind: &str, wanted: impl Iterator<Item = (String, Original)>, comments: &mut Vec<String>) -> Vec<String> {
    let mut taken = FxHashSet::default();
    let mut names = Vec::new();
    for (name, original) in wanted {
        let allowed = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
        let mut clean: String = name.chars().map(allowed).collect();
        if !clean.starts_with(|c: char| c.is_ascii_alphabetic()) || RESERVED.contains(&clean.as_str()) {
            clean = format!("{}_{clean}", &kind[..1]);
        }
        let numbered = (2..).map(|i| format!("{clean}_{i}"));
        let unique = std::iter::once(clean.clone()).chain(numbered).find(|name| !taken.contains(name));
        let unique = unique.expect("there are enough numbers");
        comments.extend(original.comment(kind, &unique));
        taken.insert(unique.clone());
        names.push(unique);
    }
    names
}
