//! RockSample: a rover on a grid, rocks of unknown quality, and a sensor whose accuracy falls with
//! distance.
//!
//! RockSample\[n, k\] is a square of n × n cells with k rocks at known places, each good or bad.
//!
//! * **States**: the rover's cell and the quality of every rock, named like `r2c0/gbb` (row,
//!   column, rocks 1 to k); and `exit`. That is n² · 2^k + 1.
//! * **Actions** `N`, `E`, `S`, `W` move by one cell and never fail; `sample` takes a sample of the
//!   rock where the rover is; `check-1` … `check-k` point the sensor to a rock from wherever it is.
//! * **Observations**: after a check `good` or `bad`, right with probability (1 + η) / 2, where η =
//!   2^(−d / 20) is the sensor's efficiency at the Euclidean distance d; `exit` at the end;
//!   otherwise `none`.
//! * **Rewards**: 10 for a sample of a good rock, which makes it bad; −10 for one of a bad rock; 10
//!   for moving out of the square in the east, which ends the episode. Discount 0.95.
//! * **Start**: in the middle of the western side (row n / 2, column 0); every rock is good or bad
//!   with equal probability.
//!
//! Source: T. Smith, R. Simmons, "Heuristic Search Value Iteration for POMDPs", UAI (2004). The
//! sensor's efficiency halves every 20 cells, as in public versions. Where the paper is silent,
//! nothing happens at no cost: moves out of the other three sides, samples where there is no rock
//! (some versions give −100 for both). Our choices: the positions of the rocks come from a seed, or
//! are given; `none` and `exit`; episodes are truncated at 100 steps.

use super::settings::Settings;
use super::{Domain, FILE_HORIZON};
use crate::error::{Error, Result};
use crate::pomdp::{Pomdp, PomdpTables, RewardRule, Row};
use crate::rng::Seed;

const DISCOUNT: f64 = 0.95; // Smith and Simmons (2004)
const GOOD: f64 = 10.0; // Smith and Simmons (2004)
const BAD: f64 = -10.0; // Smith and Simmons (2004)
const EXIT: f64 = 10.0; // Smith and Simmons (2004)

/// The distance at which the sensor's efficiency is one half, in cells; as in public versions.
const HALF_EFFICIENCY: f64 = 20.0;

/// Enough for RockSample\[7, 8\], the largest of the paper (12 545 states).
const MAX_STATES: usize = 20_000;

const MEANING: &str = "a whole number from 1, with size² · 2^rocks below 20 000";
const DEFAULT_SIZE: usize = 4;
const DEFAULT_ROCKS: usize = 3;
const DEFAULT_SEED: u64 = 0;

/// The actions before the checks; the moves among them as steps in rows and columns.
const ACTIONS: [(&str, isize, isize); 5] = [("N", -1, 0), ("E", 0, 1), ("S", 1, 0), ("W", 0, -1), ("sample", 0, 0)];
const EAST: usize = 1;
const SAMPLE: usize = 4;

const OBSERVATIONS: [&str; 4] = ["none", "good", "bad", "exit"];
const SEE_NONE: usize = 0;
const SEE_GOOD: usize = 1;
const SEE_BAD: usize = 2;
const SEE_EXIT: usize = 3;

/// A square with rocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RockSample {
    size: usize,
    /// Row and column.
    rocks: Vec<(usize, usize)>,
}

impl RockSample {
    /// A square of `size` × `size` cells with rocks at these rows and columns.
    ///
    /// # Errors
    /// No rock, rocks outside or in the same cell, more than 20 000 states.
    pub fn new(size: usize, rocks: Vec<(usize, usize)>) -> Result<RockSample> {
        check_states(size, rocks.len())?;
        let outside = |&&(row, column): &&(usize, usize)| row.max(column) >= size;
        if let Some(rock) = rocks.iter().find(outside) {
            return Err(Error::parameter("rocks", format!("{rock:?}"), format!("rows and columns are below {size}")));
        }
        if let Some(i) = (1..rocks.len()).find(|&i| rocks[..i].contains(&rocks[i])) {
            return Err(Error::parameter("rocks", format!("{:?}", rocks[i]), "there is already a rock"));
        }
        Ok(RockSample { size, rocks })
    }

    /// A square with that number of rocks, in different cells drawn from the seed.
    ///
    /// # Errors
    /// As [`RockSample::new`], and more rocks than cells.
    pub fn drawn(size: usize, rocks: usize, seed: Seed) -> Result<RockSample> {
        check_states(size, rocks)?;
        if rocks > size * size {
            return Err(Error::parameter("rocks", rocks, format!("a square of size={size} has {} cells", size * size)));
        }
        let mut rng = seed.stream("rocksample").rng();
        let mut cells: Vec<usize> = (0..size * size).collect();
        let draw = |_| cells.swap_remove(rng.below(cells.len()));
        let places = (0..rocks).map(draw).map(|cell| (cell / size, cell % size)).collect();
        RockSample::new(size, places)
    }

    /// Row and column of every rock.
    pub fn rocks(&self) -> &[(usize, usize)] {
        &self.rocks
    }

    /// The model of the square.
    pub fn pomdp(&self) -> Pomdp {
        let states = self.exit() + 1;
        let actions = ACTIONS.len() + self.rocks.len();
        let checks = (1..=self.rocks.len()).map(|i| format!("check-{i}"));
        let start = self.state((self.size / 2, 0), 0);
        let qualities = 1 << self.rocks.len();
        let tables = PomdpTables {
            discount: Some(DISCOUNT),
            states: (0..states).map(|s| self.name(s)).collect(),
            actions: ACTIONS.iter().map(|(name, ..)| name.to_string()).chain(checks).collect(),
            observations: OBSERVATIONS.map(String::from).to_vec(),
            terminal: (0..states).map(|s| s == self.exit()).collect(),
            start: (0..qualities).map(|quality| (start + quality, 1.0 / qualities as f64)).collect(),
            transitions: (0..actions).map(|a| (0..states).map(|s| vec![(self.next(a, s), 1.0)]).collect()).collect(),
            emissions: (0..actions).map(|a| (0..states).map(|s| self.view(a, s)).collect()).collect(),
            rewards: self.rewards(),
        };
        Pomdp::new(tables).expect("a square that RockSample::new accepted is a valid model")
    }

    /// The state of the rover in a cell; bit i of `quality` is set if rock i is good.
    fn state(&self, (row, column): (usize, usize), quality: usize) -> usize {
        ((row * self.size + column) << self.rocks.len()) + quality
    }

    /// The rover's cell and the quality of the rocks in a state that is not the exit.
    fn place(&self, s: usize) -> ((usize, usize), usize) {
        let cell = s >> self.rocks.len();
        ((cell / self.size, cell % self.size), s - (cell << self.rocks.len()))
    }

    fn exit(&self) -> usize {
        self.state((self.size, 0), 0)
    }

    /// The rock in that cell.
    fn rock_at(&self, cell: (usize, usize)) -> Option<usize> {
        self.rocks.iter().position(|&rock| rock == cell)
    }

    /// The one state that `a` leads to.
    fn next(&self, a: usize, s: usize) -> usize {
        if s == self.exit() {
            return s;
        }
        let ((row, column), quality) = self.place(s);
        match ACTIONS.get(a) {
            Some(_) if a == EAST && column + 1 == self.size => self.exit(),
            Some(_) if a == SAMPLE => {
                let sampled = self.rock_at((row, column)).map_or(0, |i| 1 << i);
                self.state((row, column), quality & !sampled)
            }
            Some(&(_, down, right)) => {
                let inside = |x: usize, step| x.checked_add_signed(step).filter(|&y| y < self.size).unwrap_or(x);
                self.state((inside(row, down), inside(column, right)), quality)
            }
            None => s, // checks change nothing
        }
    }

    /// O(· | a, s)
    fn view(&self, a: usize, s: usize) -> Row {
        if s == self.exit() {
            return vec![(SEE_EXIT, 1.0)];
        }
        if a < ACTIONS.len() {
            return vec![(SEE_NONE, 1.0)];
        }
        let ((row, column), quality) = self.place(s);
        let i = a - ACTIONS.len();
        let (down, right) = (self.rocks[i].0.abs_diff(row), self.rocks[i].1.abs_diff(column));
        let distance = (down as f64).hypot(right as f64);
        let efficiency = (-distance / HALF_EFFICIENCY).exp2(); // η
        let good = if quality >> i & 1 == 1 { (1.0 + efficiency) / 2.0 } else { (1.0 - efficiency) / 2.0 };
        vec![(SEE_GOOD, good), (SEE_BAD, 1.0 - good)]
    }

    fn rewards(&self) -> Vec<RewardRule> {
        let mut rules = vec![RewardRule { to: Some(self.exit()), reward: EXIT, ..RewardRule::default() }];
        for (i, &cell) in self.rocks.iter().enumerate() {
            rules.extend((0..1 << self.rocks.len()).map(|quality: usize| RewardRule {
                action: Some(SAMPLE),
                from: Some(self.state(cell, quality)),
                reward: if quality >> i & 1 == 1 { GOOD } else { BAD },
                ..RewardRule::default()
            }));
        }
        rules
    }

    fn name(&self, s: usize) -> String {
        if s == self.exit() {
            return "exit".to_string();
        }
        let ((row, column), quality) = self.place(s);
        let letters: String = (0..self.rocks.len()).map(|i| if quality >> i & 1 == 1 { 'g' } else { 'b' }).collect();
        format!("r{row}c{column}/{letters}")
    }
}

/// Refuses squares without cells or rocks, and models with too many states.
fn check_states(size: usize, rocks: usize) -> Result<()> {
    for (name, value) in [("size", size), ("rocks", rocks)] {
        if value == 0 {
            return Err(Error::parameter(name, value, format!("must be {MEANING}")));
        }
    }
    let states = u32::try_from(rocks).ok().and_then(|k| 1usize.checked_shl(k)?.checked_mul(size.checked_mul(size)?));
    match states {
        Some(states) if states < MAX_STATES => Ok(()),
        _ => {
            let problem = format!("size={size} and rocks={rocks} make size² · 2^rocks + 1 states, more than {MAX_STATES}");
            Err(Error::parameter("rocks", rocks, problem))
        }
    }
}

/// `rocksample` with its parameters `size`, `rocks` and `seed`.
pub(super) fn domain(mut settings: Settings<'_>) -> Result<Domain> {
    let name = settings.name();
    let size = settings.take("size", DEFAULT_SIZE, MEANING)?;
    let rocks = settings.take("rocks", DEFAULT_ROCKS, MEANING)?;
    let seed = settings.take("seed", DEFAULT_SEED, "a whole number that places the rocks")?;
    settings.finish()?;
    let square = RockSample::drawn(size, rocks, Seed(seed))?;
    let story = format!("a rover looks for good rocks with a sensor that is weak afar (size={size}, rocks={rocks}, seed={seed})");
    Ok(Domain::finite(name, &story, FILE_HORIZON, square.pomdp()))
}
