//! Guesses of what the columns of a table mean, from their names and contents, with reasons.

use serde::Serialize;

use super::columns::{Columns, conflicts};
use super::names::words;
use super::profile::Profile;
use super::schema::{ROW, Role, Schema};
use crate::error::{Error, Result};

/// What the columns of a table seem to mean.
#[derive(Clone, Debug, Serialize)]
pub struct Guess {
    /// The schema that says the same explicitly.
    pub schema: Schema,
    /// The roles in it.
    pub roles: Vec<GuessedRole>,
    /// Why the table cannot be read as it is, if it cannot.
    pub problem: Option<String>,
    /// Why the first rows cannot be read as the schema says, if they cannot.
    pub unread: Option<String>,
}

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

/// Words in names of columns that speak for a role.
const WORDS: [(Role, &[&str]); 9] = [
    (
        Role::Episode,
        &[
            "id",
            "user",
            "subject",
            "patient",
            "participant",
            "person",
            "animal",
            "student",
            "ptnum",
            "individual",
            "session",
            "pid",
            "learner",
            "track",
            "vehicle",
            "device",
            "robot",
            "unit",
            "customer",
            "client",
            "household",
            "case",
        ],
    ),
    (
        Role::Sort,
        &[
            "time",
            "timestamp",
            "date",
            "datetime",
            "day",
            "age",
            "year",
            "years",
            "month",
            "months",
            "week",
            "hour",
            "visit",
            "order",
            "seq",
            "sequence",
            "index",
            "wave",
            "step",
            "t",
        ],
    ),
    (
        Role::Action,
        &[
            "action",
            "treatment",
            "treat",
            "arm",
            "intervention",
            "dose",
            "prompt",
            "send",
            "sent",
            "skill",
            "item",
            "question",
            "exercise",
            "decision",
            "choice",
            "control",
            "drug",
            "command",
            "move",
            "recommendation",
            "message",
            "setting",
        ],
    ),
    (
        Role::Observation,
        &[
            "observation",
            "obs",
            "state",
            "status",
            "response",
            "answer",
            "correct",
            "result",
            "event",
            "symptom",
            "sensor",
            "reading",
            "behaviour",
            "behavior",
            "activity",
            "outcome",
            "measurement",
            "level",
            "mood",
            "signal",
            "speed",
            "position",
            "heading",
            "turn",
            "distance",
        ],
    ),
    (Role::Reward, &["reward", "score", "payoff", "gain", "profit", "utility", "benefit", "quality", "cost"]),
    (
        Role::Terminated,
        &["terminated", "done", "dropout", "death", "died", "dead", "ended", "end", "finished", "exit", "censored"],
    ),
    (Role::Available, &["available", "availability", "avail", "allowed", "eligible", "legal", "feasible"]),
    (Role::Probability, &["prob", "probability", "propensity", "pscore", "pi"]),
    (Role::Group, &["group", "user", "subject", "patient", "participant", "person", "student", "site", "school"]),
];

/// Share of consecutive rows that must be in order for a column to be a time.
const IN_ORDER: f64 = 0.99;

/// The roles of columns so far.
struct Guesser<'a> {
    profile: &'a Profile,
    taken: Vec<bool>,
    schema: Schema,
    roles: Vec<GuessedRole>,
}

/// Completes a schema by what the first rows of a table look like.
pub(super) fn guess(file: &str, profile: &Profile, schema: &Schema) -> Guess {
    let problem = Columns::find(file, &profile.names, schema).err().map(|error| match error {
        Error::Input { problem, .. } => problem,
        other => other.to_string(),
    });
    let mut guesser = Guesser { profile, taken: vec![false; profile.names.len()], schema: schema.clone(), roles: Vec::new() };
    guesser.settle_conflicts();
    guesser.take_known(file);
    if !schema.wide.is_empty() {
        return Guess { schema: guesser.schema, roles: guesser.roles, problem, unread: None };
    }
    guesser.guess_episode();
    guesser.guess_order();
    guesser.guess_symbols();
    guesser.guess_others();
    Guess { schema: guesser.schema, roles: guesser.roles, problem, unread: None }
}

impl Guesser<'_> {
    /// Columns that are given, or have one of the usual names.
    fn take_known(&mut self, file: &str) {
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
    fn settle_conflicts(&mut self) {
        for (role, columns) in conflicts(&self.profile.names, &self.schema) {
            let names: Vec<&str> = columns.iter().map(|&column| self.profile.names[column].as_str()).collect();
            let reason = format!("one of {}, which could all be it by their names", names.join(" and "));
            self.add(role, &columns[..1], reason, false);
        }
    }

    fn has(&self, role: Role) -> bool {
        self.roles.iter().any(|guessed| guessed.role == role.name())
    }

    fn column_of(&self, role: Role) -> Option<usize> {
        let guessed = self.roles.iter().find(|guessed| guessed.role == role.name())?;
        self.profile.names.iter().position(|name| Some(name) == guessed.columns.first())
    }

    /// Columns without a role whose names contain a word for `role`.
    fn named(&self, role: Role) -> Vec<usize> {
        let known = WORDS.iter().find(|(of, _)| *of == role).map_or(&[][..], |(_, known)| known);
        let matches = |name: &String| words(name).iter().any(|word| known.contains(&word.as_str()));
        (0..self.profile.names.len()).filter(|&i| !self.taken[i] && matches(&self.profile.names[i])).collect()
    }

    fn add(&mut self, role: Role, columns: &[usize], reason: String, sure: bool) {
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
            Role::Elapsed | Role::NextObservation | Role::First | Role::Last => {}
        }
        self.roles.push(GuessedRole { role: role.name(), columns: names, reason, examples, sure, guessed: true });
    }

    /// The finest column that names several rows each; a coarser one is the group.
    fn guess_episode(&mut self) {
        let marks_ends = [Role::Terminated, Role::Truncated, Role::First, Role::Last].iter().any(|&role| self.has(role));
        if self.schema.episode.is_some() || self.has(Role::Episode) || marks_ends {
            return;
        }
        let rows = self.profile.rows;
        let names_rows = |&column: &usize| {
            let of = &self.profile.columns[column];
            let different = of.different();
            different >= 2 && 2 * different <= rows && of.kinds.fractions == 0 && of.kinds.missing == 0
        };
        let mut named: Vec<usize> = self.named(Role::Episode).into_iter().filter(names_rows).collect();
        named.sort_by_key(|&column| std::cmp::Reverse(self.profile.columns[column].different()));
        let Some(&finest) = named.first() else { return };
        let of = &self.profile.columns[finest];
        let (different, runs) = (of.different(), of.runs);
        let how = if runs == different { "in blocks" } else { "interleaved" };
        let name = self.profile.names[finest].clone();
        self.add(Role::Episode, &[finest], format!("{name:?} has {different} values {how}"), true);
        let coarser = named.into_iter().skip(1).find(|&column| self.profile.is_nested(finest, column));
        if let (Some(column), true) = (coarser, self.schema.group.is_none()) {
            let name = self.profile.names[column].clone();
            self.add(Role::Group, &[column], format!("each value of {name:?} has several episodes"), false);
        }
    }

    /// Whether rows must be sorted, and by what.
    fn guess_order(&mut self) {
        let episode = self.column_of(Role::Episode);
        let steps = self.profile.steps(episode);
        if let Some(step) = self.column_of(Role::Step).filter(|_| self.schema.step.is_none()) {
            let goes_up = |&(a, b): &(usize, usize)| {
                self.profile.time(a, step).zip(self.profile.time(b, step)).is_some_and(|(x, y)| y == x + 1.0)
            };
            let name = self.profile.names[step].clone();
            if !name.eq_ignore_ascii_case("step") && !steps.iter().all(goes_up) && !self.schema.arranges() {
                self.roles.retain(|guessed| guessed.role != Role::Step.name());
                self.schema.step = Some(Vec::new());
                let reason = format!("{name:?} does not count steps: it is a time by which rows are sorted");
                self.add(Role::Sort, &[step], reason, true);
            }
            return;
        }
        let is_interleaved = episode.is_some_and(|column| {
            let of = &self.profile.columns[column];
            of.runs > of.different()
        });
        if self.schema.sort.is_some() {
            return;
        }
        let time = self.named(Role::Sort).into_iter().find(|&column| {
            let times = || steps.iter().map(|&(a, b)| self.profile.time(a, column).zip(self.profile.time(b, column)));
            let known = times().all(|pair| pair.is_some());
            let ordered = times().flatten().filter(|(x, y)| x <= y).count();
            let different = self.profile.columns[column].different() > 1;
            known && different && !steps.is_empty() && (is_interleaved || ordered as f64 >= IN_ORDER * steps.len() as f64)
        });
        let unsorted =
            time.is_some_and(|column| steps.iter().any(|&(a, b)| self.profile.time(a, column) > self.profile.time(b, column)));
        match time {
            Some(column) if is_interleaved || unsorted => {
                let name = self.profile.names[column].clone();
                self.add(Role::Sort, &[column], format!("rows are not in order; {name:?} is a time"), true);
            }
            _ if is_interleaved => {
                self.schema.sort = Some(vec![ROW.into()]);
                let reason = "rows of different episodes are interleaved: those of each keep their order".into();
                self.roles.push(GuessedRole {
                    role: Role::Sort.name(),
                    columns: vec![ROW.into()],
                    reason,
                    examples: Vec::new(),
                    sure: true,
                    guessed: true,
                });
            }
            // Rows are in order already: the column is a time, and no part of what is observed.
            Some(column) => self.taken[column] = true,
            None => {}
        }
    }

    fn guess_symbols(&mut self) {
        if self.schema.observation.is_none() && !self.has(Role::Observation) {
            let named = self.named(Role::Observation);
            let varying: Vec<usize> = named.into_iter().filter(|&column| self.profile.columns[column].different() > 1).collect();
            let sure = varying.len() == 1;
            match varying.first() {
                Some(&first) if sure => self.add(Role::Observation, &[first], "by a word in its name".into(), true),
                Some(_) => self.add(Role::Observation, &varying, "by words in their names".into(), false),
                None => {
                    let measured = (0..self.profile.names.len()).filter(|&column| {
                        let of = &self.profile.columns[column];
                        !self.taken[column]
                            && of.different() > 1
                            && (of.kinds.is_measured()
                                || of.kinds.may_count() && of.different() < of.kinds.present
                                || 10 * of.different() <= self.profile.rows)
                    });
                    let others: Vec<usize> = measured.collect();
                    if !others.is_empty() {
                        self.add(Role::Observation, &others, "what is left and varies".into(), false);
                    }
                }
            }
        }
        if self.schema.action.is_none() && !self.has(Role::Action) {
            let named: Vec<usize> =
                self.named(Role::Action).into_iter().filter(|&column| self.profile.columns[column].different() > 1).collect();
            match named.first() {
                Some(_) => self.add(Role::Action, &named, "by a word in its name".into(), named.len() == 1),
                None => {
                    self.schema.action = Some(Vec::new());
                    self.roles.push(GuessedRole {
                        role: Role::Action.name(),
                        columns: Vec::new(),
                        reason: "no column looks like an action: a system that is only observed".into(),
                        examples: Vec::new(),
                        sure: true,
                        guessed: true,
                    });
                }
            }
        }
    }

    /// A flag, or lists of actions.
    fn tells_availability(&self, column: usize) -> bool {
        let of = &self.profile.columns[column];
        of.is_flag || (0..self.profile.rows).filter_map(|row| self.profile.cell(row, column)).any(|list| list.contains(';'))
    }

    fn guess_others(&mut self) {
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
            let inside = self.profile.steps(self.column_of(Role::Episode));
            ends.retain(|row| !inside.iter().any(|(before, _)| before == row));
            let is_set = |row: usize| matches!(self.profile.cell(row, column), Some("1" | "true" | "True" | "TRUE"));
            let only_last = (0..self.profile.rows).filter(|&row| is_set(row)).all(|row| ends.contains(&row));
            if only_last {
                self.add(Role::Terminated, &[column], "set only in last rows of episodes".into(), false);
            }
        }
    }
}

impl Guess {
    /// The given schema with the guesses that are made without asking.
    pub(super) fn sure(&self, given: &Schema) -> Schema {
        let mut schema = given.clone();
        for role in self.roles.iter().filter(|role| role.guessed && role.sure) {
            let columns = Some(role.columns.clone());
            match role.role {
                "episode" => schema.episode = columns,
                "sort" => schema.sort = columns,
                "action" => schema.action = columns,
                "observation" => schema.observation = columns,
                _ => {}
            }
        }
        if self.schema.step.as_ref().is_some_and(Vec::is_empty) {
            schema.step = Some(Vec::new());
        }
        schema
    }

    /// Leaves out suggestions with which the first rows cannot be read, if that helps; otherwise says
    /// why they cannot.
    pub(super) fn check(&mut self, given: &Schema, reads: impl Fn(&Schema) -> Result<()>) {
        let Err(error) = reads(&self.schema) else { return };
        let unsure: Vec<usize> = (0..self.roles.len()).filter(|&i| self.roles[i].guessed && !self.roles[i].sure).collect();
        let fewer = unsure.iter().rev().map(|&i| vec![i]).chain([unsure.clone()]);
        for left_out in fewer.filter(|left_out| !left_out.is_empty()) {
            let mut schema = self.schema.clone();
            left_out.iter().for_each(|&i| schema.restore(self.roles[i].role, given));
            if reads(&schema).is_ok() {
                self.schema = schema;
                let mut i = 0;
                self.roles.retain(|_| {
                    i += 1;
                    !left_out.contains(&(i - 1))
                });
                return;
            }
        }
        self.unread = Some(error.to_string());
    }

    /// Sentences about what was guessed without asking.
    pub fn sentences(&self) -> Vec<String> {
        let sentence = |role: &GuessedRole| {
            let columns = if role.columns.is_empty() { "none".into() } else { role.columns.join(", ") };
            format!("{}: {columns} ({})", role.role, role.reason)
        };
        self.roles.iter().filter(|role| role.guessed && role.sure).map(sentence).collect()
    }
}
