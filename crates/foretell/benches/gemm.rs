//! How near the dense accumulation of Σ̂_TH comes to the matrix product it is made of:
//! `cargo bench --bench gemm`.
//!
//! Counted as useful are 2·(d_T + 1)·(d_H + 1) operations for each cut; drawing the random columns
//! is overhead. The rate is that of the moments pass alone, from its first progress report to its
//! last, on long episodes of `tiger`.

use std::time::{Duration, Instant};

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatMut, Par};
use foretell::{LearnParams, Logs, Pass, Projection, Seed, domains, learn_with_progress};
use rayon::prelude::*;

const DIM: usize = 512;
/// Inner dimension of the product: as many cuts as the learner gathers.
const CUTS: usize = 1024;
/// Columns that one task computes, as in the learner.
const BLOCK: usize = 64;
const EPISODES: usize = 2_000;
const STEPS: usize = 100;
/// Number of measurements, of which the best is shown.
const REPETITIONS: usize = 3;

fn main() {
    let tiger = domains::get("tiger").expect("it is built in");
    let episodes = domains::sample(&tiger, EPISODES, STEPS, Seed(1)).collect();
    let logs = Logs::memory(tiger.alphabet().clone(), episodes);
    println!("{:<40}{:>10}{:>11}", format!("GFLOP/s at {DIM} dimensions"), "1 thread", "2 threads");
    let show = |name: &str, [one, two]: [f64; 2]| println!("{name:<40}{one:>10.2}{two:>11.2}");
    let products = [1, 2].map(|threads| on(threads, product_rate));
    show(&format!("faer, {DIM} x {CUTS} by {CUTS} x {DIM}"), products);
    for projection in [Projection::Rademacher, Projection::Spherical] {
        let rates = [1, 2].map(|threads| on(threads, || moments_rate(&logs, projection)));
        show(&format!("moments pass, {projection:?}"), rates);
        show("  share of the product", [rates[0] / products[0], rates[1] / products[1]]);
    }
}

fn on<R: Send>(threads: usize, work: impl FnOnce() -> R + Send) -> R {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads can be started").install(work)
}

/// Billions of operations in a second.
fn gflops(operations: usize, time: Duration) -> f64 {
    operations as f64 / time.as_secs_f64() / 1e9
}

/// The rate of A Bᵀ, one task for each block of columns.
fn product_rate() -> f64 {
    const PRODUCTS: usize = 50;
    let a = Mat::from_fn(DIM, CUTS, |i, j| ((i * 31 + j * 17) % 101) as f64 - 50.0);
    let mut sums = vec![0.0; DIM * DIM];
    let once = |sums: &mut [f64]| {
        sums.par_chunks_mut(DIM * BLOCK).enumerate().for_each(|(block, sums)| {
            let target = MatMut::from_column_major_slice_mut(sums, DIM, BLOCK);
            matmul(target, Accum::Add, &a, a.subrows(block * BLOCK, BLOCK).transpose(), 1.0, Par::Seq);
        });
    };
    once(&mut sums);
    let measure = |_| {
        let started = Instant::now();
        (0..PRODUCTS).for_each(|_| once(&mut sums));
        gflops(PRODUCTS * 2 * DIM * DIM * CUTS, started.elapsed())
    };
    (0..REPETITIONS).map(measure).fold(0.0, f64::max)
}

/// The rate of the moments pass.
fn moments_rate(logs: &Logs, projection: Projection) -> f64 {
    let params = LearnParams {
        test_projection: projection,
        history_projection: projection,
        test_dim: DIM,
        history_dim: DIM,
        ..LearnParams::paper()
    };
    // Tiger never ends by itself, so every cut has room for the next step and the longest test.
    let cuts = |steps: u64| steps as usize / STEPS * (STEPS - params.max_test_length);
    let measure = |_| {
        let mut reports: Vec<(u64, Instant)> = Vec::new();
        let mut note = |progress: foretell::Progress| {
            if progress.pass == Pass::Moments {
                reports.push((progress.steps, Instant::now()));
            }
        };
        learn_with_progress(logs, &params, &mut note).expect("the logs are long enough");
        let ((first, begin), (last, end)) = (reports[0], reports[reports.len() - 1]);
        gflops(2 * (DIM + 1) * (DIM + 1) * cuts(last - first), end - begin)
    };
    (0..REPETITIONS).map(measure).fold(0.0, f64::max)
}
