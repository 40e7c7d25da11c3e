//! Bounds that need no beliefs: the fully observed system, the fast informed bound, and blind
//! policies.

use super::system::{MAX_SWEEPS, System, not_converged};
use crate::error::Result;

/// Values are this close to their limit, relative to the largest that rewards can add up to.
const TOLERANCE: f64 = 1e-8;
/// Multiplications after which the fast informed bound stops early: some seconds for large, dense
/// models.
const MOST_WORK: usize = 1_000_000_000;

/// Q(s, a) of the fully observed system, at a·|S| + s, by value iteration from above: never too
/// small.
pub(super) fn observed(system: &System) -> Result<Vec<f64>> {
    let most = system.rewards.iter().fold(0.0, |m: f64, &r| m.max(r));
    let mut values: Vec<f64> = system.steps.iter().map(|w| most * w).collect();
    let q = |a: usize, s: usize, values: &[f64]| system.reward(a)[s] + system.discount * system.expect(a, s, values);
    let settled = sweep(system, MAX_SWEEPS, |s| {
        let value = (0..system.actions).map(|a| q(a, s, &values)).fold(f64::NEG_INFINITY, f64::max);
        (value - std::mem::replace(&mut values[s], value)).abs()
    });
    if !settled {
        return Err(not_converged(system.discount));
    }
    Ok((0..system.rewards.len()).map(|i| q(i / system.states, i % system.states, &values)).collect())
}

/// The fast informed bound Q(s, a), at a·|S| + s, from above: it is a bound after every sweep.
pub(super) fn informed(system: &System) -> Result<Vec<f64>> {
    let (states, actions) = (system.states, system.actions);
    let from = observed(system)?;
    // By states, then actions, so that sums run over contiguous memory.
    let mut q: Vec<f64> = (0..from.len()).map(|i| from[i % actions * states + i / actions]).collect();
    let mut sums = vec![0.0; system.observations * actions];
    let pairs = |a: usize| -> usize {
        (0..states).flat_map(|s| system.transitions[a].row(s)).map(|(to, _)| system.emissions[a].row(to).count()).sum()
    };
    let work = actions * (0..actions).map(pairs).sum::<usize>() + states * sums.len();
    sweep(system, (MOST_WORK / work.max(1)).clamp(1, MAX_SWEEPS), |s| {
        let mut change: f64 = 0.0;
        for a in 0..actions {
            // For each o and a': Σ_s' T(s' | a, s) O(o | a, s') Q(s', a')
            sums.fill(0.0);
            for (to, p) in system.transitions[a].row(s) {
                let next = &q[to * actions..][..actions];
                for (o, emitted) in system.emissions[a].row(to) {
                    let sums = &mut sums[o * actions..][..actions];
                    sums.iter_mut().zip(next).for_each(|(sum, q)| *sum += p * emitted * q);
                }
            }
            let future: f64 = sums.chunks_exact(actions).map(|sums| sums.iter().copied().fold(f64::NEG_INFINITY, f64::max)).sum();
            let value = system.reward(a)[s] + system.discount * future;
            change = change.max((q[s * actions + a] - value).abs());
            q[s * actions + a] = value;
        }
        change
    });
    Ok((0..q.len()).map(|i| q[i % states * actions + i / states]).collect())
}

/// The value of taking `a` forever from s, from below: never too large.
pub(super) fn blind(system: &System, a: usize) -> Result<Vec<f64>> {
    let least = system.rewards.iter().fold(0.0, |m: f64, &r| m.min(r));
    let mut values: Vec<f64> = system.steps.iter().map(|w| least * w).collect();
    let settled = sweep(system, MAX_SWEEPS, |s| {
        let value = system.reward(a)[s] + system.discount * system.expect(a, s, &values);
        (value - std::mem::replace(&mut values[s], value)).abs()
    });
    if settled { Ok(values) } else { Err(not_converged(system.discount)) }
}

/// Updates all states in place, in at most `most` sweeps, until the changes are small enough for
/// [`TOLERANCE`]; returns whether they are.
///
/// Values that fall (or grow) monotonically, and by at most δ in a sweep, are within δ w(s) of
/// their limit.
fn sweep(system: &System, most: usize, mut update: impl FnMut(usize) -> f64) -> bool {
    let enough = TOLERANCE * system.range() / system.longest();
    (0..most).any(|_| (0..system.states).map(&mut update).fold(0.0, f64::max) <= enough)
}
