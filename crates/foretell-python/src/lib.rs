//! The Python package's native part: it converts, calls the library without the GIL, and converts back.

mod convert;
mod domain;
mod error;
mod logs;
mod model;
mod names;
mod policy;
mod tables;
mod task;
mod verbs;

use pyo3::prelude::*;

/// Foretell's library as Python sees it; the package `foretell` says what it is for.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::domain::{Domain, Simulator, built_in};
    #[pymodule_export]
    use super::logs::{Logs, unused_columns};
    #[pymodule_export]
    use super::model::{Filter, Model};
    #[pymodule_export]
    use super::names::name_of;
    #[pymodule_export]
    use super::policy::{Policy, Run};
    #[pymodule_export]
    use super::verbs::{
        agent, agent_recipe, defaults, diagnose, evaluate_by, evaluate_in, expanded, kind_of, learn, merge, parameters, plan,
        refine, sample, score, search, solve, update,
    };
    use super::{Bound, PyModule, PyModuleMethods, PyResult};

    #[pymodule_init]
    fn version(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
