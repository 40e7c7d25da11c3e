//! Moments of parts of the logs, put together, give the model of all logs.

use foretell::{
    ActionObservation, Alphabet, Cuts, End, Keep, LearnParams, Learner, Logs, Model, Moments, OperatorsFrom, Projection, Start,
    Trajectory, Weighting, learn,
};
use proptest::prelude::*;

/// Sums are exact, but operators from a second pass are rounded otherwise than those from moments; random data make small
/// singular values, which amplify it. A lost cut changes predictions by 1e-4 and more.
const ROUNDING: f64 = 1e-9;

const PROJECTIONS: [Projection; 5] =
    [Projection::Spherical, Projection::Rademacher, Projection::Hashed, Projection::SignedHash, Projection::Identity];

/// Names in an order of their own, so that parts number them differently.
fn alphabet(reversed: bool) -> Alphabet {
    let mut alphabet = Alphabet::default();
    let mut names = ["left", "right", "dark", "light", "dim"];
    if reversed {
        names.reverse();
    }
    for name in names {
        match name {
            "left" | "right" => drop(alphabet.intern_action(name)),
            name => {
                alphabet.intern_observation(name);
                alphabet.intern_terminal_observation(name);
            }
        }
    }
    alphabet
}

/// Steps as names, and whether the last ends the episode.
type Named = (Vec<(usize, usize)>, bool);

const ACTIONS: [&str; 2] = ["left", "right"];
const OBSERVATIONS: [&str; 3] = ["dark", "light", "dim"];

fn logs(episodes: &[Named], reversed: bool) -> Logs {
    let alphabet = alphabet(reversed);
    let trajectory = |(steps, terminated): &Named| {
        let last = steps.len() - 1;
        let step = |(t, &(a, o)): (usize, &(usize, usize))| ActionObservation {
            action: alphabet.action(ACTIONS[a]).unwrap(),
            observation: match t == last && *terminated {
                true => alphabet.terminal_observation(OBSERVATIONS[o]).unwrap(),
                false => alphabet.observation(OBSERVATIONS[o]).unwrap(),
            },
        };
        Trajectory {
            steps: steps.iter().enumerate().map(step).collect(),
            rewards: vec![None; steps.len()],
            action_probabilities: steps.iter().map(|&(a, o)| 0.3 + 0.2 * a as f64 + 0.1 * o as f64).collect(),
            end: if *terminated { End::Terminated } else { End::Truncated },
        }
    };
    let trajectories = episodes.iter().map(trajectory).collect();
    Logs::memory(alphabet, trajectories)
}

/// Episodes of all lengths and ends; the third observation comes late.
fn episodes(symbols: usize) -> impl Strategy<Value = Vec<Named>> {
    let steps = prop::collection::vec((0..2usize, 0..symbols), 1..9);
    prop::collection::vec((steps, prop::bool::weighted(0.4)), 15..40)
}

/// Parts of which each has an episode long enough for a cut.
fn parts() -> impl Strategy<Value = Vec<Vec<Named>>> {
    let long = |n: usize| ((0..n).map(|i| (i % 2, i / 2 % 2)).collect::<Vec<_>>(), false);
    (episodes(2), episodes(3), episodes(3), 5..10usize, 5..10usize).prop_map(move |(mut a, mut b, mut c, first, second)| {
        a.push(long(first));
        b.push(long(second));
        c.push((vec![(0, 0), (1, 2), (0, 1), (1, 0), (0, 1), (1, 1)], true));
        vec![a, b, c]
    })
}

fn recipes(seed: u64) -> Vec<LearnParams> {
    let mut all = Vec::new();
    for projection in PROJECTIONS {
        let sizes = LearnParams {
            test_projection: projection,
            history_projection: projection,
            test_dim: 12,
            history_dim: 14,
            seed,
            ..LearnParams::default()
        };
        // Ranks inside the numerical rank of random data.
        let paper = LearnParams { max_test_length: 3, rank: 2, ..LearnParams::paper() };
        all.push(LearnParams { rank: 3, ..sizes.clone() });
        all.push(LearnParams { rank: 3, weighting: Weighting::Next, ..sizes.clone() });
        all.push(LearnParams { rank: 3, weighting: Weighting::Propensity, start: Start::Mixed, ..sizes.clone() });
        all.push(LearnParams {
            test_projection: projection,
            history_projection: projection,
            test_dim: 12,
            history_dim: 14,
            seed,
            ..paper.clone()
        });
        all.push(LearnParams {
            cuts: Cuts::Ragged,
            history_projection: Projection::Identity,
            test_projection: projection,
            seed,
            ..paper
        });
    }
    all
}

fn kept(logs: &Logs, params: &LearnParams) -> Moments {
    Learner::new(params).keep(Keep::Exact).learn(logs).unwrap().moments.unwrap()
}

/// Moments as they come back from a model file.
fn from_file(learned: foretell::Learned) -> Moments {
    let file = tempfile::NamedTempFile::new().unwrap();
    learned.model.save_with_moments(&learned.moments.unwrap(), file.path()).unwrap();
    assert_eq!(Model::load(file.path()).unwrap(), learned.model);
    Moments::load(file.path()).unwrap()
}

fn sequences(alphabet: &Alphabet) -> Vec<Vec<ActionObservation>> {
    let (actions, observations) = (alphabet.actions().len() as u32, alphabet.observations().len() as u32);
    let pairs: Vec<_> = (0..actions).flat_map(|a| (0..observations).map(move |o| ActionObservation::new(a, o))).collect();
    pairs.iter().flat_map(|&x| pairs.iter().map(move |&y| vec![x, y])).chain(pairs.iter().map(|&x| vec![x])).collect()
}

/// Both tell the same probabilities and have counted the same.
fn same(ours: &Model, theirs: &Model) -> Result<(), TestCaseError> {
    prop_assert_eq!(ours.alphabet(), theirs.alphabet());
    prop_assert_eq!(ours.trained_on(), theirs.trained_on());
    prop_assert_eq!(ours.ngram(), theirs.ngram());
    for sequence in sequences(ours.alphabet()) {
        let (x, y) = (ours.joint_probability(&sequence), theirs.joint_probability(&sequence));
        prop_assert!((x - y).abs() < ROUNDING * x.abs().max(y.abs()).max(1.0), "{:?}: {x} {y}", ours.params());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn parts_give_the_model_of_all_logs(parts in parts(), seed in 0..1000u64) {
        let all = logs(&parts.concat(), false);
        for params in recipes(seed) {
            let plain = learn(&all, &params).unwrap();
            let whole = Learner::new(&params).keep(Keep::Exact).learn(&all).unwrap();
            prop_assert_eq!(whole.operators, OperatorsFrom::Moments);
            same(&whole.model, &plain)?;

            let mut updated = Learner::new(&params).keep(Keep::Exact).learn(&logs(&parts[0], false)).unwrap();
            for (part, reversed) in parts[1..].iter().zip([true, false]) {
                updated = Learner::new(&params).update(from_file(updated), &logs(part, reversed)).unwrap();
            }
            let mut merged = kept(&logs(&parts[0], false), &params);
            merged.merge(kept(&logs(&parts[1], true), &params)).unwrap();
            merged.merge(kept(&logs(&parts[2], false), &params)).unwrap();
            for model in [updated.model, merged.model().unwrap()] {
                same(&model, &plain)?;
                // Uncompressed sequences are numbered as they are met, which late cuts may change.
                let is_numbered = [params.test_projection, params.history_projection].contains(&Projection::Identity);
                if params.weighting == Weighting::None && !is_numbered {
                    prop_assert!(model == whole.model, "sums are exact, so no bit may differ: {params:?}");
                }
            }
        }
    }

    /// [H14 §3.2.2]: where the bases span everything, turning operators into new ones loses nothing.
    #[test]
    fn updates_at_full_rank_are_batch_learning(parts in parts(), seed in 0..1000u64) {
        let all = logs(&parts.concat(), false);
        for projection in PROJECTIONS.into_iter().filter(|projection| *projection != Projection::Identity) {
            let sizes = |preset| LearnParams {
                test_projection: projection,
                history_projection: projection,
                test_dim: 6,
                history_dim: 6,
                max_test_length: 2,
                seed,
                ..preset
            };
            // Square moments: d_T = d_H = 7 with the null test and history, 8 with the two special rows of suffix histories.
            let full = LearnParams { rank: 7, ..sizes(LearnParams::paper()) };
            let wide = LearnParams { rank: 4, test_dim: 7, ..sizes(LearnParams::default()) };
            for params in [full, wide] {
                let batch = learn(&all, &params).unwrap();
                let mut updated = Learner::new(&params).keep(Keep::Compressed).learn(&logs(&parts[0], false)).unwrap();
                prop_assert!(!updated.moments.as_ref().unwrap().is_exact());
                let spectrum = updated.model.spectrum();
                if spectrum.len() < params.test_dim + 1 || spectrum[params.test_dim] < 1e-6 * spectrum[0] {
                    continue; // the first part alone does not span everything
                }
                for (part, reversed) in parts[1..].iter().zip([true, false]) {
                    updated = Learner::new(&params).update(from_file(updated), &logs(part, reversed)).unwrap();
                }
                same(&updated.model, &batch)?;
                same(&updated.moments.unwrap().model().unwrap(), &batch)?;
            }
        }
    }
}
