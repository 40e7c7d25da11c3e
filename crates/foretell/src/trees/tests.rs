use proptest::prelude::*;

use super::*;
use crate::rng::Rng;

/// The ways to choose splits: the best of all features, of two, and a random one.
const KS: [Option<usize>; 3] = [None, Some(2), Some(1)];

fn uniform(n: usize, rng: &mut Rng) -> Vec<f64> {
    (0..n).map(|_| rng.uniform()).collect()
}

/// Rows of 5 features, of which the first and the last matter, and targets with noise.
fn regression(rows: usize, seed: u64) -> (Vec<f64>, Vec<f64>) {
    let mut rng = Seed(seed).rng();
    let x = uniform(rows * 5, &mut rng);
    let y = x.chunks(5).map(|x| 5.0 * x[0] + (6.0 * x[4]).sin() + 0.5 * rng.uniform()).collect();
    (x, y)
}

fn inputs(x: &[f64], width: usize) -> Inputs {
    Inputs::new(Rows::new(x, width).unwrap()).unwrap()
}

fn params(trees: usize, candidates: Option<usize>, min_split: usize) -> TreeParams {
    TreeParams { trees, candidates, min_split }
}

fn fit<'a>(x: &[f64], targets: impl Into<Targets<'a>>, params: &TreeParams, seed: u64) -> Forest {
    let targets = targets.into();
    Forest::fit(&inputs(x, x.len() / targets.y.len()), targets, params, Seed(seed)).unwrap()
}

/// Equal up to the rounding of a mean over trees.
fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-13 * (1.0 + a.abs().max(b.abs()))
}

/// Rows of a sample that pass through each node.
fn visits(forest: &Forest, x: &[f64]) -> Vec<usize> {
    let arrays = forest.to_arrays();
    let mut visits = vec![0; arrays.features.len()];
    for row in x.chunks(arrays.width) {
        for &root in &arrays.roots {
            let mut at = root as usize;
            visits[at] += 1;
            while arrays.children[at] > 0 {
                at = arrays.children[at] as usize + usize::from(row[arrays.features[at] as usize] as f32 > arrays.thresholds[at]);
                visits[at] += 1;
            }
        }
    }
    visits
}

#[test]
fn distinct_rows_are_fitted_exactly_when_leaves_are_single_rows() {
    let (x, y) = regression(300, 1);
    // An increasing map of the features changes neither that they are distinct nor their order.
    let mapped: Vec<f64> = x.iter().map(|x| (9.0 * x).exp()).collect();
    for k in KS {
        for x in [&x, &mapped] {
            let forest = fit(x, &y, &params(4, k, 1), 3);
            assert!(x.chunks(5).zip(&y).all(|(row, y)| close(forest.predict(row), *y)), "K = {k:?}");
        }
    }
}

#[test]
fn features_multiplied_by_powers_of_two_give_the_same_forest() {
    let (x, y) = regression(400, 2);
    let factors = [8.0, 0.25, 1.0, 1024.0, 2.0];
    let scaled: Vec<f64> = x.iter().enumerate().map(|(i, x)| x * factors[i % 5]).collect();
    for k in KS {
        let (forest, other) = (fit(&x, &y, &params(5, k, 4), 7), fit(&scaled, &y, &params(5, k, 4), 7));
        let (mut expected, arrays) = (forest.to_arrays(), other.to_arrays());
        for (t, feature) in expected.thresholds.iter_mut().zip(&expected.features) {
            *t *= factors[*feature as usize] as f32;
        }
        assert_eq!(arrays, expected, "K = {k:?}");
    }
}

#[test]
fn the_same_seed_gives_the_same_forest_on_any_number_of_threads() {
    let (x, y) = regression(6000, 3);
    let on = |threads: usize, k| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let forest = fit(&x, &y, &params(7, k, 10), 5);
            let inputs = inputs(&x, 5);
            (forest.predict_all(&inputs), forest.predict_leaves(&forest.trees().leaves(&inputs)), forest)
        })
    };
    for k in KS {
        let one = on(1, k);
        assert!(one == on(2, k) && one == on(3, k), "K = {k:?}");
        assert_ne!(one.2, fit(&x, &y, &params(7, k, 10), 6));
    }
}

#[test]
fn all_ways_to_predict_agree() {
    let (x, y) = regression(2500, 4);
    let forest = fit(&x, &y, &params(19, None, 10), 5);
    let (other, _) = regression(3001, 5);
    for x in [&other[..], &other[..5]] {
        let inputs = inputs(x, 5);
        let all = forest.predict_all(&inputs);
        assert_eq!(all, forest.predict_leaves(&forest.trees().leaves(&inputs)));
        assert_eq!(all, x.chunks(5).map(|row| forest.predict(row)).collect::<Vec<_>>());
    }
    assert!(forest.predict_all(&inputs(&[], 5)).is_empty());
    assert!(forest.predict(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, 0.0]).is_finite());
}

#[test]
fn frozen_trees_with_means_are_a_forest_of_one_candidate() {
    let (x, y) = regression(800, 6);
    let inputs = inputs(&x, 5);
    let trees = Trees::grow(&inputs, &params(6, None, 10), Seed(8)).unwrap();
    let leaves = trees.leaves(&inputs);
    for targets in [&y, &x[..800].to_vec()] {
        let frozen = Forest::from_leaves(trees.clone(), &leaves, targets).unwrap();
        assert_eq!(frozen, Forest::fit(&inputs, targets, &params(6, Some(1), 10), Seed(8)).unwrap());
        // The definition: the mean over trees of the mean over the rows in the same leaf.
        let mean_of = |row: usize, tree: usize| {
            let leaves = leaves.of_tree(tree);
            let same: Vec<f64> = (0..800).filter(|&i| leaves[i] == leaves[row]).map(|i| targets[i]).collect();
            same.iter().sum::<f64>() / same.len() as f64
        };
        let means = |row: usize| (0..6).map(|tree| mean_of(row, tree)).sum::<f64>() / 6.0;
        assert!(frozen.predict_all(&inputs).iter().enumerate().all(|(row, p)| close(*p, means(row))));
    }
}

#[test]
fn a_leaf_without_rows_has_the_mean_of_all() {
    let (x, _) = regression(100, 7);
    let trees = Trees::grow(&inputs(&x, 5), &params(3, None, 2), Seed(1)).unwrap();
    let two = inputs(&x[..10], 5);
    let forest = Forest::from_leaves(trees.clone(), &trees.leaves(&two), &[1.0, 5.0][..]).unwrap();
    let values = forest.to_arrays().values;
    assert_eq!(values.iter().filter(|v| **v == 3.0).count(), values.len() - 6);
}

#[test]
fn nodes_are_split_from_n_min_rows_on_and_both_children_have_rows() {
    let (x, y) = regression(500, 8);
    for k in KS {
        for min_split in [1, 2, 3, 10, 500, 501] {
            let forest = fit(&x, &y, &params(3, k, min_split), 1);
            let arrays = forest.to_arrays();
            for (visits, child) in visits(&forest, &x).into_iter().zip(arrays.children) {
                assert!(visits > 0);
                assert_eq!(child > 0, visits >= min_split.max(2), "K = {k:?}, n_min = {min_split}: {visits} rows");
            }
        }
    }
}

#[test]
fn constant_features_never_split_and_equal_targets_end_a_branch() {
    let (mut x, y) = regression(200, 9);
    x.iter_mut().skip(2).step_by(5).for_each(|x| *x = 0.1);
    for k in KS {
        let arrays = fit(&x, &y, &params(5, k, 2), 1).to_arrays();
        assert!(arrays.children.iter().zip(&arrays.features).all(|(child, feature)| *child == 0 || *feature != 2));
        let same = fit(&[0.3; 20], &y[..10], &params(5, k, 2), 1);
        assert_eq!((same.trees().leaf_count(), close(same.predict(&[0.0; 2]), y[..10].iter().sum::<f64>() / 10.0)), (5, true));
    }
    // One split separates the two halves, a second feature separates rows of a half, and 0.1 is its
    // own mean.
    let steps: Vec<f64> = (0..200).map(|i| if i < 100 { 0.1 } else { 0.7 }).collect();
    let x: Vec<f64> = steps.iter().zip(&y).flat_map(|(step, y)| [*step, *y]).collect();
    let forest = fit(&x, &steps, &params(5, None, 2), 1);
    assert_eq!(forest.to_arrays().values, [0.1, 0.7].repeat(5));
}

#[test]
fn ties_are_broken_at_random() {
    // A coin, its copy, its reverse (the same split with sides exchanged), and noise.
    let mut rng = Seed(10).rng();
    let coins: Vec<f64> = (0..900).map(|_| f64::from(rng.uniform() < 0.5)).collect();
    let x: Vec<f64> = coins.iter().flat_map(|&coin| [coin, rng.uniform(), coin, 1.0 - coin]).collect();
    let y: Vec<f64> = coins.iter().map(|coin| 3.0 * coin + rng.uniform()).collect();
    let arrays = fit(&x, &y, &params(3000, None, 900), 2).to_arrays();
    let mut counts = [0.0; 4];
    arrays.roots.iter().for_each(|root| counts[arrays.features[*root as usize] as usize] += 1.0);
    // Binomial(3000, 1/3): standard deviation 25.8; 4.5 of them.
    assert!([0, 2, 3].iter().all(|&j: &usize| (counts[j] - 1000.0f64).abs() < 116.0), "{counts:?}");
}

#[test]
fn copies_of_a_feature_are_used_equally_often() {
    let mut rng = Seed(11).rng();
    let x: Vec<f64> = (0..1000).flat_map(|_| [rng.uniform(); 2]).collect();
    let y: Vec<f64> = x.chunks(2).map(|x| (9.0 * x[0]).sin() + 0.1 * rng.uniform()).collect();
    let arrays = fit(&x, &y, &params(25, None, 2), 2).to_arrays();
    let splits = arrays.children.iter().filter(|child| **child > 0).count() as f64;
    let second = arrays.features.iter().sum::<u32>() as f64;
    assert!((second - splits / 2.0).abs() < 4.5 * (splits / 4.0).sqrt(), "{second} of {splits}");
}

#[test]
fn k_candidates_find_the_one_feature_that_matters_in_k_of_d_trees() {
    let mut rng = Seed(12).rng();
    let x = uniform(300 * 10, &mut rng);
    let y: Vec<f64> = x.chunks(10).map(|x| 100.0 * x[6]).collect();
    for k in [1, 3, 7, 10] {
        let arrays = fit(&x, &y, &params(1000, Some(k), 300), 3).to_arrays();
        let found = arrays.roots.iter().filter(|root| arrays.features[**root as usize] == 6).count() as f64;
        // A threshold near the edge may lose to another feature, hence the second term.
        let (mean, deviation) = (100.0 * k as f64, (1000.0 * k as f64 / 10.0 * (1.0 - k as f64 / 10.0)).sqrt());
        let slack = if k > 1 { 0.03 * mean } else { 0.0 };
        assert!((found - mean).abs() < 4.5 * deviation + slack, "K = {k}: {found}");
    }
}

#[test]
fn values_of_leaves_are_weighted_means() {
    let (x, y) = regression(600, 13);
    let weights: Vec<f64> = x.chunks(5).map(|x| 0.1 + x[1]).collect();
    for k in KS {
        let forest = fit(&x, Targets { y: &y, weights: Some(&weights) }, &params(4, k, 10), 1);
        let leaves = forest.trees().leaves(&inputs(&x, 5));
        let values = forest.to_arrays().values;
        let mut sums = vec![(0.0, 0.0); values.len()];
        for tree in 0..4 {
            for (i, &leaf) in leaves.of_tree(tree).iter().enumerate() {
                let (sum, weight) = &mut sums[leaf as usize];
                (*sum, *weight) = (*sum + weights[i] * y[i], *weight + weights[i]);
            }
        }
        assert!(sums.iter().zip(values).all(|((sum, weight), value)| close(sum / weight, value)), "K = {k:?}");
    }
}

#[test]
fn rows_of_weight_zero_do_not_matter() {
    let (x, y) = regression(300, 14);
    let (mut more_x, mut more_y, mut weights) = (Vec::new(), Vec::new(), Vec::new());
    for (row, &y) in x.chunks(5).zip(&y) {
        more_x.extend([row, &[1e6, -1e6, 0.0, 3.0, 9.0]].concat());
        more_y.extend([y, -1e9]);
        weights.extend([2.0, 0.0]);
    }
    for k in KS {
        let (p, all) = (params(5, k, 10), vec![2.0; 300]);
        let with = fit(&more_x, Targets { y: &more_y, weights: Some(&weights) }, &p, 4);
        assert_eq!(with, fit(&x, Targets { y: &y, weights: Some(&all) }, &p, 4));
    }
}

#[test]
fn whole_weights_choose_the_split_that_repeated_rows_choose() {
    let (x, y) = regression(60, 15);
    let weights: Vec<f64> = (0..60).map(|i| f64::from(1 + i % 7)).collect();
    let repeat = |values: &[f64], width: usize| -> Vec<f64> {
        values.chunks(width).zip(&weights).flat_map(|(row, w)| row.repeat(*w as usize)).collect()
    };
    let p = params(300, None, 60);
    let weighted = fit(&x, Targets { y: &y, weights: Some(&weights) }, &p, 1).to_arrays();
    let repeated = fit(&repeat(&x, 5), &repeat(&y, 1), &p, 1).to_arrays();
    let first = |arrays: &ForestArrays| -> Vec<(u32, f32)> {
        arrays.roots.iter().map(|&root| (arrays.features[root as usize], arrays.thresholds[root as usize])).collect()
    };
    assert_eq!(first(&weighted), first(&repeated));
}

#[test]
fn a_forest_survives_conversion_to_arrays() {
    let (x, y) = regression(500, 16);
    for k in KS {
        let forest = fit(&x, &y, &params(5, k, 10), 1);
        let again = Forest::from_arrays(forest.to_arrays()).unwrap();
        assert_eq!(again, forest);
        assert_eq!(again.predict_all(&inputs(&x, 5)), forest.predict_all(&inputs(&x, 5)));
    }
}

#[test]
fn damaged_arrays_are_refused() {
    let (x, y) = regression(100, 17);
    let good = fit(&x, &y, &params(2, None, 10), 1).to_arrays();
    let (second, nodes) = (good.roots[1], good.features.len() as u32);
    let refused = |damage: &dyn Fn(&mut ForestArrays)| {
        let mut arrays = good.clone();
        damage(&mut arrays);
        let message = Forest::from_arrays(arrays).unwrap_err().to_string();
        assert!(message.starts_with("the forest is damaged: ") && message.ends_with("; fit it again"), "{message}");
    };
    refused(&|a| a.width = 0);
    refused(&|a| a.width = 1);
    refused(&|a| a.features[0] = 5);
    refused(&|a| _ = a.features.pop());
    refused(&|a| _ = a.thresholds.pop());
    refused(&|a| _ = a.children.pop());
    refused(&|a| _ = a.values.pop());
    refused(&|a| a.values[0] = f64::NAN);
    refused(&|a| a.thresholds[0] = f32::INFINITY);
    refused(&|a| a.children[0] = second - 1); // its second child would be the next root
    refused(&|a| a.children[0] = second);
    refused(&|a| a.children[second as usize] = 1); // backward, into another tree
    refused(&|a| a.children[second as usize] = second); // itself
    refused(&|a| a.children[second as usize] = nodes - 1);
    refused(&|a| a.children[second as usize] = u32::MAX);
    refused(&|a| a.roots[0] = 1);
    refused(&|a| a.roots[1] = 0);
    refused(&|a| a.roots[1] = nodes);
    refused(&|a| a.roots.clear());
    refused(&|a| *a = ForestArrays { width: 5, ..Default::default() });
}

#[test]
fn invalid_training_data_is_refused() {
    let message = |error: Error| error.to_string();
    let wrong = |x: &[f64], width| message(Rows::new(x, width).and_then(Inputs::new).unwrap_err());
    assert_eq!(wrong(&[1.0; 5], 2), "5 numbers are not rows of 2 features; give whole rows of at least one feature");
    assert_eq!(wrong(&[1.0; 5], 0), "5 numbers are not rows of 0 features; give whole rows of at least one feature");
    for x in [f64::NAN, f64::INFINITY, -1e39] {
        let expected =
            format!("feature 1 of row 2 is {x}, which a tree cannot split; give finite numbers of at most 3.4028235e38");
        assert_eq!(wrong(&[0.0, 0.0, 0.0, 0.0, 0.0, x], 2), expected);
    }
    let mut many = vec![0.0; 40_000];
    [30_001, 9_003, 39_999].iter().for_each(|&i| many[i] = f64::NAN);
    assert!(wrong(&many, 4).starts_with("feature 3 of row 2250 is NaN"), "the first is named");
    let two = inputs(&[1.0, 2.0], 1);
    let unfit = |targets: Targets<'_>, p: TreeParams| message(Forest::fit(&two, targets, &p, Seed(1)).unwrap_err());
    let default = TreeParams::default;
    assert_eq!(unfit((&[1.0][..]).into(), default()), "1 targets for 2 rows; give one of each for each row");
    assert_eq!(unfit((&[1.0, f64::NAN][..]).into(), default()), "the target of row 1 is NaN; give numbers of at most 1e100");
    let weighted = |w: &[f64]| unfit(Targets { y: &[1.0, 2.0], weights: Some(w) }, default());
    assert_eq!(weighted(&[1.0]), "2 targets and 1 weights for 2 rows; give one of each for each row");
    assert_eq!(weighted(&[1.0, -1.0]), "the weight of row 1 is -1; give numbers from 0 to 1e100");
    assert_eq!(weighted(&[0.0, 0.0]), "there is no row to learn from; give at least one row of positive weight");
    assert_eq!(unfit((&[1.0, 2.0][..]).into(), params(0, None, 1)), "trees = 0: must be at least 1");
    assert_eq!(unfit((&[1.0, 2.0][..]).into(), params(1, Some(0), 1)), "candidates = 0: must be at least 1");
    assert_eq!(unfit((&[1.0, 2.0][..]).into(), params(1, None, 0)), "min_split = 0: must be at least 1");
    let huge = unfit((&[1.0, 2.0][..]).into(), params(1 << 31, None, 1));
    assert_eq!(huge, "2147483648 trees of 2 rows may have more than 4294967295 nodes; use fewer trees or rows");
    let empty = message(Trees::grow(&inputs(&[], 3), &default(), Seed(1)).unwrap_err());
    assert_eq!(empty, "there is no row to learn from; give at least one");
    assert!(serde_json::from_str::<TreeParams>(r#"{"tree": 3}"#).is_err());
    assert_eq!(serde_json::from_str::<TreeParams>(r#"{"trees": 3}"#).unwrap(), params(3, None, 10));
}

/// Numbers at which differences, sums and rounding go wrong.
fn awkward() -> impl Strategy<Value = f64> {
    let special = [0.0, -0.0, 1e-45, -1e-45, 1.0, f64::from(1f32.next_up()), f64::from(f32::MAX), f64::from(f32::MIN), 1e-38];
    prop_oneof![prop::sample::select(special.to_vec()), -1e3..1e3f64, Just(7.0)]
}

proptest! {
    #[test]
    fn predictions_lie_between_the_targets_and_distinct_rows_are_separated(
        (width, x) in (1usize..12).prop_flat_map(|width| (Just(width), prop::collection::vec(awkward(), width * 12))),
        y in prop::collection::vec(-1e100..1e100f64, 12),
        k in prop::option::of(1usize..4),
        seed: u64,
    ) {
        let forest = fit(&x, &y, &params(3, k, 1), seed);
        let (low, high) = y.iter().fold((f64::MAX, f64::MIN), |(low, high), &y| (low.min(y), high.max(y)));
        let rows: Vec<Vec<f32>> = x.chunks(width).map(|row| row.iter().map(|&x| x as f32).collect()).collect();
        for (i, row) in x.chunks(width).enumerate() {
            let p = forest.predict(row);
            prop_assert!((low - 1e87..=high + 1e87).contains(&p));
            let same: Vec<f64> = (0..12).filter(|&j| rows[j] == rows[i]).map(|j| y[j]).collect();
            let mean = same.iter().sum::<f64>() / same.len() as f64;
            prop_assert!((p - mean).abs() <= 1e87, "{p} {mean}");
        }
        prop_assert!(visits(&forest, &x).iter().all(|visits| *visits > 0));
    }

    #[test]
    fn no_arrays_make_a_walk_fail(
        node in 0usize..60,
        child: u32, feature in 0u32..7, small in 0u32..70, tree in 0usize..4,
        which in 0..6,
    ) {
        let (x, y) = regression(40, 18);
        let mut arrays = fit(&x, &y, &params(4, Some(1), 10), 1).to_arrays();
        let node = node % arrays.children.len();
        match which {
            0 => arrays.children[node] = child,
            1 => arrays.children[node] = small,
            2 => arrays.features[node] = feature,
            3 => arrays.roots[tree] = small,
            4 => arrays.roots.truncate(tree),
            _ => arrays.width = feature as usize,
        }
        let width = arrays.width;
        if let Ok(forest) = Forest::from_arrays(arrays) {
            prop_assert!(forest.predict(&vec![0.5; width]).is_finite());
            prop_assert!(forest.predict_all(&inputs(&vec![0.5; 3 * width], width)).iter().all(|p| p.is_finite()));
        }
    }
}
