//! Observations that include the reward.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::data::{Alphabet, Observation, Trajectory};
use crate::error::{Error, Result};

/// The largest number of distinct rewards: with more, hardly any symbol would be seen twice.
pub(crate) const MOST_REWARDS: usize = 100;

/// The alphabet of observations with rewards, while logs are read.
pub(super) struct RewardedAlphabet {
    alphabet: Alphabet,
    /// By the plain observation and the bits of the reward.
    known: FxHashMap<(Observation, u64), Observation>,
    rewards: FxHashSet<u64>,
}

impl RewardedAlphabet {
    /// Starts from the names of `alphabet`. Also returns the alphabet of plain observations to
    /// begin with.
    pub(super) fn new(alphabet: Alphabet) -> (RewardedAlphabet, Alphabet) {
        let mut plain = Alphabet::default();
        for name in alphabet.actions() {
            plain.intern_action(name);
        }
        (RewardedAlphabet { alphabet, known: FxHashMap::default(), rewards: FxHashSet::default() }, plain)
    }

    pub(super) fn alphabet(&self) -> &Alphabet {
        &self.alphabet
    }

    pub(super) fn into_alphabet(self) -> Alphabet {
        self.alphabet
    }

    /// The trajectory with its rewards included in its observations; one without a reward is
    /// unchanged.
    pub(super) fn include_rewards(&mut self, mut z: Trajectory, plain: &Alphabet) -> Result<Trajectory> {
        for name in &plain.actions()[self.alphabet.actions().len()..] {
            self.alphabet.intern_action(name);
        }
        for (t, ao) in z.steps.iter_mut().enumerate().filter(|(_, ao)| !ao.observation.is_missing()) {
            let reward = z.rewards.get(t).copied().flatten();
            let key = (ao.observation, reward.map_or(u64::MAX, |reward| (reward + 0.0).to_bits()));
            if let Some(&o) = self.known.get(&key) {
                ao.observation = o;
                continue;
            }
            self.rewards.insert(key.1);
            if self.rewards.len() > MOST_REWARDS {
                let problem = format!("rewards take more than {MOST_REWARDS} values, too many to be part of observations");
                return Err(Error::data(problem, "round them to fewer, or omit `observe_reward`"));
            }
            let symbol = plain.symbol(ao.observation);
            let symbol = reward.map_or_else(|| symbol.clone(), |reward| symbol.with_reward(reward));
            ao.observation = self.alphabet.intern(&symbol.name, symbol.terminal);
            self.known.insert(key, ao.observation);
        }
        Ok(z)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{ActionObservation, End};
    use crate::log::Logs;

    fn walk(rewards: &[f64]) -> (Alphabet, Trajectory) {
        let mut alphabet = Alphabet::default();
        alphabet.intern_action("open");
        alphabet.intern_observation("creak");
        alphabet.intern_terminal_observation("creak");
        let mut steps = vec![ActionObservation::new(0, 0); rewards.len()];
        steps.last_mut().unwrap().observation = Observation(1);
        let rewards = rewards.iter().copied().map(Some).collect();
        (alphabet, Trajectory { steps, rewards, action_probabilities: vec![], end: End::Terminated, about: Default::default() })
    }

    #[test]
    fn the_same_observation_with_another_reward_is_another_symbol() {
        let (alphabet, z) = walk(&[10.0, -100.0, 10.0, 10.0]);
        let logs = Logs::memory(alphabet, vec![z]);
        let mut reader = logs.open(Alphabet::observing_rewards()).unwrap();
        let z = reader.next().unwrap().unwrap();
        let names: Vec<String> = z.steps.iter().map(|ao| reader.alphabet().symbol(ao.observation).to_string()).collect();
        assert_eq!(names, ["creak(10)", "creak(-100)", "creak(10)", "creak(10) [end]"]);

        // A second read is unchanged, and a reader that knows the names gives them the same
        // indices.
        let alphabet = reader.into_alphabet();
        let again = Logs::memory(alphabet.clone(), vec![z.clone()]);
        assert_eq!(again.open(alphabet.clone()).unwrap().next().unwrap().unwrap(), z);
        assert_eq!(logs.open(alphabet).unwrap().next().unwrap().unwrap(), z);
    }

    #[test]
    fn rewards_that_never_repeat_are_refused() {
        let (alphabet, z) = walk(&(0..200).map(f64::from).collect::<Vec<_>>());
        let mut reader = Logs::memory(alphabet, vec![z]).open(Alphabet::observing_rewards()).unwrap();
        let message = reader.next().unwrap().unwrap_err().to_string();
        assert!(message.contains("more than 100 values") && message.contains("round them"), "{message}");
    }
}
