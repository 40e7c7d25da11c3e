//! What is read at most: no file can take memory or time without bound, however it came about.
//!
//! Whatever exceeds a limit is an error that names the place, the value and the limit. The limits
//! are far above what logs hold, and are the same on every machine.

/// Bytes of a line of CSV or JSON Lines. A longer one means that a quote was not closed, or that the
/// file is not a table.
pub const LINE: usize = 1 << 24;

/// Bytes of a name: of an action, an observation, an episode or a column. Names are held in memory
/// and written into models; an image of 84 × 84 pixels, each as a number, has about 30 000.
pub const NAME: usize = 1 << 16;

/// Columns of a table, or different keys of its rows.
pub const COLUMNS: usize = 1 << 16;

/// Different actions, and different observations. With a million, hardly any is seen twice, and
/// each prediction is a list of as many numbers.
pub const SYMBOLS: usize = 1 << 20;

/// Bytes that a compressed file may always unpack to, and how many times its own size it may unpack
/// to beyond that. Logs compress to a tenth or a fiftieth; only a constant repeated without end
/// compresses to a thousandth, which is the most that gzip can do.
pub const UNPACKED: u64 = 1 << 26;
/// See [`UNPACKED`].
pub const RATIO: u64 = 500;

/// Bytes that a page of Parquet may always unpack to, however many columns are read. Writers end a
/// page after a megabyte.
pub const PAGE: u64 = 1 << 21;

/// The largest magnitude of a reward: squares of weighted rewards and their sums are finite.
pub const REWARD: f64 = 1e50;

/// The smallest probability of an action that was taken. The weights of importance sampling divide
/// by it, and squares of such weights are finite.
pub const PROBABILITY: f64 = 1e-50;

/// Threads. Beyond the number of cores they only take memory.
pub const THREADS: u16 = 1024;
