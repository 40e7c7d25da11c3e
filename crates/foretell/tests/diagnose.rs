//! Diagnosis of logs of systems whose rank is known.

use foretell::judge::diagnose::{Diagnosis, MemoryVerdict, diagnose};
use foretell::{ActionObservation, Alphabet, End, LearnParams, Logs, Seed, Trajectory, domains};

/// Small, so that many logs can be diagnosed.
fn params(seed: u64) -> [LearnParams; 2] {
    let default = LearnParams { test_dim: 128, history_dim: 128, rank: 2, seed, ..LearnParams::default() };
    [default, LearnParams { max_test_length: 2, test_dim: 40, history_dim: 40, rank: 1, seed, ..LearnParams::paper() }]
}

fn found(logs: &Logs, params: &LearnParams) -> Diagnosis {
    diagnose(logs, params, &mut |_| {}).unwrap()
}

/// Observations that depend on nothing.
fn noise(episodes: usize, length: usize, seed: u64) -> Logs {
    let mut alphabet = Alphabet::default();
    ["left", "right"].iter().for_each(|name| {
        alphabet.intern_action(name);
    });
    ["a", "b", "c"].iter().for_each(|name| {
        alphabet.intern_observation(name);
    });
    let mut rng = Seed(seed).rng();
    let mut episode = || {
        let steps = (0..length).map(|_| ActionObservation::new(rng.below(2) as u32, rng.below(3) as u32)).collect();
        Trajectory {
            steps,
            rewards: vec![None; length],
            action_probabilities: vec![],
            end: End::Truncated,
            about: Default::default(),
        }
    };
    Logs::memory(alphabet, (0..episodes).map(|_| episode()).collect())
}

/// A Markov chain over 15 symbols that stays where it is nine times of ten, under a single action.
fn sticky(episodes: usize, length: usize, seed: u64) -> Logs {
    let mut alphabet = Alphabet::default();
    alphabet.intern_action("wait");
    (0..15).for_each(|i| {
        alphabet.intern_observation(&format!("s{i}"));
    });
    let mut rng = Seed(seed).rng();
    let mut episode = || {
        let mut state = rng.below(15);
        let mut step = || {
            if rng.uniform() >= 0.9 {
                state = rng.below(15);
            }
            ActionObservation::new(0, state as u32)
        };
        let steps = (0..length).map(|_| step()).collect();
        Trajectory {
            steps,
            rewards: vec![None; length],
            action_probabilities: vec![],
            end: End::Truncated,
            about: Default::default(),
        }
    };
    Logs::memory(alphabet, (0..episodes).map(|_| episode()).collect())
}

fn sampled(domain: &str, episodes: usize, seed: u64) -> Logs {
    let domain = domains::get(domain).unwrap();
    Logs::memory(domain.alphabet().clone(), domains::sample(&domain, episodes, 20, Seed(seed)).collect())
}

#[test]
fn noise_has_rank_1_and_no_memory() {
    // Many short episodes, a handful of longer ones, one recording.
    for (episodes, length) in [(400, 12), (9, 80), (1, 700)] {
        for i in 0..2 {
            let found: Vec<Diagnosis> = (0..20).map(|s| found(&noise(episodes, length, s), &params(s)[i])).collect();
            // Each is mistaken for signal once in 100: 3 of 20 or more happen by chance once in 1000.
            let ranks: Vec<_> = found.iter().map(|found| found.spectrum.rank).collect();
            assert!(ranks.iter().filter(|&&rank| rank != Some(1)).count() < 3, "{episodes} × {length}: {ranks:?}");
            // At most one in 40 by chance, and an n-gram of noise loses by its parameters.
            let helps = found.iter().filter(|found| found.memory.unwrap().verdict == MemoryVerdict::Helps).count();
            assert!(helps < 2, "{episodes} × {length}: {helps}");
        }
    }
}

#[test]
fn memory_is_found_in_small_logs() {
    for (episodes, length) in [(9, 80), (1, 700), (60, 12)] {
        for (seed, i) in (0..5).flat_map(|seed| [(seed, 0), (seed, 1)]) {
            let found = found(&sticky(episodes, length, seed), &params(seed)[i]);
            let memory = found.memory.unwrap();
            // The last symbol returns with probability 0.9 + 0.1/15: ln 15 − 0.1 ln 14 − H(0.907) ≈ 2.2
            // nats, less what few steps leave to be learned.
            assert_eq!(memory.verdict, MemoryVerdict::Helps, "{memory:?}");
            assert!(memory.gain > 1.6 && memory.half_width < 0.4, "{memory:?}");
            assert!(found.spectrum.rank != Some(1), "no claim that the future is independent of the past");
            assert!(found.spectrum.rank.is_none_or(|rank| rank <= 15), "{:?}", found.spectrum.rank);
        }
    }
}

#[test]
fn a_floor_that_no_correlation_can_exceed_gives_no_rank() {
    // As many dimensions as there are cuts: noise alone has correlations near 1.
    let few = found(&noise(1, 250, 1), &LearnParams::default());
    assert_eq!(few.spectrum.rank, None);
    assert!(
        few.spectrum.floor[0].value > 0.95 && few.spectrum.floor.iter().all(|floor| floor.value <= 1.0),
        "{:?}",
        few.spectrum.floor
    );
    assert_eq!(few.memory.unwrap().verdict, MemoryVerdict::NoEvidence);
}

#[test]
fn more_episodes_show_more_of_the_rank_and_never_more_than_there_is() {
    // The tiger has two states; float-reset has five.
    for (domain, rank) in [("tiger", 2), ("float-reset", 5)] {
        for i in 0..2 {
            // Two seeds: an excess, which happens once in 100, must not be in both.
            let of = |episodes| {
                (1..3).map(|s| found(&sampled(domain, episodes, s), &params(s)[i]).spectrum.rank.unwrap_or(1)).min().unwrap()
            };
            let ranks = [40, 400, 4000].map(of);
            assert!(ranks.is_sorted() && ranks[2] <= rank, "{domain}: {ranks:?}");
            // Whole histories repeat in the first steps only, so the tiger needs 10 000 episodes.
            assert!(ranks[0] < ranks[2] || (domain, i) == ("tiger", 1), "{domain}: {ranks:?}");
        }
    }
    let enough = found(&sampled("tiger", 10_000, 1), &params(1)[0]).spectrum;
    assert_eq!(enough.rank, Some(2));
    assert!(enough.floor.windows(2).all(|f| f[0].direction < f[1].direction));
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let logs = sampled("tiger", 300, 1);
    for params in params(3) {
        let by = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| found(&logs, &params))
        };
        assert_eq!(by(1), by(2));
    }
}

#[test]
fn a_single_long_episode_has_a_rank_but_no_halves() {
    let tiger = domains::get("tiger").unwrap();
    let long = domains::sample(&tiger, 1, 30_000, Seed(1)).collect();
    let found = found(&Logs::memory(tiger.alphabet().clone(), long), &params(1)[0]);
    assert_eq!((found.spectrum.rank, found.memory.unwrap().verdict), (Some(2), MemoryVerdict::Helps));
    assert!(found.by_step.is_empty() && found.sparsity.exact && found.episodes == 1);
}

#[test]
fn a_single_short_episode_says_nothing() {
    for length in [4, 20, 70, 150] {
        let found = found(&sticky(1, length, 1), &params(1)[0]);
        assert_eq!((found.spectrum.rank, found.spectrum.floor.len(), found.memory), (None, 0, None), "{length} steps");
    }
}

#[test]
fn logs_without_room_are_refused_as_learning_does() {
    let tiger = domains::get("tiger").unwrap();
    let short = Logs::memory(tiger.alphabet().clone(), domains::sample(&tiger, 10, 2, Seed(1)).collect());
    let error = diagnose(&short, &LearnParams::default(), &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("no episode is longer than 2 steps"), "{error}");
}
