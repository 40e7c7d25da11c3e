//! The roles of columns, one after the other, from their names and contents.

use std::ops::Range;

use rustc_hash::FxHashSet;
use serde::Serialize;

use super::columns::{Columns, conflicts};
use super::names::words;
use super::profile::Profile;
use super::schema::{ROW, Role, Schema};
use super::vocabulary::words_for;

/// A role, and why these columns play it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GuessedRole {
    /// The role.
    pub role: &'static str,
    /// Its columns.
    pub columns: Vec<String>,
    /// Why.
    pub reason: String,
    /// A few values of the first of them.
    pub examples: Vec<String>,
    /// Whether the guess is made without asking: names and contents agree.
    pub sure: bool,
    /// Whether it was guessed; otherwise it was given or is one of the usual names.
    pub guessed: bool,
}

/// Columns next to each other that share their values are steps, if there are so many, and each takes
/// at most so many values.
const LEAST_WIDE: usize = 8;
const MOST_SHARED: usize = 30;

/// The roles of columns so far.
pub(super) struct Guesser<'a> {
    pub(super) profile: &'a Profile,
    pub(super) taken: Vec<bool>,
    /// The column that is a time.
    pub(super) time: Option<usize>,
    pub schema: Schema,
    pub roles: Vec<GuessedRole>,
    /// What could not be settled, in sentences.
    pub doubts: Vec<String>,
}

/// A guess that no column plays a role.
pub(super) fn without_columns(role: Role, reason: String) -> GuessedRole {
    GuessedRole { role: role.name(), columns: Vec::new(), reason, examples: Vec::new(), sure: true, guessed: true }
}

impl<'a> Guesser<'a> {
    pub fn new(profile: &'a Profile, schema: &Schema) -> Guesser<'a> {
        let taken = vec![false; profile.names.len()];
        Guesser { profile, taken, time: None, schema: schema.clone(), roles: Vec::new(), doubts: Vec::new() }
    }

    /// Columns that are given, or have one of the usual names.
    pub fn take_known(&mut self, file: &str) {
        let names = &self.profile.names;
        // Roles that cannot be filled must not hide the others.
        let without_action = Schema { action: self.schema.action.clone().or(Some(Vec::new())), ..self.schema.clone() };
        let filler = self.schema.observation.clone().or_else(|| names.first().map(|name| vec![name.clone()]));
        let without_both = Schema { observation: filler, ..without_action.clone() };
        let found = [&self.schema, &without_action, &without_both].map(|schema| Columns::find(file, names, schema).ok());
        let has_filler = found[..2].iter().all(Option::is_none) && self.schema.observation.is_none();
        let Some(columns) = found.into_iter().flatten().next() else { return };
        let is_filler = |role: Role| role == Role::Observation && has_filler;
        let known = columns.roles().into_iter().filter(|(role, _)| !is_filler(*role) && !self.has(*role));
        for (role, used) in known.collect::<Vec<_>>() {
            let columns: Vec<String> = used.iter().map(|&column| names[column].clone()).collect();
            let reason = if self.schema.given(role).is_some() { "given" } else { "by its name" };
            used.iter().for_each(|&column| self.taken[column] = true);
            let examples = used.first().map_or(Vec::new(), |&column| self.profile.columns[column].examples.clone());
            self.roles.push(GuessedRole {
                role: role.name(),
                columns,
                reason: reason.into(),
                examples,
                sure: true,
                guessed: false,
            });
        }
        self.take_words();
        self.refuse_probability();
    }

    /// A probability of 0 is not that of the action taken.
    fn refuse_probability(&mut self) {
        let Some(column) = self.column_of(Role::Probability).filter(|_| self.schema.action_prob.is_none()) else { return };
        let of = &self.profile.columns[column];
        if of.is_probability && of.kinds.missing == 0 {
            return;
        }
        let name = self.profile.names[column].clone();
        self.roles.retain(|guessed| guessed.role != Role::Probability.name());
        self.schema.action_prob = Some(Vec::new());
        let reason = format!(
            "{name:?} has values that are missing or not in (0, 1], so it is not the probability of the action taken in each row; \
             if it is that of one action, write 1 − p for the others"
        );
        self.roles.push(GuessedRole { sure: false, ..without_columns(Role::Probability, reason) });
    }

    /// What is given without being the role of a column that is read.
    fn take_words(&mut self) {
        let Schema { episode, action, sort, wide, .. } = &self.schema;
        let is_word = |names: &&Vec<String>| names.is_empty() || names.iter().all(|name| name == ROW);
        let words = [
            (Role::Episode.name(), episode.as_ref().filter(is_word)),
            (Role::Action.name(), action.as_ref().filter(is_word)),
            (Role::Sort.name(), sort.as_ref().filter(|names| !names.is_empty())),
            ("wide", Some(wide).filter(|names| !names.is_empty())),
        ];
        for (role, columns) in words {
            let Some(columns) = columns.cloned() else { continue };
            let (reason, examples) = ("given".to_string(), Vec::new());
            for (i, name) in self.profile.names.iter().enumerate() {
                self.taken[i] |= columns.contains(name);
            }
            self.roles.push(GuessedRole { role, columns, reason, examples, sure: true, guessed: false });
        }
    }

    /// Of several columns with usual names of a role, the most usual one plays it.
    pub fn settle_conflicts(&mut self) {
        for (role, columns) in conflicts(&self.profile.names, &self.schema) {
            let names: Vec<&str> = columns.iter().map(|&column| self.profile.names[column].as_str()).collect();
            let reason = format!("one of {}, which could all be it by their names", names.join(" and "));
            self.add(role, &columns[..1], reason, false);
        }
    }

    pub(super) fn has(&self, role: Role) -> bool {
        self.roles.iter().any(|guessed| guessed.role == role.name())
    }

    pub(super) fn column_of(&self, role: Role) -> Option<usize> {
        self.columns_of(role).first().copied()
    }

    pub(super) fn columns_of(&self, role: Role) -> Vec<usize> {
        let guessed = self.roles.iter().filter(|guessed| guessed.role == role.name());
        let place = |of: &String| self.profile.names.iter().position(|name| name == of);
        guessed.flat_map(|guessed| &guessed.columns).filter_map(place).collect()
    }

    /// Pairs of consecutive rows of an episode.
    pub(super) fn steps(&self) -> Vec<(usize, usize)> {
        self.profile.steps(&self.columns_of(Role::Episode))
    }

    /// Columns without a role whose names contain a word for `role`.
    pub(super) fn named(&self, role: Role) -> Vec<usize> {
        (0..self.profile.names.len()).filter(|&i| !self.taken[i] && self.speaks_for(i, role)).collect()
    }

    /// Whether the name of a column contains a word for `role`.
    pub(super) fn speaks_for(&self, column: usize, role: Role) -> bool {
        words(&self.profile.names[column]).iter().any(|word| words_for(role).contains(&word.as_str()))
    }

    pub(super) fn add(&mut self, role: Role, columns: &[usize], reason: String, sure: bool) {
        columns.iter().for_each(|&column| self.taken[column] = true);
        let names: Vec<String> = columns.iter().map(|&column| self.profile.names[column].clone()).collect();
        let examples = columns.first().map_or(Vec::new(), |&column| self.profile.columns[column].examples.clone());
        match role {
            Role::Episode => self.schema.episode = Some(names.clone()),
            Role::Group => self.schema.group = Some(names.clone()),
            Role::Sort => self.schema.sort = Some(names.clone()),
            Role::Action => self.schema.action = Some(names.clone()),
            Role::Observation => self.schema.observation = Some(names.clone()),
            Role::Reward => self.schema.reward = Some(names.clone()),
            Role::Terminated => self.schema.terminated = Some(names.clone()),
            Role::Probability => self.schema.action_prob = Some(names.clone()),
            Role::LogProbability => self.schema.action_logp = Some(names.clone()),
            Role::Truncated => self.schema.truncated = Some(names.clone()),
            Role::Step => self.schema.step = Some(names.clone()),
            Role::Available => self.schema.available = Some(names.clone()),
            Role::Elapsed => self.schema.elapsed = Some(names.clone()),
            Role::NextObservation | Role::First | Role::Last => {}
        }
        self.roles.push(GuessedRole { role: role.name(), columns: names, reason, examples, sure, guessed: true });
    }

    fn named_by(&self, columns: &[usize]) -> String {
        match columns {
            [column] if ["action", "observation"].contains(&self.profile.names[*column].as_str()) => "by its name".into(),
            [_] => "by a word in its name".into(),
            _ => "by words in their names".into(),
        }
    }

    /// Actions and observations by words in their names.
    pub fn guess_named_symbols(&mut self) {
        let varying = |guesser: &Self, role: Role| -> Vec<usize> {
            let varies = |&column: &usize| guesser.profile.columns[column].different() > 1 && !guesser.counts_steps(column);
            let named: Vec<usize> = guesser.named(role).into_iter().filter(varies).collect();
            // What is the same in all rows of an episode is no observation if another is not.
            let (inside, outside): (Vec<usize>, Vec<usize>) =
                named.into_iter().partition(|&column| guesser.varies_inside(column));
            if inside.is_empty() || role == Role::Action { [inside, outside].concat() } else { inside }
        };
        if self.schema.action.is_none() && !self.has(Role::Action) {
            let named = varying(self, Role::Action);
            if !named.is_empty() {
                self.add(Role::Action, &named, self.named_by(&named), named.len() == 1);
            }
        }
        if self.schema.observation.is_none() && !self.has(Role::Observation) {
            let named = varying(self, Role::Observation);
            let is_sure = named.len() == 1 && (self.steps().is_empty() || self.varies_inside(named[0]));
            if !named.is_empty() {
                self.add(Role::Observation, &named, self.named_by(&named), is_sure);
            }
        }
    }

    /// The other columns as observations, if none has a name for it, and no action if there is none.
    pub fn guess_what_is_left(&mut self) {
        if self.schema.observation.is_none() && !self.has(Role::Observation) {
            let is_left = |&column: &usize| {
                let of = &self.profile.columns[column];
                let repeats =
                    of.kinds.may_count() && of.different() < of.kinds.present || 10 * of.different() <= self.profile.rows;
                !self.taken[column] && of.different() > 1 && (of.kinds.is_measured() || repeats) && !self.counts_steps(column)
            };
            let names_rows = |&column: &usize| {
                self.speaks_for(column, Role::Episode) && 10 * self.profile.columns[column].different() > 9 * self.profile.rows
            };
            let left = (0..self.profile.names.len()).filter(is_left);
            let mut left: Vec<usize> = left.filter(|column| !names_rows(column)).collect();
            if left.iter().any(|&column| self.varies_inside(column)) {
                left.retain(|&column| self.varies_inside(column));
            }
            if !left.is_empty() {
                self.add(Role::Observation, &left, "what is left and varies".into(), false);
            }
        }
        if self.schema.action.is_none() && !self.has(Role::Action) {
            self.schema.action = Some(Vec::new());
            self.say_none(Role::Action, "no column looks like an action: a system that is only observed".into());
        }
    }

    /// Whether a column takes several values in an episode.
    fn varies_inside(&self, column: usize) -> bool {
        self.steps().iter().any(|&(a, b)| self.profile.cell(a, column) != self.profile.cell(b, column))
    }

    /// Whether the numbers of a column go up by one within episodes.
    fn counts_steps(&self, column: usize) -> bool {
        let steps = self.steps();
        let time = |row| self.profile.time(row, column);
        steps.len() > 1 && steps.iter().all(|&(a, b)| time(a).zip(time(b)).is_some_and(|(x, y)| y == x + 1.0))
    }

    /// Without actions, how long it took until a row may matter, if that varies.
    pub fn guess_elapsed(&mut self) {
        let is_free = self.schema.elapsed.is_none() && self.schema.action.as_ref().is_some_and(Vec::is_empty);
        let Some(column) = self.time.filter(|_| is_free) else { return };
        let steps = self.steps();
        let gap = |&(a, b): &(usize, usize)| Some((self.profile.time(b, column)? - self.profile.time(a, column)?).abs());
        let mut gaps: Vec<f64> = steps.iter().filter_map(gap).collect();
        gaps.sort_by(f64::total_cmp);
        let Some(&middle) = gaps.get(gaps.len() / 2) else { return };
        let off = gaps.iter().filter(|gap| (**gap - middle).abs() > 0.5 * middle).count();
        if 5 * off > gaps.len() {
            let name = self.profile.names[column].clone();
            self.add(Role::Elapsed, &[column], format!("the time between rows varies in {name:?}"), false);
        }
    }

    /// Columns next to each other that share their values, in a table of a row for each episode.
    pub fn guess_wide(&mut self) -> bool {
        let is_open = self.schema.observation.is_none() && self.schema.action.is_none() && self.roles.is_empty();
        let names_rows = |&column: &usize| {
            let different = self.profile.columns[column].different();
            different > 1 && different < self.profile.rows
        };
        if !is_open || self.named(Role::Episode).iter().any(names_rows) {
            return false;
        }
        let Some(run) = self.longest_run().filter(|run| run.len() >= LEAST_WIDE) else { return false };
        let (first, last) = (&self.profile.names[run.start], &self.profile.names[run.end - 1]);
        let (columns, n) = (vec![format!("{first}..{last}")], run.len());
        let reason = format!("{n} columns share their values: a row may be an episode, and they its steps");
        let examples = self.profile.columns[run.start].examples.clone();
        self.schema.wide.clone_from(&columns);
        self.roles.push(GuessedRole { role: "wide", columns, reason, examples, sure: false, guessed: true });
        self.schema.action = Some(Vec::new());
        let only_observed = without_columns(Role::Action, "the columns are observations: a system that is only observed".into());
        self.roles.push(GuessedRole { sure: false, ..only_observed });
        let is_unique = |column: &usize| self.profile.columns[*column].different() == self.profile.rows && !run.contains(column);
        if let Some(column) = self.named(Role::Episode).into_iter().find(is_unique) {
            self.add(Role::Episode, &[column], "it names the rows".into(), false);
        }
        true
    }

    /// The longest run of columns that take few values, most of which they share.
    fn longest_run(&self) -> Option<Range<usize>> {
        let of = |column: usize| &self.profile.columns[column].kinds.different;
        let shares = |column: usize, with: &FxHashSet<u64>| {
            let common = of(column).intersection(with).count();
            (2..=MOST_SHARED).contains(&of(column).len()) && 2 * common >= of(column).len().max(with.len())
        };
        let (mut runs, mut begin): (Vec<Range<usize>>, usize) = (Vec::new(), 0);
        while begin < self.profile.names.len() {
            let mut seen = of(begin).clone();
            let mut end = begin + 1;
            while end < self.profile.names.len() && shares(end, &seen) {
                seen.extend(of(end));
                end += 1;
            }
            runs.push(begin..end);
            begin = end;
        }
        runs.into_iter().max_by_key(|run| (run.len(), std::cmp::Reverse(run.start)))
    }

    pub(super) fn say_none(&mut self, role: Role, reason: String) {
        self.roles.push(without_columns(role, reason));
    }

    /// A flag, or lists of actions.
    fn tells_availability(&self, column: usize) -> bool {
        let of = &self.profile.columns[column];
        of.is_flag || (0..self.profile.rows).filter_map(|row| self.profile.cell(row, column)).any(|list| list.contains(';'))
    }

    pub fn guess_others(&mut self) {
        let is_number = |guesser: &Guesser<'_>, column: usize| {
            let of = &guesser.profile.columns[column].kinds;
            of.numbers == of.present && of.present > 0
        };
        if self.schema.reward.is_none()
            && !self.has(Role::Reward)
            && let Some(column) = self.named(Role::Reward).into_iter().find(|&column| is_number(self, column))
        {
            self.add(Role::Reward, &[column], "a number, by a word in its name".into(), false);
        }
        if self.schema.action_prob.is_none()
            && !self.has(Role::Probability)
            && let Some(column) =
                self.named(Role::Probability).into_iter().find(|&column| self.profile.columns[column].is_probability)
        {
            self.add(Role::Probability, &[column], "numbers between 0 and 1, by a word in its name".into(), false);
        }
        if self.schema.available.is_none()
            && !self.has(Role::Available)
            && let Some(column) = self.named(Role::Available).into_iter().find(|&column| self.tells_availability(column))
        {
            self.add(Role::Available, &[column], "which actions could be taken, by a word in its name".into(), false);
        }
        if self.schema.terminated.is_none()
            && !self.has(Role::Terminated)
            && let Some(column) = self.named(Role::Terminated).into_iter().find(|&column| self.profile.columns[column].is_flag)
        {
            let mut ends: Vec<usize> = (0..self.profile.rows).collect();
            let inside = self.steps();
            ends.retain(|row| !inside.iter().any(|(before, _)| before == row));
            let is_set = |row: usize| self.profile.flag(row, column) == Some(true);
            let only_last = (0..self.profile.rows).filter(|&row| is_set(row)).all(|row| ends.contains(&row));
            if only_last {
                self.add(Role::Terminated, &[column], "set only in last rows of episodes".into(), false);
            }
        }
    }

    /// Columns that could be the observation by their names, but not by their contents.
    pub fn doubt_constant_observations(&mut self) {
        if self.schema.observation.is_some() || self.has(Role::Observation) {
            return;
        }
        for column in self.named(Role::Observation) {
            let why = match self.profile.columns[column].different() {
                0 => "has no values",
                1 => "is the same in all rows",
                _ => continue,
            };
            let name = &self.profile.names[column];
            self.doubts.push(format!("{name:?} could be the observation by its name, but {why}: there is nothing to predict"));
        }
    }

    /// Numbers that may stand for missing values.
    pub fn doubt_codes(&mut self) {
        let read = [Role::Action, Role::Observation, Role::Reward].map(|role| self.columns_of(role)).concat();
        for column in read {
            for (code, count) in self.profile.codes(column) {
                let name = &self.profile.names[column];
                self.doubts.push(format!(
                    "{name:?} is {code} in {count} rows, far from its other values: if that stands for a missing value, say so \
                     (`missing`)"
                ));
            }
        }
    }
}
