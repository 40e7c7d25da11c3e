//! A second, slow implementation of the rules, which reads the text of the map cell by cell.
//! Nothing here uses the tables or the code of the game itself; power is counted as the authors do,
//! from 15 to −1.

use crate::rng::Rng;

pub(super) type Position = (i32, i32);

const MAP: &str = include_str!("../map.txt");
const MOVES: [(char, Position); 4] = [('N', (-1, 0)), ('E', (0, 1)), ('W', (0, -1)), ('S', (1, 0))];

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ghost {
    pub(super) position: Position,
    /// The letter of its last move.
    pub(super) heading: Option<char>,
}

/// Where the authors' code deviates from its evident intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Deviations {
    /// The counter of power at the start: 0 frightens the ghosts in their first move.
    pub(super) counter: i32,
    /// A ghost that did not chase a player it noticed may turn back in its next move.
    pub(super) forgetful: bool,
    /// Chasing or fleeing, a ghost takes the last way in the order N, E, W, S, wherever the player
    /// is.
    pub(super) blind: bool,
}

/// No deviations.
pub(super) const INTENDED: Deviations = Deviations { counter: -1, forgetful: false, blind: false };

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Game {
    /// Walls `x`, food `.`, pills `o`, mouths of the tunnel `<` and `>`; all else is blank.
    pub(super) tiles: Vec<Vec<char>>,
    pub(super) player: Position,
    pub(super) ghosts: [Ghost; 4],
    pub(super) counter: i32,
    pub(super) sparse: bool,
    pub(super) deviations: Deviations,
}

/// What happened in the player's part of a step, for the reward.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct StepEvents {
    pub(super) walls: i32,
    pub(super) eaten: i32,
    pub(super) caught: i32,
    pub(super) food: i32,
    pub(super) cleared: i32,
}

impl StepEvents {
    pub(super) fn reward(&self, sparse: bool) -> f64 {
        let (food, cleared) = if sparse { (100, 1000) } else { (10, 100) };
        f64::from(-1 - 10 * self.walls + 25 * self.eaten - 50 * self.caught + food * self.food + cleared * self.cleared)
    }

    pub(super) fn ends(&self) -> bool {
        self.caught + self.cleared > 0
    }
}

fn find(letter: char) -> Position {
    positions().find(|&position| marked(position) == letter).expect("the letter is on the map")
}

pub(super) fn positions() -> impl Iterator<Item = Position> {
    (0..21).flat_map(|row| (0..19).map(move |column| (row, column)))
}

/// How the map marks a position.
pub(super) fn marked((row, column): Position) -> char {
    char::from(MAP.as_bytes()[(row * 20 + column) as usize]) // 19 cells and the end of the line
}

/// A player or a ghost can be here.
pub(super) fn enterable(position: Position) -> bool {
    !['x', '<', '>'].contains(&marked(position))
}

fn home(ghost: usize) -> Ghost {
    Ghost { position: find(['A', 'B', 'C', 'D'][ghost]), heading: None }
}

pub(super) fn opposite(heading: Option<char>) -> Option<char> {
    heading.map(|letter| match letter {
        'N' => 'S',
        'S' => 'N',
        'E' => 'W',
        _ => 'E',
    })
}

pub(super) fn distance(a: Position, b: Position) -> i32 {
    (a.0 - b.0).abs() + (a.1 - b.1).abs()
}

/// Where a move ends; `None` at a wall.
pub(super) fn arrive(from: Position, letter: char) -> Option<Position> {
    let (down, right) = MOVES.into_iter().find(|m| m.0 == letter).expect("a move").1;
    let to = (from.0 + down, from.1 + right);
    match marked(to) {
        'x' => None,
        '<' => Some((9, 17)),
        '>' => Some((9, 1)),
        _ => Some(to),
    }
}

impl Game {
    /// The game at its start, without food.
    pub(super) fn start(sparse: bool, deviations: Deviations) -> Game {
        let mut tiles: Vec<Vec<char>> = MAP.lines().map(|line| line.chars().collect()).collect();
        for tile in tiles.iter_mut().flatten().filter(|tile| !['x', 'o', '<', '>'].contains(tile)) {
            *tile = ' ';
        }
        let ghosts = [0, 1, 2, 3].map(home);
        Game { tiles, player: find('P'), ghosts, counter: deviations.counter, sparse, deviations }
    }

    pub(super) fn place_food(&mut self, rng: &mut Rng) {
        for (row, column) in positions() {
            let in_the_middle = (7..=11).contains(&row) && (6..=12).contains(&column);
            let may = if self.sparse {
                [(1, 3), (1, 9), (1, 15), (8, 9), (17, 2), (17, 16), (19, 9)].contains(&(row, column))
            } else {
                self.tile((row, column)) == ' ' && !in_the_middle && (row, column) != self.player && rng.uniform() < 0.5
            };
            if may {
                self.tiles[row as usize][column as usize] = '.';
            }
        }
    }

    pub(super) fn tile(&self, (row, column): Position) -> char {
        self.tiles[row as usize][column as usize]
    }

    pub(super) fn food(&self) -> usize {
        self.tiles.iter().flatten().filter(|&&tile| tile == '.').count()
    }

    /// The ghosts that a ghost can be after its move, with their probabilities.
    pub(super) fn ghost_moves(&self, ghost: Ghost) -> Vec<(Ghost, f64)> {
        let ways: Vec<(char, Position)> = MOVES
            .iter()
            .filter(|m| Some(m.0) != opposite(ghost.heading))
            .filter_map(|m| arrive(ghost.position, m.0).map(|to| (m.0, to)))
            .collect();
        let going = |(letter, position)| Ghost { position, heading: Some(letter) };
        let random: Vec<(Ghost, f64)> = ways.iter().map(|&way| (going(way), 1.0 / ways.len() as f64)).collect();
        if distance(ghost.position, self.player) > 5 {
            return random;
        }
        // Of the directional distances the least is nearest to the player, the greatest farthest.
        let directional = |letter| match letter {
            'N' => self.player.0 - ghost.position.0,
            'E' => ghost.position.1 - self.player.1,
            'W' => self.player.1 - ghost.position.1,
            _ => ghost.position.0 - self.player.0,
        };
        let mut chosen = ways[0];
        for &way in &ways[1..] {
            let (new, old) = (directional(way.0), directional(chosen.0));
            if self.deviations.blind || if self.counter >= 0 { new >= old } else { new <= old } {
                chosen = way;
            }
        }
        if self.counter >= 0 {
            return vec![(going(chosen), 0.75), (Ghost { heading: None, ..ghost }, 0.25)];
        }
        let failed = random.into_iter().map(|(ghost, p)| {
            let heading = if self.deviations.forgetful { None } else { ghost.heading };
            (Ghost { heading, ..ghost }, 0.25 * p)
        });
        std::iter::once((going(chosen), 0.75)).chain(failed).collect()
    }

    pub(super) fn move_ghosts(&mut self, rng: &mut Rng) {
        for i in 0..4 {
            let moves = self.ghost_moves(self.ghosts[i]);
            let weights: Vec<f64> = moves.iter().map(|m| m.1).collect();
            self.ghosts[i] = moves[rng.weighted(&weights).expect("weights are positive")].0;
        }
    }

    /// What follows the moves of the ghosts.
    pub(super) fn move_player(&mut self, letter: char) -> StepEvents {
        let mut account = StepEvents::default();
        if self.counter >= 0 {
            self.counter -= 1;
        }
        match arrive(self.player, letter) {
            Some(to) => self.player = to,
            None => account.walls = 1,
        }
        for i in (0..4).filter(|&i| self.ghosts[i].position == self.player).collect::<Vec<_>>() {
            if self.counter >= 0 {
                account.eaten += 1;
                self.ghosts[i] = home(i);
            } else {
                account.caught += 1;
            }
        }
        match std::mem::replace(&mut self.tiles[self.player.0 as usize][self.player.1 as usize], ' ') {
            '.' => (account.food, account.cleared) = (1, i32::from(self.food() == 0)),
            'o' => self.counter = 15,
            _ => {}
        }
        account
    }

    /// The observation in the authors' coding: 16 bits, of S-PocMan 9.
    pub(super) fn code(&self) -> u32 {
        let compass = ['N', 'E', 'S', 'W'].map(|letter| MOVES.into_iter().find(|m| m.0 == letter).expect("a move").1);
        let mut walls = 0;
        let mut food = 0;
        let mut ghosts = 0;
        for (bit, (down, right)) in compass.into_iter().enumerate() {
            let mut at = (self.player.0 + down, self.player.1 + right);
            walls |= u32::from(self.tile(at) == 'x') << bit;
            while !['x', '<', '>'].contains(&self.tile(at)) {
                if self.ghosts.iter().any(|ghost| ghost.position == at) {
                    ghosts |= 1 << bit;
                    break;
                }
                food |= u32::from(self.tile(at) == '.') << bit;
                at = (at.0 + down, at.1 + right);
            }
        }
        let powered = u32::from(self.counter >= 0);
        if self.sparse {
            return walls | ghosts << 4 | powered << 8;
        }
        let nearest = positions().filter(|&at| self.tile(at) == '.').map(|at| distance(at, self.player)).min();
        let smell = match nearest {
            Some(..=2) => 1,
            Some(3) => 2,
            Some(4) => 4,
            _ => 0,
        };
        walls | smell << 4 | food << 7 | ghosts << 11 | powered << 15
    }
}
