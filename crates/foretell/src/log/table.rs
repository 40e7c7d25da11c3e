//! What the columns of a table mean.

use super::cell::{Cell, Problem};
use crate::error::{Error, Result};

/// A table of a file: named columns, and rows that are visited once.
pub(super) trait Table: Send {
    /// Names of the columns. Their number may grow while rows are read (a new key in JSON).
    fn columns(&self) -> &[String];
    /// Only these columns will be read.
    fn want(&mut self, _columns: &[usize]) -> Result<()> {
        Ok(())
    }
    /// Goes to the next row.
    fn advance(&mut self) -> Result<Advance>;
    /// A cell of this row.
    fn cell(&self, column: usize) -> Cell<'_>;
    /// The location of this row.
    fn location(&self) -> Location;
}

/// What [`Table::advance`] found.
pub(super) enum Advance {
    Row,
    /// A row that cannot be divided into cells.
    Malformed(Problem),
    End,
}

/// The line or row number of a row, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Location {
    Line(u64),
    #[cfg_attr(not(feature = "parquet"), expect(dead_code))]
    Row(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Episode,
    Step,
    Action,
    Observation,
    NextObservation,
    Reward,
    Terminated,
    Truncated,
    First,
    Last,
    Probability,
    LogProbability,
}

/// Roles and their column names; the first is Foretell's own. Case is ignored.
const SYNONYMS: [(Role, &[&str]); 12] = [
    (Role::Episode, &["episode_id", "episode", "eps_id", "episode_ids", "ep", "trajectory", "traj_id", "run"]),
    (Role::Step, &["step", "t", "time", "timestep", "step_id"]),
    (Role::Action, &["action", "actions", "act", "a"]),
    (Role::Observation, &["observation", "observations", "obs", "o"]),
    (
        Role::NextObservation,
        &["new_obs", "next_obs", "next_observation", "next_observations", "new_observation", "new_observations"],
    ),
    (Role::Reward, &["reward", "rewards", "r", "rew"]),
    (
        Role::Terminated,
        &["terminated", "terminateds", "terminations", "termination", "terminal", "terminals", "is_terminal", "done", "dones"],
    ),
    (Role::Truncated, &["truncated", "truncateds", "truncations", "truncation", "timeout", "timeouts"]),
    (Role::First, &["is_first"]),
    (Role::Last, &["is_last"]),
    (Role::Probability, &["action_prob", "action_probability", "prob", "propensity"]),
    (Role::LogProbability, &["action_logp", "logp"]),
];

/// Prefixes of columns that make one symbol together; the rest names the part.
const PARTS: [(Role, &[&str]); 2] = [
    (Role::NextObservation, &["new_obs_", "next_obs_", "next_observation_", "new_observation_"]),
    (Role::Observation, &["observation_", "obs_"]),
];

/// Which column plays which role.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Columns {
    pub episode: Option<usize>,
    pub step: Option<usize>,
    pub action: usize,
    pub observation: Observed,
    pub reward: Option<usize>,
    pub terminated: Option<usize>,
    pub truncated: Option<usize>,
    pub first: Option<usize>,
    pub last: Option<usize>,
    pub probability: Option<usize>,
    pub log_probability: Option<usize>,
    /// Columns without a role.
    pub ignored: Vec<usize>,
    /// The observation of a row may have come before its action, not after it.
    pub unsure_timing: bool,
}

/// Where the observation is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Observed {
    In(usize),
    /// The values of several columns joined, each after its label: `colour=red|side=left`, or
    /// `0|1|1`.
    Across(Vec<Part>),
}

/// One of several columns that make an observation.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Part {
    pub column: usize,
    /// `colour=`, or nothing where the parts are numbered.
    pub label: String,
}

/// The names of columns that are not read, of a table called `table` with these columns.
///
/// ```
/// let names = ["action", "obs", "weather"].map(String::from);
/// assert_eq!(foretell::log::unused_columns("walks", &names)?, ["weather"]);
/// # Ok::<(), foretell::Error>(())
/// ```
pub fn unused_columns<'a>(table: &str, names: &'a [String]) -> Result<Vec<&'a str>> {
    Ok(Columns::find(table, names)?.ignored.into_iter().map(|i| names[i].as_str()).collect())
}

impl Columns {
    /// Recognises the columns of `file`.
    pub fn find(file: &str, names: &[String]) -> Result<Columns> {
        let roles = Roles { file, names };
        let action = roles.one(Role::Action)?.ok_or_else(|| roles.missing(Role::Action))?;
        let next = roles.observed(Role::NextObservation)?;
        let unsure_timing = next.is_none();
        let observation = match next {
            Some(observed) => observed,
            None => roles.observed(Role::Observation)?.ok_or_else(|| roles.missing(Role::Observation))?,
        };
        let mut columns = Columns {
            episode: roles.one(Role::Episode)?,
            step: roles.one(Role::Step)?,
            action,
            observation,
            reward: roles.one(Role::Reward)?,
            terminated: roles.one(Role::Terminated)?,
            truncated: roles.one(Role::Truncated)?,
            first: roles.one(Role::First)?,
            last: roles.one(Role::Last)?,
            probability: roles.one(Role::Probability)?,
            log_probability: roles.one(Role::LogProbability)?,
            ignored: Vec::new(),
            unsure_timing,
        };
        if columns.probability.is_some() {
            columns.log_probability = None; // RLlib writes both
        }
        columns.unsure_timing &= columns.first.is_some() || (columns.step.is_none() && !is_ours(names, &columns.observation));
        let used = columns.used();
        columns.ignored = (0..names.len()).filter(|i| !used.contains(i)).collect();
        Ok(columns)
    }

    /// Every role and its columns.
    pub fn roles(&self) -> Vec<(&'static str, Vec<usize>)> {
        let observation = match &self.observation {
            Observed::In(column) => vec![*column],
            Observed::Across(parts) => parts.iter().map(|part| part.column).collect(),
        };
        [
            (Role::Episode, self.episode.into_iter().collect()),
            (Role::Step, self.step.into_iter().collect()),
            (Role::Action, vec![self.action]),
            (Role::Observation, observation),
            (Role::Reward, self.reward.into_iter().collect()),
            (Role::Terminated, self.terminated.into_iter().collect()),
            (Role::Truncated, self.truncated.into_iter().collect()),
            (Role::First, self.first.into_iter().collect()),
            (Role::Last, self.last.into_iter().collect()),
            (Role::Probability, self.probability.into_iter().collect()),
            (Role::LogProbability, self.log_probability.into_iter().collect::<Vec<_>>()),
        ]
        .into_iter()
        .filter(|(_, columns)| !columns.is_empty())
        .map(|(role, columns)| (synonyms(role)[0], columns))
        .collect()
    }

    /// The columns with a role.
    pub fn used(&self) -> Vec<usize> {
        self.roles().into_iter().flat_map(|(_, columns)| columns).collect()
    }

    /// Whether no column marks where an episode begins or ends.
    pub fn are_without_boundaries(&self) -> bool {
        [self.episode, self.first, self.last, self.terminated, self.truncated].iter().all(Option::is_none)
    }

    /// Whether `later`, found when keys appeared in the middle of a file, changes the meaning of
    /// earlier rows.
    pub fn contradict(&self, later: &Columns) -> bool {
        let fixed = |c: &Columns| (c.episode, c.step, c.action, c.observation.clone(), c.first, c.probability, c.log_probability);
        fixed(self) != fixed(later)
    }
}

/// The columns of a file on the way to [`Columns`].
struct Roles<'a> {
    file: &'a str,
    names: &'a [String],
}

impl Roles<'_> {
    /// The only column that plays `role`.
    fn one(&self, role: Role) -> Result<Option<usize>> {
        let mut matching = (0..self.names.len()).filter(|&i| is_one_of(&self.names[i], synonyms(role)));
        match (matching.next(), matching.next()) {
            (Some(first), Some(second)) => Err(self.both(role, first, second)),
            (first, _) => Ok(first),
        }
    }

    /// The column, or columns, with the observation in `role`.
    fn observed(&self, role: Role) -> Result<Option<Observed>> {
        let whole = self.one(role)?;
        let parts = self.parts(role)?;
        match (whole, parts.first()) {
            (Some(whole), Some(part)) => Err(self.both(role, whole, part.column)),
            (Some(whole), None) => Ok(Some(Observed::In(whole))),
            (None, Some(_)) => Ok(Some(Observed::Across(parts))),
            (None, None) => Ok(None),
        }
    }

    /// The columns that make the observation together, sorted, so that their order in the file does
    /// not matter.
    fn parts(&self, role: Role) -> Result<Vec<Part>> {
        let prefixes = PARTS.iter().find(|(of, _)| *of == role).map_or(&[][..], |(_, prefixes)| prefixes);
        let mut found: Vec<(String, usize)> = Vec::new();
        for (column, name) in self.names.iter().enumerate() {
            let name = name.to_lowercase();
            if let Some(suffix) = prefixes.iter().find_map(|prefix| name.strip_prefix(prefix)) {
                found.push((suffix.to_string(), column));
            }
        }
        let numbered = found.iter().all(|(suffix, _)| suffix.parse::<u64>().is_ok());
        if numbered {
            found.sort_by_key(|(suffix, _)| suffix.parse::<u64>().ok());
        } else {
            found.sort();
        }
        if let Some(pair) = found.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(self.both(role, pair[0].1, pair[1].1));
        }
        let label = |suffix: String| if numbered { String::new() } else { format!("{suffix}=") };
        Ok(found.into_iter().map(|(suffix, column)| Part { column, label: label(suffix) }).collect())
    }

    fn both(&self, role: Role, first: usize, second: usize) -> Error {
        let (first, second) = (&self.names[first], &self.names[second]);
        let problem = format!("columns {first:?} and {second:?} would both be read as {}", synonyms(role)[0]);
        Error::input(self.file, None, problem, "rename or remove one of them")
    }

    fn missing(&self, role: Role) -> Error {
        const SHOWN: usize = 20;
        let mut found = self.names.iter().take(SHOWN).map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
        if self.names.len() > SHOWN {
            found.push_str(&format!(", … ({} in all)", self.names.len()));
        }
        let mut names = synonyms(role).to_vec();
        if role == Role::Observation {
            names.extend(["observation_*", "obs_*"]);
            names.extend(synonyms(Role::NextObservation));
        }
        let problem = format!("no column for the {}; columns found: {found}", synonyms(role)[0]);
        Error::input(self.file, None, problem, format!("name it one of: {}", names.join(", ")))
    }
}

fn synonyms(role: Role) -> &'static [&'static str] {
    SYNONYMS.iter().find(|(of, _)| *of == role).map_or(&[], |(_, names)| names)
}

fn is_one_of(name: &str, names: &[&str]) -> bool {
    names.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Whether the observation has Foretell's own name: `observation` follows its convention, `obs` is
/// Gymnasium's.
fn is_ours(names: &[String], observation: &Observed) -> bool {
    matches!(observation, Observed::In(column) if names[*column].eq_ignore_ascii_case(synonyms(Role::Observation)[0]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(names: &[&str]) -> Result<Columns> {
        Columns::find("walks.csv", &names.iter().map(|name| name.to_string()).collect::<Vec<_>>())
    }

    #[test]
    fn every_synonym_is_recognised_whatever_its_case() {
        for (role, names) in SYNONYMS {
            for name in names {
                let upper = name.to_uppercase();
                let columns = match role {
                    Role::Action => find(&[&upper, "observation"]).unwrap(),
                    Role::Observation | Role::NextObservation => find(&["action", &upper]).unwrap(),
                    _ => find(&["action", "observation", &upper]).unwrap(),
                };
                assert_eq!(columns.ignored, [0; 0], "{name}");
            }
        }
    }

    #[test]
    fn no_synonym_has_two_roles() {
        let mut names: Vec<_> = SYNONYMS.iter().flat_map(|(_, names)| names.iter()).collect();
        names.sort();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn the_observation_after_the_action_is_preferred() {
        let columns = find(&["action", "obs", "new_obs"]).unwrap();
        assert_eq!(columns.observation, Observed::In(2));
        assert_eq!(columns.ignored, [1]);
    }

    #[test]
    fn several_columns_make_one_observation_in_the_order_of_their_suffixes() {
        let labels = |names: &[&str]| match find(names).unwrap().observation {
            Observed::Across(parts) => parts.into_iter().map(|part| (part.column, part.label)).collect::<Vec<_>>(),
            Observed::In(_) => panic!("one column"),
        };
        assert_eq!(labels(&["a", "obs_10", "obs_9"]), [(2, "".into()), (1, "".into())]);
        assert_eq!(labels(&["a", "observation_side", "Observation_Colour"]), [(2, "colour=".into()), (1, "side=".into())]);
    }

    #[test]
    fn two_columns_for_one_role_are_an_error() {
        for names in [
            ["a", "o", "done", "terminated"],
            ["a", "o", "obs_1", "x"],
            ["a", "action", "o", "x"],
            ["a", "obs_1", "observation_1", "x"],
        ] {
            assert!(find(&names).is_err(), "{names:?}");
        }
    }

    #[test]
    fn timing_is_unsure_where_the_columns_are_of_gymnasium_or_rlds() {
        assert!(!find(&["action", "observation"]).unwrap().unsure_timing);
        assert!(!find(&["step", "action", "obs"]).unwrap().unsure_timing);
        assert!(!find(&["actions", "obs", "new_obs"]).unwrap().unsure_timing);
        assert!(find(&["actions", "obs"]).unwrap().unsure_timing);
        assert!(find(&["is_first", "action", "observation"]).unwrap().unsure_timing);
    }
}
