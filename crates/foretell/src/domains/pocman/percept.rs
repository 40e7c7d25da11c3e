//! What the player perceives: its code, its name, its words, and the alphabet of all that can
//! occur.

use std::collections::{BTreeMap, BTreeSet};

use super::direction::{Direction, Directions};
use super::maze::{Cell, CellSet, Maze, SMELLS};
use crate::data::{Alphabet, Observation, SEPARATOR};

/// No symbol has this number.
const IMPOSSIBLE: u32 = u32::MAX;

/// Codes have 16 bits.
const CODES: usize = 1 << 16;

/// What is not perceived.
const NONE: &str = "none";

/// Whether food can be sensed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Food {
    Sensed,
    Hidden,
}

/// What the player perceives after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Percept {
    pub(super) walls: Directions,
    pub(super) senses: Senses,
    pub(super) powered: bool,
}

/// The part of a percept that can differ from visit to visit of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Senses {
    /// One of [`SMELLS`], if any.
    pub(super) smell: Option<u8>,
    pub(super) food: Directions,
    pub(super) ghosts: Directions,
}

impl Percept {
    /// The code of the authors: bits from the lowest are 4 walls, 3 smells, 4 food, 4 ghosts, 1
    /// power.
    pub(super) fn code(self) -> u16 {
        let smell = self.senses.smell.map_or(0, |steps| 1 << (steps - SMELLS[0]));
        u16::from(self.walls.bits())
            | smell << 4
            | u16::from(self.senses.food.bits()) << 7
            | u16::from(self.senses.ghosts.bits()) << 11
            | u16::from(self.powered) << 15
    }

    /// Reads what [`name`](Self::name) writes.
    pub(super) fn parse(name: &str) -> Option<Percept> {
        let parts: Vec<(&str, &str)> = name.split(SEPARATOR).map(|part| part.split_once('=')).collect::<Option<_>>()?;
        let (walls, smell, food, ghosts, power) = match parts[..] {
            [("walls", walls), ("smell", smell), ("food", food), ("ghosts", ghosts), ("power", power)] => {
                (walls, smell, food, ghosts, power)
            }
            [("walls", walls), ("ghosts", ghosts), ("power", power)] => (walls, NONE, NONE, ghosts, power),
            _ => return None,
        };
        let smell = match smell {
            NONE => None,
            steps => Some(steps.parse().ok().filter(|steps| SMELLS.contains(steps))?),
        };
        let senses = Senses { smell, food: directions(food)?, ghosts: directions(ghosts)? };
        let powered = match power {
            "yes" => true,
            "no" => false,
            _ => return None,
        };
        Some(Percept { walls: directions(walls)?, senses, powered })
    }

    /// The name, like `walls=NS|smell=2|food=E|ghosts=none|power=no`, or `walls=NS|ghosts=N|power=yes`
    /// where food is not sensed.
    pub(super) fn name(self, food: Food) -> String {
        let letters = |directions: Directions| match directions {
            Directions::NONE => NONE.to_string(),
            some => some.compass().map(Direction::letter).collect(),
        };
        let Senses { smell, food: seen, ghosts } = self.senses;
        let sensed = match food {
            Food::Sensed => {
                let smell = smell.map_or(NONE.to_string(), |steps| steps.to_string());
                format!("|smell={smell}|food={}", letters(seen))
            }
            Food::Hidden => String::new(),
        };
        let power = if self.powered { "yes" } else { "no" };
        format!("walls={}{sensed}|ghosts={}|power={power}", letters(self.walls), letters(ghosts))
    }
}

/// An observation of PocMan or S-PocMan in words; `None` if it has no such name.
///
/// ```
/// let words = foretell::domains::pocman::describe("walls=NS|smell=2|food=E|ghosts=W|power=no").unwrap();
/// let expected = "Walls north and south. You smell food at most 2 steps away. Food in sight to the east. \
///                 A ghost in sight to the west.";
/// assert_eq!(words, expected);
/// ```
pub fn describe(name: &str) -> Option<String> {
    let Percept { walls, senses, powered } = Percept::parse(name)?;
    let mut sentences = vec![match walls.len() {
        0 => "No walls around.".to_string(),
        1 => format!("A wall {}.", words(walls)),
        _ => format!("Walls {}.", words(walls)),
    }];
    if let Some(steps) = senses.smell {
        let at_most = if steps == SMELLS[0] { "at most " } else { "" };
        sentences.push(format!("You smell food {at_most}{steps} steps away."));
    }
    if senses.food != Directions::NONE {
        sentences.push(format!("Food in sight to the {}.", words(senses.food)));
    }
    match senses.ghosts.len() {
        0 => {}
        1 => sentences.push(format!("A ghost in sight to the {}.", words(senses.ghosts))),
        _ => sentences.push(format!("Ghosts in sight to the {}.", words(senses.ghosts))),
    }
    if powered {
        sentences.push("You are powered up: ghosts flee.".to_string());
    }
    Some(sentences.join(" "))
}

/// What an observation of PocMan or S-PocMan shows of the surroundings, drawn with the marks of the
/// map: a wall or food beside the player stands for one in that direction, a ghost two cells away
/// for one in sight. `None` if it has no such name.
///
/// ```
/// let sketch = foretell::domains::pocman::sketch("walls=NS|smell=none|food=E|ghosts=W|power=no").unwrap();
/// assert_eq!(sketch, "     \n  #  \nA P. \n  #  \n     \n");
/// ```
pub fn sketch(name: &str) -> Option<String> {
    let Percept { walls, senses, powered } = Percept::parse(name)?;
    let mut cells = [[' '; 5]; 5];
    cells[2][2] = 'P';
    for direction in Direction::ALL {
        let near = direction.step((2, 2));
        let far = direction.step(near);
        let mut put = |(row, column): (i32, i32), mark| cells[row as usize][column as usize] = mark;
        if walls.contains(direction) {
            put(near, '#');
        }
        if senses.food.contains(direction) {
            put(near, '.');
        }
        if senses.ghosts.contains(direction) {
            put(far, if powered { 'a' } else { 'A' });
        }
    }
    Some(cells.iter().map(|row| row.iter().collect::<String>() + "\n").collect())
}

/// "north", "north and east", "north, east and south".
fn words(directions: Directions) -> String {
    let words: Vec<&str> = directions.compass().map(Direction::word).collect();
    match &words[..] {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => words.concat(),
    }
}

/// The directions of letters around the compass, each at most once, or `none`.
fn directions(letters: &str) -> Option<Directions> {
    if letters == NONE {
        return Some(Directions::NONE);
    }
    let of = |letter| Direction::ALL.into_iter().find(|d| d.letter() == letter);
    let directions: Directions = letters.chars().map(of).collect::<Option<_>>()?;
    let in_order = directions.compass().map(Direction::letter).eq(letters.chars());
    (in_order && !letters.is_empty()).then_some(directions)
}

/// All observations that can occur, and the symbol of each code.
#[derive(Clone, Debug)]
pub(super) struct Symbols {
    pub(super) alphabet: Alphabet,
    /// For each code, the symbol that does not end the episode and the one that does.
    by_code: Vec<[u32; 2]>,
}

impl Symbols {
    /// The observations that the maze allows where food can be sensed in the cells `sensed` and
    /// eaten in `eaten`, in the order of their codes; the terminal one follows the non-terminal
    /// one.
    pub(super) fn new(maze: &Maze, sensed: &CellSet, eaten: &CellSet) -> Symbols {
        let mut symbols = Symbols { alphabet: Alphabet::default(), by_code: vec![[IMPOSSIBLE; 2]; CODES] };
        for direction in Direction::ALL {
            symbols.alphabet.intern_action(&direction.letter().to_string());
        }
        let food = if *sensed == CellSet::EMPTY { Food::Hidden } else { Food::Sensed };
        for (code, (percept, ends)) in possible(maze, sensed, eaten) {
            let (name, symbol) = (percept.name(food), &mut symbols.by_code[usize::from(code)]);
            symbol[0] = symbols.alphabet.intern_observation(&name).0;
            if ends {
                symbol[1] = symbols.alphabet.intern_terminal_observation(&name).0;
            }
        }
        symbols
    }

    pub(super) fn symbol(&self, percept: Percept, ends: bool) -> Observation {
        let o = self.by_code[usize::from(percept.code())][usize::from(ends)];
        debug_assert_ne!(o, IMPOSSIBLE, "{percept:?}, ends: {ends}");
        Observation(o)
    }
}

/// By their codes, the percepts that the maze allows, and whether they can be the last.
fn possible(maze: &Maze, sensed: &CellSet, eaten: &CellSet) -> BTreeMap<u16, (Percept, bool)> {
    let mut possible = BTreeMap::new();
    for cell in maze.cells() {
        let walls = maze.at(cell).exits.others();
        for senses in senses(maze, cell, sensed) {
            for powered in [false, true] {
                let percept = Percept { walls, senses, powered };
                // The ghost that catches is not in sight, and power, if any, came after it.
                let caught = senses.ghosts.len() < maze.ghosts.len() && (!powered || maze.pills.contains(cell));
                let cleared = eaten.contains(cell) && senses.smell.is_none() && senses.food == Directions::NONE;
                let (_, ends) = possible.entry(percept.code()).or_insert((percept, false));
                *ends |= caught || cleared;
            }
        }
    }
    possible
}

/// What can be sensed in a cell, wherever ghosts and food may be.
fn senses(maze: &Maze, cell: Cell, sensed: &CellSet) -> BTreeSet<Senses> {
    let smells = hidden_smells(maze, cell, sensed).into_iter().map(Some).chain([None]);
    let mut found: BTreeSet<Senses> = smells.map(|smell| Senses { smell, ..Senses::default() }).collect();
    for direction in Direction::ALL {
        let options = along(&maze.line(cell, direction), sensed);
        let with = |set: Directions, seen| if seen { set.with(direction) } else { set };
        let combine = |(one, &(smell, food, ghost)): (Senses, &(Option<u8>, bool, bool))| Senses {
            smell: one.smell.into_iter().chain(smell).min(),
            food: with(one.food, food),
            ghosts: with(one.ghosts, ghost),
        };
        found = found.iter().flat_map(|&one| options.iter().map(move |option| (one, option))).map(combine).collect();
    }
    found
}

/// The possible smells of food that is not in sight.
fn hidden_smells(maze: &Maze, cell: Cell, sensed: &CellSet) -> Vec<u8> {
    let mut excluded = Direction::ALL.into_iter().fold(CellSet::EMPTY, |all, d| all.union(maze.at(cell).ray(d)));
    excluded.insert(cell); // its food is eaten
    let mut smells = Vec::new();
    for (smell, near) in SMELLS.into_iter().zip(&maze.at(cell).near) {
        if near.minus(&excluded).meets(sensed) {
            smells.push(smell);
        }
        excluded = excluded.union(near);
    }
    smells
}

/// What can be sensed along a line of cells: the smell of its nearest food, whether food is seen,
/// whether a ghost is. Only the nearest food and ghost matter.
fn along(line: &[Cell], sensed: &CellSet) -> BTreeSet<(Option<u8>, bool, bool)> {
    let distances = || (1..=line.len()).map(Some).chain([None]);
    let foods = distances().filter(|food| food.is_none_or(|steps| sensed.contains(line[steps - 1])));
    let pairs = foods.flat_map(|food| distances().map(move |ghost| (food, ghost)));
    pairs
        .map(|(food, ghost)| {
            let smell = food.and_then(|steps| SMELLS.into_iter().find(|&smell| steps <= usize::from(smell)));
            let seen = food.is_some_and(|food| ghost.is_none_or(|ghost| food < ghost));
            (smell, seen, ghost.is_some())
        })
        .collect()
}
