//! The thin SVD of a sum, from that of its first term (Brand 2002): Û Ŝ V̂ᵀ + Δ.

use faer::{Mat, MatRef};

use super::Matrix;
use super::svd::Svd;
use crate::error::Result;
use crate::rng::Seed;

/// Directions in which Δ has less than this share of its norm are rounding.
const NOISE: f64 = 1e-9;

/// The leading triples of Û Ŝ V̂ᵀ + Δ: exact if neither Û Ŝ V̂ᵀ nor the result (at most `most`
/// triples) is truncated.
///
/// P and Q are bases of the part of Δ outside the spans of Û and V̂; the
/// small matrix [Û P]ᵀ(Û Ŝ V̂ᵀ + Δ)[V̂ Q] is decomposed.
pub(crate) fn update(old: &Svd, delta: &Matrix, most: usize, seed: Seed) -> Result<Svd> {
    let delta = Svd::leading(delta, most, seed)?;
    let norm = delta.s.first().copied().unwrap_or(0.0);
    let rank = delta.s.iter().take(delta.u.ncols()).take_while(|s| **s > NOISE * norm).count();
    let (a, b) = (delta.u.subcols(0, rank), delta.v.subcols(0, rank));
    let left = extended(&old.u, &Mat::from_fn(a.nrows(), rank, |i, j| a[(i, j)] * delta.s[j]), NOISE * norm)?;
    let right = extended(&old.v, &Mat::from_fn(b.nrows(), rank, |i, j| b[(i, j)] * delta.s[j]), NOISE * norm)?;
    let (along_left, along_right) = (left.transpose() * a, right.transpose() * b);
    let weighted = Mat::from_fn(along_left.nrows(), rank, |i, j| along_left[(i, j)] * delta.s[j]);
    let mut core = weighted * along_right.transpose();
    (0..old.s.len()).for_each(|i| core[(i, i)] += old.s[i]);
    let small = Svd::thin(core.as_ref())?;
    let kept = most.min(small.s.len());
    Ok(Svd { u: left * small.u.subcols(0, kept), s: small.s[..kept].to_vec(), v: right * small.v.subcols(0, kept) })
}

/// The orthonormal basis, extended by one of the part of `vectors` outside its span, where that is
/// longer than `noise`.
///
/// Uses the SVD of the residual: its rank may be less than its number of
/// columns, and then a QR decomposition adds arbitrary directions.
fn extended(basis: &Mat<f64>, vectors: &Mat<f64>, noise: f64) -> Result<Mat<f64>> {
    let outside = |x: Mat<f64>| &x - basis * (basis.transpose() * &x);
    let residual = outside(outside(vectors.clone()));
    if residual.ncols() == 0 || residual.norm_max() <= noise {
        return Ok(basis.clone());
    }
    let svd = Svd::thin(residual.as_ref())?;
    let rank = svd.s.iter().take_while(|s| **s > noise).count();
    let added = outside(outside(svd.u.subcols(0, rank).to_owned())).qr().compute_thin_Q();
    Ok(concatenated(basis.as_ref(), added.as_ref()))
}

fn concatenated(left: MatRef<'_, f64>, right: MatRef<'_, f64>) -> Mat<f64> {
    Mat::from_fn(left.nrows(), left.ncols() + right.ncols(), |i, j| {
        if j < left.ncols() { left[(i, j)] } else { right[(i, j - left.ncols())] }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    /// Rounding of decompositions of matrices of norm 1 to 10.
    const ROUNDING: f64 = 1e-12;

    /// A random matrix of given rank.
    fn random(rows: usize, columns: usize, rank: usize, rng: &mut Rng) -> Mat<f64> {
        let mut factor = |rows, columns| Mat::from_fn(rows, columns, |_, _| rng.uniform() - 0.5);
        factor(rows, rank) * factor(rank, columns)
    }

    fn product(svd: &Svd) -> Mat<f64> {
        let scaled = Mat::from_fn(svd.u.nrows(), svd.s.len(), |i, j| svd.u[(i, j)] * svd.s[j]);
        scaled * svd.v.transpose()
    }

    #[test]
    fn the_update_is_exact_without_truncation() {
        let mut rng = Seed(8).rng();
        for (rows, columns, ranks) in [(9, 9, [9, 9]), (20, 12, [3, 2]), (12, 20, [4, 12]), (15, 15, [6, 0])] {
            let first = random(rows, columns, ranks[0], &mut rng);
            let second = random(rows, columns, ranks[1], &mut rng);
            let mut old = Svd::thin(first.as_ref()).unwrap();
            let kept = old.rank(rows, NOISE);
            old = Svd { u: old.u.subcols(0, kept).to_owned(), s: old.s[..kept].to_vec(), v: old.v.subcols(0, kept).to_owned() };
            let new = update(&old, &Matrix::Dense(second.clone()), rows.max(columns), Seed(0)).unwrap();
            assert!((product(&new) - (&first + &second)).norm_max() < ROUNDING);
            for basis in [&new.u, &new.v] {
                let gram = basis.transpose() * basis;
                assert!((&gram - Mat::<f64>::identity(gram.nrows(), gram.ncols())).norm_max() < ROUNDING);
            }
            let exact = Svd::thin((&first + &second).as_ref()).unwrap();
            assert!(new.s.iter().zip(&exact.s).all(|(x, y)| (x - y).abs() < ROUNDING), "{:?} {:?}", new.s, exact.s);
        }
    }
}
