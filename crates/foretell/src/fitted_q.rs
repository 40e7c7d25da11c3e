//! Fitted-Q iteration (Ernst et al. 2005; Algorithm 1 of H14): Q̂_k from logged steps, round after round.
//!
//! Q̂_k is fitted to r + γ max_a' Q̂_{k−1}(s', a') over all steps (s, a, r, s'), from Q̂_0 = 0. Nothing follows a step that
//! terminated its episode; after a step where the log was cut, what would have followed counts.

use crate::experience::Steps;

/// A way to hold Q̂ for the states of given [`Steps`].
pub trait Approximator {
    /// Fits Q̂ to a target for each step.
    fn fit(&mut self, targets: &[f64]);
    /// max_a Q̂(s, a) for the state of each row.
    fn values(&self, out: &mut [f64]);
}

/// The iterator of fitted-Q: each item tells of one round. `fitted.by_ref().take(100).last()` runs a hundred of them, and
/// [`into_inner`](FittedQ::into_inner) gives what holds Q̂.
#[derive(Clone, Debug)]
pub struct FittedQ<'s, A> {
    steps: &'s Steps,
    discount: f64,
    approximator: A,
    /// max_a Q̂(s, a) of each row.
    values: Vec<f64>,
    before: Vec<f64>,
    targets: Vec<f64>,
    number: usize,
}

/// What one round did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Round {
    /// k, from 1.
    pub number: usize,
    /// Mean |max_a Q̂_k(s, a) − max_a Q̂_{k−1}(s, a)| over all states: the Bellman residual.
    pub change: f64,
    /// Mean of max_a Q̂_k(s, a) over the starts of the episodes.
    pub start_value: f64,
}

impl<'s, A: Approximator> FittedQ<'s, A> {
    /// Before the first round.
    pub fn new(steps: &'s Steps, approximator: A, discount: f64) -> Self {
        let values = vec![0.0; steps.rows()];
        let targets = vec![0.0; steps.list().len()];
        FittedQ { steps, discount, approximator, before: values.clone(), values, targets, number: 0 }
    }

    /// What holds Q̂.
    pub fn into_inner(self) -> A {
        self.approximator
    }
}

impl<A: Approximator> Iterator for FittedQ<'_, A> {
    type Item = Round;

    fn next(&mut self) -> Option<Round> {
        for (target, step) in self.targets.iter_mut().zip(self.steps.list()) {
            let future = if step.terminal { 0.0 } else { self.values[step.row + 1] };
            *target = step.reward + self.discount * future;
        }
        self.approximator.fit(&self.targets);
        std::mem::swap(&mut self.values, &mut self.before);
        self.approximator.values(&mut self.values);
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

    /// Q as a table over states that are seen: each target is averaged with those of the same state and action.
    struct Table {
        /// State of each row.
        states: Vec<usize>,
        /// (state, action) of each step.
        steps: Vec<(usize, usize)>,
        q: [[f64; ACTIONS]; STATES],
    }

    impl Approximator for Table {
        fn fit(&mut self, targets: &[f64]) {
            let mut sums = [[(0.0, 0.0); ACTIONS]; STATES];
            for (&(s, a), y) in self.steps.iter().zip(targets) {
                sums[s][a].0 += y;
                sums[s][a].1 += 1.0;
            }
            self.q = sums.map(|row| row.map(|(sum, count)| sum / count));
        }

        fn values(&self, out: &mut [f64]) {
            let best = |s: usize| self.q[s].into_iter().fold(f64::NEG_INFINITY, f64::max);
            out.iter_mut().zip(&self.states).for_each(|(v, &s)| *v = best(s));
        }
    }

    /// Random walks among states that are seen, some of which end, the others being cut.
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
            Trajectory { steps, rewards, action_probabilities: vec![], end }
        };
        (0..200).map(|_| walk()).collect()
    }

    /// The states along an episode.
    fn states(z: &Trajectory) -> impl Iterator<Item = usize> {
        std::iter::once(0).chain(z.steps.iter().map(|ao| ao.observation.0 as usize))
    }

    /// Mean reward of each (s, a), and how often it led on to each s', as a share of all times it was taken.
    fn empirical(episodes: &[Trajectory]) -> [[(f64, [f64; STATES]); ACTIONS]; STATES] {
        let mut counts = [[(0.0, 0.0, [0.0; STATES]); ACTIONS]; STATES];
        for z in episodes {
            let visited: Vec<usize> = states(z).collect();
            for (t, ao) in z.steps.iter().enumerate() {
                let (n, reward, next) = &mut counts[visited[t]][ao.action.0 as usize];
                *n += 1.0;
                *reward += z.rewards[t].unwrap();
                if z.end == End::Truncated || t + 1 < z.steps.len() {
                    next[visited[t + 1]] += 1.0;
                }
            }
        }
        counts.map(|row| row.map(|(n, reward, next)| (reward / n, next.map(|m| m / n))))
    }

    #[test]
    fn fitted_q_with_a_table_is_value_iteration() {
        let mut alphabet = Alphabet::default();
        (0..ACTIONS).for_each(|a| {
            alphabet.intern_action(&a.to_string());
        });
        let episodes = episodes();
        let model = empirical(&episodes);
        let steps = Steps::of(&alphabet, &episodes).unwrap();
        let row_states: Vec<usize> = episodes.iter().flat_map(states).collect();
        let table = Table {
            steps: steps.list().iter().map(|step| (row_states[step.row], step.action.0 as usize)).collect(),
            states: row_states,
            q: [[0.0; ACTIONS]; STATES],
        };
        let mut fitted = FittedQ::new(&steps, table, DISCOUNT);
        let mut v = [0.0; STATES];
        for k in 1..=50 {
            let q = model.map(|row| row.map(|(r, next)| r + DISCOUNT * next.iter().zip(&v).map(|(p, v)| p * v).sum::<f64>()));
            v = q.map(|row| row.into_iter().fold(f64::NEG_INFINITY, f64::max));
            let round = fitted.next().unwrap();
            let fits = q.iter().flatten().zip(fitted.approximator.q.iter().flatten()).all(|(x, y)| (x - y).abs() < 1e-12);
            assert!(fits, "round {k}: {q:?} {:?}", fitted.approximator.q);
            assert_eq!(round.number, k);
            assert!((round.start_value - v[0]).abs() < 1e-12);
        }
        assert!(fitted.next().unwrap().change < 0.1, "it converges");
    }
}
