//! Systems to try things on: built-in domains, noisy and drifting variants of them, and random
//! POMDPs.

use foretell::pomdp::{RewardRule, Row};
use foretell::{Action, Observation, Pomdp, PomdpTables, Rng, Seed, domains};

/// Built-in domains, some of them in several sizes.
pub const BUILT_IN: [&str; 14] = [
    "gridworld",
    "colored-gridworld",
    "amm-cpsr",
    "amm-plover",
    "amm-108",
    "tiger",
    "float-reset",
    "t-maze",
    "t-maze:length=4",
    "t-maze:length=20",
    "rocksample",
    "rocksample:size=3,rocks=2,seed=1",
    "rocksample:size=5,rocks=3,seed=1",
    "rocksample:size=4,rocks=1,seed=2",
];

/// Built-in domains without an exact model, whose many observations make them slow.
pub const GAMES: [&str; 2] = ["s-pocman", "pocman"];

/// Domains that become noisy, and the probability that an observation is replaced by a random one.
const NOISY: [(&str, f64); 5] =
    [("colored-gridworld", 0.1), ("colored-gridworld", 0.3), ("float-reset", 0.1), ("t-maze:length=4", 0.1), ("gridworld", 0.2)];
/// Domains whose actions change their meaning at random times that cannot be observed.
const DRIFTING: [&str; 4] = ["gridworld", "tiger", "float-reset", "t-maze:length=4"];
/// Probability of such a change at each step.
const DRIFT: f64 = 0.03;
/// Random POMDPs: states, actions and observations.
const RANDOM: [[usize; 3]; 8] = [[3, 2, 2], [5, 2, 3], [5, 3, 5], [10, 2, 3], [10, 4, 8], [20, 2, 4], [20, 4, 10], [40, 3, 12]];
/// Successors of a state in a random POMDP.
const SUCCESSORS: usize = 3;
/// How much of a random state's emissions is its own observation.
const OWN: f64 = 0.7;

/// Variants of built-in domains, and random POMDPs, with their names.
pub fn variants() -> anyhow::Result<Vec<(String, Pomdp)>> {
    let mut all = Vec::new();
    for (name, noise) in NOISY {
        let tables = tables_of(name)?;
        let label = name.replace([':', '='], "-");
        all.push((format!("noisy-{label}-{noise}"), Pomdp::new(noisy(tables, noise))?));
    }
    for name in DRIFTING {
        let label = name.replace([':', '='], "-");
        all.push((format!("drifting-{label}"), Pomdp::new(drifting(tables_of(name)?))?));
    }
    for (i, sizes) in RANDOM.into_iter().enumerate() {
        let [states, actions, observations] = sizes;
        let pomdp = Pomdp::new(random(sizes, &mut Seed(77).stream("systems").index(i as u64).rng()))?;
        all.push((format!("random-{states}-{actions}-{observations}"), pomdp));
    }
    Ok(all)
}

/// The tables of a finite domain, with the expected reward of each action and state.
fn tables_of(name: &str) -> anyhow::Result<PomdpTables> {
    let domain = domains::get(name)?;
    let pomdp = domain.pomdp().ok_or_else(|| anyhow::anyhow!("{name} has no exact model"))?;
    let alphabet = pomdp.alphabet();
    let mut observations: Vec<String> = Vec::new();
    for symbol in alphabet.observations() {
        if !observations.contains(&symbol.name) {
            observations.push(symbol.name.clone());
        }
    }
    let place = |o: Observation| {
        let name = &alphabet.symbol(o).name;
        observations.iter().position(|other| other == name).expect("all names are listed")
    };
    let (n, actions) = (pomdp.states().len(), alphabet.actions().len());
    let each = |f: &dyn Fn(Action, usize) -> Row| -> Vec<Vec<Row>> {
        (0..actions as u32).map(|a| (0..n).map(|s| f(Action(a), s)).collect()).collect()
    };
    let rule = |(a, s): (usize, usize)| {
        let reward = pomdp.expected_reward(Action(a as u32), s);
        RewardRule { action: Some(a), from: Some(s), reward, ..RewardRule::default() }
    };
    Ok(PomdpTables {
        discount: Some(pomdp.discount()),
        states: pomdp.states().to_vec(),
        actions: alphabet.actions().to_vec(),
        terminal: (0..n).map(|s| pomdp.is_terminal(s)).collect(),
        start: pomdp.start().collect(),
        transitions: each(&|a, s| pomdp.transitions(a, s).collect()),
        emissions: each(&|a, s| pomdp.emissions(a, s).map(|(o, p)| (place(o), p)).collect()),
        rewards: (0..actions).flat_map(|a| (0..n).map(move |s| (a, s))).map(rule).collect(),
        observations,
    })
}

/// Each observation is replaced by a uniformly random one with probability `noise`.
fn noisy(mut tables: PomdpTables, noise: f64) -> PomdpTables {
    let symbols = tables.observations.len();
    for row in tables.emissions.iter_mut().flatten() {
        let mut dense = vec![noise / symbols as f64; symbols];
        row.iter().for_each(|&(o, p)| dense[o] += (1.0 - noise) * p);
        *row = dense.into_iter().enumerate().collect();
    }
    tables
}

/// Twice the states: in the second half, each action does what the next one does in the first.
/// Which half it is changes at random.
fn drifting(tables: PomdpTables) -> PomdpTables {
    let (n, actions) = (tables.states.len(), tables.actions.len());
    let both = |row: &Row, half: usize| -> Row {
        let stays = row.iter().map(|&(s, p)| (s + half * n, (1.0 - DRIFT) * p));
        stays.chain(row.iter().map(|&(s, p)| (s + (1 - half) * n, DRIFT * p))).collect()
    };
    let meaning = |a: usize, half: usize| (a + half) % actions;
    let transitions = (0..actions).map(|a| {
        let halves = (0..2).flat_map(|half| tables.transitions[meaning(a, half)].iter().map(move |row| (row, half)));
        halves.map(|(row, half)| both(row, half)).collect()
    });
    let emissions = (0..actions).map(|a| (0..2).flat_map(|half| tables.emissions[meaning(a, half)].iter().cloned()).collect());
    let rewards = tables.rewards.iter().flat_map(|rule| {
        (0..2).map(move |half| {
            let a = rule.action.map(|a| (a + actions - half) % actions);
            RewardRule { action: a, from: rule.from.map(|s| s + half * n), ..*rule }
        })
    });
    let (transitions, emissions, rewards) = (transitions.collect(), emissions.collect(), rewards.collect());
    PomdpTables {
        states: (0..2).flat_map(|half| tables.states.iter().map(move |name| format!("{name}-{half}"))).collect(),
        terminal: (0..2).flat_map(|_| tables.terminal.iter().copied()).collect(),
        start: tables.start.iter().flat_map(|&(s, p)| [(s, 0.5 * p), (s + n, 0.5 * p)]).collect(),
        transitions,
        emissions,
        rewards,
        ..tables
    }
}

/// A POMDP whose states have a few successors for each action, and mostly emit one observation.
fn random([states, actions, observations]: [usize; 3], rng: &mut Rng) -> PomdpTables {
    let names = |prefix: &str, n: usize| (0..n).map(|i| format!("{prefix}{i}")).collect();
    let normalised = |dense: Vec<f64>| -> Row {
        let total: f64 = dense.iter().sum();
        dense.into_iter().enumerate().filter(|(_, p)| *p > 0.0).map(|(i, p)| (i, p / total)).collect()
    };
    let mut successors = || {
        let mut dense = vec![0.0; states];
        (0..SUCCESSORS).for_each(|_| dense[rng.below(states)] += 0.1 + rng.uniform());
        normalised(dense)
    };
    let transitions: Vec<Vec<Row>> = (0..actions).map(|_| (0..states).map(|_| successors()).collect()).collect();
    let emitted: Vec<Row> = (0..states)
        .map(|s| {
            let mut dense: Vec<f64> = (0..observations).map(|_| (1.0 - OWN) * rng.uniform()).collect();
            let rest: f64 = dense.iter().sum();
            dense.iter_mut().for_each(|p| *p *= (1.0 - OWN) / rest);
            dense[s % observations] += OWN;
            normalised(dense)
        })
        .collect();
    let rewards = (0..states).map(|s| RewardRule { from: Some(s), reward: rng.uniform(), ..RewardRule::default() }).collect();
    PomdpTables {
        discount: Some(0.95),
        states: names("s", states),
        actions: names("a", actions),
        observations: names("o", observations),
        terminal: Vec::new(),
        start: vec![(0, 1.0)],
        transitions,
        emissions: vec![emitted; actions],
        rewards,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_are_models_and_noise_and_drift_do_what_they_say() {
        assert!(BUILT_IN.len() + GAMES.len() + variants().unwrap().len() > 30);
        let tiger = tables_of("tiger").unwrap();
        let quiet = noisy(tiger.clone(), 0.5);
        let heard = |tables: &PomdpTables, s: usize| tables.emissions[0][s].iter().map(|&(_, p)| p).fold(0.0, f64::max);
        assert!((heard(&tiger, 0) - 0.85).abs() < 1e-12 && (heard(&quiet, 0) - 0.675).abs() < 1e-12);
        let both = drifting(tiger.clone());
        // In the second half listening opens the left door: the tiger is anywhere afterwards.
        let after = |tables: &PomdpTables, a: usize, s: usize, to: usize| {
            tables.transitions[a][s].iter().filter(|(t, _)| *t == to).map(|(_, p)| p).sum::<f64>()
        };
        assert!((after(&both, 0, 0, 0) - (1.0 - DRIFT)).abs() < 1e-12);
        assert!(
            (after(&both, 0, 2, 2) - 0.5 * (1.0 - DRIFT)).abs() < 1e-12 && (after(&both, 0, 2, 0) - 0.5 * DRIFT).abs() < 1e-12
        );
    }
}
