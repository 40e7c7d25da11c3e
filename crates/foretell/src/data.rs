//! What a log is made of: actions, observations, trajectories, and where a trajectory may be cut.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// An action, as an index into [`Alphabet::actions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Action(pub u32);

/// An observation, as an index into [`Alphabet::observations`].
///
/// An observation that ends the episode is another symbol than the same observation that does not, so that
/// termination is predicted like anything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Observation(pub u32);

/// One step, `ao`: an action and the observation that answered it.
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
    /// Nothing follows it.
    pub terminal: bool,
}

impl std::fmt::Display for ObservationSymbol {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.name, if self.terminal { " [end]" } else { "" })
    }
}

/// Names ⇄ indices of actions and observations, in order of first appearance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Names", into = "Names")]
pub struct Alphabet {
    actions: Vec<String>,
    observations: Vec<ObservationSymbol>,
    action_ids: FxHashMap<String, Action>,
    /// For each name, the symbol that goes on and the one that ends the episode.
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

impl From<Names> for Alphabet {
    fn from(names: Names) -> Self {
        let mut alphabet = Alphabet { observes_rewards: names.observes_rewards, ..Alphabet::default() };
        for action in &names.actions {
            alphabet.intern_action(action);
        }
        for symbol in &names.observations {
            alphabet.intern(&symbol.name, symbol.terminal);
        }
        alphabet
    }
}

impl From<Alphabet> for Names {
    fn from(alphabet: Alphabet) -> Self {
        let Alphabet { actions, observations, observes_rewards, .. } = alphabet;
        Names { actions, observations, observes_rewards }
    }
}

impl Alphabet {
    /// An alphabet whose observations tell the reward as well: logs that are read into it have symbols like `growl(-1)`.
    pub fn observing_rewards() -> Alphabet {
        Alphabet { observes_rewards: true, ..Alphabet::default() }
    }

    /// Whether its observations tell the reward as well.
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

    /// The observation that has the name of a symbol of another alphabet, and ends the episode if that one does.
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

    /// The name of an action.
    pub fn action_name(&self, a: Action) -> &str {
        &self.actions[a.0 as usize]
    }

    /// The name of an observation and whether it ends the episode.
    pub fn symbol(&self, o: Observation) -> &ObservationSymbol {
        &self.observations[o.0 as usize]
    }

    /// Whether the observation ends the episode.
    pub fn is_terminal(&self, o: Observation) -> bool {
        self.observations[o.0 as usize].terminal
    }
}

impl ObservationSymbol {
    /// The symbol that tells the reward as well; the same, if it does already.
    pub fn with_reward(&self, reward: f64) -> ObservationSymbol {
        if self.split_reward().is_some_and(|(_, told)| told == reward) {
            return self.clone();
        }
        // Without the sign of a zero.
        ObservationSymbol { name: format!("{}({})", self.name, reward + 0.0), terminal: self.terminal }
    }

    /// The symbol without the reward, and the reward, of one that tells it.
    pub fn split_reward(&self) -> Option<(ObservationSymbol, f64)> {
        let (name, reward) = self.name.strip_suffix(')')?.rsplit_once('(')?;
        Some((ObservationSymbol { name: name.to_string(), terminal: self.terminal }, reward.parse().ok()?))
    }
}

/// How an episode ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// The system ended it: nothing follows, and that is information.
    Terminated,
    /// The record stops; what would have followed is unknown.
    Truncated,
}

/// One episode, z = ao_1 … ao_L.
#[derive(Clone, Debug, PartialEq)]
pub struct Trajectory {
    /// ao_1 … ao_L
    pub steps: Vec<ActionObservation>,
    /// r_1 … r_L; `None` where the log has no reward.
    pub rewards: Vec<Option<f64>>,
    /// π(a_t | h_t) of the logging policy for each step, or empty where the log does not tell.
    pub action_probabilities: Vec<f64>,
    /// How it ended.
    pub end: End,
}

/// A place in a trajectory where a history ends and tests begin.
#[derive(Clone, Copy, Debug)]
pub struct Cut<'a> {
    steps: &'a [ActionObservation],
    t: usize,
}

impl<'a> Cut<'a> {
    /// h = ao_1 … ao_t
    pub fn history(&self) -> &'a [ActionObservation] {
        &self.steps[..self.t]
    }

    /// ao_{t+1}
    pub fn next(&self) -> ActionObservation {
        self.steps[self.t]
    }

    /// ao_{t+1} ao_{t+2} …: its prefixes are the tests that succeed after the history.
    pub fn future(&self) -> &'a [ActionObservation] {
        &self.steps[self.t..]
    }

    /// ao_{t+2} ao_{t+3} …: its prefixes are the tests that succeed after the history and `next`.
    pub fn after_next(&self) -> &'a [ActionObservation] {
        &self.steps[self.t + 1..]
    }
}

/// Which cuts of a trajectory are used: the one convention all sums of the learner share.
///
/// A cut at t needs room for `next` and for the longest test, t + 1 + `room` ≤ L. If late histories could not see
/// long tests, the rank of Σ_TH would be inflated. After termination nothing happens, which is known, so a
/// terminated episode has that room at every cut: but only cuts that would have had it if the episode had gone on
/// may be used, else cuts near the time limit are kept just when the episode ends there, and termination is
/// overestimated. `limit`, the length of the longest truncated episode, stands for that time limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutRule {
    /// Pairs needed after `next`: the length of the longest test.
    pub room: usize,
    /// Length at which episodes are truncated; `None` where none is.
    pub limit: Option<usize>,
}

impl CutRule {
    /// Every place of a trajectory is a cut, whatever follows (the ragged estimate that the paper prints).
    pub const RAGGED: CutRule = CutRule { room: 0, limit: None };

    /// How many cuts (t = 0, 1, …) a trajectory of `length` steps has.
    pub fn count(&self, length: usize, end: End) -> usize {
        match end {
            End::Truncated => length.saturating_sub(self.room),
            End::Terminated => length.min(self.limit.map_or(length, |limit| limit.saturating_sub(self.room))),
        }
    }
}

impl Trajectory {
    /// The places where it is cut into a history, the next step and a future.
    pub fn cuts(&self, rule: CutRule) -> impl Iterator<Item = Cut<'_>> {
        (0..rule.count(self.steps.len(), self.end)).map(|t| Cut { steps: &self.steps, t })
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

    #[test]
    fn cuts_leave_room_for_next_and_the_longest_test() {
        let rule = CutRule { room: 2, limit: Some(13) };
        assert_eq!(rule.count(13, End::Truncated), 11); // t = 0..=10: 10 + 1 + 2 = 13
        assert_eq!(rule.count(2, End::Truncated), 0);
        assert_eq!(rule.count(5, End::Terminated), 5); // after termination nothing happens, and that is known
        assert_eq!(rule.count(13, End::Terminated), 11); // but t = 11, 12 would be kept only because it ended there
        assert_eq!(CutRule { limit: None, ..rule }.count(13, End::Terminated), 13);
        assert_eq!(CutRule::RAGGED.count(13, End::Truncated), 13);
    }

    #[test]
    fn a_cut_splits_the_steps_without_loss() {
        let steps: Vec<_> = (0..5).map(|i| ActionObservation::new(i, 0)).collect();
        let z = Trajectory { steps: steps.clone(), rewards: vec![None; 5], action_probabilities: vec![], end: End::Truncated };
        for (t, cut) in z.cuts(CutRule { room: 1, limit: None }).enumerate() {
            assert_eq!(cut.history(), &steps[..t]);
            assert_eq!(cut.next(), steps[t]);
            assert_eq!(cut.future(), &steps[t..]);
            assert_eq!(cut.after_next(), &steps[t + 1..]);
        }
    }
}
