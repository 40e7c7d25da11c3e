//! Tests for one's own types: does an environment, or what predicts its observations, keep to what its trait promises?
//!
//! They panic with what is wrong and where, so that they are called from a test.

use crate::data::{Action, ActionObservation, Alphabet, Observation, Trajectory};
use crate::rng::Seed;
use crate::system::{Environment, Outcome, Predict};

/// Episodes that are played: some of them get where only one in twenty gets.
const EPISODES: usize = 100;
/// Rounding in sums over some thousand observations.
const TOLERANCE: f64 = 1e-9;

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

/// Logs with empty names are refused by their reader.
fn assert_names(alphabet: &Alphabet) {
    assert!(!alphabet.actions().is_empty(), "the alphabet has no actions");
    assert!(!alphabet.observations().is_empty(), "the alphabet has no observations");
    for (i, name) in alphabet.actions().iter().enumerate() {
        assert!(!name.is_empty(), "the name of action {i} is empty");
    }
    for (i, symbol) in alphabet.observations().iter().enumerate() {
        assert!(!symbol.name.is_empty(), "the name of observation {i} is empty");
    }
}

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

/// Where a test fails; episodes and steps are counted from 0, as in logs.
fn place(alphabet: &Alphabet, episode: usize, step: usize, a: Action) -> String {
    let name = alphabet.actions().get(a.index()).map_or("outside the alphabet", String::as_str);
    format!("episode {episode}, step {step}, action {name}")
}

/// Panics unless what follows episodes keeps to what [`Predict`] promises, at every step of these episodes:
///
/// - [`probabilities`](Predict::probabilities) of every action has one number for each observation of `alphabet`; they are finite,
///   not negative, and sum to at most 1, with that of an observation outside the alphabet, up to rounding (10⁻⁹);
/// - [`probability`](Predict::probability) of a pair is that of the list, and asking changes no prediction;
/// - [`update`](Predict::update) returns what `probability` said, and leaves the filter where
///   [`observe`](crate::Track::observe) does;
/// - after [`reset`](crate::Track::reset) the same episode has the same predictions again.
///
/// `alphabet` is that of the filter. Steps may have other symbols, if the filter takes them; a terminal observation is the last of
/// its episode.
///
/// ```
/// use foretell::testing::assert_predicts;
/// use foretell::{Belief, Seed, domains};
///
/// let tiger = domains::get("tiger")?;
/// let episodes: Vec<_> = domains::sample(&tiger, 20, 10, Seed(1)).collect();
/// let mut belief = Belief::new(tiger.pomdp().expect("the tiger is a finite POMDP"));
/// assert_predicts(&mut belief, tiger.alphabet(), &episodes);
/// # Ok::<(), foretell::Error>(())
/// ```
pub fn assert_predicts(filter: &mut dyn Predict, alphabet: &Alphabet, episodes: &[Trajectory]) {
    assert_names(alphabet);
    assert!(episodes.iter().any(|z| !z.steps.is_empty()), "the episodes have no steps, so that nothing would be tested");
    for (i, z) in episodes.iter().enumerate() {
        let first = follow(filter, alphabet, i, &z.steps);
        filter.reset();
        for (t, (&ao, first)) in z.steps.iter().zip(&first).enumerate() {
            let how = "the episode was followed again after reset, by observe instead of update";
            assert_predicted_again(filter, alphabet, first, how, &|a| place(alphabet, i, t, a));
            filter.observe(ao);
        }
    }
}

/// What is predicted of an action.
struct Prediction {
    action: Action,
    probabilities: Vec<f64>,
}

/// What is predicted before each step of an episode.
fn follow(filter: &mut dyn Predict, alphabet: &Alphabet, i: usize, steps: &[ActionObservation]) -> Vec<Vec<Prediction>> {
    filter.reset();
    let mut all = Vec::with_capacity(steps.len());
    for (t, &ao) in steps.iter().enumerate() {
        let place = |a: Action| place(alphabet, i, t, a);
        // One of the alphabet in turn beside that of the step: to ask for each would take the square of their number.
        let asked = [ao.observation, Observation((t % alphabet.observations().len()) as u32)];
        let actions = (0..alphabet.actions().len() as u32).map(Action);
        let outside = Some(ao.action).filter(|a| a.index() >= actions.len());
        let predict = |action| {
            let of = Prediction { action, probabilities: filter.probabilities(action).to_vec() };
            assert_distribution(filter, alphabet, &of, &place(action));
            asked.into_iter().for_each(|o| assert_agrees(filter, &of, o, &place(action)));
            of
        };
        let predictions = actions.chain(outside).map(predict).collect::<Vec<_>>();
        assert_predicted_again(filter, alphabet, &predictions, "it was asked for again before the step", &place);
        let said = filter.probability(ao);
        let returned = filter.update(ao);
        assert!(near(said, returned), "{}: update returned {returned}, where probability said {said}", place(ao.action));
        all.push(predictions);
    }
    all
}

fn assert_distribution(filter: &mut dyn Predict, alphabet: &Alphabet, of: &Prediction, place: &str) {
    let Prediction { action, probabilities } = of;
    let (found, symbols) = (probabilities.len(), alphabet.observations().len());
    assert!(found == symbols, "{place}: {found} probabilities for the {symbols} observations of the alphabet");
    for (symbol, &p) in alphabet.observations().iter().zip(probabilities) {
        assert!(p.is_finite() && p >= 0.0, "{place}: {symbol} has probability {p}, which is negative or not finite");
    }
    let total: f64 = probabilities.iter().sum();
    assert!(total <= 1.0 + TOLERANCE, "{place}: the probabilities sum to {total}, more than 1");
    let unseen = filter.probability(ActionObservation { action: *action, observation: Observation(symbols as u32) });
    let fits = unseen >= 0.0 && total + unseen <= 1.0 + TOLERANCE;
    assert!(fits, "{place}: an observation outside the alphabet has probability {unseen}, where those inside sum to {total}");
}

fn assert_agrees(filter: &mut dyn Predict, of: &Prediction, o: Observation, place: &str) {
    let Some(&listed) = of.probabilities.get(o.index()) else { return };
    let p = filter.probability(ActionObservation { action: of.action, observation: o });
    assert!(near(p, listed), "{place}: probability of observation {} is {p}, where probabilities lists {listed}", o.0);
}

fn assert_predicted_again(
    filter: &mut dyn Predict,
    alphabet: &Alphabet,
    first: &[Prediction],
    how: &str,
    place: &dyn Fn(Action) -> String,
) {
    for Prediction { action, probabilities } in first {
        let again = filter.probabilities(*action);
        assert_eq!(again.len(), probabilities.len(), "{}: another number of probabilities when {how}", place(*action));
        for ((symbol, p), q) in alphabet.observations().iter().zip(probabilities).zip(again) {
            assert!(near(*p, *q), "{}: {symbol} had probability {p} at first, {q} when {how}", place(*action));
        }
    }
}

fn near(x: f64, y: f64) -> bool {
    (x - y).abs() <= TOLERANCE
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::End;
    use crate::rng::Rng;
    use crate::system::Track;

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

    /// Laplace's rule for a coin, P(o) = (n(o) + 1) / (n + 2), if it has no fault.
    struct Laplace {
        fault: Option<Lie>,
        counts: [f64; 2],
        probabilities: Vec<f64>,
    }

    #[derive(Clone, Copy, PartialEq)]
    enum Lie {
        TooShort,
        NotANumber,
        Negative,
        MoreThanOne,
        UnseenBeside,
        OneDiffers,
        AskingCounts,
        UpdateSaysOne,
        UpdateForgets,
        ResetForgets,
    }

    impl Track for Laplace {
        fn reset(&mut self) {
            if self.fault != Some(Lie::ResetForgets) {
                self.counts = [1.0; 2];
            }
        }

        fn observe(&mut self, ao: ActionObservation) {
            self.counts[ao.observation.index()] += 1.0;
        }
    }

    impl Predict for Laplace {
        fn probabilities(&mut self, _: Action) -> &[f64] {
            let [heads, tails] = self.counts;
            let p = heads / (heads + tails);
            self.counts[0] += if self.fault == Some(Lie::AskingCounts) { 1.0 } else { 0.0 };
            self.probabilities = match self.fault {
                Some(Lie::TooShort) => vec![p],
                Some(Lie::NotANumber) => vec![f64::NAN, p],
                Some(Lie::Negative) => vec![p, -p],
                Some(Lie::MoreThanOne) => vec![p, 1.0 - p + 1e-8],
                _ => vec![p, 1.0 - p],
            };
            &self.probabilities
        }

        fn probability(&mut self, ao: ActionObservation) -> f64 {
            let [heads, tails] = self.counts;
            match ao.observation.0 {
                o @ (0 | 1) if self.fault == Some(Lie::AskingCounts) => self.probabilities[o as usize],
                0 if self.fault == Some(Lie::OneDiffers) => 0.4,
                o @ (0 | 1) => self.counts[o as usize] / (heads + tails),
                _ if self.fault == Some(Lie::UnseenBeside) => 0.1,
                _ => 0.0,
            }
        }

        fn update(&mut self, ao: ActionObservation) -> f64 {
            let p = self.probability(ao);
            if self.fault != Some(Lie::UpdateForgets) {
                self.observe(ao);
            }
            if self.fault == Some(Lie::UpdateSaysOne) { 1.0 } else { p }
        }
    }

    fn check_laplace(fault: Option<Lie>) {
        let alphabet = lights([&["throw"], &["heads", "tails"]], None).alphabet;
        let steps: Vec<_> = [0, 1, 1, 0].map(|o| ActionObservation::new(0, o)).to_vec();
        let z = Trajectory { rewards: vec![None; 4], steps, action_probabilities: vec![], end: End::Truncated };
        assert_predicts(&mut Laplace { fault, counts: [1.0; 2], probabilities: vec![] }, &alphabet, &[z.clone(), z]);
    }

    #[test]
    fn a_filter_without_a_fault_predicts() {
        check_laplace(None);
    }

    #[test]
    #[should_panic(expected = "the episodes have no steps")]
    fn no_episodes_test_nothing() {
        let alphabet = lights([&["throw"], &["heads", "tails"]], None).alphabet;
        assert_predicts(&mut Laplace { fault: None, counts: [1.0; 2], probabilities: vec![] }, &alphabet, &[]);
    }

    #[test]
    #[should_panic(expected = "episode 0, step 0, action throw: 1 probabilities for the 2 observations of the alphabet")]
    fn a_list_that_is_too_short_is_found() {
        check_laplace(Some(Lie::TooShort));
    }

    #[test]
    #[should_panic(expected = "heads has probability NaN, which is negative or not finite")]
    fn a_probability_that_is_not_a_number_is_found() {
        check_laplace(Some(Lie::NotANumber));
    }

    #[test]
    #[should_panic(expected = "tails has probability -0.5, which is negative or not finite")]
    fn a_negative_probability_is_found() {
        check_laplace(Some(Lie::Negative));
    }

    #[test]
    #[should_panic(expected = "the probabilities sum to 1.00000001, more than 1")]
    fn a_sum_above_one_is_found() {
        check_laplace(Some(Lie::MoreThanOne));
    }

    #[test]
    #[should_panic(expected = "an observation outside the alphabet has probability 0.1, where those inside sum to 1")]
    fn an_observation_outside_the_alphabet_beside_a_full_sum_is_found() {
        check_laplace(Some(Lie::UnseenBeside));
    }

    #[test]
    #[should_panic(expected = "probability of observation 0 is 0.4, where probabilities lists 0.5")]
    fn one_probability_that_differs_from_the_list_is_found() {
        check_laplace(Some(Lie::OneDiffers));
    }

    #[test]
    #[should_panic(expected = "when it was asked for again before the step")]
    fn a_filter_that_counts_what_it_is_asked_is_found() {
        check_laplace(Some(Lie::AskingCounts));
    }

    #[test]
    #[should_panic(expected = "update returned 1, where probability said 0.5")]
    fn an_update_that_says_another_probability_is_found() {
        check_laplace(Some(Lie::UpdateSaysOne));
    }

    #[test]
    #[should_panic(expected = "step 1, action throw: heads had probability 0.5 at first")]
    fn an_update_that_does_not_observe_is_found() {
        check_laplace(Some(Lie::UpdateForgets));
    }

    #[test]
    #[should_panic(expected = "when the episode was followed again after reset")]
    fn a_reset_that_does_nothing_is_found() {
        check_laplace(Some(Lie::ResetForgets));
    }
}
