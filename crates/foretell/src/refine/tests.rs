//! The true parameters are a fixed point of EM; streaming equals memory.

use rustc_hash::FxHashSet;

use super::data::Data;
use super::latent::{HardCounts, Latent};
use super::layout::{Layout, Seen, Triple};
use super::refinement::*;
use super::{EmRound, RefineParams, StateCount};
use crate::data::{ActionObservation, Alphabet, End, Trajectory};
use crate::domains;
use crate::error::Result;
use crate::learn::learn;
use crate::log::Logs;
use crate::model::{LearnParams, Model, StateLayout};
use crate::rng::Seed;
use crate::store::Checkpoint;

/// Two actions, two observations that do not end the episode and one that does.
fn alphabet() -> Alphabet {
    let mut alphabet = Alphabet::default();
    ["a", "b"].iter().for_each(|name| {
        alphabet.intern_action(name);
    });
    ["x", "y"].iter().for_each(|name| {
        alphabet.intern_observation(name);
    });
    alphabet.intern_terminal_observation("x");
    alphabet
}

/// All episodes with the given actions, shorter where they end.
fn episodes(alphabet: &Alphabet, actions: &[u32]) -> Vec<Vec<ActionObservation>> {
    let Some((&a, rest)) = actions.split_first() else { return vec![Vec::new()] };
    let mut all = Vec::new();
    for o in 0..alphabet.observations().len() as u32 {
        let first = ActionObservation::new(a, o);
        let after = if alphabet.is_terminal(first.observation) { vec![Vec::new()] } else { episodes(alphabet, rest) };
        all.extend(after.into_iter().map(|rest| [vec![first], rest].concat()));
    }
    all
}

/// Rows of positive numbers that sum to one, none of them too small.
fn rows(count: usize, width: usize, seed: u64) -> Vec<f64> {
    let mut rng = Seed(seed).rng();
    let row = |_| {
        let row: Vec<f64> = (0..width).map(|_| 0.2 + rng.uniform()).collect();
        let sum: f64 = row.iter().sum();
        row.into_iter().map(move |x| x / sum).collect::<Vec<f64>>()
    };
    (0..count).flat_map(row).collect()
}

/// The weight of all episodes: large enough to make the priors, worth a few steps, negligible.
const MANY_TIMES: f64 = 1e12;
/// The remaining effect of the priors, and rounding.
const PRIOR_LEFT: f64 = 1e-9;

/// Symbols that were all seen once, in these sequences.
fn seen(alphabet: &Alphabet, triples: impl IntoIterator<Item = Triple>) -> Seen {
    let (actions, symbols) = (alphabet.actions().len() as u32, alphabet.observations().len() as u32);
    let pairs = (0..actions).flat_map(|a| (0..symbols).map(move |o| ((a, o), 1.0)));
    Seen { triples: triples.into_iter().collect(), symbols: vec![1.0; symbols as usize], after: pairs.collect() }
}

/// Some emissions of three states that emit both observations, for each sensor; the end state; the
/// start.
fn some_emissions(layout: &Layout) -> Vec<Vec<f64>> {
    let of_sensor = |sensor: usize| {
        let emitted = rows(3, 2, 5 + sensor as u64);
        let of = |o: usize| (0..3).map(|s| emitted[2 * s + o]).collect();
        [of(0), of(1), vec![1.0]]
    };
    (0..layout.sensors).flat_map(of_sensor).chain([vec![1.0]]).collect()
}

/// States whose emissions do not and do depend on actions.
fn free_layouts(alphabet: &Alphabet) -> [Layout; 2] {
    [Layout::free(alphabet, 3, |_, _| 1.0), Layout::sensing(alphabet, 3)]
}

#[test]
fn true_parameters_are_a_fixed_point_of_em_on_exact_counts() {
    free_layouts(&alphabet()).into_iter().for_each(check_fixed_point);
}

/// Three states that emit both observations, and the end state.
fn check_fixed_point(layout: Layout) {
    let alphabet = alphabet();
    let symbols = alphabet.observations().len();
    let plans: [&[u32]; 4] = [&[0, 0, 1, 1], &[1, 0, 0, 1], &[0, 1, 1, 0], &[1, 1, 0, 0]];
    let mut triples = FxHashSet::default();
    for z in plans.iter().flat_map(|plan| episodes(&alphabet, plan)) {
        let mut before = symbols as u32;
        for ao in z {
            triples.insert((ao.action.0, before, ao.observation.0));
            before = ao.observation.0;
        }
    }
    let width = layout.states - 1;
    let latent = Latent::new(layout.clone(), 2, &HardCounts::default(), &seen(&alphabet, triples));
    let truth = latent.with(rows(2 * layout.states, width, 7), some_emissions(&layout));

    let mut total = truth.lane();
    let mut probability = 0.0;
    for z in plans.iter().flat_map(|plan| episodes(&alphabet, plan)) {
        let mut lane = truth.lane();
        truth.expect(&z, &mut lane);
        probability += lane.log_likelihood.exp();
        total.add(&lane, MANY_TIMES * lane.log_likelihood.exp());
    }
    assert!((probability - plans.len() as f64).abs() < 1e-12, "each plan has all of its episodes: {probability}");
    let mut next = truth.clone();
    next.maximise(&[total]);
    let ((t, e), (t_next, e_next)) = (truth.parameters(), next.parameters());
    for (row, (x, y)) in t.chunks_exact(width).zip(t_next.chunks_exact(width)).enumerate() {
        // The end state is never left.
        if row % layout.states != layout.states - 1 {
            x.iter().zip(y).for_each(|(x, y)| assert!((x - y).abs() < PRIOR_LEFT, "row {row}: {x} {y}"));
        }
    }
    e.iter().flatten().zip(e_next.iter().flatten()).for_each(|(x, y)| assert!((x - y).abs() < PRIOR_LEFT, "{x} {y}"));
    // Other parameters change.
    let mut other = truth.clone().with(rows(2 * layout.states, width, 8), e.to_vec());
    let before = other.parameters().0.to_vec();
    let mut lane = other.lane();
    episodes(&alphabet, plans[0]).iter().for_each(|z| other.expect(z, &mut lane));
    other.maximise(&[lane]);
    assert!(before.iter().zip(other.parameters().0).any(|(x, y)| (x - y).abs() > 1e-3));
}

#[test]
fn drawn_paths_have_the_frequencies_of_the_posterior() {
    free_layouts(&alphabet()).into_iter().for_each(check_drawn_paths);
}

fn check_drawn_paths(layout: Layout) {
    const DRAWS: u32 = 20_000;
    let alphabet = alphabet();
    let width = layout.states - 1;
    let triples = [(0, 3, 0), (1, 0, 1), (0, 1, 0)];
    let latent = Latent::new(layout.clone(), 2, &HardCounts::default(), &seen(&alphabet, triples));
    let latent = latent.with(rows(2 * layout.states, width, 7), some_emissions(&layout));
    let steps = [(0, 0), (1, 1), (0, 0)].map(|(a, o)| ActionObservation::new(a, o));
    // The joint probability of states and observations, from its definition.
    let (t, e) = latent.parameters();
    let transition = |a: u32, from: u32, to: u32| t[(a as usize * layout.states + from as usize) * width + to as usize - 1];
    let joint = |path: &[u32]| -> f64 {
        let before = std::iter::once(0).chain(path.iter().copied());
        let step = |((ao, before), &s): ((&ActionObservation, u32), &u32)| {
            transition(ao.action.0, before, s) * e[layout.place(*ao)][s as usize - 1]
        };
        steps.iter().zip(before).zip(path).map(step).product()
    };
    let paths: Vec<[u32; 3]> = (0..27).map(|i| [1 + i % 3, 1 + i / 3 % 3, 1 + i / 9]).collect();
    let total: f64 = paths.iter().map(|path| joint(path)).sum();
    let mut rng = Seed(4).rng();
    let mut lane = latent.lane();
    let drawn: Vec<Vec<u32>> = (0..DRAWS).map(|_| latent.draw(&steps, &mut lane, &mut rng)).collect();
    for path in &paths {
        let (p, n) = (joint(path) / total, f64::from(DRAWS));
        let share = drawn.iter().filter(|drawn| drawn[..] == path[..]).count() as f64 / n;
        // Four standard deviations of a share; none of 27 should be beyond.
        assert!((share - p).abs() < 4.0 * (p * (1.0 - p) / n).sqrt(), "{path:?}: {share} {p}");
    }
}

#[test]
fn logs_that_do_not_fit_in_memory_give_the_same_model() {
    let maze = domains::get("colored-gridworld").unwrap();
    let logs = Logs::memory(maze.alphabet().clone(), domains::sample(&maze, 300, 13, Seed(2)).collect());
    let model = learn(&logs, &LearnParams { rank: 6, test_dim: 64, history_dim: 64, ..LearnParams::default() }).unwrap();
    let params = RefineParams { em_rounds: 4, layout: StateLayout::Owned, ..RefineParams::default() };
    let refined = |room| {
        let data = Data::with_room(&logs, model.alphabet(), room).unwrap();
        let mut refinement = Refinement::over(&model, data, &params).unwrap();
        refinement.by_ref().collect::<Result<Vec<_>>>().unwrap();
        refinement.finish().unwrap()
    };
    assert!(refined(0) == refined(usize::MAX), "how logs are read changes the model");
}

/// A refinement whose candidates are compared on one of `every` episodes: interrupted after every
/// round, and uninterrupted.
fn stopped_and_whole(model: &Model, logs: &Logs, params: &RefineParams, every: u64) -> Vec<EmRound> {
    let begin = || Refinement { every, ..Refinement::new(model, logs, params).unwrap() };
    let mut whole = begin();
    let trace = whole.by_ref().collect::<Result<Vec<_>>>().unwrap();
    assert_eq!(whole.trace(), trace);
    let folder = tempfile::tempdir().unwrap();
    let mut checkpoint = Checkpoint::open(folder.path(), &1, || true).unwrap();
    for round in &trace {
        let mut refinement = begin().checkpointed(&mut checkpoint).unwrap();
        assert_eq!(refinement.next().unwrap().unwrap(), *round);
    }
    let mut refinement = begin().checkpointed(&mut checkpoint).unwrap();
    assert!(refinement.next().is_none());
    assert_eq!(refinement.trace(), trace);
    assert!(refinement.finish().unwrap().to_bytes() == whole.finish().unwrap().to_bytes(), "interruptions change the model");
    trace
}

#[test]
fn a_refinement_stopped_after_every_round_ends_with_the_same_model() {
    let maze = domains::get("colored-gridworld").unwrap();
    let logs = Logs::memory(maze.alphabet().clone(), domains::sample(&maze, 100, 13, Seed(4)).collect());
    let model = learn(&logs, &LearnParams { rank: 6, test_dim: 64, history_dim: 64, ..LearnParams::default() }).unwrap();
    let params = RefineParams { em_rounds: 12, ..RefineParams::default() };
    let trace = stopped_and_whole(&model, &logs, &params, 2);
    assert!(trace.iter().any(|round| round.trial) && trace.iter().any(|round| !round.trial), "there are finalists");
    let grown = trace.windows(2).filter(|pair| pair[1].candidate.states > pair[0].candidate.states && pair[1].round > 1);
    assert!(grown.count() > 1, "states grow");

    let params = RefineParams { layout: StateLayout::Owned, patience: 3, ..RefineParams::default() };
    let trace = stopped_and_whole(&model, &logs, &params, 1);
    let last = trace[trace.len() - 1];
    let best = trace.iter().map(|round| round.held_out.unwrap());
    assert!(
        last.round < params.em_rounds && last.held_out.unwrap() < best.fold(f64::NEG_INFINITY, f64::max),
        "it stops when held-out episodes no longer gain"
    );
}

#[test]
fn a_refinement_is_saved_when_it_is_due_and_not_mistaken_for_another() {
    let tiger = domains::get("tiger").unwrap();
    let logs = Logs::memory(tiger.alphabet().clone(), domains::sample(&tiger, 60, 8, Seed(4)).collect());
    let model = learn(&logs, &LearnParams { rank: 3, test_dim: 16, history_dim: 16, ..LearnParams::default() }).unwrap();
    let params = RefineParams { layout: StateLayout::Free, states: StateCount::About(3), ..RefineParams::default() };
    let folder = tempfile::tempdir().unwrap();
    let mut asked = 0;
    let third = move || {
        asked += 1;
        asked == 3
    };
    let mut checkpoint = Checkpoint::open(folder.path(), &1, third).unwrap();
    let mut refinement = Refinement::new(&model, &logs, &params).unwrap().checkpointed(&mut checkpoint).unwrap();
    assert_eq!(refinement.by_ref().take(5).filter(|round| round.is_ok()).count(), 5);
    let other = Refinement::new(&model, &logs, &params).unwrap().checkpointed(&mut checkpoint).unwrap();
    assert_eq!(other.trace().len(), 3);

    // A checkpoint of other logs, whose states can emit more symbols.
    let maze = domains::get("colored-gridworld").unwrap();
    let walks = Logs::memory(maze.alphabet().clone(), domains::sample(&maze, 60, 8, Seed(4)).collect());
    let model = learn(&walks, &LearnParams { rank: 3, test_dim: 16, history_dim: 16, ..LearnParams::default() }).unwrap();
    let other = Refinement::new(&model, &walks, &params).unwrap().checkpointed(&mut checkpoint);
    let message = other.err().unwrap().to_string();
    assert!(message.contains("the checkpoint of a refinement is damaged"), "{message}");
}

#[test]
fn rewards_that_are_paid_only_once_are_detected() {
    // Only the second step pays, and no observation shows whether it has passed.
    let mut alphabet = Alphabet::default();
    alphabet.intern_action("eat");
    ["x", "y"].iter().for_each(|name| {
        alphabet.intern_observation(name);
    });
    let mut rng = Seed(3).rng();
    let mut episode = |once: bool| {
        let steps: Vec<_> = (0..12).map(|_| ActionObservation::new(0, rng.below(2) as u32)).collect();
        let rewards = (0..12).map(|_| rng.uniform()).collect::<Vec<f64>>();
        let pays = |(t, reward): (usize, f64)| Some(if once { f64::from(u8::from(t == 1)) } else { reward });
        Trajectory {
            steps,
            rewards: rewards.into_iter().enumerate().map(pays).collect(),
            action_probabilities: vec![],
            end: End::Truncated,
            about: Default::default(),
        }
    };
    let mut refined = |once| {
        let logs = Logs::memory(alphabet.clone(), (0..600).map(|_| episode(once)).collect());
        let model = learn(&logs, &LearnParams { rank: 2, test_dim: 16, history_dim: 16, ..LearnParams::default() }).unwrap();
        let params = RefineParams { layout: StateLayout::Owned, states: StateCount::About(2), ..RefineParams::default() };
        refine(&model, &logs, &params).unwrap().latent().unwrap().clone()
    };
    let once = refined(true);
    assert!(once.fading > 0.1 && once.forgets_rewards(), "{}", once.fading);
    let always = refined(false);
    assert!(always.fading == 0.0 && !always.forgets_rewards(), "{}", always.fading);
}

#[test]
fn counts_that_have_no_entry_in_t_are_ignored() {
    // Enough ending symbols to make T sparse. One state emits x and one y; a step that observed x
    // was assigned to the state of y.
    const ENDS: u32 = 2100;
    let mut alphabet = Alphabet::default();
    let [x, y] = ["x", "y"].map(|name| alphabet.intern_observation(name).0);
    for i in 0..ENDS {
        alphabet.intern_terminal_observation(&i.to_string());
    }
    let layout = Layout::free(&alphabet, 2, |s, o| f64::from(u8::from(s as usize == o + 1)));
    let start = ENDS + 2;
    let triples = [(0, start, x), (0, start, y), (0, x, 2), (0, y, 3)];
    let [begin, of_x, of_y, end] = [0, 1, 2, 3];
    let mut hard = HardCounts::default();
    hard.transitions.extend([((0, begin, of_x), 1.0), ((0, begin, of_y), 2.0), ((0, of_y, end), 1.0), ((0, of_y, end + 1), 1.0)]);
    hard.emissions.extend([((of_x, x), 1.0), ((of_y, x), 1.0), ((of_y, y), 1.0)]);
    let latent = Latent::new(layout, 1, &hard, &seen(&alphabet, triples));
    assert!(latent.is_sparse());
    let mut lane = latent.lane();
    latent.score(&[ActionObservation::new(0, y), ActionObservation::new(0, 3)], &mut lane);
    assert!(lane.log_likelihood < 0.0 && lane.log_likelihood > -5.0, "{}", lane.log_likelihood);
}

#[test]
fn a_number_of_states_may_be_written_as_number_or_text() {
    let read = |text| serde_json::from_str::<StateCount>(text);
    assert_eq!((read("60").unwrap(), read("\"60\"").unwrap()), (StateCount::About(60), StateCount::About(60)));
    assert_eq!(read("\"auto\"").unwrap(), StateCount::Auto);
    for bad in ["0", "-3", "\"many\""] {
        assert!(read(bad).unwrap_err().to_string().contains("give a positive number or auto"), "{bad}");
    }
}

/// Rounding of sums of a few dozen products.
const ROUNDING: f64 = 1e-12;

#[test]
fn an_incomplete_observation_is_summed_over_what_agrees_with_it() {
    let alphabet = alphabet();
    let symbols = alphabet.observations().len() as u32;
    // Nothing is known; it was not y.
    let patterns = [vec![0, 1], vec![0]];
    let start = symbols + patterns.len() as u32;
    let mut triples = FxHashSet::default();
    for a in 0..2 {
        for before in (0..start).filter(|&o| o != 2).chain([start]) {
            triples.extend((0..start).map(|o| (a, before, o)));
        }
    }
    let owned = [Layout::owned(&alphabet, &[5.0, 9.0, 2.0], 4), Layout::modes(&alphabet, 2)];
    for layout in free_layouts(&alphabet).into_iter().chain(owned) {
        let hard = HardCounts::default();
        let mut latent = Latent::new(layout.with_patterns(&patterns), 2, &hard, &seen(&alphabet, triples.iter().copied()));
        let training: Vec<Vec<ActionObservation>> = episodes(&alphabet, &[0, 1, 1]);
        for _ in 0..3 {
            // Away from the symmetric start.
            let mut lane = latent.lane();
            training.iter().skip(1).for_each(|z| latent.expect(z, &mut lane));
            latent.maximise(&[lane]);
        }
        let log_likelihood = |steps: &[ActionObservation]| {
            let mut lane = latent.lane();
            latent.score(steps, &mut lane);
            lane.log_likelihood
        };
        let step = ActionObservation::new;
        let incomplete = [step(0, 1), step(1, 3), step(0, 4), step(1, 0), step(1, 3)];
        let of = |o: u32| patterns.get((o.wrapping_sub(symbols)) as usize).cloned().unwrap_or_else(|| vec![o]);
        let mut complete: Vec<Vec<ActionObservation>> = vec![Vec::new()];
        for ao in incomplete {
            let longer = |z: Vec<ActionObservation>| {
                of(ao.observation.0).into_iter().map(move |o| [z.as_slice(), &[step(ao.action.0, o)]].concat())
            };
            complete = complete.into_iter().flat_map(longer).collect();
        }
        let sum: f64 = complete.iter().map(|z| log_likelihood(z).exp()).sum();
        assert!((log_likelihood(&incomplete).exp() - sum).abs() < ROUNDING, "{:?}", latent.layout.ownership);
    }
}

#[test]
fn em_never_lowers_the_likelihood_where_observations_are_missing() {
    let tiger = domains::get("tiger").unwrap();
    let mut episodes: Vec<Trajectory> = domains::sample(&tiger, 60, 20, Seed(3)).collect();
    let mut rng = Seed(4).rng();
    for ao in episodes.iter_mut().flat_map(|z| &mut z.steps) {
        if rng.uniform() < 0.3 && !tiger.alphabet().is_terminal(ao.observation) {
            ao.observation = crate::data::Observation::MISSING;
        }
    }
    let logs = Logs::memory(tiger.alphabet().clone(), episodes);
    let model = learn(&logs, &LearnParams { rank: 3, ..LearnParams::default() }).unwrap();
    let params = RefineParams { states: StateCount::About(4), layout: StateLayout::Free, ..RefineParams::default() };
    let rounds = Refinement::new(&model, &logs, &params).unwrap().collect::<Result<Vec<_>>>().unwrap();
    assert!(rounds.len() > 3);
    for pair in rounds.windows(2).filter(|pair| pair[0].trial == pair[1].trial && pair[1].round == pair[0].round + 1) {
        assert!(pair[1].penalised >= pair[0].penalised - ROUNDING * pair[0].penalised.abs(), "{pair:?}");
    }
}
