//! An upper bound of the value: the fast informed bound, and bounds at beliefs, interpolated to
//! others.

use super::bounds::informed;
use super::system::{Point, System};
use crate::error::Result;

/// Points are pruned when their number has doubled since the last time and is at least this.
const MIN_TO_PRUNE: usize = 64;

/// The value is convex. So if b contains a share ρ of p, and the rest is bounded state by state,
/// V(b) ≤ Σ_s b(s) v(s) − ρ (Σ_s p(s) v(s) − v_p) with the largest ρ that fits, min_s b(s)/p(s).
pub(super) struct Upper {
    /// The fast informed bound, at a·|S| + s.
    q: Vec<f64>,
    /// v(s): the bound where the state is certain.
    corners: Vec<f64>,
    points: Vec<BoundedPoint>,
    prune_at: usize,
}

/// A belief p whose value is at most v_p.
struct BoundedPoint {
    point: Point,
    /// The entries of p, the largest first: they bound ρ soonest.
    largest_first: Vec<(usize, f64)>,
    value: f64,
    /// Σ_s p(s) v(s) − v_p
    drop: f64,
}

impl Upper {
    pub fn new(system: &System) -> Result<Upper> {
        let q = informed(system)?;
        let corner = |s: usize| (0..system.actions).map(|a| q[a * system.states + s]).fold(f64::NEG_INFINITY, f64::max);
        let corners = (0..system.states).map(corner).collect();
        Ok(Upper { q, corners, points: Vec::new(), prune_at: MIN_TO_PRUNE })
    }

    pub fn len(&self) -> usize {
        self.points.len()
    }

    /// An upper bound of V(b).
    pub fn value(&self, point: &Point) -> f64 {
        let informed = self.q.chunks_exact(self.corners.len()).map(|q| point.dot(q)).fold(f64::NEG_INFINITY, f64::max);
        informed.min(self.interpolated(point, usize::MAX))
    }

    /// The bound without q and without one of the points.
    fn interpolated(&self, point: &Point, without: usize) -> f64 {
        let mut dense = vec![0.0; self.corners.len()];
        point.entries().for_each(|(s, b)| dense[s] = b);
        let mut largest = 0.0;
        for (_, other) in self.points.iter().enumerate().filter(|&(i, _)| i != without) {
            // A share of this or less would not improve the bound.
            let least = largest / other.drop;
            let mut share: f64 = 1.0;
            for &(s, p) in &other.largest_first {
                share = share.min(dense[s] / p);
                if share <= least {
                    break;
                }
            }
            largest = f64::max(largest, share * other.drop);
        }
        point.dot(&self.corners) - largest
    }

    /// Adds the bound `value` at `point`.
    pub fn insert(&mut self, point: &Point, value: f64) {
        if value >= self.value(point) {
            return;
        }
        if let [s] = point.states[..] {
            self.corners[s as usize] = value;
            for other in &mut self.points {
                other.drop = other.point.dot(&self.corners) - other.value;
            }
            self.points.retain(|other| other.drop > 0.0);
        } else {
            let drop = point.dot(&self.corners) - value;
            let mut largest_first: Vec<(usize, f64)> = point.entries().collect();
            largest_first.sort_by(|x, y| y.1.total_cmp(&x.1));
            self.points.push(BoundedPoint { point: point.clone(), largest_first, value, drop });
        }
    }

    /// Removes points that the others imply; the bound does not increase.
    pub fn prune(&mut self) {
        if self.points.len() < self.prune_at {
            return;
        }
        let mut i = 0;
        while i < self.points.len() {
            if self.interpolated(&self.points[i].point, i) <= self.points[i].value {
                self.points.remove(i);
            } else {
                i += 1;
            }
        }
        self.prune_at = MIN_TO_PRUNE.max(2 * self.points.len());
    }
}
