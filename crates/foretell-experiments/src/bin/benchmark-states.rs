//! Writes what a planner learns from as raw arrays: what scikit-learn starts from in
//! `benchmarks/planning.py`.
//!
//! `benchmark-states MODEL LOGS FOLDER` writes to the folder, all little-endian: `states`, the predictive states of all episodes (f64
//! rows, n + 1 for an episode of n steps), `starts`, the rows at which episodes begin (u32), and of each step `rows`, that of
//! the state before it (u32), `actions` (u32), `rewards` (f64), `terminals` (a byte: 1 where nothing follows). It prints the
//! numbers in a state.

use std::error::Error;
use std::path::Path;
use std::{fs, io};

use foretell::plan::{States, Step, Steps};
use foretell::{Logs, Model, PredictiveState, ReadOptions, Trajectory};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, logs, folder] = &arguments[..] else { return Err("which model, which logs, which folder?".into()) };
    let model = Model::load(model)?;
    let logs = Logs::files([logs], ReadOptions::default());
    let episodes = logs.open(model.alphabet().clone())?.collect::<Result<Vec<Trajectory>, _>>()?;
    let steps = Steps::of(model.alphabet(), &episodes)?;
    let states = States::track(&episodes, || PredictiveState::new(&model));

    let folder = Path::new(folder);
    write(folder, "states", states.values(), |x| x.to_le_bytes())?;
    write(folder, "starts", steps.starts(), |&row| (row as u32).to_le_bytes())?;
    write(folder, "rows", steps.list(), |step: &Step| (step.row as u32).to_le_bytes())?;
    write(folder, "actions", steps.list(), |step: &Step| step.action.0.to_le_bytes())?;
    write(folder, "rewards", steps.list(), |step: &Step| step.reward.to_le_bytes())?;
    write(folder, "terminals", steps.list(), |step: &Step| [u8::from(step.terminal)])?;
    println!("{}", states.width());
    Ok(())
}

fn write<T, const N: usize>(folder: &Path, name: &str, items: &[T], bytes: impl Fn(&T) -> [u8; N]) -> io::Result<()> {
    fs::write(folder.join(name), items.iter().flat_map(bytes).collect::<Vec<u8>>())
}
