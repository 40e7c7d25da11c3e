//! Values of policies estimated from logs, against their returns.

use foretell::judge::{Estimate, LogTest, LogValue};
use foretell::plan::plan_on;
use foretell::system::Exploring;
use foretell::{
    ActionObservation, Alphabet, Domain, End, LearnParams, Logs, Plan, PlanParams, RefineParams, Returns, Seed, Trajectory,
    domains, learn, refine,
};

const TEST: LogTest = LogTest { max_steps: 13, discount: 0.99, rollouts: 500, replicates: 5, seed: Seed(4), first: None };

/// A policy of the maze, made from random walks.
fn policy(maze: &Domain) -> Plan {
    let logs = Logs::memory(maze.alphabet().clone(), domains::sample(maze, 4000, maze.horizon, Seed(5)).collect());
    let model = learn(&logs, &LearnParams { rank: 20, test_dim: 256, history_dim: 256, ..LearnParams::default() }).unwrap();
    let episodes = over(&logs, &model.alphabet().clone());
    plan_on(&model, &episodes, &PlanParams { rounds: 30, ..PlanParams::default() }, &mut |_| {}).unwrap()
}

/// The episodes over another alphabet.
fn over(logs: &Logs, alphabet: &Alphabet) -> Vec<Trajectory> {
    logs.open(alphabet.clone()).unwrap().collect::<Result<_, _>>().unwrap()
}

/// Logs of the policy, with a uniformly random action with probability ε.
fn logs(maze: &Domain, plan: &Plan, epsilon: f64, seed: u64) -> Vec<Trajectory> {
    let greedy = plan.policies_for(maze.alphabet()).unwrap();
    let actions = maze.alphabet().actions().len();
    let walks =
        domains::sample_with(maze, || Exploring::new(greedy(), epsilon, actions), 3000, maze.horizon, Seed(seed)).collect();
    over(&Logs::memory(maze.alphabet().clone(), walks), plan.alphabet())
}

/// The smoothing error of trees; with 3000 walks it is far smaller.
const SMOOTHING: f64 = 0.06;

#[test]
fn estimates_from_logs_agree_with_the_return_of_the_policy() {
    let maze = domains::get("colored-gridworld").unwrap();
    let plan = policy(&maze);
    let greedy = plan.policies_for(maze.alphabet()).unwrap();
    let earned = Returns::of(domains::sample_with(&maze, greedy, 10_000, 13, Seed(6)), 0.99);
    let episodes = logs(&maze, &plan, 0.4, 7);
    let evaluate = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| TEST.evaluate(&plan, &episodes).unwrap())
    };
    let LogValue { logged, fitted_q, rollouts, same_action, .. } = evaluate(3);
    let half = fitted_q.ci95.unwrap();
    let off = (fitted_q.value - earned.discounted_return).abs();
    assert!(off < SMOOTHING && off < half + SMOOTHING / 2.0, "{fitted_q:?} {earned:?}");
    assert!(logged.discounted_return < fitted_q.value - half, "random actions cost: {logged:?} {fitted_q:?}");
    // With ε = 0.4 and four actions, 0.7 of the actions are those of the policy; 0.0024 is one
    // standard deviation.
    assert!((same_action - 0.7).abs() < 0.01, "{same_action}");
    let rollouts = rollouts.unwrap();
    let half = rollouts.ci95.unwrap();
    // 500 rollouts whose returns differ by about one: 1.96 / √500.
    assert!(0.0 < rollouts.value && rollouts.value < 1.0 && 0.0 < half && half < 0.09, "{rollouts:?}");
    let short = LogTest { max_steps: 3, rollouts: 10, replicates: 2, ..TEST }.evaluate(&plan, &episodes).unwrap();
    assert!(short.logged.mean_length <= 3.0 && short.fitted_q.value < fitted_q.value, "{short:?}");
    let alone = evaluate(1);
    assert_eq!((alone.fitted_q, alone.rollouts), (fitted_q, Some(rollouts)));
}

#[test]
fn estimates_agree_where_their_intervals_overlap() {
    let estimate = |value, ci95| Estimate { value, ci95 };
    let agree = |x: Option<f64>, y| estimate(1.0, x).agrees_with(&estimate(1.5, y));
    assert_eq!(agree(Some(0.3), Some(0.25)), Some(true));
    assert_eq!(agree(Some(0.2), Some(0.25)), Some(false));
    assert_eq!(agree(Some(0.2), None), None, "a single episode");
}

#[test]
fn an_action_that_is_not_in_the_logs_cannot_be_evaluated() {
    let maze = domains::get("colored-gridworld").unwrap();
    let plan = policy(&maze);
    let mut episodes = logs(&maze, &plan, 0.4, 8);
    let never = foretell::Action(0);
    episodes.iter_mut().flat_map(|z| &mut z.steps).filter(|ao| ao.action == never).for_each(|ao| ao.action = foretell::Action(1));
    let message = TEST.evaluate(&plan, &episodes).unwrap_err().to_string();
    assert!(message.contains("which never occurs in the logs"), "{message}");
}

/// The error of the prior of rewards in the model and of the smoothing of trees.
const NEARLY: f64 = 0.03;

#[test]
fn a_first_step_that_was_not_chosen_is_not_counted() {
    // Five steps whose action is the observation and the reward; before them the initial
    // observation, as if it followed action 0.
    let mut alphabet = Alphabet::default();
    let actions = [alphabet.intern_action("0"), alphabet.intern_action("1")];
    let [shown, off, on] = ["shown", "off", "on"].map(|name| alphabet.intern_observation(name));
    let mut rng = Seed(1).rng();
    let mut episode = || {
        let taken: Vec<usize> = (0..5).map(|_| rng.below(2)).collect();
        let step = |&a: &usize| ActionObservation { action: actions[a], observation: [off, on][a] };
        let first = ActionObservation { action: actions[0], observation: shown };
        let steps: Vec<_> = [first].into_iter().chain(taken.iter().map(step)).collect();
        let rewards = [Some(0.0)].into_iter().chain(taken.iter().map(|&a| Some(a as f64))).collect();
        Trajectory { steps, rewards, action_probabilities: Vec::new(), end: End::Truncated, about: Default::default() }
    };
    let logs = Logs::memory(alphabet, (0..400).map(|_| episode()).collect());
    let model = refine(&learn(&logs, &LearnParams::default()).unwrap(), &logs, &RefineParams::default()).unwrap();
    let episodes = over(&logs, model.alphabet());
    let plan = plan_on(&model, &episodes, &PlanParams { discount: 0.5, ..PlanParams::default() }, &mut |_| {}).unwrap();
    let test = LogTest { max_steps: 5, discount: 0.5, first: Some(actions[0]), ..TEST };
    let LogValue { logged, fitted_q, rollouts, same_action, .. } = test.evaluate(&plan, &episodes).unwrap();
    let best: f64 = (0..5).map(|t| 0.5f64.powi(t)).sum();
    assert!(
        (fitted_q.value - best).abs() < NEARLY && (rollouts.unwrap().value - best).abs() < NEARLY,
        "{fitted_q:?} {rollouts:?}"
    );
    // Half of the actions have reward 1 and are those of the policy: four standard deviations over
    // 2000 steps.
    assert!(logged.mean_length == 5.0 && (logged.mean_return - 2.5).abs() < 0.23, "{logged:?}");
    assert!((same_action - 0.5).abs() < 0.045, "{same_action}");
    let two = LogTest { max_steps: 2, ..test }.evaluate(&plan, &episodes).unwrap();
    assert!((two.fitted_q.value - 1.5).abs() < NEARLY && two.logged.mean_length == 2.0, "{two:?}");
    let counted = LogTest { max_steps: 6, first: None, ..test }.evaluate(&plan, &episodes).unwrap();
    assert!((counted.fitted_q.value - best).abs() > NEARLY && counted.logged.mean_length == 6.0, "{counted:?}");
}
