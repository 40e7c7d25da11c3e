//! What must hold of everything that is read, whoever made it.

pub mod edit;
