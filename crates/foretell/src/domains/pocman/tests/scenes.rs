//! Scenes set by hand.

use super::*;

/// A corner of the maze that no ghost notices from home.
const CORNER: Position = (1, 1);

/// A game with the player somewhere and all ghosts at home.
fn scene(game: &PocMan, player: Position) -> PocManEnvironment<&PocMan> {
    let mut env = game.environment();
    env.player = cell(&game.maze, player);
    env
}

/// The player in a corridor, and ghosts that must step on the cell to the east.
fn ambush(game: &PocMan, ghosts: usize) -> PocManEnvironment<&PocMan> {
    let mut env = scene(game, (19, 3));
    env.ghosts[..ghosts].fill(Ghost { cell: cell(&game.maze, (19, 5)), heading: Some(Direction::West) });
    env.food = cells(game, &[CORNER]);
    env
}

fn cells(game: &PocMan, positions: &[Position]) -> CellSet {
    positions.iter().map(|&position| cell(&game.maze, position)).collect()
}

/// The reward of a step and whether it ends the episode.
fn act(env: &mut PocManEnvironment<&PocMan>, letter: char) -> (f64, bool) {
    let a = LETTERS.into_iter().position(|l| l == letter).expect("an action");
    let outcome = env.step(Action(a as u32), &mut Seed(5).rng());
    (outcome.reward, env.alphabet().is_terminal(outcome.observation))
}

#[test]
fn the_game_begins_as_on_the_map_without_power() {
    for game in games() {
        let mut env = game.environment();
        (env.player, env.pills, env.power) = (cell(&game.maze, CORNER), CellSet::EMPTY, 3);
        env.reset(&mut Seed(1).rng());
        assert_eq!(position(&game.maze, env.player), (13, 9));
        assert_eq!(env.ghosts.map(|ghost| position(&game.maze, ghost.cell)), [(8, 9), (8, 10), (9, 9), (9, 10)]);
        assert_eq!((env.power, env.pills), (0, cells(&game, &[(3, 1), (3, 17), (15, 1), (15, 17)])));
    }
}

#[test]
fn food_is_drawn_at_random_or_in_fixed_cells() {
    const EPISODES: usize = 2_000;
    let [plentiful, sparse] = games();
    let (mut env, mut rng) = (plentiful.environment(), Seed(2).rng());
    let mut counts = vec![0; plentiful.maze.cells().count()];
    for _ in 0..EPISODES {
        env.reset(&mut rng);
        plentiful.maze.cells().zip(&mut counts).for_each(|(cell, count)| *count += usize::from(env.food.contains(cell)));
    }
    // five standard deviations of a binomial(2000, ½)
    assert_eq!(counts.iter().filter(|count| (889..=1111).contains(*count)).count(), 158);
    assert_eq!(counts.iter().filter(|count| **count == 0).count(), 189 - 158);
    let mut env = sparse.environment();
    env.reset(&mut rng);
    assert_eq!(env.food, cells(&sparse, &[(1, 3), (1, 9), (1, 15), (8, 9), (17, 2), (17, 16), (19, 9)]));
}

#[test]
fn a_wall_costs_ten_and_a_step_one() {
    for game in games() {
        let mut env = scene(&game, CORNER);
        assert_eq!(act(&mut env, 'S'), (if game.food_is_sensed { 9.0 } else { -1.0 }, false));
        assert_eq!(act(&mut env, 'W'), (-11.0, false));
        assert_eq!(position(&game.maze, env.player), (2, 1));
    }
}

#[test]
fn the_tunnel_leads_to_the_other_side() {
    let game = PocMan::sparse();
    let mut env = scene(&game, (9, 1));
    assert_eq!(act(&mut env, 'W'), (-1.0, false));
    assert_eq!(position(&game.maze, env.player), (9, 17));
    assert_eq!(act(&mut env, 'E'), (-1.0, false));
    assert_eq!(position(&game.maze, env.player), (9, 1));
    // Ghosts go through it too, and on.
    let ghost = Ghost { cell: env.player, heading: Some(Direction::West) };
    let moved = ghost.moved(Mood::Hungry, cell(&game.maze, (19, 9)), &game.maze, &mut Seed(1).rng());
    assert_eq!(moved, Ghost { cell: cell(&game.maze, (9, 17)), heading: Some(Direction::West) });
    // A mouth is not a wall, but nothing is seen through it.
    env.ghosts[0] = moved;
    assert_eq!(env.percept().walls, [Direction::North, Direction::South].into_iter().collect());
    assert_eq!(env.percept().senses.ghosts, Directions::NONE);
}

#[test]
fn being_caught_costs_fifty_for_each_ghost_and_ends_the_episode() {
    for game in games() {
        for ghosts in 1..=4 {
            assert_eq!(act(&mut ambush(&game, ghosts), 'E'), (-1.0 - 50.0 * ghosts as f64, true));
        }
    }
}

#[test]
fn a_player_that_swaps_cells_with_a_ghost_is_not_caught() {
    let game = PocMan::sparse();
    let mut env = ambush(&game, 1);
    env.ghosts[0].cell = cell(&game.maze, (19, 4));
    assert_eq!(act(&mut env, 'E'), (-1.0, false));
    assert_eq!([env.player, env.ghosts[0].cell].map(|cell| position(&game.maze, cell)), [(19, 4), (19, 3)]);
}

#[test]
fn a_player_with_power_eats_ghosts_which_start_again_at_home() {
    for game in games() {
        let mut env = ambush(&game, 2);
        (env.ghosts[0].cell, env.ghosts[1].cell, env.power) = (env.player, env.player, 1);
        let outcome = env.settle();
        assert_eq!((outcome.reward, env.alphabet().is_terminal(outcome.observation)), (50.0, false));
        assert_eq!(env.ghosts, game.maze.ghosts.map(Ghost::at));
    }
}

#[test]
fn a_pill_frightens_ghosts_for_sixteen_moves_and_protects_for_fifteen() {
    for game in games() {
        let mut env = scene(&game, (2, 1));
        env.food = cells(&game, &[(19, 9)]);
        assert_eq!(act(&mut env, 'S'), (-1.0, false), "a pill has no reward");
        assert!(env.percept().powered && !env.pills.contains(env.player));
        for moves in 1..=18 {
            assert_eq!(approaches(&env), moves > 16, "ghosts in move {moves}");
            act(&mut env, 'W');
            assert_eq!(env.percept().powered, moves <= 15);
            let mut meeting = env.clone();
            meeting.ghosts[0].cell = meeting.player;
            assert_eq!(meeting.settle().reward, if moves <= 15 { 25.0 } else { -50.0 }, "the player in move {moves}");
        }
    }
}

/// Whether a ghost three cells east of the player ever steps west.
fn approaches(env: &PocManEnvironment<&PocMan>) -> bool {
    let mut rng = Seed(9).rng();
    (0..50).any(|_| {
        let mut env = env.clone();
        env.ghosts[0] = Ghost::at(cell(&env.game.maze, (3, 4)));
        env.move_ghosts(&mut rng);
        env.ghosts[0].heading == Some(Direction::West)
    })
}

#[test]
fn a_second_pill_restarts_the_count() {
    let game = PocMan::sparse();
    let mut env = scene(&game, (2, 1));
    env.power = 9;
    act(&mut env, 'S');
    assert_eq!(env.power, PILL_POWER);
}

#[test]
fn a_pill_does_not_save_a_player_that_meets_a_ghost_on_it() {
    let game = PocMan::sparse();
    let mut env = scene(&game, (3, 1));
    env.ghosts[0].cell = env.player;
    let outcome = env.settle();
    assert_eq!(outcome.reward, -50.0);
    assert_eq!(env.alphabet().symbol(outcome.observation).to_string(), "walls=W|ghosts=none|power=yes [end]");
}

#[test]
fn the_last_food_clears_the_maze() {
    for (game, [food, last]) in games().iter().zip([[9.0, 109.0], [99.0, 1099.0]]) {
        let mut env = scene(game, (1, 5));
        env.food = cells(game, &[(1, 3), (1, 4)]);
        assert_eq!(act(&mut env, 'W'), (food, false));
        assert_eq!(act(&mut env, 'W'), (last, true));
    }
}

#[test]
fn food_eaten_while_being_caught_counts() {
    let game = PocMan::plentiful();
    let mut env = scene(&game, (19, 3));
    env.ghosts[0].cell = env.player;
    env.food = cells(&game, &[(19, 3)]);
    assert_eq!(env.settle().reward, 10.0 + 100.0 - 50.0);
}

#[test]
fn hungry_ghosts_approach_and_frightened_ones_flee_or_freeze() {
    let maze = Maze::new();
    let player = cell(&maze, (13, 7));
    let ghost = Ghost::at(cell(&maze, (13, 4))); // at a crossing, three columns west of the player
    let count = |mood, heading| {
        let mut rng = Seed(6).rng();
        (0..1000).filter(|_| ghost.moved(mood, player, &maze, &mut rng).heading == heading).count()
    };
    // ¾ + ¼ · ¼, ¾ and ¼ of 1000, four standard deviations
    assert!((764..=861).contains(&count(Mood::Hungry, Some(Direction::East))));
    assert!((696..=804).contains(&count(Mood::Frightened, Some(Direction::West))));
    assert!((196..=304).contains(&count(Mood::Frightened, None)));
}

#[test]
fn a_ghost_notices_the_player_five_steps_away() {
    let maze = Maze::new();
    let ghost = Ghost::at(cell(&maze, (13, 4)));
    let turns_to = |column| {
        let mut rng = Seed(7).rng();
        let player = cell(&maze, (13, column));
        (0..200).any(|_| ghost.moved(Mood::Frightened, player, &maze, &mut rng).heading == Some(Direction::East))
    };
    assert!(!turns_to(9), "frightened ghosts flee");
    assert!(turns_to(10), "other ghosts go anywhere");
}

#[test]
fn a_ghost_hides_the_food_under_and_behind_it() {
    let game = PocMan::plentiful();
    let mut env = scene(&game, (19, 9));
    let mut seen = |food: i32, ghost: i32| {
        env.food = cells(&game, &[(19, food)]);
        env.ghosts[3].cell = cell(&game.maze, (19, ghost));
        let Senses { food, ghosts, .. } = env.percept().senses;
        (food.contains(Direction::East), ghosts.contains(Direction::East))
    };
    assert_eq!(seen(12, 13), (true, true));
    assert_eq!(seen(13, 13), (false, true));
    assert_eq!(seen(14, 13), (false, true));
    assert_eq!(seen(14, 8), (true, false));
}

#[test]
fn food_is_smelt_through_walls_in_all_directions() {
    let game = PocMan::plentiful();
    let smell = |player: Position, food: Position| {
        let mut env = scene(&game, player);
        env.food = cells(&game, &[food]);
        env.percept().senses.smell
    };
    let start = (13, 9);
    for (food, steps) in [((13, 10), 2), ((13, 7), 2), ((15, 8), 3), ((15, 11), 4), ((13, 13), 4), ((13, 5), 4)] {
        assert_eq!(smell(start, food), Some(steps), "{food:?}");
    }
    assert_eq!((smell(start, (13, 4)), smell(start, (15, 12))), (None, None));
    assert_eq!((smell((17, 8), (13, 8)), smell((13, 8), (17, 8))), (Some(4), Some(4)), "four rows up or down");
}
