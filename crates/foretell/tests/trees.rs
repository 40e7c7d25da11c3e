//! Our Extra-Trees agree with scikit-learn's statistically: the same error on the same rows, up to
//! chance.

use std::f64::consts::PI;

use foretell::Seed;
use foretell::trees::{Forest, Inputs, Rows, Targets, TreeParams};

const ROWS: usize = 1000;
const WIDTH: usize = 10;
/// Forests whose mean error is compared.
const FORESTS: u64 = 40;
/// Forests behind each figure of [`REFERENCES`].
const REFERENCE_FORESTS: f64 = 400.0;

#[derive(Clone, Copy, Debug)]
enum Problem {
    Friedman,
    Steps,
    Linear,
}

/// Mean and standard deviation over forests of scikit-learn's root mean squared error, on the rows
/// of [`sample`].
///
/// Printed by `benchmarks/trees.py --reference 400` (scikit-learn 1.9.1), which draws the same rows
/// from the same generator.
const REFERENCES: [(Problem, Option<usize>, Weights, f64, f64); 8] = [
    (Problem::Friedman, None, Weights::Equal, 1.94102, 0.01953),
    (Problem::Friedman, Some(3), Weights::Equal, 2.27480, 0.03848),
    (Problem::Friedman, Some(1), Weights::Equal, 3.35048, 0.06988),
    (Problem::Friedman, None, Weights::Unequal, 1.98557, 0.02431),
    (Problem::Steps, None, Weights::Equal, 0.72241, 0.01285),
    (Problem::Steps, Some(3), Weights::Equal, 1.22530, 0.03752),
    (Problem::Linear, None, Weights::Equal, 1.07345, 0.00527),
    (Problem::Linear, Some(1), Weights::Equal, 1.20214, 0.01500),
];

#[derive(Clone, Copy, Debug)]
enum Weights {
    Equal,
    /// Half of the rows, selected by a feature that matters, have weight 1/20.
    Unequal,
}

/// Training rows and then as many test rows; targets of both. The noise sums 12 uniforms.
fn sample(problem: Problem) -> (Vec<f64>, Vec<f64>) {
    let mut rng = Seed(problem as u64).rng();
    let x: Vec<f64> = (0..2 * ROWS * WIDTH).map(|_| rng.uniform()).collect();
    let mut target = |x: &[f64]| {
        let noise = (0..12).map(|_| rng.uniform()).sum::<f64>() - 6.0;
        let (a, b, c, d, e) = (x[7], x[2], x[9], x[4], x[0]);
        match problem {
            Problem::Friedman => 10.0 * (PI * a * b).sin() + 20.0 * (c - 0.5).powi(2) + 10.0 * d + 5.0 * e + noise,
            Problem::Steps => {
                let corner = b > 0.6 && c < 0.5;
                4.0 * f64::from(a > 0.3) + 2.0 * f64::from(corner) - 3.0 * f64::from(d > 0.8) + 0.5 * noise
            }
            Problem::Linear => 3.0 * a - 2.0 * b + c + 0.5 * d + noise,
        }
    };
    let y = x.chunks(WIDTH).map(&mut target).collect();
    (x, y)
}

#[test]
fn trees_have_the_errors_of_scikit_learn() {
    for (problem, candidates, weights, mean, deviation) in REFERENCES {
        let (x, y) = sample(problem);
        let part = |x: &[f64]| Inputs::new(Rows::new(x, WIDTH).unwrap()).unwrap();
        let (train, test) = (part(&x[..ROWS * WIDTH]), part(&x[ROWS * WIDTH..]));
        let unequal: Vec<f64> = x.chunks(WIDTH).take(ROWS).map(|x| if x[4] < 0.5 { 1.0 } else { 0.05 }).collect();
        let weights_of_rows = matches!(weights, Weights::Unequal).then_some(&unequal[..]);
        let targets = Targets { y: &y[..ROWS], weights: weights_of_rows };
        let params = TreeParams { candidates, ..TreeParams::default() };
        let error = |seed: u64| {
            let predictions = Forest::fit(&train, targets, &params, Seed(seed)).unwrap().predict_all(&test);
            let squares: f64 = predictions.iter().zip(&y[ROWS..]).map(|(p, y)| (p - y).powi(2)).sum();
            (squares / ROWS as f64).sqrt()
        };
        let ours = (0..FORESTS).map(error).sum::<f64>() / FORESTS as f64;
        // Both means are drawn, from distributions that should be the same.
        let standard_error = deviation * (1.0 / FORESTS as f64 + 1.0 / REFERENCE_FORESTS).sqrt();
        assert!(
            (ours - mean).abs() < 4.0 * standard_error,
            "{problem:?} {candidates:?} {weights:?}: {ours} against {mean} ± {standard_error}"
        );
    }
}
