//! Trials from the start that bring a lower and an upper bound together where it matters (HSVI2;
//! Smith, Simmons 2005).

use super::Solution;
use super::lower::Lower;
use super::system::{Point, Successor, System};
use super::upper::Upper;
use crate::error::{Error, Result};
use crate::math::argmax;
use crate::pomdp::Pomdp;
use crate::stop::StopReason;

/// A trial aims at this share of the gap at the start: near 1 it stays shallow, where better bounds
/// help most.
const AIM: f64 = 0.9;
/// Steps after which a trial ends: without discount every step matters.
const MAX_DEPTH: usize = 200;

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

/// A point-based planner as an iterator: every round is a trial, until the gap is closed.
///
/// A trial takes the action with the largest upper bound, and the observation with the largest gap
/// between the bounds, weighted by its probability; on the way back both bounds are improved at
/// every belief visited. The first lower bound is that of blind policies, the first upper bound the
/// [fast informed bound](super::fast_informed_bound). It is deterministic: the same model gives the
/// same vectors.
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
    system: System,
    gap: Gap,
    lower: Lower,
    upper: Upper,
    /// Multiplications so far, and their limit, approximately.
    work: u64,
    limit: u64,
}

/// A belief on the path of a trial, and its successors.
struct Step {
    point: Point,
    /// For each action.
    successors: Vec<Vec<Successor>>,
    /// For each action, an upper bound of Q(b, a); it may be out of date, but then only too large.
    upper_q: Vec<f64>,
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
        Ok(PointBased { system, gap, lower, upper, work: 0, limit: u64::MAX })
    }

    /// Stops after about this many multiplications, even if the gap is not closed: a limit that
    /// does not depend on the machine.
    pub fn within(self, multiplications: u64) -> PointBased {
        PointBased { limit: multiplications, ..self }
    }

    /// The bounds at the start, as they are now.
    pub fn round(&self) -> Round {
        Round {
            lower: self.lower.value(&self.system.start),
            upper: self.upper.value(&self.system.start),
            vectors: self.lower.len(),
            points: self.upper.len(),
        }
    }

    /// Why there are no more rounds; `None` while there are.
    pub fn stopped(&self) -> Option<StopReason> {
        let round = self.round();
        match round.upper - round.lower <= self.target(&round) {
            true => Some(StopReason::Converged),
            false => (self.work >= self.limit).then_some(StopReason::Work),
        }
    }

    /// The vectors of the lower bound, whose policy earns about that or more, and the bounds.
    pub fn solution(&self) -> Solution {
        let Round { lower, upper, .. } = self.round();
        Solution { vectors: self.lower.vectors().cloned().collect(), lower: Some(lower), upper }
    }

    /// The gap at which to stop.
    fn target(&self, round: &Round) -> f64 {
        self.gap.absolute.max(self.gap.relative * round.lower.abs().max(round.upper.abs()))
    }

    fn trial(&mut self, mut aim: f64) {
        let mut path = vec![self.step(self.system.start.clone())];
        while path.len() < MAX_DEPTH && self.work < self.limit {
            aim /= self.system.discount; // the gap one step later is discounted
            let Some(point) = self.next_belief(path.last().expect("a path begins at the start"), aim) else { break };
            path.push(self.step(point));
        }
        while let Some(step) = path.pop() {
            self.back_up(step);
        }
    }

    fn step(&mut self, point: Point) -> Step {
        let successors: Vec<_> = (0..self.system.actions).map(|a| self.system.successors(&point, a)).collect();
        // Here and on the way back every successor is compared with every vector and every point.
        let entries: usize = successors.iter().flatten().map(|next| next.point.states.len()).sum();
        self.work += (entries * (self.lower.len() + self.upper.len())) as u64;
        let upper_q = (0..self.system.actions).map(|a| self.upper_q_of(&point, a, &successors[a])).collect();
        Step { point, successors, upper_q }
    }

    /// r(a, b) + γ Σ_o P(o ‖ a) V(b_ao) with the upper bound as V.
    fn upper_q_of(&self, point: &Point, a: usize, successors: &[Successor]) -> f64 {
        let future: f64 = successors.iter().map(|next| next.probability * self.upper.value(&next.point)).sum();
        point.dot(self.system.reward(a)) + self.system.discount * future
    }

    /// The next belief of a trial: the one with the largest gap beyond `aim`, weighted by its
    /// probability.
    fn next_belief(&self, step: &Step, aim: f64) -> Option<Point> {
        let (a, _) = argmax(step.upper_q.iter().copied());
        let successors = &step.successors[a];
        let excess = |next: &Successor| next.probability * (self.upper.value(&next.point) - self.lower.value(&next.point) - aim);
        let (i, excess) = argmax(successors.iter().map(excess));
        (excess > 0.0).then(|| successors[i].point.clone())
    }

    fn back_up(&mut self, mut step: Step) {
        // Upper bounds only shrink: once the largest is up to date, it is the maximum.
        let mut updated = None;
        let value = loop {
            let (a, largest) = argmax(step.upper_q.iter().copied());
            if updated == Some(a) {
                break largest;
            }
            step.upper_q[a] = self.upper_q_of(&step.point, a, &step.successors[a]).min(largest);
            updated = Some(a);
        };
        self.upper.insert(&step.point, value);
        let upper_q = &step.upper_q;
        self.lower.back_up(&self.system, &step.point, &step.successors, |a, value| upper_q[a] <= value);
    }
}

impl Iterator for PointBased {
    type Item = Round;

    fn next(&mut self) -> Option<Round> {
        if self.stopped().is_some() {
            return None;
        }
        let before = self.round();
        let target = self.target(&before);
        self.trial(target.max(AIM * (before.upper - before.lower)));
        self.lower.prune(&self.system.start);
        self.upper.prune();
        Some(self.round())
    }
}
