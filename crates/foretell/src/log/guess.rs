//! Guesses of what the columns of a table mean, from their names and contents, with reasons.

use serde::Serialize;

use super::columns::Columns;
use super::guesser::Guesser;
use super::profile::Profile;
use super::schema::Schema;
use crate::error::{Error, Result};

pub use super::guesser::GuessedRole;

/// What the columns of a table seem to mean.
#[derive(Clone, Debug, Serialize)]
pub struct Guess {
    /// The schema that says the same explicitly.
    pub schema: Schema,
    /// The roles in it.
    pub roles: Vec<GuessedRole>,
    /// What could not be settled, in sentences.
    pub doubts: Vec<String>,
    /// Why the table cannot be read as it is, if it cannot.
    pub problem: Option<String>,
    /// Why the first rows cannot be read as the schema says, if they cannot.
    pub unread: Option<String>,
}

/// Completes a schema by what the first rows of a table look like.
pub(super) fn guess(file: &str, profile: &Profile, schema: &Schema) -> Guess {
    let problem = Columns::find(file, &profile.names, schema).err().map(|error| match error {
        Error::Input { problem, .. } => problem,
        other => other.to_string(),
    });
    let mut guesser = Guesser::new(profile, schema);
    guesser.settle_conflicts();
    guesser.take_known(file);
    if !schema.wide.is_empty() {
        return Guess { schema: guesser.schema, roles: guesser.roles, doubts: guesser.doubts, problem, unread: None };
    }
    guesser.guess_episode();
    if guesser.guess_wide() {
        return Guess { schema: guesser.schema, roles: guesser.roles, doubts: guesser.doubts, problem, unread: None };
    }
    guesser.guess_order();
    guesser.guess_named_symbols();
    guesser.guess_others();
    guesser.guess_what_is_left();
    guesser.guess_elapsed();
    guesser.doubt_codes();
    guesser.doubt_constant_observations();
    Guess { schema: guesser.schema, roles: guesser.roles, doubts: guesser.doubts, problem, unread: None }
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
                "step" => schema.step = columns,
                "observation" => schema.observation = columns,
                _ => {}
            }
        }
        if self.schema.step.as_ref().is_some_and(Vec::is_empty) {
            schema.step = Some(Vec::new());
        }
        schema
    }

    /// Whether everything that was guessed is used without asking.
    pub fn is_sure(&self) -> bool {
        self.roles.iter().all(|role| role.sure || !role.guessed)
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
            if left_out.iter().any(|&i| self.roles[i].role == "wide") {
                schema.wide.clone_from(&given.wide);
            }
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
