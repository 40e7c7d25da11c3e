//! Ensembles and the meaning of their spread.

use foretell::model::{Ensemble, StateLayout};
use foretell::refine::StateCount;
use foretell::{LearnParams, Logs, Model, PredictiveState, Recipe, RefineParams, Seed, Track, Trajectory, domains, score};

fn logs(name: &str, episodes: usize, seed: u64) -> Logs {
    let domain = domains::get(name).unwrap();
    Logs::memory(domain.alphabet().clone(), domains::sample(&domain, episodes, 13, Seed(seed)).collect())
}

fn small() -> LearnParams {
    LearnParams { rank: 8, test_dim: 128, history_dim: 128, ..LearnParams::default() }
}

fn fit(logs: &Logs, refine: Option<RefineParams>, ensemble: Option<usize>) -> foretell::Result<Model> {
    Ok(Recipe { learn: small(), refine, ensemble, ..Recipe::default() }.fit(logs)?.model)
}

#[test]
fn the_mean_of_several_models_predicts_better() {
    let (logs, held_out) = (logs("colored-gridworld", 500, 3), logs("colored-gridworld", 500, 4));
    let (alone, model) = (fit(&logs, None, None).unwrap(), fit(&logs, None, Some(5)).unwrap());
    let [alone, model] = [&alone, &model].map(|model| score(model, &held_out, None).unwrap().per_step);
    assert!(model > alone, "{model} {alone}");
}

#[test]
fn two_halves_are_the_whole() {
    let logs = logs("tiger", 200, 3);
    let read = |logs: &Logs| -> Vec<Trajectory> {
        let alphabet = domains::get("tiger").unwrap().alphabet().clone();
        logs.open(alphabet).unwrap().collect::<Result<_, _>>().unwrap()
    };
    let (all, one, other) = (read(&logs), read(&logs.half(Seed(5), false)), read(&logs.half(Seed(5), true)));
    assert_eq!(one.len() + other.len(), all.len());
    // 4.2 standard deviations of 200 coins
    assert!(one.len().abs_diff(100) < 30, "{}", one.len());
    let (mut one, mut other) = (one.iter().peekable(), other.iter().peekable());
    assert!(all.iter().all(|z| one.next_if(|x| *x == z).or_else(|| other.next_if(|x| *x == z)).is_some()));
}

#[test]
fn spreads_cover_the_truth_and_shrink_with_more_episodes() {
    let tiger = domains::get("tiger").unwrap();
    let uncertainty = |episodes| {
        let logs = logs("tiger", episodes, 3);
        let model = fit(&logs, Some(RefineParams::default()), Some(4)).unwrap();
        score(&model, &self::logs("tiger", 300, 4), tiger.pomdp()).unwrap().uncertainty.unwrap()
    };
    let (few, many) = (uncertainty(100), uncertainty(1600));
    // Sixteen times the episodes would leave a quarter of it, if as many rounds of EM were made on
    // both.
    assert!(many.spread < 0.8 * few.spread, "{few:?} {many:?}");
    for sure in [few, many] {
        // All predictions share the errors of one draw of logs.
        assert!(sure.coverage.unwrap() > 0.8, "{sure:?}");
    }
}

#[test]
fn an_ensemble_predicts_the_mean_of_its_members_and_survives_a_file() {
    let logs = logs("colored-gridworld", 300, 3);
    let (alone, model) = (fit(&logs, None, None).unwrap(), fit(&logs, None, Some(3)).unwrap());
    let Ensemble { members, halves, .. } = model.ensemble().unwrap();
    assert_eq!((members.len(), halves.len()), (2, 3));
    assert!(members[0] != members[1] && halves[0] != halves[1]);
    let read = Model::from_bytes(&model.to_bytes(), "model").unwrap();
    assert!(read == model, "what was written is not what was read");
    let walks: Vec<_> = logs.open(alone.alphabet().clone()).unwrap().take(5).collect::<Result<_, _>>().unwrap();
    let mut state = PredictiveState::new(&read);
    let mut singles: Vec<_> = [&alone].into_iter().chain(members).map(PredictiveState::new).collect();
    for z in walks {
        state.reset();
        singles.iter_mut().for_each(Track::reset);
        for ao in z.steps {
            let p = state.predict(ao.action).to_vec();
            let own: Vec<&[f64]> = singles.iter_mut().map(|single| single.predict(ao.action)).collect();
            // Unseen symbols have their own probability in each, all of them small and nearly
            // equal.
            assert!((0..p.len()).all(|o| (own.iter().map(|p| p[o]).sum::<f64>() / 3.0 - p[o]).abs() < 1e-9));
            assert!(state.spread().iter().all(|x| x.is_finite()) && state.spread().iter().any(|x| *x > 0.0));
            assert!(singles[0].spread().is_empty());
            state.observe(ao);
            singles.iter_mut().for_each(|single| single.observe(ao));
        }
    }
    assert!(fit(&logs, None, Some(1)).is_err());
}

/// The parameters of refinement apply to every model of an ensemble, not only the first.
#[test]
fn all_members_are_refined_by_the_same_recipe() {
    let states = |model: &Model| model.latent().unwrap().pomdp.states().len();
    let params =
        RefineParams { states: StateCount::About(2), layout: StateLayout::Free, em_rounds: 2, ..RefineParams::default() };
    let model = fit(&logs("tiger", 100, 3), Some(params), Some(2)).unwrap();
    let Ensemble { members, halves, .. } = model.ensemble().unwrap();
    for other in members.iter().chain(halves) {
        assert_eq!(states(other), states(&model));
    }
}
