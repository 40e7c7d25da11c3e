//! Returns of policies learned from few random episodes in classic problems, compared with the
//! optimum.
//!
//! `classics FOLDER [FILE.POMDP…] [--quick] [--checkpoint DIR]` writes `classics.csv` (every seed), `classics.md` (means over seeds) and
//! `classics.json` (what was run) into FOLDER, for the built-in problems and the files named.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Instant;

use foretell::judge::Test;
use foretell::pomdp::solve::{Gap, PointBased};
use foretell::store::digest;
use foretell::{Domain, LearnParams, Logs, PlanParams, RefineParams, Seed, domains, learn, plan, refine};
use foretell_experiments::{Arguments, OverSeeds, Pieces};
use serde::{Deserialize, Serialize};
use serde_json::json;

const BUILT_IN: [&str; 2] = ["tiger", "float-reset"];
const EPISODES: usize = 1000;
const MAX_STEPS: usize = 30;
const FIRST_SEED: u64 = 801;
const SEEDS: u64 = 5;
const TEST_EPISODES: usize = 5000;
/// Test episodes are truncated where the discount is below this.
const NEGLIGIBLE: f64 = 1e-3;
/// Time limit of the exact planner, in seconds; its bounds show how far it came.
const EXACT_SECONDS: f64 = 30.0;

/// Refined models, the same with rewards as part of observations, and fitted-Q on linear models.
const POLICIES: [&str; 3] = ["foretell", OBSERVING, FITTED];
const OBSERVING: &str = "foretell, rewards observed";
const FITTED: &str = "fitted-Q";

/// A problem, and the bounds of its optimal value.
struct Problem {
    name: String,
    domain: Domain,
    earnings: Earnings,
}

/// The value of a random policy, and bounds of the optimal value, which depend on the time limit.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Earnings {
    random: f64,
    lower: f64,
    upper: f64,
}

/// The return of a policy with one seed.
#[derive(Serialize, Deserialize)]
struct Row {
    problem: String,
    policy: String,
    seed: u64,
    value: f64,
    ci95: f64,
    share: f64,
    seconds: f64,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::read()?;
    let quick = arguments.quick;
    let names: Vec<&str> = BUILT_IN.into_iter().chain(arguments.words.iter().map(String::as_str)).collect();
    let mut manifest = json!({
        "episodes": EPISODES, "max_steps": MAX_STEPS, "test_episodes": TEST_EPISODES, "first_seed": FIRST_SEED, "quick": quick,
        "exact_seconds": EXACT_SECONDS, "learning": LearnParams::default(), "refinement": RefineParams::default(), "planning": PlanParams::default(),
        "version": env!("CARGO_PKG_VERSION"),
    });
    // Names of problems may differ from those of files.
    let files: Vec<Option<String>> = names.iter().map(|name| fs::read(name).ok().map(|bytes| digest(&bytes))).collect();
    let mut pieces = Pieces::open(&arguments, &json!({ "what": manifest, "problems": names, "files": files }))?;
    let started = Instant::now();
    let (mut problems, mut rows) = (Vec::new(), Vec::new());
    for name in names {
        let problem = problem(name, &mut pieces)?;
        for seed in FIRST_SEED..FIRST_SEED + if quick { 1 } else { SEEDS } {
            rows.extend(pieces.rows(&format!("{}-seed-{seed}", problem.name), || run(&problem, seed))?);
        }
        eprintln!("{} done after {:.0} s", problem.name, started.elapsed().as_secs_f64());
        problems.push(problem);
    }
    manifest["seconds"] = json!(pieces.seconds());
    foretell_experiments::write(&arguments.folder, "classics", &csv(&rows)?, &table(&problems, &rows)?, &manifest)?;
    Ok(pieces.finish()?)
}

fn problem(name: &str, pieces: &mut Pieces) -> anyhow::Result<Problem> {
    let domain = domains::get(name)?;
    let name = Path::new(name).file_stem().map_or(name.into(), |stem| stem.to_string_lossy().into_owned());
    let earnings = pieces.rows(&format!("{name}-bounds"), || Ok(vec![earnings(&name, &domain)?]))?[0];
    Ok(Problem { name, domain, earnings })
}

fn earnings(name: &str, domain: &Domain) -> anyhow::Result<Earnings> {
    let pomdp = domain.pomdp().ok_or_else(|| anyhow::anyhow!("{name} has no exact model"))?;
    let random = pomdp.uniform_policy_value().ok_or_else(|| anyhow::anyhow!("{name} has no discount below 1"))?;
    let mut exact = PointBased::new(pomdp, domain.discount, Gap::default())?;
    let started = Instant::now();
    exact.by_ref().take_while(|_| started.elapsed().as_secs_f64() < EXACT_SECONDS).last();
    let bounds = exact.round();
    Ok(Earnings { random, lower: bounds.lower, upper: bounds.upper })
}

fn run(problem: &Problem, seed: u64) -> anyhow::Result<Vec<Row>> {
    let Problem { name, domain, earnings: Earnings { random, lower, .. } } = problem;
    let mut rows = Vec::new();
    let walks = domains::sample(domain, EPISODES, MAX_STEPS, Seed(seed).stream("walks")).collect();
    let logs = Logs::memory(domain.alphabet().clone(), walks);
    let planning = PlanParams { discount: domain.discount, seed, ..PlanParams::default() };
    let max_steps = (NEGLIGIBLE.ln() / domain.discount.ln()).ceil().max(1.0) as usize;
    let (episodes, discount) = (TEST_EPISODES, domain.discount);
    let test = Test { domain, episodes, max_steps, discount, seed: Seed(seed).stream("test") };
    for policy in POLICIES {
        let started = Instant::now();
        let observe_reward = policy == OBSERVING;
        let mut model = learn(&logs, &LearnParams { seed, observe_reward, ..LearnParams::default() })?;
        if policy != FITTED {
            model = refine(&model, &logs, &RefineParams::default())?;
        }
        let made = plan(&model, &logs, &planning, &mut |_| {})?;
        let seconds = started.elapsed().as_secs_f64();
        let returns = test.returns(made.policies_for(domain.alphabet())?);
        let (value, ci95) = (returns.discounted_return, returns.discounted_ci95.unwrap_or(0.0));
        let share = (value - random) / (lower - random);
        rows.push(Row { problem: name.clone(), policy: policy.into(), seed, value, ci95, share, seconds });
    }
    Ok(rows)
}

fn csv(rows: &[Row]) -> anyhow::Result<String> {
    let mut text = String::from("problem,policy,seed,return,ci95,share,seconds\n");
    for Row { problem, policy, seed, value, ci95, share, seconds } in rows {
        writeln!(text, "{problem},\"{policy}\",{seed},{value:.4},{ci95:.4},{share:.4},{seconds:.2}")?;
    }
    Ok(text)
}

fn table(problems: &[Problem], rows: &[Row]) -> anyhow::Result<String> {
    let mut text = format!(
        "Discounted return of policies learned from {EPISODES} random episodes of at most {MAX_STEPS} steps: mean, half a 95 % interval over \
         seeds, minimum, and the share of the gain of the best policy over a random one. The value of the best policy is bounded with \
         the exact model; the share refers to the lower bound.\n\n"
    );
    writeln!(
        text,
        "| problem | random | best | policy | return | ± | minimum | share | minimum share | seconds |\n|{}",
        "---|".repeat(10)
    )?;
    for Problem { name, earnings: Earnings { random, lower, upper }, .. } in problems {
        for policy in POLICIES {
            let of: Vec<&Row> = rows.iter().filter(|row| row.problem == *name && row.policy == policy).collect();
            let over = |value: fn(&Row) -> f64| of.iter().map(|row| value(row)).collect::<OverSeeds>();
            let (value, share, seconds) = (over(|row| row.value), over(|row| row.share), over(|row| row.seconds));
            let percent = |share: f64| format!("{:.1} %", 100.0 * share);
            writeln!(
                text,
                "| {name} | {random:.3} | {lower:.3} to {upper:.3} | {policy} | {:.3} | {:.3} | {:.3} | {} | {} | {:.1} |",
                value.mean,
                value.half,
                value.least,
                percent(share.mean),
                percent(share.least),
                seconds.mean
            )?;
        }
    }
    Ok(text)
}
