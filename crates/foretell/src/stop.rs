//! Why iterative algorithms end.

use serde::{Deserialize, Serialize};

/// Why an iterative algorithm ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopReason {
    /// What it looks for is found, as closely as was asked for.
    Converged,
    /// Held-out data no longer gain.
    NoGain,
    /// Another candidate is so far ahead that it would not catch up.
    Behind,
    /// It has made the rounds that it was given, and may still gain.
    Rounds,
    /// It has done the work that it was given, and may still gain.
    Work,
}
