//! Conformance of predictors.

use super::{assert_names, place};
use crate::data::{Action, ActionObservation, Alphabet, Observation, Trajectory};
use crate::system::Predict;

/// Rounding in sums over some thousand observations.
const TOLERANCE: f64 = 1e-9;

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
    use crate::system::Track;

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

    fn alphabet() -> Alphabet {
        let mut alphabet = Alphabet::default();
        alphabet.intern_action("throw");
        ["heads", "tails"].iter().for_each(|name| {
            alphabet.intern_observation(name);
        });
        alphabet
    }

    fn check_laplace(fault: Option<Lie>) {
        let steps: Vec<_> = [0, 1, 1, 0].map(|o| ActionObservation::new(0, o)).to_vec();
        let z = Trajectory {
            rewards: vec![None; 4],
            steps,
            action_probabilities: vec![],
            end: End::Truncated,
            about: Default::default(),
        };
        assert_predicts(&mut Laplace { fault, counts: [1.0; 2], probabilities: vec![] }, &alphabet(), &[z.clone(), z]);
    }

    #[test]
    fn a_filter_without_a_fault_predicts() {
        check_laplace(None);
    }

    #[test]
    #[should_panic(expected = "the episodes have no steps")]
    fn no_episodes_test_nothing() {
        assert_predicts(&mut Laplace { fault: None, counts: [1.0; 2], probabilities: vec![] }, &alphabet(), &[]);
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
