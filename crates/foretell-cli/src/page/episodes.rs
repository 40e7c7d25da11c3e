//! Episodes step by step: actions, predictions and observations.

use foretell::{Alphabet, Belief, End, Filter, Model, Plan, Policy, Pomdp, Predict, PredictiveState, Trajectory};
use serde::Serialize;

use crate::game::Over;
use crate::report::ranked;
use crate::show::Show;

/// Observations and states with a bar of their own.
const BARS: usize = 5;
/// Maximum number of steps shown of an episode.
const STEPS: usize = 100;

/// Some episodes, and where they come from.
#[derive(Debug, Serialize)]
pub struct Episodes {
    /// As text.
    pub source: String,
    /// Whether the policy acted, rather than only following the logs.
    pub acted: bool,
    /// The actions that values refer to.
    pub actions: Vec<String>,
    pub list: Vec<Episode>,
}

/// An episode.
#[derive(Debug, Serialize)]
pub struct Episode {
    /// How it ended, as text.
    pub end: String,
    /// Sum of its rewards, if it has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
    /// The hidden state at the start, drawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub picture: Option<String>,
    pub steps: Vec<Step>,
    /// Steps that are not shown.
    pub left_out: usize,
}

/// A step of an episode.
#[derive(Debug, Default, Serialize)]
pub struct Step {
    pub action: String,
    /// The action of a policy that only follows the logs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advised: Option<String>,
    /// Q̂ of each action, if known; empty without a policy.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<Option<f64>>,
    /// The most probable observations.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub expected: Vec<(String, f64)>,
    /// The observation.
    pub observation: String,
    /// Its description, if the domain has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
    /// Its predicted probability.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub given: Option<f64>,
    /// Its probability in the exact model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truth: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reward: Option<f64>,
    /// The most probable hidden states before the step.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub belief: Vec<(String, f64)>,
    /// The hidden state after it, drawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub picture: Option<String>,
    /// Not seen in training.
    pub is_new: bool,
    /// The filter was lost here.
    pub is_lost: bool,
}

/// A logged episode as a model and a policy see it; `alphabet` is theirs, extended by that of the
/// logs.
pub fn along(z: &Trajectory, alphabet: &Alphabet, model: Option<&Model>, plan: Option<&Plan>, truth: Option<&Pomdp>) -> Episode {
    let known = |plan: &Plan| z.steps.iter().all(|ao| ao.action.index() < plan.alphabet().actions().len());
    let mut policy = plan.filter(|plan| known(plan)).map(Plan::policy);
    let mut filter = model.map(PredictiveState::new);
    let mut exact = truth.map(Belief::new);
    let mut steps = Vec::new();
    for (&ao, &reward) in z.steps.iter().zip(&z.rewards).take(STEPS) {
        let symbol = alphabet.symbol(ao.observation);
        let mut step =
            Step { action: alphabet.action_name(ao.action).into(), observation: symbol.to_string(), ..Step::default() };
        step.reward = reward;
        if let Some(policy) = &mut policy {
            step.values = policy.values().into_iter().map(|q| Some(short(q)).filter(|q| q.is_finite())).collect();
            step.advised = Some(alphabet.action_name(policy.best()).into());
            policy.observe(ao);
        }
        if let (Some(filter), Some(model)) = (&mut filter, model) {
            step.belief = belief(model, filter.state());
            step.expected = top(filter.predict(ao.action), |o| alphabet.observations()[o].to_string());
            let lost = filter.lost();
            step.given = Some(short(filter.update(ao)));
            step.is_lost = filter.lost() > lost;
            step.is_new = ao.observation.index() >= model.alphabet().observations().len();
        }
        if let (Some(belief), Some(pomdp)) = (&mut exact, truth) {
            let own = pomdp.alphabet().action(&step.action).zip(pomdp.alphabet().same_observation(symbol));
            match own {
                Some((action, observation)) => {
                    step.truth = Some(short(belief.update(foretell::ActionObservation { action, observation })));
                }
                None => exact = None,
            }
        }
        steps.push(step);
    }
    let end = if z.end == End::Terminated { "terminated" } else { "was truncated" };
    let rewards: Vec<f64> = z.rewards.iter().flatten().copied().collect();
    let total = (!rewards.is_empty()).then(|| short(rewards.iter().sum()));
    let left_out = z.steps.len() - steps.len();
    Episode { end: end.into(), total, picture: None, steps, left_out }
}

/// The rest of an episode in which a policy acts.
pub fn played(show: &mut Show<'_>) -> Episode {
    let picture = |show: &Show<'_>| Some(show.game.picture()).filter(|picture| !picture.is_empty());
    let (first, mut steps) = (picture(show), Vec::new());
    while show.game.over().is_none() {
        let (thought, lost) = (show.thought().clone(), show.lost());
        let belief = show.plan.model().zip(show.belief()).map(|(model, state)| belief(model, state)).unwrap_or_default();
        show.step();
        if steps.len() == STEPS {
            continue;
        }
        let (Some(&(action, outcome)), Some(seen)) = (show.game.steps.last(), show.seen()) else { break };
        let (domain, own) = (show.game.domain, show.plan.alphabet());
        let name = |o: usize| own.observations()[o].to_string();
        let is_new = !show.knows(seen.own);
        let symbol = if is_new { domain.alphabet().symbol(outcome.observation) } else { own.symbol(seen.own) };
        steps.push(Step {
            action: domain.alphabet().action_name(action).into(),
            advised: None,
            values: thought.values.iter().map(|q| q.map(short)).collect(),
            expected: thought.expected.map(|p| top(&p, name)).unwrap_or_default(),
            observation: symbol.to_string(),
            words: Some(domain.describe(outcome.observation)),
            given: seen.given.map(short),
            truth: None,
            reward: Some(outcome.reward),
            belief,
            picture: picture(show),
            is_new,
            is_lost: show.lost() > lost,
        });
    }
    let end = if show.game.over() == Some(Over::Ended) { "terminated" } else { "was truncated" };
    let left_out = show.game.steps.len() - steps.len();
    Episode { end: end.into(), total: Some(short(show.game.total())), picture: first, steps, left_out }
}

/// The largest probabilities, by name.
fn top(probabilities: &[f64], name: impl Fn(usize) -> String) -> Vec<(String, f64)> {
    let largest = ranked(probabilities).into_iter().take(BARS).filter(|(_, p)| *p > 0.0);
    largest.map(|(i, p)| (name(i), short(p))).collect()
}

/// The most probable states of a refined model.
fn belief(model: &Model, state: &[f64]) -> Vec<(String, f64)> {
    model.latent().map(|refined| top(state, |s| refined.pomdp.states()[s].clone())).unwrap_or_default()
}

/// Rounded to five digits.
fn short(x: f64) -> f64 {
    format!("{x:.4e}").parse().unwrap_or(x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::game::Game;
    use crate::show::testing::small_plan;
    use foretell::plan::StateKind;
    use foretell::{Logs, Seed, domains};

    /// What is rounded to five digits is this close.
    const ROUNDING: f64 = 1e-4;

    #[test]
    fn steps_along_logs_agree_with_filter_policy_and_truth() {
        let maze = domains::get("colored-gridworld").unwrap();
        let plan = small_plan(&maze, StateKind::Predictive);
        let model = plan.model().unwrap();
        let logs = Logs::memory(maze.alphabet().clone(), domains::sample(&maze, 5, 13, Seed(3)).collect());
        let mut reader = logs.open(model.alphabet().clone()).unwrap();
        let episodes: Vec<Trajectory> = reader.by_ref().collect::<Result<_, _>>().unwrap();
        for z in &episodes {
            let episode = along(z, reader.alphabet(), Some(model), Some(&plan), maze.pomdp());
            assert_eq!(episode.steps.len(), z.steps.len());
            let (mut filter, advised) = (PredictiveState::new(model), plan.actions(std::slice::from_ref(z)));
            let mut exact = 1.0;
            for ((step, &ao), &a) in episode.steps.iter().zip(&z.steps).zip(&advised) {
                let p = filter.update(ao);
                assert!((step.given.unwrap() / p - 1.0).abs() < ROUNDING, "{step:?} {p}");
                assert_eq!(step.advised.as_deref(), Some(plan.alphabet().action_name(a)));
                let best = step.values.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max);
                assert!((step.values[a.index()].unwrap() - best).abs() < ROUNDING * best.abs().max(1.0));
                if let Some((_, listed)) = step.expected.iter().find(|(name, _)| *name == step.observation) {
                    assert_eq!(step.given, Some(*listed));
                }
                assert!(step.expected.is_sorted_by(|x, y| x.1 >= y.1) && step.expected.len() <= BARS);
                exact *= step.truth.unwrap();
            }
            let pomdp = maze.pomdp().unwrap();
            let translate = |ao: &foretell::ActionObservation| foretell::ActionObservation {
                action: pomdp.alphabet().action(reader.alphabet().action_name(ao.action)).unwrap(),
                observation: pomdp.alphabet().same_observation(reader.alphabet().symbol(ao.observation)).unwrap(),
            };
            let steps: Vec<_> = z.steps.iter().map(translate).collect();
            assert!((exact / pomdp.probability(&steps) - 1.0).abs() < 13.0 * ROUNDING);
        }
    }

    #[test]
    fn a_played_episode_has_all_steps_from_its_first_picture_to_its_end() {
        let maze = domains::get("colored-gridworld").unwrap();
        let plan = small_plan(&maze, StateKind::Predictive);
        let mut show = Show::new(Game::new(&maze, 13, Seed(7)), &plan).unwrap();
        let episode = played(&mut show);
        assert_eq!((episode.steps.len(), episode.left_out), (show.game.steps.len(), 0));
        assert_eq!(episode.total, Some(show.game.total()));
        let sum: f64 = episode.steps.iter().filter_map(|step| step.reward).sum();
        assert_eq!(Some(sum), episode.total);
        assert_eq!(episode.steps.last().unwrap().picture, Some(show.game.picture()));
        assert_ne!(episode.picture, None);
    }

    #[test]
    fn long_episodes_are_cut_and_say_so() {
        let tiger = domains::get("tiger").unwrap();
        let plan = small_plan(&tiger, StateKind::Last);
        let episode = played(&mut Show::new(Game::new(&tiger, STEPS + 7, Seed(7)), &plan).unwrap());
        assert_eq!((episode.steps.len(), episode.left_out, episode.end.as_str()), (STEPS, 7, "was truncated"));
        assert!(episode.steps.iter().all(|step| step.expected.is_empty() && step.given.is_none()), "it has no model");
        let episodes = domains::sample(&tiger, 1, STEPS + 7, Seed(1)).collect::<Vec<_>>();
        let episode = along(&episodes[0], tiger.alphabet(), None, None, None);
        assert_eq!((episode.steps.len(), episode.left_out), (STEPS, 7));
    }
}
