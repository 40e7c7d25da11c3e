//! Selection of predictors by held-out evidence.

use foretell::model::{MemberKind, Part, Predictor};
use foretell::testing::assert_predicts;
use foretell::{
    Action, ActionObservation, Alphabet, Belief, Domain, Effort, End, Fitted, LearnOverrides, Logs, Model, Predict,
    PredictiveState, Recipe, RefineParams, Seed, SelectParams, Track, Trajectory, domains, score,
};

fn sample(domain: &Domain, episodes: usize, max_steps: usize, seed: u64) -> Logs {
    Logs::memory(domain.alphabet().clone(), domains::sample(domain, episodes, max_steps, Seed(seed)).collect())
}

fn fit(logs: &Logs, select: SelectParams) -> foretell::Result<Fitted> {
    Recipe { refine: Some(RefineParams::default()), select: Some(select), ..Recipe::default() }.fit(logs)
}

/// The default with everything left open, but without networks, which take the longest.
fn best(logs: &Logs) -> Fitted {
    fit(logs, SelectParams { for_planning: true, ..SelectParams::default() }).unwrap()
}

fn only(kind: MemberKind) -> SelectParams {
    SelectParams { only: Some(kind), ..SelectParams::default() }
}

/// One recording of a Markov chain that mostly stays where it is.
fn recording(steps: usize, seed: u64) -> Logs {
    let mut alphabet = Alphabet::default();
    alphabet.intern_action("wait");
    (0..15).for_each(|i| {
        alphabet.intern_observation(&format!("cell {i}"));
    });
    let mut rng = Seed(seed).rng();
    let mut at = 0;
    let steps: Vec<_> = (0..steps)
        .map(|_| {
            if rng.uniform() < 0.3 {
                at = (at + 1 + rng.below(2) as u32) % 15;
            }
            ActionObservation::new(0, at)
        })
        .collect();
    let z = Trajectory {
        rewards: vec![None; steps.len()],
        steps,
        action_probabilities: vec![],
        end: End::Truncated,
        about: Default::default(),
    };
    Logs::memory(alphabet, vec![z])
}

#[test]
fn the_default_is_never_worse_than_the_best_n_gram_beyond_noise() {
    for (name, episodes) in
        [("tiger", 100), ("tiger", 600), ("float-reset", 200), ("t-maze:length=4", 200), ("colored-gridworld", 300)]
    {
        let domain = domains::get(name).unwrap();
        let scored = score(&best(&sample(&domain, episodes, 20, 1)).model, &sample(&domain, 500, 20, 2), None).unwrap();
        for other in scored.comparisons.iter().filter(|other| other.name.starts_with("ngram")) {
            let error = other.ci95.unwrap() / 1.96;
            assert!(other.difference >= -error, "{name}, {episodes} episodes: {other:?}");
        }
    }
}

#[test]
fn in_the_maze_the_default_comes_as_close_to_the_truth_as_it_claims() {
    /// Gaps at horizon 13 on other seeds: 0.48 (one seed). Refinement alone had 0.62.
    const LARGEST_GAP: f64 = 0.6;
    let maze = domains::get("colored-gridworld").unwrap();
    let fitted = best(&sample(&maze, 1000, 13, 41));
    let scored = score(&fitted.model, &sample(&maze, 3000, 13, 42), maze.pomdp()).unwrap();
    let gap = scored.truth.as_ref().unwrap()[12].log_likelihood - scored.horizons[12].log_likelihood;
    assert!((0.0..LARGEST_GAP).contains(&gap), "{gap}");
    let selection = fitted.selection.unwrap();
    // What was held out tells what to expect of other logs.
    let (nats, error) = (selection.nats.unwrap(), selection.error.unwrap());
    assert!((nats - scored.per_step).abs() < 4.0 * error, "{nats} ± {error}, {}", scored.per_step);
}

#[test]
fn a_mixture_is_a_distribution_and_survives_a_file_bit_by_bit() {
    let rocks = domains::get("rocksample:size=3,rocks=2,seed=1").unwrap();
    let logs = sample(&rocks, 150, 20, 5);
    let model = best(&logs).model;
    let mixture = model.mixture().expect("few logs, several predictors");
    assert!(mixture.members().len() > 1);
    assert!((mixture.members().iter().map(|member| member.weight).sum::<f64>() - 1.0).abs() < 1e-12);
    let read = Model::from_bytes(&model.to_bytes(), "model").unwrap();
    assert!(read == model && read.to_bytes() == model.to_bytes());

    let episodes: Vec<_> = sample(&rocks, 40, 20, 6).open(model.alphabet().clone()).unwrap().map(Result::unwrap).collect();
    let known = |z: &&Trajectory| z.steps.iter().all(|ao| ao.observation.index() < model.alphabet().observations().len());
    let episodes: Vec<Trajectory> = episodes.iter().filter(known).cloned().collect();
    assert_predicts(&mut PredictiveState::new(&model), model.alphabet(), &episodes);
}

#[test]
fn the_prediction_of_a_mixture_is_the_weighted_mean_of_its_members() {
    let domain = domains::get("rocksample:size=3,rocks=2,seed=1").unwrap();
    let model = fit(&sample(&domain, 150, 20, 5), SelectParams::default()).unwrap().model;
    let mixture = model.mixture().unwrap();
    let latent = model.clone().without_mixture();
    let linear = latent.clone().without_refinement();
    let a = Action(0);
    let mut sum = vec![0.0; model.alphabet().observations().len()];
    for member in mixture.members() {
        let p = match &member.part {
            Part::NGram(length) => foretell::NGramFilter::new(&model, *length).probabilities(a).to_vec(),
            Part::Linear => PredictiveState::new(&linear).predict(a).to_vec(),
            Part::Latent => PredictiveState::new(&latent).predict(a).to_vec(),
            Part::Other(_, pomdp) => {
                let seen = 1.0 - PredictiveState::new(&model).unseen();
                Belief::new(pomdp).probabilities(a).iter().map(|p| seen * p).collect()
            }
            Part::Recurrent(_) => PredictiveState::new(&model.clone().recurrent_alone().unwrap()).predict(a).to_vec(),
        };
        sum.iter_mut().zip(p).for_each(|(sum, p)| *sum += member.weight * p);
    }
    let mixed = PredictiveState::new(&model).predict(a).to_vec();
    assert!(mixed.iter().zip(&sum).all(|(x, y)| (x - y).abs() < 1e-12), "{mixed:?} {sum:?}");
}

#[test]
fn the_number_of_threads_changes_no_bit_of_what_is_selected() {
    let tiger = domains::get("tiger").unwrap();
    let logs = sample(&tiger, 120, 20, 3);
    let bytes = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| best(&logs).model.to_bytes())
    };
    let one = bytes(1);
    assert!(one == bytes(2) && one == bytes(5));
}

#[test]
fn one_long_recording_is_learned_from_in_pieces() {
    let fitted = best(&recording(1500, 1));
    let selection = fitted.selection.as_ref().unwrap();
    assert_eq!((selection.piece_length, selection.folds, selection.steps), (Some(30), 5, 1500));
    assert_eq!(fitted.model.trained_on(), (1, 1500));
    let scored = score(&fitted.model, &recording(3000, 2), None).unwrap();
    // H = −.7 ln .7 − .3 ln .15, from its definition. From 100 visits to each cell some of it is lost.
    let entropy = 0.7 * 0.7f64.ln() + 0.3 * 0.15f64.ln();
    assert!(scored.per_step > entropy - 0.1, "{} {entropy}", scored.per_step);
}

#[test]
fn episodes_of_a_single_step_are_learned_from() {
    let mut alphabet = Alphabet::default();
    let _ = ["heads", "tails"].map(|name| alphabet.intern_action(name));
    let _ = ["won", "lost"].map(|name| alphabet.intern_terminal_observation(name));
    let mut rng = Seed(1).rng();
    let episode = |_| {
        let (a, won) = (rng.below(2) as u32, rng.uniform());
        let o = u32::from(won > if a == 0 { 0.9 } else { 0.2 });
        let steps = vec![ActionObservation::new(a, o)];
        Trajectory {
            steps,
            rewards: vec![Some(1.0 - f64::from(o))],
            action_probabilities: vec![],
            end: End::Terminated,
            about: Default::default(),
        }
    };
    let logs = Logs::memory(alphabet, (0..200).map(episode).collect());
    let model = best(&logs).model;
    let mut state = PredictiveState::new(&model);
    for (name, exact) in [("heads", 0.9), ("tails", 0.2)] {
        let p = state.predict(model.alphabet().action(name).unwrap())[0];
        // Four standard errors of a share of 100.
        assert!((p - exact).abs() < 4.0 * (exact * (1.0 - exact) / 100.0f64).sqrt(), "{name}: {p}");
    }
    let linear = foretell::learn(&logs, &foretell::LearnParams::default()).unwrap();
    assert!(foretell::refine(&linear, &logs, &RefineParams::default()).unwrap().latent().is_some());
}

#[test]
fn what_is_given_is_obeyed() {
    let maze = domains::get("colored-gridworld").unwrap();
    let logs = sample(&maze, 200, 13, 7);
    let fixed = LearnOverrides { rank: Some(5), ..LearnOverrides::default() };
    let recipe = |only, effort| SelectParams { effort, only, fixed: fixed.clone(), ..SelectParams::default() };
    let linear = fit(&logs, recipe(Some(MemberKind::Linear), Effort::Normal)).unwrap();
    assert!(linear.model.mixture().is_none() && linear.model.linear().unwrap().rank() == 5);
    let quick = fit(&logs, recipe(None, Effort::Quick)).unwrap();
    assert!(quick.model.latent().is_none() && quick.selection.unwrap().rank == Some(5));
    let latent = fit(&logs, only(MemberKind::Latent)).unwrap().model;
    assert!(latent.latent().is_some());
    let ngram = fit(&logs, only(MemberKind::NGram)).unwrap().model;
    assert!(ngram.linear().is_none() && PredictiveState::new(&ngram).predict(Action(0)).iter().sum::<f64>() < 1.0);
    assert_eq!(Model::from_bytes(&ngram.to_bytes(), "model").unwrap(), ngram);
    let short = Logs::memory(maze.alphabet().clone(), domains::sample(&maze, 50, 2, Seed(1)).collect());
    let refused = fit(&short, only(MemberKind::Latent)).err().unwrap().to_string();
    assert!(refused.contains("too short") && refused.contains("`only`"), "{refused}");
}

#[test]
fn nothing_is_too_little_to_learn_from() {
    let tiger = domains::get("tiger").unwrap();
    for (episodes, steps) in [(1, 1), (1, 2), (1, 7), (2, 1), (3, 3), (7, 4), (1, 60)] {
        let fitted = best(&sample(&tiger, episodes, steps, 1));
        let state = PredictiveState::new(&fitted.model);
        let total: f64 = PredictiveState::new(&fitted.model).predict(Action(0)).iter().sum();
        assert!((total + state.unseen() - 1.0).abs() < 1e-9, "{episodes} × {steps}: {total}");
    }
}

/// Episodes that begin with a sign, show six random symbols, and end with an answer, which is the sign
/// nine times in ten.
fn signs(episodes: usize) -> Logs {
    let mut alphabet = Alphabet::default();
    alphabet.intern_action("wait");
    ["left", "right", "x", "y", "z", "to the left", "to the right"].iter().for_each(|name| {
        alphabet.intern_observation(name);
    });
    let mut rng = Seed(6).rng();
    let episode = |_| {
        let sign = rng.below(2) as u32;
        let mut seen = vec![sign];
        seen.extend((0..6).map(|_| 2 + rng.below(3) as u32));
        seen.push(5 + if rng.uniform() < 0.9 { sign } else { 1 - sign });
        Trajectory {
            rewards: vec![None; seen.len()],
            steps: seen.into_iter().map(|o| ActionObservation::new(0, o)).collect(),
            action_probabilities: vec![],
            end: End::Truncated,
            about: Default::default(),
        }
    };
    Logs::memory(alphabet, (0..episodes).map(episode).collect())
}

/// Neither splitting states nor merging histories finds such a memory behind noise; a network does, and
/// EM from clusters of its states. In few logs the network of all of them is another than those of the
/// folds.
#[test]
fn a_pomdp_remembers_what_a_network_does() {
    /// Nats per step by which it may be behind. From other starts it is 0.15 behind with 400 episodes, and
    /// 0.06 with 1500.
    const FARTHEST: f64 = 0.045;
    for episodes in [400, 1500] {
        let fitted = fit(&signs(episodes), SelectParams::default()).unwrap();
        let Fitted { model, selection, .. } = fitted;
        let tried = selection.unwrap().tried;
        let best = |kind| tried.iter().filter(|tried| tried.kind == kind).filter_map(|tried| tried.nats).reduce(f64::max);
        let behind = best(MemberKind::Recurrent).unwrap() - best(MemberKind::Latent).unwrap();
        assert!(behind < FARTHEST, "{episodes}: {behind}");
        let pomdp = &model.latent().unwrap().pomdp;
        let answers = model.alphabet().observations().len() - 2;
        for sign in 0..2 {
            let mut belief = Belief::new(pomdp);
            [sign, 2, 3, 4, 3, 2, 4].iter().for_each(|&o| belief.observe(ActionObservation::new(0, o)));
            let p = belief.probabilities(Action(0));
            // The truth is 0.9.
            assert!(p[answers + sign as usize] > 0.75, "{episodes}, {sign}: {p:?}");
        }
    }
}

/// Episodes of ten steps with one observation, whose rewards are 1 or −1: drawn once per episode, or
/// anew in each step.
fn rewarded(per_episode: bool) -> Logs {
    let mut alphabet = Alphabet::default();
    alphabet.intern_action("look");
    alphabet.intern_observation("fog");
    let mut rng = Seed(8).rng();
    let episode = |_| {
        let mut draw = || if rng.uniform() < 0.5 { 1.0 } else { -1.0 };
        let first = draw();
        let rewards = (0..10).map(|_| Some(if per_episode { first } else { draw() })).collect();
        Trajectory {
            steps: vec![ActionObservation::new(0, 0); 10],
            rewards,
            action_probabilities: vec![],
            end: End::Truncated,
            about: Default::default(),
        }
    };
    Logs::memory(alphabet, (0..400).map(episode).collect())
}

#[test]
fn rewards_are_observed_where_they_tell_what_comes_and_not_where_they_are_noise() {
    let fitted = best(&rewarded(true));
    let choice = fitted.selection.unwrap().rewards.unwrap();
    assert!(choice.observed && fitted.model.alphabet().observes_rewards());
    // After the first of ten steps the reward is known: it explains 9/10 of the variance, and half
    // of that are the nats. The only observation is certain either way.
    assert!((choice.gain - 0.45).abs() < 0.02 && choice.observation_gain.abs() < 0.01, "{choice:?}");
    assert!((choice.reward_errors[0] - 1.0).abs() < 0.02 && (choice.reward_errors[1] - 0.1f64.sqrt()).abs() < 0.05, "{choice:?}");

    let noise = best(&rewarded(false));
    assert!(!noise.selection.unwrap().rewards.unwrap().observed && !noise.model.alphabet().observes_rewards());
    let told = LearnOverrides { observe_reward: Some(false), ..LearnOverrides::default() };
    let told = fit(&rewarded(true), SelectParams { fixed: told, ..SelectParams::default() }).unwrap();
    assert!(told.selection.unwrap().rewards.is_none() && !told.model.alphabet().observes_rewards());
    // In the maze action and observation determine the reward, so there is nothing to try.
    let maze = domains::get("colored-gridworld").unwrap();
    assert!(best(&sample(&maze, 150, 13, 1)).selection.unwrap().rewards.is_none());
}

/// In tiger held-out steps of random actions hardly show that rewards help, but states predict them:
/// with few logs too they are observed.
#[test]
fn rewards_that_states_predict_are_observed() {
    let tiger = domains::get("tiger").unwrap();
    let planning = SelectParams { for_planning: true, ..SelectParams::default() };
    let choice = fit(&sample(&tiger, 400, 30, 51), planning).unwrap().selection.unwrap().rewards.unwrap();
    assert!(choice.tell_of_states && choice.observed, "{choice:?}");
}

/// The maze with a column of noise beside the walls.
fn noisy_column(episodes: usize, column: &str) -> Logs {
    let maze = domains::get("colored-gridworld").unwrap();
    let mut alphabet = Alphabet::default();
    maze.alphabet().actions().iter().for_each(|action| {
        alphabet.intern_action(action);
    });
    let mut rng = Seed(10).rng();
    let mut noisy = |mut z: Trajectory| {
        for (ao, reward) in z.steps.iter_mut().zip(&mut z.rewards) {
            let (symbol, noise) = (maze.alphabet().symbol(ao.observation), rng.below(4));
            let name = format!("walls={}|{column}={noise}", symbol.name);
            ao.observation = match symbol.terminal {
                true => alphabet.intern_terminal_observation(&name),
                false => alphabet.intern_observation(&name),
            };
            if column == "bonus" {
                *reward = Some(noise as f64);
            }
        }
        z
    };
    let episodes = domains::sample(&maze, episodes, 13, Seed(3)).map(&mut noisy).collect();
    Logs::memory(alphabet, episodes)
}

#[test]
fn columns_are_spare_if_they_tell_of_nothing_else() {
    let spare = |logs: &Logs| best(logs).selection.unwrap().columns;
    let found = spare(&noisy_column(300, "noise")).unwrap();
    assert_eq!((found.names, found.others), (vec!["noise".to_string()], vec!["walls".to_string()]));
    assert!(found.gain > 0.0 && found.observations[0] > 3 * found.observations[1], "{:?}", found.observations);
    assert_eq!(spare(&noisy_column(300, "bonus")), None, "it tells what the reward is");
}

#[test]
fn an_observation_is_found_without_its_reward_if_there_is_only_one() {
    let model = best(&rewarded(true)).model;
    let (look, fog) = (Action(0), foretell::ObservationSymbol { name: "fog".into(), terminal: false });
    assert_eq!(model.observations_whatever_reward(look, &fog).len(), 2);
    let good = fog.with_reward(1.0);
    let found = model.observations_whatever_reward(look, &good);
    assert_eq!(found.iter().map(|&o| model.alphabet().symbol(o)).collect::<Vec<_>>(), [&good]);
}

#[test]
fn more_logs_are_worth_something_only_where_there_are_few() {
    let doubling = |steps| {
        let fitted = fit(&recording(steps, 1), only(MemberKind::NGram)).unwrap();
        fitted.selection.unwrap().doubling.unwrap()
    };
    let (few, many) = (doubling(600), doubling(20_000));
    // With n steps, k free parameters lose about k/2n nats per step, and twice that with half: here
    // k = 30, besides cells that were never seen from another.
    assert!(few.gain > 30.0 / (2.0 * 600.0), "{few:?}");
    assert!(many.gain.abs() < 0.005 && many.error < 0.005, "{many:?}");
    let maze = domains::get("colored-gridworld").unwrap();
    assert_eq!(best(&sample(&maze, 100, 13, 1)).selection.unwrap().doubling, None, "POMDPs need a thorough effort");
}

#[test]
fn a_recurrent_network_predicts_tracks_and_survives_its_file() {
    let domain = domains::get("amm-plover").unwrap();
    let fitted = fit(&sample(&domain, 60, 12, 8), only(MemberKind::Recurrent)).unwrap();
    let model = fitted.model;
    let net = model.recurrent().unwrap();
    assert!(matches!(model.predictor(), Predictor::Recurrent(_)) && net.factors() == 4);
    assert!(fitted.selection.unwrap().tried.iter().all(|tried| tried.kind == MemberKind::Recurrent && tried.weight == 1.0));
    let read = Model::from_bytes(&model.to_bytes(), "model").unwrap();
    assert!(read == model && read.to_bytes() == model.to_bytes());

    let mut episodes = sample(&domain, 20, 12, 9).episodes_for(model.alphabet(), "model").unwrap();
    // An observation and an action that were not seen in training.
    episodes[0].steps[3].observation = foretell::Observation(model.alphabet().observations().len() as u32);
    episodes[1].steps[3].action = Action(model.alphabet().actions().len() as u32);
    assert_predicts(&mut PredictiveState::new(&model), model.alphabet(), &episodes);

    // A forecast of one step is a prediction; later ones are distributions as well.
    let state = PredictiveState::new(&model);
    let plan = [Action(0); 5];
    let forecast = state.forecast(&plan);
    assert_eq!(forecast[0], state.clone().predict(plan[0]));
    assert!(forecast.iter().all(|p| (p.iter().sum::<f64>() + state.unseen() - 1.0).abs() < 1e-9));
    assert_eq!(foretell::Filter::state(&state).len(), net.hidden());
    assert_eq!(state.sample(&plan, &mut Seed(1).rng()).len(), plan.len());
}
