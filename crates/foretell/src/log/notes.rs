//! Notes of a reader on what is no error.

use rustc_hash::FxHashSet;
use serde::Serialize;

use super::columns::Columns;
use super::schema::{Role, Schema};
use super::table::Table;
use crate::data::escaped;

/// Notes of a reader: no errors, but the user should know.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Notes {
    /// Which column was read as what: `observation ← new_obs`.
    pub columns: Vec<String>,
    /// Columns that were not read.
    pub ignored_columns: Vec<String>,
    /// Episodes whose last row has no flag; they are read as truncated.
    pub ends_without_flag: u64,
    /// Files without a column that marks where episodes begin or end; each is read as one episode.
    pub files_taken_as_one_episode: u64,
    /// A column `done` was read as terminated.
    pub done_as_terminated: bool,
    /// The observation of a row may have come before its action, not after it.
    pub unsure_timing: bool,
    /// How rows were sorted, where that is in doubt.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub order: Vec<String>,
    /// The columns in `ignored_columns`.
    #[serde(skip)]
    known: FxHashSet<String>,
}

/// Columns that a sentence names; a table may have thousands.
const NAMED: usize = 30;

impl Notes {
    /// The notes as plain sentences.
    pub fn sentences(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        let mut say = |when: bool, sentence: String| {
            if when {
                sentences.push(sentence);
            }
        };
        say(
            self.files_taken_as_one_episode > 0,
            format!(
                "{} file(s) have no column that separates episodes; each is read as one episode (if each row is one, say `episode` row)",
                self.files_taken_as_one_episode
            ),
        );
        say(
            self.ends_without_flag > 0,
            format!("{} episode(s) end without a flag and are read as truncated", self.ends_without_flag),
        );
        say(
            self.done_as_terminated,
            "the column done is read as terminated; if it also marks time limits, split it into terminated and truncated".into(),
        );
        say(
            self.unsure_timing,
            "each row's observation is read as what followed its action; if the action was chosen on it, shift observations (`shift_observation`)"
                .into(),
        );
        self.order.iter().for_each(|note| say(true, note.clone()));
        let shown = |name: &String| if name.trim().is_empty() { format!("{name:?}") } else { escaped(name).into_owned() };
        let mut ignored: Vec<String> = self.ignored_columns.iter().take(NAMED).map(shown).collect();
        if self.ignored_columns.len() > NAMED {
            ignored.push(format!("… ({} in all)", self.ignored_columns.len()));
        }
        say(!ignored.is_empty(), format!("columns not read: {}", ignored.join(", ")));
        sentences
    }

    /// Notes how the columns of a table are read.
    pub(super) fn add_columns(&mut self, table: &impl Table, columns: &Columns, schema: &Schema) {
        let name = |column: usize| table.columns()[column].as_str();
        for (role, used) in columns.roles() {
            let names: Vec<_> = used.iter().map(|&column| name(column)).collect();
            add(&mut self.columns, format!("{} ← {}", role.name(), names.join(", ")));
            self.done_as_terminated |=
                role == Role::Terminated && names.iter().any(|name| name.to_lowercase().starts_with("done"));
        }
        let sort = schema.sort.as_deref().unwrap_or_default();
        for &column in columns.ignored.iter().filter(|&&column| !sort.iter().any(|by| by == name(column))) {
            self.ignore(name(column));
        }
        self.unsure_timing |= columns.unsure_timing;
        table.notes().iter().for_each(|note| add(&mut self.order, note.clone()));
    }

    /// Notes a column that is not read.
    pub(super) fn ignore(&mut self, name: &str) {
        if !self.known.contains(name) {
            self.known.insert(name.to_string());
            self.ignored_columns.push(name.to_string());
        }
    }
}

fn add(list: &mut Vec<String>, item: String) {
    if !list.contains(&item) {
        list.push(item);
    }
}
