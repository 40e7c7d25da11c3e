//! Tests for one's own types: does an environment, or a predictor of its observations, keep to the
//! promises of its trait?
//!
//! They panic with what is wrong and where, so call them from a test.

mod environments;
mod predictors;

pub use environments::assert_conforms;
pub use predictors::assert_predicts;

use crate::data::{Action, Alphabet};

/// Logs with empty names are refused by their reader.
fn assert_names(alphabet: &Alphabet) {
    assert!(!alphabet.actions().is_empty(), "the alphabet has no actions");
    assert!(!alphabet.observations().is_empty(), "the alphabet has no observations");
    for (i, name) in alphabet.actions().iter().enumerate() {
        assert!(!name.is_empty(), "the name of action {i} is empty");
    }
    for (i, symbol) in alphabet.observations().iter().enumerate() {
        assert!(!symbol.name.is_empty(), "the name of observation {i} is empty");
    }
}

/// Where a test fails; episodes and steps are counted from 0, as in logs.
fn place(alphabet: &Alphabet, episode: usize, step: usize, a: Action) -> String {
    let name = alphabet.actions().get(a.index()).map_or("outside the alphabet", String::as_str);
    format!("episode {episode}, step {step}, action {name}")
}
