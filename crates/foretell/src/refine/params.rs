//! Parameters of refinement.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::model::StateLayout;
use crate::parameters;

/// Number of latent states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "NumberOrText", into = "String")]
pub enum StateCount {
    /// The number that predicts held-out episodes best.
    Auto,
    /// About this many.
    About(usize),
}

impl fmt::Display for StateCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StateCount::Auto => f.write_str("auto"),
            StateCount::About(n) => n.fmt(f),
        }
    }
}

impl FromStr for StateCount {
    type Err = String;

    fn from_str(text: &str) -> Result<StateCount, String> {
        match text.parse() {
            _ if text == "auto" => Ok(StateCount::Auto),
            Ok(n) if n > 0 => Ok(StateCount::About(n)),
            _ => Err("give a positive number or auto".into()),
        }
    }
}

/// A number of states as it may be written.
#[derive(Deserialize)]
#[serde(untagged)]
enum NumberOrText {
    Number(i64),
    Text(String),
}

impl TryFrom<NumberOrText> for StateCount {
    type Error = String;

    fn try_from(given: NumberOrText) -> Result<StateCount, String> {
        match given {
            NumberOrText::Number(n) => n.to_string().parse(),
            NumberOrText::Text(text) => text.parse(),
        }
    }
}

impl From<StateCount> for String {
    fn from(count: StateCount) -> String {
        count.to_string()
    }
}

parameters! {
    /// Parameters of refinement.
    RefineParams,
    /// Changes to the defaults: one optional value for each field of [`RefineParams`].
    RefineOverrides, "Refinement",
    /// Number of latent states: auto, or a number (start and end states are added to it)
    states: StateCount,
    /// How latent states relate to observations
    layout: StateLayout,
    /// Maximum number of EM rounds
    em_rounds: usize,
    /// EM stops after this many rounds without a gain on held-out episodes
    patience: usize,
}

impl Default for RefineParams {
    fn default() -> Self {
        RefineParams { states: StateCount::Auto, layout: StateLayout::Auto, em_rounds: 1000, patience: 6 }
    }
}

impl RefineParams {
    /// Checks every value.
    pub fn validate(&self) -> Result<()> {
        for (name, value) in [("em_rounds", self.em_rounds), ("patience", self.patience)] {
            if value == 0 {
                return Err(Error::parameter(name, value, "must be at least 1"));
            }
        }
        Ok(())
    }
}
