//! Plans by default on many systems: from random logs, and by the agent with as many steps.
//!
//! `planning-zoo FOLDER [SYSTEM…] [--quick] [--checkpoint DIR]` writes `planning-zoo.csv` (every cell), `planning-zoo.md` (a table) and
//! `planning-zoo.json` (what was run) into FOLDER. A SYSTEM that is a file is added to the built-in ones and their variants; if names of
//! these are given, only they and the files are run.
//!
//! A share is (value − random) / (best − random), all measured by simulation under the domain's discount and horizon. Best is the better of
//! two policies that know the exact model: point-based planning and QMDP, on the exact belief.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use foretell::judge::Test;
use foretell::pomdp::solve::{self, Gap, PointBased};
use foretell::system::Uniform;
use foretell::{
    Agent, AgentParams, Domain, Logs, Model, Plan, PlanParams, Pomdp, Recipe, Seed, SelectParams, Trajectory, agent, domains,
    plan,
};
use foretell_experiments::{Arguments, OverSeeds, Pieces, systems};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Random episodes to learn from.
const EPISODES: [usize; 2] = [1000, 5000];
/// Longest random episodes, in steps.
const MAX_STEPS: usize = 30;
const TEST_EPISODES: usize = 2000;
/// Random episodes whose mean length tells how many an agent needs for as many steps.
const LENGTHS: usize = 200;
const FIRST_SEED: u64 = 4001;
const SEEDS: u64 = 3;
/// Work of the planner in the exact model, in multiplications, and its most rounds.
const EXACT_WORK: u64 = 5_000_000_000;
const EXACT_ROUNDS: usize = 2000;
/// A system counts only if the best policy earns this many standard errors more than a random one.
const TELLS: f64 = 5.0;

/// What a system pays.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Earnings {
    random: f64,
    best: f64,
    /// Standard error of their difference.
    error: f64,
}

/// One plan.
#[derive(Clone, Serialize, Deserialize)]
struct Row {
    system: String,
    /// `logs` or `agent`
    way: String,
    /// Random episodes of the logs.
    size: usize,
    episodes: usize,
    steps: usize,
    seed: u64,
    random: f64,
    best: f64,
    value: f64,
    share: f64,
    /// What decides.
    decides: String,
    /// Seconds to learn and plan, and the part of it for planning where it was measured.
    seconds: f64,
    planning: f64,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::read()?;
    let quick = arguments.quick;
    let mut manifest = json!({
        "episodes": EPISODES, "max_steps": MAX_STEPS, "test_episodes": TEST_EPISODES, "first_seed": FIRST_SEED, "seeds": SEEDS,
        "systems": arguments.words.iter().map(|file| stem(file)).collect::<Vec<_>>(), "quick": quick,
        "planning": PlanParams::default(), "agent": AgentParams::default(), "version": env!("CARGO_PKG_VERSION"),
    });
    let folder = std::env::temp_dir().join(format!("foretell-planning-zoo-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let systems = all_systems(&folder, &arguments.words)?;
    let mut pieces = Pieces::open(&arguments, &manifest)?;
    let (started, mut rows) = (Instant::now(), Vec::new());
    for episodes in EPISODES.into_iter().take(if quick { 1 } else { EPISODES.len() }) {
        for seed in FIRST_SEED..FIRST_SEED + if quick { 1 } else { SEEDS } {
            for (name, domain) in systems.iter().take(if quick { 2 } else { systems.len() }) {
                let label = name.replace([':', '/', '='], "-");
                let earnings = pieces.rows(&format!("{label}-earnings"), || Ok(vec![earnings(domain)?]))?[0];
                if earnings.best - earnings.random < TELLS * earnings.error {
                    continue; // no policy earns more than a random one
                }
                let key = Key { name, domain, earnings, size: episodes, episodes, steps: 0, seed };
                let found = pieces.rows(&format!("{label}-{episodes}-{seed}"), || cells(&key))?;
                for row in &found {
                    eprintln!("{name} {} {}: {:.3}, {:.0} %, {}", row.way, row.steps, row.value, 100.0 * row.share, row.decides);
                }
                rows.extend(found);
                eprintln!("{name}, {episodes} episodes, seed {seed} done after {:.0} s", started.elapsed().as_secs_f64());
            }
            manifest["done"] = json!({ "episodes": episodes, "seeds": seed + 1 - FIRST_SEED });
            manifest["seconds"] = json!(pieces.seconds());
            foretell_experiments::write(&arguments.folder, "planning-zoo", &csv(&rows)?, &table(&rows)?, &manifest)?;
        }
    }
    std::fs::remove_dir_all(&folder)?;
    Ok(pieces.finish()?)
}

/// Names of systems with an exact model, and the systems.
fn all_systems(folder: &Path, words: &[String]) -> anyhow::Result<Vec<(String, Domain)>> {
    let (files, names): (Vec<&String>, Vec<&String>) = words.iter().partition(|word| Path::new(word).is_file());
    let is_wanted = |name: &str| names.is_empty() || names.iter().any(|wanted| *wanted == name);
    let mut all = Vec::new();
    for name in systems::BUILT_IN.into_iter().filter(|name| is_wanted(name)) {
        all.push((name.to_string(), domains::get(name)?));
    }
    for (name, pomdp) in systems::variants()?.into_iter().filter(|(name, _)| is_wanted(name)) {
        let path: PathBuf = folder.join(format!("{name}.POMDP"));
        pomdp.write(&path)?;
        all.push((name, domains::get(&path.display().to_string())?));
    }
    for file in files {
        all.push((stem(file), domains::get(file)?));
    }
    Ok(all)
}

/// The name of a file without its folder and ending.
fn stem(file: &str) -> String {
    Path::new(file).file_stem().map_or(file.to_string(), |stem| stem.to_string_lossy().into_owned())
}

fn test(domain: &Domain, seed: Seed) -> Test<'_> {
    Test { domain, episodes: TEST_EPISODES, max_steps: domain.horizon, discount: domain.discount, seed }
}

fn earnings(domain: &Domain) -> anyhow::Result<Earnings> {
    let pomdp: &Pomdp = domain.pomdp().ok_or_else(|| anyhow::anyhow!("{} has no exact model", domain.name))?;
    let test = test(domain, Seed(FIRST_SEED).stream("earnings"));
    let actions = domain.alphabet().actions().len();
    let random = test.returns(move || Uniform { actions });
    let mut exact = PointBased::new(pomdp, agent::planning_discount(domain.discount), Gap::default())?.within(EXACT_WORK);
    exact.by_ref().take(EXACT_ROUNDS).last();
    let (exact, qmdp) = (exact.solution(), solve::qmdp(pomdp, agent::planning_discount(domain.discount))?);
    let found = [exact, qmdp].map(|solution| test.returns(|| solution.policy(pomdp)));
    let best = if found[0].discounted_return >= found[1].discounted_return { found[0] } else { found[1] };
    let half = random.discounted_ci95.zip(best.discounted_ci95).map_or(0.0, |(x, y)| x.hypot(y));
    let error = half / 1.96;
    Ok(Earnings { random: random.discounted_return, best: best.discounted_return, error })
}

/// Plans from random logs, and those of the agent.
fn cells(key: &Key<'_>) -> anyhow::Result<Vec<Row>> {
    let Key { domain, episodes, seed, .. } = *key;
    let planning = PlanParams { discount: agent::planning_discount(domain.discount), seed, ..PlanParams::default() };
    let walks: Vec<Trajectory> =
        domains::sample(domain, episodes, MAX_STEPS.min(domain.horizon), Seed(seed).stream("walks")).collect();
    let steps = walks.iter().map(|z| z.steps.len()).sum::<usize>();
    let logs = Logs::memory(domain.alphabet().clone(), walks);
    let started = Instant::now();
    let model = Recipe { select: Some(SelectParams::default()), ..Recipe::default() }.fit(&logs)?.model;
    let learned = started.elapsed().as_secs_f64();
    let made = plan(&model, &logs, &planning, &mut |_| {})?;
    let seconds = started.elapsed().as_secs_f64();
    let from_logs = Key { steps, ..*key }.row("logs", &made, [seconds, seconds - learned])?;

    // The agent's episodes are as long as those of random actions at first, up to the domain's horizon.
    let random = domains::sample(domain, LENGTHS, domain.horizon, Seed(seed).stream("lengths"));
    let length = random.map(|z| z.steps.len()).sum::<usize>() as f64 / LENGTHS as f64;
    let episodes = ((steps as f64 / length).round() as usize).max(AgentParams::default().agent_rounds);
    let params = AgentParams { episodes, ..AgentParams::default() };
    let started = Instant::now();
    let mut agent = Agent::new(domain, params, agent::learning(), planning, Seed(seed).stream("agent"))?;
    agent.by_ref().collect::<foretell::Result<Vec<_>>>()?;
    let steps = agent.episodes().iter().map(|z| z.steps.len()).sum();
    let made = agent.plan().expect("an agent has at least one round");
    let by_agent = Key { episodes, steps, ..*key }.row("agent", made, [started.elapsed().as_secs_f64(), 0.0])?;
    Ok(vec![from_logs, by_agent])
}

/// What a row is about.
#[derive(Clone, Copy)]
struct Key<'a> {
    name: &'a str,
    domain: &'a Domain,
    earnings: Earnings,
    /// Random episodes of the logs.
    size: usize,
    episodes: usize,
    steps: usize,
    seed: u64,
}

impl Key<'_> {
    fn row(&self, way: &str, plan: &Plan, [seconds, planning]: [f64; 2]) -> anyhow::Result<Row> {
        let Key { name, domain, earnings: Earnings { random, best, .. }, size, episodes, steps, seed } = *self;
        let returns = test(domain, Seed(seed).stream("test")).returns(plan.policies_for(domain.alphabet())?);
        let value = returns.discounted_return;
        Ok(Row {
            system: name.into(),
            way: way.into(),
            size,
            episodes,
            steps,
            seed,
            random,
            best,
            value,
            share: (value - random) / (best - random),
            decides: decides(plan),
            seconds,
            planning,
        })
    }
}

/// What decides, in a word or two.
fn decides(plan: &Plan) -> String {
    let params = plan.params();
    let states = plan.model().and_then(Model::latent).map_or(String::new(), |latent| format!(" {}", latent.pomdp.states().len()));
    format!("{:?} {:?} {:?}{states}", params.planner, params.regressor, params.state)
}

fn csv(rows: &[Row]) -> anyhow::Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    rows.iter().try_for_each(|row| writer.serialize(row))?;
    Ok(String::from_utf8(writer.into_inner()?)?)
}

fn table(rows: &[Row]) -> anyhow::Result<String> {
    let of_seeds = |n: usize| rows.iter().filter(|row| row.size == n).map(|row| row.seed + 1 - FIRST_SEED).max().unwrap_or(0);
    let seeds = EPISODES.map(|n| format!("{} with {n} episodes", of_seeds(n))).join(", ");
    let mut text = format!(
        "Plans by default: the share of best − random, both measured by simulation under the discount and horizon of the domain \
         ({TEST_EPISODES} test episodes). From random episodes of at most {MAX_STEPS} steps, and by `agent` with as many steps; means over \
         seeds ({seeds}), the least in brackets. Best is the better of point-based planning and QMDP with the exact model.\n\n"
    );
    let columns = [("logs", EPISODES[0]), ("agent", EPISODES[0]), ("logs", EPISODES[1]), ("agent", EPISODES[1])];
    writeln!(
        text,
        "| system | random | best | {} |\n|{}",
        columns.map(|(way, n)| format!("{way}, {n}")).join(" | "),
        "---|".repeat(7)
    )?;
    let names = systems_of(rows);
    let cell = |name: &str, (way, n): (&str, usize)| {
        let of = rows.iter().filter(|row| row.system == name && row.way == way && row.size == n);
        let shares: Vec<f64> = of.map(|row| 100.0 * row.share).collect();
        (!shares.is_empty()).then(|| shares.into_iter().collect::<OverSeeds>())
    };
    for name in &names {
        let row = rows.iter().find(|row| row.system == *name).expect("it is the system of a row");
        let show = |found: Option<OverSeeds>| found.map_or("–".into(), |x| format!("{:.0} ({:.0})", x.mean, x.least));
        let cells = columns.map(|column| show(cell(name, column))).join(" | ");
        writeln!(text, "| {name} | {:.2} | {:.2} | {cells} |", row.random, row.best)?;
    }
    for (label, of) in [("mean", (|x| x.mean) as fn(&OverSeeds) -> f64), ("least", |x| x.least)] {
        let all = columns.map(|column| {
            let found: Vec<OverSeeds> = names.iter().filter_map(|name| cell(name, column)).collect();
            let over: OverSeeds = found.iter().map(of).collect();
            let value = if label == "mean" { over.mean } else { over.least };
            if found.is_empty() { "–".into() } else { format!("{value:.0}") }
        });
        writeln!(text, "| **{label}** | | | {} |", all.join(" | "))?;
    }
    Ok(text)
}

/// The systems of the rows, in order.
fn systems_of(rows: &[Row]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for row in rows {
        if !names.contains(&row.system.as_str()) {
            names.push(&row.system);
        }
    }
    names
}
