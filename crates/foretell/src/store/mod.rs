//! Files written atomically, named arrays in them, and checkpoints of long work.

mod file;
pub(crate) mod tensors;
mod checkpoint;

pub(crate) use checkpoint::AGAIN;
pub use checkpoint::{Checkpoint, digest, digest_of};
pub(crate) use file::AtomicFile;
pub use file::write;
pub use tensors::Stamp;

pub use crate::temporary::{file_behind, remove_abandoned, remove_unfinished};
