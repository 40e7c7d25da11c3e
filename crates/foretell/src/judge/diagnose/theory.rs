//! The quantities in Theorems 1 and 2 [H14 §4.2], as far as they can be estimated from logs.
//!
//! σ²_i are the eigenvalues of E_ρ[P_{Q,h} P_{Q,h}ᵀ] = P_{Q,H} P_{Q,H}ᵀ/|H|, with T in place of the
//! unknown core set Q, and in compressed coordinates. Theorem 1 has those of P_{Q,ao,h} of one
//! pair: its rows are the tests that begin with ao, a part of all rows, so by interlacing none of
//! its eigenvalues is larger than ours, and its ν is no larger.

use serde::Serialize;

use super::sparsity::Sparsity;

/// Failure probability for which the theorems' terms are given.
const DELTA: f64 = 0.05;

/// The decay of the eigenvalues of the moments.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Decay {
    /// σ²_1, σ²_2, …
    pub eigenvalues: Vec<f64>,
    /// Their sum, ‖P_{T,h}‖²_ρ: x² of Theorem 1.
    pub total: f64,
    /// The eigenvalues beyond the first few directions.
    pub left_out: Vec<EigenvalueTail>,
}

/// The sum of the eigenvalues beyond the leading directions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct EigenvalueTail {
    /// m, the number of leading directions.
    pub m: usize,
    /// ν = Σ_{i>m} σ²_i
    pub nu: f64,
    /// ν as a share of all.
    pub share: f64,
}

impl Decay {
    const SHOWN: [usize; 9] = [1, 2, 5, 10, 20, 50, 100, 200, 500];

    /// From the singular values of Σ̂_TH.
    pub(super) fn of(singular_values: &[f64], histories: u64) -> Decay {
        let eigenvalues: Vec<f64> = singular_values.iter().map(|s| s * s / histories.max(1) as f64).collect();
        let total = eigenvalues.iter().sum();
        let mut decay = Decay { eigenvalues, total, left_out: Vec::new() };
        let m = Self::SHOWN.into_iter().filter(|&m| m < singular_values.len());
        decay.left_out = m.map(|m| EigenvalueTail { m, nu: decay.nu(m), share: decay.nu(m) / total }).collect();
        decay
    }

    /// ν for a given m.
    pub fn nu(&self, m: usize) -> f64 {
        // The smallest first, for accuracy.
        self.eigenvalues.iter().skip(m).rev().sum()
    }

    /// The number of directions beyond which at most this share remains.
    pub fn directions(&self, share: f64) -> usize {
        (0..self.eigenvalues.len()).find(|&m| self.nu(m) <= share * self.total).unwrap_or(self.eigenvalues.len())
    }
}

/// The terms of Theorems 1 and 2, at δ = 0.05. The bounds themselves are ε of these, a function
/// that the theorems leave open.
///
/// In place of the unknown core set: |T| for |Q|, and the learned ‖C_ao‖, ‖c_∞‖ for ‖B_ao‖, ‖b_∞‖.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Terms {
    /// m, the number of directions: the suggested rank, or that of the parameters.
    pub m: usize,
    /// ν = Σ_{i>m} σ²_i
    pub nu: f64,
    /// w² = ‖B_ao‖²(m + 4√m ln(4d/δ)): size of the regression's weights.
    pub w2: f64,
    /// x² = ‖P_{Q,h}‖²_ρ: size of the regressors.
    pub x2: f64,
    /// b² = ν + 4√ν ln(4d/δ): bias from the eigenvalues beyond m.
    pub b2: f64,
    /// σ²_η = 4k ln(4|Q|/δ)/d · σ²_y + w²σ²_x: noise of one step.
    pub noise: f64,
    /// σ²_∞ = σ²_z + σ²_x‖b_∞‖²: noise of the normaliser.
    pub normalizer_noise: f64,
}

impl Terms {
    pub(super) fn new(m: usize, d: usize, decay: &Decay, sparsity: &Sparsity, c: f64, normalizer: f64) -> Terms {
        let (nu, tail) = (decay.nu(m), (4.0 * d as f64 / DELTA).ln());
        let w2 = c * c * (m as f64 + 4.0 * (m as f64).sqrt() * tail);
        let [x, y, z] = sparsity.variances;
        let spread = 4.0 * sparsity.k() as f64 * (4.0 * sparsity.tests as f64 / DELTA).ln() / d as f64;
        Terms {
            m,
            nu,
            w2,
            x2: decay.total,
            b2: nu + 4.0 * nu.sqrt() * tail,
            noise: spread * y + w2 * x,
            normalizer_noise: z + x * normalizer * normalizer,
        }
    }
}

/// The size of projections by the theory: O(k ln |Q|), with an unknown constant.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ProjectionSize {
    /// k ln |T| with the most non-zeros of any column, and all tests in place of the core set: the
    /// safest choice.
    pub safe: f64,
    /// The same with the mean number of non-zeros.
    pub typical: f64,
    /// k ln |Q| with the most non-zeros and the suggested rank in place of |Q|.
    pub by_rank: Option<f64>,
    /// d_T of the parameters; `None` where tests are not compressed.
    pub used: Option<usize>,
}

impl ProjectionSize {
    pub(super) fn new(sparsity: &Sparsity, rank: Option<usize>, used: Option<usize>) -> ProjectionSize {
        let (k, tests) = (sparsity.k() as f64, (sparsity.tests.max(1) as f64).ln());
        let by_rank = rank.map(|rank| k * (rank as f64).ln());
        ProjectionSize { safe: k * tests, typical: sparsity.mean() * tests, by_rank, used }
    }
}
