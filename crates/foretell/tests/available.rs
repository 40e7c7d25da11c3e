//! Actions that could not always be taken: read from tables, and respected by plans.

use std::fmt::Write;
use std::fs;
use std::sync::Arc;

use foretell::off_policy::{CrossFit, Estimator};
use foretell::plan::{Planner, Regressor, StateKind, plan_on};
use foretell::{
    Action, ActionObservation, Alphabet, End, LearnParams, Logs, OffPolicy, Plan, PlanParams, Policy, ReadOptions, Recipe,
    RefineParams, Schema, Seed, Summary, Target, TargetPolicy, Trajectory, ValueParams, domains, learn, log::Writer,
};

/// Logs from a table in a file, read with a schema in JSON.
fn table(text: &str, schema: &str) -> (tempfile::TempDir, Logs) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.csv");
    fs::write(&path, text).unwrap();
    let schema: Schema = serde_json::from_str(schema).unwrap();
    (folder, Logs::files([path], ReadOptions { schema: Arc::new(schema), ..ReadOptions::default() }))
}

/// The available actions of each step of the first episode; `*` for all.
fn sets(text: &str, schema: &str) -> Result<String, String> {
    let (_folder, logs) = table(text, schema);
    let mut reader = logs.open(Alphabet::default()).map_err(|e| e.to_string())?;
    let z = reader.next().unwrap().map_err(|e| e.to_string())?;
    let names = |set: &[Action]| set.iter().map(|&a| reader.alphabet().action_name(a)).collect::<Vec<_>>().join("+");
    let all = (0..z.steps.len()).map(|t| z.about.available_at(t).map_or("*".into(), names));
    Ok(all.collect::<Vec<String>>().join(" "))
}

#[test]
fn available_actions_are_read_from_lists_flags_and_one_flag() {
    let list = "action,observation,available\nadd,1,add;sub\nsub,0,sub\nadd,1,\n";
    assert_eq!(sets(list, "{}").unwrap(), "add+sub sub *");
    assert_eq!(sets(list, r#"{"available": "none"}"#).unwrap(), "* * *");
    // an action that was never taken is known nevertheless
    assert_eq!(sets("a,o,can\nx,1,x; y\n", r#"{"available": "can"}"#).unwrap(), "x+y");
    let flags = "action,observation,available_add,available_sub\nadd,1,1,0\nsub,0,true,true\n";
    assert_eq!(sets(flags, "{}").unwrap(), "add add+sub");
    // a trial: no prompt can be sent where it is 0
    let trial = "action,observation,available\n1,a,1\n0,a,0\n0,b,1\n";
    assert_eq!(sets(trial, "{}").unwrap(), "* 0 *");
    assert_eq!(sets("action,observation,available\n1,a,1;\n", "{}").unwrap(), "1");
    // what was seen before the first action is no choice
    let shifted = sets(trial, r#"{"shift_observation": true}"#).unwrap();
    assert_eq!(shifted, "reset * 0 *");
}

#[test]
fn available_actions_survive_every_format() {
    let texts = [
        "episode,action,observation,available\n0,add,1,add;sub\n0,sub,0,sub\n1,add,1,\n",
        "episode,action,observation,available\n0,1,a,1;\n0,0,b,0;1\n1,0,b,0\n",
        "episode,action,observation,available_x,available_y,action_prob\n0,x,a,1,0,1\n1,y,b,1,1,0.5\n",
    ];
    for text in texts {
        let (_folder, logs) = table(text, "{}");
        let mut reader = logs.open(Alphabet::default()).unwrap();
        let episodes: Vec<Trajectory> = reader.by_ref().collect::<Result<_, _>>().unwrap();
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.csv", "a.jsonl", "a.parquet"] {
            let path = folder.path().join(name);
            let mut writer = Writer::create(&path).unwrap();
            episodes.iter().for_each(|z| writer.write(reader.alphabet(), z).unwrap());
            writer.finish().unwrap();
            let mut again = Logs::files([path], ReadOptions::default()).open(reader.alphabet().clone()).unwrap();
            for z in &episodes {
                let read = again.next().unwrap().unwrap();
                assert_eq!((&read.steps, &read.about.available), (&z.steps, &z.about.available), "{name} of {text}");
            }
        }
    }
    let mut alphabet = Alphabet::default();
    let action = alphabet.intern_action("a;b");
    let observation = alphabet.intern_observation("x");
    let mut z = Trajectory {
        steps: vec![ActionObservation { action, observation }],
        rewards: vec![None],
        action_probabilities: vec![],
        end: End::Truncated,
        about: Default::default(),
    };
    z.about.available = vec![Some([action].into())];
    let folder = tempfile::tempdir().unwrap();
    let said = Writer::create(folder.path().join("a.csv")).unwrap().write(&alphabet, &z).unwrap_err().to_string();
    assert!(said.contains("\"a;b\" cannot be in a list"), "{said}");
}

#[test]
fn an_action_that_was_taken_though_unavailable_is_an_error() {
    let said = sets("action,observation,available\nadd,1,add;sub\nmul,0,add;sub\n", "{}").unwrap_err();
    for part in ["table.csv line 3", "available \"add;sub\"", "the action \"mul\", which was taken", "`available` none"] {
        assert!(said.contains(part), "{said}");
    }
    let said = sets("action,observation,available_a,available_b\nb,1,1,0\n", "{}").unwrap_err();
    assert!(said.contains("line 2") && said.contains("\"b\", which was taken"), "{said}");
    let said = sets("action,observation,available_a,available_b\nb,1,1,maybe\n", "{}").unwrap_err();
    assert!(said.contains("available_b \"maybe\" is neither true nor false"), "{said}");
}

const DISCOUNT: f64 = 0.9;

/// At rest one may wait, which earns 0.5, or go, which earns 1 and leads to the market. There a call
/// earns 10, but can be made only one time in ten; otherwise one must wait, which costs 2. Both lead
/// back to rest.
///
/// With V = V(rest), waiting is worth 0.5 + γV, and going 1 + γ(0.1·10 − 0.9·2) + γ²V. With γ = 0.9,
/// waiting forever is worth 5, and going at first only 0.28 + 0.81·5 = 4.33. If a call could always
/// be made, going would be worth 1 + 9 + γ²V.
fn market() -> String {
    let mut rng = Seed(7).rng();
    let mut text = String::from("episode,action,observation,reward,available\n");
    for episode in 0..400 {
        let mut at_rest = true;
        for _ in 0..20 {
            let open = rng.uniform() < 0.1;
            let chance = rng.uniform() < 0.5;
            let (action, reward, available) = match (at_rest, chance) {
                (true, true) => ("wait", 0.5, "wait;go"),
                (true, false) => ("go", 1.0, "wait;go"),
                (false, true) if open => ("call", 10.0, "wait;call"),
                (false, _) => ("wait", -2.0, if open { "wait;call" } else { "wait" }),
            };
            at_rest = !(at_rest && action == "go");
            let seen = if at_rest { "rest" } else { "market" };
            writeln!(text, "{episode},{action},{seen},{reward},{available}").unwrap();
        }
    }
    text
}

fn planned(schema: &str) -> (Plan, Vec<Trajectory>) {
    let (_folder, logs) = table(&market(), schema);
    let model = learn(&logs, &LearnParams { rank: 2, test_dim: 64, history_dim: 64, ..LearnParams::default() }).unwrap();
    let episodes = logs.episodes_for(model.alphabet(), "model").unwrap();
    let params = PlanParams {
        planner: Planner::FittedQ,
        regressor: Regressor::Trees,
        state: StateKind::Last,
        last: 1,
        rounds: 80,
        discount: DISCOUNT,
        ..PlanParams::default()
    };
    (plan_on(&model, &episodes, &params, &mut |_| {}).unwrap(), episodes)
}

#[test]
fn a_plan_expects_only_what_will_be_available() {
    let ((masked, episodes), (unmasked, _)) = (planned("{}"), planned(r#"{"available": "none"}"#));
    let alphabet = masked.alphabet();
    let action = |name: &str| alphabet.action(name).unwrap();
    let at_rest = |plan: &Plan| {
        let mut policy = plan.policy();
        policy.observe(ActionObservation { action: action("wait"), observation: alphabet.observation("rest").unwrap() });
        let best = policy.best_among(&[action("wait"), action("go")]).unwrap();
        (plan.alphabet().action_name(best).to_string(), policy.values()[action("wait").index()])
    };
    // V = 5 but for the noise of 400 episodes and 80 rounds
    let (best, value) = at_rest(&masked);
    assert!(best == "wait" && (value - 5.0).abs() < 0.1, "{best} {value}");
    assert_eq!(at_rest(&unmasked).0, "go");
    // It never takes what was unavailable.
    let taken = masked.actions(&episodes);
    let mut row = 0;
    for z in &episodes {
        for t in 0..z.steps.len() {
            assert!(z.about.available_at(t).unwrap().contains(&taken[row + t]));
        }
        row += z.steps.len() + 1;
    }
    let value = ValueParams { max_steps: Some(20), discount: DISCOUNT, replicates: 4, ..ValueParams::default() };
    let test = OffPolicy { value, rollouts: 10, cross_fit: CrossFit::Never, ..OffPolicy::default() };
    let target = Target { policy: TargetPolicy::Plan(&masked), epsilon: 0.0 };
    let value = test.evaluate(&target, masked.alphabet(), &episodes).unwrap();
    // Waiting for 20 steps earns 5·(1 − γ²⁰) = 4.39.
    let fitted_q = value.by(Estimator::Fqe).unwrap().bounded;
    assert!((fitted_q.value - 5.0 * (1.0 - DISCOUNT.powi(20))).abs() < 0.1, "{fitted_q:?}");
    assert!(value.by(Estimator::Model).is_none(), "a model does not predict what is available");
    assert_eq!(value.learned_from.map(|known| (known.found, known.episodes)), Some((400, 400)));
}

#[test]
fn a_summary_says_how_often_actions_were_unavailable() {
    let (_folder, logs) = table(&market(), "{}");
    let available = Summary::of(&logs).unwrap().available.unwrap();
    assert!(available.restricted == 8000 && available.forced > 1000 && available.mean < 2.0, "{available:?}");
    let (_folder, logs) = table("a,o\nx,y\n", "{}");
    assert_eq!(Summary::of(&logs).unwrap().available, None);
}

#[test]
fn a_solved_pomdp_knows_the_best_of_any_actions() {
    let tiger = domains::get("tiger").unwrap();
    let logs = Logs::memory(tiger.alphabet().clone(), domains::sample(&tiger, 2000, 20, Seed(1)).collect());
    let learn = LearnParams { observe_reward: true, ..LearnParams::default() };
    let recipe = Recipe { learn, refine: Some(RefineParams::default()), ..Recipe::default() };
    let model = recipe.fit(&logs).unwrap().model;
    let episodes = logs.episodes_for(model.alphabet(), "model").unwrap();
    let params = PlanParams { planner: Planner::PointBased, discount: 0.95, ..PlanParams::default() };
    let plan = plan_on(&model, &episodes, &params, &mut |_| {}).unwrap();
    let alphabet = plan.alphabet();
    let [listen, left, right] = ["listen", "open-left", "open-right"].map(|name| alphabet.action(name).unwrap());
    let mut policy = plan.policy();
    assert_eq!(policy.best_among(&[]), None);
    assert_eq!(policy.best_among(&[Action(9)]), None);
    assert_eq!(policy.best_among(&[right]), Some(right));
    policy.observe(ActionObservation { action: listen, observation: alphabet.observation("growl-left(-1)").unwrap() });
    // The tiger is behind the left door with probability 0.85: not yet enough to open one, but if
    // one must be opened, it is the right one.
    assert_eq!(policy.best_among(&[left, right]), Some(right));
    assert_eq!(policy.best_among(&[left, right, listen]), Some(listen));
}
