//! The T-maze: a sign at the entrance shows where the treasure is, and must be remembered along a
//! corridor.
//!
//! ```text
//!                 north arm
//!  entrance ─ ─ ─ junction
//!                 south arm
//! ```
//!
//! * **States**: outside; the cells 0 (the entrance) to `length` (the junction), for a treasure in
//!   the north and in the south; the arm with the treasure and the empty arm, which end the
//!   episode.
//! * **Actions** `N`, `E`, `S`, `W` move by one cell and never fail. A move into a wall stays put.
//! * **Observations**: the sign at the entrance, `sign-north` or `sign-south`, whenever the agent
//!   is there; `corridor` in the cells between, `junction` at their end; `treasure` or `empty` in
//!   the arms.
//! * **Rewards**: 4 for the treasure, −0.1 for the empty arm, −0.1 for standing still, otherwise 0.
//!   Discount 0.98.
//! * **Start**: outside. The first action, whichever it is, enters the maze without reward and
//!   shows the sign, which points to either side with equal probability.
//!
//! Source: B. Bakker, "Reinforcement Learning with Long Short-Term Memory", NIPS 14 (2002).
//! Different here: the first step into the maze, since there is no observation before the first
//! action (all values are 0.98 times those of the paper's maze). Our choices: the observations in
//! the arms, and that episodes are truncated at ten times the length of the corridor.
//!
//! A policy that follows the sign earns 4 · 0.98^(length + 1); one that forgets it and walks as
//! directly earns 1.95 · 0.98^(length + 1), since the arm is empty half of the time. The tests
//! compute both.

use super::Domain;
use super::settings::Settings;
use crate::error::{Error, Result};
use crate::pomdp::{Pomdp, PomdpTables, RewardRule, Row};

const DISCOUNT: f64 = 0.98; // Bakker (2002)
const TREASURE: f64 = 4.0; // Bakker (2002)
const EMPTY: f64 = -0.1; // Bakker (2002)
const STANDING_STILL: f64 = -0.1; // Bakker (2002)

/// Far beyond what can be learned; the model is still small.
const MAX_LENGTH: usize = 1000;
const DEFAULT_LENGTH: usize = 10;

const ACTIONS: [&str; 4] = ["N", "E", "S", "W"];
const OBSERVATIONS: [&str; 6] = ["sign-north", "sign-south", "corridor", "junction", "treasure", "empty"];

// The states that both mazes share come first.
const OUTSIDE: usize = 0;
const TREASURE_ARM: usize = 1;
const EMPTY_ARM: usize = 2;
const FIRST_CELL: usize = 3;

/// A T-maze.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TMaze {
    length: usize,
}

impl TMaze {
    /// A maze whose junction is `length` steps from the entrance, 1 to 1000.
    pub fn new(length: usize) -> Result<TMaze> {
        if !(1..=MAX_LENGTH).contains(&length) {
            return Err(Error::parameter("length", length, format!("must be {}", meaning())));
        }
        Ok(TMaze { length })
    }

    /// The model of the maze.
    pub fn pomdp(&self) -> Pomdp {
        let states = FIRST_CELL + 2 * (self.length + 1);
        let transitions = |a| (0..states).map(|s| self.moves(a, s)).collect();
        let emissions: Vec<Row> = (0..states).map(|s| vec![(self.view(s), 1.0)]).collect();
        let tables = PomdpTables {
            discount: Some(DISCOUNT),
            states: (0..states).map(|s| self.name(s)).collect(),
            actions: ACTIONS.map(String::from).to_vec(),
            observations: OBSERVATIONS.map(String::from).to_vec(),
            terminal: (0..states).map(|s| s == TREASURE_ARM || s == EMPTY_ARM).collect(),
            start: vec![(OUTSIDE, 1.0)],
            transitions: (0..ACTIONS.len()).map(transitions).collect(),
            emissions: vec![emissions; ACTIONS.len()],
            rewards: self.rewards(states),
        };
        Pomdp::new(tables).expect("a maze of a length that TMaze::new accepted is a valid model")
    }

    /// The treasure's side (0 is north) and the cell, for a state of the maze.
    fn place(&self, s: usize) -> (usize, usize) {
        ((s - FIRST_CELL) / (self.length + 1), (s - FIRST_CELL) % (self.length + 1))
    }

    fn cell(&self, side: usize, cell: usize) -> usize {
        FIRST_CELL + side * (self.length + 1) + cell
    }

    /// T(· | a, s)
    fn moves(&self, a: usize, s: usize) -> Row {
        match s {
            OUTSIDE => return vec![(self.cell(0, 0), 0.5), (self.cell(1, 0), 0.5)],
            TREASURE_ARM | EMPTY_ARM => return Row::new(),
            _ => {}
        }
        let (side, cell) = self.place(s);
        let to = match ACTIONS[a] {
            "E" if cell < self.length => s + 1,
            "W" if cell > 0 => s - 1,
            "N" if cell == self.length => [TREASURE_ARM, EMPTY_ARM][side],
            "S" if cell == self.length => [EMPTY_ARM, TREASURE_ARM][side],
            _ => s,
        };
        vec![(to, 1.0)]
    }

    /// What is seen in state `s`, as an index of the observations.
    fn view(&self, s: usize) -> usize {
        let name = match s {
            OUTSIDE => "corridor", // never observed: nothing leads there
            TREASURE_ARM => "treasure",
            EMPTY_ARM => "empty",
            _ => match self.place(s) {
                (0, 0) => "sign-north",
                (_, 0) => "sign-south",
                (_, cell) if cell < self.length => "corridor",
                _ => "junction",
            },
        };
        OBSERVATIONS.iter().position(|o| *o == name).expect("every view is listed")
    }

    fn rewards(&self, states: usize) -> Vec<RewardRule> {
        let entering = |s, reward| RewardRule { to: Some(s), reward, ..RewardRule::default() };
        let mut rules = vec![entering(TREASURE_ARM, TREASURE), entering(EMPTY_ARM, EMPTY)];
        rules.extend((FIRST_CELL..states).map(|s| RewardRule {
            from: Some(s),
            to: Some(s),
            reward: STANDING_STILL,
            ..RewardRule::default()
        }));
        rules
    }

    fn name(&self, s: usize) -> String {
        match s {
            OUTSIDE => "outside".to_string(),
            TREASURE_ARM => "treasure-arm".to_string(),
            EMPTY_ARM => "empty-arm".to_string(),
            _ => {
                let (side, cell) = self.place(s);
                format!("treasure={}/cell={cell}", ["north", "south"][side])
            }
        }
    }
}

/// `t-maze` with its parameter `length`.
pub(super) fn domain(mut settings: Settings<'_>) -> Result<Domain> {
    let name = settings.name();
    let length = settings.take("length", DEFAULT_LENGTH, &meaning())?;
    settings.finish()?;
    let maze = TMaze::new(length)?;
    let story = format!("a sign at the entrance must be remembered down a corridor (length={length})");
    Ok(Domain::finite(name, &story, 10 * length, maze.pomdp()))
}

fn meaning() -> String {
    format!("a whole number from 1 to {MAX_LENGTH}")
}
