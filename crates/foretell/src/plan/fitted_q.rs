//! Fitted-Q iteration (Ernst et al. 2005; Algorithm 1 of H14): Q̂_k from logged steps, round by
//! round.
//!
//! Q̂_k is fitted to r + γ max_a' Q̂_{k−1}(s', a') over all steps (s, a, r, s'), from Q̂_0 = 0. The
//! maximum is over the actions that could be taken in s', where the logs say which. The value after
//! a step that terminated its episode is 0. After a truncated episode the value of its last state
//! counts.

use serde::Serialize;

use super::experience::Steps;
use crate::data::Action;
use crate::trees::Targets;

/// A function approximator for Q̂ over the states of given [`Steps`].
pub trait Approximator {
    /// Fits Q̂ to a target for each step, weighted if there are weights.
    fn fit(&mut self, targets: Targets<'_>);
    /// Q̂(s, a) for the state of each row; −∞ for an action that was never taken.
    fn q(&self, a: Action, out: &mut [f64]);
}

impl<A: Approximator> Approximator for &mut A {
    fn fit(&mut self, targets: Targets<'_>) {
        (**self).fit(targets);
    }

    fn q(&self, a: Action, out: &mut [f64]) {
        (**self).q(a, out);
    }
}

/// The iterator of fitted-Q: each item reports one round. `fitted.by_ref().take(100).last()` runs a
/// hundred rounds, and [`into_inner`](FittedQ::into_inner) returns the approximator.
#[derive(Clone, Debug)]
pub struct FittedQ<'s, A> {
    steps: &'s Steps,
    discount: f64,
    approximator: A,
    choice: Choice<'s>,
    weights: Option<&'s [f64]>,
    /// V̂ of each row: Q̂ of the action chosen there.
    values: Vec<f64>,
    before: Vec<f64>,
    targets: Vec<f64>,
    number: usize,
}

/// Which action defines the value of a state.
#[derive(Clone, Copy, Debug)]
enum Choice<'s> {
    Best,
    Given(&'s [Action]),
}

/// The result of one round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Round {
    /// k, from 1.
    pub number: usize,
    /// Mean |V̂_k(s) − V̂_{k−1}(s)| over all states, where V̂ is Q̂ of the chosen action: the
    /// Bellman residual.
    pub change: f64,
    /// Mean of V̂_k over the start states of the episodes.
    pub start_value: f64,
}

impl<'s, A: Approximator> FittedQ<'s, A> {
    /// Before the first round, to find the best policy.
    pub fn new(steps: &'s Steps, approximator: A, discount: f64) -> Self {
        let values = vec![0.0; steps.rows()];
        let targets = vec![0.0; steps.list().len()];
        let (before, choice) = (values.clone(), Choice::Best);
        FittedQ { steps, discount, approximator, choice, weights: None, values, before, targets, number: 0 }
    }

    /// Evaluates a policy instead, which takes the given action in the state of each row: after k
    /// rounds Q̂ is the expected return of k steps.
    pub fn following(self, actions: &'s [Action]) -> Self {
        assert_eq!(actions.len(), self.steps.rows(), "an action for each row");
        FittedQ { choice: Choice::Given(actions), ..self }
    }

    /// Weights each step.
    pub fn weighted(self, weights: &'s [f64]) -> Self {
        assert_eq!(weights.len(), self.steps.list().len(), "a weight for each step");
        FittedQ { weights: Some(weights), ..self }
    }

    /// V̂ of each row after the last round.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The approximator, which holds Q̂.
    pub fn into_inner(self) -> A {
        self.approximator
    }

    fn update_values(&mut self) {
        std::mem::swap(&mut self.values, &mut self.before);
        self.values.fill(f64::NEG_INFINITY);
        let mut q = vec![0.0; self.values.len()];
        for a in (0..self.steps.actions() as u32).map(Action) {
            self.approximator.q(a, &mut q);
            let both = self.values.iter_mut().zip(&q);
            match self.choice {
                Choice::Best => {
                    let allowed = both.enumerate().filter(|(row, _)| self.steps.allows(*row, a));
                    allowed.for_each(|(_, (value, q))| *value = value.max(*q));
                }
                Choice::Given(actions) => both.zip(actions).filter(|(_, b)| **b == a).for_each(|((value, q), _)| *value = *q),
            }
        }
    }
}

impl<A: Approximator> Iterator for FittedQ<'_, A> {
    type Item = Round;

    fn next(&mut self) -> Option<Round> {
        for (target, step) in self.targets.iter_mut().zip(self.steps.list()) {
            let future = if step.terminal { 0.0 } else { self.values[step.row + 1] };
            *target = step.reward + self.discount * future;
        }
        self.approximator.fit(Targets { y: &self.targets, weights: self.weights });
        self.update_values();
        self.number += 1;
        let change = self.values.iter().zip(&self.before).map(|(now, before)| (now - before).abs()).sum::<f64>();
        let starts = self.steps.starts();
        let start_value = starts.iter().map(|&row| self.values[row]).sum::<f64>() / starts.len() as f64;
        Some(Round { number: self.number, change: change / self.values.len() as f64, start_value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{ActionObservation, Alphabet, End, Trajectory};
    use crate::rng::Seed;

    const STATES: usize = 4;
    const ACTIONS: usize = 2;
    const DISCOUNT: f64 = 0.9;

    /// Q as a table over observed states: each target is averaged with those of the same state and
    /// action.
    struct Table {
        /// State of each row.
        states: Vec<usize>,
        /// (state, action) of each step.
        steps: Vec<(usize, usize)>,
        q: [[f64; ACTIONS]; STATES],
    }

    impl Approximator for Table {
        fn fit(&mut self, targets: Targets<'_>) {
            let mut sums = [[(0.0, 0.0); ACTIONS]; STATES];
            for (i, (&(s, a), y)) in self.steps.iter().zip(targets.y).enumerate() {
                let weight = targets.weights.map_or(1.0, |weights| weights[i]);
                sums[s][a].0 += weight * y;
                sums[s][a].1 += weight;
            }
            self.q = sums.map(|row| row.map(|(sum, count)| sum / count));
        }

        fn q(&self, a: Action, out: &mut [f64]) {
            out.iter_mut().zip(&self.states).for_each(|(q, &s)| *q = self.q[s][a.index()]);
        }
    }

    /// Random walks over observed states, some of which terminate; the others are truncated.
    fn episodes() -> Vec<Trajectory> {
        let mut rng = Seed(4).rng();
        let mut walk = || {
            let (mut s, mut end) = (0, End::Truncated);
            let (mut steps, mut rewards) = (Vec::new(), Vec::new());
            for _ in 0..8 {
                let a = rng.below(ACTIONS);
                rewards.push(Some((s * ACTIONS + a) as f64 - 2.0 + rng.uniform()));
                let ends = s == STATES - 1 && a == 0;
                s = if a == 0 { (s + 1) % STATES } else { rng.below(STATES) };
                steps.push(ActionObservation::new(a as u32, s as u32));
                if ends {
                    end = End::Terminated;
                    break;
                }
            }
            Trajectory { steps, rewards, action_probabilities: vec![], end, about: Default::default() }
        };
        (0..200).map(|_| walk()).collect()
    }

    /// The states along an episode.
    fn states(z: &Trajectory) -> impl Iterator<Item = usize> {
        std::iter::once(0).chain(z.steps.iter().map(|ao| ao.observation.index()))
    }

    /// Mean reward of each (s, a), and the share of its steps that led to each s'.
    fn empirical(episodes: &[Trajectory], weights: &[f64]) -> [[(f64, [f64; STATES]); ACTIONS]; STATES] {
        let mut counts = [[(0.0, 0.0, [0.0; STATES]); ACTIONS]; STATES];
        let mut weights = weights.iter();
        for z in episodes {
            let visited: Vec<usize> = states(z).collect();
            for (t, ao) in z.steps.iter().enumerate() {
                let weight = weights.next().unwrap();
                let (n, reward, next) = &mut counts[visited[t]][ao.action.index()];
                *n += weight;
                *reward += weight * z.rewards[t].unwrap();
                if z.end == End::Truncated || t + 1 < z.steps.len() {
                    next[visited[t + 1]] += weight;
                }
            }
        }
        counts.map(|row| row.map(|(n, reward, next)| (reward / n, next.map(|m| m / n))))
    }

    fn steps(episodes: &[Trajectory]) -> Steps {
        let mut alphabet = Alphabet::default();
        (0..ACTIONS).for_each(|a| {
            alphabet.intern_action(&a.to_string());
        });
        Steps::of(&alphabet, episodes).unwrap()
    }

    fn table(steps: &Steps, episodes: &[Trajectory]) -> Table {
        let states: Vec<usize> = episodes.iter().flat_map(states).collect();
        let of_step = |step: &crate::plan::experience::Step| (states[step.row], step.action.index());
        Table { steps: steps.list().iter().map(of_step).collect(), states, q: [[0.0; ACTIONS]; STATES] }
    }

    /// Compares dynamic programming on the empirical model with fitted-Q, round by round; `value`
    /// is the value of a state given its Q.
    fn compare(
        fitted: &mut FittedQ<'_, Table>,
        episodes: &[Trajectory],
        weights: &[f64],
        value: fn(usize, [f64; ACTIONS]) -> f64,
    ) {
        let model = empirical(episodes, weights);
        let mut v = [0.0; STATES];
        for k in 1..=50 {
            let q = model.map(|row| row.map(|(r, next)| r + DISCOUNT * next.iter().zip(&v).map(|(p, v)| p * v).sum::<f64>()));
            v = std::array::from_fn(|s| value(s, q[s]));
            let round = fitted.next().unwrap();
            let fits = q.iter().flatten().zip(fitted.approximator.q.iter().flatten()).all(|(x, y)| (x - y).abs() < 1e-12);
            assert!(fits, "round {k}: {q:?} {:?}", fitted.approximator.q);
            assert_eq!(round.number, k);
            assert!((round.start_value - v[0]).abs() < 1e-12);
        }
        assert!(fitted.next().unwrap().change < 0.1, "it converges");
    }

    #[test]
    fn fitted_q_with_a_table_is_value_iteration() {
        let episodes = episodes();
        let steps = steps(&episodes);
        let mut fitted = FittedQ::new(&steps, table(&steps, &episodes), DISCOUNT);
        let ones = vec![1.0; steps.list().len()];
        compare(&mut fitted, &episodes, &ones, |_, q| q.into_iter().fold(f64::NEG_INFINITY, f64::max));
    }

    #[test]
    fn only_actions_that_could_be_taken_count() {
        // In odd states only the first action is available, also after the last step.
        let mut episodes = episodes();
        for z in &mut episodes {
            let set = |s: usize| Some(if s % 2 == 1 { [Action(0)].into() } else { [Action(0), Action(1)].into() });
            z.about.available = states(z).map(set).collect();
        }
        let steps = steps(&episodes);
        let mut fitted = FittedQ::new(&steps, table(&steps, &episodes), DISCOUNT);
        let ones = vec![1.0; steps.list().len()];
        let value = |s: usize, q: [f64; ACTIONS]| if s % 2 == 1 { q[0] } else { q[0].max(q[1]) };
        compare(&mut fitted, &episodes, &ones, value);
        let differs = |s: usize| s % 2 == 1 && fitted.approximator.q[s][1] > fitted.approximator.q[s][0];
        assert!((0..STATES).any(differs), "otherwise the maximum over all would be the same: {:?}", fitted.approximator.q);
    }

    #[test]
    fn following_a_policy_with_a_table_is_policy_evaluation() {
        let episodes = episodes();
        let steps = steps(&episodes);
        let table = table(&steps, &episodes);
        let policy: Vec<Action> = table.states.iter().map(|&s| Action(s as u32 % 2)).collect();
        let weights: Vec<f64> = (0..steps.list().len()).map(|i| (i % 3) as f64).collect();
        let mut fitted = FittedQ::new(&steps, table, DISCOUNT).following(&policy).weighted(&weights);
        compare(&mut fitted, &episodes, &weights, |s, q| q[s % 2]);
    }
}
