//! The games against a slow oracle, and in scenes set by hand.

mod figures;
mod oracle;
mod scenes;

use super::direction::Directions;
use super::percept::Food;
use super::*;
use crate::rng::Seed;
use oracle::{INTENDED, Position};

const LETTERS: [char; 4] = ['N', 'E', 'W', 'S']; // in the order of the actions

fn games() -> [PocMan; 2] {
    [PocMan::plentiful(), PocMan::sparse()]
}

fn position(maze: &Maze, cell: Cell) -> Position {
    (maze.at(cell).row, maze.at(cell).column)
}

fn cell(maze: &Maze, (row, column): Position) -> Cell {
    maze.find(row as usize, column as usize).expect("an open cell")
}

/// The ghost as the oracle sees it.
fn oracle_ghost(maze: &Maze, ghost: Ghost) -> oracle::Ghost {
    oracle::Ghost { position: position(maze, ghost.cell), heading: ghost.heading.map(Direction::letter) }
}

/// The game as the oracle sees it.
fn snapshot(env: &PocManEnvironment<&PocMan>) -> oracle::Game {
    let maze = &env.game.maze;
    let mut game = oracle::Game::start(!env.game.food_is_sensed, INTENDED);
    for cell in maze.cells() {
        let (row, column) = position(maze, cell);
        let tile = if env.food.contains(cell) { '.' } else { ' ' };
        game.tiles[row as usize][column as usize] = if env.pills.contains(cell) { 'o' } else { tile };
    }
    game.player = position(maze, env.player);
    game.ghosts = env.ghosts.map(|ghost| oracle_ghost(maze, ghost));
    game.counter = i32::from(env.power) - 1;
    game
}

/// The code of the oracle for what is perceived: of S-PocMan the authors keep 9 bits of 16.
fn code(env: &PocManEnvironment<&PocMan>) -> u32 {
    let code = u32::from(env.percept().code());
    if env.game.food_is_sensed { code } else { code & 0b1111 | code >> 11 << 4 }
}

fn any_cell(maze: &Maze, rng: &mut Rng) -> Cell {
    maze.cells().nth(rng.below(maze.cells().count())).expect("the index is below the count")
}

/// A random state that the rules allow, rare ones as often as common ones: ghosts in sight or
/// elsewhere, little or much food.
fn scatter(env: &mut PocManEnvironment<&PocMan>, rng: &mut Rng) {
    let maze = &env.game.maze;
    env.player = any_cell(maze, rng);
    for (ghost, direction) in env.ghosts.iter_mut().zip(Direction::ALL) {
        let line = maze.line(env.player, direction);
        ghost.cell = match rng.below(8) {
            0..4 if !line.is_empty() => line[rng.below(line.len())],
            4 => env.player,
            _ => any_cell(maze, rng),
        };
        ghost.heading = Direction::ALL.into_iter().filter(|d| maze.at(ghost.cell).exits.contains(d.opposite())).nth(rng.below(4));
    }
    let density = [0.0, 0.03, 0.2, 0.5][rng.below(4)];
    let wherever = env.game.certain_food.union(&env.game.possible_food);
    env.food = maze.cells().filter(|&cell| wherever.contains(cell) && rng.uniform() < density).collect();
    if rng.below(2) == 0 {
        env.food = env.food.minus(&maze.at(env.player).near[rng.below(3)]);
    }
    if wherever.contains(env.player) && rng.below(2) == 0 {
        env.food.insert(env.player);
    }
    env.pills = maze.pills.halve(|| rng.bits());
    env.power = [0, 1, 2, PILL_POWER][rng.below(4)];
}

#[test]
fn the_tables_agree_with_the_map() {
    let maze = Maze::new();
    assert_eq!(oracle::positions().filter(|&at| oracle::enterable(at)).count(), maze.cells().count());
    for here in maze.cells() {
        let (row, column) = position(&maze, here);
        assert_eq!(maze.find(row as usize, column as usize), Some(here));
        assert_eq!(maze.pills.contains(here), oracle::marked((row, column)) == 'o');
        assert_eq!(maze.dots.contains(here), oracle::marked((row, column)) == '.');
        for direction in Direction::ALL {
            let to = oracle::arrive((row, column), direction.letter());
            assert_eq!(maze.at(here).exits.contains(direction), to.is_some());
            assert_eq!(position(&maze, maze.at(here).next(direction)), to.unwrap_or((row, column)));
        }
        for (steps, near) in SMELLS.into_iter().zip(&maze.at(here).near) {
            let in_reach = |&other: &Cell| oracle::distance((row, column), position(&maze, other)) <= i32::from(steps);
            assert_eq!(*near, maze.cells().filter(in_reach).collect());
        }
        assert!(maze.at(here).exits.len() >= 2, "ghosts cannot turn back in a dead end");
    }
}

#[test]
fn one_step_from_any_state_agrees_with_the_oracle() {
    let mut rng = Seed(1).rng();
    for game in games() {
        let mut env = game.environment();
        for _ in 0..10_000 {
            scatter(&mut env, &mut rng);
            follow(&mut env, &mut rng);
        }
    }
}

#[test]
fn whole_episodes_agree_with_the_oracle() {
    let mut rng = Seed(2).rng();
    for game in games() {
        let mut env = game.environment();
        for _ in 0..300 {
            env.reset(&mut rng);
            let start = snapshot(&env);
            let expected = oracle::Game { tiles: start.tiles.clone(), ..oracle::Game::start(start.sparse, INTENDED) };
            assert_eq!(start, expected);
            let mut food = env.food;
            for _ in 0..HORIZON {
                let ends = follow(&mut env, &mut rng);
                assert!(env.food.minus(&food).is_empty() && env.food.len() + 1 >= food.len());
                food = env.food;
                if ends {
                    break;
                }
            }
        }
    }
}

/// Takes a random step and checks all of it; returns whether it ends the episode.
fn follow(env: &mut PocManEnvironment<&PocMan>, rng: &mut Rng) -> bool {
    let a = rng.below(4);
    let mut expected = snapshot(env);
    let mut ghosts_moved = env.clone();
    ghosts_moved.move_ghosts(&mut rng.clone());
    for (i, ghost) in ghosts_moved.ghosts.into_iter().enumerate() {
        let ghost = oracle_ghost(&env.game.maze, ghost);
        assert!(expected.ghost_moves(expected.ghosts[i]).iter().any(|m| m.0 == ghost), "{ghost:?} in {expected:?}");
    }
    expected.ghosts = ghosts_moved.ghosts.map(|ghost| oracle_ghost(&env.game.maze, ghost));
    let account = expected.move_player(LETTERS[a]);
    let outcome = env.step(Action(a as u32), rng);
    assert_eq!(snapshot(env), expected);
    assert_eq!(outcome.reward, account.reward(expected.sparse), "{account:?}");
    assert_eq!(code(env), expected.code(), "{expected:?}");
    let symbol = env.alphabet().symbol(outcome.observation);
    assert_eq!((Percept::parse(&symbol.name), symbol.terminal), (Some(env.percept()), account.ends()));
    account.ends()
}

#[test]
fn ghosts_choose_with_the_oracles_probabilities() {
    const DRAWS: usize = 1_000;
    let mut rng = Seed(3).rng();
    let game = PocMan::plentiful();
    let mut env = game.environment();
    for _ in 0..300 {
        scatter(&mut env, &mut rng);
        let around: Vec<Cell> = game.maze.cells().filter(|&cell| game.maze.at(env.player).near[2].contains(cell)).collect();
        if rng.below(3) > 0 {
            env.ghosts[0].cell = around[rng.below(around.len())];
            env.ghosts[0].heading = None;
        }
        let expected = snapshot(&env);
        let mood = if env.power > 0 { Mood::Frightened } else { Mood::Hungry };
        let drawn: Vec<_> =
            (0..DRAWS).map(|_| oracle_ghost(&game.maze, env.ghosts[0].moved(mood, env.player, &game.maze, &mut rng))).collect();
        let moves = expected.ghost_moves(expected.ghosts[0]);
        for (ghost, _) in &moves {
            let p: f64 = moves.iter().filter(|m| m.0 == *ghost).map(|m| m.1).sum();
            let count = drawn.iter().filter(|drawn| *drawn == ghost).count() as f64;
            // five standard deviations of a binomial
            let n = DRAWS as f64;
            assert!((count - n * p).abs() <= 5.0 * (n * p * (1.0 - p)).sqrt() + 1e-9, "{count} of {n}, expected {p}");
        }
    }
}

/// What a cell has around it.
struct Surroundings {
    lines: [Vec<Cell>; 4],
    /// Not in sight, but near enough to smell.
    near: Vec<Cell>,
    /// Neither.
    far: CellSet,
    hiding_place: Cell,
}

impl Surroundings {
    fn new(maze: &Maze, cell: Cell) -> Self {
        let lines = Direction::ALL.map(|direction| maze.line(cell, direction));
        let hidden = maze.cells().filter(|other| *other != cell && !lines.iter().any(|line| line.contains(other)));
        let (near, far): (_, Vec<Cell>) = hidden.partition(|&other| maze.at(cell).near[2].contains(other));
        Surroundings { lines, near, hiding_place: far[0], far: far.into_iter().collect() }
    }
}

/// In each direction a piece of food or none and a ghost or none in sight, one more piece or none
/// to be smelt, but no food nearer than drawn, and far away food or none; perhaps a ghost on the
/// player, who eats and perhaps is powered.
fn arrange(env: &mut PocManEnvironment<&PocMan>, around: &Surroundings, rng: &mut Rng) {
    let game = env.game;
    let wherever = game.certain_food.union(&game.possible_food);
    let some = |cells: &[Cell], rng: &mut Rng| (rng.below(2) == 0 && !cells.is_empty()).then(|| cells[rng.below(cells.len())]);
    let ring = rng.below(4).checked_sub(1);
    let nearest = ring.map_or(0, |ring| usize::from(SMELLS[ring]));
    let mut food = CellSet::from_iter(some(&around.near, rng));
    for (ghost, line) in env.ghosts.iter_mut().zip(&around.lines) {
        some(&line[nearest.min(line.len())..], rng).into_iter().for_each(|cell| food.insert(cell));
        let places = &line[if rng.below(2) == 0 { 0 } else { line.len().saturating_sub(1) }..]; // at the end it hides little
        *ghost = Ghost::at(some(places, rng).unwrap_or(around.hiding_place));
    }
    if rng.below(2) == 0 {
        env.ghosts[rng.below(4)].cell = env.player;
    }
    if let Some(ring) = ring {
        food = food.minus(&game.maze.at(env.player).near[ring]);
    }
    if rng.below(2) == 0 {
        food = food.union(&around.far);
    }
    food.insert(env.player);
    env.food = food.minus(&food.minus(&wherever)); // both sets
    env.pills = game.maze.pills;
    env.power = rng.below(2) as u8;
}

#[test]
fn the_alphabet_is_exactly_what_can_occur() {
    // In corridors, at turnings and at crossings: enough to observe everything.
    const TRIES: [usize; 5] = [0, 0, 5_000, 20_000, 200_000];
    let mut rng = Seed(4).rng();
    for game in games() {
        let mut env = game.environment();
        let mut observed = vec![false; game.alphabet().observations().len()];
        for cell in game.maze.cells() {
            let around = Surroundings::new(&game.maze, cell);
            let rare = if game.maze.pills.contains(cell) { 8 } else { 1 }; // only here a caught player has power
            for _ in 0..rare * TRIES[game.maze.at(cell).exits.len()] {
                env.player = cell;
                arrange(&mut env, &around, &mut rng);
                observed[env.settle().observation.index()] = true;
            }
        }
        let symbols = game.alphabet().observations().iter().zip(observed);
        let missing: Vec<_> = symbols.filter(|(_, observed)| !observed).map(|(symbol, _)| symbol.to_string()).collect();
        assert!(missing.is_empty(), "{}: {missing:?}", missing.len());
    }
}

#[test]
fn names_are_in_the_order_of_the_codes_and_can_be_read() {
    for game in games() {
        let codes: Vec<u16> = game
            .alphabet()
            .observations()
            .iter()
            .map(|symbol| {
                let percept = Percept::parse(&symbol.name).expect("a name");
                let food = if symbol.name.contains("smell") { Food::Sensed } else { Food::Hidden };
                assert_eq!(percept.name(food), symbol.name);
                percept.code()
            })
            .collect();
        assert!(codes.is_sorted());
    }
    for wrong in
        ["N|none|no", "SN|none|no", "NN|none|no", "|none|no", "N||no", "N|S|maybe", "N|1|none|none|no", "N|2|S||no", "N|S|no|no"]
    {
        let labels = if wrong.matches('|').count() > 2 { "walls=|smell=|food=|ghosts=|power=" } else { "walls=|ghosts=|power=" };
        let name: Vec<String> = labels.split('|').zip(wrong.split('|')).map(|(label, part)| format!("{label}{part}")).collect();
        let is_right = wrong == "N|none|no";
        assert_eq!(describe(&name.join("|")).is_some(), is_right, "{wrong}");
        assert_eq!(describe(wrong), None, "{wrong}");
    }
}
