//! What happens when the program is stopped from outside: by Ctrl-C, or by `kill`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

#[cfg(unix)]
use foretell::store;

/// Folders in which this process may be writing files that are not finished.
static FOLDERS: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Unfinished files in that folder are removed if the program is stopped.
pub fn clean_up_in(folder: &Path) {
    FOLDERS.lock().unwrap_or_else(PoisonError::into_inner).insert(folder.to_path_buf());
}

/// From now on a signal that ends the program first removes what it has not finished.
#[cfg(unix)]
pub fn watch() {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let heeded: Vec<i32> = [SIGHUP, SIGINT, SIGTERM].into_iter().filter(|&signal| !is_ignored(signal)).collect();
    // Without signals the program ends as it would, and the next one cleans up.
    let Ok(mut signals) = signal_hook::iterator::Signals::new(heeded) else { return };
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            for folder in &*FOLDERS.lock().unwrap_or_else(PoisonError::into_inner) {
                store::remove_unfinished(folder);
            }
            // The shell sees a program that was ended by the signal.
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    });
}

#[cfg(not(unix))]
pub fn watch() {}

/// Whether whoever started the program wants it to ignore a signal, as `nohup` does.
#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}
