//! Against the literal definitions, and by hand.

use std::collections::{BTreeMap, BTreeSet};

use super::coverage::{self, Coverage};
use super::sparsity::{self, Columns, Distinct};
use super::theory::Decay;
use super::*;
use crate::data::{ActionObservation, End, Episodes};
use crate::domains;
use crate::math::dot;
use crate::model::{Cuts, History};

/// Rounding of a few thousand additions.
const ROUNDING: f64 = 1e-9;

type Sequence = Vec<ActionObservation>;

fn alphabet() -> Alphabet {
    let mut alphabet = Alphabet::default();
    ["left", "right"].iter().for_each(|name| {
        alphabet.intern_action(name);
    });
    ["dark", "light", "grey"].iter().for_each(|name| {
        alphabet.intern_observation(name);
    });
    alphabet.intern_terminal_observation("dark");
    alphabet
}

/// Episodes of 1 to 9 steps, some of which terminate.
fn episodes(n: usize) -> Vec<Trajectory> {
    let mut rng = Seed(5).rng();
    let mut episode = || {
        let length = 1 + rng.below(9);
        let mut steps: Sequence = (0..length).map(|_| ActionObservation::new(rng.below(2) as u32, rng.below(3) as u32)).collect();
        let ends = rng.below(3) == 0;
        if ends {
            steps[length - 1].observation.0 = 3;
        }
        let end = if ends { End::Terminated } else { End::Truncated };
        Trajectory { rewards: vec![None; length], steps, action_probabilities: vec![], end, about: Default::default() }
    };
    (0..n).map(|_| episode()).collect()
}

fn held(zs: &[Trajectory]) -> Episodes {
    let mut episodes = Episodes::default();
    zs.iter().for_each(|z| episodes.push(z, 1.0).unwrap());
    episodes
}

/// P_{T,H} and P_{T,ao,H} by definition: how often each test followed each history (and step).
#[derive(Default)]
struct Literal {
    tests: BTreeSet<Sequence>,
    joint: BTreeMap<Sequence, BTreeMap<Sequence, u64>>,
    with_next: BTreeMap<(Sequence, ActionObservation), BTreeMap<Sequence, u64>>,
    histories: BTreeMap<Sequence, u64>,
}

fn literal(zs: &[Trajectory], params: &LearnParams, rule: crate::CutRule) -> Literal {
    let mut literal = Literal::default();
    let prefixes = |steps: &[ActionObservation]| -> Vec<Sequence> {
        (1..=params.max_test_length.min(steps.len())).map(|l| steps[..l].to_vec()).collect()
    };
    let cuts = |z: &Trajectory| rule.count(z.steps.len(), z.end);
    for (z, t) in zs.iter().flat_map(|z| (0..cuts(z)).map(move |t| (z, t))) {
        let (h, next, future, after_next) = (&z.steps[..t], z.steps[t], &z.steps[t..], &z.steps[t + 1..]);
        let mut histories = match params.history {
            History::Prefix => vec![h.to_vec()],
            History::Suffix => (1..=params.history_length.min(h.len())).map(|k| h[h.len() - k..].to_vec()).collect(),
        };
        if params.history == History::Suffix && h.is_empty() {
            histories.push(vec![]);
        }
        for history in histories {
            *literal.histories.entry(history.clone()).or_insert(0) += 1;
            for test in prefixes(future) {
                *literal.joint.entry(history.clone()).or_default().entry(test).or_insert(0) += 1;
            }
            for test in prefixes(after_next) {
                *literal.with_next.entry((history.clone(), next)).or_default().entry(test).or_insert(0) += 1;
            }
        }
        literal.tests.extend(prefixes(future).into_iter().chain(prefixes(after_next)));
    }
    literal
}

#[test]
fn sparsity_is_what_counting_by_definition_gives() {
    let zs = episodes(300);
    for history in [History::Prefix, History::Suffix] {
        for rule in [crate::CutRule { room: 2, limit: Some(9) }, crate::CutRule::RAGGED] {
            let params = LearnParams { history, max_test_length: 2, ..LearnParams::default() };
            let mut counter = sparsity::Counter::new(&params, &alphabet(), rule);
            // In two batches, as logs come.
            counter.add(&held(&zs[..120]));
            counter.add(&held(&zs[120..]));
            let (ours, theirs) = (counter.finish(8, 300, history), literal(&zs, &params, rule));
            let (tests, histories) = (theirs.tests.len() as f64, theirs.joint.len() as f64);
            assert!(ours.exact);
            assert_eq!((ours.tests, ours.histories), (tests as u64, histories as u64), "{history:?}");
            let lengths: Vec<usize> = theirs.joint.values().map(BTreeMap::len).collect();
            let all = lengths.iter().sum::<usize>() as f64;
            assert_eq!(ours.joint.largest, *lengths.iter().max().unwrap() as u64);
            assert!((ours.joint.mean - all / histories).abs() < ROUNDING);
            assert!((ours.joint.share - all / histories / tests).abs() < ROUNDING);

            let lengths: Vec<usize> = theirs.with_next.values().map(BTreeMap::len).collect();
            let all = lengths.iter().sum::<usize>() as f64;
            assert_eq!(ours.with_next.largest, *lengths.iter().max().unwrap() as u64);
            assert_eq!((ours.with_next.columns, ours.with_next.nonzero_columns), (8 * histories as u64, lengths.len() as u64));
            assert!((ours.with_next.mean - all / lengths.len() as f64).abs() < ROUNDING);
            assert!((ours.with_next.share - all / (8.0 * histories) / tests).abs() < ROUNDING);

            let variance = |count: &u64| match (*count as f64 / 300.0, history) {
                (p, History::Prefix) => p * (1.0 - p) / 300.0,
                (p, History::Suffix) => p / 300.0,
            };
            let largest = |counts: &mut dyn Iterator<Item = &u64>| counts.map(variance).fold(0.0, f64::max);
            let theirs = [
                largest(&mut theirs.joint.values().flat_map(BTreeMap::values)),
                largest(&mut theirs.with_next.values().flat_map(BTreeMap::values)),
                largest(&mut theirs.histories.values()),
            ];
            ours.variances.iter().zip(theirs).for_each(|(x, y)| assert!((x - y).abs() < ROUNDING, "{x} {y}"));
        }
    }
}

#[test]
fn the_columns_kept_are_an_unbiased_sample() {
    const COLUMNS: u64 = 20_000;
    // Column i has 1 + i % 9 rows, each seen twice.
    let (mut columns, mut distinct) = (Columns::new(4000), Distinct::new(1000));
    for i in (0..COLUMNS).chain(0..COLUMNS) {
        let rows: Vec<u64> = (0..1 + i % 9).collect();
        columns.add(i, &rows);
        distinct.add(i);
    }
    let found = columns.sparsity(COLUMNS, 9);
    assert!(found.counted < 1000 && columns.zeros > 0, "{found:?}");
    // Of 500 columns and more: 4 standard deviations of their number, and of the mean of their
    // lengths.
    let error = 4.0 / (found.counted as f64).sqrt();
    let is_close = |count: u64| (count as f64 / COLUMNS as f64 - 1.0).abs() < error;
    assert!(
        found.counted >= 250 && is_close(found.nonzero_columns) && is_close(distinct.count()),
        "{found:?} {}",
        distinct.count()
    );
    assert!((found.mean - 5.0).abs() < 2.58 * error && found.largest == 9, "{found:?}");
    assert!(columns.entries.values().all(|&count| count == 2), "columns that are kept are counted in full");
}

#[test]
fn the_tail_of_halving_eigenvalues_is_that_of_the_series() {
    let values: Vec<f64> = (0..40).map(|i| 2f64.powf(-f64::from(i) / 2.0)).collect();
    let decay = Decay::of(&values, 4);
    // σ²_i = 2^{1−i}/4, so Σ_{i>m} = 2^{1−m}/4, but for the last.
    let end = 2f64.powi(-39) / 4.0;
    assert!((decay.total - (0.5 - end)).abs() < ROUNDING);
    for m in [1, 5, 20] {
        assert!((decay.nu(m) - (2f64.powi(1 - m as i32) / 4.0 - end)).abs() < ROUNDING * decay.nu(m));
        assert_eq!(decay.left_out.iter().find(|l| l.m == m).unwrap().nu, decay.nu(m));
    }
    assert_eq!((decay.directions(0.1), decay.directions(0.01)), (4, 7), "1/16 and 1/128 are left");
}

#[test]
fn terms_are_those_of_the_theorems() {
    let decay = Decay::of(&[2.0, 1.0], 1);
    let params = LearnParams { max_test_length: 2, ..LearnParams::default() };
    let mut counter = sparsity::Counter::new(&params, &alphabet(), crate::CutRule::RAGGED);
    counter.add(&held(&episodes(50)));
    let sparsity = Sparsity { variances: [0.1, 0.2, 0.3], ..counter.finish(8, 50, History::Suffix) };
    let terms = Terms::new(1, 10, &decay, &sparsity, 3.0, 2.0);
    let tail = (40.0f64 / 0.05).ln();
    let (w2, k, tests) = (9.0 * (1.0 + 4.0 * tail), sparsity.k() as f64, sparsity.tests as f64);
    let noise = 4.0 * k * (4.0 * tests / 0.05).ln() / 10.0 * 0.2 + w2 * 0.1;
    let expected = [1.0, w2, 5.0, 1.0 + 4.0 * tail, noise, 0.3 + 0.1 * 4.0];
    let ours = [terms.nu, terms.w2, terms.x2, terms.b2, terms.noise, terms.normalizer_noise];
    ours.iter().zip(expected).for_each(|(x, y)| assert!((x - y).abs() < ROUNDING * y, "{ours:?} {expected:?}"));
}

#[test]
fn coverage_by_hand() {
    // After dark: left 3 times, right once. At the start: left twice. After light: right once.
    let step = |a, o| ActionObservation::new(a, o);
    let episode = |steps: Sequence| Trajectory {
        rewards: vec![None; steps.len()],
        steps,
        action_probabilities: vec![],
        end: End::Truncated,
        about: Default::default(),
    };
    let zs = [episode(vec![step(0, 0), step(0, 0), step(0, 0), step(0, 1)]), episode(vec![step(0, 0), step(1, 1), step(1, 0)])];
    let mut counter = coverage::Counter::default();
    counter.add(&held(&zs));
    let found = counter.finish(&alphabet(), None);
    assert_eq!(found.actions.iter().map(|a| a.count).collect::<Vec<_>>(), [5, 2]);
    let tried = found.by_observation;
    assert_eq!((tried.contexts, tried.combinations, tried.never, tried.rarely), (3, 6, 2, 4));
    assert_eq!(tried.steps_missing, 3.0 / 7.0);
    // Contexts (start), left dark, right light.
    assert_eq!((found.by_pair.contexts, found.by_pair.never), (3, 2));
    // 1/π: 4/3 three times, 4 once, 1 three times.
    let effective = 11f64.powi(2) / (7.0 * (3.0 * 16.0 / 9.0 + 16.0 + 3.0));
    assert!((found.effective - effective).abs() < ROUNDING);
    assert_eq!(found.least, [], "no context of {} steps", Coverage::OFTEN);

    let many = episode((0..400).map(|t| step(u32::from(t % 4 == 3), u32::from(t % 2 == 0))).collect());
    let mut counter = coverage::Counter::default();
    counter.add(&held(&[many]));
    let least = counter.finish(&alphabet(), None).least;
    // Right is taken after light (even steps) half the time, and never after dark.
    assert_eq!((least[0].action.as_str(), least[0].after.as_deref(), least[0].count), ("right", Some("dark"), 0));
    assert_eq!((least[1].action.as_str(), least[1].after.as_deref(), least[1].count), ("left", Some("light"), 100));
}

#[test]
fn the_factor_of_theorem_3_is_its_sum() {
    let tiger = domains::get("tiger").unwrap();
    let zs: Vec<Trajectory> = domains::sample(&tiger, 400, 12, Seed(3)).collect();
    let params = LearnParams { rank: 3, test_dim: 64, history_dim: 64, ..LearnParams::default() };
    let model = crate::learn(&Logs::memory(tiger.alphabet().clone(), zs.clone()), &params).unwrap();
    let zs: Vec<Trajectory> =
        Logs::memory(tiger.alphabet().clone(), zs).open(model.alphabet().clone()).unwrap().map(Result::unwrap).collect();
    let linear = model.linear().unwrap();
    let norms = Norms::of(linear, model.alphabet()).unwrap();
    let horizons = propagation::propagation(&model, linear.initial(), &norms, &zs);
    assert_eq!(horizons.len(), 12);
    let s: Vec<f64> = horizons.iter().map(|h| 10f64.powf(h.log10_scale.unwrap())).collect();
    assert!(horizons[0].log10_factor.is_none());
    for n in 2..=12usize {
        // Σ_{t=1}^{n−1} s_t c^{n−t−1}
        let sum: f64 = (1..n).map(|t| s[t - 1] * norms.largest.powi((n - t - 1) as i32)).sum();
        let (ours, theirs) = (horizons[n - 1].log10_factor.unwrap(), (norms.normalizer * sum).log10());
        assert!((ours - theirs).abs() < ROUNDING, "{n}: {ours} {theirs}");
    }
    // s_1: all first steps, by the operators themselves.
    let size = |z: &Trajectory| {
        let ao = z.steps[0];
        let c = crate::math::multiply(linear.operator(ao).unwrap(), linear.initial());
        let total = dot(&c, linear.normalizer());
        let p = crate::PredictiveState::new(&model).predict(ao.action)[ao.observation.index()];
        let joint = p * model.frequencies().action_shares[ao.action.index()];
        (joint * dot(&c, &c).sqrt() / total).powi(2) / dot(linear.initial(), linear.initial())
    };
    let literal = (zs.iter().map(size).sum::<f64>() / zs.len() as f64).sqrt();
    assert!((s[0] - literal).abs() < ROUNDING, "{} {literal}", s[0]);
    assert!(s.windows(2).all(|s| s[1] < s[0]), "longer histories are less probable: {s:?}");
}

#[test]
fn the_radius_does_not_depend_on_coordinates_and_norms_do() {
    let tiger = domains::get("tiger").unwrap();
    let logs = Logs::memory(tiger.alphabet().clone(), domains::sample(&tiger, 500, 12, Seed(3)).collect());
    let params = LearnParams { rank: 2, test_dim: 64, history_dim: 64, cuts: Cuts::Complete, ..LearnParams::default() };
    let model = crate::learn(&logs, &params).unwrap();
    let linear = model.linear().unwrap();
    let turned = linear.transformed(&[2.0, 1.0, 0.0, 5.0], &[0.5, -0.1, 0.0, 0.2]);
    let [one, other] = [linear, &turned].map(|linear| Norms::of(linear, model.alphabet()).unwrap());
    // Operators of 2 × 2 that were multiplied twice.
    assert!((one.radius - other.radius).abs() < ROUNDING && (one.largest - other.largest).abs() > 0.01, "{one:?} {other:?}");
    // Eigenvalues of 2 × 2 by their trace and determinant.
    let c = linear.step_operator();
    let (trace, determinant) = (c[0] + c[3], c[0] * c[3] - c[1] * c[2]);
    let root = (trace * trace / 4.0 - determinant).sqrt();
    assert!((one.radius - (trace / 2.0 + root).abs().max((trace / 2.0 - root).abs())).abs() < ROUNDING);
}

#[test]
fn shuffling_keeps_every_past_and_every_future_and_parts_them() {
    let alphabet = alphabet();
    let one = |length: usize| {
        let steps = (0..length).map(|t| ActionObservation::new(t as u32 % 2, t as u32 % 3)).collect();
        Trajectory {
            steps,
            rewards: vec![None; length],
            action_probabilities: vec![],
            end: End::Truncated,
            about: Default::default(),
        }
    };
    let mut features = crate::learn::Features::new(&LearnParams::default(), &alphabet);
    for zs in [vec![one(300)], vec![one(80); 9], (3..120).map(|i| one(3 + i % 11)).collect(), vec![one(900), one(50), one(4)]] {
        let episodes = held(&zs);
        let batch = features.batch(&episodes, crate::CutRule { room: 2, limit: None });
        let cuts: Vec<usize> = batch.cuts().map(|cut| cut.at).collect();
        for draw in 0..5 {
            let shuffle::Shuffled { pairings, near } = shuffle::shuffled(&batch, Seed(draw));
            let pasts: Vec<usize> = pairings.iter().map(|pairing| pairing.history.at).collect();
            let mut futures: Vec<usize> = pairings.iter().map(|pairing| pairing.tests.at).collect();
            let apart =
                pairings.iter().filter(|p| p.history.first != p.tests.first || p.history.at.abs_diff(p.tests.at) >= shuffle::GAP);
            assert_eq!(apart.count() + near, cuts.len());
            assert!(near as f64 <= 0.05 * cuts.len() as f64, "{near} of {}", cuts.len());
            futures.sort_unstable();
            assert_eq!((&pasts, &futures), (&cuts, &cuts), "each exactly once");
        }
    }
}
