//! Batch learning [H14 §3.2.1]: logs → moments → bases → operators → model.
//!
//! One learner, two presets. Up to three streaming passes: a survey (alphabet, counts, n-gram), the moments, and the
//! operators, unless the moments of each pair were small enough to keep.
//! Memory grows with d_T·d_H, d′² for each pair met, and the n-gram, not with the number of episodes.

use faer::linalg::triangular_solve::{solve_lower_triangular_in_place, solve_upper_triangular_in_place};
use faer::prelude::Solve;
use faer::{Mat, MatRef, Par, Side};
use rustc_hash::FxHashMap;

use crate::data::{ActionObservation, Alphabet, CutRule, End, Trajectory};
use crate::error::{Error, Result};
use crate::features::{Features, NULL_TEST};
use crate::log::Logs;
use crate::model::{Model, Parts};
use crate::moments::{Accumulator, Joint, Moments, Wanted};
use crate::ngram::{Counter, NGram};
use crate::operators::{Bases, Operator, Operators};
use crate::params::{Cuts, LearnParams, Regression};
use crate::rng::Seed;
use crate::sequence::Fingerprints;
use crate::source::{Kept, Source, batches};
use crate::svd::Svd;

/// Largest dimension for which two-stage regression holds a covariance of uncompressed features (1 GiB each).
const LARGEST_COVARIANCE: usize = 11_585;

/// The passes over the logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// Alphabet, counts, n-gram.
    Survey,
    /// Σ̂_TH, Σ̂_H.
    Moments,
    /// C_ao.
    Operators,
}

/// How far learning is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// The pass under way.
    pub pass: Pass,
    /// Episodes read in this pass.
    pub episodes: u64,
    /// Steps read in this pass.
    pub steps: u64,
    /// Steps in all, once the survey has counted them.
    pub total: Option<u64>,
}

/// Learns a predictive model from logs.
///
/// ```
/// use foretell::{LearnParams, Logs, Seed, domains, learn};
///
/// let tiger = domains::get("tiger")?;
/// let episodes = domains::sample(&tiger, 500, 20, Seed(1)).collect();
/// let logs = Logs::memory(tiger.alphabet().clone(), episodes);
/// let model = learn(&logs, &LearnParams { rank: 3, ..LearnParams::default() })?;
/// assert_eq!(model.alphabet().actions().len(), 3);
/// # Ok::<(), foretell::Error>(())
/// ```
pub fn learn(logs: &Logs, params: &LearnParams) -> Result<Model> {
    learn_with_progress(logs, params, &mut |_| {})
}

/// [`learn`], telling `progress` after every batch.
pub fn learn_with_progress(logs: &Logs, params: &LearnParams, progress: &mut (dyn FnMut(Progress) + Send)) -> Result<Model> {
    let begin = if params.observe_reward { Alphabet::observing_rewards() } else { Alphabet::default() };
    learn_from(Source::Logs(logs), begin, params, progress)
}

/// [`learn`] over an alphabet that knows all symbols of the logs, and perhaps others.
pub(crate) fn learn_over(alphabet: &Alphabet, logs: &Logs, params: &LearnParams) -> Result<Model> {
    learn_from(Source::Logs(logs), alphabet.clone(), params, &mut |_| {})
}

/// Learns from episodes that each count as often as their weight says: importance weights, or exact probabilities.
///
/// Weights enter the moments and operators; the n-gram and the counts of symbols take each episode once.
pub fn learn_weighted(alphabet: &Alphabet, episodes: &[(Trajectory, f64)], params: &LearnParams) -> Result<Model> {
    learn_from(Source::Held(alphabet, &batches(episodes)), Alphabet::default(), params, &mut |_| {})
}

/// What the first look at the logs tells.
struct Survey {
    alphabet: Alphabet,
    episodes: u64,
    steps: u64,
    skipped: u64,
    /// The pairs met, sorted, and how often.
    pairs: Vec<ActionObservation>,
    pair_counts: Vec<u64>,
    longest_truncated: Option<usize>,
    ngram: NGram,
}

fn learn_from(
    source: Source<'_>,
    begin: Alphabet,
    params: &LearnParams,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<Model> {
    params.validate()?;
    let mut kept = Kept::new();
    let observes_rewards = begin.observes_rewards();
    let survey = survey(source, begin, params, &mut kept, progress)?;
    if observes_rewards && survey.alphabet.observations().iter().all(|symbol| symbol.split_reward().is_none()) {
        return Err(Error::data("the logs have no rewards to observe", "leave --observe-reward out"));
    }
    let source = kept.all().map_or(source, |batches| Source::Held(&survey.alphabet, batches));
    let fingerprints = Fingerprints::of(&survey.alphabet);
    let mut features = Features::new(params, fingerprints);
    let rule = match params.cuts {
        Cuts::Complete => CutRule { room: params.max_test_length, limit: survey.longest_truncated },
        Cuts::Ragged => CutRule::RAGGED,
    };

    let mut moments = moments(source, params, &mut features, rule, &survey, progress)?;
    let scale = 1.0 / start_weight(&moments.joint, &features, rule)?;
    moments.scale(scale);
    let (bases, spectrum) = bases(&moments, params)?;
    let c_1 = bases.u.transpose() * column(&moments.joint, features.start_coordinate()); // c₁ = Ûᵀ Σ̂_TH e = ŜV̂ᵀe
    let c_inf = bases.b.transpose() * first_row(&moments.joint); // c_∞ᵀ = Σ̂_Hᵀ B, B = V̂Ŝ⁻¹

    let operators = match &moments.pairs {
        Some(sums) => sums.iter().map(|sums| Operator::of(sums, &bases)).collect(),
        None => second_pass(source, &mut features, rule, &survey, &bases, progress)?,
    };

    Model::assemble(Parts {
        params: params.clone(),
        initial: c_1.col_as_slice(0).to_vec(),
        normalizer: c_inf.col_as_slice(0).to_vec(),
        operators,
        scale,
        pair_counts: survey.pair_counts,
        pairs: survey.pairs,
        spectrum,
        alphabet: survey.alphabet,
        episodes: survey.episodes,
        steps: survey.steps,
        skipped: survey.skipped,
        ngram: survey.ngram,
    })
}

fn survey(
    source: Source<'_>,
    begin: Alphabet,
    params: &LearnParams,
    kept: &mut Kept,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<Survey> {
    let (mut episodes, mut steps, mut longest_truncated) = (0, 0, None);
    let mut counts = FxHashMap::default();
    let mut counter = Counter::new(params.ngram_length);
    let (alphabet, skipped) = source.each_batch(begin, |alphabet, batch| {
        kept.add(batch);
        counter.add(&Fingerprints::of(alphabet), batch);
        batch.steps().iter().for_each(|&ao| *counts.entry(ao).or_insert(0) += 1);
        let truncated = batch.iter().filter(|z| z.end == End::Truncated).map(|z| z.steps.len());
        longest_truncated = longest_truncated.max(truncated.max());
        episodes += batch.len() as u64;
        steps += batch.steps().len() as u64;
        progress(Progress { pass: Pass::Survey, episodes, steps, total: None });
    })?;
    if steps == 0 {
        return Err(Error::data("the logs hold no steps", "give at least one episode"));
    }
    let mut counts: Vec<(ActionObservation, u64)> = counts.into_iter().collect();
    counts.sort_unstable();
    let (pairs, pair_counts) = counts.into_iter().unzip();
    Ok(Survey { alphabet, episodes, steps, skipped, pairs, pair_counts, longest_truncated, ngram: counter.finish() })
}

fn moments(
    source: Source<'_>,
    params: &LearnParams,
    features: &mut Features,
    rule: CutRule,
    survey: &Survey,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<Moments> {
    let wanted = match params.regression {
        Regression::PseudoInverse => Wanted::Joint,
        Regression::TwoStage => Wanted::JointAndCovariances,
    };
    let mut accumulator = Accumulator::new(features, wanted, &survey.pairs);
    let (mut read, mut steps) = (0, 0);
    source.each_batch(survey.alphabet.clone(), |_, episodes| {
        let batch = features.batch(episodes, rule);
        features.learn_words(&batch);
        accumulator.add(features, &batch);
        read += episodes.len() as u64;
        steps += batch.steps.len() as u64;
        progress(Progress { pass: Pass::Moments, episodes: read, steps, total: Some(survey.steps) });
    })?;
    let dim = features.tests.rows().max(features.histories.rows());
    if wanted == Wanted::JointAndCovariances && dim > LARGEST_COVARIANCE {
        return Err(Error::data(
            format!("two-stage regression on {dim} uncompressed sequences would need {} GiB", (dim * dim) >> 27),
            "use the pseudo-inverse, shorter tests and histories, or a compressing projection",
        ));
    }
    Ok(accumulator.finish(features))
}

fn second_pass(
    source: Source<'_>,
    features: &mut Features,
    rule: CutRule,
    survey: &Survey,
    bases: &Bases,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<Vec<Operator>> {
    let mut operators = Operators::new(bases, &survey.pairs);
    let (mut read, mut steps) = (0, 0);
    source.each_batch(survey.alphabet.clone(), |_, episodes| {
        let batch = features.batch(episodes, rule);
        operators.add(features, &batch);
        read += episodes.len() as u64;
        steps += batch.steps.len() as u64;
        progress(Progress { pass: Pass::Operators, episodes: read, steps, total: Some(survey.steps) });
    })?;
    Ok(operators.finish(bases.u.ncols()))
}

/// The weight of the cuts at which the start state is read: |Z| if all episodes start alike.
fn start_weight(joint: &Joint, features: &Features, rule: CutRule) -> Result<f64> {
    let weight = column(joint, features.start_coordinate())[(NULL_TEST, 0)];
    if weight > 0.0 {
        return Ok(weight);
    }
    Err(Error::data(
        format!("no episode is longer than {} steps, so none has room for a step and the longest test after it", rule.room),
        "give longer episodes or a smaller max_test_length",
    ))
}

/// Û and B, and the singular values.
fn bases(moments: &Moments, params: &LearnParams) -> Result<(Bases, Vec<f64>)> {
    let bases = match &moments.covariances {
        None => pseudo_inverse(&moments.joint, params),
        Some((tests, histories)) => two_stage(&moments.joint, tests, histories, params),
    }?;
    if bases.0.u.ncols() == 0 {
        return Err(Error::data("the moments of these logs are all zero", "give longer episodes or a smaller max_test_length"));
    }
    Ok(bases)
}

/// B = V̂Ŝ⁻¹ of the thin SVD of Σ̂_TH.
fn pseudo_inverse(joint: &Joint, params: &LearnParams) -> Result<(Bases, Vec<f64>)> {
    let svd = Svd::leading(joint, params.rank, Seed(params.seed))?;
    let d = svd.rank(params.rank, params.tolerance);
    let b = Mat::from_fn(svd.v.nrows(), d, |i, j| svd.v[(i, j)] / svd.s[j]);
    Ok((Bases { u: svd.u.subcols(0, d).to_owned(), b }, svd.s))
}

/// Compressed CCA, then two-stage least squares:
/// x = Ûᵀψ, z = V̂ᵀχ (twice as many), S = E[x zᵀ], W = E[z zᵀ], K = S W⁻¹ Sᵀ, B = V̂ W⁻¹ Sᵀ (K + ridge·I)⁻¹.
fn two_stage(joint: &Joint, tests: &Mat<f64>, histories: &Mat<f64>, params: &LearnParams) -> Result<(Bases, Vec<f64>)> {
    let joint = match joint {
        Joint::Dense(joint) => joint.clone(),
        Joint::Sparse(joint) => joint.to_dense(),
    };
    // Coordinates that no sequence has hit (most buckets, where the alphabet is small) only cost time and conditioning.
    let (rows, columns) = (used(tests), used(histories));
    let (all_rows, all_columns) = (tests.nrows(), histories.nrows());
    let joint = picked(&joint, &rows, &columns);
    let (tests, histories) = (&picked(tests, &rows, &rows), &picked(histories, &columns, &columns));
    let (l_t, l_h) = rayon::join(
        || whitener(tests, params.whitening_ridge, all_rows),
        || whitener(histories, params.whitening_ridge, all_columns),
    );
    let (l_t, l_h) = (l_t?, l_h?);
    // M = L_T⁻¹ Σ_TH L_H⁻ᵀ
    let mut m = joint.clone();
    solve_lower_triangular_in_place(l_t.as_ref(), m.as_mut(), Par::Seq);
    let mut m = m.transpose().to_owned();
    solve_lower_triangular_in_place(l_h.as_ref(), m.as_mut(), Par::Seq);
    let svd = Svd::of_gram(m.transpose(), 2 * params.rank).or_else(|_| Svd::thin(m.transpose()))?;

    let d = svd.rank(params.rank, params.tolerance);
    let instruments = (2 * d).min(svd.v.ncols());
    let unwhiten = |l: &Mat<f64>, vectors: MatRef<'_, f64>| {
        let mut vectors = vectors.to_owned();
        solve_upper_triangular_in_place(l.transpose(), vectors.as_mut(), Par::Seq);
        vectors
    };
    let u = unwhiten(&l_t, svd.u.subcols(0, d));
    let v = unwhiten(&l_h, svd.v.subcols(0, instruments));

    let s = u.transpose() * &joint * &v;
    let w = v.transpose() * histories * &v;
    let w_inv_st = cholesky(&w)?.solve(s.transpose());
    let mut k = &s * &w_inv_st;
    let ridge = params.ridge * (0..d).map(|i| k[(i, i)]).sum::<f64>() / d as f64;
    (0..d).for_each(|i| k[(i, i)] += ridge);
    // B = V W⁻¹Sᵀ K⁻¹, and K is symmetric.
    let p = cholesky(&k)?.solve(w_inv_st.transpose()).transpose().to_owned();
    Ok((Bases { u: spread(&u, &rows, all_rows), b: spread(&(&v * &p), &columns, all_columns) }, svd.s))
}

/// The coordinates whose variance is not zero.
fn used(covariance: &Mat<f64>) -> Vec<usize> {
    (0..covariance.nrows()).filter(|&i| covariance[(i, i)] > 0.0).collect()
}

fn picked(matrix: &Mat<f64>, rows: &[usize], columns: &[usize]) -> Mat<f64> {
    Mat::from_fn(rows.len(), columns.len(), |i, j| matrix[(rows[i], columns[j])])
}

/// The rows put back in their places among `all`; the others are zero.
fn spread(matrix: &Mat<f64>, rows: &[usize], all: usize) -> Mat<f64> {
    let mut spread = Mat::zeros(all, matrix.ncols());
    for j in 0..matrix.ncols() {
        rows.iter().enumerate().for_each(|(i, &row)| spread[(row, j)] = matrix[(i, j)]);
    }
    spread
}

/// L of Σ + ridge·(tr Σ / `all`)·I = L Lᵀ.
fn whitener(covariance: &Mat<f64>, ridge: f64, all: usize) -> Result<Mat<f64>> {
    let n = covariance.nrows();
    let mean = (0..n).map(|i| covariance[(i, i)]).sum::<f64>() / all as f64;
    // Without a ridge, the least of ridges keeps coordinates that always come together apart.
    let ridge = ridge.max(f64::EPSILON * n as f64) * mean;
    let mut covariance = covariance.clone();
    (0..n).for_each(|i| covariance[(i, i)] += ridge);
    Ok(cholesky(&covariance)?.L().to_owned())
}

fn cholesky(matrix: &Mat<f64>) -> Result<faer::linalg::solvers::Llt<f64>> {
    matrix.llt(Side::Lower).map_err(|_| {
        Error::data(
            "the moments of these logs are numerically singular",
            "raise whitening_ridge or ridge, or lower the rank or dimensions",
        )
    })
}

/// A column of Σ̂_TH.
fn column(joint: &Joint, j: usize) -> Mat<f64> {
    match joint {
        Joint::Dense(joint) => joint.subcols(j, 1).to_owned(),
        Joint::Sparse(joint) => {
            let mut column = Mat::zeros(joint.rows(), 1);
            joint.column(j).for_each(|(i, x)| column[(i, 0)] = x);
            column
        }
    }
}

/// Σ̂_H, the row of the null test of Σ̂_TH, as a column.
fn first_row(joint: &Joint) -> Mat<f64> {
    match joint {
        Joint::Dense(joint) => joint.subrows(NULL_TEST, 1).transpose().to_owned(),
        Joint::Sparse(joint) => {
            let entry = |j| joint.column(j).find(|&(i, _)| i == NULL_TEST).map_or(0.0, |(_, x)| x);
            Mat::from_fn(joint.columns(), 1, |j, _| entry(j))
        }
    }
}
