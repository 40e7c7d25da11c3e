//! What the default recipe must reach on ColoredGridWorld, from 10 000 random episodes of at most
//! 13 steps.

use foretell::{LearnParams, Logs, Seed, domains, learn, score};

/// Gap to the exact model at horizon 13 on fresh seeds: 0.77 ± 0.02, and 0.65 ± 0.01 with the
/// n-gram mixed in.
const LARGEST_GAP: f64 = 1.0;
const LARGEST_GAP_MIXED: f64 = 0.8;

#[test]
fn the_default_recipe_comes_close_to_the_truth_and_its_mixture_beats_every_n_gram() {
    let domain = domains::get("colored-gridworld").unwrap();
    let sample = |seed| Logs::memory(domain.alphabet().clone(), domains::sample(&domain, 10_000, 13, Seed(seed)).collect());
    let (train, held_out) = (sample(31), sample(32));
    let model = learn(&train, &LearnParams::default()).unwrap();

    let plain = score(&model, &held_out, domain.pomdp()).unwrap();
    let truth = plain.truth.unwrap();
    let gap = truth[12].log_likelihood - plain.horizons[12].log_likelihood;
    assert!((0.0..LARGEST_GAP).contains(&gap), "{gap}");
    assert!(plain.lost * 100 < plain.steps, "lost {} times in {} steps", plain.lost, plain.steps);

    let mixed = score(&model.with_mix(0.2).unwrap(), &held_out, None).unwrap();
    let gap = truth[12].log_likelihood - mixed.horizons[12].log_likelihood;
    assert!((0.0..LARGEST_GAP_MIXED).contains(&gap), "{gap}");
    for (name, baseline) in &mixed.baselines {
        for (ours, theirs) in mixed.horizons.iter().zip(baseline) {
            assert!(
                ours.log_likelihood >= theirs.log_likelihood,
                "{name} is better at horizon {}: {theirs:?} {ours:?}",
                ours.horizon
            );
        }
    }
    for bin in mixed.calibration.iter().filter(|b| b.predictions > 5000) {
        assert!((bin.predicted - bin.observed).abs() < 0.1, "{bin:?}");
    }
}
