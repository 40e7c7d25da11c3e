//! How close to the exact model do learned models come on ColoredGridWorld [H14 §6.3]?
//!
//! `model-quality FOLDER [--checkpoint DIR]` writes `model-quality.csv` (every seed), `model-quality.md` (means with 95 % intervals over
//! seeds) and `model-quality.json` (what was run) into FOLDER.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Instant;

use foretell::{Domain, HorizonScore, LearnParams, Logs, Projection, Seed, domains, learn, score};
use foretell_experiments::{Arguments, OverSeeds, Pieces};
use serde_json::json;

const DOMAIN: &str = "colored-gridworld";
const EPISODES: usize = 10_000;
const MAX_STEPS: usize = 13;
const SEEDS: [u64; 5] = [101, 102, 103, 104, 105];
/// Horizons shown in the table; the CSV has all.
const SHOWN: [usize; 7] = [1, 2, 3, 4, 7, 10, 13];
const PAPER_DIMS: [usize; 3] = [25, 50, 75];
const PAPER_PROJECTIONS: [Projection; 3] = [Projection::Hashed, Projection::Rademacher, Projection::Spherical];
const DEFAULT_DIMS: [usize; 3] = [512, 1024, 2048];
/// Weight of the n-gram in the mixture.
const MIX: f64 = 0.2;

/// For each method, the scores of each seed: (log-likelihood by horizon, seconds to learn).
type Results = BTreeMap<String, Vec<(Vec<f64>, f64)>>;
/// What a method gave with one seed: its name, seconds to learn, and log-likelihood by horizon.
type Row = (String, f64, Vec<f64>);

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::read()?;
    let mut manifest = json!({
        "domain": DOMAIN, "episodes": EPISODES, "max_steps": MAX_STEPS, "seeds": SEEDS, "mix": MIX,
        "default": LearnParams::default(), "paper": LearnParams::paper(), "version": env!("CARGO_PKG_VERSION"),
    });
    let mut pieces = Pieces::open(&arguments, &manifest)?;
    let started = Instant::now();
    let domain = domains::get(DOMAIN)?;
    let mut results = Results::new();
    for seed in SEEDS {
        for (name, seconds, values) in pieces.rows(&format!("seed-{seed}"), || run(&domain, seed))? {
            results.entry(name).or_default().push((values, seconds));
        }
        eprintln!("seed {seed} done after {:.0} s", started.elapsed().as_secs_f64());
    }
    manifest["seconds"] = json!(pieces.seconds());
    foretell_experiments::write(&arguments.folder, "model-quality", &csv(&results)?, &table(&results)?, &manifest)?;
    Ok(pieces.finish()?)
}

/// The methods compared, by name.
fn methods(seed: u64) -> Vec<(String, LearnParams)> {
    let mut methods = Vec::new();
    for dim in DEFAULT_DIMS {
        methods.push((format!("default {dim}"), LearnParams { test_dim: dim, history_dim: dim, seed, ..LearnParams::default() }));
    }
    for projection in PAPER_PROJECTIONS {
        for dim in PAPER_DIMS {
            let name = format!("paper {projection:?} {dim}").to_lowercase();
            let both = LearnParams { test_projection: projection, history_projection: projection, ..LearnParams::paper() };
            methods.push((name, LearnParams { test_dim: dim, history_dim: dim, seed, ..both }));
        }
    }
    let identity = Projection::Identity;
    methods.push((
        "paper TPSR".into(),
        LearnParams { test_projection: identity, history_projection: identity, seed, ..LearnParams::paper() },
    ));
    methods
}

fn run(domain: &Domain, seed: u64) -> anyhow::Result<Vec<Row>> {
    let sample = |name| {
        Logs::memory(domain.alphabet().clone(), domains::sample(domain, EPISODES, MAX_STEPS, Seed(seed).stream(name)).collect())
    };
    let (train, held_out) = (sample("train"), sample("held out"));
    let values = |horizons: &[HorizonScore]| horizons.iter().map(|h| h.log_likelihood).collect::<Vec<f64>>();
    let mut rows = Vec::new();
    let mut add = |name: &str, horizons: &[HorizonScore], seconds| rows.push((name.to_string(), seconds, values(horizons)));
    for (i, (name, params)) in methods(seed).into_iter().enumerate() {
        let started = Instant::now();
        let model = learn(&train, &params)?;
        let seconds = started.elapsed().as_secs_f64();
        let plain = score(&model, &held_out, domain.pomdp())?;
        add(&name, &plain.horizons, seconds);
        if name.starts_with("default") {
            let mixed = score(&model.with_mix(MIX)?, &held_out, None)?;
            add(&format!("{name} + n-gram"), &mixed.horizons, seconds);
        }
        if i == 0 {
            add("truth", &plain.truth.expect("the exact model was given"), 0.0);
            plain.baselines.iter().for_each(|(name, horizons)| add(name, horizons, 0.0));
        }
    }
    Ok(rows)
}

fn csv(results: &Results) -> anyhow::Result<String> {
    let mut text = String::from("method,seed,horizon,log_likelihood,gap_to_truth\n");
    for (name, runs) in results {
        for ((seed, (values, _)), (truth, _)) in SEEDS.iter().zip(runs).zip(&results["truth"]) {
            for (n, (value, truth)) in values.iter().zip(truth).enumerate() {
                writeln!(text, "{name},{seed},{},{value:.5},{:.5}", n + 1, truth - value)?;
            }
        }
    }
    Ok(text)
}

fn table(results: &Results) -> anyhow::Result<String> {
    let mut text = format!(
        "Gap to the exact model, nats, mean over {} seeds (± 95 % at the last horizon). Lower is better.\n\n",
        SEEDS.len()
    );
    let horizons: Vec<String> = SHOWN.iter().map(|n| format!("n = {n}")).collect();
    writeln!(text, "| method | {} | ± | largest | seconds to learn |", horizons.join(" | "))?;
    writeln!(text, "|---|{}---|---|---|", "---|".repeat(SHOWN.len()))?;
    let mut rows: Vec<(f64, String)> = Vec::new();
    for (name, runs) in results.iter().filter(|(name, _)| *name != "truth") {
        let gaps =
            |n: usize| -> OverSeeds { runs.iter().zip(&results["truth"]).map(|((v, _), (t, _))| t[n - 1] - v[n - 1]).collect() };
        let means: Vec<String> = SHOWN.iter().map(|&n| format!("{:.3}", gaps(n).mean)).collect();
        let OverSeeds { mean, half, largest, .. } = gaps(MAX_STEPS);
        let seconds = runs.iter().map(|(_, s)| *s).collect::<OverSeeds>().mean;
        let time = if seconds > 0.0 { format!("{seconds:.2}") } else { "–".into() };
        rows.push((mean, format!("| {name} | {} | {half:.3} | {largest:.3} | {time} |", means.join(" | "))));
    }
    rows.sort_by(|x, y| x.0.total_cmp(&y.0));
    rows.iter().try_for_each(|(_, row)| writeln!(text, "{row}"))?;
    let truth: OverSeeds = results["truth"].iter().map(|(v, _)| v[MAX_STEPS - 1]).collect();
    writeln!(text, "\nThe exact model itself: {:.3} ± {:.3} at n = {MAX_STEPS}.", truth.mean, truth.half)?;
    Ok(text)
}
