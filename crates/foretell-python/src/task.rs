//! Long calls: without the GIL, telling how far they are, and stopped by Ctrl-C.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::error::raised;

/// How often Python is asked for signals while a call goes on.
const EVERY: Duration = Duration::from_millis(50);

/// A call under way, as the thread that works sees it.
#[derive(Default)]
pub struct Task {
    stopped: AtomicBool,
    told: Mutex<Option<Told>>,
}

/// How far it is: what is being done, how much of it is, and of how much, if that is known.
#[derive(Clone, Copy)]
struct Told {
    what: &'static str,
    done: u64,
    of: Option<u64>,
}

/// What a stopped thread unwinds with: the library has no other way out of the middle of its work, and leaves nothing behind.
struct Stopped;

impl Task {
    /// Tells how far the work is; does not return if it is to stop.
    pub fn tell(&self, what: &'static str, done: u64, of: Option<u64>) {
        if self.stopped.load(Ordering::Relaxed) {
            panic::resume_unwind(Box::new(Stopped));
        }
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = Some(Told { what, done, of });
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    fn take(&self) -> Option<Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Does the work in a thread of its own. Python hears of progress, and of Ctrl-C at once: the thread ends when it next tells how far
/// it is.
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
        let result = panic::catch_unwind(AssertUnwindSafe(|| work(&worker)));
        let _ = sender.send(result); // nobody listens to a stopped one
    });
    let heard = || -> PyResult<()> {
        py.check_signals()?;
        if let (Some(progress), Some(Told { what, done, of })) = (progress, task.take()) {
            progress.call1((what, done, of))?;
        }
        Ok(())
    };
    loop {
        match py.detach(|| receiver.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(EVERY)) {
            Ok(result) => {
                heard()?;
                return result.map_err(|panic| PyRuntimeError::new_err(said(&*panic)))?.map_err(raised);
            }
            Err(RecvTimeoutError::Timeout) => heard().inspect_err(|_| task.stop())?,
            Err(RecvTimeoutError::Disconnected) => return Err(PyRuntimeError::new_err("the thread that did the work is gone")),
        }
    }
}

/// What a panic says: a defect of foretell, never of the data.
fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    format!("a defect of foretell: {}", text.unwrap_or("it does not say which"))
}
