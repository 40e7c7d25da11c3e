//! Adam (Kingma and Ba 2015) with decoupled weight decay (Loshchilov and Hutter 2019), and a bound
//! on the norm of gradients.

use crate::math::single::vectorised;

const MEAN: f32 = 0.9; // Kingma and Ba
const SQUARE: f32 = 0.999; // Kingma and Ba
const EPSILON: f32 = 1e-8; // Kingma and Ba
/// The norm that gradients are scaled down to, if theirs is larger.
const NORM: f64 = 1.0;

/// The moments of past gradients.
#[derive(Clone, Debug)]
pub(super) struct Adam {
    means: Vec<f32>,
    squares: Vec<f32>,
    updates: i32,
}

impl Adam {
    pub(super) fn new(weights: usize) -> Adam {
        Adam { means: vec![0.0; weights], squares: vec![0.0; weights], updates: 0 }
    }

    /// Forgets past gradients.
    pub(super) fn reset(&mut self) {
        self.means.fill(0.0);
        self.squares.fill(0.0);
        self.updates = 0;
    }

    /// Updates the weights by `scale` times the gradient. A gradient that is not finite leaves them
    /// as they are, and returns false.
    pub(super) fn update(&mut self, weights: &mut [f32], gradient: &[f32], scale: f32, rate: f32, decay: f32) -> bool {
        let norm = gradient.chunks(1024).map(|part| f64::from(part.iter().map(|x| x * x).sum::<f32>())).sum::<f64>().sqrt();
        let norm = norm * f64::from(scale);
        if !norm.is_finite() {
            return false;
        }
        let scale = scale * (NORM / norm.max(NORM)) as f32;
        self.updates += 1;
        let correct = |moment: f32| 1.0 - moment.powi(self.updates);
        let (by_mean, by_square) = (rate / correct(MEAN), 1.0 / correct(SQUARE));
        let moments = self.means.iter_mut().zip(&mut self.squares);
        vectorised(
            #[inline(always)]
            || {
                for ((w, g), (m, s)) in weights.iter_mut().zip(gradient).zip(moments) {
                    let g = g * scale;
                    *m = MEAN * *m + (1.0 - MEAN) * g;
                    *s = SQUARE * *s + (1.0 - SQUARE) * g * g;
                    *w -= by_mean * *m / ((by_square * *s).sqrt() + EPSILON) + rate * decay * *w;
                }
            },
        );
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gradient_that_is_not_finite_changes_nothing() {
        let (mut weights, mut adam) = (vec![1.0, 2.0], Adam::new(2));
        for bad in [f32::NAN, f32::INFINITY, f32::MAX] {
            assert!(!adam.update(&mut weights, &[bad, 0.0], 1.0, 0.1, 0.0));
        }
        assert_eq!(weights, [1.0, 2.0]);
        assert!(adam.update(&mut weights, &[1e15, 0.0], 1.0, 0.1, 0.0));
        assert!((weights[0] - 0.9).abs() < 1e-3, "the first step has the length of the rate: {}", weights[0]);
    }
}
