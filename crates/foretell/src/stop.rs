//! Why iterative algorithms stop.

use serde::{Deserialize, Serialize};

/// Why an iterative algorithm stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopReason {
    /// It has converged to the requested accuracy.
    Converged,
    /// The score on held-out data no longer improves.
    NoGain,
    /// Another candidate is so much better that it would not catch up.
    Behind,
    /// It has reached its limit of rounds; more might improve it.
    Rounds,
    /// It has reached its limit of work; more might improve it.
    Work,
}
