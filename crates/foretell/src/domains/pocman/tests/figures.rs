//! Figures of another program, written independently after the authors' code, with its deviations
//! from the intended rules. With these deviations the oracle gives the same figures. Other tests
//! show that the games agree with the oracle without deviations.

use super::oracle::{Deviations, Game, INTENDED, arrive, opposite};
use super::*;

const EPISODES: usize = 3_000;
/// Standard errors within which 95 % and 99 % of all means are.
const SIGMAS_95: f64 = 1.96;
const SIGMAS_99: f64 = 2.576;

#[derive(Clone, Copy, Debug)]
enum Player {
    /// Any action.
    Uniform,
    /// Any action but into walls.
    Open,
    /// Where food is seen and no ghost; else where no ghost is seen and not back; else where no
    /// ghost is seen.
    Forager,
}

/// Mean return in 75 steps and half its 95 % interval, mean length, share of episodes in which the
/// player is caught.
struct Figures {
    sparse: bool,
    deviations: Deviations,
    player: Player,
    mean: f64,
    interval: f64,
    length: f64,
    caught: f64,
}

const AS_CODED: Deviations = Deviations { counter: 0, forgetful: true, blind: true };
/// Ghosts chase as intended; the rest is as coded.
const CHASING: Deviations = Deviations { blind: false, ..AS_CODED };

#[rustfmt::skip]
const OTHER_PROGRAM: [Figures; 7] = [
    Figures { sparse: false, deviations: CHASING,  player: Player::Uniform, mean: -150.6, interval: 3.0, length: 25.8, caught: 0.98 },
    Figures { sparse: true,  deviations: CHASING,  player: Player::Uniform, mean: -184.1, interval: 3.4, length: 26.6, caught: 0.97 },
    Figures { sparse: false, deviations: AS_CODED, player: Player::Uniform, mean: -245.1, interval: 4.6, length: 51.6, caught: 0.57 },
    Figures { sparse: true,  deviations: AS_CODED, player: Player::Uniform, mean: -283.8, interval: 5.1, length: 50.7, caught: 0.59 },
    Figures { sparse: false, deviations: AS_CODED, player: Player::Open,    mean:   -9.2, interval: 2.0, length: 51.9, caught: 0.55 },
    Figures { sparse: true,  deviations: AS_CODED, player: Player::Open,    mean:  -57.0, interval: 2.3, length: 52.9, caught: 0.54 },
    Figures { sparse: false, deviations: AS_CODED, player: Player::Forager, mean:  110.9, interval: 4.3, length: 63.7, caught: 0.29 },
];

/// Figures of 400 000 episodes of the oracle without the deviations.
#[rustfmt::skip]
const WITHOUT_DEVIATIONS: [Figures; 8] = [
    Figures { sparse: false, deviations: Deviations { forgetful: false, ..CHASING }, player: Player::Uniform, mean: -166.76, interval: 0.26, length: 30.06, caught: 0.939 },
    Figures { sparse: false, deviations: Deviations { counter: -1, ..CHASING },      player: Player::Uniform, mean: -156.67, interval: 0.22, length: 27.59, caught: 0.973 },
    Figures { sparse: false, deviations: INTENDED,                               player: Player::Uniform, mean: -170.12, interval: 0.26, length: 30.94, caught: 0.937 },
    Figures { sparse: true,  deviations: Deviations { forgetful: false, ..CHASING }, player: Player::Uniform, mean: -199.24, interval: 0.28, length: 30.12, caught: 0.939 },
    Figures { sparse: true,  deviations: Deviations { counter: -1, ..CHASING },      player: Player::Uniform, mean: -188.50, interval: 0.23, length: 27.60, caught: 0.973 },
    Figures { sparse: true,  deviations: INTENDED,                               player: Player::Uniform, mean: -202.94, interval: 0.28, length: 30.91, caught: 0.937 },
    Figures { sparse: false, deviations: INTENDED,                               player: Player::Open,    mean:  -20.54, interval: 0.11, length: 39.62, caught: 0.787 },
    Figures { sparse: true,  deviations: INTENDED,                               player: Player::Open,    mean:  -64.29, interval: 0.12, length: 39.68, caught: 0.787 },
];

/// A mean and the variance of the sample.
#[derive(Clone, Copy, Debug, Default)]
struct Moments {
    mean: f64,
    variance: f64,
}

/// Of return, length, and being caught.
fn play(sparse: bool, deviations: Deviations, player: Player) -> [Moments; 3] {
    let mut sums = [(0.0, 0.0); 3];
    for episode in 0..EPISODES {
        let values = play_once(Game::start(sparse, deviations), player, &mut Seed(8).index(episode as u64).rng());
        sums.iter_mut().zip(values).for_each(|(sum, x)| *sum = (sum.0 + x, sum.1 + x * x));
    }
    let n = EPISODES as f64;
    sums.map(|(sum, squares)| Moments { mean: sum / n, variance: squares / n - (sum / n).powi(2) })
}

fn play_once(mut game: Game, player: Player, rng: &mut Rng) -> [f64; 3] {
    game.place_food(rng);
    let [mut total, mut length, mut caught] = [0.0; 3];
    let mut last = None;
    while length < HORIZON as f64 {
        let letter = choose(&game, player, last, rng);
        last = Some(letter);
        game.move_ghosts(rng);
        let account = game.move_player(letter);
        total += account.reward(game.sparse);
        length += 1.0;
        if account.ends() {
            caught = f64::from(account.caught.min(1));
            break;
        }
    }
    [total, length, caught]
}

fn choose(game: &Game, player: Player, last: Option<char>, rng: &mut Rng) -> char {
    let open: Vec<char> = LETTERS.into_iter().filter(|&letter| arrive(game.player, letter).is_some()).collect();
    let choice = match player {
        Player::Uniform => LETTERS.to_vec(),
        Player::Open => open,
        Player::Forager => forage(game.code(), &open, last),
    };
    choice[rng.below(choice.len())]
}

/// The moves among which the forager chooses, from what it observes in PocMan.
fn forage(code: u32, open: &[char], last: Option<char>) -> Vec<char> {
    let bit = |group: usize, letter: char| {
        let direction = ['N', 'E', 'S', 'W'].iter().position(|&l| l == letter).expect("a letter");
        code >> (group + direction) & 1 == 1
    };
    let (food, ghost) = (|letter| bit(7, letter), |letter| bit(11, letter));
    let among = |wanted: &dyn Fn(char) -> bool| open.iter().copied().filter(|&letter| wanted(letter)).collect::<Vec<_>>();
    let choices = [
        among(&|letter| food(letter) && !ghost(letter)),
        among(&|letter| !ghost(letter) && Some(letter) != opposite(last)),
        among(&|letter| !ghost(letter)),
        open.to_vec(),
    ];
    choices.into_iter().find(|choice| !choice.is_empty()).expect("no cell is closed")
}

/// The oracle's figures are within 99 % intervals of those given, made from the standard errors of
/// both.
fn assert_played(figures: &[Figures]) {
    for figures in figures {
        let Figures { sparse, deviations, player, .. } = *figures;
        let [total, length, caught] = play(sparse, deviations, player);
        // The interval gives the number of episodes behind the given figures, which are rounded.
        let episodes = total.variance / (figures.interval / SIGMAS_95).powi(2);
        for (Moments { mean, variance }, expected, rounding) in
            [(total, figures.mean, 0.05), (length, figures.length, 0.05), (caught, figures.caught, 0.005)]
        {
            let standard_error = (variance / EPISODES as f64 + variance / episodes).sqrt();
            let limit = SIGMAS_99 * standard_error + rounding;
            assert!((mean - expected).abs() < limit, "{player:?}, {deviations:?}: {mean} is not {expected} ± {limit}");
        }
    }
}

#[test]
fn with_the_deviations_of_the_authors_code_the_figures_agree_with_another_program() {
    assert_played(&OTHER_PROGRAM);
}

#[test]
fn ghosts_that_never_turn_back_and_chase_from_the_start_change_the_figures() {
    assert_played(&WITHOUT_DEVIATIONS);
}
