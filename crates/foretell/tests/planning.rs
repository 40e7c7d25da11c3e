//! Planners, against exact solutions and known figures.

use foretell::experience::Steps;
use foretell::fitted_q::FittedQ;
use foretell::pomdp::Qmdp;
use foretell::returns::Returns;
use foretell::window::{Recent, WindowQ};
use foretell::{Domain, Policy, Seed, Trajectory, domains};

const TEST_EPISODES: usize = 10_000;

fn returns<P: Policy>(domain: &Domain, policy: impl Fn() -> P + Send + Sync) -> Returns {
    Returns::of(domains::sample_with(domain, policy, TEST_EPISODES, domain.horizon, Seed(77)), domain.discount)
}

fn windows(domain: &Domain, recent: Recent, episodes: &[Trajectory]) -> WindowQ {
    let steps = Steps::of(domain.alphabet(), episodes).unwrap();
    let mut fitted = FittedQ::new(&steps, WindowQ::new(recent, &steps, episodes), domain.discount);
    fitted.by_ref().take(100).last();
    fitted.into_inner()
}

#[test]
fn qmdp_is_nearly_as_good_as_seeing_the_cell() {
    let maze = domains::get("colored-gridworld").unwrap();
    let qmdp = Qmdp::solve(maze.pomdp().unwrap(), maze.discount, maze.horizon);
    assert!((qmdp.bound() - 0.9030).abs() < 0.00005);
    let earned = returns(&maze, || qmdp.policy());
    // An independent program found 0.900 ± 0.004.
    assert!((earned.discounted_return - 0.900).abs() < 0.004 + earned.discounted_ci95, "{earned:?}");
}

#[test]
fn a_longer_window_earns_more() {
    let maze = domains::get("colored-gridworld").unwrap();
    let episodes: Vec<_> = domains::sample(&maze, 10_000, maze.horizon, Seed(5)).collect();
    let [memoryless, two, three] = [Recent::Observation, Recent::Pairs(2), Recent::Pairs(3)].map(|recent| {
        let q = windows(&maze, recent, &episodes);
        returns(&maze, || q.policy()).discounted_return
    });
    // The best memoryless policy earns 0.619, a random one 0.009, a prototype of windows of three pairs 0.80 ± 0.02 over seeds.
    assert!(0.01 < memoryless && memoryless < 0.62, "{memoryless}");
    assert!(memoryless < two && two < three && (three - 0.80).abs() < 0.06, "{memoryless} {two} {three}");
}
