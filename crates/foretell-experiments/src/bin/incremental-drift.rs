//! Drift of compressed updates from batch learning on ColoredGridWorld [H14 §3.2.2].
//!
//! `incremental-drift FOLDER [tuning] [--quick] [--checkpoint DIR]` learns from the first of ten parts of the logs and adds the others one after
//! the other, with exact moments and with compressed ones of 1, 2 and 4 times d′ directions. It writes `incremental-drift.csv` (every
//! seed and update), `.md` (means over seeds after the last) and `.json` (what was run) into FOLDER. `tuning` takes other seeds.
//!
//! Drift is measured independently of bases: in the probabilities of three steps in a row at a
//! random time, P(x, y, z) = P(x) · w_zᵀ C_y x̄_x with x̄_x the mean state after x, for all pairs
//! x, y, z. It is ‖P̂ − P‖ / ‖P‖ over all of them.

use std::fmt::Write as _;
use std::time::Instant;

use foretell::{
    ActionObservation, Alphabet, Domain, Filter, Keep, LearnParams, Learned, Learner, Logs, Model, PredictiveState, Projection,
    Seed, Track, Trajectory, domains, learn, score,
};
use foretell_experiments::{Arguments, OverSeeds, Pieces};
use serde_json::json;

const DOMAIN: &str = "colored-gridworld";
const EPISODES: usize = 10_000;
const PARTS: usize = 10;
const MAX_STEPS: usize = 13;
const SEEDS: [u64; 5] = [701, 702, 703, 704, 705];
const TUNING_SEEDS: [u64; 3] = [751, 752, 753];
/// Number of directions kept, in multiples of d′; 0 stands for exact moments.
const WIDTHS: [usize; 4] = [0, 1, 2, 4];
/// Numbers of updates after which models are evaluated.
const SHOWN: [usize; 3] = [1, 3, PARTS - 1];
/// Held-out episodes on which raw predictions are evaluated.
const LOOKED_AT: usize = 1000;

/// A recipe, d′, the width and the number of updates; then the results.
type Row = (String, usize, usize, usize, Outcome);
/// Drift, log-likelihood at the last horizon and that of batch learning from the same logs, lost
/// steps per 1000, and the fraction of raw predictions below zero.
type Outcome = (f64, f64, f64, f64, f64);

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::read()?;
    let is_tuning = arguments.words.iter().any(|word| word == "tuning");
    let seeds = if is_tuning { &TUNING_SEEDS[..] } else { &SEEDS };
    let seeds = if arguments.quick { &seeds[..1] } else { seeds };
    let mut manifest = json!({
        "domain": DOMAIN, "episodes": EPISODES, "parts": PARTS, "max_steps": MAX_STEPS, "seeds": seeds, "widths": WIDTHS,
        "default": LearnParams::default(), "paper": LearnParams::paper(), "version": env!("CARGO_PKG_VERSION"),
    });
    let mut pieces = Pieces::open(&arguments, &manifest)?;
    let started = Instant::now();
    let domain = domains::get(DOMAIN)?;
    let mut rows: Vec<(u64, Row)> = Vec::new();
    for &seed in seeds {
        let data = Data::sample(&domain, seed);
        for (name, params) in recipes(seed) {
            let run = || run(&name, &params, &data);
            rows.extend(pieces.rows(&format!("{name} {} seed {seed}", params.rank), run)?.into_iter().map(|row| (seed, row)));
            eprintln!("seed {seed}, {name} {} done after {:.0} s", params.rank, started.elapsed().as_secs_f64());
        }
    }
    manifest["seconds"] = json!(pieces.seconds());
    foretell_experiments::write(&arguments.folder, "incremental-drift", &csv(&rows)?, &table(&rows)?, &manifest)?;
    Ok(pieces.finish()?)
}

fn recipes(seed: u64) -> Vec<(String, LearnParams)> {
    let mut recipes = Vec::new();
    for projection in [Projection::Hashed, Projection::Spherical] {
        let paper = LearnParams { test_projection: projection, history_projection: projection, seed, ..LearnParams::paper() };
        let name = format!("paper {projection:?} {}", paper.test_dim).to_lowercase();
        recipes.extend([5, 10, 20, 40].map(|rank| (name.clone(), LearnParams { rank, ..paper.clone() })));
    }
    recipes.extend([20, 40].map(|rank| ("default".into(), LearnParams { rank, seed, ..LearnParams::default() })));
    recipes
}

/// Logs in parts, all of them together, and held-out logs.
struct Data {
    parts: Vec<Logs>,
    all: Logs,
    held_out: Logs,
    looked_at: Vec<Trajectory>,
    alphabet: Alphabet,
}

impl Data {
    fn sample(domain: &Domain, seed: u64) -> Data {
        let sample =
            |name| -> Vec<Trajectory> { domains::sample(domain, EPISODES, MAX_STEPS, Seed(seed).stream(name)).collect() };
        let (train, held_out) = (sample("train"), sample("held out"));
        let alphabet = domain.alphabet().clone();
        let logs = |episodes: &[Trajectory]| Logs::memory(alphabet.clone(), episodes.to_vec());
        Data {
            parts: train.chunks(EPISODES / PARTS).map(logs).collect(),
            all: logs(&train),
            looked_at: held_out[..LOOKED_AT].to_vec(),
            held_out: logs(&held_out),
            alphabet: alphabet.clone(),
        }
    }
}

/// The models after each part of the logs.
fn updates(params: &LearnParams, width: usize, parts: &[Logs]) -> anyhow::Result<Vec<Model>> {
    let keep = if width == 0 { Keep::Exact } else { Keep::Compressed };
    let mut models = Vec::new();
    let Learned { model, mut moments, .. } = Learner::new(params).keep(keep).width(width).learn(&parts[0])?;
    models.push(model);
    for part in &parts[1..] {
        let learned = Learner::new(params).update(moments.expect("they are kept"), part)?;
        models.push(learned.model);
        moments = learned.moments;
    }
    Ok(models)
}

fn run(name: &str, params: &LearnParams, data: &Data) -> anyhow::Result<Vec<Row>> {
    let batch = learn(&data.all, params)?;
    let exact = updates(params, 0, &data.parts)?;
    let scored = |model: &Model| -> anyhow::Result<(f64, f64)> {
        let score = score(model, &data.held_out, None)?;
        Ok((score.horizons[MAX_STEPS - 1].log_likelihood, 1e3 * score.lost as f64 / score.steps as f64))
    };
    // Exact updates equal batch learning, which is itself evaluated after the last update.
    let theirs = SHOWN.map(|i| if i + 1 == PARTS { &batch } else { &exact[i] });
    let likelihoods = theirs.iter().map(|model| Ok(scored(model)?.0)).collect::<anyhow::Result<Vec<f64>>>()?;
    let mut rows = Vec::new();
    for width in WIDTHS {
        let models = if width == 0 { exact.clone() } else { updates(params, width, &data.parts)? };
        for ((i, theirs), expected) in SHOWN.into_iter().zip(theirs).zip(&likelihoods) {
            let model = &models[i];
            let (likelihood, lost) = scored(model)?;
            let outcome = (drift(model, theirs), likelihood, *expected, lost, negative(model, data));
            rows.push((name.to_string(), params.rank, width, i, outcome));
        }
    }
    Ok(rows)
}

/// ‖P̂ − P‖ / ‖P‖ over the probabilities of three steps in a row.
fn drift(ours: &Model, theirs: &Model) -> f64 {
    let (ours, theirs) = (three_steps(ours), three_steps(theirs));
    let norm = |x: &mut dyn Iterator<Item = f64>| x.map(|x| x * x).sum::<f64>().sqrt();
    norm(&mut ours.iter().zip(&theirs).map(|(x, y)| x - y)) / norm(&mut theirs.iter().copied())
}

/// Nothing is refined here.
const LINEAR: &str = "the models are linear";

/// P(x) · w_zᵀ C_y x̄_x for all pairs x, y, z; none where x or y ends the episode.
fn three_steps(model: &Model) -> Vec<f64> {
    let linear = model.linear().expect(LINEAR);
    let steps: u64 = model.origin().pair_counts.iter().sum();
    let goes_on = |ao: &ActionObservation| !model.alphabet().is_terminal(ao.observation);
    let mut probabilities = Vec::new();
    for (x, &count) in linear.pairs().iter().zip(&model.origin().pair_counts).filter(|(x, _)| goes_on(x)) {
        let state = linear.mean_state(*x).unwrap_or_else(|| vec![0.0; linear.rank()]);
        let share = count as f64 / steps as f64;
        for y in linear.pairs().iter().filter(|y| goes_on(y)) {
            let operator = linear.operator(*y).expect("the pair was seen in training");
            let next: Vec<f64> = operator.chunks_exact(state.len()).map(|row| dot(row, &state)).collect();
            probabilities.extend(
                linear.pairs().iter().map(|z| share * dot(linear.readout(*z).expect("the pair was seen in training"), &next)),
            );
        }
    }
    probabilities
}

/// The fraction of raw predictions below zero, over all observations seen with the action.
fn negative(model: &Model, data: &Data) -> f64 {
    let linear = model.linear().expect(LINEAR);
    let names = &data.alphabet;
    let symbol = |o: ActionObservation| {
        let (action, observation) = (&names.actions()[o.action.index()], &names.observations()[o.observation.index()]);
        let known = model.alphabet();
        let observation = if observation.terminal {
            known.terminal_observation(&observation.name)
        } else {
            known.observation(&observation.name)
        };
        Some(ActionObservation { action: known.action(action)?, observation: observation? })
    };
    let (mut below, mut all) = (0u64, 0u64);
    for z in &data.looked_at {
        let mut state = PredictiveState::new(model);
        for ao in z.steps.iter().map_while(|&ao| symbol(ao)) {
            for pair in linear.pairs().iter().filter(|pair| pair.action == ao.action) {
                all += 1;
                below += u64::from(dot(linear.readout(*pair).expect("the pair was seen in training"), state.state()) < 0.0);
            }
            state.observe(ao);
        }
    }
    below as f64 / all as f64
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

fn csv(rows: &[(u64, Row)]) -> anyhow::Result<String> {
    let mut text =
        String::from("recipe,rank,width,seed,updates,drift,log_likelihood,batch_log_likelihood,lost_per_1000,negative\n");
    for (seed, (name, rank, width, updates, (drift, ours, theirs, lost, negative))) in rows {
        let width = if *width == 0 { "exact".to_string() } else { width.to_string() };
        writeln!(text, "{name},{rank},{width},{seed},{updates},{drift:.3e},{ours:.5},{theirs:.5},{lost:.3},{negative:.5}")?;
    }
    Ok(text)
}

fn table(rows: &[(u64, Row)]) -> anyhow::Result<String> {
    let mut text = format!(
        "Drift of the probabilities of three consecutive steps after 1, 3 and {last} updates, and the difference in log-likelihood at \
         horizon {MAX_STEPS} to batch learning (negative: worse), nats; mean over seeds, with ± 95 % and the worst seed after the last \
         update. Also after the last update: lost filters per 1000 steps and raw predictions below zero, compared with batch learning.\n\n\
         | recipe | d′ | kept | drift, 1 | 3 | {last} | nats, 1 | 3 | {last} | ± | worst | lost | batch | below zero | batch |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
        last = PARTS - 1
    );
    let mut keys: Vec<(&str, usize, usize)> = Vec::new();
    for (_, (name, rank, width, ..)) in rows {
        if !keys.contains(&(name, *rank, *width)) {
            keys.push((name, *rank, *width));
        }
    }
    for (name, rank, width) in keys {
        let of = |width: usize, updates: usize, f: fn(&Outcome) -> f64| -> OverSeeds {
            let is_it = |row: &&(u64, Row)| (row.1.0.as_str(), row.1.1, row.1.2, row.1.3) == (name, rank, width, updates);
            rows.iter().filter(is_it).map(|row| f(&row.1.4)).collect()
        };
        let last = PARTS - 1;
        let percent = |updates| match 100.0 * of(width, updates, |x| x.0).mean {
            tiny if tiny < 1e-6 => "0".to_string(),
            drift => format!("{drift:.2} %"),
        };
        let nats = |updates| format!("{:+.3}", of(width, updates, |x| x.1 - x.2).mean);
        let lost = |width| of(width, last, |x| x.3).mean;
        let below = |width| 100.0 * of(width, last, |x| x.4).mean;
        let cost = of(width, last, |x| x.1 - x.2);
        let kept = if width == 0 { "all".to_string() } else { format!("{width}d′") };
        writeln!(
            text,
            "| {name} | {rank} | {kept} | {} | {} | {:.3} | {:+.3} | {:.1} | {:.1} | {:.1} % | {:.1} % |",
            SHOWN.map(percent).join(" | "),
            SHOWN.map(nats).join(" | "),
            cost.half,
            cost.least,
            lost(width),
            lost(0),
            below(width),
            below(0),
        )?;
    }
    Ok(text)
}
