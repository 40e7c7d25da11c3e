//! Gap of learned models to the exact model on ColoredGridWorld, and the time to learn them [H14
//! §6.3].
//!
//! `model-quality FOLDER [--quick] [--checkpoint DIR]` writes `model-quality.csv` (every seed), `model-quality.md` (means with 95 %
//! intervals over seeds), `model-quality.json` (what was run), and the figures `likelihood-by-horizon` and `build-times` into FOLDER.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Instant;

use foretell::{Domain, HorizonScore, LearnParams, Logs, Model, Projection, RefineParams, Seed, domains, learn, refine, score};
use foretell_experiments::{Arguments, Explorer, OverSeeds, Pieces, draw};
use foretell_plots::{Axis, Bar, Bars, Chart, Line, Look};
use serde_json::json;

const DOMAIN: &str = "colored-gridworld";
const EPISODES: usize = 10_000;
/// Validation episodes for choosing the dimension of a projection.
const VALIDATION: usize = 2000;
const MAX_STEPS: usize = 13;
const FIRST_SEED: u64 = 101;
const SEEDS: u64 = 10;
/// Behaviour policies of the logs: the paper's memoryless policy with some ε (the paper does not
/// give it), or random actions.
const LOGS: [(&str, f64); 2] = [("ε-greedy", 0.1), ("random", 1.0)];
/// Horizons shown in the table; the CSV has all.
const SHOWN: [usize; 7] = [1, 2, 3, 4, 7, 10, 13];
const PAPER_DIMS: [usize; 3] = [25, 50, 75];
const PAPER_PROJECTIONS: [Projection; 3] = [Projection::Hashed, Projection::Rademacher, Projection::Spherical];
const DEFAULT_DIMS: [usize; 3] = [512, 1024, 2048];
/// Weight of the n-gram in the mixture.
const MIX: f64 = 0.2;
const REFINED: &str = "refined";
const TRUTH: &str = "truth";
/// Methods in the figures: their names there and in the table, and how they are drawn.
const DRAWN: [(&str, &str, Look); 9] = [
    ("refined", REFINED, Look::Line),
    ("exact model", TRUTH, Look::Dashed),
    ("TPSR", "paper TPSR", Look::Line),
    ("CPSR hashed", "paper hashed, best", Look::Line),
    ("CPSR Rademacher", "paper rademacher, best", Look::Line),
    ("CPSR spherical", "paper spherical, best", Look::Line),
    ("default", "default 1024", Look::Line),
    ("n-gram of 1", "ngram-1", Look::Dashed),
    ("n-gram of 3", "ngram-3", Look::Dashed),
];

/// Result of a method with one kind of logs and one seed: names of the logs and the method, seconds
/// to learn, and log-likelihood by horizon.
type Row = (String, String, f64, Vec<f64>);
/// For each kind of logs and method, the scores of each seed: (log-likelihood by horizon, seconds to learn).
type Results = BTreeMap<String, BTreeMap<String, Vec<(Vec<f64>, f64)>>>;

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::read()?;
    let less = if arguments.quick { 20 } else { 1 };
    let seeds: Vec<u64> = (FIRST_SEED..FIRST_SEED + if arguments.quick { 2 } else { SEEDS }).collect();
    let mut manifest = json!({
        "domain": DOMAIN, "episodes": EPISODES / less, "validation": VALIDATION / less, "max_steps": MAX_STEPS, "seeds": seeds,
        "logs": LOGS, "mix": MIX, "default": LearnParams::default(), "paper": LearnParams::paper(),
        "refinement": RefineParams::default(), "version": env!("CARGO_PKG_VERSION"),
    });
    let mut pieces = Pieces::open(&arguments, &manifest)?;
    let started = Instant::now();
    let domain = domains::get(DOMAIN)?;
    let mut results = Results::new();
    for &seed in &seeds {
        for (logs, method, seconds, values) in pieces.rows(&format!("seed-{seed}"), || run(&domain, seed, less))? {
            results.entry(logs).or_default().entry(method).or_default().push((values, seconds));
        }
        eprintln!("seed {seed} done after {:.0} s", started.elapsed().as_secs_f64());
    }
    manifest["seconds"] = json!(pieces.seconds());
    let folder = &arguments.folder;
    foretell_experiments::write(folder, "model-quality", &csv(&results, &seeds)?, &table(&results)?, &manifest)?;
    draw(folder, "likelihood-by-horizon", &LOGS.map(|(logs, _)| likelihood(logs, &results[logs]).into()))?;
    draw(folder, "build-times", &[build_times(&results[LOGS[0].0]).into()])?;
    Ok(pieces.finish()?)
}

fn run(domain: &Domain, seed: u64, less: usize) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (name, epsilon) in LOGS {
        let explorer = Explorer::learn(domain, MAX_STEPS, epsilon, EPISODES / less, Seed(seed).stream("memoryless"))?;
        let logs = |of: &str, episodes: usize| explorer.logs(episodes / less, Seed(seed).stream(of));
        let data = Data {
            domain,
            train: logs("train", EPISODES),
            validation: logs("validation", VALIDATION),
            held_out: logs("held out", EPISODES),
        };
        let scores = data.scores(seed)?;
        rows.extend(scores.into_iter().map(|(method, seconds, values)| (name.to_string(), method, seconds, values)));
    }
    Ok(rows)
}

/// Logs for training, validation and testing.
struct Data<'d> {
    domain: &'d Domain,
    train: Logs,
    validation: Logs,
    held_out: Logs,
}

/// A method, seconds to learn, and log-likelihood by horizon.
type Scored = (String, f64, Vec<f64>);

impl Data<'_> {
    fn scores(&self, seed: u64) -> anyhow::Result<Vec<Scored>> {
        let mut scored: Vec<Scored> = Vec::new();
        for dim in DEFAULT_DIMS {
            let name = format!("default {dim}");
            let (model, seconds) =
                self.learned(&LearnParams { test_dim: dim, history_dim: dim, seed, ..LearnParams::default() })?;
            scored.push((format!("{name} + n-gram"), seconds, self.likelihood(&model.clone().with_mix(MIX)?)?));
            scored.push((name, seconds, self.likelihood(&model)?));
            if dim == LearnParams::default().test_dim {
                let started = Instant::now();
                let refined = refine(&model, &self.train, &RefineParams::default())?;
                let seconds = seconds + started.elapsed().as_secs_f64();
                scored.push((REFINED.into(), seconds, self.likelihood(&refined)?));
                self.add_references(&model, &mut scored)?;
            }
        }
        for projection in PAPER_PROJECTIONS {
            let mut best: Option<(f64, Scored)> = None;
            let name = format!("paper {projection:?}").to_lowercase();
            for dim in PAPER_DIMS {
                let (model, seconds) = self.learned(&paper(projection, dim, seed))?;
                let values = self.likelihood(&model)?;
                scored.push((format!("{name} {dim}"), seconds, values.clone()));
                let chance = score(&model, &self.validation, None)?.per_step;
                if best.as_ref().is_none_or(|(most, _)| chance > *most) {
                    best = Some((chance, (format!("{name}, best"), seconds, values)));
                }
            }
            scored.extend(best.map(|(_, scored)| scored));
        }
        let (model, seconds) = self.learned(&paper(Projection::Identity, 1, seed))?;
        scored.push(("paper TPSR".into(), seconds, self.likelihood(&model)?));
        Ok(scored)
    }

    fn learned(&self, params: &LearnParams) -> anyhow::Result<(Model, f64)> {
        let started = Instant::now();
        let model = learn(&self.train, params)?;
        Ok((model, started.elapsed().as_secs_f64()))
    }

    fn likelihood(&self, model: &Model) -> anyhow::Result<Vec<f64>> {
        Ok(values(&score(model, &self.held_out, None)?.horizons))
    }

    /// The exact model and the n-grams.
    fn add_references(&self, model: &Model, scored: &mut Vec<Scored>) -> anyhow::Result<()> {
        let score = score(model, &self.held_out, self.domain.pomdp())?;
        scored.push((TRUTH.into(), 0.0, values(&score.truth.expect("the exact model was given"))));
        scored.extend(score.baselines.iter().map(|(name, horizons)| (name.clone(), 0.0, values(horizons))));
        Ok(())
    }
}

fn values(horizons: &[HorizonScore]) -> Vec<f64> {
    horizons.iter().map(|h| h.log_likelihood).collect()
}

fn paper(projection: Projection, dim: usize, seed: u64) -> LearnParams {
    let both = LearnParams { test_projection: projection, history_projection: projection, ..LearnParams::paper() };
    LearnParams { test_dim: dim, history_dim: dim, seed, ..both }
}

fn csv(results: &Results, seeds: &[u64]) -> anyhow::Result<String> {
    let mut text = String::from("logs,method,seed,horizon,log_likelihood,gap_to_truth,seconds\n");
    for (logs, methods) in results {
        for (name, runs) in methods {
            for ((seed, (values, seconds)), (truth, _)) in seeds.iter().zip(runs).zip(&methods[TRUTH]) {
                for (n, (value, truth)) in values.iter().zip(truth).enumerate() {
                    writeln!(text, "{logs},\"{name}\",{seed},{},{value:.5},{:.5},{seconds:.3}", n + 1, truth - value)?;
                }
            }
        }
    }
    Ok(text)
}

fn table(results: &Results) -> anyhow::Result<String> {
    let mut text = String::new();
    for (logs, epsilon) in LOGS {
        let methods = &results[logs];
        let seeds = methods[TRUTH].len();
        let policy = if epsilon < 1.0 { format!(" on a memoryless policy (ε = {epsilon})") } else { " actions".into() };
        writeln!(text, "## {logs}{policy}\n")?;
        writeln!(text, "Gap to the exact model, nats, mean over {seeds} seeds (± 95 % at the last horizon). Lower is better.\n")?;
        let horizons: Vec<String> = SHOWN.iter().map(|n| format!("n = {n}")).collect();
        writeln!(text, "| method | {} | ± | largest | seconds to learn |", horizons.join(" | "))?;
        writeln!(text, "|---|{}---|---|---|", "---|".repeat(SHOWN.len()))?;
        let mut rows: Vec<(f64, String)> = Vec::new();
        for (name, runs) in methods.iter().filter(|(name, _)| *name != TRUTH) {
            let gaps = |n: usize| -> OverSeeds {
                runs.iter().zip(&methods[TRUTH]).map(|((v, _), (t, _))| t[n - 1] - v[n - 1]).collect()
            };
            let means: Vec<String> = SHOWN.iter().map(|&n| format!("{:.3}", gaps(n).mean)).collect();
            let OverSeeds { mean, half, largest, .. } = gaps(MAX_STEPS);
            let seconds = seconds(runs).mean;
            let time = if seconds > 0.0 { format!("{seconds:.2}") } else { "–".into() };
            rows.push((mean, format!("| {name} | {} | {half:.3} | {largest:.3} | {time} |", means.join(" | "))));
        }
        rows.sort_by(|x, y| x.0.total_cmp(&y.0));
        rows.iter().try_for_each(|(_, row)| writeln!(text, "{row}"))?;
        let truth: OverSeeds = methods[TRUTH].iter().map(|(v, _)| v[MAX_STEPS - 1]).collect();
        writeln!(text, "\nThe exact model itself: {:.3} ± {:.3} at n = {MAX_STEPS}.\n", truth.mean, truth.half)?;
    }
    Ok(text.trim_end().to_string() + "\n")
}

fn seconds(runs: &[(Vec<f64>, f64)]) -> OverSeeds {
    runs.iter().map(|(_, seconds)| *seconds).collect()
}

fn likelihood(logs: &str, methods: &BTreeMap<String, Vec<(Vec<f64>, f64)>>) -> Chart {
    let line = |(name, method, look): (&str, &str, Look)| {
        let at = |n: usize| methods[method].iter().map(|(values, _)| values[n - 1]).collect::<OverSeeds>().at(n as f64);
        Line { name: name.into(), points: (1..=MAX_STEPS).map(at).collect(), look }
    };
    Chart {
        title: format!("ColoredGridWorld, {logs} logs"),
        x: Axis::new("prediction horizon n (steps)"),
        y: Axis::new("mean ln P(o_1..n || a_1..n), nats"),
        lines: DRAWN.map(line).to_vec(),
        marks: vec![],
    }
}

fn build_times(methods: &BTreeMap<String, Vec<(Vec<f64>, f64)>>) -> Bars {
    let timed = DRAWN.iter().map(|(name, method, _)| (name, seconds(&methods[*method]))).filter(|(_, s)| s.mean > 0.0);
    let bar = |(name, s): (&&str, OverSeeds)| Bar {
        name: name.to_string(),
        value: s.mean,
        half: s.half,
        is_own: ["refined", "default"].contains(name),
    };
    Bars {
        title: "From logs in memory to a model, ColoredGridWorld".into(),
        axis: Axis::log("seconds, with 95 % intervals over seeds"),
        bars: timed.map(bar).collect(),
        mark: None,
    }
}
