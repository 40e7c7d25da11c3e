//! Actions, observations, and the alphabet that names them.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// Joins the values of several columns, or of an array, into one symbol.
pub(crate) const SEPARATOR: char = '|';

/// An action, as an index into [`Alphabet::actions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Action(pub u32);

impl Action {
    /// Its index.
    #[inline(always)]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// An observation, as an index into [`Alphabet::observations`].
///
/// An observation that ends the episode is another symbol than the same observation that does not,
/// so that termination is predicted like anything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Observation(pub u32);

impl Observation {
    /// Stands for an observation that was not recorded. It is in no alphabet.
    pub const MISSING: Observation = Observation(u32::MAX);

    /// Stands for an observation that an alphabet does not have.
    pub(crate) const UNKNOWN: Observation = Observation(u32::MAX - 1);

    /// Its index.
    #[inline(always)]
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// Whether it was not recorded.
    #[inline(always)]
    pub fn is_missing(self) -> bool {
        self == Observation::MISSING
    }
}

/// One step, `ao`: an action and the observation that followed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActionObservation {
    /// a
    pub action: Action,
    /// o
    pub observation: Observation,
}

impl ActionObservation {
    /// The pair of the `a`-th action and the `o`-th observation.
    pub fn new(a: u32, o: u32) -> Self {
        ActionObservation { action: Action(a), observation: Observation(o) }
    }
}

/// The name of an observation, and whether it ends the episode.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObservationSymbol {
    /// As in the logs.
    pub name: String,
    /// It ends the episode.
    pub terminal: bool,
}

impl std::fmt::Display for ObservationSymbol {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.name, if self.terminal { " [end]" } else { "" })
    }
}

/// Names ⇄ indices of actions and observations, in order of first appearance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Names", into = "Names")]
pub struct Alphabet {
    actions: Vec<String>,
    observations: Vec<ObservationSymbol>,
    action_ids: FxHashMap<String, Action>,
    /// For each name, the symbol that does not end the episode and the one that does.
    observation_ids: FxHashMap<String, [Option<Observation>; 2]>,
    observes_rewards: bool,
}

/// The serialised form of an [`Alphabet`].
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Names {
    actions: Vec<String>,
    observations: Vec<ObservationSymbol>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    observes_rewards: bool,
}

impl TryFrom<Names> for Alphabet {
    type Error = String;

    fn try_from(names: Names) -> Result<Self, String> {
        let mut alphabet = Alphabet { observes_rewards: names.observes_rewards, ..Alphabet::default() };
        for action in &names.actions {
            alphabet.intern_action(action);
        }
        for symbol in &names.observations {
            alphabet.intern(&symbol.name, symbol.terminal);
        }
        let lists = [(alphabet.actions.len(), names.actions.len()), (alphabet.observations.len(), names.observations.len())];
        match lists.iter().all(|(distinct, all)| distinct == all) {
            true => Ok(alphabet),
            false => Err("an action or observation is named twice".into()),
        }
    }
}

impl From<Alphabet> for Names {
    fn from(alphabet: Alphabet) -> Self {
        let Alphabet { actions, observations, observes_rewards, .. } = alphabet;
        Names { actions, observations, observes_rewards }
    }
}

impl Alphabet {
    /// An alphabet whose observations include the reward: logs that are read into it have symbols
    /// like `growl(-1)`.
    pub fn observing_rewards() -> Alphabet {
        Alphabet { observes_rewards: true, ..Alphabet::default() }
    }

    /// Whether its observations include the reward.
    pub fn observes_rewards(&self) -> bool {
        self.observes_rewards
    }

    /// Names of the actions; [`Action`] indexes them.
    pub fn actions(&self) -> &[String] {
        &self.actions
    }

    /// The observation symbols; [`Observation`] indexes them.
    pub fn observations(&self) -> &[ObservationSymbol] {
        &self.observations
    }

    /// The observation symbols without the rewards that may be part of them.
    pub fn without_rewards(&self) -> Vec<ObservationSymbol> {
        let plain = |symbol: &ObservationSymbol| match symbol.split_reward().filter(|_| self.observes_rewards) {
            Some((plain, _)) => plain,
            None => symbol.clone(),
        };
        self.observations.iter().map(plain).collect()
    }

    /// The action of that name, if there is one.
    pub fn action(&self, name: &str) -> Option<Action> {
        self.action_ids.get(name).copied()
    }

    /// The observation of that name that does not end the episode, if there is one.
    pub fn observation(&self, name: &str) -> Option<Observation> {
        self.observation_ids.get(name)?[0]
    }

    /// The observation of that name that ends the episode, if there is one.
    pub fn terminal_observation(&self, name: &str) -> Option<Observation> {
        self.observation_ids.get(name)?[1]
    }

    /// The observation that has the name of a symbol of another alphabet, and ends the episode if
    /// that one does.
    pub fn same_observation(&self, symbol: &ObservationSymbol) -> Option<Observation> {
        if symbol.terminal { self.terminal_observation(&symbol.name) } else { self.observation(&symbol.name) }
    }

    /// The action of that name, added if it is new.
    pub fn intern_action(&mut self, name: &str) -> Action {
        if let Some(&a) = self.action_ids.get(name) {
            return a;
        }
        let a = Action(self.actions.len() as u32);
        self.actions.push(name.to_string());
        self.action_ids.insert(name.to_string(), a);
        a
    }

    /// The observation of that name that does not end the episode, added if it is new.
    pub fn intern_observation(&mut self, name: &str) -> Observation {
        self.intern(name, false)
    }

    /// The observation of that name that ends the episode, added if it is new.
    pub fn intern_terminal_observation(&mut self, name: &str) -> Observation {
        self.intern(name, true)
    }

    /// The observation of that name and ending, added if it is new.
    pub(crate) fn intern(&mut self, name: &str, terminal: bool) -> Observation {
        if let Some(&[goes_on, ends]) = self.observation_ids.get(name)
            && let Some(o) = if terminal { ends } else { goes_on }
        {
            return o;
        }
        let o = Observation(self.observations.len() as u32);
        self.observations.push(ObservationSymbol { name: name.to_string(), terminal });
        self.observation_ids.entry(name.to_string()).or_default()[usize::from(terminal)] = Some(o);
        o
    }

    /// The observations that agree with a name in which `?` stands for parts that are missing, such
    /// as `1|?`, whatever their reward, and that do not end the episode; in ascending order.
    pub fn agreeing(&self, pattern: &str) -> Vec<Observation> {
        let agrees = |symbol: &ObservationSymbol| {
            let plain = if self.observes_rewards { symbol.split_reward().map(|(plain, _)| plain) } else { None };
            let symbol = plain.as_ref().unwrap_or(symbol);
            let (mut parts, mut known) = (symbol.name.split(SEPARATOR), pattern.split(SEPARATOR));
            let all = known.by_ref().all(|known| match (parts.next(), known.strip_suffix('?')) {
                (Some(part), Some(label)) => part.starts_with(label),
                (Some(part), None) => part == known,
                (None, _) => false,
            });
            all && parts.next().is_none() && !symbol.terminal
        };
        (0..).map(Observation).zip(&self.observations).filter(|(_, symbol)| agrees(symbol)).map(|(o, _)| o).collect()
    }

    /// The name of an action.
    pub fn action_name(&self, a: Action) -> &str {
        &self.actions[a.index()]
    }

    /// The name of an observation and whether it ends the episode.
    pub fn symbol(&self, o: Observation) -> &ObservationSymbol {
        &self.observations[o.index()]
    }

    /// Whether the observation ends the episode; a missing one does not.
    pub fn is_terminal(&self, o: Observation) -> bool {
        !o.is_missing() && self.observations[o.index()].terminal
    }
}

impl ObservationSymbol {
    /// The symbol with the reward included; unchanged if it already is.
    pub fn with_reward(&self, reward: f64) -> ObservationSymbol {
        if self.split_reward().is_some_and(|(_, included)| included == reward) {
            return self.clone();
        }
        // Without the sign of a zero.
        ObservationSymbol { name: format!("{}({})", self.name, reward + 0.0), terminal: self.terminal }
    }

    /// The symbol without its reward, and the reward; `None` if it includes none.
    pub fn split_reward(&self) -> Option<(ObservationSymbol, f64)> {
        let (name, reward) = self.name.strip_suffix(')')?.rsplit_once('(')?;
        Some((ObservationSymbol { name: name.to_string(), terminal: self.terminal }, reward.parse().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_observation_is_another_symbol() {
        let mut alphabet = Alphabet::default();
        let o = alphabet.intern_observation("wall");
        let end = alphabet.intern_terminal_observation("wall");
        assert_ne!(o, end);
        assert_eq!(alphabet.observation("wall"), Some(o));
        assert_eq!(alphabet.terminal_observation("wall"), Some(end));
        assert!(alphabet.is_terminal(end) && !alphabet.is_terminal(o));
        assert_eq!(alphabet.symbol(end).to_string(), "wall [end]");
    }

    #[test]
    fn a_symbol_agrees_with_the_parts_that_are_known() {
        let mut alphabet = Alphabet::default();
        for name in ["mood=low|sleep=1", "mood=low|sleep=2", "mood=high|sleep=1", "mood=low", "mood=low|sleep=1|x=0"] {
            alphabet.intern_observation(name);
        }
        alphabet.intern_terminal_observation("mood=low|sleep=3");
        let agreeing = |pattern: &str| alphabet.agreeing(pattern).into_iter().map(|o| o.0).collect::<Vec<_>>();
        assert_eq!(agreeing("mood=low|sleep=?"), [0, 1]);
        assert_eq!(agreeing("mood=?|sleep=1"), [0, 2]);
        assert_eq!(agreeing("mood=?|sleep=4"), [0u32; 0]);
        assert_eq!(agreeing("?"), [3]);
    }

    #[test]
    fn an_alphabet_survives_json() {
        let mut alphabet = Alphabet::default();
        alphabet.intern_action("N");
        alphabet.intern_terminal_observation("goal");
        alphabet.intern_observation("goal");
        for alphabet in [alphabet.clone(), Alphabet { observes_rewards: true, ..alphabet }] {
            let json = serde_json::to_string(&alphabet).unwrap();
            assert_eq!(serde_json::from_str::<Alphabet>(&json).unwrap(), alphabet);
        }
    }

    #[test]
    fn a_reward_is_split_from_its_symbol() {
        let symbol = ObservationSymbol { name: "door (left)".into(), terminal: true };
        for reward in [0.1 + 0.2, -100.0, 1e-300, 0.0] {
            assert_eq!(symbol.with_reward(reward).split_reward(), Some((symbol.clone(), reward)));
        }
        assert_eq!(symbol.with_reward(-0.0), symbol.with_reward(0.0));
        assert_eq!(symbol.with_reward(2.0).with_reward(2.0), symbol.with_reward(2.0));
        assert_ne!(symbol.with_reward(2.0).with_reward(1.0), symbol.with_reward(2.0));
        assert_eq!(symbol.split_reward(), None);
    }
}
