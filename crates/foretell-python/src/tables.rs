//! Finite POMDPs as arrays.

use foretell::{Action, Pomdp};
use numpy::PyArray1;
use numpy::prelude::*;
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Maximum size of the arrays, in bytes.
const MOST: usize = 2 << 30;

/// The start, T(s′ | a, s), O(o | a, s′), the expected reward of (a, s), and which states end an episode.
pub fn tables<'py>(py: Python<'py>, pomdp: &Pomdp) -> PyResult<Bound<'py, PyDict>> {
    let (actions, states) = (pomdp.alphabet().actions().len(), pomdp.states().len());
    let observations = pomdp.alphabet().observations().len();
    let bytes = 8.0 * actions as f64 * states as f64 * (states + observations + 1) as f64;
    if bytes > MOST as f64 {
        let gib = bytes / f64::from(1 << 30);
        return Err(PyMemoryError::new_err(format!("arrays of {states} states would take {gib:.1} GiB; use pomdp() instead")));
    }
    let mut start = vec![0.0; states];
    pomdp.start().for_each(|(s, p)| start[s] = p);
    let mut transitions = vec![0.0; actions * states * states];
    let mut emissions = vec![0.0; actions * states * observations];
    let mut rewards = vec![0.0; actions * states];
    for a in 0..actions {
        for s in 0..states {
            let (row, action) = (a * states + s, Action(a as u32));
            pomdp.transitions(action, s).for_each(|(to, p)| transitions[row * states + to] = p);
            pomdp.emissions(action, s).for_each(|(o, p)| emissions[row * observations + o.index()] = p);
            rewards[row] = pomdp.expected_reward(action, s);
        }
    }
    let terminal: Vec<bool> = (0..states).map(|s| pomdp.is_terminal(s)).collect();
    let tables = PyDict::new(py);
    tables.set_item("start", PyArray1::from_vec(py, start))?;
    tables.set_item("transitions", PyArray1::from_vec(py, transitions).reshape([actions, states, states])?)?;
    tables.set_item("emissions", PyArray1::from_vec(py, emissions).reshape([actions, states, observations])?)?;
    tables.set_item("rewards", PyArray1::from_vec(py, rewards).reshape([actions, states])?)?;
    tables.set_item("terminal", PyArray1::from_vec(py, terminal))?;
    Ok(tables)
}
