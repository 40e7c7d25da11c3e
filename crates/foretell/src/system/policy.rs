//! Policies.

use crate::data::{Action, ActionObservation};
use crate::rng::Rng;

/// Chooses actions, and may remember the history.
pub trait Policy {
    /// Begins an episode.
    fn reset(&mut self) {}
    /// The next action.
    fn act(&mut self, rng: &mut Rng) -> Action;
    /// π(a | h) of the action it has just chosen, if known.
    fn probability(&self, _a: Action) -> Option<f64> {
        None
    }
    /// Observes the step that followed from its action.
    fn observe(&mut self, _ao: ActionObservation) {}
    /// Observes the step and its reward: for policies whose observations include rewards.
    fn observe_rewarded(&mut self, ao: ActionObservation, _reward: f64) {
        self.observe(ao);
    }
}

impl<P: Policy + ?Sized> Policy for Box<P> {
    fn reset(&mut self) {
        (**self).reset();
    }

    fn act(&mut self, rng: &mut Rng) -> Action {
        (**self).act(rng)
    }

    fn probability(&self, a: Action) -> Option<f64> {
        (**self).probability(a)
    }

    fn observe(&mut self, ao: ActionObservation) {
        (**self).observe(ao);
    }

    fn observe_rewarded(&mut self, ao: ActionObservation, reward: f64) {
        (**self).observe_rewarded(ao, reward);
    }
}

/// Every action with the same probability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uniform {
    /// How many actions there are.
    pub actions: usize,
}

impl Policy for Uniform {
    fn act(&mut self, rng: &mut Rng) -> Action {
        Action(rng.below(self.actions) as u32)
    }

    fn probability(&self, _a: Action) -> Option<f64> {
        Some(1.0 / self.actions as f64)
    }
}

/// The same action, always.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Always(pub Action);

impl Policy for Always {
    fn act(&mut self, _: &mut Rng) -> Action {
        self.0
    }

    fn probability(&self, _: Action) -> Option<f64> {
        Some(1.0)
    }
}

/// A fixed sequence of actions, repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scripted {
    plan: Vec<Action>,
    step: usize,
}

impl Scripted {
    /// Follows the plan, which must not be empty, and restarts it at its end.
    pub fn new(plan: Vec<Action>) -> Scripted {
        assert!(!plan.is_empty(), "a plan has at least one action");
        Scripted { plan, step: 0 }
    }
}

impl Policy for Scripted {
    fn reset(&mut self) {
        self.step = 0;
    }

    fn act(&mut self, _: &mut Rng) -> Action {
        self.plan[self.step % self.plan.len()]
    }

    fn probability(&self, _: Action) -> Option<f64> {
        Some(1.0)
    }

    fn observe(&mut self, _: ActionObservation) {
        self.step += 1;
    }
}

/// ε-greedy exploration: another policy, but a uniformly random action with probability ε.
#[derive(Clone, Debug)]
pub struct Exploring<P> {
    inner: P,
    epsilon: f64,
    actions: usize,
    /// The action that `inner` chose.
    chosen: Action,
}

impl<P: Policy> Exploring<P> {
    /// `inner` with probability 1 − ε.
    pub fn new(inner: P, epsilon: f64, actions: usize) -> Exploring<P> {
        Exploring { inner, epsilon, actions, chosen: Action(0) }
    }
}

impl<P: Policy> Policy for Exploring<P> {
    fn reset(&mut self) {
        self.inner.reset();
    }

    fn act(&mut self, rng: &mut Rng) -> Action {
        self.chosen = self.inner.act(rng);
        if rng.uniform() < self.epsilon { Action(rng.below(self.actions) as u32) } else { self.chosen }
    }

    fn probability(&self, a: Action) -> Option<f64> {
        // For a random inner policy, only the probability of the drawn action is known.
        let inner = self.inner.probability(self.chosen).filter(|&p| p == 1.0)?;
        let greedy = if a == self.chosen { inner } else { 0.0 };
        Some(self.epsilon / self.actions as f64 + (1.0 - self.epsilon) * greedy)
    }

    fn observe(&mut self, ao: ActionObservation) {
        self.inner.observe(ao);
    }

    fn observe_rewarded(&mut self, ao: ActionObservation, reward: f64) {
        self.inner.observe_rewarded(ao, reward);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Seed;

    #[test]
    fn an_exploring_policy_takes_actions_as_often_as_it_says() {
        let mut policy = Exploring::new(Always(Action(2)), 0.3, 4);
        let mut rng = Seed(1).rng();
        let mut counts = [0.0; 4];
        for _ in 0..40_000 {
            let a = policy.act(&mut rng);
            counts[a.index()] += 1.0 / 40_000.0;
        }
        for (a, count) in counts.into_iter().enumerate() {
            let p = policy.probability(Action(a as u32)).unwrap();
            // 4.5 standard deviations of a binomial of 40 000
            assert!((count - p).abs() < 4.5 * (p * (1.0 - p) / 40_000.0).sqrt(), "{a}: {count} for {p}");
        }
    }

    #[test]
    fn a_script_is_followed_and_restarted() {
        let mut policy = Scripted::new(vec![Action(1), Action(0)]);
        let mut rng = Seed(1).rng();
        let mut take = |policy: &mut Scripted| {
            let a = policy.act(&mut rng);
            policy.observe(ActionObservation { action: a, observation: crate::Observation(0) });
            a.0
        };
        assert_eq!([(); 3].map(|()| take(&mut policy)), [1, 0, 1]);
        policy.reset();
        assert_eq!(take(&mut policy), 1);
    }
}
