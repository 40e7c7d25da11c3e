//! GridWorld and ColoredGridWorld: mazes where only the adjacent walls are observed.
//!
//! The maze has 47 free cells. S is the start, G the goal, x a wall, rows and columns count from 0:
//!
//! ```text
//! xxxxxxxxxxxxxx
//! x...x.x......x
//! x.....x..xxG.x      S = row 4, column 9
//! xxxx..xx..x..x      G = row 2, column 11
//! x........Sx..x
//! x...x........x
//! xxxxxxxxxxxxxx
//! ```
//!
//! * **Actions** `N`, `E`, `S`, `W` move as intended with probability 0.8 and to either side with
//!   0.1 each. A move into a wall stays put.
//! * **Observations** are four letters for the neighbours in the order N, E, S, W. GridWorld: `#`
//!   is a wall, `.` is open. ColoredGridWorld: `b` is a wall of colour 0 (blue), `r` a wall of
//!   colour 2 (red); a wall of colour 1 looks like an open cell, and both are `.`. There is no
//!   observation before the first action. 14 different views occur on the coloured map.
//! * **Reward** 1 on entering G, which ends the episode; otherwise 0. Discount 0.99, episodes are
//!   truncated at 13 steps.
//!
//! Sources: W. Hamilton, M. Milani Fard, J. Pineau, "Efficient Learning and Planning with
//! Compressed Predictive States", JMLR 15 (2014), section 6.2.1 \[H14\], for the rules and the 47
//! states. We could not recover the figure of its maze: the map is our reconstruction from the two
//! maps in the authors' code (inner walls of the one, height and lower corridor of the other); the
//! colours are theirs.
//!
//! A uniformly random policy reaches G within 13 steps in 1.04 % of episodes, for a discounted
//! return of 0.0094. The best policy that observes its cell reaches it in 97 %, for 0.9030. The
//! tests compute all of these.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use crate::data::{Action, Alphabet};
use crate::error::{Error, Result};
use crate::pomdp::{Pomdp, PomdpEnvironment, PomdpTables, RewardRule, Row};
use crate::rng::Rng;
use crate::system::{Environment, Outcome};

/// Steps after which episodes of the built-in mazes are truncated, as in \[H14 §6.3\].
pub(super) const HORIZON: usize = 13;
/// The map and the colours of ColoredGridWorld.
pub(super) const COLORED_GRIDWORLD: &str = include_str!("colored-gridworld.txt");

const DISCOUNT: f64 = 0.99; // [H14 §6.4.1]
const INTENDED: f64 = 0.8; // [H14 §6.2.1]
const SIDEWAYS: f64 = 0.1; // to each side [H14 §6.2.1]

/// The largest number of cells of a map, so that a wrong file cannot exhaust memory.
const MAX_CELLS: usize = 100_000;

/// N, E, S, W as steps in rows and columns.
const DIRECTIONS: [(&str, isize, isize); 4] = [("N", -1, 0), ("E", 0, 1), ("S", 1, 0), ("W", 0, -1)];

/// A maze, with or without coloured walls. Its edge is closed, and a goal can be reached from every
/// start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    width: usize,
    /// By rows.
    cells: Vec<Cell>,
    /// By rows, 0 to 2; empty in a maze without colours.
    colours: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cell {
    Wall,
    Open,
    Start,
    Goal,
}

/// An agent in a maze.
pub(super) struct MazeEnvironment {
    grid: Arc<Grid>,
    inside: PomdpEnvironment<Arc<Pomdp>>,
}

impl MazeEnvironment {
    /// `pomdp` must be the model of `grid`.
    pub(super) fn new(grid: Arc<Grid>, pomdp: Arc<Pomdp>) -> MazeEnvironment {
        MazeEnvironment { grid, inside: PomdpEnvironment::new(pomdp) }
    }
}

impl Environment for MazeEnvironment {
    fn alphabet(&self) -> &Alphabet {
        self.inside.alphabet()
    }

    fn reset(&mut self, rng: &mut Rng) {
        self.inside.reset(rng);
    }

    fn step(&mut self, a: Action, rng: &mut Rng) -> Outcome {
        self.inside.step(a, rng)
    }

    /// The map: `@` is the agent, `G` goals, `#` walls, or their colours.
    fn picture(&self) -> String {
        let here = self.grid.free().nth(self.inside.state());
        let mark = |cell| match self.grid.cells[cell] {
            _ if Some(cell) == here => '@',
            Cell::Goal => 'G',
            Cell::Wall => self.grid.colours.get(cell).map_or('#', |colour| char::from(b'0' + colour)),
            Cell::Open | Cell::Start => ' ',
        };
        let cells: Vec<usize> = (0..self.grid.cells.len()).collect();
        let rows = cells.chunks(self.grid.width).map(|row| row.iter().map(|&cell| mark(cell)).collect::<String>());
        rows.map(|row| row + "\n").collect()
    }
}

/// A view in words.
pub(super) fn describe(view: &str) -> String {
    let walls = |mark: char| {
        let names = view.chars().zip(["north", "east", "south", "west"]);
        names.filter(|&(seen, _)| seen == mark).map(|(_, name)| name).collect::<Vec<_>>().join(" and ")
    };
    let kinds = [('#', "A wall"), ('b', "A blue wall"), ('r', "A red wall")];
    let seen: Vec<String> = kinds
        .iter()
        .map(|&(mark, what)| (what, walls(mark)))
        .filter(|(_, w)| !w.is_empty())
        .map(|(what, w)| format!("{what} {w}."))
        .collect();
    if seen.is_empty() { "No wall to be seen.".to_string() } else { seen.join(" ") }
}

/// A view as a small map, with the marks of [`MazeEnvironment::picture`].
pub(super) fn sketch(view: &str) -> String {
    let mark = |seen: char| match seen {
        'b' => '0',
        'r' => '2',
        '.' => ' ',
        other => other,
    };
    let around: Vec<char> = view.chars().map(mark).collect();
    match around[..] {
        [n, e, s, w] => format!(" {n} \n{w}@{e}\n {s} \n"),
        _ => String::new(),
    }
}

/// A rectangle of characters from a file.
struct Block<'a> {
    first_line: usize,
    rows: Vec<&'a str>,
}

impl Grid {
    /// Reads a map from a file, see [`Grid::parse`].
    pub fn read(path: impl AsRef<Path>) -> Result<Grid> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(Error::io("read", path))?;
        Grid::parse(&String::from_utf8_lossy(&bytes), &path.display().to_string())
    }

    /// Reads a map: rows of `x` (wall), `.` (open), `S` (start), `G` (goal); then, for coloured
    /// walls, a blank line and as many rows with a colour 0, 1 or 2 for every cell. With several S
    /// the start is drawn among them.
    ///
    /// ```
    /// let pomdp = foretell::domains::grid::Grid::parse("xxxx\nxSGx\nxxxx\n", "tiny.txt")?.pomdp();
    /// assert_eq!(pomdp.states(), ["r1c1", "r1c2"]);
    /// # Ok::<(), foretell::Error>(())
    /// ```
    pub fn parse(text: &str, file: &str) -> Result<Grid> {
        let blocks = blocks(text);
        let (map, colours) = match &blocks[..] {
            [] => return Err(Error::input(file, None, "there is no map", "write rows of x . S G")),
            [map] => (map, None),
            [map, colours] => (map, Some(colours)),
            [_, _, third, ..] => {
                let problem = "a third block begins here".to_string();
                return Err(error(file, third.first_line, problem, "a file has a map and perhaps colours"));
            }
        };
        let width = map.rows[0].chars().count();
        let cells = map.read(file, width, "x for a wall, . for open, S for the start, G for the goal", |c| {
            Some(match c {
                'x' => Cell::Wall,
                '.' => Cell::Open,
                'S' => Cell::Start,
                'G' => Cell::Goal,
                _ => return None,
            })
        })?;
        let colours = match colours {
            None => Vec::new(),
            Some(block) if block.rows.len() == map.rows.len() => {
                block.read(file, width, "a colour 0, 1 or 2", |c| ('0'..='2').contains(&c).then(|| c as u8 - b'0'))?
            }
            Some(block) => {
                let problem = format!("there are {} rows of colours for {} rows of map", block.rows.len(), map.rows.len());
                return Err(error(file, block.first_line, problem, "give every cell a colour 0, 1 or 2"));
            }
        };
        let grid = Grid { width, cells, colours };
        grid.check(map, file)?;
        Ok(grid)
    }

    /// The same maze without colours.
    pub fn without_colours(self) -> Grid {
        Grid { colours: Vec::new(), ..self }
    }

    /// The model of the maze; its states are the free cells, by rows, named like `r4c9`.
    pub fn pomdp(&self) -> Pomdp {
        let free: Vec<usize> = self.free().collect();
        let views: Vec<String> = free.iter().map(|&cell| self.view(cell)).collect();
        let observations: Vec<String> = views.iter().cloned().collect::<BTreeSet<_>>().into_iter().collect();
        let of_kind = |kind| -> Vec<usize> { (0..free.len()).filter(|&s| self.cells[free[s]] == kind).collect() };
        let starts = of_kind(Cell::Start);

        let emit = |view| vec![(observations.binary_search(view).expect("every view is listed"), 1.0)];
        let emissions: Vec<Row> = views.iter().map(emit).collect();
        let transitions = |d| free.iter().map(|&cell| self.moves(cell, d, &free)).collect();
        let tables = PomdpTables {
            discount: Some(DISCOUNT),
            states: free.iter().map(|cell| format!("r{}c{}", cell / self.width, cell % self.width)).collect(),
            actions: DIRECTIONS.iter().map(|(name, ..)| name.to_string()).collect(),
            terminal: free.iter().map(|&cell| self.cells[cell] == Cell::Goal).collect(),
            start: starts.iter().map(|&s| (s, 1.0 / starts.len() as f64)).collect(),
            transitions: (0..DIRECTIONS.len()).map(transitions).collect(),
            emissions: vec![emissions; DIRECTIONS.len()],
            rewards: of_kind(Cell::Goal)
                .into_iter()
                .map(|s| RewardRule { to: Some(s), reward: 1.0, ..RewardRule::default() })
                .collect(),
            observations,
        };
        Pomdp::new(tables).expect("a map that Grid::parse accepted is a valid model")
    }

    /// The cells without wall, which are the states of the model.
    fn free(&self) -> impl Iterator<Item = usize> {
        (0..self.cells.len()).filter(|&cell| self.cells[cell] != Cell::Wall)
    }

    /// T(· | d, cell) over the free cells.
    fn moves(&self, cell: usize, d: usize, free: &[usize]) -> Row {
        let mut row = Row::new();
        for (turn, p) in [(0, INTENDED), (1, SIDEWAYS), (3, SIDEWAYS)] {
            let neighbour = self.neighbour(cell, (d + turn) % DIRECTIONS.len());
            let to = if self.cells[neighbour] == Cell::Wall { cell } else { neighbour };
            let s = free.binary_search(&to).expect("moves end on free cells");
            match row.iter_mut().find(|(column, _)| *column == s) {
                Some((_, q)) => *q += p,
                None => row.push((s, p)),
            }
        }
        row
    }

    /// What is seen from a free cell.
    fn view(&self, cell: usize) -> String {
        let sight = |d| {
            let neighbour = self.neighbour(cell, d);
            match (self.cells[neighbour], self.colours.get(neighbour)) {
                (Cell::Wall, None) => '#',
                (Cell::Wall, Some(0)) => 'b',
                (Cell::Wall, Some(2)) => 'r',
                _ => '.',
            }
        };
        (0..DIRECTIONS.len()).map(sight).collect()
    }

    /// The cell next to a free one, which exists since the edge is closed.
    fn neighbour(&self, cell: usize, d: usize) -> usize {
        let (_, down, right) = DIRECTIONS[d];
        cell.wrapping_add_signed(down * self.width as isize + right)
    }

    fn check(&self, map: &Block<'_>, file: &str) -> Result<()> {
        let (width, height) = (self.width, self.cells.len() / self.width);
        if self.cells.len() > MAX_CELLS {
            let problem = format!("the map has {} cells", self.cells.len());
            return Err(Error::input(file, None, problem, format!("this reader takes at most {MAX_CELLS}")));
        }
        let on_edge = |cell: usize| [0, height - 1].contains(&(cell / width)) || [0, width - 1].contains(&(cell % width));
        if let Some(cell) = (0..self.cells.len()).find(|&cell| self.cells[cell] != Cell::Wall && on_edge(cell)) {
            let problem = format!("the edge of the map is open at column {}", cell % width + 1);
            return Err(error(file, map.first_line + cell / width, problem, "close it with x"));
        }
        for (kind, letter, what) in [(Cell::Start, 'S', "start"), (Cell::Goal, 'G', "goal")] {
            if !self.cells.contains(&kind) {
                let remedy = format!("put {letter} where the {what} is");
                return Err(Error::input(file, None, format!("the map has no {what}"), remedy));
            }
        }
        let reached = self.connected_to_goals();
        match (0..self.cells.len()).find(|&cell| self.cells[cell] == Cell::Start && !reached[cell]) {
            None => Ok(()),
            Some(cell) => {
                let problem = format!("no goal can be reached from the start at column {}", cell % width + 1);
                Err(error(file, map.first_line + cell / width, problem, "open a path from S to G"))
            }
        }
    }

    /// For each cell, whether there is a path to a goal.
    fn connected_to_goals(&self) -> Vec<bool> {
        let mut seen: Vec<bool> = self.cells.iter().map(|&cell| cell == Cell::Goal).collect();
        let mut open: Vec<usize> = (0..seen.len()).filter(|&cell| seen[cell]).collect();
        while let Some(cell) = open.pop() {
            for next in (0..DIRECTIONS.len()).map(|d| self.neighbour(cell, d)) {
                if self.cells[next] != Cell::Wall && !seen[next] {
                    seen[next] = true;
                    open.push(next);
                }
            }
        }
        seen
    }
}

impl Block<'_> {
    /// The characters of all rows, which must be `width` wide.
    fn read<T>(&self, file: &str, width: usize, meanings: &str, meaning: impl Fn(char) -> Option<T>) -> Result<Vec<T>> {
        let mut values = Vec::new();
        for (i, row) in self.rows.iter().enumerate() {
            let line = self.first_line + i;
            let found = row.chars().count();
            if found != width {
                let problem = format!("the row has {found} cells, the first row of the map {width}");
                return Err(error(file, line, problem, "make all rows of map and colours equally long"));
            }
            for (column, c) in row.chars().enumerate() {
                let unknown = || {
                    error(file, line, format!("{c:?} in column {} is not a known mark", column + 1), format!("write {meanings}"))
                };
                values.push(meaning(c).ok_or_else(unknown)?);
            }
        }
        Ok(values)
    }
}

/// The parts of a text that blank lines separate.
fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut blocks: Vec<Block<'_>> = Vec::new();
    let mut blank = true;
    for (i, line) in text.lines().map(str::trim_end).enumerate() {
        match blocks.last_mut() {
            _ if line.is_empty() => {}
            Some(block) if !blank => block.rows.push(line),
            _ => blocks.push(Block { first_line: i + 1, rows: vec![line] }),
        }
        blank = line.is_empty();
    }
    blocks
}

fn error(file: &str, line: usize, problem: String, remedy: impl Into<String>) -> Error {
    Error::input(file, Some(line as u64), problem, remedy)
}
