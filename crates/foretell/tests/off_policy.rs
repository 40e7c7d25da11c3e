//! Values of policies estimated from logs, against their returns.

use foretell::off_policy::{
    Bounded, CrossFit, Estimator, Evidence, Propensities, Target, TargetPolicy, Verdict, Weighted, cross_fitted, value_of,
};
use foretell::plan::{Planner, Regressor, plan_on};
use foretell::system::Exploring;
use foretell::{
    Action, ActionObservation, Alphabet, Domain, End, LearnParams, LogValue, Logs, Mean, OffPolicy, Plan, PlanParams,
    RefineParams, Returns, Seed, Trajectory, ValueParams, domains, learn, refine,
};

fn test() -> OffPolicy {
    let value = ValueParams { replicates: 5, seed: Seed(4), ..ValueParams::default() };
    OffPolicy { value, rollouts: 500, cross_fit: CrossFit::Never, ..OffPolicy::default() }
}

fn alphabet(actions: &[&str], observations: &[&str]) -> Alphabet {
    let mut alphabet = Alphabet::default();
    for name in actions {
        alphabet.intern_action(name);
    }
    for name in observations {
        alphabet.intern_observation(name);
    }
    alphabet
}

fn greedy(plan: &Plan) -> Target<'_> {
    Target { policy: TargetPolicy::Plan(plan), epsilon: 0.0 }
}

fn by(value: &LogValue, estimator: Estimator) -> Bounded {
    value.by(estimator).unwrap().bounded
}

/// A policy of the maze, made from random walks.
fn policy(maze: &Domain) -> Plan {
    let logs = Logs::memory(maze.alphabet().clone(), domains::sample(maze, 4000, maze.horizon, Seed(5)).collect());
    let model = learn(&logs, &LearnParams { rank: 20, test_dim: 256, history_dim: 256, ..LearnParams::default() }).unwrap();
    let episodes = over(&logs, &model.alphabet().clone());
    let (planner, regressor) = (Planner::FittedQ, Regressor::Trees);
    plan_on(&model, &episodes, &PlanParams { planner, regressor, rounds: 30, ..PlanParams::default() }, &mut |_| {}).unwrap()
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
    let policies = plan.policies_for(maze.alphabet()).unwrap();
    let earned = Returns::of(domains::sample_with(&maze, policies, 10_000, 13, Seed(6)), 0.99).discounted_return;
    let episodes = logs(&maze, &plan, 0.4, 7);
    let evaluate = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| test().evaluate(&greedy(&plan), plan.alphabet(), &episodes).unwrap())
    };
    let value = evaluate(3);
    assert_eq!((value.max_steps, &value.propensities), (13, &Propensities::Logged));
    for estimator in [Estimator::Pdis, Estimator::Snpdis, Estimator::Dr, Estimator::Wdr] {
        let found = by(&value, estimator);
        // The larger of the errors is that of the logs: four standard errors.
        let off = (found.value - earned).abs();
        assert!(off < 4.0 * found.error.unwrap() && found.error.unwrap() < 0.1, "{estimator:?}: {found:?} {earned}");
    }
    // Q̂ has taken variance away.
    let error = |estimator| by(&value, estimator).error.unwrap();
    assert!(error(Estimator::Wdr) < error(Estimator::Snpdis) && error(Estimator::Dr) < error(Estimator::Pdis), "{value:?}");
    let fitted_q = by(&value, Estimator::Fqe);
    assert!((fitted_q.value - earned).abs() < SMOOTHING, "{fitted_q:?} {earned}");
    assert_eq!(value.comparison.verdict, Verdict::Better, "random actions cost: {:?}", value.comparison);
    // With ε = 0.4 and four actions, 0.7 of the actions are those of the policy; 0.0024 is one
    // standard deviation.
    assert!((value.support.same_action - 0.7).abs() < 0.01, "{:?}", value.support);
    assert_eq!((value.support.weighted_steps, value.support.unsupported_value), (13, 0.0));
    let rollouts = by(&value, Estimator::Model);
    // 500 rollouts whose returns differ by about one: 1.96 / √500.
    assert!(0.0 < rollouts.value && rollouts.value < 1.0 && rollouts.high.unwrap() - rollouts.value < 0.09, "{rollouts:?}");
    let alone = evaluate(1);
    assert_eq!((alone.estimates, alone.comparison), (value.estimates, value.comparison));
}

#[test]
fn what_was_logged_has_the_value_of_its_episodes() {
    let tiger = domains::get("tiger").unwrap();
    let episodes: Vec<Trajectory> = domains::sample(&tiger, 400, 20, Seed(3)).collect();
    let value = |name: &str| {
        let target = Target::named(name, tiger.alphabet()).unwrap().unwrap();
        test().evaluate(&target, tiger.alphabet(), &episodes).unwrap()
    };
    let (logged, uniform) = (value("logged"), value("uniform"));
    let earned = Returns::of(episodes.clone(), 0.99);
    for found in [logged.logged, by(&logged, Estimator::Pdis), by(&uniform, Estimator::Pdis), by(&uniform, Estimator::Snpdis)] {
        assert!((found.value - earned.discounted_return).abs() < 1e-9, "{found:?} {earned:?}");
        // Student's t with 399 degrees of freedom is wider than the normal quantile by 0.3 %.
        assert!(
            ((found.high.unwrap() - found.value) / earned.discounted_ci95.unwrap() - 1.0).abs() < 0.005,
            "{found:?} {earned:?}"
        );
    }
    assert_eq!(logged.comparison.verdict, Verdict::Same);
    assert_eq!(uniform.support.effective_at_end, 400.0);
    // Listening costs 1 in every step, whatever happens. No weights reach far: the rest is Q̂'s.
    let listen = value("always:listen");
    let exact: f64 = (0..20).map(|t| -0.99f64.powi(t)).sum();
    assert!((by(&listen, Estimator::Wdr).value - exact).abs() < 1e-9, "{listen:?}");
    let Some(share) = listen.support.unsupported_share else { panic!("{listen:?}") };
    let steps = listen.support.weighted_steps as i32;
    assert!(
        (2..5).contains(&steps) && (share - (steps..20).map(|t| -0.99f64.powi(t)).sum::<f64>() / exact).abs() < 1e-9,
        "{listen:?}"
    );
    assert_eq!(listen.comparison.verdict, Verdict::Better);
    assert!(listen.returns.is_none(), "no whole episode only listens");
    assert!(Target::named("always:sing", tiger.alphabet()).unwrap_err().to_string().contains("listen"));
    assert!(Target::named("policy.safetensors", tiger.alphabet()).unwrap().is_none());
}

#[test]
fn missing_probabilities_are_estimated_from_what_was_seen() {
    // Opens the door where the tiger was not heard with probability 0.3, else listens or, with
    // probability 0.1, opens a random door: a policy of the last observation.
    let tiger = domains::get("tiger").unwrap();
    let act = |last: Option<&ActionObservation>, rng: &mut foretell::Rng| {
        let heard = last.map_or(0, |ao| ao.observation.index());
        let probabilities = if last.is_none() { [1.0, 0.0, 0.0] } else { [[0.6, 0.1, 0.3], [0.6, 0.3, 0.1]][heard] };
        let a = rng.weighted(&probabilities).unwrap();
        (Action(a as u32), probabilities[a])
    };
    let mut rng = Seed(8).rng();
    let mut episode = || {
        let mut world = tiger.environment();
        world.reset(&mut rng);
        let mut z = Trajectory {
            steps: vec![],
            rewards: vec![],
            action_probabilities: vec![],
            end: End::Truncated,
            about: Default::default(),
        };
        for _ in 0..6 {
            let (action, p) = act(z.steps.last(), &mut rng);
            let outcome = world.step(action, &mut rng);
            z.steps.push(ActionObservation { action, observation: outcome.observation });
            z.rewards.push(Some(outcome.reward));
            z.action_probabilities.push(p);
        }
        z
    };
    let episodes: Vec<Trajectory> = (0..2000).map(|_| episode()).collect();
    let without = |z: &Trajectory| Trajectory { action_probabilities: vec![], ..z.clone() };
    let unknown: Vec<Trajectory> = episodes.iter().map(without).collect();
    let target = Target { policy: TargetPolicy::Logged, epsilon: 0.3 };
    let value = |episodes: &[Trajectory]| test().evaluate(&target, tiger.alphabet(), episodes).unwrap();
    let (known, estimated) = (value(&episodes), value(&unknown));
    assert_eq!(known.propensities, Propensities::Logged);
    match estimated.propensities {
        Propensities::Estimated { given, log_likelihood } => {
            assert_eq!(given, "the last observation");
            // −(0.6 ln 0.6 + 0.1 ln 0.1 + 0.3 ln 0.3) in five of six steps
            assert!((log_likelihood + 5.0 / 6.0 * 0.897_9).abs() < 0.02, "{log_likelihood}");
        }
        Propensities::Logged => panic!("there are none"),
    }
    for estimator in [Estimator::Snpdis, Estimator::Wdr] {
        let (known, estimated) = (by(&known, estimator), by(&estimated, estimator));
        assert!((known.value - estimated.value).abs() < 0.5 * known.error.unwrap(), "{estimator:?}: {known:?} {estimated:?}");
    }
}

#[test]
fn policies_are_not_judged_by_the_logs_they_were_planned_on() {
    // Rewards are noise: no policy is better than another, but plans find one that seems so.
    let alphabet = alphabet(&["0", "1", "2", "3", "4", "5", "6", "7"], &["a", "b", "c", "d", "e", "f"]);
    let mut rng = Seed(12).rng();
    let mut episode = || {
        let steps: Vec<_> = (0..3).map(|_| ActionObservation::new(rng.below(8) as u32, rng.below(6) as u32)).collect();
        let rewards = (0..3).map(|_| Some(2.0 * rng.uniform() - 1.0)).collect();
        Trajectory { steps, rewards, action_probabilities: vec![0.125; 3], end: End::Truncated, about: Default::default() }
    };
    let logs = Logs::memory(alphabet, (0..600).map(|_| episode()).collect());
    let model = learn(&logs, &LearnParams { rank: 5, max_test_length: 1, ..LearnParams::default() }).unwrap();
    let episodes = over(&logs, model.alphabet());
    let params = PlanParams { discount: 1.0, rounds: 3, ..PlanParams::default() };
    let make = |episodes: &[Trajectory]| plan_on(&model, episodes, &params, &mut |_| {});
    let plan = make(&episodes).unwrap();
    let params = ValueParams { discount: 1.0, ..test().value };
    let evaluate = |cross_fit| {
        let test = OffPolicy { value: params, cross_fit, ..test() };
        test.evaluate(&greedy(&plan), plan.alphabet(), &episodes).unwrap()
    };
    let (biased, honest) = (evaluate(CrossFit::Never), evaluate(CrossFit::Auto));
    assert!(biased.comparison.verdict == Verdict::Better, "{:?}", biased.comparison);
    assert!(honest.comparison.verdict != Verdict::Better, "{:?}", honest.comparison);
    let told = honest.cross_fitted.unwrap();
    assert!(told.folds == 2 && !told.relearned && biased.cross_fitted.is_none(), "{told:?}");
    // The true value is 0.
    let found = cross_fitted(plan.alphabet(), &episodes, 2, &params, make).unwrap();
    assert!(found.value.abs() < 3.0 * found.error.unwrap(), "{found:?}");
    let seen = value_of(&greedy(&plan), plan.alphabet(), &episodes, &params).unwrap();
    assert!(seen.value > 3.0 * seen.error.unwrap(), "{seen:?}");
}

#[test]
fn one_episode_has_a_value_and_no_interval() {
    let tiger = domains::get("tiger").unwrap();
    let episodes: Vec<Trajectory> = domains::sample(&tiger, 1, 20, Seed(3)).collect();
    let target = Target::named("uniform", tiger.alphabet()).unwrap().unwrap();
    let value = test().evaluate(&target, tiger.alphabet(), &episodes).unwrap();
    assert!(value.estimates.iter().all(|found| found.bounded.error.is_none() && found.bounded.value.is_finite()), "{value:?}");
    assert_eq!((value.logged.low, value.comparison.verdict), (None, Verdict::CannotTell));
}

#[test]
fn steps_without_a_reward_are_left_out() {
    // Rewards 1 for the first action and 0 for the second; every third is missing.
    let alphabet = alphabet(&["one", "none"], &["o"]);
    let mut rng = Seed(2).rng();
    let mut episode = |i: usize| {
        let steps: Vec<_> = (0..4).map(|_| ActionObservation::new(rng.below(2) as u32, 0)).collect();
        let reward = |t: usize| Some(1.0 - f64::from(steps[t].action.0)).filter(|_| !(i + t).is_multiple_of(3));
        let rewards = (0..4).map(reward).collect();
        Trajectory { rewards, steps, action_probabilities: vec![0.5; 4], end: End::Truncated, about: Default::default() }
    };
    let episodes: Vec<Trajectory> = (0..400).map(&mut episode).collect();
    let target = Target::named("always:one", &alphabet).unwrap().unwrap();
    let test = OffPolicy { value: ValueParams { discount: 1.0, ..test().value }, ..test() };
    let value = test.evaluate(&target, &alphabet, &episodes).unwrap();
    for estimator in [Estimator::Snpdis, Estimator::Dr, Estimator::Wdr, Estimator::Fqe] {
        assert!((by(&value, estimator).value - 4.0).abs() < 1e-9, "{estimator:?}: {:?}", by(&value, estimator));
    }
    assert_eq!(value.without_reward, 534);
    let none: Vec<Trajectory> = episodes.iter().map(|z| Trajectory { rewards: vec![None; 4], ..z.clone() }).collect();
    assert!(test.evaluate(&target, &alphabet, &none).unwrap_err().to_string().contains("have no rewards to evaluate by"));
}

#[test]
fn an_action_that_is_not_in_the_logs_cannot_be_evaluated() {
    let maze = domains::get("colored-gridworld").unwrap();
    let plan = policy(&maze);
    let mut episodes = logs(&maze, &plan, 0.4, 8);
    let never = Action(0);
    episodes.iter_mut().flat_map(|z| &mut z.steps).filter(|ao| ao.action == never).for_each(|ao| ao.action = Action(1));
    let message = test().evaluate(&greedy(&plan), plan.alphabet(), &episodes).unwrap_err().to_string();
    assert!(message.contains("which never occurs in the logs"), "{message}");
}

#[test]
fn intervals_contain_the_value_about_as_often_as_they_say() {
    // A bandit: the context is what was seen first, the reward is 1 with probability `p`.
    let p = |context: usize, a: usize| [[0.2, 0.5, 0.7], [0.6, 0.1, 0.4]][context][a];
    let exact = 0.5 * (p(0, 2) + p(1, 0));
    let alphabet = alphabet(&["x", "y", "z"], &["left", "right", "done"]);
    let logs = |trial: u64| -> Vec<Trajectory> {
        let mut rng = Seed(31).index(trial).rng();
        let mut episode = || {
            let context = rng.below(2);
            let a = rng.weighted(&[[0.6, 0.3, 0.1], [0.2, 0.3, 0.5]][context]).unwrap();
            let steps = vec![ActionObservation::new(0, context as u32), ActionObservation::new(a as u32, 2)];
            let rewards = vec![Some(0.0), Some(f64::from(u8::from(rng.uniform() < p(context, a))))];
            let action_probabilities = vec![1.0, [[0.6, 0.3, 0.1], [0.2, 0.3, 0.5]][context][a]];
            Trajectory { steps, rewards, action_probabilities, end: End::Truncated, about: Default::default() }
        };
        (0..300).map(|_| episode()).collect()
    };
    let training = Logs::memory(alphabet, logs(1000).into_iter().chain(logs(1001)).chain(logs(1002)).collect());
    let model = learn(&training, &LearnParams { max_test_length: 1, ..LearnParams::default() }).unwrap();
    let params = PlanParams { discount: 1.0, rounds: 2, ..PlanParams::default() };
    let plan = plan_on(&model, &over(&training, model.alphabet()), &params, &mut |_| {}).unwrap();
    let value = ValueParams { discount: 1.0, first: Some(Action(0)), max_steps: Some(1), ..test().value };
    let test = OffPolicy { value, rollouts: 2, ..test() };
    let estimators = [Estimator::Pdis, Estimator::Snpdis, Estimator::Dr, Estimator::Wdr];
    let (mut covered, mut biases) = ([0.0; 4], [Mean::default(); 4]);
    const TRIALS: u64 = 60;
    for trial in 0..TRIALS {
        let found = test.evaluate(&greedy(&plan), plan.alphabet(), &logs(trial)).unwrap();
        for (i, estimator) in estimators.into_iter().enumerate() {
            let Bounded { value, low, high, .. } = by(&found, estimator);
            covered[i] += f64::from(u8::from(low.unwrap() <= exact && exact <= high.unwrap())) / TRIALS as f64;
            biases[i].add(value - exact);
        }
    }
    for (i, estimator) in estimators.into_iter().enumerate() {
        // 0.95 less four standard deviations of 60 trials; a bias of four standard errors.
        assert!(covered[i] > 0.95 - 4.0 * (0.95f64 * 0.05 / TRIALS as f64).sqrt(), "{estimator:?}: {covered:?}");
        let bias = biases[i];
        assert!(
            bias.mean().abs() < 4.0 * bias.sd() / (TRIALS as f64).sqrt() && bias.mean().abs() < 0.03,
            "{estimator:?}: {bias:?}"
        );
    }
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
    let params = ValueParams { max_steps: Some(5), discount: 0.5, first: Some(actions[0]), ..test().value };
    let of = |value: ValueParams| OffPolicy { value, ..test() }.evaluate(&greedy(&plan), plan.alphabet(), &episodes).unwrap();
    let value = of(params);
    let best: f64 = (0..5).map(|t| 0.5f64.powi(t)).sum();
    for estimator in [Estimator::Fqe, Estimator::Model, Estimator::Wdr] {
        assert!((by(&value, estimator).value - best).abs() < NEARLY, "{estimator:?}: {:?}", by(&value, estimator));
    }
    // Half of the actions have reward 1 and are those of the policy: four standard deviations over
    // 2000 steps.
    assert!(value.max_steps == 5 && (value.logged.value - 0.5 * best).abs() < 0.1, "{value:?}");
    assert!((value.support.same_action - 0.5).abs() < 0.045, "{:?}", value.support);
    let two = of(ValueParams { max_steps: Some(2), ..params });
    assert!((by(&two, Estimator::Fqe).value - 1.5).abs() < NEARLY && two.max_steps == 2, "{two:?}");
    let counted = of(ValueParams { max_steps: Some(6), first: None, ..params });
    assert!((by(&counted, Estimator::Fqe).value - best).abs() > NEARLY, "{counted:?}");
}

/// Numbers that others made, and what their estimators say of them.
#[derive(serde::Deserialize)]
struct Given {
    steps: usize,
    discount: f64,
    estimates: std::collections::BTreeMap<Estimator, f64>,
    ratio: Vec<f64>,
    reward: Vec<f64>,
    q: Vec<f64>,
    v: Vec<f64>,
}

#[test]
fn estimators_agree_with_those_of_others_on_the_same_numbers() {
    // Open Bandit Pipeline 0.4.1 (synthetic bandit, 60 rounds, 4 actions: ipw, snipw, dr, sndr) and
    // SCOPE-RL 0.2.1 (20 episodes of 4 random steps: pdis, snpdis, dr, sndr).
    for text in [include_str!("data/open-bandit-pipeline.json"), include_str!("data/scope-rl.json")] {
        let Given { steps, discount, estimates, ratio, reward, q, v } = serde_json::from_str(text).unwrap();
        let episode = |first: usize| {
            let own = first..first + steps;
            Weighted {
                ratios: ratio[own.clone()].to_vec(),
                rewards: reward[own.clone()].iter().copied().map(Some).collect(),
                q: q[own.clone()].to_vec(),
                v: v[own].iter().copied().chain([0.0]).collect(),
                terminated: false,
                group: None,
            }
        };
        let evidence = Evidence::new((0..ratio.len()).step_by(steps).map(episode).collect(), steps, discount);
        assert_eq!(estimates.len(), 4);
        for (estimator, theirs) in estimates {
            let ours = evidence.estimate(estimator, steps).unwrap().0;
            // SCOPE-RL adds 1e-10 to sums of weights.
            assert!((ours - theirs).abs() < 1e-9, "{estimator:?}: {ours}, {theirs}");
        }
    }
}
