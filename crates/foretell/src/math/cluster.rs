//! k-means (Lloyd 1982) with k-means++ seeding (Arthur and Vassilvitskii 2007), for the few
//! clusters of one class of states, or of measurements.

use crate::rng::{Rng, Seed};

/// Rounds of reassignment. More hardly move the centres, and EM improves on them.
const ROUNDS: usize = 10;
/// Points sampled for each centre where there are more: more points do not improve the centres.
const POINTS_PER_CENTRE: usize = 300;

/// At most `k` centres of points of dimension `dim`, which are concatenated in `points`.
pub(crate) fn centres(points: &[f32], dim: usize, k: usize, seed: Seed) -> Vec<f32> {
    let all: Vec<&[f32]> = points.chunks_exact(dim).collect();
    let (most, mut rng) = (k * POINTS_PER_CENTRE, seed.rng());
    let points = if all.len() > most { (0..most).map(|_| all[rng.below(all.len())]).collect() } else { all };
    let mut centres = seeded(&points, k, &mut rng);
    if centres.len() <= dim {
        return centres;
    }
    let k = centres.len() / dim;
    for _ in 0..ROUNDS {
        let (mut sums, mut counts) = (vec![0.0f64; centres.len()], vec![0u32; k]);
        for point in &points {
            let c = nearest(&centres, point);
            counts[c] += 1;
            sums[c * dim..(c + 1) * dim].iter_mut().zip(*point).for_each(|(s, &x)| *s += f64::from(x));
        }
        for (c, &n) in counts.iter().enumerate().filter(|(_, n)| **n > 0) {
            let mean = sums[c * dim..(c + 1) * dim].iter().map(|s| (s / f64::from(n)) as f32);
            centres[c * dim..(c + 1) * dim].iter_mut().zip(mean).for_each(|(x, m)| *x = m);
        }
    }
    centres
}

/// The index of the centre nearest to the point.
pub(crate) fn nearest(centres: &[f32], point: &[f32]) -> usize {
    let distances = centres.chunks_exact(point.len()).map(|centre| distance(centre, point));
    distances.enumerate().fold((0, f32::INFINITY), |best, (c, d)| if d < best.1 { (c, d) } else { best }).0
}

/// The squared distance, in eight sums that can be vectorised.
fn distance(x: &[f32], y: &[f32]) -> f32 {
    let ((x, x_rest), (y, y_rest)) = (x.as_chunks::<8>(), y.as_chunks::<8>());
    let mut sums = [0.0; 8];
    for (x, y) in x.iter().zip(y) {
        for i in 0..8 {
            sums[i] += (x[i] - y[i]) * (x[i] - y[i]);
        }
    }
    let rest: f32 = x_rest.iter().zip(y_rest).map(|(x, y)| (x - y) * (x - y)).sum();
    sums.iter().sum::<f32>() + rest
}

/// Points drawn one after the other, with probability proportional to the squared distance to the
/// nearest so far. Fewer than `k` if there are fewer distinct points.
fn seeded(points: &[&[f32]], k: usize, rng: &mut Rng) -> Vec<f32> {
    let Some(first) = points.first() else { return Vec::new() };
    let mut centres = points[rng.below(points.len())].to_vec();
    let mut distances = vec![f64::INFINITY; points.len()];
    for _ in 1..k {
        let last = &centres[centres.len() - first.len()..];
        distances.iter_mut().zip(points).for_each(|(d, point)| *d = d.min(f64::from(distance(last, point))));
        let Some(next) = rng.weighted(&distances) else { break };
        centres.extend_from_slice(points[next]);
    }
    centres
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separated_clusters_are_found() {
        let mut rng = Seed(2).rng();
        let around = [[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]];
        let points: Vec<f32> = (0..3000).flat_map(|i| around[i % 3]).map(|x: f64| (x + rng.uniform() - 0.5) as f32).collect();
        let centres = centres(&points, 2, 3, Seed(5));
        for expected in around {
            let expected = expected.map(|x| x as f32);
            let found = &centres[2 * nearest(&centres, &expected)..][..2];
            // Means of 300 to 1000 uniform numbers of width one: a standard deviation of at most
            // 0.017.
            assert!(distance(found, &expected) < 0.01, "{centres:?}");
        }
    }

    #[test]
    fn there_are_no_more_centres_than_distinct_points() {
        assert_eq!(centres(&[1.0, 1.0, 2.0, 2.0], 1, 5, Seed(1)).len(), 2);
        assert_eq!(centres(&[], 3, 5, Seed(1)), Vec::<f32>::new());
    }
}
