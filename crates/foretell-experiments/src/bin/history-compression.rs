//! The cost of compressing histories [H14 §6.3, the figure on history compression].
//!
//! `history-compression FOLDER [--quick] [--checkpoint DIR]` writes `history-compression.csv`
//! (every seed), `.md` (means over seeds), `.json` (what was run), `.svg` and `.png` into FOLDER:
//! the log-likelihood of a model with compressed tests only, minus that of a model with compressed
//! tests and histories, learned from the same logs.

use std::fmt::Write as _;

use foretell::{LearnParams, Projection, Seed, domains, learn, score};
use foretell_experiments::{Arguments, Explorer, OverSeeds, Pieces, draw};
use foretell_plots::{Axis, Chart, Line, Look};
use serde_json::json;

const DOMAIN: &str = "colored-gridworld";
const EPISODES: usize = 10_000;
const MAX_STEPS: usize = 13;
const FIRST_SEED: u64 = 111;
const SEEDS: u64 = 10;
const LOGS: [(&str, f64); 2] = [("ε-greedy", 0.1), ("random", 1.0)];
/// d_T, and d_H if histories are compressed.
const DIMS: [usize; 3] = [25, 50, 75];

/// Logs, dimension, seed, and the difference by horizon.
type Row = (String, usize, u64, Vec<f64>);

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::read()?;
    let less = if arguments.quick { 20 } else { 1 };
    let seeds: Vec<u64> = (FIRST_SEED..FIRST_SEED + if arguments.quick { 2 } else { SEEDS }).collect();
    let mut manifest = json!({
        "domain": DOMAIN, "episodes": EPISODES / less, "max_steps": MAX_STEPS, "seeds": seeds, "logs": LOGS, "dims": DIMS,
        "paper": LearnParams::paper(), "version": env!("CARGO_PKG_VERSION"),
    });
    let mut pieces = Pieces::open(&arguments, &manifest)?;
    let mut rows = Vec::new();
    for &seed in &seeds {
        rows.extend(pieces.rows(&format!("seed-{seed}"), || run(seed, less))?);
        eprintln!("seed {seed} done");
    }
    manifest["seconds"] = json!(pieces.seconds());
    foretell_experiments::write(&arguments.folder, "history-compression", &csv(&rows)?, &table(&rows)?, &manifest)?;
    draw(&arguments.folder, "history-compression", &LOGS.map(|(logs, _)| chart(logs, &rows).into()))?;
    Ok(pieces.finish()?)
}

fn run(seed: u64, less: usize) -> anyhow::Result<Vec<Row>> {
    let domain = domains::get(DOMAIN)?;
    let mut rows = Vec::new();
    for (name, epsilon) in LOGS {
        let explorer = Explorer::learn(&domain, MAX_STEPS, epsilon, EPISODES / less, Seed(seed).stream("memoryless"))?;
        let logs = |of: &str| explorer.logs(EPISODES / less, Seed(seed).stream(of));
        let (train, held_out) = (logs("train"), logs("held out"));
        for dim in DIMS {
            let likelihood = |histories: Projection| -> anyhow::Result<Vec<f64>> {
                let dims = LearnParams { test_dim: dim, history_dim: dim, seed, ..LearnParams::paper() };
                let model = learn(&train, &LearnParams { history_projection: histories, ..dims })?;
                Ok(score(&model, &held_out, None)?.horizons.iter().map(|h| h.log_likelihood).collect())
            };
            let (whole, compressed) = (likelihood(Projection::Identity)?, likelihood(Projection::Spherical)?);
            rows.push((name.to_string(), dim, seed, whole.iter().zip(compressed).map(|(x, y)| x - y).collect()));
        }
    }
    Ok(rows)
}

fn csv(rows: &[Row]) -> anyhow::Result<String> {
    let mut text = String::from("logs,dim,seed,horizon,difference\n");
    for (logs, dim, seed, values) in rows {
        for (n, value) in values.iter().enumerate() {
            writeln!(text, "{logs},{dim},{seed},{},{value:.5}", n + 1)?;
        }
    }
    Ok(text)
}

/// The differences at a horizon over seeds.
fn at(rows: &[Row], logs: &str, dim: usize, n: usize) -> OverSeeds {
    rows.iter().filter(|row| row.0 == logs && row.1 == dim).map(|row| row.3[n - 1]).collect()
}

fn table(rows: &[Row]) -> anyhow::Result<String> {
    let mut text = String::from(
        "Log-likelihood with uncompressed histories minus that with compressed histories, nats; tests are compressed in both (spherical). \
         Mean over seeds ± half a 95 % interval.\n\n| logs | dimension |",
    );
    (1..=MAX_STEPS).step_by(3).try_for_each(|n| write!(text, " n = {n} |"))?;
    writeln!(text, "\n|---|---|{}", "---|".repeat((1..=MAX_STEPS).step_by(3).count()))?;
    for (logs, _) in LOGS {
        for dim in DIMS {
            write!(text, "| {logs} | {dim} |")?;
            for n in (1..=MAX_STEPS).step_by(3) {
                let OverSeeds { mean, half, .. } = at(rows, logs, dim, n);
                write!(text, " {mean:+.3} ± {half:.3} |")?;
            }
            writeln!(text)?;
        }
    }
    Ok(text)
}

fn chart(logs: &str, rows: &[Row]) -> Chart {
    let line = |dim: usize| {
        let points = (1..=MAX_STEPS).map(|n| at(rows, logs, dim, n).at(n as f64)).collect();
        Line { name: format!("{dim} dimensions"), points, look: Look::Line }
    };
    Chart {
        title: format!("Histories as they are, less compressed: {logs} logs"),
        x: Axis::new("prediction horizon n (steps)"),
        y: Axis::new("difference in log-likelihood, nats"),
        lines: DIMS.map(line).to_vec(),
        marks: vec![],
    }
}
