//! The literal definitions of the paper, to test the streaming code against: dense Φ, indicator
//! sums, pseudo-inverses.
//!
//! The only things shared with the streaming code are the columns φ and [`Trajectory::cuts`].

use std::collections::BTreeSet;

use faer::{Mat, Side};
use proptest::prelude::*;

use super::features::Features;
use super::learn;
use crate::data::{ActionObservation, Alphabet, CutRule, EMPTY, End, Fingerprints, Trajectory, extend};
use crate::judge::diagnose::diagnose;
use crate::log::Logs;
use crate::model::{Cuts, History, LearnParams, Projection, Regression, Start};

type Sequence = Vec<ActionObservation>;

/// Predictions of the streaming code and of the definitions differ by rounding only; a wrong term
/// differs by 1e-3 or more.
const ROUNDING: f64 = 1e-9;

const ACTIONS: u32 = 2;
const OBSERVATIONS: u32 = 2;

fn alphabet() -> Alphabet {
    let mut alphabet = Alphabet::default();
    ["left", "right"].iter().for_each(|name| {
        alphabet.intern_action(name);
    });
    ["dark", "light"].iter().for_each(|name| {
        alphabet.intern_observation(name);
    });
    ["dark", "light"].iter().for_each(|name| {
        alphabet.intern_terminal_observation(name);
    });
    alphabet
}

fn trajectories() -> impl Strategy<Value = Vec<Trajectory>> {
    let step = (0..ACTIONS, 0..OBSERVATIONS).prop_map(|(a, o)| ActionObservation::new(a, o));
    let episode = (prop::collection::vec(step, 1..9), prop::bool::weighted(0.3)).prop_map(|(mut steps, terminated)| {
        let end = if terminated { End::Terminated } else { End::Truncated };
        if terminated {
            steps.last_mut().expect("at least one step").observation.0 += OBSERVATIONS;
        }
        Trajectory { rewards: vec![None; steps.len()], steps, action_probabilities: vec![], end, about: Default::default() }
    });
    // One long episode guarantees a complete cut.
    let long = Trajectory {
        steps: (0..9).map(|i| ActionObservation::new(i % 2, i / 2 % 2)).collect(),
        rewards: vec![None; 9],
        action_probabilities: vec![],
        end: End::Truncated,
        about: Default::default(),
    };
    prop::collection::vec(episode, 20..60).prop_map(move |mut episodes| {
        episodes.push(long.clone());
        episodes
    })
}

/// Everything that happens at one cut, by definition.
struct Moment {
    tests: Vec<Sequence>,
    histories: Vec<Sequence>,
    at_start: bool,
    next: ActionObservation,
    tests_after: Vec<Sequence>,
}

fn prefixes(future: &[ActionObservation], longest: usize) -> Vec<Sequence> {
    (1..=longest.min(future.len())).map(|l| future[..l].to_vec()).collect()
}

fn moments_of(zs: &[Trajectory], params: &LearnParams) -> Vec<Moment> {
    let limit = zs.iter().filter(|z| z.end == End::Truncated).map(|z| z.steps.len()).max();
    let rule = match params.cuts {
        Cuts::Complete => CutRule { room: params.max_test_length, limit },
        Cuts::Ragged => CutRule::RAGGED,
    };
    let histories = |h: &[ActionObservation]| match params.history {
        History::Prefix if h.is_empty() => vec![],
        History::Prefix => vec![h.to_vec()],
        History::Suffix => (1..=params.history_length.min(h.len())).map(|k| h[h.len() - k..].to_vec()).collect(),
    };
    let cut = |z: &Trajectory, t: usize| Moment {
        tests: prefixes(&z.steps[t..], params.max_test_length),
        histories: histories(&z.steps[..t]),
        at_start: t == 0,
        next: z.steps[t],
        tests_after: prefixes(&z.steps[t + 1..], params.max_test_length),
    };
    zs.iter().flat_map(|z| (0..rule.count(z.steps.len(), z.end)).map(|t| cut(z, t))).collect()
}

/// Φ as a dense matrix: one column for each sequence, in the given order.
fn dense_phi(side: &crate::learn::features::Side, sequences: &[Sequence], f: &Fingerprints) -> Mat<f64> {
    let dim = if side.is_identity() { sequences.len() } else { side.columns.dim() };
    let mut phi = Mat::zeros(dim, sequences.len());
    for (j, sequence) in sequences.iter().enumerate() {
        if side.is_identity() {
            phi[(j, j)] = 1.0;
        } else {
            let key = sequence.iter().fold(EMPTY, |key, &ao| extend(key, f.pair(ao)));
            side.columns.add(key, side.columns.scale(), phi.col_as_slice_mut(j));
        }
    }
    phi
}

/// The model by definition: c₁, C_ao, and w_ao, the regression of the next step itself.
struct Literal {
    c1: Mat<f64>,
    operators: Vec<(ActionObservation, Mat<f64>)>,
    /// w_aoᵀ
    readouts: Vec<(ActionObservation, Mat<f64>)>,
    c_inf: Mat<f64>,
    /// Singular values of the (whitened) moments.
    spectrum: Vec<f64>,
}

impl Literal {
    fn joint_probability(&self, steps: &[ActionObservation]) -> f64 {
        let of = |list: &[(ActionObservation, Mat<f64>)], ao: &ActionObservation| {
            list.iter().find(|(pair, _)| pair == ao).map(|(_, m)| m.clone())
        };
        let Some((last, before)) = steps.split_last() else { return 1.0 };
        let mut c = self.c1.clone();
        for ao in before {
            match of(&self.operators, ao) {
                Some(c_ao) if ao.observation.0 < OBSERVATIONS => c = c_ao * c,
                _ => return 0.0, // not seen in training, or after the end
            }
        }
        of(&self.readouts, last).map_or(0.0, |readout| (readout * c)[(0, 0)])
    }
}

/// Observable matrices by indicator sums, with the special rows stacked on top of the compressed
/// ones.
fn compressed(moments: &[Moment], params: &LearnParams) -> [Vec<Mat<f64>>; 3] {
    let f = Fingerprints::of(&alphabet());
    let features = Features::new(params, &alphabet());
    let all = |pick: fn(&Moment) -> &Vec<Sequence>| -> Vec<Sequence> {
        moments.iter().flat_map(|m| pick(m).clone()).collect::<BTreeSet<_>>().into_iter().collect()
    };
    let (tests, histories) = (all(|m| &m.tests), all(|m| &m.histories));
    let (phi_t, phi_h) = (dense_phi(&features.tests, &tests, &f), dense_phi(&features.histories, &histories, &f));
    let indicators = |sequences: &[Sequence], seen: &[Sequence]| {
        Mat::from_fn(sequences.len(), 1, |i, _| f64::from(u8::from(seen.contains(&sequences[i]))))
    };
    let stack = |specials: &[f64], rest: Mat<f64>| {
        Mat::from_fn(specials.len() + rest.nrows(), 1, |i, _| {
            if i < specials.len() { specials[i] } else { rest[(i - specials.len(), 0)] }
        })
    };
    // Tests never seen at a cut are not in T, even where they follow `next`.
    let compressed_tests = |seen: &[Sequence]| {
        stack(
            &[1.0],
            if params.test_projection == Projection::Identity {
                &phi_t * indicators(&tests, seen)
            } else {
                columns(&features.tests, seen, &f)
            },
        )
    };
    let specials = |m: &Moment| -> Vec<f64> {
        let start = f64::from(u8::from(m.at_start));
        match (params.history, params.start) {
            (History::Prefix, Start::Fixed) => vec![start],
            (History::Prefix, Start::Mixed) => vec![1.0],
            (History::Suffix, _) => vec![start, 1.0],
        }
    };
    let psi = moments.iter().map(|m| stack(&[1.0], &phi_t * indicators(&tests, &m.tests))).collect();
    let chi = moments.iter().map(|m| stack(&specials(m), &phi_h * indicators(&histories, &m.histories))).collect();
    let after = moments.iter().map(|m| compressed_tests(&m.tests_after)).collect();
    [psi, chi, after]
}

/// Σ φ(sequence): columns of Φ also exist for sequences that were never seen.
fn columns(side: &crate::learn::features::Side, sequences: &[Sequence], f: &Fingerprints) -> Mat<f64> {
    let phi = dense_phi(side, sequences, f);
    Mat::from_fn(phi.nrows(), 1, |i, _| (0..phi.ncols()).map(|j| phi[(i, j)]).sum())
}

fn sum(rows: usize, columns: usize, terms: impl Iterator<Item = Mat<f64>>) -> Mat<f64> {
    terms.fold(Mat::zeros(rows, columns), |sum, term| sum + term)
}

fn literal(zs: &[Trajectory], params: &LearnParams) -> Literal {
    let moments = moments_of(zs, params);
    let [psi, chi, after] = compressed(&moments, params);
    let (d_t, d_h) = (psi[0].nrows(), chi[0].nrows());
    let outer = |a: &[Mat<f64>], b: &[Mat<f64>]| sum(a[0].nrows(), b[0].nrows(), a.iter().zip(b).map(|(a, b)| a * b.transpose()));
    let sigma_th = outer(&psi, &chi);
    let sigma_h = sum(d_h, 1, chi.iter().cloned());
    let start = if params.start == Start::Mixed && params.history == History::Suffix { 1 } else { 0 };

    let (u, right_inverse, spectrum) = match params.regression {
        Regression::PseudoInverse => {
            let svd = sigma_th.thin_svd().unwrap();
            let d = (0..params.rank.min(d_t).min(d_h))
                .take_while(|&i| svd.S().column_vector()[i] > params.tolerance * svd.S().column_vector()[0])
                .count();
            let u = svd.U().subcols(0, d).to_owned();
            let small = u.transpose() * &sigma_th;
            let starts = moments.iter().filter(|m| m.at_start || params.start == Start::Mixed).count() as f64;
            let spectrum = svd.S().column_vector().iter().map(|s| s / starts).collect();
            (u, small.thin_svd().unwrap().pseudoinverse(), spectrum)
        }
        Regression::TwoStage => two_stage(&sigma_th, &outer(&psi, &psi), &outer(&chi, &chi), params),
    };
    let c1 = u.transpose() * sigma_th.subcols(start, 1);
    let c_inf = (sigma_h.transpose() * &right_inverse).transpose().to_owned();
    let total = (c_inf.transpose() * &c1)[(0, 0)];
    let pairs: BTreeSet<ActionObservation> = moments.iter().map(|m| m.next).collect();
    let operator = |ao: ActionObservation| {
        let terms = moments.iter().zip(after.iter().zip(&chi)).filter(|(m, _)| m.next == ao);
        u.transpose() * sum(d_t, d_h, terms.map(|(_, (after, chi))| after * chi.transpose())) * &right_inverse
    };
    let readout = |ao: ActionObservation| {
        let terms = moments.iter().zip(&chi).filter(|(m, _)| m.next == ao);
        sum(1, d_h, terms.map(|(_, chi)| chi.transpose().to_owned())) * &right_inverse
    };
    Literal {
        c1: c1 * (1.0 / total),
        operators: pairs.iter().map(|&ao| (ao, operator(ao))).collect(),
        readouts: pairs.iter().map(|&ao| (ao, readout(ao))).collect(),
        c_inf,
        spectrum,
    }
}

/// Two-stage regression with symmetric square roots and plain inverses instead of Cholesky factors.
fn two_stage(sigma_th: &Mat<f64>, tt: &Mat<f64>, hh: &Mat<f64>, params: &LearnParams) -> (Mat<f64>, Mat<f64>, Vec<f64>) {
    let inverse_root = |m: &Mat<f64>| {
        let n = m.nrows();
        let ridge = params.whitening_ridge * (0..n).map(|i| m[(i, i)]).sum::<f64>() / n as f64;
        let m = m + Mat::<f64>::identity(n, n) * ridge;
        let eigen = m.self_adjoint_eigen(Side::Lower).unwrap();
        let root = Mat::from_fn(n, n, |i, j| if i == j { eigen.S().column_vector()[i].powf(-0.5) } else { 0.0 });
        eigen.U() * root * eigen.U().transpose()
    };
    let (w_t, w_h) = (inverse_root(tt), inverse_root(hh));
    let svd = (&w_t * sigma_th * &w_h).thin_svd().unwrap();
    let d = params.rank.min(svd.S().column_vector().nrows());
    let u = &w_t * svd.U().subcols(0, d);
    let v = &w_h * svd.V().subcols(0, (2 * d).min(svd.S().column_vector().nrows()));
    let (s, w) = (u.transpose() * sigma_th * &v, v.transpose() * hh * &v);
    let inverse = |m: &Mat<f64>| m.thin_svd().unwrap().pseudoinverse();
    let k = &s * inverse(&w) * s.transpose();
    let ridge = params.ridge * (0..d).map(|i| k[(i, i)]).sum::<f64>() / d as f64;
    let p = inverse(&w) * s.transpose() * inverse(&(k + Mat::<f64>::identity(d, d) * ridge));
    (u, v * p, svd.S().column_vector().iter().copied().collect())
}

fn all_sequences(longest: usize) -> Vec<Sequence> {
    let pairs: Sequence = (0..ACTIONS).flat_map(|a| (0..2 * OBSERVATIONS).map(move |o| ActionObservation::new(a, o))).collect();
    let mut sequences: Vec<Sequence> = vec![vec![]];
    for _ in 0..longest {
        let longer = sequences.iter().flat_map(|s| pairs.iter().map(move |&ao| [s.as_slice(), &[ao]].concat()));
        sequences = sequences.iter().cloned().chain(longer).collect::<BTreeSet<_>>().into_iter().collect();
    }
    sequences
}

fn check(zs: &[Trajectory], params: &LearnParams) -> Result<(), TestCaseError> {
    let model = learn(&Logs::memory(alphabet(), zs.to_vec()), params).map_err(|e| TestCaseError::fail(e.to_string()))?;
    let literal = literal(zs, params);
    for sequence in all_sequences(2) {
        let (ours, theirs) = (model.linear().unwrap().joint_probability(&sequence), literal.joint_probability(&sequence));
        let size = ours.abs().max(theirs.abs()).max(1.0);
        prop_assert!(
            (ours - theirs).abs() < ROUNDING * size,
            "{params:?} {sequence:?}: {ours} by streaming, {theirs} by definition"
        );
    }
    Ok(())
}

/// Singular values computed from the Gram matrix are accurate to 10⁻⁸ of the largest.
const GRAM: f64 = 1e-7;

fn check_diagnosis(zs: &[Trajectory], params: &LearnParams) -> Result<(), TestCaseError> {
    let found = diagnose(&Logs::memory(alphabet(), zs.to_vec()), params, &mut |_| {});
    let found = found.map_err(|e| TestCaseError::fail(e.to_string()))?;
    let literal = literal(zs, params);
    let value = |values: &[f64], i: usize| values.get(i).copied().unwrap_or(0.0);
    for i in 0..literal.spectrum.len() {
        let (ours, theirs) = (value(&found.spectrum.values, i), literal.spectrum[i]);
        prop_assert!((ours - theirs).abs() < GRAM * literal.spectrum[0], "value {i}: {ours} {theirs}");
    }
    let goes_on = literal.operators.iter().filter(|(ao, _)| ao.observation.0 < OBSERVATIONS);
    let norm = |m: &Mat<f64>| m.thin_svd().unwrap().S().column_vector()[0];
    let largest = goes_on.map(|(_, c_ao)| norm(c_ao)).fold(0.0, f64::max);
    prop_assert!((found.norms.largest - largest).abs() < GRAM * largest.max(1.0), "{} {largest}", found.norms.largest);
    if params.regression == Regression::PseudoInverse {
        // With whitening, sums in place of means stretch the coordinates.
        let normalizer = norm(&literal.c_inf);
        prop_assert!((found.norms.normalizer - normalizer).abs() < GRAM * normalizer, "{} {normalizer}", found.norms.normalizer);
    }
    Ok(())
}

const PROJECTIONS: [Projection; 5] =
    [Projection::Spherical, Projection::Rademacher, Projection::Hashed, Projection::SignedHash, Projection::Identity];

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn streaming_pseudo_inverse_is_the_papers_definition(zs in trajectories(), seed in 0..1000u64) {
        for test_projection in PROJECTIONS {
            for history_projection in [test_projection, Projection::Identity, Projection::Hashed] {
                for (cuts, start) in [(Cuts::Complete, Start::Fixed), (Cuts::Ragged, Start::Mixed)] {
                    // Rank 2: well inside the numerical rank of random data, so that the truncation
                    // is well conditioned.
                    let params = LearnParams { test_projection, history_projection, test_dim: 12, history_dim: 14, max_test_length: 3, rank: 2, cuts, start, seed, ..LearnParams::paper() };
                    check(&zs, &params)?;
                }
            }
        }
    }

    #[test]
    fn streaming_two_stage_is_its_definition(zs in trajectories(), seed in 0..1000u64) {
        for test_projection in PROJECTIONS {
            for history_projection in [test_projection, Projection::SignedHash] {
                for start in [Start::Fixed, Start::Mixed] {
                    let params = LearnParams { test_projection, history_projection, test_dim: 12, history_dim: 14, rank: 3, start, seed, ..LearnParams::default() };
                    check(&zs, &params)?;
                }
            }
        }
    }

    #[test]
    fn spectrum_and_norms_are_those_of_the_definitions(zs in trajectories(), seed in 0..1000u64) {
        for test_projection in [Projection::Spherical, Projection::SignedHash, Projection::Identity] {
            for start in [Start::Fixed, Start::Mixed] {
                let shared = LearnParams { test_projection, history_projection: Projection::Hashed, test_dim: 12, history_dim: 14, start, seed, ..LearnParams::default() };
                check_diagnosis(&zs, &LearnParams { rank: 3, ..shared.clone() })?;
                check_diagnosis(&zs, &LearnParams { max_test_length: 3, rank: 2, history: History::Prefix, regression: Regression::PseudoInverse, ..shared })?;
            }
        }
    }
}
