//! The benefit of propensity weights where actions were not chosen independently of observations.
//!
//! `weighting FOLDER [DOMAIN…] [--quick] [--checkpoint DIR]` writes `weighting.csv` (every seed),
//! `.md` (means over seeds) and `.json` (what was run) into FOLDER. The training logs are of an
//! agent's policy that takes a uniformly random action with probability ε. The test logs are of
//! uniformly random actions.

use std::fmt::Write as _;
use std::time::Instant;

use foretell::system::Exploring;
use foretell::{
    Agent, AgentParams, Domain, LearnParams, Logs, Model, Plan, PlanParams, RefineParams, Seed, Weighting, agent, domains, learn,
    refine, score,
};
use foretell_experiments::{Arguments, OverSeeds, Pieces};
use serde::{Deserialize, Serialize};
use serde_json::json;

const DOMAINS: [&str; 1] = ["colored-gridworld"];
const EPISODES: usize = 10_000;
const TEST_EPISODES: usize = 10_000;
const EPSILONS: [f64; 3] = [0.1, 0.3, 0.5];
const FIRST_SEED: u64 = 701;
const SEEDS: u64 = 3;
const RECIPES: [&str; 3] = ["default", "paper", "refined"];
const WEIGHTINGS: [(&str, Weighting); 3] =
    [("none", Weighting::None), ("next", Weighting::Next), ("propensity", Weighting::Propensity)];

/// Gap of one model to the exact one on logs of uniformly random actions.
#[derive(Serialize, Deserialize)]
struct Row {
    domain: String,
    epsilon: f64,
    recipe: String,
    weighting: String,
    seed: u64,
    gap: f64,
    seconds: f64,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::read()?;
    let quick = arguments.quick;
    let names: Vec<&str> =
        if arguments.words.is_empty() { DOMAINS.to_vec() } else { arguments.words.iter().map(String::as_str).collect() };
    let mut manifest = json!({
        "domains": names, "episodes": EPISODES, "test_episodes": TEST_EPISODES, "epsilons": EPSILONS, "first_seed": FIRST_SEED,
        "quick": quick, "default": LearnParams::default(), "paper": LearnParams::paper(), "refinement": RefineParams::default(),
        "agent": AgentParams::default(), "agent_rank": agent::learning().rank, "version": env!("CARGO_PKG_VERSION"),
    });
    let mut pieces = Pieces::open(&arguments, &manifest)?;
    let started = Instant::now();
    let mut rows = Vec::new();
    for name in &names {
        let domain = domains::get(name)?;
        for seed in FIRST_SEED..FIRST_SEED + if quick { 1 } else { SEEDS } {
            rows.extend(pieces.rows(&format!("{name}-seed-{seed}"), || run(name, &domain, seed, if quick { 10 } else { 1 }))?);
            eprintln!("{name} seed {seed} done after {:.0} s", started.elapsed().as_secs_f64());
        }
    }
    manifest["seconds"] = json!(pieces.seconds());
    foretell_experiments::write(&arguments.folder, "weighting", &csv(&rows)?, &table(&names, &rows)?, &manifest)?;
    Ok(pieces.finish()?)
}

fn run(name: &str, domain: &Domain, seed: u64, less: usize) -> anyhow::Result<Vec<Row>> {
    let stream = |name: &str| Seed(seed).stream(name);
    let logs = |episodes| Logs::memory(domain.alphabet().clone(), episodes);
    let test = logs(domains::sample(domain, TEST_EPISODES / less, domain.horizon, stream("held out")).collect());
    let plan = plan(domain, seed, less)?;
    let (policy, actions) = (plan.policies_for(domain.alphabet())?, domain.alphabet().actions().len());
    let mut rows = Vec::new();
    for epsilon in EPSILONS {
        let exploring = || Exploring::new(policy(), epsilon, actions);
        let training = domains::sample_with(domain, exploring, EPISODES / less, domain.horizon, stream("train")).collect();
        let training = logs(training);
        for recipe in RECIPES {
            for (weighting_name, weighting) in WEIGHTINGS {
                let started = Instant::now();
                let model = model(recipe, weighting, &training, seed)?;
                let seconds = started.elapsed().as_secs_f64();
                let gap = gap(&model, &test, domain)?;
                let (domain, recipe, weighting) = (name.into(), recipe.into(), weighting_name.into());
                rows.push(Row { domain, epsilon, recipe, weighting, seed, gap, seconds });
            }
        }
    }
    Ok(rows)
}

/// The plan of an agent.
fn plan(domain: &Domain, seed: u64, less: usize) -> anyhow::Result<Plan> {
    let params = AgentParams { episodes: AgentParams::default().episodes / less, ..AgentParams::default() };
    let learning = LearnParams { seed, ..agent::learning() };
    let mut agent = Agent::new(domain, params, learning, PlanParams::default(), Seed(seed).stream("agent"))?;
    agent.by_ref().try_for_each(|round| round.map(drop))?;
    Ok(agent.plan().expect("an agent has at least one round").clone())
}

fn model(recipe: &str, weighting: Weighting, training: &Logs, seed: u64) -> foretell::Result<Model> {
    let preset = if recipe == "paper" { LearnParams::paper() } else { LearnParams::default() };
    let model = learn(training, &LearnParams { weighting, seed, ..preset })?;
    if recipe == "refined" { refine(&model, training, &RefineParams::default()) } else { Ok(model) }
}

/// Gap to the exact model over whole episodes, nats.
fn gap(model: &Model, test: &Logs, domain: &Domain) -> foretell::Result<f64> {
    let score = score(model, test, domain.pomdp())?;
    let last = domain.horizon - 1;
    let truth = score.truth.expect("domains of this experiment are finite")[last].log_likelihood;
    Ok(truth - score.horizons[last].log_likelihood)
}

fn csv(rows: &[Row]) -> anyhow::Result<String> {
    let mut text = String::from("domain,epsilon,recipe,weighting,seed,gap,seconds\n");
    for Row { domain, epsilon, recipe, weighting, seed, gap, seconds } in rows {
        writeln!(text, "{domain},{epsilon},{recipe},{weighting},{seed},{gap:.4},{seconds:.2}")?;
    }
    Ok(text)
}

fn table(names: &[&str], rows: &[Row]) -> anyhow::Result<String> {
    let mut text = format!(
        "Gap to the exact model, nats, over {TEST_EPISODES} whole episodes of uniformly random actions, learned from {EPISODES} episodes \
         of an agent that takes a uniformly random action with probability ε: mean and half a 95 % interval over {SEEDS} seeds.\n\n"
    );
    let columns: Vec<String> = WEIGHTINGS.iter().map(|(weighting, _)| format!("{weighting} | ±")).collect();
    writeln!(text, "| domain | ε | recipe | {} |\n|{}", columns.join(" | "), "---|".repeat(3 + 2 * WEIGHTINGS.len()))?;
    for name in names {
        for (epsilon, recipe) in EPSILONS.into_iter().flat_map(|epsilon| RECIPES.map(|recipe| (epsilon, recipe))) {
            let is_asked = |row: &&Row| (row.epsilon, row.recipe.as_str()) == (epsilon, recipe) && row.domain == *name;
            write!(text, "| {name} | {epsilon} | {recipe} |")?;
            for (weighting, _) in WEIGHTINGS {
                let of = rows.iter().filter(is_asked).filter(|row| row.weighting == weighting);
                let gap: OverSeeds = of.map(|row| row.gap).collect();
                write!(text, " {:.2} | {:.2} |", gap.mean, gap.half)?;
            }
            writeln!(text)?;
        }
    }
    Ok(text)
}
