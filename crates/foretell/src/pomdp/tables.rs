//! The tables that define a finite POMDP, and their validation.

use rustc_hash::FxHashSet;

use super::Pomdp;
use super::rewards::{RewardRule, Rewards};
use super::rows::{Row, Rows};
use crate::data::{Action, Alphabet, Observation};
use crate::error::{Error, Result};

/// Rows whose sum differs from 1 by at most this are normalised: public files print six digits, and
/// sums are off by 10⁻⁵.
pub(super) const SUM_TOLERANCE: f64 = 1e-4;

/// A finite POMDP as tables; [`Pomdp::new`] checks them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PomdpTables {
    /// γ, from 0 to 1, if it is known.
    pub discount: Option<f64>,
    /// Names of the states.
    pub states: Vec<String>,
    /// Names of the actions.
    pub actions: Vec<String>,
    /// Names of the observations.
    pub observations: Vec<String>,
    /// For each state, whether it ends the episode; empty if none does.
    pub terminal: Vec<bool>,
    /// The distribution of the first state.
    pub start: Row,
    /// `transitions[a][s]`: T(s' | a, s) as a row over s'. Ignored where s is terminal.
    pub transitions: Vec<Vec<Row>>,
    /// `emissions[a][s']`: O(o | a, s') as a row over o.
    pub emissions: Vec<Vec<Row>>,
    /// R(a, s, s', o); 0 where no rule matches.
    pub rewards: Vec<RewardRule>,
}

/// A problem in the tables, and where.
#[derive(Debug)]
pub(super) struct TableError {
    pub part: TablePart,
    pub problem: String,
    pub remedy: String,
}

/// A part of the tables.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum TablePart {
    Whole,
    Start,
    Transition { action: usize, state: usize },
    Emission { action: usize, state: usize },
}

impl Pomdp {
    /// A model from its tables.
    ///
    /// A name that only terminal states emit has only a terminal symbol in the alphabet; every
    /// other name has a non-terminal symbol, and also a terminal one if a terminal state emits it.
    ///
    /// # Errors
    /// Tables of the wrong shape, names given twice, rows that do not sum to 1 within 10⁻⁴.
    pub fn new(tables: PomdpTables) -> Result<Pomdp> {
        build(tables).map_err(|error| Error::data(error.problem, error.remedy))
    }
}

/// [`Pomdp::new`] with the part of the tables in errors, for callers that read them from a file.
pub(super) fn build(mut tables: PomdpTables) -> Result<Pomdp, TableError> {
    if tables.terminal.is_empty() {
        tables.terminal = vec![false; tables.states.len()];
    }
    check_shapes(&tables)?;
    let start = start_row(&tables)?;
    let transitions = transition_rows(&tables)?;
    let emissions = emission_rows(&tables)?;
    let (alphabet, symbols) = alphabet(&tables, &emissions);

    let mut pomdp = Pomdp {
        reward_observations: vec![0; alphabet.observations().len()],
        alphabet,
        discount: tables.discount,
        start: Rows::default(),
        transitions: Rows::default(),
        emissions: Rows::default(),
        rewards: Rewards::new(&tables.rewards),
        expected_rewards: Vec::new(),
        states: tables.states,
        terminal: tables.terminal,
    };
    for (name, variants) in symbols.iter().enumerate() {
        for o in variants.iter().flatten() {
            pomdp.reward_observations[o.index()] = name;
        }
    }
    pomdp.start.push(start);
    transitions.into_iter().for_each(|row| pomdp.transitions.push(row));
    for (i, row) in emissions.into_iter().enumerate() {
        let variant = usize::from(pomdp.terminal[i % pomdp.states.len()]);
        let symbol = |name: usize| symbols[name][variant].expect("every emitted name has a symbol").index();
        let mut row: Row = row.into_iter().map(|(name, p)| (symbol(name), p)).collect();
        row.sort_by_key(|&(o, _)| o);
        pomdp.emissions.push(row);
    }
    pomdp.expected_rewards = expected_rewards(&pomdp);
    Ok(pomdp)
}

fn check_shapes(tables: &PomdpTables) -> Result<(), TableError> {
    let names = [("state", &tables.states), ("action", &tables.actions), ("observation", &tables.observations)];
    for (kind, names) in names {
        if names.is_empty() {
            return error(format!("there is no {kind}"), format!("a model needs at least one {kind}"));
        }
        let mut seen = FxHashSet::default();
        if let Some(twice) = names.iter().find(|name| !seen.insert(name.as_str())) {
            return error(format!("{kind} {twice:?} is named twice"), "give every one its own name");
        }
    }
    if let Some(gamma) = tables.discount
        && !(0.0..=1.0).contains(&gamma)
    {
        return error(format!("discount {gamma} is not between 0 and 1"), "values below 1 make sums over time finite");
    }
    let (actions, states) = (tables.actions.len(), tables.states.len());
    for (name, table) in [("transitions", &tables.transitions), ("emissions", &tables.emissions)] {
        if table.len() != actions || table.iter().any(|rows| rows.len() != states) {
            return error(format!("{name} are not {actions} × {states} rows"), "give one row for every action and state");
        }
    }
    if tables.terminal.len() != states {
        let problem = format!("{} of {states} states have a terminal flag", tables.terminal.len());
        return error(problem, "give one flag for every state, or none at all");
    }
    let limits = [actions, states, states, tables.observations.len()];
    for rule in &tables.rewards {
        let arguments = [rule.action, rule.from, rule.to, rule.observation];
        if arguments.iter().zip(limits).any(|(x, n)| x.is_some_and(|i| i >= n)) || !rule.reward.is_finite() {
            return error(format!("reward rule {rule:?} is out of range"), "name what exists, and give a finite reward");
        }
    }
    Ok(())
}

fn start_row(tables: &PomdpTables) -> Result<Row, TableError> {
    let at = |problem, remedy| TableError { part: TablePart::Start, problem, remedy };
    let row = normalised(tables.start.clone(), tables.states.len())
        .map_err(|why| at(format!("start probabilities {why}"), "give every state its probability, summing to 1".to_string()))?;
    match row.iter().find(|&&(s, _)| tables.terminal[s]) {
        Some(&(s, _)) => Err(at(
            format!("it can start in terminal state {}", tables.states[s]),
            "start where something can happen".to_string(),
        )),
        None => Ok(row),
    }
}

fn transition_rows(tables: &PomdpTables) -> Result<Vec<Row>, TableError> {
    let part = |action, state| TablePart::Transition { action, state };
    checked_rows(tables, &tables.transitions, "transition probabilities of action", part, tables.states.len())
}

fn emission_rows(tables: &PomdpTables) -> Result<Vec<Row>, TableError> {
    let part = |action, state| TablePart::Emission { action, state };
    checked_rows(tables, &tables.emissions, "observation probabilities of action", part, tables.observations.len())
}

fn checked_rows(
    tables: &PomdpTables,
    table: &[Vec<Row>],
    what: &str,
    part: impl Fn(usize, usize) -> TablePart,
    width: usize,
) -> Result<Vec<Row>, TableError> {
    let mut rows = Vec::with_capacity(tables.actions.len() * tables.states.len());
    for (action, of_action) in table.iter().enumerate() {
        for (state, row) in of_action.iter().enumerate() {
            let part = part(action, state);
            if tables.terminal[state] && matches!(part, TablePart::Transition { .. }) {
                rows.push(Row::new()); // nothing follows
                continue;
            }
            let (a, s) = (&tables.actions[action], &tables.states[state]);
            rows.push(normalised(row.clone(), width).map_err(|why| TableError {
                part,
                problem: format!("{what} {a}, state {s} {why}"),
                remedy: "every row must be given and sum to 1".to_string(),
            })?);
        }
    }
    Ok(rows)
}

/// The row in order, without zeros, summing to 1; or what is wrong with it.
fn normalised(mut row: Row, width: usize) -> Result<Row, String> {
    row.retain(|&(_, p)| p != 0.0);
    row.sort_by_key(|&(column, _)| column);
    if let Some(&(_, p)) = row.iter().find(|(_, p)| !(0.0..=1.0 + SUM_TOLERANCE).contains(p)) {
        return Err(format!("contain {p}, which is not a probability"));
    }
    if row.last().is_some_and(|&(column, _)| column >= width) || row.windows(2).any(|w| w[0].0 == w[1].0) {
        return Err("name a column that does not exist, or one twice".to_string());
    }
    if row.is_empty() {
        return Err("are missing".to_string());
    }
    let sum: f64 = row.iter().map(|(_, p)| p).sum();
    if (sum - 1.0).abs() > SUM_TOLERANCE {
        // Rounded, so that 0.1 + 0.2 does not read 0.30000000000000004.
        return Err(format!("sum to {}", (sum * 1e9).round() / 1e9));
    }
    // What was normalised before stays as it is: a file that is read and written again is the same.
    if (sum - 1.0).abs() > row.len() as f64 * f64::EPSILON {
        row.iter_mut().for_each(|(_, p)| *p /= sum);
    }
    Ok(row)
}

/// The alphabet, and for every observation name its non-terminal and terminal symbols.
fn alphabet(tables: &PomdpTables, emissions: &[Row]) -> (Alphabet, Vec<[Option<Observation>; 2]>) {
    let mut emitted = vec![[false; 2]; tables.observations.len()];
    for (i, row) in emissions.iter().enumerate() {
        let variant = usize::from(tables.terminal[i % tables.states.len()]);
        row.iter().for_each(|&(name, _)| emitted[name][variant] = true);
    }
    let mut alphabet = Alphabet::default();
    let mut symbols = vec![[None; 2]; emitted.len()];
    for action in &tables.actions {
        alphabet.intern_action(action);
    }
    for (i, name) in tables.observations.iter().enumerate() {
        let [continues, ends] = emitted[i];
        if continues || !ends {
            symbols[i][0] = Some(alphabet.intern_observation(name));
        }
    }
    for (i, name) in tables.observations.iter().enumerate() {
        if emitted[i][1] {
            symbols[i][1] = Some(alphabet.intern_terminal_observation(name));
        }
    }
    (alphabet, symbols)
}

/// r(a, s) = Σ_s' T(s' | a, s) Σ_o O(o | a, s') R(a, s, s', o), leaving out the sums that no rule
/// depends on.
pub(super) fn expected_rewards(pomdp: &Pomdp) -> Vec<f64> {
    let rewards = &pomdp.rewards;
    let (by_state, by_observation) = (rewards.depend_on_next_state(), rewards.depend_on_observation());
    let mut expected = Vec::with_capacity(pomdp.alphabet.actions().len() * pomdp.states.len());
    for a in (0..pomdp.alphabet.actions().len()).map(|a| Action(a as u32)) {
        let i = a.index();
        let after = |s, to| -> f64 {
            if by_observation {
                pomdp.emissions(a, to).map(|(o, q)| q * pomdp.reward(a, s, to, o)).sum()
            } else {
                rewards.get(i, s, to, 0)
            }
        };
        for s in 0..pomdp.states.len() {
            expected.push(if pomdp.terminal[s] {
                0.0
            } else if by_state || by_observation {
                pomdp.transitions(a, s).map(|(to, p)| p * after(s, to)).sum()
            } else {
                rewards.get(i, s, 0, 0)
            });
        }
    }
    expected
}

fn error<T>(problem: String, remedy: impl Into<String>) -> Result<T, TableError> {
    Err(TableError { part: TablePart::Whole, problem, remedy: remedy.into() })
}
