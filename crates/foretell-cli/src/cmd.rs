//! One file for each verb: its arguments and what it does with the library.

pub mod act;
pub mod agent;
pub mod domains;
pub mod evaluate;
pub mod inspect;
pub mod learn;
pub mod plan;
pub mod play;
pub mod predict;
pub mod sample;
pub mod score;

/// Sets of parameters.
#[derive(Clone, Copy, clap::ValueEnum)]
pub enum Preset {
    /// What works best
    Default,
    /// As printed by Hamilton et al. 2014
    Paper,
}
