//! PocMan and S-PocMan as they are played.

use foretell::domains::{self, pocman};
use foretell::{End, Seed};

/// Mean return and mean length of 75 steps of uniformly random play, from 400 000 episodes of a
/// slow and literal program of the same rules.
const RANDOM_PLAY: [(&str, f64, f64); 2] = [("pocman", -170.12, 30.94), ("s-pocman", -202.94, 30.91)];
/// For 400 000 and our 20 000 episodes: 99 % of all means are within this many of our standard
/// errors of their expectation.
const SIGMAS: f64 = 2.576 * 1.025;

#[test]
fn random_play_has_the_known_return_and_length() {
    const EPISODES: usize = 20_000;
    for (name, expected_return, expected_length) in RANDOM_PLAY {
        let domain = domains::get(name).unwrap();
        assert_eq!((domain.horizon, domain.discount), (75, 0.99999));
        let (mut returns, mut lengths, mut caught) = (Vec::new(), Vec::new(), 0);
        for z in domains::sample(&domain, EPISODES, domain.horizon, Seed(3)) {
            returns.push(z.rewards.iter().flatten().sum());
            lengths.push(z.steps.len() as f64);
            caught += usize::from(z.end == End::Terminated);
        }
        assert_mean(&returns, expected_return);
        assert_mean(&lengths, expected_length);
        let share = caught as f64 / EPISODES as f64;
        assert!((share - 0.937).abs() < SIGMAS * (0.937 * 0.063 / EPISODES as f64).sqrt() + 0.0005, "{share}");
    }
}

fn assert_mean(values: &[f64], expected: f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
    let limit = SIGMAS * (variance / n).sqrt() + 0.005;
    assert!((mean - expected).abs() < limit, "{mean} is not {expected} ± {limit}");
}

#[test]
fn observations_have_names_that_can_be_said_in_words() {
    for name in ["pocman", "s-pocman"] {
        let domain = domains::get(name).unwrap();
        for symbol in domain.alphabet().observations() {
            let words = pocman::describe(&symbol.name).unwrap();
            assert!(words.ends_with('.') && words.to_lowercase().contains("wall"), "{symbol}: {words}");
        }
    }
}

#[test]
fn the_alphabets_contain_what_can_occur() {
    let sizes = ["pocman", "s-pocman"].map(|name| {
        let domain = domains::get(name).unwrap();
        assert_eq!(domain.alphabet().actions(), ["N", "E", "W", "S"]);
        let observations = domain.alphabet().observations();
        (observations.len(), observations.iter().filter(|o| o.terminal).count())
    });
    assert_eq!(sizes, [(6240, 2262), (268, 124)]);
}

#[test]
fn observations_are_said_in_words() {
    for (name, words) in [
        ("walls=none|smell=2|food=none|ghosts=none|power=no", "No walls around. You smell food at most 2 steps away."),
        ("walls=NE|ghosts=SW|power=no", "Walls north and east. Ghosts in sight to the south and west."),
        (
            "walls=S|smell=4|food=NEW|ghosts=none|power=no",
            "A wall south. You smell food 4 steps away. Food in sight to the north, east and west.",
        ),
        ("walls=NS|ghosts=none|power=yes", "Walls north and south. You are powered up: ghosts flee."),
    ] {
        assert_eq!(pocman::describe(name).as_deref(), Some(words));
    }
    assert_eq!(pocman::describe("walls=X"), None);
}

#[test]
fn a_picture_shows_the_game() {
    let domain = domains::get("s-pocman").unwrap();
    assert!(domain.pomdp().is_none());
    let mut env = domain.environment();
    let mut rng = Seed(1).rng();
    env.reset(&mut rng);
    assert_eq!(
        env.picture(),
        "\
###################
#  .     .     .  #
# ## ### # ### ## #
#o               o#
# ## # ##### # ## #
#    #   #   #    #
#### ### # ### ####
#### #       # ####
#### # # AB# # ####
<    # # CD# #    >
#### # ##### # ####
#### #       # ####
#### # ##### # ####
#        P        #
# ## ### # ### ## #
#o #           # o#
## # # ##### # # ##
# .  #   #   #  . #
# ###### # ###### #
#        .        #
###################
"
    );
    for a in "WWWWWWWWSSE".chars() {
        let a = domain.alphabet().action(&a.to_string()).unwrap();
        env.step(a, &mut rng);
    }
    let picture = env.picture();
    assert!(picture.contains("# P#           # o#"), "no pill, no food, the player has moved on: {picture}");
    assert!(["a", "b", "c", "d"].iter().all(|ghost| picture.matches(ghost).count() == 1), "frightened ghosts: {picture}");
}
