//! Properties of every model.

use faer::Mat;
use foretell::model::UniformFilter;
use foretell::store::sealed;
use foretell::testing::assert_predicts;
use foretell::{
    Action, ActionObservation, CutRule, End, Filter, LearnParams, Logs, Model, NGramFilter, Observation, Pomdp, Predict,
    PredictiveState, Projection, Recipe, RefineParams, Seed, Track, Trajectory, domains, learn,
};
use proptest::prelude::*;

/// Two coins in a cup: shaking may swap them, and looking gives little information.
const COINS: &str = include_str!("data/coins.POMDP");

fn colored(episodes: usize, seed: u64) -> Logs {
    let domain = domains::get("colored-gridworld").unwrap();
    Logs::memory(domain.alphabet().clone(), domains::sample(&domain, episodes, 13, Seed(seed)).collect())
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let logs = colored(3000, 1);
    let presets = [
        LearnParams { test_dim: 128, history_dim: 128, rank: 10, ..LearnParams::default() },
        LearnParams {
            test_projection: Projection::Rademacher,
            history_projection: Projection::Spherical,
            test_dim: 70,
            history_dim: 70,
            rank: 10,
            ..LearnParams::default()
        },
        LearnParams::paper(),
        LearnParams { test_projection: Projection::Hashed, history_projection: Projection::Identity, ..LearnParams::paper() },
    ];
    for params in presets {
        let bytes = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| learn(&logs, &params).unwrap().to_bytes())
        };
        let one = bytes(1);
        assert!(one == bytes(2) && one == bytes(5), "{params:?}");
    }
}

#[test]
fn saving_and_loading_is_the_identity() {
    let model = learn(&colored(500, 2), &LearnParams { rank: 8, mix: 0.3, ..LearnParams::paper() }).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    model.save(&path).unwrap();
    assert_eq!(Model::load(&path).unwrap(), model);
    assert_eq!(std::fs::read(&path).unwrap(), model.to_bytes());
}

#[test]
fn filtering_then_predicting_is_predicting_the_whole() {
    let domain = domains::get("colored-gridworld").unwrap();
    let model = learn(&colored(2000, 3), &LearnParams { rank: 12, mix: 0.2, ..LearnParams::default() }).unwrap();
    for z in domains::sample(&domain, 50, 13, Seed(4)) {
        let whole = PredictiveState::new(&model).probability_of(&z.steps);
        for k in 0..z.steps.len() {
            let mut state = PredictiveState::new(&model);
            let first = state.probability_of(&z.steps[..k]);
            z.steps[..k].iter().for_each(|&ao| state.observe(ao));
            let product = first * state.probability_of(&z.steps[k..]);
            assert!((product - whole).abs() <= 1e-12 * whole, "{product} is not {whole}");
        }
    }
}

#[test]
fn every_filter_of_a_model_predicts() {
    let refine = Some(RefineParams { em_rounds: 2, ..RefineParams::default() });
    for (refine, ensemble) in [(None, None), (refine.clone(), None), (None, Some(2)), (refine, Some(2))] {
        let learn = LearnParams { rank: 8, mix: 0.2, ..LearnParams::paper() };
        let model = Recipe { learn, refine, ensemble, ..Recipe::default() }.fit(&colored(300, 16)).unwrap().model;
        let mut episodes = colored(30, 17).episodes_for(model.alphabet(), "model").unwrap();
        // An observation and an action that were not seen in training.
        episodes[0].steps[3].observation = Observation(model.alphabet().observations().len() as u32);
        episodes[1].steps[3].action = Action(model.alphabet().actions().len() as u32);
        assert_predicts(&mut PredictiveState::new(&model), model.alphabet(), &episodes);
        assert_predicts(&mut UniformFilter::of(&model), model.alphabet(), &episodes);
        for length in 0..=model.ngram().length() {
            assert_predicts(&mut NGramFilter::new(&model, length), model.alphabet(), &episodes);
        }
    }
}

#[test]
fn predictions_are_distributions_whatever_happened() {
    let model = learn(&colored(300, 5), &LearnParams { rank: 12, mix: 0.1, ..LearnParams::default() }).unwrap();
    let (actions, symbols) = (model.alphabet().actions().len(), model.alphabet().observations().len());
    let mut rng = Seed(6).rng();
    // Random pairs, most of them impossible, some of actions and symbols that were not seen in training.
    let pair = |_| ActionObservation {
        action: Action(rng.below(actions + 1) as u32),
        observation: Observation(rng.below(symbols + 2) as u32),
    };
    let ends = |o: Observation| model.alphabet().observations().get(o.index()).is_some_and(|o| o.terminal);
    let steps: Vec<_> = (0..3000).map(pair).filter(|ao| !ends(ao.observation)).collect();
    let z = Trajectory {
        rewards: vec![None; steps.len()],
        steps,
        action_probabilities: vec![],
        end: End::Truncated,
        about: Default::default(),
    };
    let mut state = PredictiveState::new(&model);
    assert_predicts(&mut state, model.alphabet(), std::slice::from_ref(&z));
    state.reset();
    for ao in z.steps {
        let total: f64 = state.predict(ao.action).iter().sum::<f64>() + state.unseen();
        assert!((total - 1.0).abs() < 1e-9, "{total}");
        assert!(state.update(ao) > 0.0);
        assert!(state.state().iter().all(|x| x.is_finite()));
    }
    assert!(state.lost() > 100, "random pairs must lose the filter, not {} times", state.lost());
}

#[test]
fn sampled_futures_follow_the_predictions() {
    const DRAWS: usize = 20_000;
    let model = learn(&colored(2000, 7), &LearnParams { rank: 12, ..LearnParams::default() }).unwrap();
    let mut state = PredictiveState::new(&model);
    let p = state.predict(Action(2)).to_vec();
    let mut rng = Seed(8).rng();
    let mut counts = vec![0.0; p.len()];
    (0..DRAWS).for_each(|_| counts[state.sample(&[Action(2)], &mut rng)[0].index()] += 1.0);
    for (p, n) in p.iter().zip(&counts) {
        let deviation = (p * (1.0 - p) * DRAWS as f64).sqrt();
        assert!((n - p * DRAWS as f64).abs() < 4.5 * deviation + 2.0, "{n} of {DRAWS} draws, predicted {p}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    #[test]
    fn a_change_of_basis_changes_nothing(entries in prop::collection::vec(-1.0..1.0f64, 36)) {
        let model = learn(&colored(400, 9), &LearnParams { rank: 6, ..LearnParams::default() }).unwrap();
        // Diagonally dominant, so well conditioned.
        let j = Mat::from_fn(6, 6, |r, c| entries[6 * r + c] + if r == c { 6.0 } else { 0.0 });
        let inverse = faer::linalg::solvers::DenseSolveCore::inverse(&j.partial_piv_lu());
        let rows = |m: &Mat<f64>| -> Vec<f64> { (0..36).map(|i| m[(i / 6, i % 6)]).collect() };
        let changed = model.transformed(&rows(&j), &rows(&inverse)).unwrap();
        let domain = domains::get("colored-gridworld").unwrap();
        for z in domains::sample(&domain, 30, 13, Seed(10)) {
            let (before, after) = (PredictiveState::new(&model).probability_of(&z.steps), PredictiveState::new(&changed).probability_of(&z.steps));
            prop_assert!((before - after).abs() <= 1e-9 * before, "{before} became {after}");
        }
    }

    #[test]
    fn damaged_models_are_refused_without_a_panic(place in 0.0..1.0f64, byte in any::<u8>(), cut in 0.0..1.0f64) {
        let model = learn(&colored(60, 11), &LearnParams { rank: 2, ..LearnParams::paper() }).unwrap();
        let bytes = model.to_bytes();
        let mut changed = bytes.clone();
        changed[(place * bytes.len() as f64) as usize] = byte;
        prop_assert!(changed == bytes || Model::from_bytes(&changed, "changed").is_err());
        let _ = Model::from_bytes(&sealed(changed), "changed");
        prop_assert!(Model::from_bytes(&bytes[..(cut * bytes.len() as f64) as usize], "short").is_err());
    }

    #[test]
    fn no_byte_string_makes_the_model_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(Model::from_bytes(&bytes, "noise").is_err());
    }
}

#[test]
fn cut_rules_are_one_convention_for_all_sums() {
    // Both passes use the same cuts: operators of pairs that never come next at a cut are zero.
    let domain = domains::get("tiger").unwrap();
    let zs: Vec<Trajectory> = domains::sample(&domain, 20, 4, Seed(12)).collect();
    let params = LearnParams { max_test_length: 2, rank: 2, ..LearnParams::paper() };
    let model = learn(&Logs::memory(domain.alphabet().clone(), zs.clone()), &params).unwrap();
    let rule = CutRule { room: 2, limit: Some(4) };
    for &ao in model.linear().unwrap().pairs() {
        let comes_next = zs.iter().any(|z| z.steps[..rule.count(z.steps.len(), z.end)].contains(&ao));
        let is_zero = model.linear().unwrap().operator(ao).unwrap().iter().all(|x| *x == 0.0);
        assert_eq!(comes_next, !is_zero, "{ao:?}");
    }
}

#[test]
fn nothing_follows_the_end_and_the_end_does_not_lose_the_filter() {
    let domain = domains::get("colored-gridworld").unwrap();
    let model = learn(&colored(3000, 13), &LearnParams { rank: 12, ..LearnParams::default() }).unwrap();
    let z = domains::sample(&domain, 3000, 13, Seed(14)).find(|z| z.end == End::Terminated).expect("one in a hundred ends");
    let mut state = PredictiveState::new(&model);
    z.steps[..z.steps.len() - 1].iter().for_each(|&ao| state.observe(ao));
    let last = *z.steps.last().unwrap();
    let lost = state.lost();
    assert!(state.update(last) > 0.0);
    assert_eq!(state.lost(), lost);
    assert_eq!(state.probability_of(&z.steps[..1]), 0.0);
    state.reset();
    assert!(state.probability_of(&z.steps[..1]) > 0.0);
}

#[test]
fn tiny_logs_and_tiny_alphabets_give_models() {
    let coins = Pomdp::parse(COINS, "test").unwrap();
    let tiger = domains::get("tiger").unwrap();
    let maze = domains::get("colored-gridworld").unwrap();
    let mut rng = Seed(15).rng();
    let mut random = foretell::Uniform { actions: 3 };
    let coin_logs: Vec<_> = (0..2000).map(|_| foretell::rollout(&mut coins.environment(), &mut random, 20, &mut rng)).collect();
    let cases = [
        (coins.alphabet(), coin_logs),
        (tiger.alphabet(), domains::sample(&tiger, 1, 5, Seed(1)).collect()),
        (tiger.alphabet(), domains::sample(&tiger, 2000, 20, Seed(2)).collect()),
        (maze.alphabet(), domains::sample(&maze, 1, 13, Seed(3)).collect()),
        (maze.alphabet(), domains::sample(&maze, 5, 13, Seed(4)).collect()),
    ];
    for (alphabet, episodes) in cases {
        for dim in [1024, 2048] {
            let params = LearnParams { test_dim: dim, history_dim: dim, ..LearnParams::default() };
            let model = learn(&Logs::memory(alphabet.clone(), episodes.clone()), &params).unwrap();
            let p = PredictiveState::new(&model).update(episodes[0].steps[0]);
            assert!(p > 0.0 && p < 1.0, "{p}");
        }
    }
}

/// The state after an action whose observation is one of a set is the mean of those after each,
/// weighted by their probabilities: the definition.
#[test]
fn a_partly_missing_observation_is_a_sum_over_its_completions() {
    const ROUNDING: f64 = 1e-9; // sums of a few products of numbers of order 1
    let logs = colored(2000, 1);
    let linear = learn(&logs, &LearnParams { rank: 8, mix: 0.0, ..LearnParams::default() }).unwrap();
    let refined = Recipe { refine: Some(RefineParams { em_rounds: 5, ..RefineParams::default() }), ..Recipe::default() };
    let refined = refined.fit(&logs).unwrap().model.with_mix(0.0).unwrap();
    let history = logs.open(linear.alphabet().clone()).unwrap().find(|z| z.as_ref().unwrap().steps.len() > 4).unwrap().unwrap();
    for model in [&linear, &refined] {
        let mut start = PredictiveState::new(model);
        history.steps[..3].iter().for_each(|&ao| start.observe(ao));
        let a = history.steps[3].action;
        let p = start.predict(a).to_vec();
        let ranked = |o: &usize| !model.alphabet().observations()[*o].terminal && p[*o] > 0.02;
        let set: Vec<Observation> = (0..p.len()).filter(ranked).take(3).map(|o| Observation(o as u32)).collect();
        assert!(set.len() > 1, "{p:?}");
        let mut among = start.clone();
        let probability = among.update_among(a, &set);
        let total: f64 = set.iter().map(|o| p[o.index()]).sum();
        assert!((probability - total).abs() < ROUNDING);
        let mut mean = vec![0.0; among.state().len()];
        // The weights of a linear model are those before probabilities are made proper.
        let joint = |o: Observation| match model.latent() {
            Some(_) => p[o.index()],
            None => {
                let linear = model.linear().unwrap();
                let operator = linear.operator(ActionObservation { action: a, observation: o }).unwrap();
                let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
                let next: Vec<f64> = operator.chunks(linear.rank()).map(|row| dot(row, start.state())).collect();
                dot(linear.normalizer(), &next)
            }
        };
        let all: f64 = set.iter().map(|&o| joint(o)).sum();
        for &observation in &set {
            let mut one = start.clone();
            one.observe(ActionObservation { action: a, observation });
            mean.iter_mut().zip(one.state()).for_each(|(m, x)| *m += joint(observation) / all * x);
        }
        let error = mean.iter().zip(among.state()).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max);
        assert!(error < ROUNDING, "{error}");
        // A set of one is an observation; an empty one is missing.
        let (mut one, mut other) = (start.clone(), start.clone());
        one.update_among(a, &set[..1]);
        other.observe(ActionObservation { action: a, observation: set[0] });
        let error = one.state().iter().zip(other.state()).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max);
        assert!(error < ROUNDING, "{error}");
    }
}
