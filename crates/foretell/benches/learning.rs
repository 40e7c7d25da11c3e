//! How long learning and filtering take on ColoredGridWorld: `cargo bench --bench learning`.

use divan::Bencher;
use divan::counter::ItemsCount;
use foretell::{
    Domain, LearnParams, Logs, Model, Predict, PredictiveState, Projection, Seed, Track, Trajectory, domains, learn, score,
};

fn main() {
    divan::main();
}

fn maze() -> Domain {
    domains::get("colored-gridworld").expect("it is built in")
}

/// Episodes of the maze, and how many steps they have.
fn sample(episodes: usize, seed: u64) -> (Vec<Trajectory>, usize) {
    let maze = maze();
    let episodes: Vec<Trajectory> = domains::sample(&maze, episodes, maze.horizon, Seed(seed)).collect();
    let steps = episodes.iter().map(|z| z.steps.len()).sum();
    (episodes, steps)
}

fn time_learning(bencher: Bencher, episodes: usize, params: &LearnParams) {
    let (episodes, steps) = sample(episodes, 1);
    let logs = Logs::memory(maze().alphabet().clone(), episodes);
    bencher.counter(ItemsCount::new(steps)).bench_local(|| learn(&logs, params).expect("the logs are long enough"));
}

fn learned(params: &LearnParams) -> Model {
    let logs = Logs::memory(maze().alphabet().clone(), sample(2_000, 1).0);
    learn(&logs, params).expect("the logs are long enough")
}

#[divan::bench(args = [2_000, 10_000], sample_count = 20, sample_size = 1)]
fn learn_default(bencher: Bencher, episodes: usize) {
    time_learning(bencher, episodes, &LearnParams::default());
}

#[divan::bench(args = [Projection::Hashed, Projection::Rademacher, Projection::Spherical], sample_count = 20, sample_size = 1)]
fn learn_paper(bencher: Bencher, projection: Projection) {
    let params = LearnParams { test_projection: projection, history_projection: projection, ..LearnParams::paper() };
    time_learning(bencher, 10_000, &params);
}

#[divan::bench(sample_count = 20, sample_size = 1)]
fn score_default(bencher: Bencher) {
    let model = learned(&LearnParams::default());
    let (held_out, steps) = sample(2_000, 2);
    let logs = Logs::memory(maze().alphabet().clone(), held_out);
    bencher.counter(ItemsCount::new(steps)).bench_local(|| score(&model, &logs, None).expect("the logs are of the same maze"));
}

/// One step of the filter: predict what follows an action, then take in what did.
#[divan::bench(args = [5, 40])]
fn filter_step(bencher: Bencher, rank: usize) {
    let model = learned(&LearnParams { rank, ..LearnParams::default() });
    let held_out = sample(1_000, 2).0;
    let mut steps = held_out.iter().flat_map(|z| z.steps.iter().enumerate()).cycle();
    let mut state = PredictiveState::new(&model);
    bencher.bench_local(|| {
        let (t, &ao) = steps.next().expect("a cycle has no end");
        if t == 0 {
            state.reset();
        }
        divan::black_box(state.predict(ao.action));
        state.update(ao)
    });
}
