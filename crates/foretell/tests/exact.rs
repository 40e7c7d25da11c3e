//! Exact moments of small POMDPs give exact models; and what every model must keep to.

use faer::Mat;
use foretell::{
    Action, ActionObservation, Alphabet, CutRule, Cuts, End, Filter, History, LearnParams, Logs, Model, Observation, Pomdp,
    PredictiveState, Projection, Regression, Seed, Trajectory, Weighting, domains, learn, learn_weighted,
};
use proptest::prelude::*;

/// Rounding of a product of six operators; a wrong convention errs by 1e-2 and more.
const EXACT: f64 = 1e-9;

/// A corridor of three cells and an exit: the walker slips, sees light or dark, and may leave for good.
const EXIT: &str = "
discount: 0.9  values: reward  states: a b c  actions: left right  observations: dark light
start: 0.5 0.5 0
T: left
0.8 0.2 0
0.7 0.2 0.1
0.1 0.6 0.3
T: right
0.3 0.6 0.1
0.0 0.3 0.7
0.0 0.1 0.9
O: *
0.9 0.1
0.4 0.6
0.2 0.8
";

/// Two coins in a cup: shaking may swap them, looking tells little.
const COINS: &str = "
discount: 0.9  values: reward  states: 2  actions: shake look wait  observations: h t
start: 0.7 0.3
T: shake uniform
T: look identity
T: wait
0.9 0.1
0.3 0.7
O: shake uniform
O: look
0.8 0.2
0.1 0.9
O: wait
0.6 0.4
0.5 0.5
";

/// The corridor, with a fourth state that ends the episode and says so with either observation.
fn terminating() -> Pomdp {
    let row = |p: &[f64]| foretell::pomdp::sparse(p);
    let names = |n: &[&str]| n.iter().map(ToString::to_string).collect();
    let left =
        vec![row(&[0.7, 0.2, 0.0, 0.1]), row(&[0.6, 0.2, 0.1, 0.1]), row(&[0.1, 0.6, 0.3, 0.0]), row(&[0.0, 0.0, 0.0, 1.0])];
    let right =
        vec![row(&[0.3, 0.6, 0.1, 0.0]), row(&[0.0, 0.3, 0.6, 0.1]), row(&[0.0, 0.1, 0.6, 0.3]), row(&[0.0, 0.0, 0.0, 1.0])];
    let sees = vec![row(&[0.9, 0.1]), row(&[0.4, 0.6]), row(&[0.2, 0.8]), row(&[0.5, 0.5])];
    Pomdp::new(foretell::PomdpTables {
        discount: Some(0.9),
        states: names(&["a", "b", "c", "out"]),
        actions: names(&["left", "right"]),
        observations: names(&["dark", "light"]),
        terminal: vec![false, false, false, true],
        start: row(&[0.5, 0.5, 0.0, 0.0]),
        transitions: vec![left, right],
        emissions: vec![sees.clone(), sees],
        rewards: vec![],
    })
    .unwrap()
}

/// Every trajectory of up to `length` steps with its probability under uniform actions: the exact distribution.
fn everything(pomdp: &Pomdp, length: usize) -> Vec<(Trajectory, f64)> {
    let uniform = 1.0 / pomdp.alphabet().actions().len() as f64;
    everything_under(pomdp, length, |_, _| uniform)
}

/// The same under a policy π(a | h), which the trajectories tell.
fn everything_under(
    pomdp: &Pomdp,
    length: usize,
    policy: impl Fn(&[ActionObservation], Action) -> f64,
) -> Vec<(Trajectory, f64)> {
    let ends = |steps: &[ActionObservation]| steps.last().is_some_and(|ao| pomdp.alphabet().is_terminal(ao.observation));
    let over = |steps: &Vec<ActionObservation>| steps.len() == length || ends(steps);
    let weighted = |steps: Vec<ActionObservation>| {
        let action_probabilities: Vec<f64> = (0..steps.len()).map(|t| policy(&steps[..t], steps[t].action)).collect();
        let weight = pomdp.probability(&steps) * action_probabilities.iter().product::<f64>();
        let end = if ends(&steps) { End::Terminated } else { End::Truncated };
        (Trajectory { rewards: vec![None; steps.len()], steps, action_probabilities, end }, weight)
    };
    sequences(pomdp.alphabet(), length).into_iter().filter(over).map(weighted).filter(|(_, weight)| *weight > 0.0).collect()
}

/// Every sequence of up to `longest` pairs in which a terminal observation can only come last.
fn sequences(alphabet: &Alphabet, longest: usize) -> Vec<Vec<ActionObservation>> {
    let (actions, observations) = (alphabet.actions().len() as u32, alphabet.observations().len() as u32);
    let mut all: Vec<Vec<ActionObservation>> = vec![vec![]];
    let mut from = 0;
    for _ in 0..longest {
        let to = all.len();
        for i in from..to {
            if all[i].last().is_some_and(|ao| alphabet.is_terminal(ao.observation)) {
                continue;
            }
            for ao in (0..actions).flat_map(|a| (0..observations).map(move |o| ActionObservation::new(a, o))) {
                let longer = [all[i].as_slice(), &[ao]].concat();
                all.push(longer);
            }
        }
        from = to;
    }
    all
}

fn exact_params(rank: usize) -> LearnParams {
    let identity = Projection::Identity;
    LearnParams {
        test_projection: identity,
        history_projection: identity,
        max_test_length: 2,
        rank,
        tolerance: 1e-9,
        floor: 0.0,
        ..LearnParams::paper()
    }
}

/// The three small worlds, the rank of their dynamics, and how long trajectories must be to show it.
fn worlds() -> Vec<(Pomdp, usize, usize)> {
    let parse = |text| Pomdp::parse(text, "test").unwrap();
    vec![(parse(COINS), 2, 5), (parse(EXIT), 3, 6), (terminating(), 3, 6)]
}

#[test]
fn exact_moments_give_exact_probabilities() {
    for (pomdp, rank, length) in worlds() {
        let model = learn_weighted(pomdp.alphabet(), &everything(&pomdp, length), &exact_params(10)).unwrap();
        assert_eq!(model.rank(), rank, "{:?}", model.spectrum());
        let uniform = 1.0 / pomdp.alphabet().actions().len() as f64;
        for sequence in sequences(pomdp.alphabet(), 6) {
            let truth = pomdp.probability(&sequence);
            let scale = uniform.powi(sequence.len() as i32);
            let joint = model.joint_probability(&sequence) / scale;
            assert!((joint - truth).abs() < EXACT, "{sequence:?}: {joint} is not {truth}");
            // The printed form c_∞ᵀC_ao c agrees, but for steps after which nothing is.
            if sequence.last().is_some_and(|ao| !pomdp.alphabet().is_terminal(ao.observation)) {
                let printed = printed_probability(&model, &sequence) / scale;
                assert!((printed - truth).abs() < EXACT, "{sequence:?}: {printed} is not {truth}");
            }
        }
    }
}

/// c_∞ᵀ C_{ao_n} ⋯ C_{ao_1} c₁ [H14 §2.3]
fn printed_probability(model: &Model, steps: &[ActionObservation]) -> f64 {
    let dot = |x: &[f64], y: &[f64]| -> f64 { x.iter().zip(y).map(|(x, y)| x * y).sum() };
    let mut c = model.initial().to_vec();
    for &ao in steps {
        let Some(operator) = model.operator(ao) else { return 0.0 };
        c = operator.chunks_exact(c.len()).map(|row| dot(row, &c)).collect();
    }
    dot(model.normalizer(), &c)
}

#[test]
fn exact_moments_give_exact_filtering_and_forecasts() {
    for (pomdp, _, length) in worlds() {
        let model = learn_weighted(pomdp.alphabet(), &everything(&pomdp, length), &exact_params(10)).unwrap();
        let unseen = PredictiveState::new(&model).unseen();
        for sequence in sequences(pomdp.alphabet(), 4).into_iter().filter(|s| pomdp.probability(s) > 1e-4) {
            // The mass of symbols never met is set aside at each step.
            let expected = pomdp.probability(&sequence) * (1.0 - unseen).powi(sequence.len() as i32);
            let p = PredictiveState::new(&model).probability(&sequence);
            assert!((p - expected).abs() < EXACT, "{sequence:?}: {p} is not {expected}");
        }
        // A forecast marginalises the observations on the way; compare with the sum over all of them.
        let plan = [Action(0), Action(1), Action(0)];
        let forecast = PredictiveState::new(&model).forecast(&plan);
        for (o, p) in forecast[2].iter().enumerate() {
            let on_plan = |s: &&Vec<ActionObservation>| {
                s.len() == 3 && s.iter().zip(&plan).all(|(ao, &a)| ao.action == a) && s[2].observation.0 as usize == o
            };
            let joint: f64 = sequences(pomdp.alphabet(), 3).iter().filter(on_plan).map(|s| pomdp.probability(s)).sum();
            let alive: f64 = sequences(pomdp.alphabet(), 3)
                .iter()
                .filter(|s| s.len() == 3 && s.iter().zip(&plan).all(|(ao, &a)| ao.action == a))
                .map(|s| pomdp.probability(s))
                .sum();
            let expected = joint / alive * (1.0 - unseen);
            assert!((p - expected).abs() < EXACT, "observation {o}: {p} is not {expected}");
        }
    }
}

#[test]
fn the_logging_policys_forecast_is_the_sum_over_all_that_may_happen() {
    let (pomdp, _, length) = worlds().remove(1);
    let model = learn_weighted(pomdp.alphabet(), &everything(&pomdp, length), &exact_params(10)).unwrap();
    let state = PredictiveState::new(&model);
    let forecast = state.forecast_under_logging_policy(3, Action(1));
    for (o, p) in forecast.iter().enumerate() {
        let ends_so = |s: &&Vec<ActionObservation>| s.len() == 3 && s[2] == ActionObservation::new(1, o as u32);
        // Uniform over the 2 × 2 plans of the two steps before.
        let expected: f64 = sequences(pomdp.alphabet(), 3).iter().filter(ends_so).map(|s| pomdp.probability(s) / 4.0).sum();
        assert!((p - expected * (1.0 - state.unseen())).abs() < EXACT, "{o}: {p} is not {expected}");
    }
}

#[test]
fn ragged_cuts_are_wrong_even_on_exact_moments() {
    // The trap that `Cuts::Complete` avoids: late histories that cannot see long tests inflate the rank.
    let pomdp = Pomdp::parse(EXIT, "test").unwrap();
    let ragged = LearnParams { cuts: Cuts::Ragged, ..exact_params(10) };
    let model = learn_weighted(pomdp.alphabet(), &everything(&pomdp, 4), &ragged).unwrap();
    assert!(model.rank() > 3, "{:?}", model.spectrum());
    let worst = sequences(pomdp.alphabet(), 4)
        .iter()
        .map(|s| (model.joint_probability(s) * 2f64.powi(s.len() as i32) - pomdp.probability(s)).abs())
        .fold(0.0, f64::max);
    assert!(worst > 1e-2, "{worst}");
}

/// π(a | h) that prefers an action by what was observed `ago` steps ago; until then, the first.
fn preferring(actions: usize, ago: usize) -> impl Fn(&[ActionObservation], Action) -> f64 {
    const PREFERENCE: f64 = 0.6;
    move |h, a| {
        let seen = h.len().checked_sub(ago).map_or(0, |at| h[at].observation.0 as usize);
        let preferred = seen % actions == a.0 as usize;
        (1.0 - PREFERENCE) / actions as f64 + if preferred { PREFERENCE } else { 0.0 }
    }
}

/// Both regressions without a ridge, for prefix and suffix histories.
fn exact_recipes(rank: usize, weighting: Weighting) -> Vec<LearnParams> {
    let recipe = |regression, history| {
        // The ridge of whitening only keeps suffixes apart that always come together.
        let ridges = LearnParams { whitening_ridge: 1e-6, ridge: 0.0, ..exact_params(rank) };
        LearnParams { regression, history, history_length: 2, weighting, ..ridges }
    };
    let regressions = [Regression::PseudoInverse, Regression::TwoStage];
    regressions.into_iter().flat_map(|r| [History::Prefix, History::Suffix].map(|h| recipe(r, h))).collect()
}

/// The largest error of P(o_1 … o_n ‖ a_1 … a_n) over all sequences of up to six steps.
fn worst_error(pomdp: &Pomdp, probability: impl Fn(&[ActionObservation]) -> f64) -> f64 {
    let error = |s: &Vec<ActionObservation>| (probability(s) - pomdp.probability(s)).abs();
    sequences(pomdp.alphabet(), 6).iter().map(error).fold(0.0, f64::max)
}

/// The same for joint probabilities that have a factor 1/|A| for each step.
fn worst_joint_error(pomdp: &Pomdp, model: &Model) -> f64 {
    let actions = pomdp.alphabet().actions().len() as f64;
    worst_error(pomdp, |s| model.joint_probability(s) * actions.powi(s.len() as i32))
}

/// A world, its exact logs under a policy, and the rank of the world without and with that policy.
struct ClosedLoop {
    pomdp: Pomdp,
    logs: Vec<(Trajectory, f64)>,
    rank: usize,
    closed: usize,
}

/// The worlds under policies that look one and two steps back.
fn closed_loops() -> Vec<ClosedLoop> {
    let under = |(pomdp, rank, length): (Pomdp, usize, usize)| {
        [1, 2].map(|ago| {
            let logs = everything_under(&pomdp, length, preferring(pomdp.alphabet().actions().len(), ago));
            // The policy remembers `ago` observations, of which there are two.
            ClosedLoop { pomdp: pomdp.clone(), logs, rank, closed: rank << ago }
        })
    };
    worlds().into_iter().flat_map(under).collect()
}

#[test]
fn weighted_by_propensity_exact_moments_forget_the_logging_policy() {
    for ClosedLoop { pomdp, logs, rank, .. } in closed_loops() {
        for params in exact_recipes(rank, Weighting::Propensity) {
            let model = learn_weighted(pomdp.alphabet(), &logs, &params).unwrap();
            let worst = worst_joint_error(&pomdp, &model);
            assert!(worst < EXACT, "{params:?}: {worst:e}");
        }
        // There is nothing beyond: the true rank is found.
        let most = LearnParams { weighting: Weighting::Propensity, ..exact_params(10) };
        assert_eq!(learn_weighted(pomdp.alphabet(), &logs, &most).unwrap().rank(), rank);
    }
}

#[test]
fn weighted_next_is_exact_where_the_rank_holds_the_memory_of_the_policy() {
    for ClosedLoop { pomdp, logs, rank, closed } in closed_loops() {
        for params in exact_recipes(closed, Weighting::Next) {
            let model = learn_weighted(pomdp.alphabet(), &logs, &params).unwrap();
            assert_eq!(model.rank(), closed, "{:?}", model.spectrum());
            let worst = worst_joint_error(&pomdp, &model);
            assert!(worst < EXACT, "{params:?}: {worst:e}");
            let small = learn_weighted(pomdp.alphabet(), &logs, &LearnParams { rank, ..params }).unwrap();
            let worst = worst_joint_error(&pomdp, &small);
            assert!(worst > 1e-2, "{worst:e}");
        }
    }
}

#[test]
fn without_weights_the_rank_is_that_of_the_closed_loop_and_less_is_wrong() {
    for ClosedLoop { pomdp, logs, rank, closed } in closed_loops() {
        for params in exact_recipes(closed, Weighting::None) {
            // Normalising over observations divides π out, but what remembers π needs the rank for it.
            let error = |rank| {
                let model = learn_weighted(pomdp.alphabet(), &logs, &LearnParams { rank, ..params.clone() }).unwrap();
                assert_eq!(model.rank(), rank, "{:?}", model.spectrum());
                let seen = 1.0 - PredictiveState::new(&model).unseen();
                let unscaled = |s: &[ActionObservation]| PredictiveState::new(&model).probability(s) / seen.powi(s.len() as i32);
                worst_error(&pomdp, unscaled)
            };
            let (right, wrong) = (error(closed), error(rank));
            assert!(right < EXACT && wrong > 3e-2, "{params:?}: {right:e}, {wrong:e}");
        }
    }
}

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
        let whole = PredictiveState::new(&model).probability(&z.steps);
        for k in 0..z.steps.len() {
            let mut state = PredictiveState::new(&model);
            let first = state.probability(&z.steps[..k]);
            z.steps[..k].iter().for_each(|&ao| state.observe(ao));
            let product = first * state.probability(&z.steps[k..]);
            assert!((product - whole).abs() <= 1e-12 * whole, "{product} is not {whole}");
        }
    }
}

#[test]
fn predictions_are_distributions_whatever_happened() {
    let model = learn(&colored(300, 5), &LearnParams { rank: 12, mix: 0.1, ..LearnParams::default() }).unwrap();
    let (actions, symbols) = (model.alphabet().actions().len(), model.alphabet().observations().len());
    let mut rng = Seed(6).rng();
    let mut state = PredictiveState::new(&model);
    for _ in 0..3000 {
        // Random pairs, most of them impossible, some of actions and symbols nobody has met.
        let ao = ActionObservation {
            action: Action(rng.below(actions + 1) as u32),
            observation: Observation(rng.below(symbols + 2) as u32),
        };
        let total: f64 = state.predict(ao.action).iter().sum::<f64>() + state.unseen();
        assert!((total - 1.0).abs() < 1e-9, "{total}");
        if model.alphabet().observations().get(ao.observation.0 as usize).is_some_and(|o| o.terminal) {
            continue;
        }
        let p = state.update(ao);
        assert!(p > 0.0 && p <= 1.0, "{p}");
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
    (0..DRAWS).for_each(|_| counts[state.sample(&[Action(2)], &mut rng)[0].0 as usize] += 1.0);
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
            let (before, after) = (PredictiveState::new(&model).probability(&z.steps), PredictiveState::new(&changed).probability(&z.steps));
            prop_assert!((before - after).abs() <= 1e-9 * before, "{before} became {after}");
        }
    }

    #[test]
    fn damaged_models_are_refused_without_a_panic(place in 0.0..1.0f64, byte in any::<u8>(), cut in 0.0..1.0f64) {
        let model = learn(&colored(60, 11), &LearnParams { rank: 2, ..LearnParams::paper() }).unwrap();
        let bytes = model.to_bytes();
        let mut changed = bytes.clone();
        changed[(place * bytes.len() as f64) as usize] = byte;
        let _ = Model::from_bytes(&changed, "changed");
        prop_assert!(Model::from_bytes(&bytes[..(cut * bytes.len() as f64) as usize], "short").is_err());
    }

    #[test]
    fn no_byte_string_makes_the_model_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(Model::from_bytes(&bytes, "noise").is_err());
    }
}

#[test]
fn cut_rules_are_one_convention_for_all_sums() {
    // What the first pass calls a cut, the second does too: operators of pairs that never come next at a cut are zero.
    let domain = domains::get("tiger").unwrap();
    let zs: Vec<Trajectory> = domains::sample(&domain, 20, 4, Seed(12)).collect();
    let params = LearnParams { max_test_length: 2, rank: 2, ..LearnParams::paper() };
    let model = learn(&Logs::memory(domain.alphabet().clone(), zs.clone()), &params).unwrap();
    let rule = CutRule { room: 2, limit: Some(4) };
    for &ao in model.pairs() {
        let comes_next = zs.iter().flat_map(|z| z.cuts(rule)).any(|cut| cut.next() == ao);
        let is_zero = model.operator(ao).unwrap().iter().all(|x| *x == 0.0);
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
    assert_eq!(state.probability(&z.steps[..1]), 0.0);
    state.reset();
    assert!(state.probability(&z.steps[..1]) > 0.0);
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
