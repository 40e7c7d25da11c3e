//! From logs in a CSV file to predictions: what will be observed after a history, and how good such predictions are.
//!
//! ```text
//! cargo run --release -p foretell --example predict            # learns from logs that it writes itself
//! cargo run --release -p foretell --example predict logs.csv   # columns: episode_id, action, observation
//! ```

use std::error::Error;
use std::path::PathBuf;

use foretell::{Logs, NGramFilter, Predict, PredictiveState, ReadOptions, Recipe, RefineParams, Seed, Track, Trajectory};
use foretell::{Writer, domains};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let path = match std::env::args_os().nth(1) {
        Some(path) => PathBuf::from(path),
        None => write_logs(folder.path().join("logs.csv"))?,
    };

    // One half of the episodes to learn from, the other to judge by.
    let logs = Logs::files([path], ReadOptions::default());
    let (training, held_out) = (logs.half(Seed(1), false), logs.half(Seed(1), true));
    let recipe = Recipe { refine: Some(RefineParams::default()), ..Recipe::default() };
    let model = recipe.fit(&training)?.model;
    let episodes = held_out.episodes_for(model.alphabet(), "model")?;

    // What will be observed after the first half of a held-out episode?
    let (names, mut state) = (model.alphabet(), PredictiveState::new(&model));
    let z = episodes.first().ok_or("no episodes are left to judge by: the logs need more of them")?;
    let (history, rest) = z.steps.split_at(z.steps.len() / 2);
    for &ao in history {
        state.observe(ao);
        let seen = names.observations().get(ao.observation.index());
        println!("{:>8}  {}", names.action_name(ao.action), seen.map_or("not seen in training", |o| &o.name));
    }
    println!("{:>8}  leads to", names.action_name(rest[0].action));
    for (o, p) in names.observations().iter().zip(state.predict(rest[0].action)).filter(|(_, p)| **p >= 0.01) {
        println!("          {o} with probability {p:.3}");
    }

    // How good are such predictions, beside those of the best back-off n-gram?
    let ngram = |length| log_likelihood(&mut NGramFilter::new(&model, length), &episodes);
    let best = (0..=model.ngram().length()).map(ngram).fold(f64::NEG_INFINITY, f64::max);
    println!("held-out log-likelihood per step: {:.4} nats", log_likelihood(&mut state, &episodes));
    println!("                     best n-gram: {best:.4} nats");
    Ok(())
}

/// Mean ln P(o ‖ a) of a step.
fn log_likelihood(filter: &mut dyn Predict, episodes: &[Trajectory]) -> f64 {
    let mut sum = 0.0;
    for z in episodes {
        filter.reset();
        sum += z.steps.iter().map(|&ao| filter.update(ao).ln()).sum::<f64>();
    }
    sum / episodes.iter().map(|z| z.steps.len() as f64).sum::<f64>()
}

/// Logs to try it with: random walks in a maze whose walls are seen from near only.
fn write_logs(path: PathBuf) -> foretell::Result<PathBuf> {
    let system = domains::get("colored-gridworld")?;
    let mut writer = Writer::create(&path)?;
    domains::sample(&system, 2000, 13, Seed(2)).try_for_each(|z| writer.write(system.alphabet(), &z))?;
    writer.finish()?;
    Ok(path)
}
