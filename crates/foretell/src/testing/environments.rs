//! Conformance of environments.

use super::{assert_names, place};
use crate::data::{Action, Alphabet};
use crate::rng::Seed;
use crate::system::{Environment, Outcome};

/// Episodes that are played: enough to see what happens in one of twenty.
const EPISODES: usize = 100;

/// Panics unless an environment keeps to what [`Environment`] promises, in 100 episodes of uniformly random actions that are cut
/// after `max_steps`:
///
/// - its alphabet has actions and observations, all with a name, and does not change;
/// - observations are of its alphabet, rewards are finite;
/// - [`reset`](Environment::reset) begins a new episode, after a terminal observation and in the middle of an episode;
/// - all randomness comes from the given [`Rng`](crate::Rng): the same seed and actions give the same episode, whatever was played
///   before.
///
/// After a terminal observation no further step is asked for.
///
/// ```
/// use foretell::testing::assert_conforms;
/// use foretell::{Action, Alphabet, Environment, Observation, Outcome, Rng};
///
/// /// A coin that is thrown until it shows tails.
/// struct Coin {
///     alphabet: Alphabet,
///     heads: Observation,
///     tails: Observation,
/// }
///
/// impl Environment for Coin {
///     fn alphabet(&self) -> &Alphabet {
///         &self.alphabet
///     }
///     fn reset(&mut self, _: &mut Rng) {}
///     fn step(&mut self, _: Action, rng: &mut Rng) -> Outcome {
///         let observation = if rng.uniform() < 0.5 { self.heads } else { self.tails };
///         Outcome { observation, reward: 1.0 }
///     }
/// }
///
/// let mut alphabet = Alphabet::default();
/// alphabet.intern_action("throw");
/// let heads = alphabet.intern_observation("heads");
/// let tails = alphabet.intern_terminal_observation("tails");
/// assert_conforms(&mut Coin { alphabet, heads, tails }, 20);
/// ```
pub fn assert_conforms(env: &mut dyn Environment, max_steps: usize) {
    assert!(max_steps > 0, "max_steps is 0, so that nothing would be tested; give at least 1");
    let alphabet = env.alphabet().clone();
    assert_names(&alphabet);
    let mut play = |i: usize, max_steps: usize| play(env, &alphabet, i, max_steps);
    let episodes: Vec<Played> = (0..EPISODES).map(|i| play(i, max_steps)).collect();
    for (i, first) in (0..EPISODES).zip(&episodes).rev() {
        assert_same(&alphabet, i, first, &play(i, max_steps), "another episode");
    }
    for (i, first) in (0..EPISODES).zip(&episodes) {
        let other = (i + 1) % EPISODES;
        play(other, episodes[other].len() / 2);
        assert_same(&alphabet, i, first, &play(i, max_steps), "an episode that was left in the middle");
    }
}

/// What actions led to.
type Played = Vec<(Action, Outcome)>;

/// The `i`-th episode. Its actions have their own stream, so that they are the same whatever the environment draws.
fn play(env: &mut dyn Environment, alphabet: &Alphabet, i: usize, max_steps: usize) -> Played {
    let seed = Seed(1).index(i as u64);
    let (mut choice, mut rng) = (seed.stream("actions").rng(), seed.stream("environment").rng());
    let mut played = Vec::new();
    env.reset(&mut rng);
    while played.len() < max_steps {
        let a = Action(choice.below(alphabet.actions().len()) as u32);
        let outcome = env.step(a, &mut rng);
        let place = || place(alphabet, i, played.len(), a);
        let (o, symbols) = (outcome.observation.index(), alphabet.observations().len());
        if o >= symbols {
            assert_unchanged(env, alphabet);
            panic!("{}: observation {o} is outside the alphabet, which has {symbols}, counted from 0", place());
        }
        assert!(outcome.reward.is_finite(), "{}: the reward is {}, not a finite number", place(), outcome.reward);
        played.push((a, outcome));
        if alphabet.is_terminal(outcome.observation) {
            break;
        }
    }
    assert_unchanged(env, alphabet);
    played
}

fn assert_unchanged(env: &dyn Environment, alphabet: &Alphabet) {
    let sizes = |alphabet: &Alphabet| [alphabet.actions().len(), alphabet.observations().len()];
    let ([actions, observations], [more_actions, more_observations]) = (sizes(alphabet), sizes(env.alphabet()));
    assert!(
        env.alphabet() == alphabet,
        "the alphabet changed during an episode, from {actions} actions and {observations} observations to {more_actions} and \
         {more_observations}: it must have all its symbols from the start"
    );
}

/// Where one episode ends before the other, it does so by an observation that the other does not have there.
fn assert_same(alphabet: &Alphabet, i: usize, first: &Played, again: &Played, after: &str) {
    for (t, (&(a, x), &(_, y))) in first.iter().zip(again).enumerate() {
        let said = |outcome: Outcome| format!("{} with reward {}", alphabet.symbol(outcome.observation), outcome.reward);
        assert!(
            x == y,
            "{}: {} at first, {} when the episode was played again after {after}; all randomness must come from the given Rng, and \
             reset must forget the last episode",
            place(alphabet, i, t, a),
            said(x),
            said(y)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Observation;
    use crate::rng::Rng;

    /// Shows left or right and ends with the seventh step, if it has no fault.
    struct Lights {
        alphabet: Alphabet,
        fault: Option<Fault>,
        steps: u32,
        steps_ever: u32,
    }

    #[derive(Clone, Copy, PartialEq)]
    enum Fault {
        UnknownObservation,
        InfiniteReward,
        NewSymbol,
        OwnRandomness,
        ResetKeepsHalf,
        ResetAfterTheEndOnly,
    }

    impl Environment for Lights {
        fn alphabet(&self) -> &Alphabet {
            &self.alphabet
        }

        fn reset(&mut self, _: &mut Rng) {
            self.steps = match self.fault {
                Some(Fault::ResetKeepsHalf) => self.steps / 2,
                Some(Fault::ResetAfterTheEndOnly) if self.steps < 7 => self.steps,
                _ => 0,
            };
        }

        fn step(&mut self, _: Action, rng: &mut Rng) -> Outcome {
            self.steps += 1;
            self.steps_ever += 1;
            let observation = match (self.steps, self.fault) {
                (3, Some(Fault::UnknownObservation)) => Observation(3),
                (3, Some(Fault::NewSymbol)) => self.alphabet.intern_observation("both"),
                (..7, Some(Fault::OwnRandomness)) => Observation(self.steps_ever % 2),
                (..7, _) => Observation(rng.below(2) as u32),
                (7.., _) => Observation(2),
            };
            let infinite = self.fault == Some(Fault::InfiniteReward) && self.steps == 3;
            Outcome { observation, reward: if infinite { f64::INFINITY } else { 1.0 } }
        }
    }

    fn lights(names: [&[&str]; 2], fault: Option<Fault>) -> Lights {
        let mut alphabet = Alphabet::default();
        let [actions, observations] = names;
        actions.iter().for_each(|name| {
            alphabet.intern_action(name);
        });
        for name in observations {
            alphabet.intern(name, *name == "end");
        }
        Lights { alphabet, fault, steps: 0, steps_ever: 0 }
    }

    fn check_lights(fault: Fault) {
        assert_conforms(&mut lights([&["go"], &["left", "right", "end"]], Some(fault)), 10);
    }

    #[test]
    fn an_environment_without_a_fault_conforms() {
        for max_steps in [1, 2, 5, 7, 10] {
            assert_conforms(&mut lights([&["go", "wait"], &["left", "right", "end"]], None), max_steps);
        }
    }

    #[test]
    #[should_panic(expected = "max_steps is 0")]
    fn no_steps_test_nothing() {
        assert_conforms(&mut lights([&["go"], &["left", "right", "end"]], None), 0);
    }

    #[test]
    #[should_panic(expected = "the alphabet has no actions")]
    fn an_alphabet_without_actions_is_refused() {
        assert_conforms(&mut lights([&[], &["left", "right", "end"]], None), 10);
    }

    #[test]
    #[should_panic(expected = "the alphabet has no observations")]
    fn an_alphabet_without_observations_is_refused() {
        assert_conforms(&mut lights([&["go"], &[]], None), 10);
    }

    #[test]
    #[should_panic(expected = "the name of observation 1 is empty")]
    fn an_empty_name_is_refused() {
        assert_conforms(&mut lights([&["go"], &["left", "", "end"]], None), 10);
    }

    #[test]
    #[should_panic(expected = "episode 0, step 2, action go: observation 3 is outside the alphabet, which has 3, counted from 0")]
    fn an_observation_outside_the_alphabet_is_found() {
        check_lights(Fault::UnknownObservation);
    }

    #[test]
    #[should_panic(expected = "episode 0, step 2, action go: the reward is inf, not a finite number")]
    fn a_reward_that_is_not_finite_is_found() {
        check_lights(Fault::InfiniteReward);
    }

    #[test]
    #[should_panic(expected = "from 1 actions and 3 observations to 1 and 4: it must have all its symbols from the start")]
    fn an_alphabet_that_grows_is_found() {
        check_lights(Fault::NewSymbol);
    }

    #[test]
    #[should_panic(expected = "played again after another episode; all randomness must come from the given Rng")]
    fn randomness_of_its_own_is_found() {
        check_lights(Fault::OwnRandomness);
    }

    #[test]
    #[should_panic(expected = "played again after another episode; all randomness must come from the given Rng")]
    fn a_reset_that_remembers_the_last_episode_is_found() {
        check_lights(Fault::ResetKeepsHalf);
    }

    #[test]
    #[should_panic(expected = "played again after an episode that was left in the middle")]
    fn a_reset_that_works_after_the_end_only_is_found() {
        check_lights(Fault::ResetAfterTheEndOnly);
    }
}
