//! Long calls: they run without the GIL, report progress, and stop on Ctrl-C.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use foretell::Error;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::error::raised;

/// How often Python's signals are checked during a call.
const EVERY: Duration = Duration::from_millis(50);

/// A running call, as the worker thread sees it.
#[derive(Default)]
pub struct Task {
    stopped: AtomicBool,
    latest: Mutex<Option<Progress>>,
}

/// Progress: the stage, the amount done, and the total, if known.
#[derive(Clone, Copy)]
struct Progress {
    what: &'static str,
    done: u64,
    of: Option<u64>,
}

/// Payload with which a stopped worker unwinds: the library has no other way to cancel its work.
struct Stopped;

impl Task {
    /// Reports progress; does not return if the work is to stop.
    pub fn tell(&self, what: &'static str, done: u64, of: Option<u64>) {
        if self.stopped.load(Ordering::Relaxed) {
            panic::resume_unwind(Box::new(Stopped));
        }
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(Progress { what, done, of });
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    fn take(&self) -> Option<Progress> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Runs the work in a thread of its own. This thread passes progress on to Python and returns at
/// once on Ctrl-C; the worker ends at its next report of progress.
pub fn run<R: Send + 'static>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Task) -> foretell::Result<R> + Send + 'static,
) -> PyResult<R> {
    let task = Arc::new(Task::default());
    let (sender, receiver) = mpsc::channel();
    let receiver = Mutex::new(receiver);
    let worker = task.clone();
    thread::spawn(move || {
        let result = panic::catch_unwind(AssertUnwindSafe(|| pool()?.install(|| work(&worker))));
        let _ = sender.send(result); // the receiver is gone if the call was stopped
    });
    let report = || -> PyResult<()> {
        py.check_signals()?;
        if let (Some(progress), Some(Progress { what, done, of })) = (progress, task.take()) {
            progress.call1((what, done, of))?;
        }
        Ok(())
    };
    loop {
        match py.detach(|| receiver.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(EVERY)) {
            Ok(result) => {
                report()?;
                return result.map_err(|panic| PyRuntimeError::new_err(panic_message(&*panic)))?.map_err(raised);
            }
            Err(RecvTimeoutError::Timeout) => report().inspect_err(|_| task.stop())?,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err(
                    "the worker thread ended without a result; please report this as a bug of foretell",
                ));
            }
        }
    }
}

/// The threads of this process. None survives a fork, and a child that waited for those of its parent
/// would wait for ever: it starts its own.
fn pool() -> foretell::Result<&'static ThreadPool> {
    static POOL: Mutex<Option<(u32, &'static ThreadPool)>> = Mutex::new(None);
    let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    match *pool {
        Some((process, threads)) if process == process::id() => Ok(threads),
        _ => {
            let threads = ThreadPoolBuilder::new().build();
            let threads = threads.map_err(|e| Error::data(format!("no threads can be started ({e})"), "stop other programs"))?;
            Ok(pool.insert((process::id(), Box::leak(Box::new(threads)))).1)
        }
    }
}

/// The message of a panic: always a bug of foretell, never of the data.
fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    format!("a bug of foretell, please report it: {}", text.unwrap_or("no message"))
}
