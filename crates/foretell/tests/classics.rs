//! float-reset, the T-maze and RockSample against closed forms and published values.

use crate::dp::{always, assert_close, best, qmdp, uniform, value};
use foretell::domains::{self, rock_sample::RockSample, t_maze::TMaze};
use foretell::{Action, ActionObservation, Belief, Filter, Observation, Pomdp, Predict, Seed};

/// Rounding of sums of a few hundred products.
const ROUNDING: f64 = 1e-9;

/// The value of a plan that depends on the observations, over all of them until the episode ends.
fn plan_value(pomdp: &Pomdp, plan: &dyn Fn(&[&str]) -> &'static str) -> f64 {
    let belief = Belief::new(pomdp);
    plan_value_after(pomdp, &belief, &mut Vec::new(), plan)
}

fn plan_value_after<'a>(
    pomdp: &'a Pomdp,
    belief: &Belief<'_>,
    seen: &mut Vec<&'a str>,
    plan: &dyn Fn(&[&str]) -> &'static str,
) -> f64 {
    assert!(seen.len() < 50, "the plan must come to an end: {seen:?}");
    let a = pomdp.alphabet().action(plan(seen)).unwrap();
    let mut value: f64 = belief.state().iter().enumerate().map(|(s, b)| b * pomdp.expected_reward(a, s)).sum();
    for (o, p) in (0..).zip(belief.clone().probabilities(a).to_vec()).filter(|&(_, p)| p > 0.0) {
        let symbol = pomdp.alphabet().symbol(Observation(o));
        if !symbol.terminal {
            let mut next = belief.clone();
            next.update(ActionObservation { action: a, observation: Observation(o) });
            seen.push(&symbol.name);
            value += pomdp.discount() * p * plan_value_after(pomdp, &next, seen, plan);
            seen.pop();
        }
    }
    value
}

fn built_in(name: &str) -> Pomdp {
    domains::get(name).unwrap().pomdp().unwrap().clone()
}

#[test]
fn float_reset_has_its_published_values() {
    let walk = built_in("float-reset");
    assert_close(walk.uniform_policy_value().unwrap(), 17.903, 0.000501);
    assert_close(qmdp(&walk), 33.110, 0.000501);
    // A policy that resets at the first position away from home: V = γ (V + 1 + γ V) / 2
    let (gamma, at_home) = (0.99, |s: usize| s < 2);
    let first_place = value(&walk, gamma, 4000, |s, q| q[usize::from(!at_home(s))]);
    assert_close(first_place, gamma / (2.0 - gamma - gamma * gamma), ROUNDING);
    assert_eq!([0, 1].map(|a| value(&walk, gamma, 100, always(a))), [0.0, 0.0]);
}

#[test]
fn a_reset_shows_whether_the_walk_was_home() {
    let walk = built_in("float-reset");
    let [float, reset] = ["float", "reset"].map(|name| walk.alphabet().action(name).unwrap());
    let [zero, one] = ["0", "1"].map(|name| walk.alphabet().observation(name).unwrap());
    let step = |action, observation| ActionObservation { action, observation };
    let mut belief = Belief::new(&walk);
    // The walk folds at its ends: the probabilities of being home after 0, 1, 2, … floats.
    for home in [1.0, 1.0 / 2.0, 1.0 / 2.0, 3.0 / 8.0, 3.0 / 8.0, 10.0 / 32.0] {
        assert_close(belief.probabilities(reset)[one.index()], home, ROUNDING);
        assert_eq!(belief.update(step(float, zero)), 1.0);
    }
    belief.update(step(reset, zero));
    assert_eq!(belief.probabilities(reset), [0.0, 1.0]);
    assert_eq!((belief.update(step(reset, one)), belief.probabilities(reset)[1]), (1.0, 1.0));
    belief.update(step(float, zero));
    assert_close(belief.probabilities(reset)[1], 0.5, ROUNDING);
}

#[test]
fn following_the_sign_leads_to_the_treasure() {
    for length in [1, 2, 7] {
        let maze = TMaze::new(length).unwrap().pomdp();
        let turn = move |seen: &[&str]| match (seen.last(), seen.first()) {
            (Some(&"junction"), Some(&"sign-north")) => "N",
            (Some(&"junction"), _) => "S",
            _ => "E",
        };
        let straight = 0.98f64.powi(length as i32 + 1);
        assert_close(plan_value(&maze, &turn), 4.0 * straight, ROUNDING);
        assert_close(qmdp(&maze), 4.0 * straight, ROUNDING); // and nobody can do better
        let forgetful = |seen: &[&str]| if seen.last() == Some(&"junction") { "N" } else { "E" };
        assert_close(plan_value(&maze, &forgetful), (4.0 - 0.1) / 2.0 * straight, ROUNDING);
    }
}

#[test]
fn a_random_walk_in_the_shortest_t_maze_has_a_closed_form() {
    // entrance: e = (γ j + 3 (γ e − 0.1)) / 4, junction: j = (4 − 0.1 + γ e + γ j − 0.1) / 4,
    // outside: γ e
    let g = 0.98f64;
    let (junction, entrance) = {
        // (4 − 3γ) e − γ j = −0.3,  −γ e + (4 − γ) j = 3.8, by Cramer's rule
        let determinant = (4.0 - 3.0 * g) * (4.0 - g) - g * g;
        (((4.0 - 3.0 * g) * 3.8 - 0.3 * g) / determinant, (-0.3 * (4.0 - g) + 3.8 * g) / determinant)
    };
    assert_close(4.0 * junction, 4.0 - 0.1 + g * entrance + g * junction - 0.1, ROUNDING);
    let maze = TMaze::new(1).unwrap().pomdp();
    assert_close(maze.uniform_policy_value().unwrap(), g * entrance, ROUNDING);
    assert_close(value(&maze, g, 2000, uniform), g * entrance, ROUNDING);
}

#[test]
fn a_t_maze_looks_the_same_between_its_ends() {
    let maze = TMaze::new(3).unwrap().pomdp();
    let view = |state: &str| {
        let s = maze.states().iter().position(|name| name == state).unwrap();
        let [(o, 1.0)] = maze.emissions(Action(0), s).collect::<Vec<_>>()[..] else { panic!("views are certain") };
        maze.alphabet().symbol(o).to_string()
    };
    for side in ["north", "south"] {
        let views: Vec<String> = (0..=3).map(|cell| view(&format!("treasure={side}/cell={cell}"))).collect();
        assert_eq!(views, [format!("sign-{side}").as_str(), "corridor", "corridor", "junction"]);
    }
    assert_eq!(["treasure-arm", "empty-arm"].map(view), ["treasure [end]", "empty [end]"]);
}

#[test]
fn a_t_maze_charges_for_standing_still() {
    let maze = TMaze::new(3).unwrap().pomdp();
    let cell = |cell: usize| maze.states().iter().position(|name| *name == format!("treasure=south/cell={cell}")).unwrap();
    // what N, E, S, W pay
    for (at, rewards) in [(0, [-0.1, 0.0, -0.1, -0.1]), (1, [-0.1, 0.0, -0.1, 0.0]), (3, [-0.1, -0.1, 4.0, 0.0])] {
        assert_eq!([0, 1, 2, 3].map(|a| maze.expected_reward(Action(a), cell(at))), rewards, "cell {at}");
    }
    assert_eq!(maze.transitions(Action(3), cell(1)).collect::<Vec<_>>(), [(cell(0), 1.0)]); // back to the sign
    let outside = maze.start().next().unwrap().0;
    assert!((0..4).all(|a| maze.expected_reward(Action(a), outside) == 0.0));
}

/// 3 × 3 cells, a rock one step before the start and one in the corner farthest from it.
fn two_rocks() -> Pomdp {
    RockSample::new(3, vec![(1, 1), (0, 2)]).unwrap().pomdp()
}

fn state(pomdp: &Pomdp, name: &str) -> usize {
    pomdp.states().iter().position(|s| s == name).unwrap_or_else(|| panic!("no state {name}"))
}

#[test]
fn a_rover_moves_within_the_square_and_leaves_it_in_the_east() {
    let square = two_rocks();
    let next = |action: &str, from: &str| {
        let a = square.alphabet().action(action).unwrap();
        let [(to, 1.0)] = square.transitions(a, state(&square, from)).collect::<Vec<_>>()[..] else {
            panic!("moves are certain")
        };
        (square.states()[to].as_str(), square.expected_reward(a, state(&square, from)))
    };
    assert_eq!(square.alphabet().actions(), ["N", "E", "S", "W", "sample", "check-1", "check-2"]);
    assert_eq!(square.states().len(), 9 * 4 + 1);
    assert_eq!(["N", "E", "S", "W"].map(|a| next(a, "r1c1/gb").0), ["r0c1/gb", "r1c2/gb", "r2c1/gb", "r1c0/gb"]);
    assert_eq!(next("E", "r2c0/gb").0, "r2c1/gb");
    assert_eq!((next("N", "r0c0/gb"), next("W", "r0c0/gb")), (("r0c0/gb", 0.0), ("r0c0/gb", 0.0)));
    assert_eq!((next("S", "r2c2/gb"), next("E", "r2c2/gb")), (("r2c2/gb", 0.0), ("exit", 10.0)));
    assert_eq!((next("sample", "r1c1/gg"), next("sample", "r1c1/bg")), (("r1c1/bg", 10.0), ("r1c1/bg", -10.0)));
    assert_eq!((next("sample", "r0c2/gg"), next("sample", "r0c1/gg")), (("r0c2/gb", 10.0), ("r0c1/gg", 0.0)));
    assert_eq!(next("check-2", "r1c1/gg"), ("r1c1/gg", 0.0));
    let exit = state(&square, "exit");
    assert_eq!((0..37).filter(|&s| square.is_terminal(s)).collect::<Vec<_>>(), [exit]);
    let start: Vec<_> = square.start().map(|(s, p)| (square.states()[s].as_str(), p)).collect();
    assert_eq!(start, ["r1c0/bb", "r1c0/gb", "r1c0/bg", "r1c0/gg"].map(|name| (name, 0.25)));
}

#[test]
fn the_sensor_of_a_rover_is_more_accurate_near_the_rock() {
    let square = RockSample::new(21, vec![(10, 0), (10, 20), (7, 4)]).unwrap().pomdp();
    let good = |action: &str, at: &str| {
        let a = square.alphabet().action(action).unwrap();
        let o = square.alphabet().observation("good").unwrap();
        square.emissions(a, state(&square, at)).find(|&(seen, _)| seen == o).map_or(0.0, |(_, p)| p)
    };
    assert_eq!((good("check-1", "r10c0/gbb"), good("check-1", "r10c0/bgg")), (1.0, 0.0)); // on the spot
    assert_close(good("check-2", "r10c0/bgb"), 0.75, ROUNDING); // at distance 20 the efficiency is 1/2
    assert_close(good("check-2", "r10c0/gbg"), 0.25, ROUNDING);
    assert_close(good("check-1", "r10c10/gbb"), (1.0 + 0.5f64.sqrt()) / 2.0, ROUNDING); // at distance 10, √½
    assert_close(good("check-3", "r10c0/bbg"), (1.0 + 0.5f64.powf(5.0 / 20.0)) / 2.0, ROUNDING); // 3, 4, 5
    let seen = |action: &str, at: &str| {
        let a = square.alphabet().action(action).unwrap();
        let seen: Vec<_> = square.emissions(a, state(&square, at)).collect();
        assert_eq!(seen.len(), 1);
        square.alphabet().symbol(seen[0].0).to_string()
    };
    assert_eq!((seen("N", "r10c0/ggg"), seen("sample", "r10c0/bgg")), ("none".to_string(), "none".to_string()));
    assert_eq!((seen("E", "exit"), seen("check-1", "exit")), ("exit [end]".to_string(), "exit [end]".to_string()));
}

#[test]
fn obvious_plans_of_a_rover_have_closed_forms() {
    let (square, g) = (two_rocks(), 0.95f64);
    assert_close(plan_value(&square, &|_| "E"), 10.0 * g.powi(2), ROUNDING);
    // Go to the rock, look, sample what is good, leave.
    let look = |seen: &[&str]| match (seen.len(), seen.get(1)) {
        (1, _) => "check-1",
        (2, Some(&"good")) => "sample",
        _ => "E",
    };
    let (good, bad) = (10.0 * (g.powi(2) + g.powi(4)), 10.0 * g.powi(3));
    assert_close(plan_value(&square, &look), (good + bad) / 2.0, ROUNDING);
    // A check from the start, one cell away, is correct with probability p.
    let p = (1.0 + 0.5f64.powf(1.0 / 20.0)) / 2.0;
    let from_afar = |seen: &[&str]| match (seen.len(), seen.first()) {
        (0, _) => "check-1",
        (2, Some(&"good")) => "sample",
        _ => "E",
    };
    let sampled = 10.0 * g.powi(2) * (2.0 * p - 1.0) / 2.0 + 5.0 * g.powi(4);
    assert_close(plan_value(&square, &from_afar), sampled + 5.0 * g.powi(3), ROUNDING);
    // Full observation: one cell, one rock.
    let cell = RockSample::new(1, vec![(0, 0)]).unwrap().pomdp();
    assert_close(value(&cell, g, 100, best), (10.0 + 10.0 * g + 10.0) / 2.0, ROUNDING);
}

#[test]
fn rocks_come_from_the_seed_into_different_cells() {
    let drawn = |size, rocks, seed| RockSample::drawn(size, rocks, Seed(seed)).unwrap();
    assert_eq!(drawn(4, 3, 0).rocks(), [(3, 2), (2, 3), (1, 1)]);
    assert_eq!(drawn(5, 4, 7), drawn(5, 4, 7));
    assert_ne!(drawn(5, 4, 7), drawn(5, 4, 8));
    let mut all = drawn(3, 9, 1).rocks().to_vec();
    all.sort_unstable();
    assert_eq!(all, (0..9).map(|cell| (cell / 3, cell % 3)).collect::<Vec<_>>());
    assert_eq!(drawn(7, 8, 1).pomdp().states().len(), 12_545); // the largest of the paper
}

#[test]
fn impossible_mazes_and_squares_are_refused() {
    let maze = |length| TMaze::new(length).unwrap_err().to_string();
    assert_eq!(maze(0), "length = 0: must be a whole number from 1 to 1000");
    assert_eq!(maze(1001), "length = 1001: must be a whole number from 1 to 1000");
    let drawn = |size, rocks| RockSample::drawn(size, rocks, Seed(0)).unwrap_err().to_string();
    assert_eq!(drawn(0, 1), "size = 0: must be a whole number from 1, with size² · 2^rocks below 20 000");
    assert_eq!(drawn(3, 0), "rocks = 0: must be a whole number from 1, with size² · 2^rocks below 20 000");
    assert_eq!(drawn(2, 5), "rocks = 5: a square of size=2 has 4 cells");
    for (size, rocks) in [(7, 9), (usize::MAX, 1), (1, 64), (2, usize::MAX)] {
        let message = format!("rocks = {rocks}: size={size} and rocks={rocks} make size² · 2^rocks + 1 states, more than 20000");
        assert_eq!(drawn(size, rocks), message);
    }
    let square = |rocks: &[(usize, usize)]| RockSample::new(3, rocks.to_vec()).unwrap_err().to_string();
    assert_eq!(square(&[(0, 0), (3, 0)]), "rocks = (3, 0): rows and columns are below 3");
    assert_eq!(square(&[(0, 1), (2, 2), (0, 1)]), "rocks = (0, 1): there is already a rock");
}
