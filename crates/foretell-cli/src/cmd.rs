//! One file for each verb: its arguments and what it does with the library.

pub mod domains;
pub mod inspect;
pub mod learn;
pub mod play;
pub mod predict;
pub mod sample;
pub mod score;
