//! By planning value instead of likelihood.
/// TODO
pub struct Values;
/// TODO
pub struct Valued;
