//! Diagnosis of logs of systems whose rank is known.

use foretell::judge::diagnose::{Diagnosis, diagnose};
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
fn noise(episodes: usize, seed: u64) -> Logs {
    let mut alphabet = Alphabet::default();
    ["left", "right"].iter().for_each(|name| {
        alphabet.intern_action(name);
    });
    ["a", "b", "c"].iter().for_each(|name| {
        alphabet.intern_observation(name);
    });
    let mut rng = Seed(seed).rng();
    let mut episode = || {
        let steps = (0..12).map(|_| ActionObservation::new(rng.below(2) as u32, rng.below(3) as u32)).collect();
        Trajectory { steps, rewards: vec![None; 12], action_probabilities: vec![], end: End::Truncated }
    };
    Logs::memory(alphabet, (0..episodes).map(|_| episode()).collect())
}

fn sampled(domain: &str, episodes: usize, seed: u64) -> Logs {
    let domain = domains::get(domain).unwrap();
    Logs::memory(domain.alphabet().clone(), domains::sample(&domain, episodes, 20, Seed(seed)).collect())
}

#[test]
fn noise_has_rank_1() {
    // Each is mistaken for signal once in 100: 3 of 20 or more happen by chance once in 1000.
    for i in 0..2 {
        let ranks: Vec<usize> = (0..20).map(|s| found(&noise(400, s), &params(s)[i]).spectrum.rank.unwrap()).collect();
        assert!(ranks.iter().filter(|&&rank| rank != 1).count() < 3, "{ranks:?}");
    }
}

#[test]
fn more_episodes_show_more_of_the_rank_and_never_more_than_there_is() {
    // The tiger has two states; float-reset has five.
    for (domain, rank) in [("tiger", 2), ("float-reset", 5)] {
        for i in 0..2 {
            // Two seeds: an excess, which happens once in 100, must not be in both.
            let of = |episodes| {
                (1..3).map(|s| found(&sampled(domain, episodes, s), &params(s)[i]).spectrum.rank.unwrap()).min().unwrap()
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
fn a_single_episode_gives_neither_noise_nor_halves() {
    let long = domains::sample(&domains::get("tiger").unwrap(), 1, 3000, Seed(1)).collect();
    let logs = Logs::memory(domains::get("tiger").unwrap().alphabet().clone(), long);
    let found = found(&logs, &params(1)[0]);
    assert_eq!((found.spectrum.rank, found.spectrum.floor.len()), (None, 0));
    assert!(found.by_step.is_empty() && found.sparsity.exact && found.episodes == 1);
}

#[test]
fn logs_without_room_are_refused_as_learning_does() {
    let tiger = domains::get("tiger").unwrap();
    let short = Logs::memory(tiger.alphabet().clone(), domains::sample(&tiger, 10, 2, Seed(1)).collect());
    let error = diagnose(&short, &LearnParams::default(), &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("no episode is longer than 2 steps"), "{error}");
}
