//! Models, moments, policies and checkpoints.

use std::fs;

use foretell::store::sealed;
use foretell::{
    Action, ActionObservation, Agent, AgentParams, Checkpoint, Domain, Keep, LearnParams, Learner, Logs, Model, Moments, Plan,
    PlanParams, Policy, PredictiveState, RefineParams, Refinement, Seed, Stamp, Track, Trajectory, domains, learn,
};

use super::texts::folder;

/// Rounding of sums of probabilities.
const ROUNDING: f64 = 1e-6;
/// Actions of a model that are tried: there may be many.
const TRIED: u32 = 3;
/// The file, for messages.
const FILE: &str = "input";

/// Damage is noticed; behind a checksum that is right everything else must hold.
pub fn model(bytes: &[u8]) {
    let _ = Model::from_bytes(bytes, FILE);
    if let Ok(model) = Model::from_bytes(&sealed(bytes.to_vec()), FILE) {
        let saved = model.to_bytes();
        let again = Model::from_bytes(&saved, FILE).expect("what was saved is read");
        assert!(again.to_bytes() == saved, "it is read as another");
        predicts(&model);
    }
}

/// P(o ‖ a) sums to 1 with what was never seen, whatever happened before.
pub fn predicts(model: &Model) {
    let symbols = model.alphabet().observations().len() as u32;
    let mut state = PredictiveState::new(model);
    for t in 0..6 {
        for a in (0..TRIED.min(model.alphabet().actions().len() as u32 + 1)).map(Action) {
            let p = state.predict(a);
            let (total, are_shares) = (p.iter().sum::<f64>(), p.iter().all(|p| (-ROUNDING..=1.0 + ROUNDING).contains(p)));
            assert!(are_shares && (total + state.unseen() - 1.0).abs() < ROUNDING, "step {t}: {total} + {}", state.unseen());
            assert!(state.spread().iter().all(|x| x.is_finite()));
        }
        match t {
            2 => state.observe_missing(Action(0)),
            // A symbol that was never seen.
            4 => state.observe(ActionObservation::new(0, symbols)),
            _ => state.observe(ActionObservation::new(t % 2, t % symbols.max(1))),
        }
    }
    let forecasts = state.forecast(&[Action(0), Action(1)]).concat();
    assert!(forecasts.iter().all(|p| p.is_finite()));
    assert!(state.forecast_under_logging_policy(3, Action(0)).iter().all(|p| p.is_finite()));
}

fn tiger() -> (Domain, Vec<Trajectory>, Logs) {
    let tiger = domains::get("tiger").unwrap();
    let episodes: Vec<Trajectory> = domains::sample(&tiger, 12, 8, Seed(3)).collect();
    let logs = Logs::memory(tiger.alphabet().clone(), episodes.clone());
    (tiger, episodes, logs)
}

/// Moments can be added to, and give a model that predicts, or an error says why not.
pub fn moments(bytes: &[u8]) {
    let bytes = sealed(bytes.to_vec());
    let (Ok(model), Ok(Some(moments))) = (Model::from_bytes(&bytes, FILE), Moments::kept_in(&bytes, FILE)) else { return };
    let saved = model.to_bytes_with_moments(&moments);
    let again = Moments::kept_in(&saved, FILE).expect("what was saved is read").expect("there are moments");
    assert!(model.to_bytes_with_moments(&again) == saved, "they are read as others");
    if let Ok(model) = moments.model() {
        predicts(&model);
    }
    let _ = again.clone().merge(again.clone());
    if let Ok(updated) = Learner::new(moments.params()).update(moments, &tiger().2) {
        predicts(&updated.model);
    }
}

/// A policy acts, whatever is observed.
pub fn policy(bytes: &[u8]) {
    let _ = Plan::from_bytes(bytes, FILE);
    let Ok(plan) = Plan::from_bytes(&sealed(bytes.to_vec()), FILE) else { return };
    let saved = plan.to_bytes();
    let again = Plan::from_bytes(&saved, FILE).expect("what was saved is read");
    assert!(again.to_bytes() == saved, "it is read as another");
    let (actions, symbols) = (plan.alphabet().actions().len(), plan.alphabet().observations().len() as u32);
    let (mut policy, mut rng) = (plan.policy(), Seed(1).rng());
    for t in 0..5 {
        let a = policy.act(&mut rng);
        assert!(a.index() < actions);
        assert!(policy.values().iter().all(|q| !q.is_nan()), "{:?}", policy.values());
        policy.observe(ActionObservation::new(a.0, t % (symbols + 1)));
    }
    let (tiger, _, _) = tiger();
    if let Ok(policies) = plan.policies_for(tiger.alphabet()) {
        domains::sample_with(&tiger, policies, 2, 4, Seed(2)).for_each(drop);
    }
}

fn small() -> LearnParams {
    LearnParams { test_dim: 8, history_dim: 8, rank: 2, ngram_length: 1, ..LearnParams::default() }
}

/// Work goes on from any part of a checkpoint, or an error says why not.
pub fn checkpoint(bytes: &[u8]) {
    let folder = folder().join("checkpoint");
    let _ = fs::remove_dir_all(&folder);
    let bytes = sealed(bytes.to_vec());
    let kind = Stamp::of(&bytes).map(|stamp| stamp.kind).unwrap_or_default();
    let mut checkpoint = Checkpoint::open(&folder, &1, || false).unwrap();
    for part in ["learn", "refinement", "agent"] {
        checkpoint.save(part, &bytes).unwrap();
    }
    let (tiger, _, logs) = tiger();
    match kind.as_str() {
        "checkpoint of a refinement" => {
            let model = learn(&logs, &small()).unwrap();
            let params = RefineParams { em_rounds: 2, ..RefineParams::default() };
            let refinement = Refinement::new(&model, &logs, &params).and_then(|fit| fit.checkpointed(&mut checkpoint));
            if let Ok(mut refinement) = refinement
                && refinement.by_ref().take(20).all(|round| round.is_ok())
                && let Ok(model) = refinement.finish()
            {
                predicts(&model);
            }
        }
        "checkpoint of an agent" => {
            let params = AgentParams { agent_rounds: 2, episodes: 12, refine: false, ..AgentParams::default() };
            let planning = PlanParams { rounds: 2, trees: 2, ..PlanParams::default() };
            let agent = Agent::new(&tiger, params, small(), planning, Seed(3)).unwrap().checkpointed(&mut checkpoint);
            let _ = agent.map(|agent| agent.take(3).for_each(drop));
        }
        _ => {
            let learned = Learner::new(&small()).keep(Keep::Exact).checkpoint(&mut checkpoint).learn(&logs);
            if let Ok(learned) = learned {
                predicts(&learned.model);
            }
        }
    }
    drop(checkpoint);
    // The bytes as they are, without a checksum of the part.
    fs::write(folder.join("learn.part"), &bytes).unwrap();
    if let Ok(checkpoint) = Checkpoint::open(&folder, &1, || false) {
        let _ = checkpoint.load("learn");
    }
}
