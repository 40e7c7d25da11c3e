//! Fits a forest to raw arrays and predicts, timed: our side of `benchmarks/trees.py`.
//!
//! `benchmark-forest FOLDER WIDTH TREES N_MIN THREADS SEED` reads `train_x`, `test_x` (f32 rows of WIDTH features) and `train_y` (f64)
//! from the folder, all little-endian, writes `predictions` (f64) there and prints seconds.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::Instant;

use foretell::Seed;
use foretell::trees::{Forest, Inputs, Rows, TreeParams};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, numbers @ ..] = &arguments[..] else { return Err("which folder?".into()) };
    let numbers = numbers.iter().map(|n| n.parse()).collect::<Result<Vec<usize>, _>>()?;
    let [width, trees, min_split, threads, seed] = numbers[..] else { return Err("five numbers after the folder".into()) };
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;
    let folder = Path::new(folder);
    let single = |bytes: [u8; 4]| f64::from(f32::from_le_bytes(bytes));
    let (train_x, test_x) = (read(&folder.join("train_x"), single)?, read(&folder.join("test_x"), single)?);
    let train_y = read(&folder.join("train_y"), f64::from_le_bytes)?;
    let params = TreeParams { trees, min_split, ..TreeParams::default() };

    // Laying out the rows is part of both.
    let started = Instant::now();
    let forest = Forest::fit(&Inputs::new(Rows::new(&train_x, width)?)?, &train_y, &params, Seed(seed as u64))?;
    let fit = started.elapsed().as_secs_f64();
    let started = Instant::now();
    let predictions = forest.predict_all(&Inputs::new(Rows::new(&test_x, width)?)?);
    let predict = started.elapsed().as_secs_f64();

    fs::write(folder.join("predictions"), predictions.iter().flat_map(|p| p.to_le_bytes()).collect::<Vec<u8>>())?;
    println!(r#"{{"fit_s": {fit}, "predict_s": {predict}}}"#);
    Ok(())
}

fn read<const N: usize>(path: &Path, number: fn([u8; N]) -> f64) -> Result<Vec<f64>, Box<dyn Error>> {
    Ok(fs::read(path)?.as_chunks::<N>().0.iter().copied().map(number).collect())
}
