//! Truncated thin SVD: Σ ≈ Û Ŝ V̂ᵀ.

use faer::{Mat, MatRef};

use super::sparse::{Linear, Matrix};
use super::vector::dot;
use crate::error::{Error, Result};
use crate::rng::Seed;

/// Sparse matrices whose smaller side is at most this are decomposed as dense ones.
const DENSE_SIDE: usize = 600;
/// Residual, relative to the largest singular value, at which a triple of a large sparse matrix has
/// converged.
const SPARSE_TOLERANCE: f64 = 1e-11;
/// Eigenvalues of AᵀA are accurate to 10⁻¹⁶ of the largest, so singular values to 10⁻⁸.
const GRAM_NOISE: f64 = 1e-7;
/// Lanczos steps between tests of convergence.
const CHECK_EVERY: usize = 10;
/// Largest number of entries for which a sparse matrix is made dense (1 GiB).
const DENSE_ENTRIES: usize = 1 << 27;

/// Singular vectors and values, largest first.
#[derive(Clone, Debug)]
pub(crate) struct Svd {
    /// Û, rows × n
    pub(crate) u: Mat<f64>,
    /// ŝ, n values
    pub(crate) s: Vec<f64>,
    /// V̂, columns × n
    pub(crate) v: Mat<f64>,
}

impl Svd {
    /// The triples of a matrix without rows or columns, which are none; an error for one with numbers
    /// that are not finite, on which decompositions do not end.
    fn of_nothing(matrix: MatRef<'_, f64>) -> Result<Option<Svd>> {
        let (rows, columns) = (matrix.nrows(), matrix.ncols());
        if rows == 0 || columns == 0 {
            return Ok(Some(Svd { u: Mat::zeros(rows, 0), s: Vec::new(), v: Mat::zeros(columns, 0) }));
        }
        match matrix.norm_max().is_finite() && matrix.squared_norm_l2().is_finite() {
            true => Ok(None),
            false => Err(Error::data("the moments have numbers that are not finite, or too large", "learn the model again")),
        }
    }

    /// All singular triples of a dense matrix.
    pub(crate) fn thin(matrix: MatRef<'_, f64>) -> Result<Svd> {
        if let Some(nothing) = Svd::of_nothing(matrix)? {
            return Ok(nothing);
        }
        let failed = |_| Error::data("the singular value decomposition did not converge", "use other dimensions or another seed");
        let svd = matrix.thin_svd().map_err(failed)?;
        let s = svd.S().column_vector().iter().copied().collect();
        Ok(Svd { u: svd.U().to_owned(), s, v: svd.V().to_owned() })
    }

    /// At most `most` leading triples by the eigenvectors of AᵀA: half the time of [`Svd::thin`],
    /// for matrices whose small singular values do not matter. Those below [`GRAM_NOISE`] of the
    /// largest are noise and dropped.
    pub(crate) fn of_gram(matrix: MatRef<'_, f64>, most: usize) -> Result<Svd> {
        if let Some(nothing) = Svd::of_nothing(matrix)? {
            return Ok(nothing);
        }
        let failed = |_| Error::data("the eigenvalue decomposition did not converge", "use other dimensions or another seed");
        let eigen = (matrix.transpose() * matrix).self_adjoint_eigen(faer::Side::Lower).map_err(failed)?;
        // Eigenvalues come in ascending order.
        let n = eigen.U().ncols();
        let mut s: Vec<f64> = (0..n).rev().map(|i| eigen.S().column_vector()[i].max(0.0).sqrt()).collect();
        let cut = GRAM_NOISE * s.first().copied().unwrap_or(0.0);
        s.truncate(s.iter().take_while(|s| **s > cut).count());
        let kept = most.min(s.len());
        let v = Mat::from_fn(n, kept, |i, j| eigen.U()[(i, n - 1 - j)]);
        let av = matrix * &v;
        Ok(Svd { u: Mat::from_fn(av.nrows(), kept, |i, j| av[(i, j)] / s[j]), s, v })
    }

    /// At least the leading `rank` triples, of a dense or sparse matrix.
    pub(crate) fn leading(matrix: &Matrix, rank: usize, seed: Seed) -> Result<Svd> {
        match matrix {
            Matrix::Dense(matrix) => Svd::thin(matrix.as_ref()),
            Matrix::Sparse(matrix) => {
                let (rows, columns) = (matrix.rows(), matrix.columns());
                if rows.min(columns) <= DENSE_SIDE && rows * columns <= DENSE_ENTRIES {
                    Svd::thin(matrix.to_dense().as_ref())
                } else {
                    Svd::lanczos(matrix, rank, SPARSE_TOLERANCE, seed)
                }
            }
        }
    }

    /// The leading triples by Golub–Kahan–Lanczos bidiagonalisation with full re-orthogonalisation.
    ///
    /// A Vₙ = Uₙ Bₙ with B upper bidiagonal; the triples of B give those of A, with residual
    /// β·|last entry of the left vector of B|. The basis grows until the wanted triples have
    /// converged, or the matrix is exhausted.
    fn lanczos(matrix: &impl Linear, rank: usize, tolerance: f64, seed: Seed) -> Result<Svd> {
        let (rows, columns) = (matrix.rows(), matrix.columns());
        let rank = rank.min(rows).min(columns);
        let mut rng = seed.stream("svd").rng();
        let (mut left, mut right) = (Basis::new(rows), Basis::new(columns));
        let (mut alphas, mut betas) = (Vec::new(), Vec::new());
        let mut v: Vec<f64> = (0..columns).map(|_| rng.uniform() - 0.5).collect();
        right.normalise(&mut v);
        loop {
            let mut u = matrix.times(&v);
            right.push(v);
            alphas.push(left.normalise(&mut u));
            v = matrix.transpose_times(&u);
            left.push(u);
            let beta = right.normalise(&mut v);
            betas.push(beta);
            let n = alphas.len();
            let exhausted = n == rows.min(columns) || beta == 0.0;
            if exhausted || n % CHECK_EVERY == 0 && n >= rank {
                let small = Svd::thin(bidiagonal(&alphas, &betas[..n - 1]).as_ref())?;
                let residual = |i: usize| beta * small.u[(n - 1, i)].abs();
                if exhausted || (0..rank.min(n)).all(|i| residual(i) <= tolerance * small.s[0]) {
                    return Ok(small.lift(&left, &right, rank.min(n)));
                }
            }
        }
    }

    /// The largest singular value, with relative residual at most `tolerance`; its relative error
    /// is of the order of `tolerance`².
    pub(crate) fn norm(matrix: &impl Linear, tolerance: f64, seed: Seed) -> Result<f64> {
        Ok(Svd::lanczos(matrix, 1, tolerance, seed)?.s.first().copied().unwrap_or(0.0))
    }

    /// From triples of the small matrix to those of the large one.
    fn lift(&self, left: &Basis, right: &Basis, rank: usize) -> Svd {
        Svd { u: left.combine(self.u.subcols(0, rank)), s: self.s[..rank].to_vec(), v: right.combine(self.v.subcols(0, rank)) }
    }

    /// How many leading triples to keep: at most `rank`, and none below `tolerance` times the
    /// largest.
    pub(crate) fn rank(&self, rank: usize, tolerance: f64) -> usize {
        let cut = tolerance.max(f64::EPSILON * self.s.len() as f64) * self.s.first().copied().unwrap_or(0.0);
        self.s.iter().take(rank).take_while(|s| **s > cut).count()
    }
}

/// Orthonormal vectors, one after the other.
struct Basis {
    length: usize,
    vectors: Vec<f64>,
}

impl Basis {
    fn new(length: usize) -> Basis {
        Basis { length, vectors: Vec::new() }
    }

    /// Makes `x` orthogonal to the basis (twice, which is enough) and of unit length; returns the
    /// length it had.
    fn normalise(&self, x: &mut [f64]) -> f64 {
        let before = dot(x, x).sqrt();
        for _ in 0..2 {
            for b in self.vectors.chunks_exact(self.length) {
                let along = dot(b, x);
                x.iter_mut().zip(b).for_each(|(x, b)| *x -= along * b);
            }
        }
        let length = dot(x, x).sqrt();
        // The residual of a vector inside the span is rounding, not a direction.
        if length <= f64::EPSILON * before * (self.length as f64).sqrt() {
            x.fill(0.0);
            return 0.0;
        }
        x.iter_mut().for_each(|x| *x /= length);
        length
    }

    fn push(&mut self, x: Vec<f64>) {
        self.vectors.extend(x);
    }

    fn combine(&self, weights: MatRef<'_, f64>) -> Mat<f64> {
        MatRef::from_column_major_slice(&self.vectors, self.length, self.vectors.len() / self.length) * weights
    }
}

fn bidiagonal(diagonal: &[f64], above: &[f64]) -> Mat<f64> {
    let n = diagonal.len();
    Mat::from_fn(n, n, |i, j| {
        if i == j {
            diagonal[i]
        } else if i + 1 == j {
            above[i]
        } else {
            0.0
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::sparse::SparseMatrix;

    /// A sparse matrix of rank 12 with a spread spectrum.
    fn sparse(rows: u32, columns: u32) -> SparseMatrix {
        let mut rng = Seed(4).rng();
        let mut entries = std::collections::BTreeMap::new();
        for k in 0..12 {
            let scale = 0.7f64.powi(k);
            let pick = |n: u32, rng: &mut crate::Rng| -> Vec<(u32, f64)> {
                (0..8).map(|_| (rng.below(n as usize) as u32, rng.uniform() - 0.3)).collect()
            };
            let (x, y) = (pick(rows, &mut rng), pick(columns, &mut rng));
            for &(i, a) in &x {
                for &(j, b) in &y {
                    *entries.entry((i, j)).or_insert(0.0) += scale * a * b;
                }
            }
        }
        SparseMatrix::from_entries(rows as usize, columns as usize, entries)
    }

    #[test]
    fn lanczos_agrees_with_the_dense_decomposition() {
        for rank in [1, 5, 12, 30] {
            let matrix = sparse(90, 70);
            let dense = Svd::thin(matrix.to_dense().as_ref()).unwrap();
            let lanczos = Svd::lanczos(&matrix, rank, SPARSE_TOLERANCE, Seed(1)).unwrap();
            for i in 0..rank.min(lanczos.s.len()).min(12) {
                assert!(
                    (lanczos.s[i] - dense.s[i]).abs() < 1e-10 * dense.s[0],
                    "value {i} of {rank}: {} {}",
                    lanczos.s[i],
                    dense.s[i]
                );
                let cosine = dot(lanczos.u.col_as_slice(i), dense.u.col_as_slice(i))
                    * dot(lanczos.v.col_as_slice(i), dense.v.col_as_slice(i));
                assert!((cosine - 1.0).abs() < 1e-8, "vectors {i} of {rank}: {cosine}");
            }
        }
    }

    #[test]
    fn the_gram_matrix_gives_the_same_leading_triples() {
        let matrix = sparse(60, 50).to_dense();
        let (exact, gram) = (Svd::thin(matrix.as_ref()).unwrap(), Svd::of_gram(matrix.as_ref(), 8).unwrap());
        assert_eq!((gram.s.len(), gram.u.ncols(), gram.v.ncols()), (12, 8, 8), "rank 12, 8 asked for");
        for i in 0..8 {
            assert!((gram.s[i] - exact.s[i]).abs() < 1e-12 * exact.s[0]);
            let cosine =
                dot(gram.u.col_as_slice(i), exact.u.col_as_slice(i)) * dot(gram.v.col_as_slice(i), exact.v.col_as_slice(i));
            assert!((cosine - 1.0).abs() < 1e-10, "vectors {i}: {cosine}");
        }
    }

    #[test]
    fn the_rank_is_cut_at_the_tolerance() {
        let svd = Svd::thin(sparse(40, 40).to_dense().as_ref()).unwrap();
        assert_eq!(svd.rank(40, 1e-10), 12);
        assert_eq!(svd.rank(5, 1e-10), 5);
        assert_eq!(svd.rank(40, 0.9999), 1);
    }
}
