//! How fast the games are played by a random player, on one thread: `cargo bench --bench domains`.

use divan::Bencher;
use divan::counter::ItemsCount;
use foretell::{Action, Domain, Seed, domains};

/// Steps of one measurement.
const STEPS: usize = 100_000;

fn main() {
    divan::main();
}

/// Items are steps; starting the episodes anew is part of them.
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
