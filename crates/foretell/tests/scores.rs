//! Scores of models: mixtures with the n-gram, comparison with baselines, intervals.

use foretell::judge::{Comparison, Verdict};
use foretell::{LearnParams, Logs, Model, Score, Seed, domains, learn, score};

fn sampled(domain: &str, episodes: usize, steps: usize, seed: u64) -> Logs {
    let domain = domains::get(domain).unwrap();
    Logs::memory(domain.alphabet().clone(), domains::sample(&domain, episodes, steps, Seed(seed)).collect())
}

fn learned(logs: &Logs) -> Model {
    learn(logs, &LearnParams { test_dim: 64, history_dim: 64, rank: 8, ..LearnParams::default() }).unwrap()
}

fn compared<'s>(score: &'s Score, name: &str) -> &'s Comparison {
    score.comparisons.iter().find(|comparison| comparison.name == name).unwrap()
}

/// The per-step scores of a model with these weights of the n-gram.
fn by_mix(model: &Model, held_out: &Logs, mixes: &[f64]) -> Vec<f64> {
    mixes.iter().map(|&mix| score(&model.clone().with_mix(mix).unwrap(), held_out, None).unwrap().per_step).collect()
}

#[test]
fn with_a_weight_of_one_the_n_gram_alone_predicts() {
    for (domain, episodes) in [("colored-gridworld", 20), ("colored-gridworld", 500), ("tiger", 50)] {
        let model = learned(&sampled(domain, episodes, 13, 1)).with_mix(1.0).unwrap();
        let score = score(&model, &sampled(domain, 100, 13, 2), None).unwrap();
        let longest = compared(&score, &format!("ngram-{}", model.ngram().length()));
        assert!(longest.difference.abs() < 1e-12, "{domain}, {episodes} episodes: {longest:?}");
        assert_eq!(longest.verdict(), Some(Verdict::WithinNoise));
    }
}

#[test]
fn no_weight_of_the_n_gram_is_much_worse_than_both_ends() {
    /// Nats per step.
    const MUCH: f64 = 0.02;
    const WEIGHTS: [f64; 10] = [0.0, 0.1, 0.2, 0.4, 0.6, 0.8, 0.95, 0.99, 0.9999, 1.0];
    for (domain, episodes) in [("colored-gridworld", 20), ("colored-gridworld", 500), ("tiger", 10)] {
        let scores = by_mix(&learned(&sampled(domain, episodes, 13, 1)), &sampled(domain, 200, 13, 2), &WEIGHTS);
        let worse_end = scores[0].min(scores[WEIGHTS.len() - 1]);
        assert!(scores.iter().all(|&score| score > worse_end - MUCH), "{domain}, {episodes} episodes: {scores:?}");
        let [almost, one] = scores[WEIGHTS.len() - 2..] else { unreachable!("there are ten") };
        assert!((almost - one).abs() < 1e-3, "a weight of almost one is almost the n-gram: {almost} {one}");
    }
}

#[test]
fn scores_with_their_intervals_do_not_depend_on_the_number_of_threads() {
    let model = learned(&sampled("colored-gridworld", 200, 13, 1));
    // One long episode, a few, and several batches.
    for (episodes, steps) in [(1, 3000), (7, 100), (5000, 13)] {
        let held_out = sampled("tiger", episodes, steps, 2);
        let model = if steps == 13 { &model } else { &learned(&sampled("tiger", 100, 13, 1)) };
        let held_out = if steps == 13 { sampled("colored-gridworld", episodes, steps, 2) } else { held_out };
        let with = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| score(model, &held_out, None).unwrap())
        };
        let one = with(1);
        assert!(one.per_step_ci95 > Some(0.0) && one.comparisons.iter().all(|c| c.ci95.is_some()), "{episodes} episodes");
        assert_eq!(one, with(3));
    }
}

#[test]
fn comparisons_are_the_differences_of_the_scores() {
    let domain = domains::get("colored-gridworld").unwrap();
    let (training, held_out) = (sampled("colored-gridworld", 2000, 13, 1), sampled("colored-gridworld", 1000, 13, 2));
    let model = learned(&training);
    let score = score(&model, &held_out, domain.pomdp()).unwrap();
    let names: Vec<&str> = score.comparisons.iter().map(|comparison| comparison.name.as_str()).collect();
    assert_eq!(names, ["uniform", "ngram-0", "ngram-1", "ngram-2", "ngram-3", "truth"]);
    let observations = model.alphabet().observations().len() as f64;
    let uniform = compared(&score, "uniform");
    assert!((score.per_step - uniform.difference + observations.ln()).abs() < 1e-3, "{uniform:?}");
    assert_eq!(uniform.verdict(), Some(Verdict::Better));
    assert_eq!(compared(&score, "truth").verdict(), Some(Verdict::Worse));
    // The exact model is no baseline.
    let (_, decides) = score.verdict().unwrap();
    assert!(decides.name.starts_with("ngram-"), "{decides:?}");
    // Paired differences vary less than the scores themselves.
    assert!(compared(&score, "truth").ci95 < score.per_step_ci95);
}
