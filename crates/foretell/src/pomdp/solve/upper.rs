//! An upper bound of the value: the fast informed bound, and bounds at beliefs, interpolated to
//! others.

use super::bounds::informed;
use super::system::{Point, System};
use crate::error::Result;

/// The value is convex. So if b contains a share ρ of p, and the rest is bounded state by state,
/// V(b) ≤ Σ_s b(s) v(s) − ρ (Σ_s p(s) v(s) − v_p) with the largest ρ that fits, min_s b(s)/p(s).
pub(super) struct Upper {
    /// The fast informed bound, at a·|S| + s.
    q: Vec<f64>,
    /// v(s): the bound where the state is certain.
    corners: Vec<f64>,
    /// By class.
    points: Vec<Vec<BoundedPoint>>,
    /// The class of the start, which may share states with others.
    start: usize,
    /// A belief by states, zero between calls.
    dense: Vec<f64>,
}

/// A belief p whose value is at most v_p.
struct BoundedPoint {
    /// The entries of p, the largest first: they bound ρ soonest.
    largest_first: Vec<(u32, f64)>,
    value: f64,
    /// Σ_s p(s) v(s) − v_p
    drop: f64,
}

impl BoundedPoint {
    fn drop(&self, corners: &[f64]) -> f64 {
        self.largest_first.iter().map(|&(s, p)| p * corners[s as usize]).sum::<f64>() - self.value
    }
}

impl Upper {
    pub fn new(system: &System) -> Result<Upper> {
        let q = informed(system)?;
        let corner = |s: usize| (0..system.actions).map(|a| q[a * system.states + s]).fold(f64::NEG_INFINITY, f64::max);
        let corners = (0..system.states).map(corner).collect();
        let points = (0..system.classes.len()).map(|_| Vec::new()).collect();
        Ok(Upper { q, corners, points, start: system.classes.start(), dense: vec![0.0; system.states] })
    }

    /// How many beliefs there are in all.
    pub fn len(&self) -> usize {
        self.points.iter().map(Vec::len).sum()
    }

    /// How many beliefs of a class there are.
    pub fn len_of(&self, class: usize) -> usize {
        self.points[class].len()
    }

    /// The bound of V(b) that the first bounds and the points of its class from the `from`-th on
    /// imply.
    pub fn value(&mut self, class: usize, point: &Point, from: usize) -> f64 {
        let informed = self.q.chunks_exact(self.corners.len()).map(|q| point.dot(q)).fold(f64::NEG_INFINITY, f64::max);
        informed.min(self.interpolated(class, point, from, usize::MAX))
    }

    /// The bound without q and without one of the points.
    fn interpolated(&mut self, class: usize, point: &Point, from: usize, without: usize) -> f64 {
        let Upper { points, dense, corners, .. } = self;
        point.entries().for_each(|(s, b)| dense[s] = b);
        let mut largest = 0.0;
        for (_, other) in points[class].iter().enumerate().skip(from).filter(|&(i, _)| i != without) {
            // A share of this or less would not improve the bound.
            let least = largest / other.drop;
            let mut share: f64 = 1.0;
            for &(s, p) in &other.largest_first {
                share = share.min(dense[s as usize] / p);
                if share <= least {
                    break;
                }
            }
            largest = f64::max(largest, share * other.drop);
        }
        point.entries().for_each(|(s, _)| dense[s] = 0.0);
        point.dot(corners) - largest
    }

    /// Adds the bound `value` at `point`.
    pub fn insert(&mut self, class: usize, point: &Point, value: f64) {
        if let [s] = point.states[..] {
            let corner = &mut self.corners[s as usize];
            *corner = corner.min(value);
            let corners = &self.corners;
            // Only these have points that may hold s possible.
            for class in [Some(class), (class != self.start).then_some(self.start)].into_iter().flatten() {
                self.points[class].iter_mut().for_each(|other| other.drop = other.drop(corners).max(0.0));
            }
        } else {
            let mut largest_first: Vec<(u32, f64)> = point.states.iter().copied().zip(point.weights.iter().copied()).collect();
            largest_first.sort_by(|x, y| y.1.total_cmp(&x.1));
            let drop = point.dot(&self.corners) - value;
            if drop > 0.0 {
                self.points[class].push(BoundedPoint { largest_first, value, drop });
            }
        }
    }

    /// Removes points that the others of their class imply: the bound does not increase. For each
    /// class and number n, how many of the first n points remain.
    pub fn prune(&mut self) -> Vec<Vec<u32>> {
        (0..self.points.len()).map(|class| self.prune_class(class)).collect()
    }

    fn prune_class(&mut self, class: usize) -> Vec<u32> {
        let mut remaining = vec![0];
        let mut i = 0;
        for _ in 0..self.points[class].len() {
            let BoundedPoint { largest_first, value, drop } = &self.points[class][i];
            let (value, empty) = (*value, *drop <= 0.0);
            let mut entries = largest_first.clone();
            entries.sort_unstable_by_key(|&(s, _)| s);
            let (states, weights) = entries.into_iter().unzip();
            let point = Point { states, weights };
            if empty || self.interpolated(class, &point, 0, i) <= value {
                self.points[class].remove(i);
            } else {
                i += 1;
            }
            remaining.push(i as u32);
        }
        remaining
    }
}
