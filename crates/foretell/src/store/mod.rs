//! Files written atomically, named arrays in them, their checksums, and checkpoints of long work.

mod disk;
mod file;
mod checksum;
pub(crate) mod tensors;
mod checkpoint;

pub(crate) use checkpoint::AGAIN;
pub use checkpoint::{Checkpoint, digest, digest_of};
pub use checksum::sealed;
pub(crate) use file::AtomicFile;
pub use file::write;
pub use tensors::Stamp;

pub use crate::temporary::{file_behind, remove_abandoned, remove_unfinished};

#[cfg(test)]
mod tests;
