//! Exact values by dynamic programming over the states, for tests.

use foretell::{Action, Pomdp};

/// The value from the start of `steps` steps at discount `gamma`. In state s, where q\[a\] is the
/// value of taking a, the value of the policy is `choice(s, q)`.
pub fn value(pomdp: &Pomdp, gamma: f64, steps: usize, choice: impl Fn(usize, &[f64]) -> f64) -> f64 {
    let v = values(pomdp, gamma, steps, choice);
    pomdp.start().map(|(s, p)| p * v[s]).sum()
}

/// max_a Σ_s b(s) Q(s, a) at the start, where Q is the infinite-horizon value if every later state
/// is observed.
pub fn qmdp(pomdp: &Pomdp) -> f64 {
    let gamma = pomdp.discount();
    let steps = (1e-14f64.ln() / gamma.ln()).ceil() as usize; // later rewards weigh less than rounding
    let v = values(pomdp, gamma, steps, best);
    let q = |a| pomdp.start().map(|(s, p)| p * action_value(pomdp, gamma, &v, s, a)).sum();
    best(0, &(0..pomdp.alphabet().actions().len()).map(q).collect::<Vec<f64>>())
}

fn values(pomdp: &Pomdp, gamma: f64, steps: usize, choice: impl Fn(usize, &[f64]) -> f64) -> Vec<f64> {
    let actions = pomdp.alphabet().actions().len();
    let mut v = vec![0.0; pomdp.states().len()];
    for _ in 0..steps {
        let backup = |s| {
            let q: Vec<f64> = (0..actions).map(|a| action_value(pomdp, gamma, &v, s, a)).collect();
            if pomdp.is_terminal(s) { 0.0 } else { choice(s, &q) }
        };
        v = (0..v.len()).map(backup).collect();
    }
    v
}

/// r(a, s) + γ Σ_s' T(s' | a, s) v(s')
fn action_value(pomdp: &Pomdp, gamma: f64, v: &[f64], s: usize, a: usize) -> f64 {
    let a = Action(a as u32);
    pomdp.expected_reward(a, s) + gamma * pomdp.transitions(a, s).map(|(to, p)| p * v[to]).sum::<f64>()
}

/// The uniformly random policy.
pub fn uniform(_: usize, q: &[f64]) -> f64 {
    q.iter().sum::<f64>() / q.len() as f64
}

/// The best action if the state is observed.
pub fn best(_: usize, q: &[f64]) -> f64 {
    q.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

/// Always the same action.
pub fn always(a: usize) -> impl Fn(usize, &[f64]) -> f64 {
    move |_, q| q[a]
}

#[track_caller]
pub fn assert_close(value: f64, expected: f64, tolerance: f64) {
    assert!((value - expected).abs() < tolerance, "{value} is not {expected} ± {tolerance}");
}
