//! Truncated thin SVD: Σ ≈ Û Ŝ V̂ᵀ.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::matrix_free::eigen::{PartialEigenParams, partial_svd, partial_svd_scratch};
use faer::{Col, Mat, MatRef, Par};

use crate::error::{Error, Result};
use crate::moments::Joint;
use crate::rng::Seed;
use crate::sparse::SparseMatrix;

/// Sparse matrices whose smaller side is at most this are decomposed as dense ones.
const DENSE_SIDE: usize = 600;
/// Relative accuracy asked of the singular pairs of large sparse matrices.
const SPARSE_TOLERANCE: f64 = 1e-10;
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
    /// All singular triples of a dense matrix.
    pub(crate) fn thin(matrix: MatRef<'_, f64>) -> Result<Svd> {
        // A fixed sign makes the decomposition unique: the entry of largest size of each left vector is positive.
        let failed = |_| Error::data("the singular value decomposition did not converge", "check the logs for extreme weights");
        let svd = matrix.thin_svd().map_err(failed)?;
        let s = svd.S().column_vector().iter().copied().collect();
        Ok(Svd { u: svd.U().to_owned(), s, v: svd.V().to_owned() })
    }

    /// At least the leading `rank` triples, of a dense or sparse matrix.
    pub(crate) fn leading(matrix: &Joint, rank: usize, seed: Seed) -> Result<Svd> {
        match matrix {
            Joint::Dense(matrix) => Svd::thin(matrix.as_ref()),
            Joint::Sparse(matrix) => {
                let (rows, columns) = (matrix.rows(), matrix.columns());
                if rows.min(columns) <= DENSE_SIDE && rows * columns <= DENSE_ENTRIES {
                    Svd::thin(matrix.to_dense().as_ref())
                } else {
                    Svd::sparse(matrix, rank, seed)
                }
            }
        }
    }

    /// The leading triples by restarted Krylov iteration.
    fn sparse(matrix: &SparseMatrix, rank: usize, seed: Seed) -> Result<Svd> {
        let (rows, columns) = (matrix.rows(), matrix.columns());
        let rank = rank.min(rows).min(columns);
        let (mut u, mut v, mut s) = (Mat::zeros(rows, rank), Mat::zeros(columns, rank), vec![0.0; rank]);
        let mut rng = seed.stream("svd").rng();
        let start = Col::from_fn(columns, |_| rng.uniform() - 0.5);
        let params = PartialEigenParams::default();
        let mut memory = MemBuffer::new(partial_svd_scratch(matrix, rank, Par::Seq, params));
        let stack = MemStack::new(&mut memory);
        let info = partial_svd(u.as_mut(), v.as_mut(), &mut s, matrix, start.as_ref(), SPARSE_TOLERANCE, Par::Seq, stack, params);
        let n = info.n_converged_eigen;
        if n == 0 {
            return Err(Error::data("no singular value of the uncompressed moments converged", "use a compressing projection"));
        }
        s.truncate(n);
        Ok(Svd { u: u.subcols(0, n).to_owned(), s, v: v.subcols(0, n).to_owned() })
    }

    /// How many leading triples to keep: at most `rank`, and none below `tolerance` times the largest.
    pub(crate) fn rank(&self, rank: usize, tolerance: f64) -> usize {
        let cut = tolerance.max(f64::EPSILON * self.s.len() as f64) * self.s.first().copied().unwrap_or(0.0);
        self.s.iter().take(rank).take_while(|s| **s > cut).count()
    }
}
