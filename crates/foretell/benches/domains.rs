//! How fast the games are played by a random player, and how fast a planned one decides, on one
//! thread: `cargo bench --bench domains`.

use divan::Bencher;
use divan::counter::ItemsCount;
use foretell::{Action, Domain, LearnParams, Logs, Plan, PlanParams, Policy, Seed, Trajectory, domains, learn, plan};

/// Steps of one measurement.
const STEPS: usize = 100_000;

fn main() {
    divan::main();
}

/// Items are steps, including the starts of episodes.
#[divan::bench(args = ["pocman", "s-pocman"], sample_count = 20, sample_size = 1)]
fn steps(bencher: Bencher, name: &str) {
    let domain: Domain = domains::get(name).expect("it is built in");
    let mut env = domain.environment();
    let mut rng = Seed(1).rng();
    bencher.counter(ItemsCount::new(STEPS)).bench_local(|| {
        let mut length = domain.horizon;
        for _ in 0..STEPS {
            if length == domain.horizon {
                env.reset(&mut rng);
                length = 0;
            }
            let action = Action(rng.below(env.alphabet().actions().len()) as u32);
            let outcome = divan::black_box(env.step(action, &mut rng));
            length += 1;
            if env.alphabet().is_terminal(outcome.observation) {
                length = domain.horizon;
            }
        }
    });
}

/// The default plan for a game, from random episodes of it.
fn planned(domain: &Domain, episodes: usize) -> Plan {
    let episodes = domains::sample(domain, episodes, domain.horizon, Seed(1)).collect();
    let logs = Logs::memory(domain.alphabet().clone(), episodes);
    let model = learn(&logs, &LearnParams::default()).expect("the logs are long enough");
    plan(&model, &logs, &PlanParams::default(), &mut |_| {}).expect("every step has a reward")
}

/// One decision: take in what the last action led to, choose the next. Samples are long, as the
/// first steps wait for memory.
#[divan::bench(args = ["pocman", "s-pocman"], sample_count = 20, sample_size = 1000)]
fn action(bencher: Bencher, name: &str) {
    let domain: Domain = domains::get(name).expect("it is built in");
    let plan = planned(&domain, 1000);
    let mut policy = plan.policies_for(domain.alphabet()).expect("it was made for this game")();
    let held_out: Vec<Trajectory> = domains::sample(&domain, 1000, domain.horizon, Seed(2)).collect();
    let mut steps = held_out.iter().flat_map(|z| z.steps.iter().enumerate()).cycle();
    let mut rng = Seed(1).rng();
    bencher.bench_local(|| {
        let (t, &ao) = steps.next().expect("a cycle has no end");
        if t == 0 {
            policy.reset();
        }
        policy.observe(ao);
        policy.act(&mut rng)
    });
}
