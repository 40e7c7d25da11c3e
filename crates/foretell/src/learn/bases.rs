//! From moments to the bases of a model: the thin SVD of Σ̂_TH [H14 §3.2.1], or canonical
//! correlations and two-stage regression.

use faer::linalg::triangular_solve::{solve_lower_triangular_in_place, solve_upper_triangular_in_place};
use faer::prelude::Solve;
use faer::{Mat, MatRef, Par, Side};

use super::features::NULL_TEST;
use super::sums::Matrices;
use crate::error::{Error, Result};
use crate::math::{Linear, Matrix, Svd};
use crate::model::LearnParams;
use crate::rng::Seed;

/// Singular values below this share of the largest are rounding error.
const NOISE: f64 = 1e-9;
/// Moments to which later logs are to be added keep this many times d′ directions of tests and
/// histories: a direction that is dropped cannot be recovered. DEVIATIONS.md has a table of the
/// cost.
pub(super) const WIDTH: usize = 2;
/// Larger than any width in use.
pub(super) const MOST_WIDTH: usize = 1 << 20;

/// The bases in which operators are estimated.
#[derive(Clone, Debug)]
pub(crate) struct Bases {
    /// Û, d_T × d: the state after a history is the mean of Ûᵀψ.
    pub(crate) u: Mat<f64>,
    /// B, d_H × d: the right inverse of ÛᵀΣ̂_TH, V̂Ŝ⁻¹ or its two-stage form.
    pub(crate) b: Mat<f64>,
    /// Bases whose spans contain those of Û and B, if they are wanted.
    pub(crate) wide: Option<Wide>,
    /// All singular values that were computed, largest first.
    pub(crate) spectrum: Vec<f64>,
}

/// Bases of the leading directions of tests and histories.
#[derive(Clone, Debug)]
pub(crate) struct Wide {
    pub(crate) tests: Span,
    pub(crate) histories: Span,
}

/// A basis L, and how features are estimated from their coordinates in it: ψ ≈ D Lᵀψ, with LᵀD = I.
///
/// Without covariances L is orthonormal and D = L. With them D Lᵀψ is the (ridge) regression of ψ
/// on Lᵀψ, D = ΣL(LᵀΣL)⁻¹. With hashed features the length of a direction carries little
/// information, and its correlation with the others much.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    /// L, d × k
    pub(crate) basis: Mat<f64>,
    /// D, d × k
    pub(crate) dual: Mat<f64>,
}

impl Span {
    pub(crate) fn orthonormal(basis: Mat<f64>) -> Span {
        Span { dual: basis.clone(), basis }
    }
}

/// The bases of given moments; with wide ones of `wide` directions, if given.
pub(crate) fn bases(moments: &Matrices, params: &LearnParams, wide: Option<usize>) -> Result<Bases> {
    match &moments.covariances {
        None => {
            let svd = Svd::leading(&moments.joint, wide.unwrap_or(params.rank), Seed(params.seed))?;
            Bases::of_svd(svd, params, wide)
        }
        Some((tests, histories)) => two_stage(moments, tests, histories, params, wide)?.checked(),
    }
}

impl Bases {
    /// B = V̂Ŝ⁻¹ of the thin SVD of Σ̂_TH.
    pub(crate) fn of_svd(svd: Svd, params: &LearnParams, wide: Option<usize>) -> Result<Bases> {
        let d = svd.rank(params.rank, params.tolerance);
        let b = Mat::from_fn(svd.v.nrows(), d, |i, j| svd.v[(i, j)] / svd.s[j]);
        let wide = wide.map(|most| {
            let k = svd.rank(most, NOISE);
            let leading = |vectors: &Mat<f64>| Span::orthonormal(vectors.subcols(0, k).to_owned());
            Wide { tests: leading(&svd.u), histories: leading(&svd.v) }
        });
        Bases { u: svd.u.subcols(0, d).to_owned(), b, wide, spectrum: svd.s }.checked()
    }

    fn checked(self) -> Result<Bases> {
        check_rank(self.u.ncols())?;
        Ok(self)
    }
}

fn check_rank(d: usize) -> Result<()> {
    match d {
        0 => Err(Error::data("the moments of these logs are all zero", "give longer episodes or a smaller `max_test_length`")),
        _ => Ok(()),
    }
}

/// Compressed CCA, then two-stage least squares.
///
/// x = Ûᵀψ, z = V̂ᵀχ (twice as many), S = E[x zᵀ], W = E[z zᵀ], K = S W⁻¹ Sᵀ,
/// B = V̂ W⁻¹ Sᵀ (K + ridge·I)⁻¹.
fn two_stage(
    moments: &Matrices,
    tests: &Mat<f64>,
    histories: &Mat<f64>,
    params: &LearnParams,
    wide: Option<usize>,
) -> Result<Bases> {
    let cca = Cca::new(moments, tests, histories, params, wide.unwrap_or(params.rank))?;
    let (u, v) = cca.leading(params);
    let p = cca.moments_of(&u, &v).regression(u.ncols(), params.ridge)?;
    let wide = wide.map(|most| {
        // Σ = L Lᵀ and orthonormal Q: L⁻ᵀQ has the dual LQ.
        let leading = |l: &Mat<f64>, vectors: &Mat<f64>, most: usize, used: &[usize], all: usize| {
            let q = vectors.subcols(0, most.min(vectors.ncols())).qr().compute_thin_Q();
            Span { basis: spread(&unwhitened(l, q.as_ref()), used, all), dual: spread(&(l * q), used, all) }
        };
        Wide {
            tests: leading(&cca.whitening.l_t, &cca.svd.u, most, &cca.whitening.rows, cca.all_rows),
            histories: leading(&cca.whitening.l_h, &cca.svd.v, 2 * most, &cca.whitening.columns, cca.all_columns),
        }
    });
    let b = spread(&(&v * &p), &cca.whitening.columns, cca.all_columns);
    Ok(Bases { u: spread(&u, &cca.whitening.rows, cca.all_rows), b, wide, spectrum: cca.svd.s })
}

/// The transformation that makes the covariances of tests and of histories the identity, up to the
/// ridge.
pub(crate) struct Whitening {
    /// The coordinates of tests, and of histories, that some sequence uses. The others (most
    /// buckets, where the alphabet is small) would only cost time and conditioning.
    rows: Vec<usize>,
    columns: Vec<usize>,
    /// L_T of Σ_TT + ridge = L_T L_Tᵀ, and L_H
    l_t: Mat<f64>,
    l_h: Mat<f64>,
}

impl Whitening {
    pub(crate) fn new(moments: &Matrices, tests: &Mat<f64>, histories: &Mat<f64>, params: &LearnParams) -> Result<Whitening> {
        let (rows, columns) = (used(tests), used(histories));
        // An uncompressed side may have coordinates of sequences that were seen only elsewhere.
        let counted = |side: usize, used: &[usize], all: usize| if moments.is_identity[side] { used.len() } else { all };
        let (l_t, l_h) = rayon::join(
            || whitener(&picked(tests, &rows, &rows), params.whitening_ridge, counted(0, &rows, tests.nrows())),
            || whitener(&picked(histories, &columns, &columns), params.whitening_ridge, counted(1, &columns, histories.nrows())),
        );
        Ok(Whitening { l_t: l_t?, l_h: l_h?, rows, columns })
    }

    /// L_T⁻¹ Σ_TH L_H⁻ᵀ, given all coordinates.
    pub(crate) fn of_all(&self, joint: &Mat<f64>) -> Mat<f64> {
        self.transposed(&picked(joint, &self.rows, &self.columns)).transpose().to_owned()
    }

    /// Its transpose, given only the coordinates in use.
    fn transposed(&self, joint: &Mat<f64>) -> Mat<f64> {
        let mut m = joint.clone();
        solve_lower_triangular_in_place(self.l_t.as_ref(), m.as_mut(), Par::Seq);
        let mut m = m.transpose().to_owned();
        solve_lower_triangular_in_place(self.l_h.as_ref(), m.as_mut(), Par::Seq);
        m
    }
}

/// Canonical correlations of tests and histories, over the coordinates in use.
struct Cca {
    joint: Mat<f64>,
    histories: Mat<f64>,
    whitening: Whitening,
    /// Of M = L_T⁻¹ Σ_TH L_H⁻ᵀ.
    svd: Svd,
    all_rows: usize,
    all_columns: usize,
}

impl Cca {
    /// For ranks up to `rank`.
    fn new(moments: &Matrices, tests: &Mat<f64>, histories: &Mat<f64>, params: &LearnParams, rank: usize) -> Result<Cca> {
        let whitening = Whitening::new(moments, tests, histories, params)?;
        let (all_rows, all_columns) = (tests.nrows(), histories.nrows());
        let joint = picked(&moments.joint.to_dense(), &whitening.rows, &whitening.columns);
        let histories = picked(histories, &whitening.columns, &whitening.columns);
        let m = whitening.transposed(&joint);
        let svd = Svd::of_gram(m.transpose(), 2 * rank).or_else(|_| Svd::thin(m.transpose()))?;
        Ok(Cca { joint, histories, whitening, svd, all_rows, all_columns })
    }

    /// Û with d′ directions and V̂ with twice as many.
    fn leading(&self, params: &LearnParams) -> (Mat<f64>, Mat<f64>) {
        let d = self.svd.rank(params.rank, params.tolerance);
        let instruments = (2 * d).min(self.svd.v.ncols());
        (
            unwhitened(&self.whitening.l_t, self.svd.u.subcols(0, d)),
            unwhitened(&self.whitening.l_h, self.svd.v.subcols(0, instruments)),
        )
    }

    fn moments_of(&self, u: &Mat<f64>, v: &Mat<f64>) -> StateMoments {
        StateMoments { s: u.transpose() * &self.joint * v, w: v.transpose() * &self.histories * v }
    }
}

fn unwhitened(l: &Mat<f64>, vectors: MatRef<'_, f64>) -> Mat<f64> {
    let mut vectors = vectors.to_owned();
    solve_upper_triangular_in_place(l.transpose(), vectors.as_mut(), Par::Seq);
    vectors
}

/// S = E[x zᵀ] and W = E[z zᵀ] of states and instruments.
struct StateMoments {
    s: Mat<f64>,
    w: Mat<f64>,
}

impl StateMoments {
    /// P = W⁻¹Sᵀ (K + ridge·I)⁻¹ of the first d states and their instruments: B = V̂P.
    fn regression(&self, d: usize, ridge: f64) -> Result<Mat<f64>> {
        let instruments = (2 * d).min(self.w.nrows());
        let (s, w) = (self.s.submatrix(0, 0, d, instruments), self.w.submatrix(0, 0, instruments, instruments));
        let w_inv_st = cholesky(w)?.solve(s.transpose());
        let mut k = s * &w_inv_st;
        let ridge = ridge * (0..d).map(|i| k[(i, i)]).sum::<f64>() / d as f64;
        (0..d).for_each(|i| k[(i, i)] += ridge);
        // K is symmetric.
        Ok(cholesky(k.as_ref())?.solve(w_inv_st.transpose()).transpose().to_owned())
    }
}

/// The bases for all ranks up to a given one. Û of a lower rank consists of its leading columns,
/// and B = V̂P with a small P for each rank.
pub(crate) struct Nested {
    /// Û, d_T × d
    pub(crate) u: Mat<f64>,
    /// V̂, d_H × k
    pub(crate) v: Mat<f64>,
    /// All singular values that were computed, largest first.
    pub(crate) spectrum: Vec<f64>,
    second: SecondStage,
    ridge: f64,
}

enum SecondStage {
    /// P = Ŝ⁻¹
    Inverse,
    TwoStage(StateMoments),
}

impl Nested {
    /// From given moments, for ranks up to that of `params`.
    pub(crate) fn new(moments: &Matrices, params: &LearnParams) -> Result<Nested> {
        let ridge = params.ridge;
        let Some((tests, histories)) = &moments.covariances else {
            let svd = Svd::leading(&moments.joint, params.rank, Seed(params.seed))?;
            let d = svd.rank(params.rank, params.tolerance);
            let leading = |vectors: &Mat<f64>| vectors.subcols(0, d).to_owned();
            let (u, v) = (leading(&svd.u), leading(&svd.v));
            return Nested { u, v, spectrum: svd.s, second: SecondStage::Inverse, ridge }.checked();
        };
        let cca = Cca::new(moments, tests, histories, params, params.rank)?;
        let (u, v) = cca.leading(params);
        let second = SecondStage::TwoStage(cca.moments_of(&u, &v));
        let (u, v) = (spread(&u, &cca.whitening.rows, cca.all_rows), spread(&v, &cca.whitening.columns, cca.all_columns));
        Nested { u, v, spectrum: cca.svd.s, second, ridge }.checked()
    }

    fn checked(self) -> Result<Nested> {
        check_rank(self.u.ncols())?;
        Ok(self)
    }

    /// P for the first d directions of Û: B is the first rows(P) columns of V̂, times P.
    pub(crate) fn regression(&self, d: usize) -> Result<Mat<f64>> {
        match &self.second {
            SecondStage::Inverse => Ok(Mat::from_fn(d, d, |i, j| if i == j { 1.0 / self.spectrum[j] } else { 0.0 })),
            SecondStage::TwoStage(moments) => moments.regression(d, self.ridge),
        }
    }
}

/// The coordinates whose variance is not zero.
fn used(covariance: &Mat<f64>) -> Vec<usize> {
    (0..covariance.nrows()).filter(|&i| covariance[(i, i)] > 0.0).collect()
}

fn picked(matrix: &Mat<f64>, rows: &[usize], columns: &[usize]) -> Mat<f64> {
    Mat::from_fn(rows.len(), columns.len(), |i, j| matrix[(rows[i], columns[j])])
}

/// Places the rows at the indices `rows` of a matrix with `all` rows; the others are zero.
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
    // Coordinates that always occur together make Σ singular: without a ridge, the smallest one
    // that keeps it invertible is used.
    let ridge = ridge.max(f64::EPSILON * n as f64) * mean;
    let mut covariance = covariance.clone();
    (0..n).for_each(|i| covariance[(i, i)] += ridge);
    Ok(cholesky(covariance.as_ref())?.L().to_owned())
}

fn cholesky(matrix: MatRef<'_, f64>) -> Result<faer::linalg::solvers::Llt<f64>> {
    matrix.llt(Side::Lower).map_err(|_| {
        Error::data(
            "the moments of these logs are numerically singular",
            "raise `whitening_ridge` or `ridge`, or lower `rank` or the dimensions",
        )
    })
}

/// A column of Σ̂_TH.
pub(crate) fn column(joint: &Matrix, j: usize) -> Mat<f64> {
    match joint {
        Matrix::Dense(joint) => joint.subcols(j, 1).to_owned(),
        Matrix::Sparse(joint) => {
            let mut column = Mat::zeros(joint.rows(), 1);
            joint.column(j).for_each(|(i, x)| column[(i, 0)] = x);
            column
        }
    }
}

/// Σ̂_H, the row of the null test of Σ̂_TH, as a column.
pub(crate) fn first_row(joint: &Matrix) -> Mat<f64> {
    match joint {
        Matrix::Dense(joint) => joint.subrows(NULL_TEST, 1).transpose().to_owned(),
        Matrix::Sparse(joint) => {
            let entry = |j| joint.column(j).find(|&(i, _)| i == NULL_TEST).map_or(0.0, |(_, x)| x);
            Mat::from_fn(joint.columns(), 1, |j, _| entry(j))
        }
    }
}
