//! From logs to a policy at work: learn a model, plan with it, then ask for actions and report what they led to.
//!
//! ```text
//! cargo run --release -p foretell --example act
//! ```

use foretell::{ActionObservation, Environment, Logs, Mean, Outcome, PlanParams, Policy, Recipe, RefineParams};
use foretell::{Rng, Seed, Uniform, domains, plan};

/// Episodes are cut after that many steps.
const STEPS: usize = 20;

fn main() -> foretell::Result<()> {
    // Logs: from files with `Logs::files`, or, as here, of a built-in system, by uniformly random actions.
    let tiger = domains::get("tiger")?;
    let logs = Logs::memory(tiger.alphabet().clone(), domains::sample(&tiger, 1000, STEPS, Seed(1)).collect());

    let recipe = Recipe { refine: Some(RefineParams::default()), ..Recipe::default() };
    let model = recipe.fit(&logs)?.model;
    let plan = plan(&model, &logs, &PlanParams { discount: tiger.discount, ..PlanParams::default() }, &mut |_| {})?;

    // The system to act in stands for your own; its alphabet may list the same names in another order.
    let mut system = tiger.environment();
    let planned = &mut plan.policies_for(system.alphabet())?();
    let random = &mut Uniform { actions: system.alphabet().actions().len() };
    println!("mean return over 500 episodes");
    println!("    planned            {:8.2}", mean_return(system.as_mut(), planned));
    println!("    uniformly random   {:8.2}", mean_return(system.as_mut(), random));
    Ok(())
}

/// Mean sum of rewards.
fn mean_return(system: &mut dyn Environment, policy: &mut dyn Policy) -> f64 {
    (0..500).map(|i| episode(system, policy, &mut Seed(2).index(i).rng())).collect::<Mean>().mean()
}

/// The loop of a controller: ask for an action, take it, report what was observed.
fn episode(system: &mut dyn Environment, policy: &mut dyn Policy, rng: &mut Rng) -> f64 {
    system.reset(rng);
    policy.reset();
    let mut sum = 0.0;
    for _ in 0..STEPS {
        let action = policy.act(rng);
        let Outcome { observation, reward } = system.step(action, rng);
        policy.observe_rewarded(ActionObservation { action, observation }, reward);
        sum += reward;
        if system.alphabet().is_terminal(observation) {
            break;
        }
    }
    sum
}
