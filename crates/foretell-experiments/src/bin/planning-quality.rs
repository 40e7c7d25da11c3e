//! What do policies earn that were planned from logs alone [H14 §6.4]?
//!
//! `planning-quality FOLDER [DOMAIN] [--quick] [--checkpoint DIR]` writes `planning-DOMAIN.csv` (every seed), `planning-DOMAIN.md`
//! (means over seeds) and `planning-DOMAIN.json` (what was run) into FOLDER, for one domain or all. `--quick` takes two seeds and a
//! tenth of the episodes.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::time::Instant;

use foretell::baselines::{Test, Tested};
use foretell::plan::Planner;
use foretell::{
    Agent, AgentParams, Domain, LearnParams, Logs, Model, Plan, PlanParams, RefineParams, Seed, Trajectory, domains, learn, plan,
    refine,
};
use foretell_experiments::{Arguments, OverSeeds, Pieces};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Random episodes that policies are planned from, and those of Algorithm 2 in all.
const EPISODES: usize = 10_000;
/// Episodes of the paper's planner.
const PAPER_EPISODES: usize = 1000;
/// d′ of the paper's models, and of ours.
const PAPER_RANK: usize = 5;
const RANK: usize = 20;
/// Rounds of Algorithm 2.
const ROUNDS: usize = 5;
const TEST_EPISODES: usize = 5000;
const FIRST_SEED: u64 = 201;

/// A domain, and how it is planned in.
struct Setting {
    domain: &'static str,
    seeds: u64,
    /// Of planning.
    discount: f64,
    /// Whether the return is that of the domain's discount, or the plain sum.
    discounted: bool,
    /// Whether Algorithm 2 is tried as well.
    chosen_data: bool,
}

const SETTINGS: [Setting; 4] = [
    Setting { domain: "colored-gridworld", seeds: 10, discount: 0.99, discounted: true, chosen_data: true },
    Setting { domain: "s-pocman", seeds: 5, discount: 0.95, discounted: false, chosen_data: false },
    Setting { domain: "pocman", seeds: 5, discount: 0.95, discounted: false, chosen_data: false },
    Setting { domain: "amm-cpsr", seeds: 5, discount: 0.99, discounted: true, chosen_data: true },
];

/// What a policy earned with one seed.
#[derive(Serialize, Deserialize)]
struct Row {
    domain: String,
    policy: String,
    seed: u64,
    value: f64,
    ci95: f64,
    seconds: f64,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::read()?;
    let (quick, only) = (arguments.quick, arguments.words.first());
    let work = json!({
        "episodes": EPISODES, "paper_episodes": PAPER_EPISODES, "rank": RANK, "paper_rank": PAPER_RANK, "rounds": ROUNDS,
        "test_episodes": TEST_EPISODES, "first_seed": FIRST_SEED, "quick": quick,
        "default": PlanParams::default(), "paper": PlanParams::paper(), "version": env!("CARGO_PKG_VERSION"),
    });
    let discounts: Vec<f64> = SETTINGS.iter().map(|setting| setting.discount).collect();
    let mut pieces = Pieces::open(&arguments, &json!({ "what": work, "discounts": discounts }))?;
    for setting in SETTINGS.iter().filter(|setting| only.is_none_or(|name| name == setting.domain)) {
        let started = Instant::now();
        let domain = domains::get(setting.domain)?;
        let mut rows = Vec::new();
        for seed in FIRST_SEED..FIRST_SEED + if quick { 2 } else { setting.seeds } {
            let run = || run(setting, &domain, seed, if quick { 10 } else { 1 });
            rows.extend(pieces.rows(&format!("{}-seed-{seed}", setting.domain), run)?);
            eprintln!("{} seed {seed} done after {:.0} s", setting.domain, started.elapsed().as_secs_f64());
        }
        let mut manifest = work.clone();
        manifest["discount"] = json!(setting.discount);
        manifest["seconds"] = json!(pieces.seconds().map(|_| started.elapsed().as_secs_f64().round()));
        foretell_experiments::write(
            &arguments.folder,
            &format!("planning-{}", setting.domain),
            &csv(&rows)?,
            &table(setting, &rows)?,
            &manifest,
        )?;
    }
    Ok(pieces.finish()?)
}

/// A way to plan on random episodes.
struct Method {
    name: &'static str,
    learned: Learned,
    planning: PlanParams,
}

/// What a plan starts from.
#[derive(Clone, Copy, PartialEq)]
enum Learned {
    Linear,
    Refined,
    /// From fewer episodes.
    Paper,
}

fn methods(planning: &PlanParams) -> Vec<Method> {
    let qmdp = |pessimism| PlanParams { planner: Planner::Qmdp, pessimism, ..planning.clone() };
    let paper = PlanParams { discount: planning.discount, seed: planning.seed, ..PlanParams::paper() };
    vec![
        Method { name: "foretell", learned: Learned::Refined, planning: planning.clone() },
        Method { name: "refined, QMDP", learned: Learned::Refined, planning: qmdp(0.0) },
        Method { name: "refined, QMDP, pessimism 1", learned: Learned::Refined, planning: qmdp(1.0) },
        Method { name: "fitted-Q", learned: Learned::Linear, planning: planning.clone() },
        Method {
            name: "fitted-Q, pessimism 1",
            learned: Learned::Linear,
            planning: PlanParams { pessimism: 1.0, ..planning.clone() },
        },
        Method { name: "the paper's recipe, 1000 episodes", learned: Learned::Paper, planning: paper },
    ]
}

fn run(setting: &Setting, domain: &Domain, seed: u64, less: usize) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    let test = Test {
        domain,
        episodes: TEST_EPISODES,
        max_steps: domain.horizon,
        discount: domain.discount,
        seed: Seed(seed).stream("test"),
    };
    let mut add = |tested: Tested, seconds| {
        let r = &tested.returns;
        let (value, ci95) = if setting.discounted { (r.discounted_return, r.discounted_ci95) } else { (r.mean_return, r.ci95) };
        rows.push(Row { domain: setting.domain.into(), policy: tested.policy, seed, value, ci95, seconds });
    };
    let mut earned = |name: &str, plan: &Plan, seconds| -> anyhow::Result<()> {
        add(Tested { policy: name.into(), returns: test.returns(plan.policies_for(domain.alphabet())?) }, seconds);
        Ok(())
    };
    let learning = LearnParams { rank: RANK, seed, ..LearnParams::default() };
    let planning = PlanParams { discount: setting.discount, seed, ..PlanParams::default() };
    let sample = |episodes: usize| -> Vec<Trajectory> {
        domains::sample(domain, episodes / less, domain.horizon, Seed(seed).stream("agent").index(0)).collect()
    };
    let timed = |logs: &Logs, params: &LearnParams, is_refined: bool| -> anyhow::Result<(Model, Vec<Trajectory>, f64)> {
        let started = Instant::now();
        let mut model = learn(logs, params)?;
        if is_refined {
            model = refine(&model, logs, &RefineParams::default())?;
        }
        let seconds = started.elapsed().as_secs_f64();
        let episodes = logs.open(model.alphabet().clone())?.collect::<Result<_, _>>()?;
        Ok((model, episodes, seconds))
    };
    let memory = |episodes: Vec<Trajectory>| Logs::memory(domain.alphabet().clone(), episodes);
    let random = sample(EPISODES);
    let logs = memory(random.clone());
    let paper = LearnParams { rank: PAPER_RANK, seed, ..LearnParams::paper() };
    let learned = [
        (Learned::Linear, timed(&logs, &learning, false)?),
        (Learned::Refined, timed(&logs, &learning, true)?),
        (Learned::Paper, timed(&memory(sample(PAPER_EPISODES)), &paper, false)?),
    ];
    for method in methods(&planning) {
        let (_, (model, episodes, learning)) =
            learned.iter().find(|(kind, _)| *kind == method.learned).expect("all kinds were learned");
        let started = Instant::now();
        let made = plan(model, episodes, &method.planning, &mut |_| {})?;
        earned(method.name, &made, learning + started.elapsed().as_secs_f64())?;
    }
    if setting.chosen_data {
        for (name, refine) in [("fitted-Q, Algorithm 2", false), ("foretell, Algorithm 2", true)] {
            let params = AgentParams { agent_rounds: ROUNDS, episodes: EPISODES / less, refine, ..AgentParams::default() };
            let started = Instant::now();
            let mut agent = Agent::new(domain, params, learning.clone(), planning.clone(), Seed(seed))?;
            agent.by_ref().collect::<Result<Vec<_>, _>>()?;
            let seconds = started.elapsed().as_secs_f64();
            earned(name, agent.plan().expect("an agent has at least one round"), seconds)?;
        }
    }
    test.baselines(&random, setting.discount)?.into_iter().for_each(|tested| add(tested, 0.0));
    if let Some((qmdp, _)) = test.informed() {
        add(qmdp, 0.0);
    }
    Ok(rows)
}

fn csv(rows: &[Row]) -> anyhow::Result<String> {
    let mut text = String::from("domain,policy,seed,return,ci95,seconds\n");
    for Row { domain, policy, seed, value, ci95, seconds } in rows {
        writeln!(text, "{domain},\"{policy}\",{seed},{value:.4},{ci95:.4},{seconds:.2}")?;
    }
    Ok(text)
}

fn table(setting: &Setting, rows: &[Row]) -> anyhow::Result<String> {
    let what = if setting.discounted { "Discounted" } else { "Undiscounted" };
    let mut text = format!(
        "{what} return in {}: mean, standard deviation and least over seeds; ± is half a 95 % interval of the mean over seeds.\n\n",
        setting.domain
    );
    writeln!(text, "| policy | mean | ± | sd | least | over random | seconds |\n|---|---|---|---|---|---|---|")?;
    let mut names: Vec<&str> = rows.iter().map(|row| single(&row.policy)).collect();
    let mut seen = HashSet::new();
    names.retain(|name| seen.insert(*name));
    let of = |name: &str| rows.iter().filter(move |row| single(&row.policy) == name).collect::<Vec<&Row>>();
    let random: OverSeeds = of("random").iter().map(|row| row.value).collect();
    for name in names {
        let rows = of(name);
        let OverSeeds { mean, half, sd, least, .. } = rows.iter().map(|row| row.value).collect();
        let seconds: OverSeeds = rows.iter().map(|row| row.seconds).collect();
        let time = if seconds.mean > 0.0 { format!("{:.1}", seconds.mean) } else { "–".into() };
        let gain = 100.0 * (mean / random.mean - 1.0);
        // A share of what is near zero, or below it, says nothing.
        let gain = if random.mean > 1.0 { format!("{gain:+.2} %") } else { "–".into() };
        let digits = if setting.discounted && random.mean < 1.0 { 3 } else { 1 };
        let [mean, half, sd, least] = [mean, half, sd, least].map(|x| format!("{x:.digits$}"));
        writeln!(text, "| {name} | {mean} | {half} | {sd} | {least} | {gain} | {time} |")?;
    }
    Ok(text)
}

/// The best single action may differ between seeds; it has one row.
fn single(policy: &str) -> &str {
    if policy.starts_with("always ") { "always the same action" } else { policy }
}
