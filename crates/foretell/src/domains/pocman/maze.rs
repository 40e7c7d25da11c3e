//! The maze as tables: where moves lead, what is in sight, what can be smelt.

use super::direction::{Direction, Directions};

const MAP: &str = include_str!("map.txt");

/// Cells of the maze that can be entered. They fit in three words, see [`CellSet`].
const CELLS: usize = 189;

/// The strengths of the smell, as the largest distance of food in rows plus columns. [authors'
/// code]
pub(super) const SMELLS: [u8; 3] = [2, 3, 4];

/// A cell that can be entered, counted by rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Cell(u8);

/// A set of cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CellSet([u64; CELLS.div_ceil(64)]);

/// The map and what follows from it.
#[derive(Clone, Debug)]
pub(super) struct Maze {
    pub(super) player: Cell,
    pub(super) ghosts: [Cell; 4],
    pub(super) pills: CellSet,
    /// The dots of the map.
    pub(super) dots: CellSet,
    places: Vec<CellData>,
}

/// The data of one cell.
#[derive(Clone, Debug)]
pub(super) struct CellData {
    pub(super) row: i32,
    pub(super) column: i32,
    pub(super) exits: Directions,
    /// By direction; the cell itself where there is a wall.
    to: [Cell; 4],
    /// By direction: the cells as far as the next wall or the mouth of the tunnel.
    rays: [CellSet; 4],
    /// The cells at most [`SMELLS`] rows and columns away.
    pub(super) near: [CellSet; SMELLS.len()],
}

impl CellSet {
    pub(super) const EMPTY: CellSet = CellSet([0; CELLS.div_ceil(64)]);

    pub(super) fn insert(&mut self, cell: Cell) {
        self.0[usize::from(cell.0 / 64)] |= 1 << (cell.0 % 64);
    }

    pub(super) fn remove(&mut self, cell: Cell) {
        self.0[usize::from(cell.0 / 64)] &= !(1 << (cell.0 % 64));
    }

    pub(super) fn contains(&self, cell: Cell) -> bool {
        self.0[usize::from(cell.0 / 64)] >> (cell.0 % 64) & 1 == 1
    }

    pub(super) fn meets(&self, other: &CellSet) -> bool {
        (0..self.0.len()).any(|word| self.0[word] & other.0[word] != 0)
    }

    pub(super) fn minus(&self, other: &CellSet) -> CellSet {
        CellSet(std::array::from_fn(|word| self.0[word] & !other.0[word]))
    }

    pub(super) fn union(&self, other: &CellSet) -> CellSet {
        CellSet(std::array::from_fn(|word| self.0[word] | other.0[word]))
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == CellSet::EMPTY
    }

    pub(super) fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Each cell stays with probability ½: one random bit for each.
    pub(super) fn halve(&self, mut bits: impl FnMut() -> u64) -> CellSet {
        CellSet(self.0.map(|word| word & bits()))
    }
}

impl FromIterator<Cell> for CellSet {
    fn from_iter<I: IntoIterator<Item = Cell>>(cells: I) -> Self {
        let mut set = CellSet::EMPTY;
        cells.into_iter().for_each(|cell| set.insert(cell));
        set
    }
}

impl Maze {
    pub(super) fn new() -> Maze {
        let map = Map::new();
        let find = |mark| map.marked(mark).next().expect("the map has one of each");
        Maze {
            player: find('P'),
            ghosts: ['A', 'B', 'C', 'D'].map(find),
            pills: map.marked('o').collect(),
            dots: map.marked('.').collect(),
            places: (0..map.cells.len()).map(|cell| map.place(cell)).collect(),
        }
    }

    pub(super) fn cells(&self) -> impl Iterator<Item = Cell> {
        (0..self.places.len()).map(|cell| Cell(cell as u8))
    }

    pub(super) fn at(&self, cell: Cell) -> &CellData {
        &self.places[usize::from(cell.0)]
    }

    /// The cell in a row and a column, if it can be entered.
    pub(super) fn find(&self, row: usize, column: usize) -> Option<Cell> {
        self.cells().find(|&cell| (self.at(cell).row, self.at(cell).column) == (row as i32, column as i32))
    }

    /// The cells in sight in one direction, the nearest first.
    pub(super) fn line(&self, cell: Cell, direction: Direction) -> Vec<Cell> {
        let next = |&from: &Cell| Some(self.at(from).next(direction));
        std::iter::successors(next(&cell), next).take(self.at(cell).ray(direction).len()).collect()
    }

    /// The map, by rows, without moving or edible things.
    pub(super) fn rows() -> impl Iterator<Item = &'static str> {
        MAP.lines()
    }
}

impl CellData {
    /// Where a move leads; here, if there is a wall.
    pub(super) fn next(&self, direction: Direction) -> Cell {
        self.to[direction as usize]
    }

    pub(super) fn ray(&self, direction: Direction) -> &CellSet {
        &self.rays[direction as usize]
    }
}

/// The map as it is read.
struct Map {
    rows: Vec<&'static [u8]>,
    /// Row and column of every cell that can be entered.
    cells: Vec<(i32, i32)>,
}

impl Map {
    fn new() -> Map {
        let rows: Vec<&[u8]> = Maze::rows().map(str::as_bytes).collect();
        let positions = (0..rows.len()).flat_map(|row| (0..rows[row].len()).map(move |column| (row, column)));
        let enterable = positions.filter(|&(row, column)| !b"x<>".contains(&rows[row][column]));
        let cells: Vec<(i32, i32)> = enterable.map(|(row, column)| (row as i32, column as i32)).collect();
        assert_eq!(cells.len(), CELLS);
        Map { rows, cells }
    }

    fn mark(&self, (row, column): (i32, i32)) -> char {
        char::from(self.rows[row as usize][column as usize])
    }

    fn marked(&self, mark: char) -> impl Iterator<Item = Cell> {
        (0..self.cells.len()).filter(move |&cell| self.mark(self.cells[cell]) == mark).map(|cell| Cell(cell as u8))
    }

    fn cell(&self, position: (i32, i32)) -> Option<Cell> {
        self.cells.binary_search(&position).ok().map(|cell| Cell(cell as u8))
    }

    fn place(&self, cell: usize) -> CellData {
        let (row, column) = self.cells[cell];
        let open = |d: &Direction| self.mark(d.step((row, column))) != 'x';
        let within = |steps: u8| {
            let distance = |&(r, c): &(i32, i32)| (r - row).abs() + (c - column).abs();
            let near = self.cells.iter().filter(|position| distance(position) <= i32::from(steps));
            near.filter_map(|&position| self.cell(position)).collect()
        };
        CellData {
            row,
            column,
            exits: Direction::ALL.into_iter().filter(open).collect(),
            to: Direction::ALL.map(|d| self.neighbour((row, column), d).unwrap_or(Cell(cell as u8))),
            rays: Direction::ALL.map(|d| self.ray((row, column), d)),
            near: SMELLS.map(within),
        }
    }

    /// The next cell; a mouth of the tunnel leads beside the other one.
    fn neighbour(&self, position: (i32, i32), direction: Direction) -> Option<Cell> {
        let (row, column) = direction.step(position);
        self.cell(match self.mark((row, column)) {
            '<' => (row, self.rows[row as usize].len() as i32 - 2),
            '>' => (row, 1),
            _ => (row, column),
        })
    }

    fn ray(&self, position: (i32, i32), direction: Direction) -> CellSet {
        let next = |&position: &(i32, i32)| Some(direction.step(position));
        std::iter::successors(next(&position), next).map_while(|position| self.cell(position)).collect()
    }
}
