//! What the columns of a table mean, as far as a user says so.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

use super::names::fits;
use crate::encode::{Bins, Encoder};

/// What a column is read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Role {
    /// Its values name episodes.
    Episode,
    /// Episodes with the same value stay together when some are held out.
    Group,
    /// The number of a step.
    Step,
    /// Rows of an episode are sorted by it.
    Sort,
    /// The action.
    Action,
    /// The observation.
    Observation,
    /// The observation after the action, in tables that have both.
    NextObservation,
    /// The reward.
    Reward,
    /// The episode ended by itself with this row.
    Terminated,
    /// The episode was cut off after this row.
    Truncated,
    /// The episode begins with this row.
    First,
    /// The episode ends with this row, in whichever way.
    Last,
    /// Probability of the action under the behaviour policy.
    Probability,
    /// Its natural logarithm.
    LogProbability,
    /// A time: how long it takes until the row is part of its action.
    Elapsed,
    /// Which actions could be taken.
    Available,
}

/// The word for rows: each of them as an episode, or their order in the file.
pub(super) const ROW: &str = "row";
/// The word for no column.
const NONE: &str = "none";
/// Texts that stand for a missing value, unless others are given; an empty cell always does.
pub const MISSING: [&str; 12] = ["NA", "NaN", "nan", "null", "None", "?", "N/A", "n/a", "#N/A", "<NA>", "NULL", "NaT"];

/// What the columns of a table mean. A role without columns here is recognised by the usual names;
/// one with an empty list has none.
///
/// ```
/// use foretell::log::Schema;
///
/// let schema: Schema = serde_json::from_str(r#"{"episode": "user_id", "action": "none", "observation": ["mood", "sleep"]}"#)?;
/// assert_eq!(schema.observation.unwrap(), ["mood", "sleep"]);
/// assert_eq!(schema.action.unwrap().len(), 0);
/// assert_eq!(schema.reward, None);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Schema {
    /// Columns whose values together name an episode; `row` if each row is one.
    #[serde(deserialize_with = "names", skip_serializing_if = "Option::is_none")]
    pub episode: Option<Vec<String>>,
    /// Column whose episodes stay together when some are held out.
    #[serde(deserialize_with = "names", skip_serializing_if = "Option::is_none")]
    pub group: Option<Vec<String>>,
    /// Number of a step: it must go up by 1 within an episode, unless rows are sorted.
    #[serde(deserialize_with = "names", skip_serializing_if = "Option::is_none")]
    pub step: Option<Vec<String>>,
    /// Columns by which the rows of an episode are sorted, wherever they are in the file, of which
    /// the first counts most; `row` for their order in the file.
    #[serde(deserialize_with = "names", skip_serializing_if = "Option::is_none")]
    pub sort: Option<Vec<String>>,
    /// Columns that make the action; none for a system without actions.
    #[serde(deserialize_with = "names", skip_serializing_if = "Option::is_none")]
    pub action: Option<Vec<String>>,
    /// Columns that make the observation.
    #[serde(deserialize_with = "names", skip_serializing_if = "Option::is_none")]
    pub observation: Option<Vec<String>>,
    /// The reward.
    #[serde(deserialize_with = "names", skip_serializing_if = "Option::is_none")]
    pub reward: Option<Vec<String>>,
    /// True in the last row of an episode that ended by itself.
    #[serde(deserialize_with = "names", skip_serializing_if = "Option::is_none")]
    pub terminated: Option<Vec<String>>,
    /// True in the last row of an episode that was cut off.
    #[serde(deserialize_with = "names", skip_serializing_if = "Option::is_none")]
    pub truncated: Option<Vec<String>>,
    /// Probability of the action under the behaviour policy.
    #[serde(deserialize_with = "names", skip_serializing_if = "Option::is_none")]
    pub action_prob: Option<Vec<String>>,
    /// Its natural logarithm.
    #[serde(deserialize_with = "names", skip_serializing_if = "Option::is_none")]
    pub action_logp: Option<Vec<String>>,
    /// Which actions could be taken: a column that lists them, with `;` between them, or is 0 where
    /// only the action taken could; or a column for each action, called `available_` and its name,
    /// that is 1 where it could.
    #[serde(deserialize_with = "names", skip_serializing_if = "Option::is_none")]
    pub available: Option<Vec<String>>,
    /// Column of a time. How long it took from the row before becomes part of the action.
    #[serde(deserialize_with = "names", skip_serializing_if = "Option::is_none")]
    pub elapsed: Option<Vec<String>>,
    /// Where that time is cut, such as `3m` and `1y`; without it, into three cells with equally
    /// many rows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub elapsed_bins: Vec<String>,
    /// The observation of a row was seen before its action, not after it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub shift_observation: bool,
    /// Patterns of columns, such as `m_*` or `Jan..Dec`, whose values are the observations of an
    /// episode one after the other: a row is an episode.
    #[serde(deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub wide: Vec<String>,
    /// How measured columns are divided; several columns that are divided together are joined by
    /// `+`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub bins: BTreeMap<String, Bins>,
    /// Texts that stand for a missing value; an empty cell always does.
    #[serde(deserialize_with = "names", skip_serializing_if = "Option::is_none")]
    pub missing: Option<Vec<String>>,
    /// The cells that were fitted to logs, by the names of their columns.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub encoders: BTreeMap<String, Encoder>,
}

/// The key of the cells of elapsed times among the encoders.
pub(super) const ELAPSED: &str = "elapsed";

impl Schema {
    /// The columns that are given for a role; `None` if they are to be recognised.
    pub(super) fn given(&self, role: Role) -> Option<&[String]> {
        match role {
            Role::Episode => self.episode.as_deref(),
            Role::Group => self.group.as_deref(),
            Role::Step => self.step.as_deref(),
            Role::Sort => self.sort.as_deref(),
            Role::Action => self.action.as_deref(),
            Role::Observation => self.observation.as_deref(),
            Role::Reward => self.reward.as_deref(),
            Role::Terminated => self.terminated.as_deref(),
            Role::Truncated => self.truncated.as_deref(),
            Role::Probability => self.action_prob.as_deref(),
            Role::LogProbability => self.action_logp.as_deref(),
            Role::Elapsed => self.elapsed.as_deref(),
            Role::Available => self.available.as_deref(),
            Role::NextObservation | Role::First | Role::Last => None,
        }
    }

    /// Says of a role, by its name, what another schema says.
    pub(super) fn restore(&mut self, role: &str, from: &Schema) {
        let lists = [
            (Role::Episode, &mut self.episode, &from.episode),
            (Role::Group, &mut self.group, &from.group),
            (Role::Step, &mut self.step, &from.step),
            (Role::Sort, &mut self.sort, &from.sort),
            (Role::Action, &mut self.action, &from.action),
            (Role::Observation, &mut self.observation, &from.observation),
            (Role::Reward, &mut self.reward, &from.reward),
            (Role::Terminated, &mut self.terminated, &from.terminated),
            (Role::Truncated, &mut self.truncated, &from.truncated),
            (Role::Probability, &mut self.action_prob, &from.action_prob),
            (Role::LogProbability, &mut self.action_logp, &from.action_logp),
            (Role::Available, &mut self.available, &from.available),
            (Role::Elapsed, &mut self.elapsed, &from.elapsed),
        ];
        lists.into_iter().filter(|(of, ..)| of.name() == role).for_each(|(_, own, from)| own.clone_from(from));
    }

    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        *self == Schema::default()
    }

    /// Whether the rows of a file must be in memory to be put in order.
    pub(super) fn arranges(&self) -> bool {
        self.sort.as_ref().is_some_and(|sort| !sort.is_empty()) || !self.wide.is_empty()
    }

    /// Whether a column is one of the wide ones: it matches a pattern, or stands between the first
    /// and the last of a range.
    pub(super) fn is_wide(&self, name: &str, names: &[String]) -> bool {
        let at = |name: &str| names.iter().position(|other| other == name);
        let matches = |pattern: &String| {
            if let Some((first, last)) = pattern.split_once("..").and_then(|(first, last)| Some((at(first)?, at(last)?))) {
                return at(name).is_some_and(|i| (first..=last).contains(&i));
            }
            fits(&pattern.chars().collect::<Vec<_>>(), &name.chars().collect::<Vec<_>>())
        };
        self.wide.iter().any(matches)
    }

    /// Whether it says something of a column of that name, or may.
    pub(super) fn names_column(&self, name: &str) -> bool {
        let roles = [
            Role::Episode,
            Role::Group,
            Role::Step,
            Role::Sort,
            Role::Action,
            Role::Observation,
            Role::Reward,
            Role::Terminated,
            Role::Truncated,
            Role::Probability,
            Role::LogProbability,
            Role::Elapsed,
            Role::Available,
        ];
        let mut given = roles.into_iter().filter_map(|role| self.given(role)).flatten();
        let mut measured = self.bins.keys().chain(self.encoders.keys()).flat_map(|key| key.split('+'));
        !self.wide.is_empty() || given.any(|column| column.eq_ignore_ascii_case(name)) || measured.any(|column| column == name)
    }

    /// Whether a text stands for a missing value.
    pub(super) fn is_missing(&self, text: &[u8]) -> bool {
        text.is_empty()
            || match &self.missing {
                Some(given) => given.iter().any(|name| name.as_bytes() == text),
                None => MISSING.iter().any(|name| name.as_bytes() == text),
            }
    }

    /// Whether a text in a table stands for a missing value.
    pub fn means_missing(&self, text: &str) -> bool {
        self.is_missing(text.as_bytes())
    }

    /// The schema as the user wrote it, without what was fitted to logs.
    pub fn as_given(&self) -> Schema {
        Schema { encoders: BTreeMap::new(), ..self.clone() }
    }
}

/// Splits a list of names such as `a,b`; `none` is the empty list. A name in double quotes may contain
/// commas, and two of them for one of its own; also `"none"` is a name.
///
/// ```
/// use foretell::log::{join_names, split_names};
///
/// assert_eq!(split_names("a, b"), ["a", "b"]);
/// assert_eq!(split_names("\"a, b\",c"), ["a, b", "c"]);
/// assert_eq!(join_names(&["a, b", "c"]), "\"a, b\",c");
/// ```
pub fn split_names(text: &str) -> Vec<String> {
    if text.trim() == NONE {
        return Vec::new();
    }
    let (mut names, mut rest) = (Vec::new(), text);
    loop {
        let (name, after) = first_name(rest);
        names.extend(name);
        match after {
            Some(after) => rest = after,
            None => return names,
        }
    }
}

/// The first name of a list, if it is not empty, and what follows the comma after it.
fn first_name(text: &str) -> (Option<String>, Option<&str>) {
    let Some(mut rest) = text.trim_start().strip_prefix('"') else {
        let (name, after) = text.split_once(',').map_or((text, None), |(name, after)| (name, Some(after)));
        return (Some(name.trim().to_string()).filter(|name| !name.is_empty()), after);
    };
    let mut name = String::new();
    loop {
        let (part, after) = rest.split_once('"').unwrap_or((rest, ""));
        name.push_str(part);
        match after.strip_prefix('"') {
            Some(more) => {
                name.push('"');
                rest = more;
            }
            None => return (Some(name), after.split_once(',').map(|(_, after)| after)),
        }
    }
}

/// The list that [`split_names`] splits into these names.
pub fn join_names<S: AsRef<str>>(names: &[S]) -> String {
    let is_plain = |name: &str| !name.is_empty() && name != NONE && name.trim() == name && !name.contains([',', '"']);
    let quoted = |name: &str| if is_plain(name) { name.to_string() } else { format!("\"{}\"", name.replace('"', "\"\"")) };
    match names {
        [] => NONE.to_string(),
        names => names.iter().map(|name| quoted(name.as_ref())).collect::<Vec<_>>().join(","),
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

fn list<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    Ok(match OneOrMany::deserialize(from)? {
        OneOrMany::One(text) if text == NONE => Vec::new(),
        OneOrMany::One(text) => vec![text],
        OneOrMany::Many(all) => all,
    })
}

fn names<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<String>>, D::Error> {
    list(from).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_survives_json_and_refuses_unknown_keys() {
        let json = r#"{"episode":["a","b"],"action":[],"wide":["m_*"],"bins":{"x":"kmeans:8"},"shift_observation":true}"#;
        let schema: Schema = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::from_str::<Schema>(&serde_json::to_string(&schema).unwrap()).unwrap(), schema);
        assert_eq!(serde_json::to_string(&Schema::default()).unwrap(), "{}");
        let said = serde_json::from_str::<Schema>(r#"{"actoin": "a"}"#).unwrap_err().to_string();
        assert!(said.contains("actoin") && said.contains("action"), "{said}");
    }
}
