//! The native module of the Python package: it converts arguments, calls the library without the
//! GIL, and converts the results.

mod cells;
mod convert;
mod domain;
mod error;
mod files;
mod learning;
mod logs;
mod model;
mod names;
mod parameters;
mod planning;
mod policy;
mod tables;
mod task;

use pyo3::prelude::*;

/// Damaged files raise an error; what made their decoders panic helps nobody.
fn quieten_decoders() {
    let say = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !foretell::log::is_decoding() {
            say(panic);
        }
    }));
}

/// The library for the package `foretell`, which documents it.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::cells::{cells_of, fit_centres, fit_cuts};
    #[pymodule_export]
    use super::domain::{Domain, Simulator, built_in};
    #[pymodule_export]
    use super::files::{expanded, kind_of};
    #[pymodule_export]
    use super::learning::{diagnose, learn, merge, refine, score, search, update};
    #[pymodule_export]
    use super::logs::{Logs, unused_columns};
    #[pymodule_export]
    use super::model::{Filter, Model};
    #[pymodule_export]
    use super::names::name_of;
    #[pymodule_export]
    use super::parameters::{defaults, parameters};
    #[pymodule_export]
    use super::planning::{agent, agent_recipe, evaluate_by, evaluate_in, plan, sample, solve};
    #[pymodule_export]
    use super::policy::{Policy, Run};
    use super::{Bound, PyModule, PyModuleMethods, PyResult};

    #[pymodule_init]
    fn version(module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::quieten_decoders();
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
