//! How a ghost moves.

use super::direction::{Direction, Directions};
use super::maze::{Cell, Maze};
use crate::rng::Rng;

/// The distance, in rows plus columns, at which a ghost notices the player. [authors' code]
const NOTICES: i32 = 5;
/// Probability of chasing a player it has noticed. [authors' code]
const CHASES: f64 = 0.75;
/// Probability of standing still when frightened by a player it has noticed. [authors' code]
const FREEZES: f64 = 0.25;

/// Where a ghost is, and the move that brought it there. It never turns back on that move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ghost {
    pub(super) cell: Cell,
    /// `None` where it has just appeared, or stood still: then it may go anywhere.
    pub(super) heading: Option<Direction>,
}

/// How ghosts react to the player.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mood {
    Hungry,
    Frightened,
}

impl Ghost {
    pub(super) fn at(cell: Cell) -> Ghost {
        Ghost { cell, heading: None }
    }

    /// The ghost after its move.
    pub(super) fn moved(self, mood: Mood, player: Cell, maze: &Maze, rng: &mut Rng) -> Ghost {
        let here = maze.at(self.cell);
        let ways = self.heading.map_or(here.exits, |heading| here.exits.without(heading.opposite()));
        let (down, right) = (maze.at(player).row - here.row, maze.at(player).column - here.column);
        // How far the player is *behind* a ghost that goes that way: negative if the way leads to
        // the player.
        let behind = |direction| match direction {
            Direction::North => down,
            Direction::East => -right,
            Direction::West => right,
            Direction::South => -down,
        };
        let noticed = down.abs() + right.abs() <= NOTICES;
        let way = match mood {
            Mood::Hungry if noticed && rng.uniform() < CHASES => best(ways, |way| -behind(way)),
            Mood::Frightened if noticed && rng.uniform() < FREEZES => return Ghost::at(self.cell),
            Mood::Frightened if noticed => best(ways, behind),
            _ => any(ways, rng),
        };
        Ghost { cell: here.next(way), heading: Some(way) }
    }
}

/// The way of the highest merit; of equal ones the last in the order N, E, W, S.
fn best(ways: Directions, merit: impl Fn(Direction) -> i32) -> Direction {
    ways.iter().max_by_key(|&way| merit(way)).expect("the maze has no dead ends")
}

/// Each way with the same probability.
fn any(ways: Directions, rng: &mut Rng) -> Direction {
    ways.iter().nth(rng.below(ways.len())).expect("the maze has no dead ends")
}
