//! Cells of measurements.

use foretell::Seed;
use foretell::encode::{Bins, Encoder};
use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The cuts between the cells of a measurement; NaN is missing.
#[pyfunction]
pub fn fit_cuts(bins: &str, values: PyReadonlyArray1<'_, f64>) -> PyResult<Vec<f64>> {
    let bins: Bins = bins.parse().map_err(|problem: String| PyValueError::new_err(format!("bins = {bins}: {problem}")))?;
    match Encoder::fit(&bins, &values.as_array().to_vec()) {
        Some(Encoder::Cuts { cuts, .. }) => Ok(cuts),
        _ => Err(PyValueError::new_err("a measurement is never a finite number; drop its column")),
    }
}

/// Centres by k-means and the scale of each measurement.
#[pyfunction]
pub fn fit_centres(rows: PyReadonlyArray2<'_, f64>, k: usize, rounds: usize, seed: u64) -> PyResult<(Vec<Vec<f64>>, Vec<f64>)> {
    let columns: Vec<Vec<f64>> = rows.as_array().columns().into_iter().map(|column| column.to_vec()).collect();
    let columns: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
    match Encoder::fit_centres(k, &columns, rounds, Seed(seed)) {
        Some(Encoder::Centres { scales, centres }) => Ok((centres, scales)),
        _ => Err(PyValueError::new_err("every row of X has a missing measurement; give rows without NaN")),
    }
}

/// The cell of each row; -1 where a measurement is missing. `encoder` is JSON.
#[pyfunction]
pub fn cells_of<'py>(py: Python<'py>, encoder: &str, rows: PyReadonlyArray2<'py, f64>) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let encoder: Encoder = serde_json::from_str(encoder).map_err(|e| PyValueError::new_err(e.to_string()))?;
    let cell = |row: &[f64]| {
        // Infinite measurements are in the outer cells.
        let known = |x: &f64| if x.is_infinite() { f64::MAX.copysign(*x) } else { *x };
        encoder.cell_of_numbers(&row.iter().map(known).collect::<Vec<_>>()).map_or(-1, |cell| cell as i64)
    };
    let cells = rows.as_array().rows().into_iter().map(|row| cell(&row.to_vec())).collect();
    Ok(PyArray1::from_vec(py, cells))
}
