//! Which column plays which role: as the schema says, or by its name.

use super::csv::HEADER;
use super::elapsed::Elapsed;
use super::schema::{ROW, Role, Schema};
use super::symbols::{Cells, Part, Symbols};
use crate::error::{Error, Result};

/// Roles and their column names; the first is Foretell's own. Case is ignored.
const SYNONYMS: [(Role, &[&str]); 13] = [
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
    (Role::Available, &["available", "available_actions"]),
];

/// Prefixes of columns that make one symbol together; the rest names the part.
const PARTS: [(Role, &[&str]); 3] = [
    (Role::NextObservation, &["new_obs_", "next_obs_", "next_observation_", "new_observation_"]),
    (Role::Observation, &["observation_", "obs_"]),
    (Role::Action, &["action_"]),
];
/// Prefix of flags that say whether the action named by the rest could be taken.
const AVAILABLE: &str = "available_";

/// Which actions could be taken.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Availability {
    /// A list of actions, or a flag that is false where only the action taken could be.
    In(usize),
    /// A flag for each of these actions.
    Flags(Vec<(usize, String)>),
}

/// Which column plays which role.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Columns {
    /// Their values together name the episode.
    pub episode: Vec<usize>,
    /// Each row is an episode.
    pub rows_are_episodes: bool,
    pub group: Option<usize>,
    /// Checked to go up by 1.
    pub step: Option<usize>,
    pub action: Symbols,
    pub observation: Symbols,
    pub elapsed: Option<Elapsed>,
    pub available: Option<Availability>,
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

/// The names of columns that are not read, of a table called `table` with these columns.
///
/// ```
/// use foretell::log::{Schema, unused_columns};
///
/// let names = ["action", "obs", "weather"].map(String::from);
/// assert_eq!(unused_columns("walks", &names, &Schema::default())?, ["weather"]);
/// # Ok::<(), foretell::Error>(())
/// ```
pub fn unused_columns<'a>(table: &str, names: &'a [String], schema: &Schema) -> Result<Vec<&'a str>> {
    let columns = Columns::find(table, names, schema)?;
    let sort = schema.given(Role::Sort).unwrap_or_default();
    let is_read = |i: &usize| sort.contains(&names[*i]) || schema.is_wide(&names[*i], names);
    Ok(columns.ignored.into_iter().filter(|i| !is_read(i)).map(|i| names[i].as_str()).collect())
}

impl Columns {
    /// Recognises the columns of `file`.
    pub fn find(file: &str, names: &[String], schema: &Schema) -> Result<Columns> {
        let roles = Roles { file, names, schema };
        roles.check_bins()?;
        let next = match schema.given(Role::Observation) {
            Some(_) => None,
            None => roles.symbols(Role::NextObservation)?,
        };
        let unsure_timing = next.is_none() && !schema.shift_observation;
        let observation = match next {
            Some(observed) => observed,
            None => roles.symbols(Role::Observation)?.ok_or_else(|| roles.missing(Role::Observation))?,
        };
        let elapsed = roles.one(Role::Elapsed)?.map(|column| Elapsed::new(column, &names[column], schema, file)).transpose()?;
        let action = match roles.symbols(Role::Action)? {
            Some(action) => action,
            None if elapsed.is_some() => Symbols::Nothing,
            None => return Err(roles.missing(Role::Action)),
        };
        let mut columns = Columns {
            episode: roles.all(Role::Episode)?,
            rows_are_episodes: roles.rows_are_episodes(),
            group: roles.one(Role::Group)?,
            step: if schema.arranges() { None } else { roles.one(Role::Step)? },
            action,
            observation,
            elapsed,
            available: None,
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
        columns.available = roles.available(&columns.used())?;
        columns.unsure_timing &= schema.given(Role::Observation).is_none()
            && (columns.first.is_some() || (columns.step.is_none() && !roles.is_ours(&columns.observation)));
        let used = columns.used();
        columns.ignored = (0..names.len()).filter(|i| used.binary_search(i).is_err()).collect();
        Ok(columns)
    }

    /// Whether a column of that name plays no role, whatever other columns there are.
    pub fn is_of_no_use(name: &str, schema: &Schema) -> bool {
        let lower = name.to_lowercase();
        let is_prefix = |prefix: &&str| lower.starts_with(*prefix);
        let by_name = SYNONYMS.iter().any(|(_, names)| names.contains(&lower.as_str()))
            || PARTS.iter().any(|(_, prefixes)| prefixes.iter().any(is_prefix))
            || lower.starts_with(AVAILABLE);
        !by_name && name != ROW && !schema.names_column(name)
    }

    /// Every role and its columns.
    pub fn roles(&self) -> Vec<(Role, Vec<usize>)> {
        let list = |column: Option<usize>| column.into_iter().collect::<Vec<_>>();
        [
            (Role::Episode, self.episode.clone()),
            (Role::Group, list(self.group)),
            (Role::Step, list(self.step)),
            (Role::Action, self.action.columns()),
            (Role::Elapsed, list(self.elapsed.as_ref().map(|elapsed| elapsed.column))),
            (Role::Available, self.available.as_ref().map_or(Vec::new(), Availability::columns)),
            (Role::Observation, self.observation.columns()),
            (Role::Reward, list(self.reward)),
            (Role::Terminated, list(self.terminated)),
            (Role::Truncated, list(self.truncated)),
            (Role::First, list(self.first)),
            (Role::Last, list(self.last)),
            (Role::Probability, list(self.probability)),
            (Role::LogProbability, list(self.log_probability)),
        ]
        .into_iter()
        .filter(|(_, columns)| !columns.is_empty())
        .collect()
    }

    /// The columns with a role.
    pub fn used(&self) -> Vec<usize> {
        let mut used: Vec<usize> = self.roles().into_iter().flat_map(|(_, columns)| columns).collect();
        used.sort_unstable();
        used.dedup();
        used
    }

    /// Whether no column marks where an episode begins or ends.
    pub fn are_without_boundaries(&self) -> bool {
        !self.rows_are_episodes
            && self.episode.is_empty()
            && [self.first, self.last, self.terminated, self.truncated].iter().all(Option::is_none)
    }

    /// Whether `later`, found when keys appeared in the middle of a file, changes the meaning of
    /// earlier rows.
    pub fn contradict(&self, later: &Columns) -> bool {
        let fixed = |c: &Columns| {
            let symbols = (c.action.clone(), c.observation.clone(), c.available.clone());
            (c.episode.clone(), c.rows_are_episodes, c.step, symbols, c.first, c.probability, c.log_probability)
        };
        fixed(self) != fixed(later)
    }
}

/// The roles that several columns could play by their names, and these columns; the more usual names
/// come first.
pub(super) fn conflicts(names: &[String], schema: &Schema) -> Vec<(Role, Vec<usize>)> {
    let matching = |known: &&[&str]| -> Vec<usize> {
        let named = |name: &&str| names.iter().position(|column| column.eq_ignore_ascii_case(name));
        known.iter().filter_map(named).collect()
    };
    let open = SYNONYMS.iter().filter(|(role, _)| schema.given(*role).is_none() && *role != Role::NextObservation);
    open.map(|(role, known)| (*role, matching(known))).filter(|(_, columns)| columns.len() > 1).collect()
}

impl Availability {
    fn columns(&self) -> Vec<usize> {
        match self {
            Availability::In(column) => vec![*column],
            Availability::Flags(flags) => flags.iter().map(|(column, _)| *column).collect(),
        }
    }
}

impl Role {
    /// Its name in messages and in a schema.
    pub fn name(self) -> &'static str {
        match self {
            Role::Group => "group",
            Role::Sort => "sort",
            Role::Elapsed => "elapsed",
            Role::Episode => "episode",
            role => synonyms(role)[0],
        }
    }
}

/// The columns of a file on the way to [`Columns`].
struct Roles<'a> {
    file: &'a str,
    names: &'a [String],
    schema: &'a Schema,
}

impl Roles<'_> {
    /// The only column that plays `role`.
    fn one(&self, role: Role) -> Result<Option<usize>> {
        match self.all(role)?[..] {
            [] => Ok(None),
            [only] => Ok(Some(only)),
            [first, second, ..] => Err(self.both(role, first, second)),
        }
    }

    /// Whether episodes are given as rows, and no column has that name.
    fn rows_are_episodes(&self) -> bool {
        matches!(self.schema.given(Role::Episode), Some([word]) if word == ROW) && !self.names.iter().any(|name| name == ROW)
    }

    /// The columns that are given for `role`, or else the one with its name.
    fn all(&self, role: Role) -> Result<Vec<usize>> {
        if role == Role::Episode && self.rows_are_episodes() {
            return Ok(Vec::new());
        }
        if let Some(given) = self.schema.given(role) {
            return given.iter().map(|name| self.column(role, name)).collect();
        }
        let mut matching = (0..self.names.len()).filter(|&i| is_one_of(&self.names[i], synonyms(role)));
        match (matching.next(), matching.next()) {
            (Some(first), Some(second)) => Err(self.both(role, first, second)),
            (first, _) => Ok(first.into_iter().collect()),
        }
    }

    /// The column of that name: exactly, or else whatever its case.
    fn column(&self, role: Role, name: &str) -> Result<usize> {
        let mut same = self.names.iter().enumerate().filter(|(_, column)| *column == name).map(|(i, _)| i);
        let exactly = same.next();
        if same.next().is_some() {
            let problem = format!("several columns are called {name:?}, which is given for the {}", role.name());
            return Err(Error::input(self.file, None, problem, "give each column a name of its own in the header"));
        }
        let about = || self.names.iter().position(|column| column.eq_ignore_ascii_case(name));
        exactly.or_else(about).ok_or_else(|| {
            let problem = format!("no column {name:?} for the {}; columns found: {}", role.name(), self.found());
            Error::input(self.file, None, problem, "give the name of a column, or none")
        })
    }

    /// The column, or columns, of the symbol in `role`; `None` if there are none, and that was not
    /// said.
    fn symbols(&self, role: Role) -> Result<Option<Symbols>> {
        if let Some(given) = self.schema.given(role) {
            let columns = given.iter().map(|name| self.column(role, name)).collect::<Result<Vec<_>>>()?;
            let label = |column: usize| format!("{}=", self.names[column]);
            return match columns[..] {
                [] if role == Role::Observation => Err(self.missing(role)),
                [] => Ok(Some(Symbols::Nothing)),
                _ => self.encoded(columns.iter().map(|&column| (column, label(column))).collect()).map(Some),
            };
        }
        let whole = self.one(role)?;
        let parts = self.parts(role)?;
        match (whole, parts.first()) {
            (Some(whole), Some(_)) if role == Role::Action => {
                self.encoded(vec![(whole, self.names[whole].clone() + "=")]).map(Some)
            }
            (Some(whole), Some(part)) => Err(self.both(role, whole, part.0)),
            (Some(whole), None) => self.encoded(vec![(whole, self.names[whole].clone() + "=")]).map(Some),
            (None, Some(_)) => self.encoded(parts).map(Some),
            (None, None) => Ok(None),
        }
    }

    /// Which actions could be taken. Columns that are not given are recognised unless they have
    /// another role.
    fn available(&self, used: &[usize]) -> Result<Option<Availability>> {
        let action = |column: usize| {
            let name = &self.names[column];
            let has_prefix = name.get(..AVAILABLE.len()).is_some_and(|prefix| prefix.eq_ignore_ascii_case(AVAILABLE));
            (column, if has_prefix { name[AVAILABLE.len()..].to_string() } else { name.clone() })
        };
        let is_flag = |column: usize| action(column).1.len() < self.names[column].len();
        if let Some(given) = self.schema.given(Role::Available) {
            let columns = given.iter().map(|name| self.column(Role::Available, name)).collect::<Result<Vec<_>>>()?;
            return Ok(match columns[..] {
                [] => None,
                [only] if !is_flag(only) || is_one_of(&self.names[only], synonyms(Role::Available)) => {
                    Some(Availability::In(only))
                }
                _ => Some(Availability::Flags(columns.into_iter().map(action).collect())),
            });
        }
        let free = |column: &usize| !used.contains(column);
        if let Some(whole) = self.one(Role::Available)?.filter(free) {
            return Ok(Some(Availability::In(whole)));
        }
        let flags: Vec<usize> = (0..self.names.len()).filter(free).filter(|&column| is_flag(column)).collect();
        Ok((flags.len() > 1).then(|| Availability::Flags(flags.into_iter().map(action).collect())))
    }

    /// Columns and their labels, with the cells that were fitted to them. A single column without
    /// cells needs no label.
    fn encoded(&self, columns: Vec<(usize, String)>) -> Result<Symbols> {
        let mut parts: Vec<Part> = Vec::new();
        for (column, label) in columns {
            let key = self.schema.encoders.keys().find(|key| key.split('+').any(|name| name == self.names[column]));
            let Some(key) = key else {
                parts.push(Part { columns: vec![column], label, cells: None });
                continue;
            };
            let label = format!("{key}=");
            if parts.iter().any(|part| part.label == label) {
                continue; // one of several columns that are divided together
            }
            let columns = key.split('+').map(|name| self.column(Role::Observation, name)).collect::<Result<_>>()?;
            parts.push(Part { columns, label, cells: Some(Cells::new(self.schema.encoders[key].clone())) });
        }
        Ok(match &parts[..] {
            [Part { columns, cells: None, .. }] => Symbols::In(columns[0]),
            _ => Symbols::Across(parts),
        })
    }

    /// The columns that make the symbol together, sorted, so that their order in the file does not
    /// matter.
    fn parts(&self, role: Role) -> Result<Vec<(usize, String)>> {
        let prefixes = PARTS.iter().find(|(of, _)| *of == role).map_or(&[][..], |(_, prefixes)| prefixes);
        let mut found: Vec<(String, usize)> = Vec::new();
        for (column, name) in self.names.iter().enumerate() {
            let name = name.to_lowercase();
            let has_role = SYNONYMS.iter().any(|(_, names)| names.contains(&name.as_str()));
            if let Some(suffix) = prefixes.iter().find_map(|prefix| name.strip_prefix(prefix)).filter(|_| !has_role) {
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
        Ok(found.into_iter().map(|(suffix, column)| (column, label(suffix))).collect())
    }

    /// Bins must be of columns that exist.
    fn check_bins(&self) -> Result<()> {
        for key in self.schema.bins.keys() {
            for name in key.split('+') {
                if !self.names.iter().any(|column| column == name) {
                    let problem = format!("no column {name:?} to make bins of; columns found: {}", self.found());
                    return Err(Error::input(self.file, None, problem, "give the name of a column"));
                }
            }
        }
        Ok(())
    }

    fn both(&self, role: Role, first: usize, second: usize) -> Error {
        let (first, second) = (&self.names[first], &self.names[second]);
        if first == second {
            let problem = format!("several columns are called {first:?}, and would be read as {}", role.name());
            return Error::input(self.file, None, problem, "give each column a name of its own in the header");
        }
        let problem = format!("columns {first:?} and {second:?} would both be read as {}", role.name());
        Error::input(self.file, None, problem, format!("say which one with `{}`, or rename or remove one of them", field(role)))
    }

    fn missing(&self, role: Role) -> Error {
        let mut names = synonyms(role).to_vec();
        if role == Role::Observation {
            names.extend(["observation_*", "obs_*"]);
            names.extend(synonyms(Role::NextObservation));
        }
        let problem = format!("no column for the {}; columns found: {}", role.name(), self.found());
        let or_none = if role == Role::Action { ", none if there are no actions" } else { "" };
        if let [only] = self.names
            && only.contains([' ', '\t', '#'])
        {
            let remedy = format!("{HEADER}; if this is the only column, say so with `{}`", field(role));
            return Error::input(self.file, None, problem, remedy);
        }
        let remedy = format!("say which one with `{}`{or_none}, or name it one of: {}", field(role), names.join(", "));
        Error::input(self.file, None, problem, remedy)
    }

    fn found(&self) -> String {
        const SHOWN: usize = 20;
        let mut found = self.names.iter().take(SHOWN).map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
        if self.names.len() > SHOWN {
            found.push_str(&format!(", … ({} in all)", self.names.len()));
        }
        found
    }

    /// Whether the observation has Foretell's own name: `observation` follows its convention, `obs`
    /// is Gymnasium's.
    fn is_ours(&self, observation: &Symbols) -> bool {
        matches!(observation, Symbols::In(column) if self.names[*column].eq_ignore_ascii_case(synonyms(Role::Observation)[0]))
    }
}

/// The field of a [`Schema`] for a role.
fn field(role: Role) -> &'static str {
    match role {
        Role::NextObservation => "observation",
        role => role.name(),
    }
}

fn synonyms(role: Role) -> &'static [&'static str] {
    SYNONYMS.iter().find(|(of, _)| *of == role).map_or(&[], |(_, names)| names)
}

fn is_one_of(name: &str, names: &[&str]) -> bool {
    names.iter().any(|known| known.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(names: &[&str]) -> Result<Columns> {
        read_with(names, &Schema::default())
    }

    fn read_with(names: &[&str], schema: &Schema) -> Result<Columns> {
        Columns::find("walks.csv", &names.iter().map(|name| name.to_string()).collect::<Vec<_>>(), schema)
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
        assert_eq!(columns.observation, Symbols::In(2));
        assert_eq!(columns.ignored, [1]);
    }

    #[test]
    fn several_columns_make_one_observation_in_the_order_of_their_suffixes() {
        let labels = |names: &[&str]| match find(names).unwrap().observation {
            Symbols::Across(parts) => parts.into_iter().map(|part| (part.columns[0], part.label)).collect::<Vec<_>>(),
            _ => panic!("one column"),
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

    #[test]
    fn a_schema_overrules_names() {
        let names = ["user", "day", "skill", "level", "correct", "action", "reward"];
        let list = |names: &[&str]| Some(names.iter().map(|name| name.to_string()).collect());
        let schema = Schema {
            episode: list(&["user", "day"]),
            action: list(&["skill", "level"]),
            observation: list(&["Correct"]),
            reward: list(&[]),
            ..Schema::default()
        };
        let columns = read_with(&names, &schema).unwrap();
        assert_eq!(columns.episode, [0, 1]);
        assert_eq!(columns.action.columns(), [2, 3]);
        assert_eq!(columns.observation, Symbols::In(4));
        assert_eq!((columns.reward, columns.ignored), (None, vec![5, 6]));
        let wrong = Schema { action: list(&["skil"]), ..schema };
        let said = read_with(&names, &wrong).unwrap_err().to_string();
        assert!(said.contains("no column \"skil\" for the action") && said.contains("\"skill\""), "{said}");
    }

    #[test]
    fn a_table_without_actions_is_read_if_that_is_said() {
        let none = Schema { action: Some(vec![]), ..Schema::default() };
        assert_eq!(read_with(&["obs"], &none).unwrap().action, Symbols::Nothing);
        let said = find(&["obs"]).unwrap_err().to_string();
        assert!(said.contains("say which one with `action`, none if there are no actions"), "{said}");
    }
}
