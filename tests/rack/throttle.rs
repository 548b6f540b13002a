//! A process held to a share of one processor, by stopping it and letting it go on: a slow machine,
//! however fast or busy this one is.

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
                    signal(process, if stop { libc::SIGSTOP } else { libc::SIGCONT });
                    stopped = stop;
                }
                std::thread::sleep(LOOK);
            }
            signal(process, libc::SIGCONT);
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

fn signal(process: u32, signal: i32) {
    // SAFETY: the call takes numbers alone; the process is a child that has not been waited for, so
    // that its number is its own.
    unsafe { libc::kill(process as i32, signal) };
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
