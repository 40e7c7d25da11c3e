//! Search compared with explicit learning from the other parts and scoring on the held-out one.

use super::folds::Draw;
use super::*;
use crate::data::{Alphabet, Trajectory};
use crate::model::{Cuts, History, LearnOverrides, PredictiveState, Projection, Regression, Start, Weighting};
use crate::rng::Seed;
use crate::system::{Predict, Track};
use crate::{domains, learn};

/// Log-likelihoods summed in another order differ by rounding, which solving amplifies by the
/// condition of the moments.
const ROUNDING: f64 = 1e-7;
const PARTS: usize = 3;
const RANKS: [usize; 3] = [2, 5, 9];
const MIXES: [f64; 4] = [0.0, 0.25, 0.95, 1.0];

/// Walks, most of which are truncated at 13 steps, and a single longer one: the fold without it has
/// other cuts. Some symbols occur in one part only.
fn walks() -> (Alphabet, Vec<Trajectory>) {
    let maze = domains::get("colored-gridworld").unwrap();
    let mut episodes: Vec<Trajectory> = domains::sample(&maze, 150, 13, Seed(4)).collect();
    episodes.insert(40, domains::sample(&maze, 1, 19, Seed(5)).next().unwrap());
    for z in &mut episodes {
        z.action_probabilities = vec![0.25; z.steps.len()];
    }
    (maze.alphabet().clone(), episodes)
}

/// As if from a file, whose alphabet contains only what occurs in it.
fn only_what_occurs<'a>(all: &Alphabet, episodes: impl Iterator<Item = &'a Trajectory>) -> Logs {
    let mut alphabet = Alphabet::default();
    let mut renamed = |z: &Trajectory| {
        let mut z = z.clone();
        for ao in &mut z.steps {
            let symbol = all.symbol(ao.observation);
            ao.action = alphabet.intern_action(all.action_name(ao.action));
            ao.observation = alphabet.intern(&symbol.name, symbol.terminal);
        }
        z
    };
    let episodes = episodes.map(&mut renamed).collect();
    Logs::memory(alphabet, episodes)
}

/// The log-likelihood of each held-out episode, part by part, with a model learned from the others.
fn by_hand(alphabet: &Alphabet, episodes: &[Trajectory], params: &LearnParams) -> Vec<f64> {
    let mut draw = Draw::new(Seed(params.seed).stream("folds"), PARTS);
    let part_of: Vec<usize> = episodes.iter().map(|_| draw.next()).collect();
    let logs = |is_in: &dyn Fn(usize) -> bool| {
        let some = episodes.iter().zip(&part_of).filter(|(_, part)| is_in(**part)).map(|(z, _)| z);
        only_what_occurs(alphabet, some)
    };
    let mut all = Vec::new();
    for held in 0..PARTS {
        let model = learn(&logs(&|part| part != held), params).unwrap();
        let mut filter = PredictiveState::new(&model);
        for z in logs(&|part| part == held).open(model.alphabet().clone()).unwrap() {
            filter.reset();
            all.push(z.unwrap().steps.iter().map(|&ao| filter.update(ao).ln()).sum());
        }
    }
    all
}

fn configurations() -> Vec<LearnParams> {
    let small = LearnParams { test_dim: 60, history_dim: 50, ..LearnParams::default() };
    let projected = |kind| LearnParams { test_projection: kind, history_projection: kind, ..small.clone() };
    let paper = LearnParams { test_dim: 20, history_dim: 25, max_test_length: 3, ..LearnParams::paper() };
    vec![
        small.clone(),
        projected(Projection::Spherical),
        LearnParams { max_test_length: 1, history_length: 1, ..projected(Projection::Identity) },
        LearnParams { start: Start::Mixed, cuts: Cuts::Ragged, ..projected(Projection::Hashed) },
        LearnParams { weighting: Weighting::Propensity, history_length: 2, ..small },
        paper.clone(),
        LearnParams { history: History::Suffix, regression: Regression::TwoStage, seed: 7, ..paper },
    ]
}

#[test]
fn a_sweep_is_learning_and_scoring_one_by_one() {
    let (alphabet, episodes) = walks();
    let logs = only_what_occurs(&alphabet, episodes.iter());
    for (i, params) in configurations().into_iter().enumerate() {
        let folds = Folds::read(&logs, &params, PARTS).unwrap();
        let swept = folds.sweep(&params, &RANKS, &MIXES, Held::All).unwrap();
        assert_eq!(swept.len(), RANKS.len() * MIXES.len());
        for swept in swept {
            let expected = by_hand(&alphabet, &episodes, &LearnParams { rank: swept.rank, mix: swept.mix, ..params.clone() });
            assert_eq!(swept.log_likelihoods.len(), expected.len());
            for (ours, theirs) in swept.log_likelihoods.iter().zip(&expected) {
                assert!(
                    (ours - theirs).abs() <= ROUNDING * theirs.abs(),
                    "{i}: rank {}, mix {}: {ours} {theirs}",
                    swept.rank,
                    swept.mix
                );
            }
        }
        // The sample is of the first fold.
        let sample = folds.sweep(&params, &RANKS, &MIXES, Held::Sample).unwrap();
        let all = folds.sweep(&params, &RANKS, &MIXES, Held::All).unwrap();
        for (sample, all) in sample.iter().zip(&all) {
            assert!((50..=51).contains(&sample.log_likelihoods.len()));
            for (x, y) in sample.log_likelihoods.iter().zip(&all.log_likelihoods) {
                assert!((x - y).abs() <= ROUNDING * y.abs());
            }
        }
    }
}

#[test]
fn parts_are_drawn_evenly_and_at_random() {
    let mut draw = Draw::new(Seed(3), 4);
    let dealt: Vec<usize> = (0..4000).map(|_| draw.next()).collect();
    assert!(dealt.chunks(4).all(|round| (0..4).all(|part| round.contains(&part))));
    // Of 1000 rounds, each part comes first in about a quarter: within five standard deviations (of
    // 13.7).
    for part in 0..4 {
        let first = dealt.chunks(4).filter(|round| round[0] == part).count();
        assert!(first.abs_diff(250) < 69, "part {part} came first {first} times");
    }
}

/// A small search, in a narrow space.
fn small() -> (LearnParams, Space) {
    let base = LearnParams { test_dim: 40, history_dim: 40, rank: 12, ..LearnParams::default() };
    let space = Space {
        projections: [Projection::SignedHash, Projection::Rademacher, Projection::Identity].map(|kind| [kind; 2]).to_vec(),
        dims: vec![[40, 40], [20, 20]],
        tests: vec![2, 1, 14],
        histories: vec![3, 1],
        ..Space::around(&base, &LearnOverrides::default())
    };
    (base, space)
}

fn logs(episodes: usize) -> Logs {
    let maze = domains::get("colored-gridworld").unwrap();
    Logs::memory(maze.alphabet().clone(), domains::sample(&maze, episodes, 13, Seed(6)).collect())
}

fn found(threads: usize) -> Found {
    let (base, space) = small();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| Search::new(&base, space).folds(3).run(&logs(200)).unwrap())
}

#[test]
fn a_search_is_the_same_for_any_number_of_threads() {
    assert_eq!(found(1), found(3));
}

#[test]
fn the_choice_is_significantly_better_than_the_base_or_is_the_base() {
    let found = found(2);
    let Found { chosen, base, tried, untried, .. } = &found;
    assert_eq!((base.params.clone(), base.gain), (small().0, 0.0));
    assert!(chosen.gain > STANDARD_ERRORS * chosen.error || chosen == base);
    let finals = || tried.iter().filter(|tried| tried.phase == Phase::Final);
    assert!(finals().all(|other| other.nats <= chosen.nats.max(other.nats) && other.episodes == 200));
    if chosen != base {
        assert!(finals().all(|other| other.nats <= chosen.nats));
    }
    // 14 steps are more than any episode has, and there are too many sequences of two steps.
    assert!(untried.iter().any(|untried| untried.params.max_test_length == 14 && untried.why.contains("longest episode")));
    for phase in [Phase::Coarse, Phase::Combined, Phase::Finer, Phase::Final] {
        assert!(tried.iter().any(|tried| tried.phase == phase), "{phase:?}");
    }
}

#[test]
fn without_time_the_base_and_the_best_are_still_compared() {
    let (base, space) = small();
    let mut spent = || 2.0;
    let found = Search::new(&base, space.clone()).folds(3).budget(&mut spent).run(&logs(200)).unwrap();
    assert!(found.tried.iter().all(|tried| grid::is_same_shape(&tried.params, &base)));
    assert!(found.untried.iter().filter(|untried| untried.why == "no time").count() >= 5);
    // With half of the time, some are scored: the cheap ones.
    let mut asked = 0;
    let mut spent = || {
        asked += 1;
        0.01 * asked as f64
    };
    let found = Search::new(&base, space).folds(3).budget(&mut spent).run(&logs(200)).unwrap();
    assert!(found.tried.iter().any(|tried| !grid::is_same_shape(&tried.params, &base)));
}

#[test]
fn an_interrupted_search_continues_with_the_same_result() {
    let folder = tempfile::tempdir().unwrap();
    let (base, space) = small();
    let logs = logs(120);
    let whole = Search::new(&base, space.clone()).folds(3).run(&logs).unwrap();
    // Stopped after ever more configurations.
    for stop in [1, 3, usize::MAX] {
        let mut checkpoint = Checkpoint::open(folder.path(), &"search", || true).unwrap();
        let mut reports = 0;
        let mut progress = |_| {
            reports += 1;
            assert!(reports <= stop, "stopped");
        };
        let search = Search::new(&base, space.clone()).folds(3).checkpoint(&mut checkpoint).progress(&mut progress);
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| search.run(&logs).unwrap()));
        match result {
            Ok(found) => assert_eq!(found, whole),
            Err(_) => assert!(stop < usize::MAX),
        }
    }
}

#[test]
fn impossible_searches_are_refused_with_a_remedy() {
    let (base, space) = small();
    let search = |folds| Search::new(&base, space.clone()).folds(folds).run(&logs(5)).unwrap_err().to_string();
    assert_eq!(search(1), "folds = 1: must be at least 2");
    assert_eq!(
        search(3),
        "episodes in the logs: 5, too few to hold out one of 3 parts of them; give more episodes, or fewer folds"
    );
}
