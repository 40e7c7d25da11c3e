//! Prediction quality of refined models in other domains, compared with linear models, n-grams and
//! the exact model if there is one.
//!
//! `refinement-domains FOLDER [--quick] [--checkpoint DIR]` writes `refinement-domains.csv` (every seed), `.md` (means over seeds) and
//! `.json` (what was run) into FOLDER.

use std::fmt::Write as _;
use std::time::Instant;

use foretell::{Domain, HorizonScore, LearnParams, Logs, RefineParams, Seed, domains, learn, refine, score};
use foretell_experiments::{Arguments, OverSeeds, Pieces};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Domains, and the horizon of their episodes.
const DOMAINS: [(&str, usize); 3] = [("amm-cpsr", 50), ("s-pocman", 75), ("pocman", 75)];
const EPISODES: usize = 10_000;
const TEST_EPISODES: usize = 2000;
const FIRST_SEED: u64 = 421;
const SEEDS: u64 = 5;

/// Log-likelihood of whole episodes under one method.
#[derive(Serialize, Deserialize)]
struct Row {
    domain: String,
    method: String,
    seed: u64,
    log_likelihood: f64,
    /// Gap to the exact model, nats per step, if there is one.
    gap: Option<f64>,
    seconds: f64,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::read()?;
    let quick = arguments.quick;
    let mut manifest = json!({
        "domains": DOMAINS, "episodes": EPISODES, "test_episodes": TEST_EPISODES, "first_seed": FIRST_SEED, "quick": quick,
        "learning": LearnParams::default(), "refinement": RefineParams::default(), "version": env!("CARGO_PKG_VERSION"),
    });
    let mut pieces = Pieces::open(&arguments, &manifest)?;
    let started = Instant::now();
    let mut rows = Vec::new();
    for (name, horizon) in DOMAINS {
        let domain = domains::get(name)?;
        for seed in FIRST_SEED..FIRST_SEED + if quick { 2 } else { SEEDS } {
            let run = || run(name, &domain, horizon, seed, if quick { 10 } else { 1 });
            rows.extend(pieces.rows(&format!("{name}-seed-{seed}"), run)?);
            eprintln!("{name} seed {seed} done after {:.0} s", started.elapsed().as_secs_f64());
        }
    }
    manifest["seconds"] = json!(pieces.seconds());
    foretell_experiments::write(&arguments.folder, "refinement-domains", &csv(&rows)?, &table(&rows)?, &manifest)?;
    Ok(pieces.finish()?)
}

fn run(name: &str, domain: &Domain, horizon: usize, seed: u64, less: usize) -> anyhow::Result<Vec<Row>> {
    let sample = |name, episodes: usize| {
        let episodes = domains::sample(domain, episodes / less, horizon, Seed(seed).stream(name)).collect();
        Logs::memory(domain.alphabet().clone(), episodes)
    };
    let (training, test) = (sample("train", EPISODES), sample("held out", TEST_EPISODES));
    let last = |scores: &[HorizonScore]| scores[horizon - 1].log_likelihood;
    let started = Instant::now();
    let model = learn(&training, &LearnParams { seed, ..LearnParams::default() })?;
    let learned = started.elapsed().as_secs_f64();
    let refined = refine(&model, &training, &RefineParams::default())?;
    let both = started.elapsed().as_secs_f64();
    let linear = score(&model, &test, domain.pomdp())?;
    let truth = linear.truth.as_deref().map(last);
    let ngrams = linear.baselines.iter().filter(|(name, _)| name.contains("gram"));
    let ngram = ngrams.map(|(_, scores)| last(scores)).fold(f64::NEG_INFINITY, f64::max);
    let mut rows = Vec::new();
    let mut add = |method: &str, log_likelihood, seconds| {
        let gap = truth.map(|truth| (truth - log_likelihood) / horizon as f64);
        rows.push(Row { domain: name.into(), method: method.into(), seed, log_likelihood, gap, seconds });
    };
    add("refined", last(&score(&refined, &test, None)?.horizons), both);
    add("linear model", last(&linear.horizons), learned);
    add("best n-gram", ngram, 0.0);
    truth.into_iter().for_each(|truth| add("the exact model", truth, 0.0));
    Ok(rows)
}

fn csv(rows: &[Row]) -> anyhow::Result<String> {
    let mut text = String::from("domain,method,seed,log_likelihood,gap_per_step,seconds\n");
    for Row { domain, method, seed, log_likelihood, gap, seconds } in rows {
        let gap = gap.map_or(String::new(), |gap| format!("{gap:.5}"));
        writeln!(text, "{domain},{method},{seed},{log_likelihood:.4},{gap},{seconds:.2}")?;
    }
    Ok(text)
}

fn table(rows: &[Row]) -> anyhow::Result<String> {
    let mut text = format!(
        "ln P(o_1..n || a_1..n) of whole held-out episodes, for models of {EPISODES} random episodes: mean and half a 95 % interval \
         over seeds, and gap to the exact model.\n\n"
    );
    writeln!(text, "| domain | n | method | log-likelihood | ± | gap, nats per step | seconds |\n|{}", "---|".repeat(7))?;
    for (domain, horizon) in DOMAINS {
        for method in ["refined", "linear model", "best n-gram", "the exact model"] {
            let of = || rows.iter().filter(|row| row.domain == domain && row.method == method);
            if of().next().is_none() {
                continue;
            }
            let value: OverSeeds = of().map(|row| row.log_likelihood).collect();
            let seconds: OverSeeds = of().map(|row| row.seconds).collect();
            let gap: Option<Vec<f64>> = of().map(|row| row.gap).collect();
            let gap = gap.map_or("–".into(), |gap| format!("{:.4}", gap.into_iter().collect::<OverSeeds>().mean));
            let seconds = if seconds.mean > 0.0 { format!("{:.1}", seconds.mean) } else { "–".into() };
            writeln!(text, "| {domain} | {horizon} | {method} | {:.2} | {:.2} | {gap} | {seconds} |", value.mean, value.half)?;
        }
    }
    Ok(text)
}
