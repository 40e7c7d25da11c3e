use super::*;

fn regression(rows: usize, width: usize, seed: u64) -> (Vec<f64>, Vec<f64>) {
    let mut rng = Seed(seed).rng();
    let x: Vec<f64> = (0..rows * width).map(|_| rng.uniform()).collect();
    let y = x.chunks(width).map(|x| 5.0 * x[0] + (6.0 * x[width - 1]).sin() + 0.1 * rng.uniform()).collect();
    (x, y)
}

fn inputs(x: &[f64], width: usize) -> Inputs {
    Inputs::new(Rows::new(x, width).unwrap()).unwrap()
}

#[test]
fn distinct_rows_are_fitted_exactly_when_leaves_are_single_rows() {
    let (x, y) = regression(300, 5, 1);
    for candidates in [None, Some(2), Some(1)] {
        let params = TreeParams { trees: 4, candidates, min_split: 1 };
        let inputs = inputs(&x, 5);
        let forest = Forest::fit(&inputs, &y, &params, Seed(3)).unwrap();
        for ((row, y), p) in x.chunks(5).zip(&y).zip(forest.predict_all(&inputs)) {
            assert!((p - y).abs() < 1e-12, "{p} {y}");
            assert_eq!(p, forest.predict(row));
        }
    }
}
