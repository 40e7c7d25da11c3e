//! Moments of parts of the logs, put together, give the model of all logs.

use foretell::store::sealed;
use foretell::{
    ActionObservation, Alphabet, Cuts, End, Keep, LearnParams, Learner, Logs, Model, Moments, OperatorsFrom, Projection, Seed,
    Start, Trajectory, Weighting, domains, learn, score,
};
use proptest::prelude::*;
use safetensors::tensor::{Dtype, SafeTensors, TensorView, serialize};

/// Sums are exact, but operators from a second pass are rounded otherwise than those from moments;
/// random data make small singular values, which amplify it. A lost cut changes predictions by 1e-4
/// and more.
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
            about: Default::default(),
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

/// Both give the same probabilities and have the same counts.
fn same(ours: &Model, theirs: &Model) -> Result<(), TestCaseError> {
    prop_assert_eq!(ours.alphabet(), theirs.alphabet());
    prop_assert_eq!(ours.trained_on(), theirs.trained_on());
    prop_assert_eq!(ours.ngram(), theirs.ngram());
    for sequence in sequences(ours.alphabet()) {
        let (x, y) = (ours.linear().unwrap().joint_probability(&sequence), theirs.linear().unwrap().joint_probability(&sequence));
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
                // Uncompressed sequences are numbered in order of appearance, which late cuts may
                // change.
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
            // Square moments: d_T = d_H = 7 with the null test and history, 8 with the two special
            // rows of suffix histories.
            let full = LearnParams { rank: 7, ..sizes(LearnParams::paper()) };
            let wide = LearnParams { rank: 4, test_dim: 7, ..sizes(LearnParams::default()) };
            for params in [full, wide] {
                let batch = learn(&all, &params).unwrap();
                let mut updated = Learner::new(&params).keep(Keep::Compressed).learn(&logs(&parts[0], false)).unwrap();
                prop_assert!(!updated.moments.as_ref().unwrap().is_exact());
                let spectrum = updated.model.linear().unwrap().spectrum();
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

/// Random episodes of eight steps and less.
fn random(episodes: usize, seed: u64) -> Vec<Named> {
    let mut rng = Seed(seed).rng();
    let mut below = move |n: usize| (rng.uniform() * n as f64) as usize;
    (0..episodes)
        .map(|_| {
            let terminated = below(3) == 0;
            let length = if terminated { 2 + below(7) } else { 8 };
            ((0..length).map(|_| (below(2), below(3))).collect(), terminated)
        })
        .collect()
}

#[test]
fn moments_of_other_parameters_or_compressed_ones_are_not_merged() {
    let (ours, theirs) = (logs(&random(20, 1), false), logs(&random(20, 2), false));
    let params = LearnParams { rank: 3, test_dim: 12, history_dim: 14, ..LearnParams::default() };
    let message = |other: Moments| {
        let mut moments = kept(&ours, &params);
        let before = moments.model().unwrap();
        let error = moments.merge(other).unwrap_err().to_string();
        assert!(moments.model().unwrap() == before, "a merge that is refused changes nothing");
        error
    };
    let others = [
        (LearnParams { seed: 7, ..params.clone() }, "seed is 0 in one and 7 in the other"),
        (LearnParams { rank: 4, ..params.clone() }, "rank is 3 in one and 4 in the other"),
        (LearnParams { cuts: Cuts::Ragged, ..params.clone() }, "cuts is \"complete\" in one and \"ragged\" in the other"),
    ];
    for (other, expected) in others {
        let said = message(kept(&theirs, &other));
        assert!(said.contains(expected) && said.contains("learn them with the same parameters"), "{said}");
    }
    let compressed = Learner::new(&params).keep(Keep::Compressed).learn(&theirs).unwrap().moments.unwrap();
    let said = message(compressed);
    assert!(said.contains("only exact moments can be merged") && said.contains("`keep_moments` exact"), "{said}");
}

#[test]
fn weighted_moments_with_new_actions_are_refused_and_stay_as_they_are() {
    let one_action = |z: &Named| (z.0.iter().map(|&(_, o)| (0, o)).collect(), z.1);
    let few: Vec<Named> = random(30, 1).iter().map(one_action).collect();
    // An alphabet of what occurs only.
    let mut alphabet = Alphabet::default();
    alphabet.intern_action("left");
    for name in OBSERVATIONS {
        alphabet.intern_observation(name);
        alphabet.intern_terminal_observation(name);
    }
    let step = |&(_, o): &(usize, usize)| ActionObservation {
        action: alphabet.action("left").unwrap(),
        observation: alphabet.observation(OBSERVATIONS[o]).unwrap(),
    };
    let trajectory = |z: &Named| Trajectory {
        steps: z.0.iter().map(step).collect(),
        rewards: vec![None; z.0.len()],
        action_probabilities: vec![1.0; z.0.len()],
        end: End::Truncated,
        about: Default::default(),
    };
    let blind = Logs::memory(alphabet.clone(), few.iter().map(trajectory).collect());
    let sizes = LearnParams { rank: 2, test_dim: 12, history_dim: 14, ..LearnParams::default() };
    let params = LearnParams { weighting: Weighting::Propensity, ..sizes };
    let mut moments = kept(&blind, &params);
    let before = moments.model().unwrap();
    let said = moments.merge(kept(&logs(&random(30, 2), false), &params)).unwrap_err().to_string();
    assert!(said.contains("the number of actions changed from 1 to 2"), "{said}");
    assert!(moments.model().unwrap() == before, "a merge that is refused changes nothing");
}

/// More than one batch (2¹⁴ steps), so that memory is found too small between batches.
#[test]
fn where_memory_is_short_the_first_model_loses_nothing() {
    let all = logs(&random(4000, 3), false);
    for projection in [Projection::Hashed, Projection::SignedHash, Projection::Spherical, Projection::Identity] {
        let both = LearnParams { test_projection: projection, history_projection: projection, ..LearnParams::default() };
        let sizes = LearnParams { test_dim: 12, history_dim: 14, rank: 3, history_length: 2, ..both };
        let paper = LearnParams { max_test_length: 2, rank: 2, ..LearnParams::paper() };
        let paper =
            LearnParams { test_projection: projection, history_projection: projection, test_dim: 12, history_dim: 12, ..paper };
        for params in [sizes, paper] {
            let plain = learn(&all, &params).unwrap();
            let learner = || Learner::new(&params).memory(1000);
            let fitting = learner().keep(Keep::Fitting).learn(&all).unwrap();
            assert_eq!(fitting.operators, OperatorsFrom::SecondPass, "{params:?}");
            same(&fitting.model, &plain).unwrap();
            let moments = from_file(fitting);
            assert!(!moments.is_exact());
            same(&moments.model().unwrap(), &plain).unwrap();
            let said = learner().keep(Keep::Exact).learn(&all).unwrap_err().to_string();
            assert!(said.contains("pairs take more than") && said.contains("`memory`"), "{said}");
            let roomy = Learner::new(&params).keep(Keep::Fitting).learn(&all).unwrap();
            assert_eq!((roomy.operators, roomy.moments.unwrap().is_exact()), (OperatorsFrom::Moments, true));
        }
    }
}

/// Guessed by their lengths in the bases kept instead of by regression, old operators cost half a
/// nat here.
#[test]
fn a_compressed_update_of_the_default_recipe_predicts_about_as_well_as_batch_learning() {
    let maze = domains::get("colored-gridworld").unwrap();
    let episodes: Vec<_> = domains::sample(&maze, 2500, 13, Seed(1)).collect();
    let logs = |episodes: &[Trajectory]| Logs::memory(maze.alphabet().clone(), episodes.to_vec());
    let params = LearnParams { test_dim: 256, history_dim: 256, rank: 20, ..LearnParams::default() };
    let first = Learner::new(&params).keep(Keep::Compressed).learn(&logs(&episodes[..1000])).unwrap();
    let updated = Learner::new(&params).update(from_file(first), &logs(&episodes[1000..2000])).unwrap();
    let batch = learn(&logs(&episodes[..2000]), &params).unwrap();
    let last = |model: &Model| score(model, &logs(&episodes[2000..]), None).unwrap().horizons[12].log_likelihood;
    let (ours, theirs) = (last(&updated.model), last(&batch));
    assert!(ours > theirs - 0.3, "{ours} {theirs}");
}

type Tensor = (String, Dtype, Vec<usize>, Vec<u8>);

/// A safetensors file with its arrays changed, and the checksum that belongs to it.
fn rewritten(bytes: &[u8], change: impl FnOnce(&mut Vec<Tensor>)) -> Vec<u8> {
    let (_, metadata) = SafeTensors::read_metadata(bytes).unwrap();
    let file = SafeTensors::deserialize(bytes).unwrap();
    let own = |(name, view): (String, TensorView<'_>)| (name, view.dtype(), view.shape().to_vec(), view.data().to_vec());
    let mut tensors: Vec<Tensor> = file.tensors().into_iter().map(own).collect();
    change(&mut tensors);
    let views = tensors.iter().map(|(name, dtype, shape, data)| (name, TensorView::new(*dtype, shape.clone(), data).unwrap()));
    sealed(serialize(views, metadata.metadata().clone()).unwrap())
}

/// A model file with other bytes for its moments.
fn with_moments(model: &[u8], moments: Vec<u8>) -> Vec<u8> {
    rewritten(model, |tensors| {
        let (_, _, shape, data) = tensors.iter_mut().find(|tensor| tensor.0 == "moments").unwrap();
        (*shape, *data) = (vec![moments.len()], moments);
    })
}

fn moments_of(model: &[u8]) -> Vec<u8> {
    SafeTensors::deserialize(model).unwrap().tensor("moments").unwrap().data().to_vec()
}

fn load(bytes: &[u8]) -> foretell::Result<Moments> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    Moments::load(file.path())
}

/// Model files with moments of every kind.
fn files() -> Vec<Vec<u8>> {
    let logs = logs(&random(40, 4), false);
    let save = |params: &LearnParams, keep: Keep| {
        let learned = Learner::new(params).keep(keep).learn(&logs).unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        learned.model.save_with_moments(&learned.moments.unwrap(), file.path()).unwrap();
        std::fs::read(file.path()).unwrap()
    };
    let recipes = recipes(1).into_iter().filter(|params| params.test_projection != Projection::Rademacher);
    recipes.flat_map(|params| [Keep::Exact, Keep::Compressed].map(|keep| save(&params, keep))).collect()
}

/// Moments that were read must also work, or be refused.
fn make_use_of(moments: Moments) {
    let more = logs(&random(10, 5), true);
    let params = moments.params().clone();
    let _ = moments.model();
    if let Ok(other) = Learner::new(&params).keep(Keep::Exact).learn(&more) {
        let _ = other.moments.unwrap().merge(moments.clone());
    }
    let _ = Learner::new(&params).update(moments, &more);
}

#[test]
fn moments_with_missing_short_or_unfit_arrays_are_refused_by_name() {
    for file in files() {
        let moments = moments_of(&file);
        make_use_of(load(&file).unwrap());
        let names: Vec<String> = SafeTensors::deserialize(&moments).unwrap().names().into_iter().map(String::from).collect();
        for name in &names {
            let read = |change: &dyn Fn(&mut Tensor)| {
                let at = |tensors: &mut Vec<Tensor>| change(tensors.iter_mut().find(|tensor| tensor.0 == *name).unwrap());
                load(&with_moments(&file, rewritten(&moments, at)))
            };
            let said = |moments: foretell::Result<Moments>| moments.map(drop).unwrap_err().to_string();
            let missing = said(read(&|tensor| tensor.0 = "other".into()));
            assert!(missing.contains("is missing") && missing.contains("learn the model again"), "{name}: {missing}");
            let unfit =
                said(read(&|tensor| (tensor.1, tensor.2, tensor.3) = (Dtype::I8, vec![tensor.3.len()], tensor.3.clone())));
            assert!(unfit.contains(&format!("array {name} is I8")), "{name}: {unfit}");
            let short = read(&|(_, dtype, shape, data)| {
                data.truncate(data.len().saturating_sub(dtype.bitsize() / 8));
                *shape = vec![data.len() / (dtype.bitsize() / 8)];
            });
            match short {
                Err(error) => assert!(error.to_string().contains("the set of moments is damaged"), "{name}: {error}"),
                Ok(moments) => make_use_of(moments),
            }
            let is_number = SafeTensors::deserialize(&moments).unwrap().tensor(name).unwrap().dtype() == Dtype::F64;
            if is_number {
                let changed =
                    read(&|(_, _, _, data)| data.chunks_exact_mut(8).for_each(|x| x.copy_from_slice(&f64::NAN.to_le_bytes())));
                match changed {
                    Err(error) => assert!(error.to_string().contains("not finite"), "{name}: {error}"),
                    Ok(moments) => make_use_of(moments), // it was empty
                }
            }
        }
    }
}

#[test]
fn moments_that_are_cut_short_are_refused() {
    for file in files() {
        let moments = moments_of(&file);
        for i in 0..50 {
            let cut = with_moments(&file, moments[..moments.len() * i / 50].to_vec());
            let said = load(&cut).unwrap_err().to_string();
            assert!(said.contains("not a safetensors file, or only a part of one") || said.contains("cut short"), "{said}");
            assert!(load(&file[..file.len() * i / 50]).is_err());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_changed_bytes_of_moments_make_readers_panic(
        which in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        in_header in any::<bool>(),
    ) {
        thread_local!(static FILES: Vec<Vec<u8>> = files());
        FILES.with(|files| {
            let file = which.get(files);
            let mut moments = moments_of(file);
            let header = 8 + u64::from_le_bytes(moments[..8].try_into().unwrap()) as usize;
            for (at, byte) in &changes {
                let at = if in_header { at.index(header) } else { header + at.index(moments.len() - header) };
                // In the header a change of one digit or letter tests more than noise.
                moments[at] = if in_header { b"0123456789abct-\""[*byte as usize % 16] } else { *byte };
            }
            if let Ok(moments) = load(&with_moments(file, sealed(moments))) {
                make_use_of(moments);
            }
        });
    }
}
