//! Gap of refined models to the exact model, and the time that refinement takes.
//!
//! `refinement-quality FOLDER [--quick] [--checkpoint DIR]` writes `refinement-quality.csv` (every
//! seed), `.md` (means over seeds) and `.json` (what was run) into FOLDER. Plain EM with dense
//! states from a random start and the linear model are included for comparison.

use std::fmt::Write as _;
use std::time::Instant;

use foretell::model::{Linear, StateLayout};
use foretell::refine::StateCount;
use foretell::{Domain, LearnParams, Logs, Model, RefineParams, Seed, domains, learn, refine, score};
use foretell_experiments::{Arguments, OverSeeds, Pieces};
use serde::{Deserialize, Serialize};
use serde_json::json;

const DOMAIN: &str = "colored-gridworld";
const MAX_STEPS: usize = 13;
const EPISODES: [usize; 3] = [1000, 3000, 10_000];
const TEST_EPISODES: usize = 10_000;
const FIRST_SEED: u64 = 401;
const SEEDS: u64 = 5;
/// States and rounds of plain EM, which is run only with the largest number of episodes.
const DENSE: [usize; 2] = [60, 100];
const DENSE_ROUNDS: usize = 20;

/// The gap of one model.
#[derive(Serialize, Deserialize)]
struct Row {
    method: String,
    episodes: usize,
    seed: u64,
    gap: f64,
    states: usize,
    seconds: f64,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::read()?;
    let quick = arguments.quick;
    let mut manifest = json!({
        "domain": DOMAIN, "max_steps": MAX_STEPS, "episodes": EPISODES, "test_episodes": TEST_EPISODES, "first_seed": FIRST_SEED,
        "quick": quick, "learning": LearnParams::default(), "refinement": RefineParams::default(),
        "version": env!("CARGO_PKG_VERSION"),
    });
    let mut pieces = Pieces::open(&arguments, &manifest)?;
    let started = Instant::now();
    let domain = domains::get(DOMAIN)?;
    let mut rows = Vec::new();
    for seed in FIRST_SEED..FIRST_SEED + if quick { 1 } else { SEEDS } {
        for episodes in EPISODES.into_iter().take(if quick { 1 } else { EPISODES.len() }) {
            rows.extend(pieces.rows(&format!("{episodes}-episodes-seed-{seed}"), || run(&domain, episodes, seed))?);
        }
        eprintln!("seed {seed} done after {:.0} s", started.elapsed().as_secs_f64());
    }
    manifest["seconds"] = json!(pieces.seconds());
    foretell_experiments::write(&arguments.folder, "refinement-quality", &csv(&rows)?, &table(&rows)?, &manifest)?;
    Ok(pieces.finish()?)
}

fn run(domain: &Domain, episodes: usize, seed: u64) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    let sample = |name, episodes| {
        Logs::memory(domain.alphabet().clone(), domains::sample(domain, episodes, MAX_STEPS, Seed(seed).stream(name)).collect())
    };
    let (training, test) = (sample("train", episodes), sample("held out", TEST_EPISODES));
    let mut add = |method: &str, model: &Model, seconds| -> anyhow::Result<()> {
        let score = score(model, &test, domain.pomdp())?;
        let truth = score.truth.expect("the exact model was given");
        let gap = truth[MAX_STEPS - 1].log_likelihood - score.horizons[MAX_STEPS - 1].log_likelihood;
        let states = model.latent().map_or_else(|| model.linear().map_or(0, Linear::rank), |latent| latent.pomdp.states().len());
        rows.push(Row { method: method.into(), episodes, seed, gap, states, seconds });
        Ok(())
    };
    let started = Instant::now();
    let model = learn(&training, &LearnParams { seed, ..LearnParams::default() })?;
    let learned = started.elapsed().as_secs_f64();
    add("linear model", &model, learned)?;
    let mut refined = |method: &str, params: &RefineParams| {
        let started = Instant::now();
        let refined = refine(&model, &training, params)?;
        add(method, &refined, learned + started.elapsed().as_secs_f64())
    };
    refined("refined", &RefineParams::default())?;
    if episodes == EPISODES[EPISODES.len() - 1] {
        for states in DENSE {
            let (layout, states) = (StateLayout::Dense, StateCount::About(states));
            let params = RefineParams { layout, states, em_rounds: DENSE_ROUNDS, patience: DENSE_ROUNDS };
            refined(&format!("plain EM, {states} states, {DENSE_ROUNDS} rounds"), &params)?;
        }
    }
    Ok(rows)
}

fn csv(rows: &[Row]) -> anyhow::Result<String> {
    let mut text = String::from("method,episodes,seed,gap,states,seconds\n");
    for Row { method, episodes, seed, gap, states, seconds } in rows {
        writeln!(text, "\"{method}\",{episodes},{seed},{gap:.4},{states},{seconds:.2}")?;
    }
    Ok(text)
}

fn table(rows: &[Row]) -> anyhow::Result<String> {
    let mut text = format!(
        "Gap to the exact model of {DOMAIN} at horizon {MAX_STEPS}, nats, on {TEST_EPISODES} held-out episodes: mean, half a 95 % \
         interval over seeds, and maximum. Seconds are from logs in memory to the model.\n\n"
    );
    writeln!(text, "| episodes | method | gap | ± | maximum | states | seconds |\n|---|---|---|---|---|---|---|")?;
    let mut kinds: Vec<(usize, &str)> = rows.iter().map(|row| (row.episodes, row.method.as_str())).collect();
    kinds.sort_by_key(|kind| kind.0);
    kinds.dedup();
    let mut seen: Vec<(usize, &str)> = Vec::new();
    for kind in kinds {
        if seen.contains(&kind) {
            continue;
        }
        seen.push(kind);
        let of: Vec<&Row> = rows.iter().filter(|row| (row.episodes, row.method.as_str()) == kind).collect();
        let over = |value: fn(&Row) -> f64| of.iter().map(|row| value(row)).collect::<OverSeeds>();
        let (gap, states, seconds) = (over(|row| row.gap), over(|row| row.states as f64), over(|row| row.seconds));
        writeln!(
            text,
            "| {} | {} | {:.3} | {:.3} | {:.3} | {:.0} | {:.2} |",
            kind.0, kind.1, gap.mean, gap.half, gap.largest, states.mean, seconds.mean
        )?;
    }
    Ok(text)
}
