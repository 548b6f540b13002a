//! A process held to a share of one processor, by stopping it and letting it go on: a slow machine,
//! however fast or busy this one is.

use rustix::process::{Pid, Signal, kill_process};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often the process is looked at.
const LOOK: Duration = Duration::from_millis(2);
/// Processor time that it may be ahead of its share before it is stopped.
const AHEAD: Duration = Duration::from_millis(2);

/// Holds the process as long as it lives; then lets it run freely.
pub(crate) struct Throttle {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Throttle {
    /// Holds a process to `share` of a processor: above 0, at most 1.
    pub(crate) fn hold(process: u32, share: f64) -> Throttle {
        let ends = Arc::new(AtomicBool::new(false));
        let told = ends.clone();
        let thread = std::thread::spawn(move || {
            let (start, before) = (Instant::now(), processor_time(process));
            let mut stopped = false;
            while !told.load(Ordering::Relaxed) {
                let used = processor_time(process).saturating_sub(before);
                let due = start.elapsed().mul_f64(share);
                let stop = used > due + if stopped { Duration::ZERO } else { AHEAD };
                if stop != stopped {
                    signal(process, if stop { Signal::STOP } else { Signal::CONT });
                    stopped = stop;
                }
                std::thread::sleep(LOOK);
            }
            signal(process, Signal::CONT);
        });
        Throttle { ends, thread: Some(thread) }
    }
}

impl Drop for Throttle {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It has nothing to fail with; a test that panics already says why.
            let _ = thread.join();
        }
    }
}

/// Signals a child that has not been waited for, so that its number is its own.
fn signal(process: u32, signal: Signal) {
    if let Some(process) = Pid::from_raw(process.cast_signed()) {
        // One that has ended is not signalled.
        let _ = kill_process(process, signal);
    }
}

/// Time that all threads of a process have had of a processor: exact, unlike the ticks of
/// `/proc/PID/stat`.
fn processor_time(process: u32) -> Duration {
    let threads = std::fs::read_dir(PathBuf::from(format!("/proc/{process}/task")));
    let nanos = threads.into_iter().flatten().flatten().filter_map(|thread| {
        let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanos.sum())
}
