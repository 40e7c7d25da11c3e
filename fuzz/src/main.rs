//! All fuzz targets in one program; the variable `FORETELL_INPUTS` says which, by the name of the
//! folder of its inputs.
#![no_main]

#[path = "../../crates/foretell/tests/inputs/mod.rs"]
#[allow(dead_code)] // the tests use more of it
mod inputs;
mod limits;

use std::sync::OnceLock;

use foretell::Seed;
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

use inputs::{KINDS, Kind, edit, is_file};

fn kind() -> Kind {
    static KIND: OnceLock<Kind> = OnceLock::new();
    *KIND.get_or_init(|| {
        let name = std::env::var("FORETELL_INPUTS").unwrap_or_default();
        let known = || KINDS.map(|(name, _)| name).join(", ");
        KINDS.into_iter().find(|(known, _)| *known == name).unwrap_or_else(|| panic!("set FORETELL_INPUTS to one of {}", known()))
    })
}

fuzz_target!(
    init: {
        rayon::ThreadPoolBuilder::new().num_threads(1).build_global().expect("there is no other pool");
        // Panics of the Parquet decoder are errors of its guard. Those that escape are told below.
        std::panic::set_hook(Box::new(|info| limits::remember(info.to_string())));
        kind();
    },
    |bytes: &[u8]| limits::within(bytes, kind().1)
);

// Files are mostly changed by their parts, with a checksum that is right: random bytes would hardly
// ever get past it.
fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    if !is_file(kind().0) || seed % 8 == 0 {
        return fuzzer_mutate(data, size, max_size);
    }
    let mut rng = Seed(u64::from(seed)).rng();
    let mut changed = data[..size].to_vec();
    for _ in 0..1 + rng.below(3) {
        changed = edit::changed(&changed, &mut rng);
    }
    if changed.len() > max_size || changed == data[..size] {
        return fuzzer_mutate(data, size, max_size);
    }
    data[..changed.len()].copy_from_slice(&changed);
    changed.len()
});
