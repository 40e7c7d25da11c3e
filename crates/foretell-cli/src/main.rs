//! Foretell.
fn main() {}
