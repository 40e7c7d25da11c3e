//! Planners against closed forms, each other, the whole tree of beliefs, and simulation.

use foretell::judge::Test;
use foretell::pomdp::solve::{Gap, PointBased, Round, Solution, fast_informed_bound, qmdp};
use foretell::pomdp::{PomdpTables, RewardRule, sparse};
use foretell::{Action, ActionObservation, Belief, Error, Filter, Observation, Pomdp, Predict, Rng, Seed, domains};

/// Sums of a few thousand terms, and value iteration that stops 10⁻⁸ of the largest value early.
const ROUNDING: f64 = 1e-6;

fn names(prefix: &str, n: usize) -> Vec<String> {
    (0..n).map(|i| format!("{prefix}{i}")).collect()
}

fn rule(action: usize, from: usize, reward: f64) -> RewardRule {
    RewardRule { action: Some(action), from: Some(from), reward, ..RewardRule::default() }
}

/// Wait for 1, which ends with probability 0.1, or leave with 5.
fn wait_or_leave() -> Pomdp {
    Pomdp::new(PomdpTables {
        states: names("s", 2),
        actions: vec!["wait".into(), "leave".into()],
        observations: names("o", 1),
        terminal: vec![false, true],
        start: vec![(0, 1.0)],
        transitions: vec![vec![vec![(0, 0.9), (1, 0.1)], vec![]], vec![vec![(1, 1.0)], vec![]]],
        emissions: vec![vec![vec![(0, 1.0)]; 2]; 2],
        rewards: vec![rule(0, 0, 1.0), rule(1, 0, 5.0)],
        ..PomdpTables::default()
    })
    .unwrap()
}

/// 3 states, 2 actions, 2 observations, and rewards from −1 to 1; from each state it ends with
/// probability `ends`.
fn random(seed: u64, ends: f64) -> Pomdp {
    let mut rng = Seed(seed).rng();
    let row = |rng: &mut Rng, n: usize| -> Vec<f64> {
        let weights: Vec<f64> = (0..n).map(|_| rng.uniform().powi(3)).collect(); // some large, some small
        let total: f64 = weights.iter().sum();
        weights.iter().map(|w| w / total).collect()
    };
    let moves = |rng: &mut Rng| {
        let mut row: Vec<f64> = row(rng, 3).iter().map(|p| p * (1.0 - ends)).collect();
        row.push(ends);
        sparse(&row)
    };
    let transitions = (0..2).map(|_| (0..4).map(|_| moves(&mut rng)).collect()).collect();
    let emissions = (0..2).map(|_| (0..4).map(|_| sparse(&row(&mut rng, 2))).collect()).collect();
    let rewards = (0..6).map(|i| rule(i / 3, i % 3, 2.0 * rng.uniform() - 1.0)).collect();
    Pomdp::new(PomdpTables {
        states: names("s", 4),
        actions: names("a", 2),
        observations: names("o", 2),
        terminal: vec![false, false, false, true],
        start: sparse(&row(&mut rng, 3)),
        transitions,
        emissions,
        rewards,
        ..PomdpTables::default()
    })
    .unwrap()
}

/// The value of the best plan of `depth` steps: the largest over actions, all observations
/// followed.
fn tree_value(pomdp: &Pomdp, belief: &Belief<'_>, discount: f64, depth: usize) -> f64 {
    if depth == 0 {
        return 0.0;
    }
    let value = |a: Action| {
        let now: f64 = belief.state().iter().enumerate().map(|(s, b)| b * pomdp.expected_reward(a, s)).sum();
        let mut later = 0.0;
        for (o, p) in (0..)
            .map(Observation)
            .zip(belief.clone().probabilities(a).to_vec())
            .filter(|&(o, p)| p > 0.0 && !pomdp.alphabet().is_terminal(o))
        {
            let mut next = belief.clone();
            next.update(ActionObservation { action: a, observation: o });
            later += p * tree_value(pomdp, &next, discount, depth - 1);
        }
        now + discount * later
    };
    (0..pomdp.alphabet().actions().len()).map(|a| value(Action(a as u32))).fold(f64::NEG_INFINITY, f64::max)
}

/// The solution, and the bounds before the first round and after each.
fn planned(pomdp: &Pomdp, discount: f64, relative: f64, rounds: usize) -> (Solution, Vec<Round>) {
    let mut planner = PointBased::new(pomdp, discount, Gap { absolute: relative, relative }).unwrap();
    let before = planner.round();
    let rounds = std::iter::once(before).chain(planner.by_ref().take(rounds)).collect();
    (planner.solution(), rounds)
}

#[test]
fn value_iteration_finds_the_closed_form() {
    let pomdp = wait_or_leave();
    for discount in [0.0, 0.5, 0.95, 1.0] {
        let forever: f64 = 1.0 / (1.0 - 0.9 * discount);
        let expected = [1.0 + 0.9 * discount * forever.max(5.0), 5.0];
        for solution in [qmdp(&pomdp, discount).unwrap(), fast_informed_bound(&pomdp, discount).unwrap()] {
            for (vector, q) in solution.vectors.iter().zip(expected) {
                assert!((vector.values[0] - q).abs() < ROUNDING, "{discount}: {vector:?} for {q}");
                assert_eq!(vector.values[1], 0.0, "nothing is earned after the end");
            }
        }
        let (solution, _) = planned(&pomdp, discount, 1e-6, 100);
        let best = expected[0].max(expected[1]);
        assert!((solution.upper - best).abs() < 1e-5 * best && (solution.lower.unwrap() - best).abs() < 1e-5 * best);
    }
}

#[test]
fn endless_episodes_need_a_discount() {
    let problem = |pomdp: &Pomdp, discount: f64| match qmdp(pomdp, discount) {
        Err(Error::Parameter { name: "discount", problem, .. }) => problem,
        other => panic!("{other:?}"),
    };
    let tiger = domains::get("tiger").unwrap();
    let maze = domains::get("colored-gridworld").unwrap(); // moving against a wall lasts long
    assert!(problem(tiger.pomdp().unwrap(), 1.0).contains("a policy could go on forever from state"));
    assert!(problem(maze.pomdp().unwrap(), 1.0).contains("a policy could go on forever from state"));
    for discount in [-0.1, 1.1, f64::NAN] {
        assert_eq!(problem(&wait_or_leave(), discount), "must be between 0 and 1");
    }
    assert!(PointBased::new(&wait_or_leave(), 0.9, Gap { absolute: -1.0, relative: 0.0 }).is_err());
}

#[test]
fn bounds_hold_converge_and_are_ordered() {
    let tiger = domains::get("tiger").unwrap();
    let maze = domains::get("t-maze:length=4").unwrap();
    let rocks = domains::get("rocksample:size=4,rocks=3").unwrap(); // enough vectors and beliefs for pruning
    let randoms: Vec<Pomdp> = (0..10).map(|seed| random(seed, 0.0)).collect();
    for pomdp in randoms.iter().chain(tiger.pomdp()).chain(maze.pomdp()).chain(rocks.pomdp()) {
        let (seen, informed) = (qmdp(pomdp, 0.95).unwrap(), fast_informed_bound(pomdp, 0.95).unwrap());
        for (x, y) in seen.vectors.iter().zip(&informed.vectors) {
            assert!(x.values.iter().zip(&y.values).all(|(x, y)| y <= &(x + ROUNDING)), "{x:?} below {y:?}");
        }
        let (solution, rounds) = planned(pomdp, 0.95, 1e-4, 60);
        assert_eq!(rounds[0].upper, informed.upper);
        assert!(solution.upper <= informed.upper + ROUNDING && informed.upper <= seen.upper + ROUNDING);
        assert!(rounds.iter().all(|r| r.lower <= r.upper + ROUNDING), "{rounds:?}");
        for pair in rounds.windows(2) {
            assert!(pair[0].lower <= pair[1].lower + ROUNDING && pair[1].upper <= pair[0].upper + ROUNDING, "{pair:?}");
        }
        let (first, last) = (rounds[0], rounds[rounds.len() - 1]);
        let closed = 1e-4 * last.upper.abs().max(1.0);
        assert!(last.upper - last.lower <= closed.max(0.5 * (first.upper - first.lower)), "{first:?} {last:?}");
    }
}

#[test]
fn the_value_is_that_of_the_whole_tree_of_beliefs() {
    let (discount, depth) = (0.3, 8);
    // Later rewards of at most 1: 0.3⁸ + 0.3⁹ + …
    let tail = f64::powi(discount, 8) / (1.0 - discount);
    for seed in 0..10 {
        let pomdp = random(seed, 0.1);
        let expected = tree_value(&pomdp, &Belief::new(&pomdp), discount, depth);
        let (solution, _) = planned(&pomdp, discount, 1e-5, 500);
        let lower = solution.lower.unwrap();
        assert!(solution.upper - lower < 2e-5, "{seed}: {lower} {}", solution.upper);
        assert!(lower <= expected + tail && expected - tail <= solution.upper, "{seed}: {lower} {expected} {}", solution.upper);
    }
}

/// Rooms of two states, two states and one: the room is seen, and a noisy bit of the state. It
/// starts anywhere.
fn rooms(seed: u64) -> Pomdp {
    let mut rng = Seed(seed).rng();
    let row = |rng: &mut Rng, n: usize| -> Vec<f64> {
        let weights: Vec<f64> = (0..n).map(|_| rng.uniform().powi(3)).collect();
        let total: f64 = weights.iter().sum();
        weights.iter().map(|w| w / total).collect()
    };
    let transitions = (0..2).map(|_| (0..5).map(|_| sparse(&row(&mut rng, 5))).collect()).collect();
    let mut seen = |s: usize| {
        let bit = rng.uniform();
        if s == 4 { vec![(4, 1.0)] } else { vec![(s / 2 * 2, bit), (s / 2 * 2 + 1, 1.0 - bit)] }
    };
    let emissions = (0..2).map(|_| (0..5).map(&mut seen).collect()).collect();
    let rewards = (0..10).map(|i| rule(i / 5, i % 5, 2.0 * rng.uniform() - 1.0)).collect();
    Pomdp::new(PomdpTables {
        states: names("s", 5),
        actions: names("a", 2),
        observations: names("o", 5),
        start: vec![(0, 0.2), (1, 0.2), (2, 0.2), (3, 0.2), (4, 0.2)],
        transitions,
        emissions,
        rewards,
        ..PomdpTables::default()
    })
    .unwrap()
}

#[test]
fn the_value_is_that_of_the_whole_tree_where_rooms_are_observed() {
    let (discount, depth) = (0.3, 5);
    let tail = f64::powi(discount, 5) / (1.0 - discount);
    for seed in 0..20 {
        let pomdp = rooms(seed);
        let expected = tree_value(&pomdp, &Belief::new(&pomdp), discount, depth);
        let (solution, rounds) = planned(&pomdp, discount, 1e-5, 500);
        let lower = solution.lower.unwrap();
        assert!(solution.upper - lower < 2e-5, "{seed}: {lower} {}", solution.upper);
        assert!(lower <= expected + tail && expected - tail <= solution.upper, "{seed}: {lower} {expected} {}", solution.upper);
        // The bounds of any round hold for the value that later ones find.
        let value = 0.5 * (lower + solution.upper);
        assert!(rounds.iter().all(|r| r.lower <= value + 2e-5 && value <= r.upper + 2e-5), "{seed}: {value} {rounds:?}");
    }
}

#[test]
fn a_state_in_which_nothing_is_earned_is_as_good_as_the_end() {
    // `over` is not terminal, so without discount only what is earned before it counts.
    let text = |end: &str| {
        format!(
            "discount: 0.9  values: reward  states: on over  actions: wait stop  observations: o  start: on
             T: wait : on 0.5 0.5  T: stop : on : over 1  T: * : over {end}
             O: * uniform
             R: wait : on : * : * 1
             R: stop : on : * : * 1.5"
        )
    };
    let (sink, back) = (Pomdp::parse(&text("0 1"), "sink").unwrap(), Pomdp::parse(&text("0.5 0.5"), "back").unwrap());
    let expected = (1.0f64 / (1.0 - 0.45)).max(1.5); // waiting lasts two steps in the mean
    let values = qmdp(&sink, 0.9).unwrap();
    assert!((values.upper - expected).abs() < ROUNDING, "{values:?}");
    assert!(values.vectors.iter().all(|v| v.values[1] == 0.0), "{values:?}");
    assert!(qmdp(&back, 0.9).unwrap().vectors[0].values[1] > 1.0, "`over` is left again");
    let (solution, _) = planned(&sink, 0.9, 1e-6, 100);
    assert!((solution.lower.unwrap() - expected).abs() < 1e-5 && (solution.upper - expected).abs() < 1e-5, "{solution:?}");
}

#[test]
fn without_discount_episodes_that_surely_end_have_a_value() {
    for seed in 0..3 {
        let pomdp = random(seed, 0.8);
        let expected = tree_value(&pomdp, &Belief::new(&pomdp), 1.0, 8);
        let tail = 0.2f64.powi(8) / 0.8;
        let (solution, _) = planned(&pomdp, 1.0, 1e-5, 500);
        let lower = solution.lower.unwrap();
        assert!(solution.upper - lower < 2e-5, "{seed}: {lower} {}", solution.upper);
        assert!(lower <= expected + tail && expected - tail <= solution.upper, "{seed}: {lower} {expected} {}", solution.upper);
    }
}

#[test]
fn the_tiger_has_its_known_value() {
    let tiger = domains::get("tiger").unwrap();
    let (solution, rounds) = planned(tiger.pomdp().unwrap(), 0.95, 1e-5, 2000);
    let lower = solution.lower.unwrap();
    // Cassandra's exact solver says 19.3713683559.
    assert!(lower <= 19.37137 && 19.37136 <= solution.upper, "{lower} {}", solution.upper);
    assert!(solution.upper - lower <= 1e-5 * 19.4, "{lower} {} after {} rounds", solution.upper, rounds.len());
}

#[test]
fn the_return_of_a_policy_is_at_least_the_lower_bound() {
    for name in ["tiger", "t-maze:length=5", "colored-gridworld"] {
        let domain = domains::get(name).unwrap();
        let pomdp = domain.pomdp().unwrap();
        let discount = 0.9;
        let (solution, _) = planned(pomdp, discount, 1e-3, 60);
        let test = Test { domain: &domain, episodes: 20_000, max_steps: 130, discount, seed: Seed(1) };
        let earned = test.returns(|| solution.policy(pomdp));
        // 2.3 times half the 95 % interval are 4.5 standard deviations; 0.9^130 of at most 100 /
        // (1 − 0.9) comes later.
        let chance = 2.3 * earned.discounted_ci95.unwrap() + 1e-3;
        let (lower, mean) = (solution.lower.unwrap(), earned.discounted_return);
        assert!(mean > lower - chance && mean < solution.upper + chance, "{name}: {mean} ± {chance}, {lower} {}", solution.upper);
    }
}

#[test]
fn a_limit_of_work_stops_early_with_valid_bounds() {
    let rocks = domains::get("rocksample:size=4,rocks=3").unwrap();
    let planner = || PointBased::new(rocks.pomdp().unwrap(), 0.95, Gap::default()).unwrap();
    let (mut limited, mut free) = (planner().within(100_000), planner());
    let (few, all) = (limited.by_ref().count(), free.by_ref().count());
    assert!(few < all, "{few} rounds of {all}");
    let (wide, tight) = (limited.round(), free.round());
    assert!(wide.lower <= tight.upper && tight.lower <= wide.upper, "{wide:?} {tight:?}");
    assert!(limited.next().is_none());
}

#[test]
fn the_same_model_gives_the_same_vectors() {
    let pomdp = random(7, 0.0);
    assert_eq!(planned(&pomdp, 0.95, 1e-4, 30), planned(&pomdp, 0.95, 1e-4, 30));
}
