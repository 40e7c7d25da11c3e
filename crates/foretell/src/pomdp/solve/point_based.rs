//! Trials from the start that bring a lower and an upper bound together where it matters (HSVI2;
//! Smith, Simmons 2005), among beliefs that good policies reach (SARSOP; Kurniawati et al. 2008).

use super::Solution;
use super::graph::{Graph, Node, START};
use super::lower::Lower;
use super::system::System;
use super::upper::Upper;
use crate::data::Action;
use crate::error::{Error, Result};
use crate::math::argmax;
use crate::pomdp::Pomdp;
use crate::stop::StopReason;

/// The trials of a round aim at these shares of the gap at the start. Near 1 it stays shallow,
/// where better bounds help most; near 0 it goes on until something is known of the far end of
/// plans, without which the lower bound of a system whose only reward comes late does not rise.
const AIMS: [f64; 3] = [0.9, 0.5, 0.02];
/// Steps after which a trial ends: without discount every step matters.
const MAX_DEPTH: usize = 200;
/// Improvements by at most this share of the gap at a belief are not kept: even over the longest
/// trial they add up to less than what a shallow one gains.
const WORTH: f64 = 1e-4;
/// Vectors and points are pruned when their number has doubled since the last time and is at least
/// this.
const MIN_TO_PRUNE: usize = 64;

/// How close the bounds must come: upper − lower ≤ max(absolute, relative · |value|).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gap {
    /// In units of reward.
    pub absolute: f64,
    /// As a share of the larger bound.
    pub relative: f64,
}

impl Default for Gap {
    /// A tenth of a percent, and nearly zero where the value is.
    fn default() -> Gap {
        Gap { absolute: 1e-6, relative: 1e-3 }
    }
}

/// The bounds at the start after a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Round {
    /// The lower bound of the value.
    pub lower: f64,
    /// The upper bound of the value.
    pub upper: f64,
    /// Vectors of the lower bound.
    pub vectors: usize,
    /// Beliefs of the upper bound.
    pub points: usize,
}

/// A point-based planner as an iterator: every round is some trials, until the gap is closed.
///
/// A trial takes the action with the largest upper bound, and the observation with the largest gap
/// between the bounds, weighted by its probability; on the way back both bounds are improved at
/// every belief visited. The first lower bound is that of blind policies, the first upper bound the
/// [fast informed bound](super::fast_informed_bound).
///
/// Beliefs that were visited are kept with what follows them, and compared only with vectors and
/// points that are new since. Vectors are removed that are not the largest at any belief to which
/// actions lead that may still be the best (Kurniawati et al. 2008). Where a part of the state is
/// always observed, vectors extend only over the states that can be confused with each other.
///
/// The bounds never get worse from round to round, and the same model gives the same vectors.
///
/// ```
/// use foretell::pomdp::solve::{Gap, PointBased};
///
/// let tiger = foretell::domains::get("tiger")?;
/// let mut planner = PointBased::new(tiger.pomdp().unwrap(), 0.95, Gap::default())?;
/// let last = planner.by_ref().take(1000).last().unwrap();
/// assert!(last.lower <= 19.372 && 19.371 <= last.upper && last.upper - last.lower < 0.02);
/// let policy = planner.solution(); // .policy(pomdp) acts
/// # Ok::<(), foretell::Error>(())
/// ```
pub struct PointBased {
    graph: Graph,
    gap: Gap,
    /// The limit of multiplications, approximately.
    limit: u64,
    /// How many vectors, and points, there are when they are pruned next.
    prune_at: [usize; 2],
}

impl PointBased {
    /// Finds the first bounds.
    ///
    /// # Errors
    /// A negative gap; otherwise as [`qmdp`](super::qmdp).
    pub fn new(pomdp: &Pomdp, discount: f64, gap: Gap) -> Result<PointBased> {
        if let Some(bad) = [gap.absolute, gap.relative].into_iter().find(|x| x.is_nan() || *x < 0.0) {
            return Err(Error::parameter("gap", bad, "must not be negative"));
        }
        let system = System::new(pomdp, discount)?;
        let (lower, upper) = (Lower::new(&system)?, Upper::new(&system)?);
        let graph = Graph::new(system, lower, upper);
        Ok(PointBased { graph, gap, limit: u64::MAX, prune_at: [MIN_TO_PRUNE; 2] })
    }

    /// Stops after about this many multiplications, even if the gap is not closed: a limit that
    /// does not depend on the machine.
    pub fn within(self, multiplications: u64) -> PointBased {
        PointBased { limit: multiplications, ..self }
    }

    /// The bounds at the start, as they are now.
    pub fn round(&self) -> Round {
        let Graph { lower, upper, nodes, .. } = &self.graph;
        let known = nodes[START].known;
        Round { lower: known.lower, upper: known.upper, vectors: lower.len(), points: upper.len() }
    }

    /// Why there are no more rounds; `None` while there are.
    pub fn stopped(&self) -> Option<StopReason> {
        let round = self.round();
        match round.upper - round.lower <= self.target(&round) {
            true => Some(StopReason::Converged),
            false => (self.graph.work >= self.limit).then_some(StopReason::Work),
        }
    }

    /// The vectors of the lower bound, whose policy earns about that or more, and the bounds.
    pub fn solution(&self) -> Solution {
        let Round { lower, upper, .. } = self.round();
        Solution { vectors: self.graph.lower.vectors(&self.graph.system), lower: Some(lower), upper }
    }

    /// The gap at which to stop.
    fn target(&self, round: &Round) -> f64 {
        self.gap.absolute.max(self.gap.relative * round.lower.abs().max(round.upper.abs()))
    }

    fn trial(&mut self, mut aim: f64) {
        let mut path = vec![START];
        loop {
            let node = path[path.len() - 1];
            self.graph.expand(node);
            if path.len() == MAX_DEPTH || self.graph.work >= self.limit {
                break;
            }
            aim /= self.graph.system.discount; // the gap one step later is discounted
            let Some((a, place)) = self.next_child(node, aim) else { break };
            path.push(self.graph.child(node, a, place));
        }
        for node in path.into_iter().rev() {
            self.raise(node);
            self.lower(node);
        }
    }

    /// Where a trial goes on: the largest gap beyond `aim`, weighted by its probability, after the
    /// action with the largest upper bound.
    fn next_child(&self, node: usize, aim: f64) -> Option<(usize, usize)> {
        let branches = &self.graph.nodes[node].branches;
        let (a, _) = argmax(branches.iter().map(|branch| branch.upper));
        let children = &branches[a].children;
        let excess = children.iter().map(|child| child.probability * (child.known.upper - child.known.lower - aim));
        let (place, excess) = argmax(excess);
        (excess > 0.0).then_some((a, place))
    }

    /// Improves the upper bound at a belief by those that follow.
    fn lower(&mut self, node: usize) {
        let graph = &mut self.graph;
        // Upper bounds only shrink: once the largest is up to date, it is the maximum.
        let mut updated = None;
        let value = loop {
            let (a, largest) = argmax(graph.nodes[node].branches.iter().map(|branch| branch.upper));
            if updated == Some(a) {
                break largest;
            }
            graph.refresh_branch(node, a);
            updated = Some(a);
        };
        graph.refresh(node);
        let node = &mut graph.nodes[node];
        let known = &mut node.known;
        let gain = known.upper - value;
        let is_worth_a_point = gain > WORTH * (known.upper - known.lower).max(0.0);
        known.upper = known.upper.min(value);
        if is_worth_a_point {
            graph.upper.insert(node.class, &node.point, value);
        }
    }

    /// Improves the lower bound at a belief by the best action that continues with the best of the
    /// present vectors after each observation.
    fn raise(&mut self, node: usize) {
        let graph = &mut self.graph;
        graph.refresh(node);
        let mut best = (0, f64::NEG_INFINITY);
        for a in 0..graph.system.actions {
            if graph.nodes[node].branches[a].upper <= graph.nodes[node].known.lower.max(best.1) {
                continue; // it cannot be better
            }
            graph.refresh_branch(node, a);
            let q = graph.nodes[node].branches[a].lower_q(graph.system.discount);
            if q > best.1 {
                best = (a, q);
            }
        }
        let Node { class, known, branches, .. } = &graph.nodes[node];
        let (a, q) = best;
        if q - known.lower <= WORTH * (known.upper - known.lower).max(0.0) {
            return;
        }
        let mut next = vec![0; graph.system.observations];
        branches[a].children.iter().for_each(|child| next[child.observation] = child.known.vector as usize);
        let values = graph.lower.vector(&graph.system, *class, a, &next);
        graph.lower.push(*class, Action(a as u32), &values);
        graph.refresh(node);
    }

    fn prune(&mut self) {
        if self.graph.lower.len() >= self.prune_at[0] {
            self.graph.prune_lower();
            self.prune_at[0] = MIN_TO_PRUNE.max(2 * self.graph.lower.len());
        }
        if self.graph.upper.len() >= self.prune_at[1] {
            self.graph.prune_upper();
            self.prune_at[1] = MIN_TO_PRUNE.max(2 * self.graph.upper.len());
        }
    }
}

impl Iterator for PointBased {
    type Item = Round;

    fn next(&mut self) -> Option<Round> {
        if self.stopped().is_some() {
            return None;
        }
        for aim in AIMS {
            let now = self.round();
            self.trial(self.target(&now).max(aim * (now.upper - now.lower)));
            self.prune();
            if self.stopped().is_some() {
                self.graph.prune_lower(); // what a policy need not compare
                break;
            }
        }
        Some(self.round())
    }
}
