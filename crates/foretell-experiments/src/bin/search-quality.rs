//! Whether a search finds parameters that predict new logs at least as well as `default`, and its
//! cost.
//!
//! `search-quality FOLDER [FILE.POMDP…] [--quick] [--checkpoint DIR]` writes `search-quality.csv` (every seed), `search-quality.md` (means
//! over seeds) and `search-quality.json` (what was run) into FOLDER, for built-in domains and the files named.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Instant;

use foretell::judge::search::{Folds, Held, Search, Space};
use foretell::store::digest;
use foretell::{Domain, LearnOverrides, LearnParams, Logs, Seed, domains, learn, score};
use foretell_experiments::{Arguments, OverSeeds, Pieces};
use serde::{Deserialize, Serialize};
use serde_json::json;

const BUILT_IN: [&str; 3] = ["colored-gridworld", "tiger", "amm-cpsr"];
/// Steps of the logs for the search, and of new logs for the test.
const STEPS: usize = 100_000;
const FRESH_STEPS: usize = 200_000;
/// Longer episodes are truncated.
const LONGEST: usize = 50;
const FIRST_SEED: u64 = 901;
const SEEDS: u64 = 5;
/// Time limit of a search in seconds, the default of the command line.
const BUDGET: f64 = 60.0;
/// Cost comparison: all candidates of these dimensions and ranks together, and learning with each
/// dimension twice.
const DIMS: [usize; 5] = [128, 256, 512, 768, 1024];
const RANKS: [usize; 10] = [2, 4, 6, 8, 12, 16, 24, 32, 40, 48];
const COST_DOMAIN: &str = "colored-gridworld";

/// Result of one seed.
#[derive(Serialize, Deserialize)]
struct Row {
    domain: String,
    seed: u64,
    /// Nats per step of new logs.
    default: f64,
    found: f64,
    /// Standard error of their difference, and the gain that the search estimated.
    error: f64,
    promised: f64,
    candidates: usize,
    seconds: f64,
    parameters: String,
}

/// Time of all candidates together, and of separate learning.
#[derive(Serialize, Deserialize)]
struct Cost {
    candidates: usize,
    together: f64,
    learned: usize,
    apart: f64,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::read()?;
    let (seeds, steps) = if arguments.quick { (1, STEPS / 10) } else { (SEEDS, STEPS) };
    let read = |file: &String| fs::read(file).map(|bytes| digest(&bytes));
    let files = arguments.words.iter().map(read).collect::<Result<Vec<String>, _>>()?;
    let mut manifest = json!({
        "domains": BUILT_IN, "files": files, "steps": steps, "fresh_steps": FRESH_STEPS, "longest": LONGEST,
        "first_seed": FIRST_SEED, "seeds": seeds, "budget": BUDGET, "dims": DIMS, "ranks": RANKS,
        "default": LearnParams::default(), "version": env!("CARGO_PKG_VERSION"),
    });
    let mut pieces = Pieces::open(&arguments, &manifest)?;
    let named = BUILT_IN.iter().map(ToString::to_string).chain(arguments.words.iter().cloned());
    let mut rows: Vec<Row> = Vec::new();
    for name in named {
        let domain = domains::get(&name)?;
        let short = Path::new(&name).file_stem().map_or(name.clone(), |stem| stem.to_string_lossy().to_lowercase());
        for seed in FIRST_SEED..FIRST_SEED + seeds {
            let run = || Ok(vec![run(&domain, &short, seed, steps)?]);
            rows.extend(pieces.rows(&format!("{short}-{seed}"), run)?);
            let Row { default, found, seconds, .. } = &rows[rows.len() - 1];
            eprintln!("{short} {seed}: {default:.4} to {found:.4} in {seconds:.0} s");
        }
    }
    let costs = pieces.rows("cost", || Ok(vec![cost(steps)?]))?;
    manifest["seconds"] = json!(pieces.seconds());
    let (csv, table) = (csv(&rows)?, table(&rows, &costs[0], steps)?);
    foretell_experiments::write(&arguments.folder, "search-quality", &csv, &table, &manifest)?;
    Ok(pieces.finish()?)
}

fn sample(domain: &Domain, steps: usize, seed: Seed) -> Logs {
    let longest = domain.horizon.min(LONGEST);
    Logs::memory(domain.alphabet().clone(), domains::sample(domain, steps / longest, longest, seed).collect())
}

fn run(domain: &Domain, name: &str, seed: u64, steps: usize) -> anyhow::Result<Row> {
    let logs = sample(domain, steps, Seed(seed).stream("train"));
    let fresh = sample(domain, FRESH_STEPS, Seed(seed).stream("fresh"));
    let base = LearnParams { seed, ..LearnParams::default() };
    let started = Instant::now();
    let mut spent = || started.elapsed().as_secs_f64() / BUDGET;
    let search = Search::new(&base, Space::around(&base, &LearnOverrides::default())).budget(&mut spent);
    let result = search.run(&logs)?;
    let seconds = started.elapsed().as_secs_f64();
    let chosen = &result.chosen.params;
    let of = |params: &LearnParams| anyhow::Ok(score(&learn(&logs, params)?, &fresh, None)?);
    let (default, found) = (of(&base)?, of(chosen)?);
    let LearnParams { test_projection, test_dim, max_test_length, history_length, rank, mix, .. } = chosen;
    Ok(Row {
        domain: name.into(),
        seed,
        default: default.per_step,
        found: found.per_step,
        error: result.chosen.error,
        promised: result.chosen.gain,
        candidates: result.tried.len(),
        seconds,
        parameters: format!("{test_projection:?} {test_dim} {max_test_length}/{history_length} rank {rank} mix {mix}")
            .to_lowercase(),
    })
}

/// All candidates with moments and decompositions shared, and each dimension learned twice, in one process on the same logs.
fn cost(steps: usize) -> anyhow::Result<Cost> {
    let logs = sample(&domains::get(COST_DOMAIN)?, steps, Seed(FIRST_SEED).stream("cost"));
    let of_dim = |dim: usize| LearnParams { test_dim: dim, history_dim: dim, ..LearnParams::default() };
    let started = Instant::now();
    let folds = Folds::read(&logs, &LearnParams::default(), foretell::judge::search::FOLDS)?;
    let mut candidates = 0;
    for dim in DIMS {
        candidates += folds.sweep(&of_dim(dim), &RANKS, &[0.0], Held::Sample)?.len();
    }
    let together = started.elapsed().as_secs_f64();
    let started = Instant::now();
    let mut learned = 0;
    for dim in DIMS {
        for rank in [RANKS[RANKS.len() / 2], RANKS[RANKS.len() - 1]] {
            learn(&logs, &LearnParams { rank, ..of_dim(dim) })?;
            learned += 1;
        }
    }
    Ok(Cost { candidates, together, learned, apart: started.elapsed().as_secs_f64() })
}

fn csv(rows: &[Row]) -> anyhow::Result<String> {
    let mut text = String::from("domain,seed,default,found,gain,promised,error,candidates,seconds,parameters\n");
    for row in rows {
        let Row { domain, seed, default, found, promised, error, candidates, seconds, parameters } = row;
        let gain = found - default;
        writeln!(
            text,
            "{domain},{seed},{default:.5},{found:.5},{gain:.5},{promised:.5},{error:.5},{candidates},{seconds:.1},{parameters}"
        )?;
    }
    Ok(text)
}

fn table(rows: &[Row], cost: &Cost, steps: usize) -> anyhow::Result<String> {
    let mut text = format!(
        "Log-likelihood of new logs, nats per step, learned from {steps} steps with `default` and with the parameters found by a search of at most {BUDGET} s. Means over seeds (± 95 %); minimum is the worst seed; estimated is the gain by the search's own cross-validation.\n\n"
    );
    text.push_str("| domain | default | found | gain | ± | minimum | estimated | candidates | seconds |\n|---|---|---|---|---|---|---|---|---|\n");
    for of_domain in rows.chunk_by(|x, y| x.domain == y.domain) {
        let mean = |of: &dyn Fn(&Row) -> f64| -> OverSeeds { of_domain.iter().map(of).collect() };
        let gain = mean(&|row| row.found - row.default);
        writeln!(
            text,
            "| {} | {:.4} | {:.4} | {:.4} | {:.4} | {:.4} | {:.4} | {:.0} | {:.1} |",
            of_domain[0].domain,
            mean(&|row| row.default).mean,
            mean(&|row| row.found).mean,
            gain.mean,
            gain.half,
            gain.least,
            mean(&|row| row.promised).mean,
            mean(&|row| row.candidates as f64).mean,
            mean(&|row| row.seconds).mean,
        )?;
    }
    let Cost { candidates, together, learned, apart } = cost;
    writeln!(
        text,
        "\n{candidates} candidates of {COST_DOMAIN} (dimensions {DIMS:?}, ranks {RANKS:?}) took {together:.2} s together, reading and scoring included; {learned} times learning with the same dimensions took {apart:.2} s."
    )?;
    Ok(text)
}
