//! Estimates of the value of a policy from simulated logs: bias, and how often intervals contain it.
//!
//! `off-policy FOLDER [SYSTEM…] [--quick] [--checkpoint DIR]` writes `off-policy.csv` (every log
//! set), `.md` (bias and coverage) and `.json` (what was run) into FOLDER. A policy is planned once;
//! each log set is of the same policy with a uniformly random action with probability ε, or of
//! uniformly random actions. Exact values are closed forms (bandit) or means of 400 000 episodes.

use std::fmt::Write as _;
use std::time::Instant;

use foretell::data::Alphabet;
use foretell::off_policy::{Bound, CrossFit, Target, TargetPolicy};
use foretell::plan::plan_on;
use foretell::system::Exploring;
use foretell::{
    Action, ActionObservation, Domain, End, LearnParams, Logs, Mean, OffPolicy, Plan, PlanParams, Policy, Recipe, RefineParams,
    Returns, Rng, Seed, Trajectory, Uniform, ValueParams, domains, learn,
};
use foretell_experiments::{Arguments, Pieces};
use serde::{Deserialize, Serialize};
use serde_json::json;

const SYSTEMS: [&str; 4] = ["bandit", "tiger", "maze", "maze-random"];
const SETS: u64 = 200;
const EPISODES: usize = 1000;
const FIRST_SEED: u64 = 901;
const EPSILON: f64 = 0.4;
const TIGER_STEPS: usize = 10;
/// Episodes from which policies are planned, and that give the exact value.
const PLANNED: usize = 3000;
const EXACT: usize = 400_000;
/// Contexts of the bandit, and the success of each action there.
const SUCCESS: [[f64; 4]; 3] = [[0.2, 0.5, 0.7, 0.3], [0.6, 0.1, 0.4, 0.45], [0.35, 0.4, 0.3, 0.8]];
const BEHAVIOUR: [[f64; 4]; 3] = [[0.5, 0.3, 0.1, 0.1], [0.25, 0.25, 0.25, 0.25], [0.1, 0.4, 0.35, 0.15]];

/// One estimate from one log set.
#[derive(Serialize, Deserialize)]
struct Row {
    system: String,
    probabilities: String,
    bound: String,
    estimator: String,
    set: u64,
    exact: f64,
    value: f64,
    low: f64,
    high: f64,
}

/// How logs are evaluated: whether they have action probabilities, and the interval.
const WAYS: [(&str, Bound); 4] =
    [("logged", Bound::T), ("logged", Bound::Bootstrap), ("logged", Bound::Bernstein), ("estimated", Bound::T)];

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::read()?;
    let quick = arguments.quick;
    let names: Vec<&str> =
        if arguments.words.is_empty() { SYSTEMS.to_vec() } else { arguments.words.iter().map(String::as_str).collect() };
    let sets = if quick { 4 } else { SETS };
    let mut manifest = json!({
        "systems": names, "sets": sets, "episodes": EPISODES, "first_seed": FIRST_SEED, "epsilon": EPSILON, "planned": PLANNED,
        "exact_episodes": EXACT, "tiger_steps": TIGER_STEPS, "quick": quick, "version": env!("CARGO_PKG_VERSION"),
    });
    let mut pieces = Pieces::open(&arguments, &manifest)?;
    let started = Instant::now();
    let mut rows = Vec::new();
    for name in &names {
        let system = System::new(name, if quick { 20 } else { 1 })?;
        for first in (0..sets).step_by(20) {
            let some = || -> anyhow::Result<Vec<Row>> {
                let each = (first..sets.min(first + 20)).map(|set| system.evaluate(name, set));
                Ok(each.collect::<anyhow::Result<Vec<Vec<Row>>>>()?.into_iter().flatten().collect())
            };
            rows.extend(pieces.rows(&format!("{name}-from-{first}"), some)?);
            eprintln!("{name} set {first} done after {:.0} s", started.elapsed().as_secs_f64());
        }
    }
    manifest["seconds"] = json!(pieces.seconds());
    foretell_experiments::write(&arguments.folder, "off-policy", &csv(&rows)?, &table(&names, &rows, sets)?, &manifest)?;
    Ok(pieces.finish()?)
}

/// A policy with its exact value, and who acts in the logs.
struct System {
    plan: Plan,
    exact: f64,
    discount: f64,
    logs: Logging,
}

enum Logging {
    Bandit(Alphabet),
    /// The domain, its steps, and the probability of a random action.
    Domain(Domain, usize, f64),
}

impl System {
    fn new(name: &str, less: usize) -> anyhow::Result<System> {
        match name {
            "bandit" => bandit(),
            "tiger" => in_domain("tiger", TIGER_STEPS, EPSILON, less),
            "maze" => in_domain("colored-gridworld", 13, EPSILON, less),
            "maze-random" => in_domain("colored-gridworld", 13, 1.0, less),
            other => anyhow::bail!("{other} is not known; known: {}", SYSTEMS.join(", ")),
        }
    }

    /// A set of logs, over the alphabet of the plan.
    fn logged(&self, set: u64) -> foretell::Result<Vec<Trajectory>> {
        let seed = Seed(FIRST_SEED + set);
        match &self.logs {
            Logging::Bandit(alphabet) => {
                Logs::memory(alphabet.clone(), pulls(EPISODES, seed)).episodes_for(self.plan.alphabet(), "policy")
            }
            Logging::Domain(domain, steps, epsilon) => {
                let (policy, actions) = (self.plan.policies_for(domain.alphabet())?, domain.alphabet().actions().len());
                let exploring = || -> Box<dyn Policy> {
                    if *epsilon == 1.0 {
                        Box::new(Uniform { actions })
                    } else {
                        Box::new(Exploring::new(policy(), *epsilon, actions))
                    }
                };
                let walks = domains::sample_with(domain, exploring, EPISODES, *steps, seed).collect();
                Logs::memory(domain.alphabet().clone(), walks).episodes_for(self.plan.alphabet(), "policy")
            }
        }
    }

    fn evaluate(&self, name: &str, set: u64) -> anyhow::Result<Vec<Row>> {
        let known = self.logged(set)?;
        let unknown: Vec<Trajectory> = known.iter().map(|z| Trajectory { action_probabilities: vec![], ..z.clone() }).collect();
        let (first, steps) = match &self.logs {
            Logging::Bandit(_) => (Some(Action(0)), 1),
            Logging::Domain(_, steps, _) => (None, *steps),
        };
        let mut rows = Vec::new();
        for (probabilities, bound) in WAYS {
            let seed = Seed(FIRST_SEED + set).stream("evaluation");
            let value =
                ValueParams { max_steps: Some(steps), discount: self.discount, bound, seed, first, ..ValueParams::default() };
            let test = OffPolicy { value, rollouts: 2000, cross_fit: CrossFit::Never, ..OffPolicy::default() };
            let target = Target { policy: TargetPolicy::Plan(&self.plan), epsilon: 0.0 };
            let episodes = if probabilities == "logged" { &known } else { &unknown };
            for found in test.evaluate(&target, self.plan.alphabet(), episodes)?.estimates {
                let interval = found.bounded.low.zip(found.bounded.high).unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
                rows.push(Row {
                    system: name.into(),
                    probabilities: probabilities.into(),
                    bound: format!("{bound:?}").to_lowercase(),
                    estimator: found.estimator.name().into(),
                    set,
                    exact: self.exact,
                    value: found.bounded.value,
                    low: interval.0,
                    high: interval.1,
                });
            }
        }
        Ok(rows)
    }
}

/// A bandit whose context is seen before the only choice.
fn bandit() -> anyhow::Result<System> {
    let mut alphabet = Alphabet::default();
    for name in ["a", "b", "c", "d"] {
        alphabet.intern_action(name);
    }
    for name in ["first", "second", "third", "done"] {
        alphabet.intern_observation(name);
    }
    let logs = Logs::memory(alphabet.clone(), pulls(PLANNED, Seed(7)));
    let model = learn(&logs, &LearnParams { max_test_length: 1, ..LearnParams::default() })?;
    let params = PlanParams { discount: 1.0, rounds: 2, ..PlanParams::default() };
    let plan = plan_on(&model, &logs.episodes_for(model.alphabet(), "model")?, &params, &mut |_| {})?;
    let earned = |context: usize| {
        let mut policy = plan.policy();
        let seen = alphabet.observations()[context].name.as_str();
        policy.observe(ActionObservation {
            action: plan.alphabet().action("a").expect("it is in the logs"),
            observation: plan.alphabet().observation(seen).expect("it is in the logs"),
        });
        let chosen = alphabet.action(plan.alphabet().action_name(policy.best())).expect("it is in the logs");
        SUCCESS[context][chosen.index()]
    };
    let exact = (0..SUCCESS.len()).map(earned).sum::<f64>() / SUCCESS.len() as f64;
    Ok(System { plan, exact, discount: 1.0, logs: Logging::Bandit(alphabet) })
}

/// Episodes of the bandit: the context, which nobody chose, and one choice.
fn pulls(episodes: usize, seed: Seed) -> Vec<Trajectory> {
    let episode = |i: u64| {
        let mut rng: Rng = seed.index(i).rng();
        let context = rng.below(SUCCESS.len());
        let a = rng.weighted(&BEHAVIOUR[context]).expect("probabilities are positive");
        let reward = if rng.uniform() < SUCCESS[context][a] { 1.0 } else { 0.0 };
        Trajectory {
            steps: vec![ActionObservation::new(0, context as u32), ActionObservation::new(a as u32, 3)],
            rewards: vec![Some(0.0), Some(reward)],
            action_probabilities: vec![1.0, BEHAVIOUR[context][a]],
            end: End::Truncated,
            about: Default::default(),
        }
    };
    (0..episodes as u64).map(episode).collect()
}

/// A policy planned from random logs of a domain.
fn in_domain(name: &str, steps: usize, epsilon: f64, less: usize) -> anyhow::Result<System> {
    let domain = domains::get(name)?;
    let logs = Logs::memory(domain.alphabet().clone(), domains::sample(&domain, PLANNED, steps.max(20), Seed(7)).collect());
    let learn = LearnParams { observe_reward: name == "tiger", ..LearnParams::default() };
    let model = Recipe { learn, refine: Some(RefineParams::default()), ..Recipe::default() }.fit(&logs)?.model;
    let params = PlanParams { discount: domain.discount.min(0.99), ..PlanParams::default() };
    let plan = plan_on(&model, &logs.episodes_for(model.alphabet(), "model")?, &params, &mut |_| {})?;
    let discount = domain.discount;
    let exact = {
        let policy = plan.policies_for(domain.alphabet())?;
        Returns::of(domains::sample_with(&domain, policy, EXACT / less, steps, Seed(8)), discount).discounted_return
    };
    Ok(System { plan, exact, discount, logs: Logging::Domain(domain, steps, epsilon) })
}

fn csv(rows: &[Row]) -> anyhow::Result<String> {
    let mut text = String::from("system,probabilities,bound,estimator,set,exact,value,low,high\n");
    for Row { system, probabilities, bound, estimator, set, exact, value, low, high } in rows {
        writeln!(text, "{system},{probabilities},{bound},{estimator},{set},{exact:.6},{value:.6},{low:.6},{high:.6}")?;
    }
    Ok(text)
}

fn table(names: &[&str], rows: &[Row], sets: u64) -> anyhow::Result<String> {
    let mut text = format!(
        "Estimates of the value of one policy from {sets} log sets of {EPISODES} episodes each: bias with the half width of its 95 % \
         interval, standard deviation of the estimate, mean half width of the 95 % intervals, and how many of these contain the exact value. \
         Logs are of the same policy with a uniformly random action with probability {EPSILON} (bandit: of a fixed random policy; \
         maze-random: of uniformly random actions, so that hardly any episode does what the policy does).\n\n\
         | system | action probabilities | interval | estimator | exact | bias | ± | sd | half width | coverage |\n|{}\n",
        "---|".repeat(10)
    );
    for name in names {
        for (probabilities, bound) in WAYS {
            let bound = format!("{bound:?}").to_lowercase();
            let ours: Vec<&Row> = rows
                .iter()
                .filter(|row| row.system == *name && row.probabilities == probabilities && row.bound == bound)
                .collect();
            let mut estimators: Vec<&str> = ours.iter().map(|row| row.estimator.as_str()).collect();
            let mut seen = Vec::new();
            estimators.retain(|estimator| {
                !seen.contains(estimator) && {
                    seen.push(estimator);
                    true
                }
            });
            for estimator in estimators {
                let of = || ours.iter().filter(|row| row.estimator == estimator);
                let bias: Mean = of().map(|row| row.value - row.exact).collect();
                let half: Mean = of().map(|row| 0.5 * (row.high - row.low)).collect();
                let covered = of().filter(|row| row.low <= row.exact && row.exact <= row.high).count();
                let exact = of().next().map_or(f64::NAN, |row| row.exact);
                writeln!(
                    text,
                    "| {name} | {probabilities} | {bound} | {estimator} | {exact:.4} | {:+.4} | {:.4} | {:.4} | {:.4} | {:.1} % |",
                    bias.mean(),
                    bias.ci95(),
                    bias.sd(),
                    half.mean(),
                    100.0 * covered as f64 / bias.count()
                )?;
            }
        }
    }
    Ok(text)
}
