use rayon::ThreadPoolBuilder;

use super::fit::{Budget, FittedNetwork};
use super::trainer::{Pace, Steps, Trainer};
use super::training::Training;
use crate::data::{Action, ActionObservation, Alphabet, End, Factors, Observation, Trajectory};
use crate::model::{Choices, Recurrent, Shape};
use crate::rng::Seed;

const ACTIONS: u32 = 2;

/// Observations of two parts, not all of which occur together; some end the episode.
fn alphabet() -> Alphabet {
    let mut alphabet = Alphabet::default();
    (0..ACTIONS).for_each(|a| _ = alphabet.intern_action(&a.to_string()));
    for (name, terminal) in
        [("a|x", false), ("a|y", false), ("b|x", false), ("c|y", false), ("c|z", false), ("a|x", true), ("c|y", true)]
    {
        alphabet.intern(name, terminal);
    }
    alphabet
}

/// Random episodes of different lengths.
fn episodes(number: usize, seed: u64) -> Vec<Vec<ActionObservation>> {
    let mut rng = Seed(seed).rng();
    let episode = |i: usize| {
        let mut step = |end: bool| {
            let o = if end { 5 + rng.below(2) } else { rng.below(5) };
            ActionObservation::new(rng.below(ACTIONS as usize) as u32, o as u32)
        };
        (0..=i % 7).map(|t| step(t == 6)).collect()
    };
    (0..number).map(episode).collect()
}

fn longest_first(episodes: &[Vec<ActionObservation>]) -> Vec<Steps<'_>> {
    let mut steps: Vec<_> = episodes.iter().map(|z| &z[..]).collect();
    steps.sort_by_key(|z| std::cmp::Reverse(z.len()));
    steps
}

/// By parts, and as whole symbols.
fn both() -> [Choices; 2] {
    let alphabet = alphabet();
    [Factors::of(&alphabet), Factors::whole(alphabet.observations().len())].map(|factors| Choices::new(&alphabet, &factors))
}

#[test]
fn gradients_are_those_of_finite_differences() {
    /// Few units change their sign over this length, and differences are far above rounding errors.
    const STEP: f32 = 2e-3;
    /// The sum of both errors, relative to the norm of a block's gradient.
    const TOLERANCE: f64 = 1e-2;
    let episodes = episodes(9, 1);
    let episodes = longest_first(&episodes);
    for choices in both() {
        let mut trainer = Trainer::new(&choices, ACTIONS as usize, 6, 5, Seed(3));
        let gradient = trainer.gradient(&episodes);
        let shape = Shape { actions: ACTIONS as usize, values: choices.total(), hidden: 6 };
        let blocks = shape.blocks();
        let mut rng = Seed(5).rng();
        for block in [
            blocks.action,
            blocks.value,
            blocks.recurrence,
            blocks.gates,
            blocks.inner,
            blocks.inner_bias,
            blocks.revealed,
            blocks.out,
            blocks.out_bias,
        ] {
            let norm = gradient[block.clone()].iter().map(|g| f64::from(*g).powi(2)).sum::<f64>().sqrt();
            for _ in 0..4 {
                // A random direction of length 1.
                let side = 1.0 / (block.len() as f32).sqrt();
                let direction: Vec<f32> = block.clone().map(|_| if rng.bits() & 1 == 0 { side } else { -side }).collect();
                let expected: f64 = gradient[block.clone()].iter().zip(&direction).map(|(g, d)| f64::from(g * d)).sum();
                let weights = trainer.weights.clone();
                let mut shifted = |by: f32| {
                    trainer.weights.copy_from_slice(&weights);
                    trainer.weights[block.clone()].iter_mut().zip(&direction).for_each(|(w, d)| *w += by * d);
                    -trainer.score(&episodes)
                };
                let difference = (shifted(STEP) - shifted(-STEP)) / f64::from(2.0 * STEP);
                trainer.weights.copy_from_slice(&weights);
                assert!(
                    (difference - expected).abs() <= TOLERANCE * (norm + 0.1),
                    "{block:?}: {difference}, {expected} of {norm}"
                );
            }
        }
    }
}

#[test]
fn probabilities_sum_to_one_and_agree_with_those_of_a_lane() {
    /// Of sums in single precision.
    const ROUNDING: f64 = 1e-4;
    let episodes = episodes(8, 2);
    for choices in both() {
        let trainer = Trainer::new(&choices, ACTIONS as usize, 5, 5, Seed(4));
        let net = trainer.network(trainer.weights.clone());
        let (mut sum, mut scratch) = (0.0, Default::default());
        for z in &episodes {
            let mut h = vec![0.0; 5];
            let mut last = net.start_input().to_vec();
            for ao in z {
                net.add_action(ao.action, 1.0, &mut last);
                net.step(&last, &mut h, &mut scratch);
                let mut p = vec![0.0; choices.symbols()];
                net.probabilities(&h, &mut scratch, &mut p);
                assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-12);
                assert!(p.iter().all(|&p| p > 0.0));
                let log = net.log_probability(&h, &mut scratch, ao.observation);
                assert!((log - p[ao.observation.index()].ln()).abs() < 1e-12);
                sum += log;
                last.fill(0.0);
                net.add_observation(ao.observation, 1.0, &mut last);
            }
        }
        let scored = trainer.score(&longest_first(&episodes));
        assert!((scored - sum).abs() < ROUNDING, "{scored} and {sum}");
    }
}

#[test]
fn a_missing_observation_is_not_predicted_and_what_follows_is() {
    let whole = episodes(7, 2);
    let mut gaps = whole.clone();
    gaps.iter_mut().for_each(|z| z[0].observation = Observation(u32::MAX));
    for choices in both() {
        let trainer = Trainer::new(&choices, ACTIONS as usize, 5, 5, Seed(4));
        let first: Vec<Steps<'_>> = gaps.iter().map(|z| &z[..1]).collect();
        assert_eq!(trainer.score(&first), 0.0);
        assert!(trainer.gradient(&first).iter().all(|g| *g == 0.0));
        let (with, without) = (trainer.score(&longest_first(&whole)), trainer.score(&longest_first(&gaps)));
        assert!(with < without && without < 0.0, "{with} {without}");
        assert!(trainer.gradient(&longest_first(&gaps)).iter().all(|g| g.is_finite()));
    }
}

#[test]
fn weights_set_by_hand_remember_the_first_observation() {
    // The first observation is left or right. Then `look` observes it again, and `wait` observes
    // `corridor`, in any order and however long after.
    let mut alphabet = Alphabet::default();
    for name in ["wait", "look"] {
        alphabet.intern_action(name);
    }
    let [left, right, corridor] = ["left", "right", "corridor"].map(|name| alphabet.intern_observation(name));
    let choices = Choices::new(&alphabet, &Factors::of(&alphabet));
    let shape = Shape { actions: 2, values: 3, hidden: 2 };
    let (blocks, mut weights) = (shape.blocks(), vec![0.0; shape.weights()]);
    const LARGE: f32 = 40.0;
    // Gates of unit 0 (memory) and of unit 1 (is the action `look`?): z, z, g, g, new, new.
    weights[blocks.gates].copy_from_slice(&[-LARGE, LARGE, 0.0, 0.0, 0.0, 0.0]);
    weights[blocks.action].copy_from_slice(&[0.0, 0.0, 0.0, 0.0, 0.0, -LARGE, 0.0, 0.0, 0.0, 0.0, 0.0, LARGE]);
    let (remember, forget) = ([2.0 * LARGE, 0.0, 0.0, 0.0], [0.0; 4]);
    for (row, (gates, new)) in [(remember, LARGE), (remember, -LARGE), (forget, 0.0)].into_iter().enumerate() {
        weights[blocks.value.start + row * 6..][..4].copy_from_slice(&gates);
        weights[blocks.value.start + row * 6 + 4] = new;
    }
    // Inner units: left (right) is remembered and the action is `look`.
    weights[blocks.inner].copy_from_slice(&[1.0, -1.0, 1.0, 1.0]);
    weights[blocks.inner_bias].copy_from_slice(&[-1.0, -1.0]);
    weights[blocks.out.start + 2] = LARGE;
    weights[blocks.out.start + 4 + 3] = LARGE;
    weights[blocks.out_bias.start + 2] = LARGE / 2.0;
    let net = Recurrent::new(shape, weights, choices);
    for first in [left, right] {
        let (mut h, mut scratch) = (vec![0.0; 2], Default::default());
        let mut observe = |h: &mut Vec<f32>, before: Observation, look: bool| {
            let mut input = vec![0.0; 6];
            net.add_observation(before, 1.0, &mut input);
            net.add_action(Action(u32::from(look)), 1.0, &mut input);
            net.step(&input, h, &mut scratch);
            let mut p = vec![0.0; 3];
            net.probabilities(h, &mut scratch, &mut p);
            p
        };
        let mut before = first;
        for t in 0..60 {
            let look = t % 3 == 1;
            let expected = if look { first } else { corridor };
            let p = observe(&mut h, before, look);
            assert!(p[expected.index()] > 1.0 - 1e-6, "step {t}: {p:?}");
            // What `look` shows says nothing new: the memory is set again to the same.
            before = expected;
        }
    }
}

#[test]
fn the_number_of_threads_does_not_change_a_bit() {
    let episodes = episodes(70, 6);
    let episodes = longest_first(&episodes);
    let pace = Pace { rate: 5e-3, decay: 0.1, dropout: true };
    let [choices, _] = both();
    let trained = |threads: usize| {
        let pool = ThreadPoolBuilder::new().num_threads(threads).build().expect("threads can be started");
        pool.install(|| {
            let mut trainer = Trainer::new(&choices, ACTIONS as usize, 8, 5, Seed(7));
            (0..2).for_each(|_| _ = trainer.pass(&episodes, pace));
            (trainer.weights.clone(), trainer.score(&episodes))
        })
    };
    let one = trained(1);
    assert_eq!(one, trained(3));
    assert!(one.0.iter().all(|w| w.is_finite()));
}

#[test]
fn training_never_ends_worse_than_it_starts_on_held_out_steps() {
    // Random episodes have nothing to learn but frequencies: a network of this size overfits at once.
    let (training, held_out) = (episodes(40, 11), episodes(30, 12));
    let [choices, _] = both();
    let mut run = Training::new(&choices, ACTIONS as usize, 16, longest_first(&training), longest_first(&held_out), Seed(1));
    let mut best = run.best();
    let start = best;
    let mut passes = 0;
    for passed in run.by_ref() {
        assert!(passed.best >= best && passed.best >= passed.nats);
        best = passed.best;
        passes += 1;
    }
    assert!(best > start && (4..200).contains(&passes), "{start} to {best} in {passes} passes");
    let judge = Trainer::of(&run.network(), Seed(0)).score(&longest_first(&held_out));
    let steps: usize = held_out.iter().map(Vec::len).sum();
    assert_eq!(judge / steps as f64, best, "the network is the best one");
}

#[test]
fn a_rate_that_blows_up_every_weight_leaves_a_finite_network() {
    let episodes = episodes(40, 13);
    let [choices, _] = both();
    for rate in [1e3, 1e30, f32::MAX, f32::NAN] {
        let mut run = Training::new(&choices, ACTIONS as usize, 8, longest_first(&episodes), longest_first(&episodes), Seed(2));
        run.pace.rate = rate;
        let start = run.best();
        assert!(run.by_ref().take(10).count() > 0);
        assert!(run.best().is_finite() && run.best() >= start, "rate {rate}: {}", run.best());
        assert!(run.network().weights.iter().all(|w| w.is_finite()), "rate {rate}");
    }
}

#[test]
fn more_passes_over_all_episodes_keep_what_was_learned() {
    // The observation is that of the step before, except for the first.
    let repeating = |seed: u64| {
        let mut rng = Seed(seed).rng();
        let o = rng.below(5) as u32;
        let steps: Vec<_> = (0..6).map(|_| ActionObservation::new(rng.below(2) as u32, o)).collect();
        Trajectory {
            rewards: vec![None; 6],
            action_probabilities: Vec::new(),
            end: End::Truncated,
            steps,
            about: Default::default(),
        }
    };
    let logs: Vec<Trajectory> = (0..200).map(repeating).collect();
    let budget = Budget { work: 1e9, rival: None };
    let fitted = FittedNetwork::of(&alphabet(), &logs, 16, budget, Seed(3)).expect("there are enough episodes");
    let unseen: Vec<Trajectory> = (1000..1100).map(repeating).collect();
    let unseen: Vec<Steps<'_>> = unseen.iter().map(|z| &z.steps[..]).collect();
    // ln 5 nats for the first step and none for the others.
    let exact = -5f64.ln();
    for net in [&fitted.net, &fitted.extended(&logs)] {
        let nats = Trainer::of(net, Seed(0)).score(&unseen) / unseen.len() as f64;
        assert!((exact - 0.2..exact + 0.1).contains(&nats), "{nats} nats an episode, not {exact}");
    }
    assert!(FittedNetwork::of(&alphabet(), &logs[..1], 16, budget, Seed(3)).is_none());
}
