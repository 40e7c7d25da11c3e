//! The default of `learn` on many systems: is it ever worse than an n-gram, or than one of its own
//! members?
//!
//! `zoo FOLDER [EPISODES…] [FILE.POMDP…] [--quick] [--checkpoint DIR]` writes `zoo.csv` (every cell), `zoo.md` (a table) and `zoo.json` (what was
//! run) into FOLDER. Systems are the built-in domains, variants of them, random POMDPs, and the files that are given.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use foretell::model::MemberKind;
use foretell::{Domain, LearnOverrides, Logs, Model, Recipe, Score, Seed, SelectParams, domains, score};
use foretell_experiments::{Arguments, Explorer, Pieces, systems};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Sizes of logs, unless others are given.
const EPISODES: [usize; 3] = [200, 1000, 5000];
const TEST_EPISODES: usize = 1000;
/// Longest episodes, in steps.
const HORIZON: usize = 30;
const FIRST_SEED: u64 = 3001;
const SEEDS: u64 = 3;
/// ε of the logging policies: uniformly random, and a memoryless one that explores.
const EPSILONS: [f64; 2] = [1.0, 0.3];
/// Random episodes from which the memoryless policy is learned.
const EXPLORED: usize = 300;
/// A difference to a single member that does not matter, nats per step.
const SAME: f64 = 0.01;

/// One cell of the comparison.
#[derive(Clone, Serialize, Deserialize)]
struct Row {
    system: String,
    epsilon: f64,
    episodes: usize,
    seed: u64,
    /// Held-out log-likelihood of the default, nats per step.
    nats: f64,
    /// Gap to the exact model, if there is one.
    gap: Option<f64>,
    /// How much better the default is than the best n-gram, and the standard error of that.
    over_ngram: f64,
    error: f64,
    /// How much better it is than linear models, POMDPs and networks alone, where it has them.
    over_linear: Option<f64>,
    over_latent: Option<f64>,
    over_recurrent: Option<f64>,
    /// Seconds to learn the default.
    seconds: f64,
    ngram: f64,
    linear: f64,
    latent: f64,
    recurrent: f64,
    memory: f64,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::read()?;
    let quick = arguments.quick;
    let (sizes, files): (Vec<_>, Vec<_>) = arguments.words.iter().cloned().partition(|word| word.parse::<usize>().is_ok());
    let sizes =
        if sizes.is_empty() { EPISODES.to_vec() } else { sizes.iter().map(|size| size.parse()).collect::<Result<_, _>>()? };
    let mut manifest = json!({
        "episodes": sizes, "test_episodes": TEST_EPISODES, "horizon": HORIZON, "first_seed": FIRST_SEED, "seeds": SEEDS,
        "epsilons": EPSILONS, "files": files.iter().map(|file| stem(file)).collect::<Vec<_>>(), "quick": quick, "version": env!("CARGO_PKG_VERSION"),
    });
    let folder = std::env::temp_dir().join(format!("foretell-zoo-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let systems = all_systems(&folder, &files)?;
    let mut pieces = Pieces::open(&arguments, &manifest)?;
    let (started, mut rows) = (Instant::now(), Vec::new());
    for seed in FIRST_SEED..FIRST_SEED + if quick { 1 } else { SEEDS } {
        for (name, domain) in systems.iter().take(if quick { 3 } else { systems.len() }) {
            let run = || cells(name, domain, seed, if quick { &sizes[..1] } else { &sizes });
            rows.extend(pieces.rows(&format!("{}-{seed}", name.replace([':', '/', '='], "-")), run)?);
            eprintln!("{name} seed {seed} done after {:.0} s", started.elapsed().as_secs_f64());
        }
        manifest["seeds_done"] = json!(seed + 1 - FIRST_SEED);
        manifest["seconds"] = json!(pieces.seconds());
        foretell_experiments::write(&arguments.folder, "zoo", &csv(&rows)?, &table(&rows)?, &manifest)?;
    }
    std::fs::remove_dir_all(&folder)?;
    Ok(pieces.finish()?)
}

/// Names of systems, and the systems.
fn all_systems(folder: &Path, files: &[String]) -> anyhow::Result<Vec<(String, Domain)>> {
    let mut all = Vec::new();
    for name in systems::BUILT_IN {
        all.push((name.to_string(), domains::get(name)?));
    }
    for (name, pomdp) in systems::variants()? {
        let path: PathBuf = folder.join(format!("{name}.POMDP"));
        pomdp.write(&path)?;
        all.push((name, domains::get(&path.display().to_string())?));
    }
    for file in files {
        all.push((stem(file), domains::get(file)?));
    }
    for name in systems::GAMES {
        all.push((name.to_string(), domains::get(name)?));
    }
    Ok(all)
}

/// The name of a file without its folder and ending.
fn stem(file: &str) -> String {
    Path::new(file).file_stem().map_or(file.to_string(), |stem| stem.to_string_lossy().into_owned())
}

fn cells(name: &str, domain: &Domain, seed: u64, sizes: &[usize]) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for epsilon in EPSILONS {
        let seeds = Seed(seed).stream(if epsilon == 1.0 { "uniform" } else { "greedy" });
        let explorer = Explorer::learn(domain, HORIZON, epsilon, EXPLORED, seeds.stream("explore"))?;
        let test = explorer.logs(TEST_EPISODES, seeds.stream("held out"));
        for &episodes in sizes {
            let training = explorer.logs(episodes, seeds.stream("train"));
            rows.push(cell(name, domain, (epsilon, episodes, seed), &training, &test)?);
        }
    }
    Ok(rows)
}

/// The default, and its best member of each kind alone.
fn cell(name: &str, domain: &Domain, key: (f64, usize, u64), training: &Logs, test: &Logs) -> anyhow::Result<Row> {
    let (epsilon, episodes, seed) = key;
    // Scores of models that observe rewards could not be compared.
    let fixed = LearnOverrides { observe_reward: Some(false), ..LearnOverrides::default() };
    let select = Some(SelectParams { fixed, ..SelectParams::default() });
    let started = Instant::now();
    let fitted = Recipe { select, ..Recipe::default() }.fit(training)?;
    let seconds = started.elapsed().as_secs_f64();
    let scored: Score = score(&fitted.model, test, domain.pomdp())?;
    let of = |name: &str| scored.comparisons.iter().find(|other| other.name == name);
    let ngrams = scored.comparisons.iter().filter(|other| other.name.starts_with("ngram"));
    let best = ngrams.min_by(|x, y| x.difference.total_cmp(&y.difference)).expect("there are n-grams");
    // Where a kind cannot be learned at all, there is nothing to compare.
    let core = fitted.model.clone().without_ensemble().without_mixture();
    let over = |other: &Model| -> foretell::Result<f64> { Ok(scored.per_step - score(other, test, None)?.per_step) };
    let over_latent = core.latent().is_some().then(|| over(&core)).transpose()?;
    let linear = core.without_refinement();
    let over_linear = linear.linear().is_some().then(|| over(&linear)).transpose()?;
    let over_recurrent = fitted.model.clone().recurrent_alone().as_ref().map(over).transpose()?;
    let selection = fitted.selection.expect("predictors were selected");
    let weight = |kind| selection.tried.iter().filter(|tried| tried.kind == kind).map(|tried| tried.weight).sum();
    Ok(Row {
        system: name.into(),
        epsilon,
        episodes,
        seed,
        nats: scored.per_step,
        gap: of("truth").map(|truth| -truth.difference),
        over_ngram: best.difference,
        error: best.ci95.unwrap_or(0.0) / 1.96,
        over_linear,
        over_latent,
        over_recurrent,
        seconds,
        ngram: weight(MemberKind::NGram),
        linear: weight(MemberKind::Linear),
        latent: weight(MemberKind::Latent),
        recurrent: weight(MemberKind::Recurrent),
        memory: selection.memory,
    })
}

fn csv(rows: &[Row]) -> anyhow::Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    rows.iter().try_for_each(|row| writer.serialize(row))?;
    Ok(String::from_utf8(writer.into_inner()?)?)
}

fn table(rows: &[Row]) -> anyhow::Result<String> {
    let count = |holds: &dyn Fn(&Row) -> bool| rows.iter().filter(|row| holds(row)).count();
    let better = count(&|row| row.over_ngram >= -row.error);
    let members = |row: &Row| {
        [row.over_linear, row.over_latent, row.over_recurrent]
            .into_iter()
            .flatten()
            .chain([row.over_ngram])
            .fold(f64::INFINITY, f64::min)
    };
    let as_good = count(&|row| members(row) >= -SAME);
    let seeds = rows.iter().map(|row| row.seed).max().unwrap_or(FIRST_SEED) + 1 - FIRST_SEED;
    let mut text = format!(
        "The default of `learn` on logs of at most {HORIZON} steps an episode, scored on {TEST_EPISODES} other episodes; means over \
         logging policies (ε = 1 and 0.3) and {seeds} seed(s), nats per step.\n\n\
         Not worse than the best n-gram by more than one standard error in {better} of {n} cells; not worse than any member alone \
         (best n-gram, linear, latent, recurrent) by more than {SAME} in {as_good} of {n}.\n\n",
        n = rows.len()
    );
    writeln!(
        text,
        "| system | episodes | gap to truth | over best n-gram | over linear | over latent | over recurrent | n-gram | linear | latent | recurrent | seconds |\n|{}",
        "---|".repeat(12)
    )?;
    for chunk in systems_of(rows) {
        for episodes in sizes_of(rows) {
            let cells: Vec<&Row> = rows.iter().filter(|row| row.system == chunk && row.episodes == episodes).collect();
            if cells.is_empty() {
                continue;
            }
            let mean = |of: &dyn Fn(&Row) -> Option<f64>| {
                let values: Vec<f64> = cells.iter().filter_map(|row| of(row)).collect();
                (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
            };
            let show = |value: Option<f64>, digits: usize| value.map_or("–".into(), |x| format!("{x:.digits$}"));
            writeln!(
                text,
                "| {chunk} | {episodes} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
                show(mean(&|row| row.gap), 4),
                show(mean(&|row| Some(row.over_ngram)), 4),
                show(mean(&|row| row.over_linear), 4),
                show(mean(&|row| row.over_latent), 4),
                show(mean(&|row| row.over_recurrent), 4),
                show(mean(&|row| Some(row.ngram)), 2),
                show(mean(&|row| Some(row.linear)), 2),
                show(mean(&|row| Some(row.latent)), 2),
                show(mean(&|row| Some(row.recurrent)), 2),
                show(mean(&|row| Some(row.seconds)), 1),
            )?;
        }
    }
    Ok(text)
}

/// The sizes of logs of the rows, ascending.
fn sizes_of(rows: &[Row]) -> BTreeSet<usize> {
    rows.iter().map(|row| row.episodes).collect()
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
