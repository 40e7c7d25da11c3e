//! Limits for time and memory that depend on the size of the input.

use std::alloc::{GlobalAlloc, Layout, System};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Bytes that a check may take at once: a constant, and so many for each byte of input. Unfolded
/// moments are what takes most.
const MEMORY: usize = 512 << 20;
const MEMORY_A_BYTE: usize = 4096;
/// Time that a check may take, on a busy machine.
const TIME: Duration = Duration::from_secs(10);
const TIME_A_BYTE: Duration = Duration::from_micros(200);

static TAKEN: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);
static LAST_PANIC: Mutex<String> = Mutex::new(String::new());

/// Counts what is allocated.
struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

impl Counting {
    fn take(size: usize) {
        let taken = TAKEN.fetch_add(size, Ordering::Relaxed) + size;
        MOST.fetch_max(taken, Ordering::Relaxed);
    }
}

// SAFETY: all calls go to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Counting::take(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Counting::take(layout.size());
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        TAKEN.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        Counting::take(size);
        TAKEN.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.realloc(at, layout, size) }
    }
}

/// Keeps the message of a panic, in case nobody catches it.
pub fn remember(message: String) {
    *LAST_PANIC.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = message;
}

/// Runs a check; ends the process if it panics, or takes more than it may.
pub fn within(bytes: &[u8], check: fn(&[u8])) {
    let (begin, before) = (Instant::now(), TAKEN.load(Ordering::Relaxed));
    MOST.store(before, Ordering::Relaxed);
    let result = catch_unwind(AssertUnwindSafe(|| check(bytes)));
    let (took, memory) = (begin.elapsed(), MOST.load(Ordering::Relaxed).saturating_sub(before));
    if result.is_err() {
        fail(&LAST_PANIC.lock().unwrap_or_else(|poisoned| poisoned.into_inner()));
    }
    if memory > MEMORY + MEMORY_A_BYTE * bytes.len() {
        fail(&format!("{} bytes of input took {memory} bytes of memory", bytes.len()));
    }
    if took > TIME + TIME_A_BYTE * bytes.len() as u32 {
        fail(&format!("{} bytes of input took {took:?}", bytes.len()));
    }
}

fn fail(message: &str) {
    eprintln!("{message}");
    std::process::abort();
}
