//! The four directions and sets of them.

/// A direction, in the order of the actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    North,
    East,
    West,
    South,
}

impl Direction {
    pub(super) const ALL: [Direction; 4] = [Direction::North, Direction::East, Direction::West, Direction::South];

    /// The order of directions in observations: around the compass, unlike the actions.
    pub(super) const COMPASS: [Direction; 4] = [Direction::North, Direction::East, Direction::South, Direction::West];

    pub(super) fn opposite(self) -> Direction {
        Self::ALL[3 - self as usize]
    }

    /// The row and column one step further.
    pub(super) fn step(self, (row, column): (i32, i32)) -> (i32, i32) {
        match self {
            Direction::North => (row - 1, column),
            Direction::East => (row, column + 1),
            Direction::West => (row, column - 1),
            Direction::South => (row + 1, column),
        }
    }

    pub(super) fn letter(self) -> char {
        ['N', 'E', 'W', 'S'][self as usize]
    }

    pub(super) fn word(self) -> &'static str {
        ["north", "east", "west", "south"][self as usize]
    }

    /// Its bit in the observations of the authors' code, around the compass from the lowest.
    fn bit(self) -> u8 {
        [1, 2, 8, 4][self as usize]
    }
}

/// A set of directions, as bits N, E, S, W from the lowest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Directions(u8);

impl Directions {
    pub(super) const NONE: Directions = Directions(0);

    pub(super) fn bits(self) -> u8 {
        self.0
    }

    pub(super) fn contains(self, direction: Direction) -> bool {
        self.0 & direction.bit() != 0
    }

    #[must_use]
    pub(super) fn with(self, direction: Direction) -> Directions {
        Directions(self.0 | direction.bit())
    }

    #[must_use]
    pub(super) fn without(self, direction: Direction) -> Directions {
        Directions(self.0 & !direction.bit())
    }

    /// The directions that are not in the set.
    pub(super) fn others(self) -> Directions {
        Directions(!self.0 & 0b1111)
    }

    pub(super) fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// In the order of the actions.
    pub(super) fn iter(self) -> impl Iterator<Item = Direction> {
        Direction::ALL.into_iter().filter(move |&d| self.contains(d))
    }

    /// Around the compass.
    pub(super) fn compass(self) -> impl Iterator<Item = Direction> {
        Direction::COMPASS.into_iter().filter(move |&d| self.contains(d))
    }
}

impl FromIterator<Direction> for Directions {
    fn from_iter<I: IntoIterator<Item = Direction>>(directions: I) -> Self {
        directions.into_iter().fold(Directions::NONE, Directions::with)
    }
}
