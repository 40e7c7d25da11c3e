//! Trials from the start that bring a lower and an upper bound together where it matters (HSVI2; Smith, Simmons 2005).

use super::Solution;
use super::lower::Lower;
use super::system::{Point, Successor, System};
use super::upper::Upper;
use crate::error::{Error, Result};
use crate::math::argmax;
use crate::pomdp::Pomdp;
use crate::stop::StopReason;

/// A trial aims at this share of the gap at the start: near 1 it stays shallow, where bounds are worth the most.
const AIM: f64 = 0.9;
/// Steps after which a trial ends: without discount no step is too far away to matter.
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
    /// A tenth of a percent, and as good as zero where the value is.
    fn default() -> Gap {
        Gap { absolute: 1e-6, relative: 1e-3 }
    }
}

/// The bounds at the start after a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Round {
    /// No less can be earned.
    pub lower: f64,
    /// No more can be earned.
    pub upper: f64,
    /// Vectors of the lower bound.
    pub vectors: usize,
    /// Beliefs of the upper bound.
    pub points: usize,
}

/// A point-based planner as an iterator: every round is a trial, and there are no more once the gap is closed.
///
/// A trial takes the action that the upper bound promises most of, and the observation where the bounds are furthest apart,
/// weighted by its probability; on the way back both are improved at every belief that it met. It begins with blind policies
/// below and the [fast informed bound](super::fast_informed_bound) above. There is no chance in it: the same model gives the
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
    /// Multiplications done and to be done at most, about.
    work: u64,
    limit: u64,
}

/// A belief on the way of a trial, and what every action leads to.
struct Step {
    point: Point,
    /// For each action.
    successors: Vec<Vec<Successor>>,
    /// For each action what it promises, Q(b, a); may be out of date, but only too large.
    promises: Vec<f64>,
}

impl PointBased {
    /// Finds the first bounds.
    ///
    /// # Errors
    /// A negative gap; else as [`qmdp`](super::qmdp).
    pub fn new(pomdp: &Pomdp, discount: f64, gap: Gap) -> Result<PointBased> {
        if let Some(bad) = [gap.absolute, gap.relative].into_iter().find(|x| x.is_nan() || *x < 0.0) {
            return Err(Error::parameter("gap", bad, "must not be negative"));
        }
        let system = System::new(pomdp, discount)?;
        let (lower, upper) = (Lower::new(&system)?, Upper::new(&system)?);
        Ok(PointBased { system, gap, lower, upper, work: 0, limit: u64::MAX })
    }

    /// Stops after about so many multiplications, be the gap closed or not: a limit that does not depend on the machine.
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

    /// How far apart the bounds may stay.
    fn target(&self, round: &Round) -> f64 {
        self.gap.absolute.max(self.gap.relative * round.lower.abs().max(round.upper.abs()))
    }

    fn trial(&mut self, mut aim: f64) {
        let mut path = vec![self.step(self.system.start.clone())];
        while path.len() < MAX_DEPTH && self.work < self.limit {
            aim /= self.system.discount; // what is a step further away may be as much less certain
            let Some(point) = self.onward(path.last().expect("a path begins at the start"), aim) else { break };
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
        let promises = (0..self.system.actions).map(|a| self.promise(&point, a, &successors[a])).collect();
        Step { point, successors, promises }
    }

    /// r(a, b) + γ Σ_o P(o ‖ a) V(b_ao) with the upper bound as V.
    fn promise(&self, point: &Point, a: usize, successors: &[Successor]) -> f64 {
        let future: f64 = successors.iter().map(|next| next.probability * self.upper.value(&next.point)).sum();
        point.dot(self.system.reward(a)) + self.system.discount * future
    }

    /// Where a trial goes on: the belief with the largest uncertainty beyond `aim`, weighted by its probability.
    fn onward(&self, step: &Step, aim: f64) -> Option<Point> {
        let (a, _) = argmax(step.promises.iter().copied());
        let successors = &step.successors[a];
        let excess = |next: &Successor| next.probability * (self.upper.value(&next.point) - self.lower.value(&next.point) - aim);
        let (i, excess) = argmax(successors.iter().map(excess));
        (excess > 0.0).then(|| successors[i].point.clone())
    }

    fn back_up(&mut self, mut step: Step) {
        // Promises only shrink: once the largest is up to date, it is the largest of all.
        let mut fresh = None;
        let value = loop {
            let (a, promise) = argmax(step.promises.iter().copied());
            if fresh == Some(a) {
                break promise;
            }
            step.promises[a] = self.promise(&step.point, a, &step.successors[a]).min(promise);
            fresh = Some(a);
        };
        self.upper.insert(&step.point, value);
        let promises = &step.promises;
        self.lower.back_up(&self.system, &step.point, &step.successors, |a, value| promises[a] <= value);
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
