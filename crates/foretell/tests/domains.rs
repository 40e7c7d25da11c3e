//! Properties of every domain, and the known figures of the mazes.

use std::collections::BTreeSet;

use foretell::domains::{self, grid::Grid, rock_sample::RockSample};
use foretell::testing::{assert_conforms, assert_predicts};
use foretell::{Action, ActionObservation, Belief, Pomdp, Predict, Seed, Track};
use xxhash_rust::xxh3::xxh3_64;

fn assert_close(value: f64, expected: f64, tolerance: f64) {
    assert!((value - expected).abs() < tolerance, "{value} is not {expected} ± {tolerance}");
}

#[test]
fn every_domain_conforms() {
    for domain in domains::all() {
        assert_conforms(domain.environment().as_mut(), domain.horizon);
    }
}

/// Names stand in `--history "a:o,a:o"` and in tables.
#[test]
fn names_of_every_domain_are_fit_for_the_command_line() {
    for domain in domains::all() {
        let (actions, observations) = (domain.alphabet().actions().iter(), domain.alphabet().observations().iter());
        for name in actions.chain(observations.map(|o| &o.name)) {
            let divides = |c: char| c.is_whitespace() || [',', ':'].contains(&c);
            assert!(!name.contains(divides), "{}: {name:?}", domain.name);
        }
    }
}

#[test]
fn the_exact_belief_predicts_in_every_finite_domain() {
    for domain in domains::all() {
        let Some(pomdp) = domain.pomdp() else { continue };
        let episodes: Vec<_> = domains::sample(&domain, 20, domain.horizon.min(20), Seed(3)).collect();
        assert_predicts(&mut Belief::new(pomdp), domain.alphabet(), &episodes);
    }
}

#[test]
fn names_of_domains_do_not_change() {
    // Users' logs and models contain these names: a changed fingerprint breaks them.
    let mut lines = String::new();
    for domain in domains::all() {
        let symbols: Vec<String> = domain.alphabet().observations().iter().map(|o| o.to_string()).collect();
        let actions = domain.alphabet().actions().join(" ");
        let fingerprint = xxh3_64(format!("{actions}\n{}", symbols.join("\n")).as_bytes());
        let (first, last) = (&symbols[0], &symbols[symbols.len() - 1]);
        lines += &format!("{}: {actions}; {} from {first} to {last}; {fingerprint:016x}\n", domain.name, symbols.len());
    }
    insta::assert_snapshot!(lines);
}

#[test]
fn rows_of_every_finite_domain_sum_to_one() {
    for domain in domains::all() {
        let Some(pomdp) = domain.pomdp() else { continue };
        assert_close(pomdp.start().map(|(_, p)| p).sum(), 1.0, 1e-12);
        for a in (0..domain.alphabet().actions().len() as u32).map(Action) {
            for s in 0..pomdp.states().len() {
                assert_close(pomdp.emissions(a, s).map(|(_, p)| p).sum(), 1.0, 1e-12);
                let after = if pomdp.is_terminal(s) { 0.0 } else { 1.0 };
                assert_close(pomdp.transitions(a, s).map(|(_, p)| p).sum(), after, 1e-12);
            }
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_episodes_for_any_number_of_threads() {
    const EPISODES: usize = 5000; // more than one chunk
    for domain in domains::all() {
        let sample = |threads| -> Vec<_> {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| domains::sample(&domain, EPISODES, domain.horizon, Seed(7)).collect())
        };
        let one = sample(1);
        assert_eq!(one.len(), EPISODES);
        assert_eq!(one, sample(3), "{}", domain.name);
        assert_ne!(one[0], one[1]);
        assert!(domains::sample(&domain, 10, domain.horizon, Seed(7)).eq(one[..10].iter().cloned()));
    }
}

#[test]
fn domains_are_found_by_name_and_by_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    for domain in domains::all() {
        assert_eq!(domains::get(&domain.name).unwrap().name, domain.name);
    }
    let map = domains::get(&file("maze.txt", "xxxxx\nxS.Gx\nxxxxx\n\n00000\n22212\n00000\n")).unwrap();
    let views: Vec<_> = map.alphabet().observations().iter().map(|o| o.to_string()).collect();
    assert_eq!(views, ["b.b.", "b.br", "brb. [end]"].map(String::from).to_vec().as_slice());
    let coin = "states: 2\nactions: 1\nobservations: 1\nT: * uniform\nO: * uniform\n";
    let coin = domains::get(&file("coin.pomdp", coin)).unwrap();
    assert_eq!((coin.discount, coin.pomdp().unwrap().discount_is_given()), (1.0, false));
    let names: Vec<String> = domains::all().into_iter().map(|domain| domain.name).collect();
    assert_eq!(
        domains::get("gridwold").unwrap_err().to_string(),
        format!("domain = gridwold: neither a built-in domain ({}) nor a .POMDP file nor a map", names.join(", "))
    );
    let colon = domains::get(&file("two:doors:2.txt", "xxxx\nxSGx\nxxxx\n")).unwrap();
    assert_eq!(colon.pomdp().unwrap().states().len(), 2);
    assert!(domains::get("missing.POMDP").unwrap_err().to_string().starts_with("cannot read missing.POMDP"));
}

#[test]
fn parameters_follow_the_name_of_a_domain() {
    let states = |name: &str| {
        let domain = domains::get(name).unwrap();
        assert_eq!(domain.name, name);
        (domain.pomdp().unwrap().states().len(), domain.horizon)
    };
    assert_eq!(states("t-maze"), states("t-maze:length=10"));
    assert_eq!(states("t-maze:length=20"), (2 * 21 + 3, 200));
    assert_eq!(states("rocksample"), states("rocksample:seed=0,size=4,rocks=3"));
    assert_eq!(states("rocksample:size=5,rocks=3,seed=1"), (25 * 8 + 1, 100));
    let fifty_steps = |pomdp: &Pomdp| pomdp.uniform_policy().take(50).map(|step| step.reward).sum::<f64>();
    let value = |name: &str| fifty_steps(domains::get(name).unwrap().pomdp().unwrap());
    assert_eq!(value("amm-108"), value("amm-108:costs=false,extinction=0.02"));
    assert!(value("amm-108:costs=true") < value("amm-108") && value("amm-108:extinction=0.05") < value("amm-108"));
    assert!(value("amm-plover:costs=false") > value("amm-plover:costs=true"));
    assert_eq!(value("amm-cpsr"), value("amm-cpsr:costs=true"));
    let square = |seed| fifty_steps(&RockSample::drawn(5, 3, Seed(seed)).unwrap().pomdp());
    assert_eq!([1, 2].map(|seed| value(&format!("rocksample:size=5,rocks=3,seed={seed}"))), [1, 2].map(square));
}

#[test]
fn wrong_parameters_are_named_with_what_is_allowed() {
    let names = [
        "t-maze:lenght=20",
        "t-maze:20",
        "t-maze:",
        "t-maze:length",
        "t-maze:length=",
        "t-maze:length=ten",
        "t-maze:length=-1",
        "t-maze:length=0",
        "t-maze:length=5,length=6",
        "rocksample:size=4;rocks=2",
        "rocksample:size=7,rocks=9",
        "rocksample:rows=7",
        "amm-plover:costs=yes",
        "amm-plover:extinction=0.1",
        "amm-108:extinction=2",
        "amm-108:extinction=often",
        "amm-108:horizon=20",
        "tiger:doors=3",
        "colored-gridworld:",
    ];
    let said = |name: &str| format!("{name}\n    {}\n", domains::get(name).unwrap_err());
    insta::assert_snapshot!(names.map(said).concat());
}

fn colored_gridworld() -> Pomdp {
    domains::get("colored-gridworld").unwrap().pomdp().unwrap().clone()
}

#[test]
fn the_maze_has_47_cells_and_14_views() {
    let maze = colored_gridworld();
    assert_eq!(maze.states().len(), 47);
    let views: BTreeSet<_> = maze.alphabet().observations().iter().map(|o| &o.name).collect();
    assert_eq!(views.len(), 14);
    assert_eq!(maze.alphabet().actions(), ["N", "E", "S", "W"]);
    let [(s, p)] = maze.start().collect::<Vec<_>>()[..] else { panic!("one start") };
    assert_eq!((maze.states()[s].as_str(), p), ("r4c9", 1.0));
    let goals: Vec<_> = (0..47).filter(|&s| maze.is_terminal(s)).map(|s| maze.states()[s].as_str()).collect();
    assert_eq!(goals, ["r2c11"]);
}

#[test]
fn moves_slip_sideways_and_walls_stop_them() {
    let maze = colored_gridworld();
    let [(s, _)] = maze.start().collect::<Vec<_>>()[..] else { panic!("one start") };
    // From S: N is open, E is a wall, W is open.
    let north: Vec<_> = maze.transitions(Action(0), s).map(|(to, p)| (maze.states()[to].as_str(), p)).collect();
    assert_eq!(north.iter().map(|m| m.0).collect::<Vec<_>>(), ["r3c9", "r4c8", "r4c9"]);
    north.iter().zip([0.8, 0.1, 0.1]).for_each(|(m, p)| assert_close(m.1, p, 1e-15));
}

#[test]
fn views_show_the_visible_walls() {
    let view = |domain: &str, state: &str| {
        let domain = domains::get(domain).unwrap();
        let maze = domain.pomdp().unwrap();
        let s = maze.states().iter().position(|name| name == state).unwrap();
        let [(o, 1.0)] = maze.emissions(Action(2), s).collect::<Vec<_>>()[..] else { panic!("views are certain") };
        domain.alphabet().symbol(o).name.clone()
    };
    // At S the one wall, in the east, has colour 1, which cannot be seen.
    assert_eq!((view("gridworld", "r4c9"), view("colored-gridworld", "r4c9")), (".#..".to_string(), "....".to_string()));
    // In the lower left corner the south wall has colour 0, the west wall colour 2.
    assert_eq!((view("gridworld", "r5c1"), view("colored-gridworld", "r5c1")), ("..##".to_string(), "..br".to_string()));
}

#[test]
fn a_random_walk_reaches_the_goal_in_one_percent_of_episodes() {
    for name in ["gridworld", "colored-gridworld"] {
        let domain = domains::get(name).unwrap();
        let walk: Vec<_> = domain.pomdp().unwrap().uniform_policy().take(13).collect();
        assert_close(1.0 - walk[12].live, 0.0104, 0.00005);
        let value: f64 = (0..).zip(&walk).map(|(t, step)| 0.99f64.powi(t) * step.reward).sum();
        assert_close(value, 0.0094, 0.00005);
    }
}

#[test]
fn the_best_policy_that_observes_the_cell_returns_0_9030() {
    let maze = colored_gridworld();
    // (discounted value, probability of reaching the goal) of the best policy by the number of
    // steps to go
    let mut best = vec![(0.0, 0.0); maze.states().len()];
    for _ in 0..13 {
        let backup = |s: usize| {
            let q = |a: u32| {
                let reached = |to| if maze.is_terminal(to) { 1.0 } else { 0.0 };
                let future = maze
                    .transitions(Action(a), s)
                    .fold((0.0, 0.0), |(v, reach), (to, p)| (v + p * 0.99 * best[to].0, reach + p * (reached(to) + best[to].1)));
                (maze.expected_reward(Action(a), s) + future.0, future.1)
            };
            (0..4).map(q).max_by(|x, y| x.0.total_cmp(&y.0)).unwrap()
        };
        best = (0..maze.states().len()).map(backup).collect();
    }
    let (value, reach) = maze.start().map(|(s, _)| best[s]).next().unwrap();
    assert_close(value, 0.9030, 0.00005);
    assert_close(reach, 0.9696, 0.00005);
}

/// Mean ln P(o_1:n ‖ a_1:n) under uniform actions, n = 1 … 13: the mean of 20 000 episodes, over
/// those that are long enough.
const LOG_LIKELIHOOD: [f64; 13] =
    [-0.559, -1.132, -1.668, -2.249, -2.810, -3.390, -3.958, -4.538, -5.114, -5.684, -6.251, -6.824, -7.387];

#[test]
fn the_true_model_has_the_known_log_likelihood() {
    const EPISODES: usize = 20_000;
    let domain = domains::get("colored-gridworld").unwrap();
    let mut belief = Belief::new(domain.pomdp().unwrap());
    let mut sums = [[0.0; 3]; 13]; // count, sum, sum of squares
    for z in domains::sample(&domain, EPISODES, 13, Seed(11)) {
        belief.reset();
        let mut log_p = 0.0;
        for (&ao, [count, sum, squares]) in z.steps.iter().zip(&mut sums) {
            log_p += belief.update(ao).ln();
            *count += 1.0;
            *sum += log_p;
            *squares += log_p * log_p;
        }
    }
    for ([count, sum, squares], expected) in sums.into_iter().zip(LOG_LIKELIHOOD) {
        let mean = sum / count;
        // Both means come from 20 000 episodes: four standard errors of their difference, and the
        // rounding of the figures.
        let standard_error = ((squares / count - mean * mean) / count).sqrt();
        assert_close(mean, expected, 4.0 * 2f64.sqrt() * standard_error + 0.0005);
    }
}

/// E[x] and E[x²] of x = ln P(o_1:n ‖ a_1:n) under uniform actions, over all continuations by
/// `left` steps of a history that has probability `p`.
fn exact_log_likelihood(belief: &Belief<'_>, p: f64, left: usize) -> (f64, f64) {
    if left == 0 {
        return (p * p.ln(), p * p.ln().powi(2));
    }
    let mut sums = (0.0, 0.0);
    for a in 0..4 {
        let possible = belief.clone().probabilities(Action(a)).to_vec().into_iter().enumerate().filter(|&(_, q)| q > 0.0);
        for (o, q) in possible {
            let mut next = belief.clone();
            next.update(ActionObservation::new(a, o as u32));
            let (x, x2) = exact_log_likelihood(&next, p * q, left - 1);
            sums = (sums.0 + x / 4.0, sums.1 + x2 / 4.0);
        }
    }
    sums
}

#[test]
fn the_first_log_likelihoods_are_exact_expectations() {
    let maze = colored_gridworld();
    for n in 1..=4 {
        let (mean, square) = exact_log_likelihood(&Belief::new(&maze), 1.0, n);
        // The figures are means of 20 000 episodes, rounded: four standard errors and the rounding.
        let standard_error = ((square - mean * mean) / 20_000.0).sqrt();
        assert_close(LOG_LIKELIHOOD[n - 1], mean, 4.0 * standard_error + 0.0005);
    }
}

#[test]
fn a_map_may_have_several_starts_and_goals() {
    let maze = Grid::parse("xxxxxxx\nxG.S.Sx\nxxxxxGx\nxxxxxxx\n", "two.txt").unwrap().pomdp();
    assert_eq!(maze.start().map(|(_, p)| p).collect::<Vec<_>>(), [0.5, 0.5]);
    assert_eq!((0..6).filter(|&s| maze.is_terminal(s)).count(), 2);
}
