//! Environments, and the rollout of one episode.

use super::policy::Policy;
use crate::data::{Action, ActionObservation, Alphabet, End, Observation, Trajectory};
use crate::rng::Rng;

/// The outcome of an action. Whether the episode ends follows from the observation:
/// [`Alphabet::is_terminal`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// o
    pub observation: Observation,
    /// r
    pub reward: f64,
}

/// A system that answers actions with observations and rewards.
///
/// There is no observation before the first action. After a terminal observation only
/// [`reset`](Environment::reset) is meaningful.
pub trait Environment {
    /// The actions it takes and the observations it gives.
    fn alphabet(&self) -> &Alphabet;
    /// Begins an episode.
    fn reset(&mut self, rng: &mut Rng);
    /// Takes `a`, which must be in its alphabet.
    fn step(&mut self, a: Action, rng: &mut Rng) -> Outcome;
    /// The hidden state as text for people, such as a map or a name; empty if there is none.
    fn picture(&self) -> String {
        String::new()
    }
}

/// One episode of `policy` in `env`: until the environment ends it, else truncated at `max_steps`.
pub fn rollout<E, P>(env: &mut E, policy: &mut P, max_steps: usize, rng: &mut Rng) -> Trajectory
where
    E: Environment + ?Sized,
    P: Policy + ?Sized,
{
    let mut z = Trajectory {
        steps: Vec::new(),
        rewards: Vec::new(),
        action_probabilities: Vec::new(),
        end: End::Truncated,
        about: Default::default(),
    };
    env.reset(rng);
    policy.reset();
    while z.steps.len() < max_steps {
        let a = policy.act(rng);
        z.action_probabilities.extend(policy.probability(a));
        let Outcome { observation: o, reward } = env.step(a, rng);
        let ao = ActionObservation { action: a, observation: o };
        policy.observe_rewarded(ao, reward);
        z.steps.push(ao);
        z.rewards.push(Some(reward));
        if env.alphabet().is_terminal(o) {
            z.end = End::Terminated;
            break;
        }
    }
    if z.action_probabilities.len() < z.steps.len() {
        z.action_probabilities.clear(); // a log has them for every step or for none
    }
    z
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Seed;
    use crate::system::policy::Uniform;

    /// Counts the steps of an episode and ends it after the fifth.
    struct Five {
        alphabet: Alphabet,
        step: u32,
    }

    impl Five {
        fn new() -> Self {
            let mut alphabet = Alphabet::default();
            alphabet.intern_action("go");
            alphabet.intern_action("wait");
            for i in 0..4 {
                alphabet.intern_observation(&i.to_string());
            }
            alphabet.intern_terminal_observation("4");
            Five { alphabet, step: 0 }
        }
    }

    impl Environment for Five {
        fn alphabet(&self) -> &Alphabet {
            &self.alphabet
        }
        fn reset(&mut self, _: &mut Rng) {
            self.step = 0;
        }
        fn step(&mut self, _: Action, _: &mut Rng) -> Outcome {
            self.step += 1;
            Outcome { observation: Observation(self.step - 1), reward: f64::from(self.step) }
        }
    }

    /// Gives the probability of its first action only.
    #[derive(Default)]
    struct FirstProbabilityOnly {
        seen: usize,
    }

    impl Policy for FirstProbabilityOnly {
        fn act(&mut self, _: &mut Rng) -> Action {
            Action(1)
        }
        fn probability(&self, _: Action) -> Option<f64> {
            (self.seen == 0).then_some(1.0)
        }
        fn observe(&mut self, _: ActionObservation) {
            self.seen += 1;
        }
    }

    #[test]
    fn a_rollout_ends_where_the_environment_ends_it() {
        let z = rollout(&mut Five::new(), &mut Uniform { actions: 2 }, 100, &mut Seed(1).rng());
        assert_eq!((z.steps.len(), z.end), (5, End::Terminated));
        assert_eq!(z.rewards, [1.0, 2.0, 3.0, 4.0, 5.0].map(Some));
        assert_eq!(z.action_probabilities, [0.5; 5]);
    }

    #[test]
    fn a_rollout_is_truncated_at_its_limit() {
        for max_steps in 0..5 {
            let z = rollout(&mut Five::new(), &mut Uniform { actions: 2 }, max_steps, &mut Seed(1).rng());
            assert_eq!((z.steps.len(), z.end), (max_steps, End::Truncated));
        }
    }

    #[test]
    fn without_the_probability_of_every_action_none_are_kept() {
        let z = rollout(&mut Five::new(), &mut FirstProbabilityOnly::default(), 100, &mut Seed(1).rng());
        assert!(z.action_probabilities.is_empty());
    }
}
