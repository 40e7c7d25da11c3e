//! A bounded cache of projection columns [H14 §7.1.2], for projections whose columns are dear to make.
//!
//! A table with one place for each of many keys, so that a look-up is one comparison. A column is kept when it is
//! asked for the second time: long tests, most of which are met once, do not push out the short ones.

use std::sync::Mutex;

use crate::projection::Columns;
use crate::sequence::mix;

/// Memory for the columns of one cache, shared out among the threads.
const BYTES: usize = 16 << 20;
/// Keys remembered as met once, for each column kept.
const MET_PER_COLUMN: usize = 4;

/// Columns that were asked for more than once.
pub(crate) struct ColumnCache {
    columns: Columns,
    /// One for each thread: all ask for the same short tests, and would wait for each other.
    shards: Vec<Mutex<Shard>>,
}

struct Shard {
    /// Keys met once, each in its place.
    met: Vec<u64>,
    /// Keys whose columns are kept, each in its place. No sequence but the empty one has key 0.
    kept: Vec<u64>,
    values: Vec<f64>,
}

impl ColumnCache {
    pub(crate) fn new(columns: Columns) -> ColumnCache {
        let threads = rayon::current_num_threads();
        let places = (BYTES / 8 / threads / columns.dim()).max(1);
        let shard = || {
            Mutex::new(Shard {
                met: vec![0; places * MET_PER_COLUMN],
                kept: vec![0; places],
                values: vec![0.0; places * columns.dim()],
            })
        };
        ColumnCache { columns, shards: (0..threads).map(|_| shard()).collect() }
    }

    /// out += φ(key)
    pub(crate) fn add(&self, key: u64, out: &mut [f64]) {
        let hash = mix(key);
        let thread = rayon::current_thread_index().unwrap_or(0) % self.shards.len();
        let mut shard = self.shards[thread].lock().expect("no thread panics while it holds a shard");
        let Shard { met, kept, values } = &mut *shard;
        let place = |n: usize| ((u128::from(hash) * n as u128) >> 64) as usize;
        let at = place(kept.len());
        let column = &mut values[at * out.len()..(at + 1) * out.len()];
        if kept[at] != key {
            let once = place(met.len());
            let once = &mut met[once];
            if *once != key {
                *once = key;
                drop(shard);
                return self.columns.add(key, out);
            }
            kept[at] = key;
            column.fill(0.0);
            self.columns.add(key, column);
        }
        out.iter_mut().zip(column).for_each(|(x, c)| *x += *c);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::projection::Projection;
    use crate::rng::Seed;

    #[test]
    fn cached_columns_are_the_columns() {
        let columns = Columns::new(Projection::Spherical, 2000, Seed(1));
        let cache = ColumnCache::new(columns);
        let mut rng = Seed(2).rng();
        for _ in 0..5000 {
            let key = 1 + rng.below(3000) as u64; // more keys than places, so columns are kept, found and pushed out
            let (mut plain, mut cached) = (vec![0.5; 2000], vec![0.5; 2000]);
            columns.add(key, &mut plain);
            cache.add(key, &mut cached);
            let same = plain.iter().zip(&cached).all(|(x, y)| (x - y).abs() < 1e-15);
            assert!(same, "column {key}");
        }
    }
}
