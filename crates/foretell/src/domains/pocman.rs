//! PocMan and S-PocMan: the arcade game where only the corridors in line of sight are observed.
//!
//! The maze has 21 rows of 19 columns, counted from 0:
//!
//! ```text
#![doc = include_str!("pocman/map.txt")]
//! ```
//!
//! `x` is a wall, `.` and blank are open, `o` is a power pill, `P` the player's start, `A` to `D`
//! are the ghosts' homes. A player or ghost that steps on a mouth of the tunnel, `<` or `>`, comes
//! out beside the other one in the same step. There are no dead ends.
//!
//! * **Food.** PocMan: each of the 158 cells `.` holds food with probability ½, drawn for every
//!   episode. S-PocMan: 7 pieces in fixed places, (row, column) = (1, 3), (1, 9), (1, 15), (8, 9),
//!   (17, 2), (17, 16), (19, 9).
//! * **Actions** are `N`, `E`, `W`, `S`, in this order. A move into a wall stays put.
//! * **A step**: the ghosts move, one after the other; power fades by one; the player moves; ghosts
//!   in the player's cell are met; what lies there is eaten. Ghosts do not hinder each other. A
//!   ghost and a player that swap cells do not meet.
//! * **Ghosts** never turn back on their last move. A ghost notices the player where their rows and
//!   columns differ by at most 5 together. It then chases with probability 0.75: of the open ways
//!   it takes the one along which the player is farthest ahead, in rows for N and S, in columns for
//!   E and W. While the player has power, it instead stands still with probability 0.25, and may
//!   then turn anywhere, or else flees along the way on which the player is farthest behind. Of
//!   ways equally good it takes the last in the order N, E, W, S. In all other cases each way has
//!   the same probability.
//! * **Power** comes from pills; there is none at the start. After a pill ghosts are frightened in
//!   their next 16 moves, and meeting them is safe in the player's next 15: the ghost is eaten and
//!   starts again at home. A player that meets a ghost on a pill is caught.
//! * **Rewards** are −1 for every step, −10 for a move into a wall, −50 for every ghost that
//!   catches the player, +25 for every ghost eaten; for food +10 (S-PocMan: +100), for the last
//!   food +100 (+1000) more. Pills have no reward.
//! * **End**: when the player is caught or has eaten all food. Food in the cell where the player is
//!   caught still counts. Episodes are truncated at 75 steps; the discount is 0.99999.
//! * **Observations** of PocMan are like `walls=NS|smell=2|food=E|ghosts=N|power=yes`, of S-PocMan
//!   like `walls=NS|ghosts=N|power=yes`; what is not perceived is `none`, or `power=no`. `smell` is the distance to the nearest food in rows and columns together,
//!   through walls but not through the tunnel: 2 (or less), 3 or 4. `food` and `ghosts` are the
//!   directions in which some are in sight, as far as the next wall, ghost or mouth of the tunnel;
//!   what is under or behind a ghost is not seen. Pills, the number of ghosts, and a ghost in the
//!   player's cell are not observed. `power=yes` means that meeting ghosts is safe. There is no
//!   observation before the first action. [`describe`] puts the names in words.
//!
//! The alphabet holds what can occur on this map wherever food and ghosts are: 6240 symbols, of
//! S-PocMan 268, with the 2262 and 124 that end an episode. They are in the order of the authors'
//! code of 16 bits: from the lowest 4 for walls, 3 for the smells, 4 for food, 4 for ghosts, 1 for
//! power, with directions in the order N, E, S, W. Of S-PocMan's, 9 are in use.
//!
//! Sources: W. Hamilton, M. Milani Fard, J. Pineau, "Efficient Learning and Planning with
//! Compressed Predictive States", JMLR 15 (2014), section 6.2.2 \[H14\], for the two games, the
//! coins and the seven pieces. It calls PocMan a replica of the game in J. Veness et al., "A
//! Monte-Carlo AIXI Approximation", JAIR 40 (2011), first proposed by D. Silver, J. Veness,
//! "Monte-Carlo Planning in Large POMDPs", NIPS 2010, and does not give map, amounts, horizon or
//! how ghosts move. These are those of the authors' public code; where it deviates from its evident
//! intent, we follow the intent, see `DEVIATIONS.md`.
//!
//! A uniformly random player returns −170 in PocMan and −203 in S-PocMan (undiscounted), and is
//! caught in 94 % of episodes, which last 31 steps on average. A random player that never moves
//! into walls returns −21 and −64. The tests compute all of these.

mod direction;
mod ghost;
mod maze;
mod percept;
#[cfg(test)]
mod tests;

use std::ops::Deref;

use crate::data::{Action, Alphabet};
use crate::rng::Rng;
use crate::system::{Environment, Outcome};
use direction::Direction;
use ghost::{Ghost, Mood};
use maze::{Cell, CellSet, Maze, SMELLS};
use percept::{Percept, Senses, Symbols};

pub use percept::{describe, sketch};

/// Steps after which episodes are truncated, as in the authors' configuration.
pub(super) const HORIZON: usize = 75;
pub(super) const DISCOUNT: f64 = 0.99999; // [H14 §6.4.2]

// All amounts are those of the authors' code.
const STEP: f64 = -1.0;
const WALL: f64 = -10.0;
const CAUGHT: f64 = -50.0;
const GHOST_EATEN: f64 = 25.0;
/// Moves in which ghosts flee after a pill; the last of them comes before a move of the player that
/// is no longer safe.
const PILL_POWER: u8 = 16;

/// Row and column of the food of S-PocMan. [authors' code]
const SPARSE_FOOD: [(usize, usize); 7] = [(1, 3), (1, 9), (1, 15), (8, 9), (17, 2), (17, 16), (19, 9)];

/// The rules of PocMan or of S-PocMan, with the tables that make them fast.
#[derive(Clone, Debug)]
pub struct PocMan {
    maze: Maze,
    /// Food lies here in every episode,
    certain_food: CellSet,
    /// and here with probability ½.
    possible_food: CellSet,
    food_is_sensed: bool,
    food_reward: f64,
    cleared_reward: f64,
    symbols: Symbols,
}

impl PocMan {
    /// PocMan: plenty of food, which is smelt and seen.
    pub fn plentiful() -> PocMan {
        let maze = Maze::new();
        let dots = maze.dots;
        PocMan {
            certain_food: CellSet::EMPTY,
            possible_food: dots,
            food_is_sensed: true,
            food_reward: 10.0,
            cleared_reward: 100.0,
            symbols: Symbols::new(&maze, &dots, &dots),
            maze,
        }
    }

    /// S-PocMan: seven pieces of food, which are neither smelt nor seen.
    pub fn sparse() -> PocMan {
        let maze = Maze::new();
        let find = |(row, column)| maze.find(row, column).expect("food lies in open cells");
        let food = SPARSE_FOOD.into_iter().map(find).collect();
        PocMan {
            certain_food: food,
            possible_food: CellSet::EMPTY,
            food_is_sensed: false,
            food_reward: 100.0,
            cleared_reward: 1000.0,
            symbols: Symbols::new(&maze, &CellSet::EMPTY, &food),
            maze,
        }
    }

    /// Its actions and observations.
    pub fn alphabet(&self) -> &Alphabet {
        &self.symbols.alphabet
    }

    /// The environment. Before the first reset there is food in every possible cell.
    pub fn environment(&self) -> PocManEnvironment<&PocMan> {
        PocManEnvironment::new(self)
    }
}

/// A game of PocMan or S-PocMan under way, whose rules are borrowed or shared (`&PocMan`,
/// `Arc<PocMan>`).
#[derive(Clone, Debug)]
pub struct PocManEnvironment<G> {
    game: G,
    player: Cell,
    ghosts: [Ghost; 4],
    food: CellSet,
    pills: CellSet,
    /// Moves in which ghosts will flee.
    power: u8,
}

impl<G: Deref<Target = PocMan>> PocManEnvironment<G> {
    /// Before the first reset there is food in every possible cell.
    pub fn new(game: G) -> Self {
        PocManEnvironment {
            player: game.maze.player,
            ghosts: game.maze.ghosts.map(Ghost::at),
            food: game.certain_food.union(&game.possible_food),
            pills: game.maze.pills,
            power: 0,
            game,
        }
    }

    fn mark(&self, cell: Cell) -> char {
        let ghost = self.ghosts.iter().position(|ghost| ghost.cell == cell);
        match ghost {
            Some(_) if self.player == cell => 'X',
            Some(ghost) if self.power > 0 => ['a', 'b', 'c', 'd'][ghost],
            Some(ghost) => ['A', 'B', 'C', 'D'][ghost],
            None if self.player == cell => 'P',
            None if self.food.contains(cell) => '.',
            None if self.pills.contains(cell) => 'o',
            None => ' ',
        }
    }

    fn move_ghosts(&mut self, rng: &mut Rng) {
        let mood = if self.power > 0 { Mood::Frightened } else { Mood::Hungry };
        for ghost in &mut self.ghosts {
            *ghost = ghost.moved(mood, self.player, &self.game.maze, rng);
        }
    }

    /// Moves the player; returns the reward.
    fn walk(&mut self, direction: Direction) -> f64 {
        let here = self.game.maze.at(self.player);
        if !here.exits.contains(direction) {
            return WALL;
        }
        self.player = here.next(direction);
        0.0
    }

    /// Meets the ghosts in the player's cell; returns the reward, and whether the player is caught.
    fn meet_ghosts(&mut self) -> (f64, bool) {
        let (mut reward, mut caught) = (0.0, false);
        for (ghost, &home) in self.ghosts.iter_mut().zip(&self.game.maze.ghosts) {
            if ghost.cell != self.player {
                continue;
            }
            if self.power > 0 {
                *ghost = Ghost::at(home);
                reward += GHOST_EATEN;
            } else {
                caught = true;
                reward += CAUGHT;
            }
        }
        (reward, caught)
    }

    /// Eats the food or pill in the player's cell; returns the reward, and whether it was the last
    /// food.
    fn eat(&mut self) -> (f64, bool) {
        if self.pills.contains(self.player) {
            self.pills.remove(self.player);
            self.power = PILL_POWER;
        }
        if !self.food.contains(self.player) {
            return (0.0, false);
        }
        self.food.remove(self.player);
        let cleared = self.food.is_empty();
        (self.game.food_reward + if cleared { self.game.cleared_reward } else { 0.0 }, cleared)
    }

    /// The outcome in the player's cell after all moves.
    fn settle(&mut self) -> Outcome {
        let (meeting, caught) = self.meet_ghosts();
        let (meal, cleared) = self.eat();
        let observation = self.game.symbols.symbol(self.percept(), caught || cleared);
        Outcome { observation, reward: meeting + meal }
    }

    fn percept(&self) -> Percept {
        let here = self.game.maze.at(self.player);
        let mut senses = Senses::default();
        for direction in here.exits.iter() {
            let mut sight = *here.ray(direction);
            for ghost in &self.ghosts {
                if here.ray(direction).contains(ghost.cell) {
                    senses.ghosts = senses.ghosts.with(direction);
                    sight = sight.minus(self.game.maze.at(ghost.cell).ray(direction));
                    sight.remove(ghost.cell);
                }
            }
            if self.game.food_is_sensed && sight.meets(&self.food) {
                senses.food = senses.food.with(direction);
            }
        }
        if self.game.food_is_sensed {
            senses.smell = SMELLS.into_iter().zip(&here.near).find(|(_, near)| near.meets(&self.food)).map(|(smell, _)| smell);
        }
        Percept { walls: here.exits.others(), senses, powered: self.power > 0 }
    }
}

impl<G: Deref<Target = PocMan> + Clone> Environment for PocManEnvironment<G> {
    fn alphabet(&self) -> &Alphabet {
        self.game.alphabet()
    }

    fn reset(&mut self, rng: &mut Rng) {
        let food = self.game.possible_food.halve(|| rng.bits()).union(&self.game.certain_food);
        *self = PocManEnvironment { food, ..PocManEnvironment::new(self.game.clone()) };
    }

    fn step(&mut self, a: Action, rng: &mut Rng) -> Outcome {
        self.move_ghosts(rng);
        self.power = self.power.saturating_sub(1);
        let walk = self.walk(Direction::ALL[a.index()]);
        let Outcome { observation, reward } = self.settle();
        Outcome { observation, reward: STEP + walk + reward }
    }

    /// The map as it is: `#` walls, `.` food, `o` pills, `P` the player, `A` to `D` the ghosts, in
    /// lower case when they flee; `X` where ghost and player are in one cell.
    fn picture(&self) -> String {
        let mut picture = String::new();
        for (row, marks) in Maze::rows().enumerate() {
            for (column, mark) in marks.chars().enumerate() {
                picture.push(match self.game.maze.find(row, column) {
                    Some(cell) => self.mark(cell),
                    None if mark == 'x' => '#',
                    None => mark,
                });
            }
            picture.push('\n');
        }
        picture
    }
}
