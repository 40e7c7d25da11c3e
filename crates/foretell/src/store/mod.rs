//! Files that appear whole or not at all, named arrays in them, and checkpoints of work that takes long.

mod file;
pub(crate) mod tensors;
mod checkpoint;

pub(crate) use checkpoint::AGAIN;
pub use checkpoint::{Checkpoint, digest, digest_of};
pub(crate) use file::AtomicFile;
pub use file::write;
pub use tensors::Stamp;
