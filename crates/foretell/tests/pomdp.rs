//! Finite POMDPs against the definitions they compute.

use foretell::pomdp::{PomdpTables, RewardRule, Row, sparse};
use foretell::testing::assert_predicts;
use foretell::{
    Action, ActionObservation, Belief, Environment, Filter, Observation, Pomdp, Predict, Seed, Track, Uniform, domains, rollout,
};
use proptest::prelude::*;

/// Rounding of sums of a few thousand products.
const ROUNDING: f64 = 1e-12;

/// Random tables: 2 actions, 3 observations, up to 4 states, of which the last may be terminal.
fn tables() -> impl Strategy<Value = PomdpTables> {
    // Many zeros, so that some sequences are impossible.
    let row = |n: usize| {
        let weight = prop_oneof![Just(0u32), 1..5u32];
        (prop::collection::vec(weight, n), 0..n).prop_map(|(mut weights, i)| {
            weights[i] += 1;
            let total: u32 = weights.iter().sum();
            sparse(&weights.iter().map(|&w| f64::from(w) / f64::from(total)).collect::<Vec<_>>())
        })
    };
    (2..5usize, any::<bool>()).prop_flat_map(move |(n, ends)| {
        let table = |width| prop::collection::vec(prop::collection::vec(row(width), n), 2);
        let rewards = prop::collection::vec((prop::option::of(0..n), prop::option::of(0..n), prop::option::of(0..3usize)), 0..5);
        (row(n - 1), table(n), table(3), rewards).prop_map(move |(start, transitions, emissions, rewards)| PomdpTables {
            discount: Some(0.9),
            states: names("s", n),
            actions: names("a", 2),
            observations: names("o", 3),
            terminal: (0..n).map(|s| ends && s == n - 1).collect(),
            start,
            transitions,
            emissions,
            rewards: (1..)
                .zip(rewards)
                .map(|(r, (from, to, observation))| RewardRule { action: None, from, to, observation, reward: f64::from(r) })
                .collect(),
        })
    })
}

fn names(prefix: &str, n: usize) -> Vec<String> {
    (0..n).map(|i| format!("{prefix}{i}")).collect()
}

fn entry(row: &Row, column: usize) -> f64 {
    row.iter().find(|&&(c, _)| c == column).map_or(0.0, |&(_, p)| p)
}

/// P(o_1 … o_n ‖ a_1 … a_n) by definition: the sum over all paths of states, straight from the
/// tables.
fn probability_by_definition(tables: &PomdpTables, pomdp: &Pomdp, steps: &[ActionObservation]) -> f64 {
    fn from(tables: &PomdpTables, pomdp: &Pomdp, s: usize, steps: &[ActionObservation]) -> f64 {
        let [ao, rest @ ..] = steps else { return 1.0 };
        if tables.terminal[s] {
            return 0.0; // nothing follows
        }
        let symbol = pomdp.alphabet().symbol(ao.observation);
        let o = tables.observations.iter().position(|name| *name == symbol.name).unwrap();
        let a = ao.action.index();
        (0..tables.states.len())
            .filter(|&to| tables.terminal[to] == symbol.terminal)
            .map(|to| {
                let p = entry(&tables.transitions[a][s], to) * entry(&tables.emissions[a][to], o);
                if p > 0.0 { p * from(tables, pomdp, to, rest) } else { 0.0 }
            })
            .sum()
    }
    tables.start.iter().map(|&(s, p)| p * from(tables, pomdp, s, steps)).sum()
}

proptest! {
    #[test]
    fn sequence_probabilities_are_sums_over_state_paths(
        tables in tables(),
        steps in prop::collection::vec((0..2u32, any::<prop::sample::Index>()), 0..5),
    ) {
        let pomdp = Pomdp::new(tables.clone()).unwrap();
        let symbols = pomdp.alphabet().observations().len();
        let steps: Vec<_> = steps.iter().map(|(a, o)| ActionObservation::new(*a, o.index(symbols) as u32)).collect();
        let expected = probability_by_definition(&tables, &pomdp, &steps);
        prop_assert!((pomdp.probability(&steps) - expected).abs() < ROUNDING);
    }

    #[test]
    fn a_belief_sums_to_one_and_predicts_what_happens(tables in tables(), seed in any::<u64>()) {
        let pomdp = Pomdp::new(tables).unwrap();
        let z = rollout(&mut pomdp.environment(), &mut Uniform { actions: 2 }, 10, &mut Seed(seed).rng());
        let mut belief = Belief::new(&pomdp);
        assert_predicts(&mut belief, pomdp.alphabet(), std::slice::from_ref(&z));
        belief.reset();
        for &ao in &z.steps {
            prop_assert!((belief.probabilities(ao.action).iter().sum::<f64>() - 1.0).abs() < ROUNDING);
            prop_assert!(belief.update(ao) > 0.0, "what the environment does is possible");
            prop_assert!((belief.state().iter().sum::<f64>() - 1.0).abs() < ROUNDING);
        }
        prop_assert_eq!(belief.lost(), 0);
    }

    #[test]
    fn expected_rewards_are_sums_over_what_can_happen(tables in tables()) {
        let pomdp = Pomdp::new(tables.clone()).unwrap();
        for (a, s) in (0..2).flat_map(|a| (0..tables.states.len()).map(move |s| (a, s))).filter(|&(_, s)| !tables.terminal[s]) {
            let mut expected = 0.0;
            for (to, p) in pomdp.transitions(Action(a), s) {
                expected += pomdp.emissions(Action(a), to).map(|(o, q)| p * q * pomdp.reward(Action(a), s, to, o)).sum::<f64>();
            }
            prop_assert!((pomdp.expected_reward(Action(a), s) - expected).abs() < ROUNDING);
        }
    }

    #[test]
    fn a_written_model_is_the_same_model(
        tables in tables(),
        steps in prop::collection::vec((0..2u32, any::<prop::sample::Index>()), 0..5),
    ) {
        let pomdp = Pomdp::new(tables).unwrap();
        let text = pomdp.to_cassandra();
        let read = Pomdp::parse(&text, "written.POMDP").unwrap();
        // Without comments it is equivalent: symbols keep their indices, and one more follows them
        // where episodes end.
        let foreign = Pomdp::parse(&without_comments(&text), "foreign.POMDP").unwrap();
        let symbols = pomdp.alphabet().observations();
        let place = |o: usize| read.alphabet().observations().iter().position(|symbol| *symbol == symbols[o]).unwrap() as u32;
        let drawn: Vec<_> = steps.iter().map(|(a, o)| (*a, o.index(symbols.len()))).collect();
        let renamed: Vec<_> = drawn.iter().map(|&(a, o)| ActionObservation::new(a, place(o))).collect();
        let steps: Vec<_> = drawn.iter().map(|&(a, o)| ActionObservation::new(a, o as u32)).collect();
        prop_assert_eq!(read.alphabet().observations().len(), symbols.len());
        prop_assert_eq!(pomdp.states(), read.states());
        for (read, same) in [(&read, &renamed), (&foreign, &steps)] {
            prop_assert!((pomdp.probability(&steps) - read.probability(same)).abs() < ROUNDING);
            for (a, s) in (0..2).flat_map(|a| (0..pomdp.states().len()).map(move |s| (Action(a), s))) {
                prop_assert!((pomdp.expected_reward(a, s) - read.expected_reward(a, s)).abs() < ROUNDING);
            }
            prop_assert!((pomdp.uniform_policy_value().unwrap() - read.uniform_policy_value().unwrap()).abs() < 2e-10);
        }
    }

    #[test]
    fn the_value_of_the_uniform_policy_solves_its_bellman_equation(tables in tables()) {
        let n = tables.states.len();
        let pomdp = Pomdp::new(tables.clone()).unwrap();
        let mut v = vec![0.0; n];
        for _ in 0..400 { // 0.9^400 < 1e-18
            v = (0..n).map(|s| {
                let q = |a| pomdp.expected_reward(a, s) + 0.9 * pomdp.transitions(a, s).map(|(to, p)| p * v[to]).sum::<f64>();
                (q(Action(0)) + q(Action(1))) / 2.0
            }).collect();
        }
        let expected: f64 = pomdp.start().map(|(s, p)| p * v[s]).sum();
        prop_assert!((pomdp.uniform_policy_value().unwrap() - expected).abs() < 2e-10);
    }
}

/// Live, wounded, dead: the last is terminal.
fn mortal() -> PomdpTables {
    PomdpTables {
        discount: None,
        states: ["live", "wounded", "dead"].map(String::from).to_vec(),
        actions: vec!["wait".to_string()],
        observations: ["fine", "hurt"].map(String::from).to_vec(),
        terminal: vec![false, false, true],
        start: vec![(0, 1.0)],
        transitions: vec![vec![vec![(0, 0.5), (1, 0.5)], vec![(1, 0.5), (2, 0.5)], vec![]]],
        emissions: vec![vec![vec![(0, 1.0)], vec![(1, 1.0)], vec![(1, 1.0)]]],
        rewards: vec![RewardRule { reward: 1.0, ..RewardRule::default() }],
    }
}

#[test]
fn a_terminal_state_emits_terminal_symbols_and_nothing_follows() {
    let pomdp = Pomdp::new(mortal()).unwrap();
    let symbols: Vec<String> = pomdp.alphabet().observations().iter().map(|o| o.to_string()).collect();
    assert_eq!(symbols, ["fine", "hurt", "hurt [end]"]);
    let [hurt, end] = [1, 2].map(|o| ActionObservation::new(0, o));
    assert_eq!(pomdp.probability(&[hurt, end]), 0.25);
    assert_eq!(pomdp.probability(&[hurt, end, hurt]), 0.0);
    let mut belief = Belief::new(&pomdp);
    assert_eq!([hurt, end].map(|ao| belief.update(ao)), [0.5, 0.5]);
    assert_eq!(belief.probabilities(Action(0)), [0.0; 3]);
}

#[test]
fn without_discount_the_value_of_episodes_that_end_is_finite() {
    let pomdp = Pomdp::new(mortal()).unwrap();
    assert!(!pomdp.discount_is_given() && pomdp.discount() == 1.0);
    // Two geometric waits of mean 2, paying 1 a step.
    assert!((pomdp.uniform_policy_value().unwrap() - 4.0).abs() < 1e-9);
    let immortal = PomdpTables { terminal: vec![], transitions: vec![vec![vec![(0, 1.0)]; 3]], ..mortal() };
    assert_eq!(Pomdp::new(immortal).unwrap().uniform_policy_value(), None);
}

/// As other programs read it.
fn without_comments(text: &str) -> String {
    text.lines().filter(|line| !line.starts_with('#')).flat_map(|line| [line, "\n"]).collect()
}

#[test]
fn a_written_model_keeps_names_that_the_format_cannot_express() {
    let strange = ["goal", "T", "the end", "the_end", "3", "#.é"].map(String::from);
    let n = strange.len();
    let pomdp = Pomdp::new(PomdpTables {
        states: strange.to_vec(),
        actions: strange.to_vec(),
        observations: strange.to_vec(),
        terminal: (0..n).map(|s| s == 0).collect(),
        start: vec![(1, 1.0)],
        transitions: vec![vec![vec![(0, 0.1), (2, 0.9)]; n]; n],
        emissions: vec![(0..n).map(|s| vec![(s, 1.0)]).collect(); n],
        rewards: vec![RewardRule { reward: 0.1 + 0.2, ..RewardRule::default() }],
        ..PomdpTables::default()
    })
    .unwrap();
    let text = pomdp.to_cassandra();
    let line = |start: &str| text.lines().find(|line| line.starts_with(start)).unwrap();
    assert_eq!(line("states:"), "states: goal s_T the_end the_end_2 s_3 s____ end");
    assert_eq!(line("actions:"), "actions: goal a_T the_end the_end_2 a_3 a____");
    assert_eq!(line("observations:"), "observations: o_T the_end the_end_2 o_3 o____ goal_end end");
    for comment in ["# state s_3: \"3\"", "# observation goal_end: \"goal\", which ends the episode", "# state end: the end"] {
        assert!(text.lines().any(|line| line == comment), "{text}");
    }
    let read = Pomdp::parse(&text, "strange.POMDP").unwrap();
    assert_eq!((read.alphabet(), read.states()), (pomdp.alphabet(), pomdp.states()));
    assert!(read.is_terminal(0) && read.transitions(Action(0), 0).next().is_none());
    // Comments that a change by hand contradicts are ignored.
    let changed = text.replace("T: goal : s_T : goal 0.1", "T: goal : s_T : end 0.1");
    assert_eq!(Pomdp::parse(&changed, "changed.POMDP").unwrap().states().len(), n + 1);

    let read = Pomdp::parse(&without_comments(&text), "strange.POMDP").unwrap();
    assert_eq!(read.reward(Action(3), 1, 2, Observation(1)), 0.1 + 0.2);
    // From a terminal state it goes to the end state, without reward, and stays.
    assert_eq!(read.transitions(Action(0), 0).collect::<Row>(), [(n, 1.0)]);
    assert_eq!(read.transitions(Action(0), n).collect::<Row>(), [(n, 1.0)]);
    assert_eq!((read.expected_reward(Action(0), 0), read.expected_reward(Action(0), n)), (0.0, 0.0));
}

#[test]
fn every_finite_domain_is_written_and_read_again() {
    for domain in domains::all() {
        let Some(pomdp) = domain.pomdp() else { continue };
        let read = Pomdp::parse(&pomdp.to_cassandra(), &domain.name).unwrap();
        assert_eq!((pomdp.alphabet(), pomdp.states()), (read.alphabet(), read.states()), "{}", domain.name);
        for i in 0..20 {
            let actions = pomdp.alphabet().actions().len();
            let z = rollout(&mut pomdp.environment(), &mut Uniform { actions }, 15, &mut Seed(i).rng());
            let (p, q) = (pomdp.probability(&z.steps), read.probability(&z.steps));
            assert!((p - q).abs() <= 1e-9 * p, "{}: {p} is read as {q}", domain.name);
        }
    }
}

#[test]
fn a_lost_belief_is_the_predicted_one_and_is_counted() {
    let pomdp = Pomdp::new(mortal()).unwrap();
    let mut belief = Belief::new(&pomdp);
    belief.update(ActionObservation::new(0, 1));
    assert_eq!(belief.state(), [0.0, 1.0, 0.0]);
    assert_eq!((belief.update(ActionObservation::new(0, 0)), belief.lost()), (0.0, 1)); // the wounded do not recover
    assert_eq!(belief.state(), [0.0, 1.0, 0.0]); // predicted, and alive
    belief.update(ActionObservation::new(0, 2));
    assert_eq!((belief.update(ActionObservation::new(0, 0)), belief.lost()), (0.0, 2)); // nor the dead
    assert_eq!(belief.state(), [0.0, 0.0, 1.0]);
    belief.reset();
    assert_eq!((belief.state(), belief.lost()), (&[1.0, 0.0, 0.0][..], 2));
}

#[test]
fn the_environment_draws_what_the_model_says() {
    const EPISODES: usize = 40_000;
    let tiger = domains::get("tiger").unwrap();
    let pomdp = tiger.pomdp().unwrap();
    let mut env = pomdp.environment();
    let mut rng = Seed(5).rng();
    let mut count = [0; 4];
    for _ in 0..EPISODES {
        env.reset(&mut rng);
        let o: [usize; 2] = std::array::from_fn(|_| env.step(Action(0), &mut rng).observation.index());
        count[2 * o[0] + o[1]] += 1;
    }
    for (i, &n) in count.iter().enumerate() {
        let p = pomdp.probability(&[ActionObservation::new(0, i as u32 / 2), ActionObservation::new(0, i as u32 % 2)]);
        let deviation = (EPISODES as f64 * p * (1.0 - p)).sqrt();
        assert!((n as f64 - EPISODES as f64 * p).abs() < 4.0 * deviation, "{i}: {n}, p = {p}");
    }
}

#[test]
fn tables_that_are_not_a_model_are_refused() {
    type Break = fn(&mut PomdpTables);
    let cases: [(Break, &str); 9] = [
        (|t| t.transitions[0][1][0].1 = 0.6, "action wait, state wounded sum to 1.1"),
        (|t| t.emissions[0][2].clear(), "observation probabilities of action wait, state dead are missing"),
        (|t| t.emissions[0][0][0].1 = -1.0, "contain -1"),
        (|t| t.emissions[0][0][0].0 = 2, "does not exist"),
        (|t| t.start = vec![(2, 1.0)], "start in terminal state dead"),
        (|t| t.states[1] = "live".to_string(), "state \"live\" is named twice"),
        (|t| t.discount = Some(1.5), "discount 1.5"),
        (|t| t.rewards[0].reward = f64::NAN, "reward rule"),
        (|t| t.transitions[0].truncate(2), "not 1 × 3 rows"),
    ];
    for (break_it, expected) in cases {
        let mut tables = mortal();
        break_it(&mut tables);
        let message = Pomdp::new(tables).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    }
}

fn data(name: &str) -> String {
    format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn all_forms_of_the_grammar_mean_the_same() {
    let tiger = domains::get("tiger").unwrap();
    let plain = tiger.pomdp().unwrap();
    let forms = Pomdp::read(data("two-doors.POMDP")).unwrap();
    assert_eq!((forms.alphabet(), forms.states(), forms.discount()), (plain.alphabet(), plain.states(), 0.95));
    assert_eq!(forms.start().collect::<Row>(), plain.start().collect::<Row>());
    for (a, s) in (0..3).flat_map(|a| [(Action(a), 0), (Action(a), 1)]) {
        assert_eq!(forms.transitions(a, s).collect::<Row>(), plain.transitions(a, s).collect::<Row>());
        assert_eq!(forms.expected_reward(a, s), plain.expected_reward(a, s), "{a:?} {s}");
        for ((o, p), (o2, p2)) in forms.emissions(a, s).zip(plain.emissions(a, s)) {
            assert_eq!(o, o2);
            assert!((p - p2).abs() < 1e-5); // the file is off by 5e-6 and was normalised
        }
        let sum: f64 = forms.emissions(a, s).map(|(_, p)| p).sum();
        assert!((sum - 1.0).abs() < ROUNDING);
    }
    // (−100 + 10) / 2 twice in three actions and −1 once, for 1 / (1 − 0.95) steps
    assert!((plain.uniform_policy_value().unwrap() + 20.0 * 91.0 / 3.0).abs() < 1e-9);
}

#[test]
fn costs_are_negative_rewards_and_the_last_rule_applies() {
    let machine = Pomdp::read(data("machine.POMDP")).unwrap();
    let [run, look, repair] = ["run", "look", "repair"].map(|name| machine.alphabet().action(name).unwrap());
    let [zero, one] = [Observation(0), Observation(1)];
    assert_eq!(machine.start().collect::<Row>(), [(0, 0.5), (1, 0.5)]);
    assert_eq!(machine.transitions(repair, 2).collect::<Row>(), [(0, 0.5), (1, 0.5)]);
    assert_eq!(machine.emissions(look, 1).collect::<Vec<_>>(), [(zero, 0.9), (one, 0.1)]);
    assert_eq!(machine.reward(run, 1, 2, one), -4.0);
    assert_eq!(machine.reward(run, 2, 2, one), -10.0);
    assert_eq!((machine.reward(run, 0, 0, zero), machine.reward(run, 0, 0, one)), (0.0, -1.0));
    assert_eq!(machine.expected_reward(run, 0), 0.8 * -0.5 + 0.2 * -4.0);
    assert_eq!(machine.expected_reward(look, 0), -1.0);
}

#[test]
fn a_start_may_be_given_in_every_form() {
    let start = |line: &str| {
        let text = format!("{line}\nstates: a b c\nactions: 1\nobservations: 1\nT: * identity\nO: * uniform");
        let pomdp = Pomdp::parse(&text, "start").unwrap();
        let mut dense = [0.0; 3];
        pomdp.start().for_each(|(s, p)| dense[s] = p);
        dense
    };
    assert_eq!(start(""), [1.0 / 3.0; 3]);
    assert_eq!(start("start: uniform"), [1.0 / 3.0; 3]);
    assert_eq!(start("start: b"), [0.0, 1.0, 0.0]);
    assert_eq!(start("start: 2"), [0.0, 0.0, 1.0]);
    assert_eq!(start("start:\n 0.25 0 0.75"), [0.25, 0.0, 0.75]);
    assert_eq!(start("start include: a 2"), [0.5, 0.0, 0.5]);
    assert_eq!(start("start exclude : a"), [0.0, 0.5, 0.5]);
}
