//! A policy acting in a domain, with its predictions and action values; without any input or
//! output.

use foretell::plan::{Greedy, Translated};
use foretell::{
    Action, ActionObservation, Filter, Model, Observation, Outcome, Plan, Policy, Predict, PredictiveState, Rng, Seed, Track,
};

use crate::game::Game;

/// A policy that acts in one episode after the other.
pub struct Show<'a> {
    pub game: Game<'a>,
    pub plan: &'a Plan,
    policy: Translated<Greedy>,
    /// State of the model, if the policy has one.
    state: Option<PredictiveState<&'a Model>>,
    rng: Rng,
    thought: Thought,
    seen: Option<Seen>,
}

/// What the policy computes before it acts.
#[derive(Clone, Debug, PartialEq)]
pub struct Thought {
    /// The action it will take.
    pub action: Action,
    /// Q̂ of each action of the domain, if known.
    pub values: Vec<Option<f64>>,
    /// P(o ‖ a) of each observation of the policy's alphabet, if it has a model.
    pub expected: Option<Vec<f64>>,
}

/// The last observation from the policy's point of view.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seen {
    /// Its symbol in the policy's alphabet, or an index beyond it.
    pub own: Observation,
    /// Its predicted probability, if the policy has a model.
    pub given: Option<f64>,
}

impl<'a> Show<'a> {
    /// Before the first step of a game.
    pub fn new(game: Game<'a>, plan: &'a Plan) -> foretell::Result<Show<'a>> {
        let policy = plan.policies_for(game.domain.alphabet())?();
        let state = plan.model().map(PredictiveState::new);
        let nothing = Thought { action: Action(0), values: Vec::new(), expected: None };
        let mut show = Show { game, plan, policy, state, rng: Seed(0).rng(), thought: nothing, seen: None };
        show.think();
        Ok(show)
    }

    /// Leaves this episode and begins the next.
    pub fn restart(&mut self) {
        self.game.restart();
        self.policy.reset();
        self.state.iter_mut().for_each(Track::reset);
        self.seen = None;
        self.think();
    }

    /// Lets the policy act, unless the episode is over.
    pub fn step(&mut self) {
        if self.game.over().is_some() {
            return;
        }
        let action = self.thought.action;
        let Outcome { observation, reward } = self.game.act(action);
        let own = self.policy.own_observation(observation, reward);
        let step = self.policy.own_action(action).map(|action| ActionObservation { action, observation: own });
        self.seen = Some(Seen { own, given: self.state.as_mut().zip(step).map(|(state, ao)| state.update(ao)) });
        self.policy.observe_rewarded(ActionObservation { action, observation }, reward);
        if self.game.over().is_none() {
            self.think();
        }
    }

    /// The assessment before the next step; after the end of the episode, that before the last
    /// step.
    pub fn thought(&self) -> &Thought {
        &self.thought
    }

    /// The last observation; none at the start of an episode.
    pub fn seen(&self) -> Option<Seen> {
        self.seen
    }

    /// The belief over hidden states before the next step, if the model is refined.
    pub fn belief(&self) -> Option<&[f64]> {
        self.plan.model()?.latent()?;
        self.state.as_ref().map(Filter::state)
    }

    /// How often the filter was lost so far.
    pub fn lost(&self) -> u64 {
        self.state.as_ref().map_or(0, PredictiveState::lost)
    }

    /// Whether an observation was in the logs that the policy was trained on.
    pub fn knows(&self, own: Observation) -> bool {
        own.index() < self.plan.alphabet().observations().len()
    }

    fn think(&mut self) {
        let action = self.policy.act(&mut self.rng);
        let own_values = self.policy.inner().values();
        // An action that was never taken in the logs has no value, nor has one that the policy does
        // not know.
        let value = |a| self.policy.own_action(Action(a)).map(|own| own_values[own.index()]).filter(|q| q.is_finite());
        let values = (0..self.game.domain.alphabet().actions().len() as u32).map(value).collect();
        let own = self.policy.own_action(action);
        let expected = self.state.as_mut().zip(own).map(|(state, a)| state.predict(a).to_vec());
        self.thought = Thought { action, values, expected };
    }
}

#[cfg(test)]
pub mod testing {
    use foretell::plan::{StateKind, plan_on};
    use foretell::{Domain, LearnParams, Logs, Plan, PlanParams, Seed, domains, learn};

    /// A plan made quickly, from few episodes.
    pub fn small_plan(domain: &Domain, state: StateKind) -> Plan {
        let episodes = domains::sample(domain, 100, domain.horizon, Seed(1)).collect();
        let logs = Logs::memory(domain.alphabet().clone(), episodes);
        let model = learn(&logs, &LearnParams { test_dim: 64, history_dim: 64, rank: 8, ..LearnParams::default() }).unwrap();
        let episodes: Vec<_> = logs.open(model.alphabet().clone()).unwrap().collect::<Result<_, _>>().unwrap();
        let params = PlanParams { state, rounds: 5, trees: 4, min_split: 10, ..PlanParams::default() };
        plan_on(&model, &episodes, &params, &mut |_| {}).unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::testing::small_plan;
    use super::*;
    use foretell::domains;
    use foretell::judge::Test;
    use foretell::plan::StateKind;

    #[test]
    fn the_episodes_shown_are_those_that_evaluate_counts() {
        let maze = domains::get("colored-gridworld").unwrap();
        let plan = small_plan(&maze, StateKind::Memory);
        let seed = Seed(7);
        let mut show = Show::new(Game::new(&maze, 13, seed), &plan).unwrap();
        let (mut total, mut steps) = (0.0, 0);
        for _ in 0..40 {
            (0..13).for_each(|_| show.step());
            total += show.game.total();
            steps += show.game.steps.len();
            show.restart();
        }
        let test = Test { domain: &maze, episodes: 40, max_steps: 13, discount: 1.0, seed };
        let returns = test.returns(plan.policies_for(maze.alphabet()).unwrap());
        assert!((0.0..40.0).contains(&total) && steps < 40 * 13, "some are won: {total} in {steps} steps");
        assert!((total / 40.0 - returns.mean_return).abs() < 1e-12, "{total} {}", returns.mean_return);
        assert!((steps as f64 / 40.0 - returns.mean_length).abs() < 1e-12, "{steps} {}", returns.mean_length);
    }

    #[test]
    fn the_best_action_is_taken_and_what_was_expected_is_what_was_given() {
        let maze = domains::get("colored-gridworld").unwrap();
        let plan = small_plan(&maze, StateKind::Predictive);
        let mut show = Show::new(Game::new(&maze, 13, Seed(7)), &plan).unwrap();
        let mut unseen = 0;
        while show.game.over().is_none() {
            let thought = show.thought().clone();
            let best = thought.values.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max);
            assert_eq!(thought.values[thought.action.index()], Some(best));
            show.step();
            assert_eq!(show.game.steps.last().unwrap().0, thought.action);
            let Seen { own, given } = show.seen().unwrap();
            match thought.expected.unwrap().get(own.index()) {
                Some(&p) => assert_eq!(given, Some(p)),
                None => unseen += 1,
            }
            assert_eq!(show.knows(own), own.0 < plan.alphabet().observations().len() as u32);
        }
        assert!(unseen < show.game.steps.len());
    }

    #[test]
    fn a_policy_does_not_act_where_its_actions_are_unknown() {
        let (maze, tiger) = (domains::get("colored-gridworld").unwrap(), domains::get("tiger").unwrap());
        let plan = small_plan(&maze, StateKind::Last);
        let message = Show::new(Game::new(&tiger, 13, Seed(7)), &plan).err().unwrap().to_string();
        assert!(message.contains("which is not among listen"), "{message}");
    }
}
