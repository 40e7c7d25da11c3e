//! Exact moments of small POMDPs give exact models.

use foretell::model::Linear;
use foretell::{
    Action, ActionObservation, Alphabet, Cuts, End, History, LearnParams, Model, Observation, Pomdp, PredictiveState, Projection,
    Regression, Trajectory, Weighting, learn_weighted,
};

/// Rounding of a product of six operators; a wrong convention errs by 1e-2 and more.
const EXACT: f64 = 1e-9;

/// A corridor of three cells and an exit: the walker slips, sees light or dark, and may leave for
/// good.
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

/// Two coins in a cup: shaking may swap them, and looking gives little information.
const COINS: &str = include_str!("data/coins.POMDP");

/// The corridor, with a fourth state that ends the episode and emits either observation.
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

/// Every trajectory of up to `length` steps with its probability under uniform actions: the exact
/// distribution.
fn everything(pomdp: &Pomdp, length: usize) -> Vec<(Trajectory, f64)> {
    let uniform = 1.0 / pomdp.alphabet().actions().len() as f64;
    everything_under(pomdp, length, |_, _| uniform)
}

/// The same under a policy π(a | h), whose probabilities the trajectories contain.
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
        (Trajectory { rewards: vec![None; steps.len()], steps, action_probabilities, end, about: Default::default() }, weight)
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

fn linear(model: &Model) -> &Linear {
    model.linear().expect("nothing is refined here")
}

/// The three small worlds, the rank of their dynamics, and how long trajectories must be to show
/// it.
fn worlds() -> Vec<(Pomdp, usize, usize)> {
    let parse = |text| Pomdp::parse(text, "test").unwrap();
    vec![(parse(COINS), 2, 5), (parse(EXIT), 3, 6), (terminating(), 3, 6)]
}

#[test]
fn exact_moments_give_exact_probabilities() {
    for (pomdp, rank, length) in worlds() {
        let model = learn_weighted(pomdp.alphabet(), &everything(&pomdp, length), &exact_params(10)).unwrap();
        assert_eq!(linear(&model).rank(), rank, "{:?}", linear(&model).spectrum());
        let uniform = 1.0 / pomdp.alphabet().actions().len() as f64;
        for sequence in sequences(pomdp.alphabet(), 6) {
            let truth = pomdp.probability(&sequence);
            let scale = uniform.powi(sequence.len() as i32);
            let joint = linear(&model).joint_probability(&sequence) / scale;
            assert!((joint - truth).abs() < EXACT, "{sequence:?}: {joint} is not {truth}");
            // The printed form c_∞ᵀC_ao c agrees, except for terminal steps.
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
    let mut c = linear(model).initial().to_vec();
    for &ao in steps {
        let Some(operator) = linear(model).operator(ao) else { return 0.0 };
        c = operator.chunks_exact(c.len()).map(|row| dot(row, &c)).collect();
    }
    dot(linear(model).normalizer(), &c)
}

#[test]
fn exact_moments_give_exact_filtering_and_forecasts() {
    for (pomdp, _, length) in worlds() {
        let model = learn_weighted(pomdp.alphabet(), &everything(&pomdp, length), &exact_params(10)).unwrap();
        let unseen = PredictiveState::new(&model).unseen();
        for sequence in sequences(pomdp.alphabet(), 4).into_iter().filter(|s| pomdp.probability(s) > 1e-4) {
            // The probability of unseen symbols is set aside at each step.
            let expected = pomdp.probability(&sequence) * (1.0 - unseen).powi(sequence.len() as i32);
            let p = PredictiveState::new(&model).probability_of(&sequence);
            assert!((p - expected).abs() < EXACT, "{sequence:?}: {p} is not {expected}");
        }
        // A forecast marginalises the observations on the way; compare with the sum over all of
        // them.
        let plan = [Action(0), Action(1), Action(0)];
        let forecast = PredictiveState::new(&model).forecast(&plan);
        for (o, p) in forecast[2].iter().enumerate() {
            let on_plan = |s: &&Vec<ActionObservation>| {
                s.len() == 3 && s.iter().zip(&plan).all(|(ao, &a)| ao.action == a) && s[2].observation.index() == o
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
fn a_forecast_under_the_behaviour_policy_is_the_sum_over_all_paths() {
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
    // The trap that `Cuts::Complete` avoids: late histories that cannot see long tests inflate the
    // rank.
    let pomdp = Pomdp::parse(EXIT, "test").unwrap();
    let ragged = LearnParams { cuts: Cuts::Ragged, ..exact_params(10) };
    let model = learn_weighted(pomdp.alphabet(), &everything(&pomdp, 4), &ragged).unwrap();
    assert!(linear(&model).rank() > 3, "{:?}", linear(&model).spectrum());
    let worst = sequences(pomdp.alphabet(), 4)
        .iter()
        .map(|s| (linear(&model).joint_probability(s) * 2f64.powi(s.len() as i32) - pomdp.probability(s)).abs())
        .fold(0.0, f64::max);
    assert!(worst > 1e-2, "{worst}");
}

/// π(a | h) that prefers an action by what was observed `ago` steps ago; until then, the first.
fn preferring(actions: usize, ago: usize) -> impl Fn(&[ActionObservation], Action) -> f64 {
    const PREFERENCE: f64 = 0.6;
    move |h, a| {
        let seen = h.len().checked_sub(ago).map_or(0, |at| h[at].observation.index());
        let preferred = seen % actions == a.index();
        (1.0 - PREFERENCE) / actions as f64 + if preferred { PREFERENCE } else { 0.0 }
    }
}

/// Both regressions without a ridge, for prefix and suffix histories.
fn exact_recipes(rank: usize, weighting: Weighting) -> Vec<LearnParams> {
    let recipe = |regression, history| {
        // The ridge of whitening only separates suffixes that always occur together.
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
    worst_error(pomdp, |s| linear(model).joint_probability(s) * actions.powi(s.len() as i32))
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
fn exact_moments_weighted_by_propensity_do_not_depend_on_the_behaviour_policy() {
    for ClosedLoop { pomdp, logs, rank, .. } in closed_loops() {
        for params in exact_recipes(rank, Weighting::Propensity) {
            let model = learn_weighted(pomdp.alphabet(), &logs, &params).unwrap();
            let worst = worst_joint_error(&pomdp, &model);
            assert!(worst < EXACT, "{params:?}: {worst:e}");
        }
        // Further singular values are zero: the true rank is found.
        let most = LearnParams { weighting: Weighting::Propensity, ..exact_params(10) };
        assert_eq!(learn_weighted(pomdp.alphabet(), &logs, &most).unwrap().linear().unwrap().rank(), rank);
    }
}

#[test]
fn weighted_next_is_exact_where_the_rank_holds_the_memory_of_the_policy() {
    for ClosedLoop { pomdp, logs, rank, closed } in closed_loops() {
        for params in exact_recipes(closed, Weighting::Next) {
            let model = learn_weighted(pomdp.alphabet(), &logs, &params).unwrap();
            assert_eq!(linear(&model).rank(), closed, "{:?}", linear(&model).spectrum());
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
            // Normalising over observations divides π out, but the memory of π needs its own rank.
            let error = |rank| {
                let model = learn_weighted(pomdp.alphabet(), &logs, &LearnParams { rank, ..params.clone() }).unwrap();
                assert_eq!(linear(&model).rank(), rank, "{:?}", linear(&model).spectrum());
                let seen = 1.0 - PredictiveState::new(&model).unseen();
                let unscaled =
                    |s: &[ActionObservation]| PredictiveState::new(&model).probability_of(s) / seen.powi(s.len() as i32);
                worst_error(&pomdp, unscaled)
            };
            let (right, wrong) = (error(closed), error(rank));
            assert!(right < EXACT && wrong > 3e-2, "{params:?}: {right:e}, {wrong:e}");
        }
    }
}

/// Every trajectory with every set of its observations missing, each with probability `share`, and
/// never the one that ends it.
fn with_missing(all: &[(Trajectory, f64)], alphabet: &Alphabet, share: f64) -> Vec<(Trajectory, f64)> {
    let mut masked = Vec::new();
    for (z, weight) in all {
        let can_miss: Vec<usize> = (0..z.steps.len()).filter(|&t| !alphabet.is_terminal(z.steps[t].observation)).collect();
        for mask in 0..1u32 << can_miss.len() {
            let (mut z, mut weight) = (z.clone(), *weight);
            for (i, &t) in can_miss.iter().enumerate() {
                let is_missing = mask >> i & 1 == 1;
                weight *= if is_missing { share } else { 1.0 - share };
                if is_missing {
                    z.steps[t].observation = Observation::MISSING;
                }
            }
            masked.push((z, weight));
        }
    }
    masked
}

/// Observations that are missing at random change which cuts are used, and nothing else.
#[test]
fn moments_with_missing_observations_give_the_model_of_complete_ones() {
    let (pomdp, rank, length) = worlds().swap_remove(0);
    let all = with_missing(&everything(&pomdp, length), pomdp.alphabet(), 0.2);
    let uniform = 1.0 / pomdp.alphabet().actions().len() as f64;
    for history in [History::Suffix, History::Prefix] {
        let params = LearnParams { history, ..exact_params(10) };
        let model = learn_weighted(pomdp.alphabet(), &all, &params).unwrap();
        assert_eq!(linear(&model).rank(), rank, "{:?}", linear(&model).spectrum());
        for sequence in sequences(pomdp.alphabet(), 5) {
            let truth = pomdp.probability(&sequence);
            let joint = linear(&model).joint_probability(&sequence) / uniform.powi(sequence.len() as i32);
            assert!((joint - truth).abs() < EXACT, "{history:?} {sequence:?}: {joint} is not {truth}");
        }
    }
}
