//! What must hold of everything that is read, whoever made it: shared by the fuzz targets (`fuzz/`)
//! and by the tests that replay their inputs.
//!
//! Nothing panics. What is read can be written, and is then read as the same. What is predicted is a
//! distribution. Fuzz targets also limit time and memory.

pub mod edit;
mod files;
mod texts;

/// What an input is, by the name of its fuzz target and of the folder of its inputs, and its check.
pub type Kind = (&'static str, fn(&[u8]));

/// All kinds.
pub const KINDS: [Kind; 12] = [
    ("csv", texts::csv),
    ("json-lines", texts::json_lines),
    ("parquet", texts::parquet),
    ("gzip", texts::gzip),
    ("pomdp", texts::pomdp),
    ("maze", texts::maze),
    ("config", texts::config),
    ("schema", texts::schema),
    ("model", files::model),
    ("moments", files::moments),
    ("policy", files::policy),
    ("checkpoint", files::checkpoint),
];

/// Whether inputs of a kind are safetensors files, which [`edit::changed`] can change.
pub fn is_file(kind: &str) -> bool {
    ["model", "moments", "policy", "checkpoint"].contains(&kind)
}
