//! One importer process on the parent's side: started, asked, timed and ended. Knows only the
//! arrays of scenes.

use super::arrays::{FrameHead, Layout, kept};
use super::huge_pages::SmallPages;
use super::memory_file::{self, MemoryFile};
use super::message::{Answer, Order};
use super::{ImportError, ImportLimits};
use crate::device::worker::frame::{FrameError, receive, send};
use rustix::process::Signal;
use std::io::{ErrorKind, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tessera_layout::FlatScene;
use tessera_transport::error::chain;

/// Longest time for a process to start and confine itself.
const START_TIME: Duration = Duration::from_secs(30);
/// Longest wait for the end of a process that has closed its pipe, and for its last messages.
const END_WAIT: Duration = Duration::from_secs(2);
/// Last messages that are kept, in bytes.
const WORDS_BYTES_MAX: usize = 2048;
/// Message of Rust's runtime about a failed allocation, before it ends the process.
const NO_MEMORY: &str = "memory allocation of";

/// A request to the process.
pub(super) struct Ask {
    pub(super) order: Order,
    pub(super) reply: SyncSender<Result<Answered, ImportError>>,
}

/// The answer of the process.
pub(super) struct Answered {
    pub(super) answer: Answer,
    /// The frame, if a frame was requested.
    pub(super) scene: Option<FlatScene>,
    /// Memory that the process has for itself, in bytes; 0 if the system does not report it.
    pub(super) own_bytes: u64,
}

/// Longest time until a process is ended whose work is not wanted any more.
const STOP_LOOK: Duration = Duration::from_millis(100);

/// Starts a process. It ends when the sender is dropped, when it has done something wrong, or when
/// it is asked something and the flag is set.
///
/// # Errors
/// [`ImportError::Start`] where the system has no thread for it; that it has no process is told
/// with the first answer.
pub(super) fn start(
    program: PathBuf,
    begin: Order,
    limits: (ImportLimits, Arc<AtomicBool>),
) -> Result<Sender<Ask>, ImportError> {
    let (asks, asked) = channel();
    // The kernel ends the process with the thread that started it, so this thread lives as long.
    let thread = std::thread::Builder::new().name("scene importer".into());
    thread.spawn(move || serve(&program, &begin, &limits, &asked)).map_err(ImportError::Start)?;
    Ok(asks)
}

fn serve(
    program: &PathBuf,
    begin: &Order,
    limits: &(ImportLimits, Arc<AtomicBool>),
    asked: &Receiver<Ask>,
) {
    let mut importer = Process::begin(program, begin, limits);
    while let Ok(Ask { order, reply }) = asked.recv() {
        let answered = match &mut importer {
            Ok(importer) => importer.ask(&order),
            Err(_) => match std::mem::replace(&mut importer, Err(ImportError::Gone)) {
                Err(error) => Err(error),
                Ok(_) => Err(ImportError::Gone),
            },
        };
        // A scene that could not be loaded cannot be flattened.
        let is_load = matches!(order, Order::Load { .. });
        let ends = answered.as_ref().is_err_and(|error| is_load || error.is_end());
        if ends {
            // End the process before the answer, so that its memory is freed and counted when the
            // caller gets the answer.
            importer = Err(ImportError::Gone);
        }
        // The caller may be gone.
        let _ = reply.send(answered);
        if ends {
            return;
        }
    }
}

pub(super) struct Process {
    child: Child,
    socket: UnixStream,
    words: Arc<Mutex<Vec<u8>>>,
    limits: ImportLimits,
    stopped: Arc<AtomicBool>,
    last: Option<FlatScene>,
    geometry_moves: bool,
    small_pages: SmallPages,
}

impl Drop for Process {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Process {
    /// A process that has loaded a scene.
    #[cfg(test)]
    pub(super) fn loaded(child: Child, socket: UnixStream, limits: ImportLimits) -> Self {
        Self::new((child, socket), (limits, Arc::default()))
    }

    fn new(
        (child, socket): (Child, UnixStream),
        (limits, stopped): (ImportLimits, Arc<AtomicBool>),
    ) -> Self {
        let (words, small_pages) = (Arc::default(), SmallPages::default());
        let (last, geometry_moves) = (None, false);
        Self { child, socket, words, limits, stopped, last, geometry_moves, small_pages }
    }

    fn begin(
        program: &PathBuf,
        begin: &Order,
        (limits, stopped): &(ImportLimits, Arc<AtomicBool>),
    ) -> Result<Self, ImportError> {
        let (socket, theirs) = UnixStream::pair().map_err(ImportError::Start)?;
        // The process gets nothing of this environment. The allocator's reserve is then bounded,
        // and a panic reads no files.
        let mut command = Command::new(program);
        command.arg(super::COMMAND).env_clear().env("MALLOC_ARENA_MAX", "4").process_group(0);
        command
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn().map_err(ImportError::Start)?;
        // The command holds the other end of the socket too. Without this, the end of a process
        // before it is ready would not be noticed.
        drop(command);
        let errors = child.stderr.take();
        let mut this = Self::new((child, socket), (limits.clone(), stopped.clone()));
        if let Some(errors) = errors {
            let words = Arc::clone(&this.words);
            let listening = std::thread::Builder::new().name("importer errors".into());
            listening.spawn(move || listen(errors, &words)).map_err(ImportError::Start)?;
        }
        this.socket.set_write_timeout(Some(limits.time)).map_err(ImportError::Start)?;
        match this
            .say(begin)
            .and_then(|()| this.hear("starting", Instant::now() + START_TIME))
            .map_err(late)?
        {
            Answer::Ready(report) if report.holds() || !report.wanted => Ok(this),
            Answer::Ready(report) if matches!(begin, Order::Begin { is_required: true, .. }) => {
                Err(ImportError::Unconfined(report.to_string()))
            }
            Answer::Ready(report) => {
                tracing::warn!(%report, "scene importer not confined");
                Ok(this)
            }
            Answer::NotReady { problem } => {
                Err(ImportError::Start(std::io::Error::other(super::error::cut(&problem))))
            }
            _ => Err(ImportError::Nonsense("it did not say that it is ready".into())),
        }
    }

    pub(super) fn ask(&mut self, order: &Order) -> Result<Answered, ImportError> {
        let what =
            if matches!(order, Order::Load { .. }) { "loading" } else { "flattening a frame" };
        let until = Instant::now() + self.limits.time;
        self.say(order)?;
        let answer = self.hear(what, until)?;
        let mut scene = None;
        match &answer {
            Answer::Loaded { report } => self.geometry_moves = report.geometry_animated,
            Answer::Frame(head) => {
                scene = Some(self.frame(head, what, until)?);
                if let Order::Flatten { options } = order {
                    self.small_pages.note_frame(options.samples);
                }
            }
            other => return Err(refusal(other)),
        }
        Ok(Answered { answer, scene, own_bytes: own_bytes(self.child.id()) })
    }

    fn say(&mut self, order: &Order) -> Result<(), ImportError> {
        match send(&mut self.socket, order, &[]) {
            Ok(()) => Ok(()),
            // The process has ended. Its exit status says how.
            Err(FrameError::Pipe(_)) => Err(self.end()),
            Err(error) => Err(ImportError::Nonsense(chain(&error))),
        }
    }

    fn hear(&mut self, what: &'static str, until: Instant) -> Result<Answer, ImportError> {
        match receive(&mut self.timed(until)) {
            Ok(Some((answer, _))) => Ok(answer),
            Ok(None) => Err(self.end()),
            Err(FrameError::Pipe(error)) => Err(self.failed(&error, what)),
            Err(error) => Err(ImportError::Nonsense(chain(&error))),
        }
    }

    /// Has the process fill the files of a frame, and makes the scene of them.
    fn frame(
        &mut self,
        head: &FrameHead,
        what: &'static str,
        until: Instant,
    ) -> Result<FlatScene, ImportError> {
        let nonsense = |error: &dyn std::error::Error| ImportError::Nonsense(error.to_string());
        let layout = Layout::of(head, self.geometry_moves, self.limits.memory_bytes)
            .map_err(|error| nonsense(&error))?;
        let made: std::io::Result<Vec<MemoryFile>> =
            layout.lengths().iter().map(|bytes| MemoryFile::new(*bytes)).collect();
        let files = made.map_err(ImportError::File)?;
        match memory_file::give(&self.socket, &files) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Err(self.end()),
            Err(error) => return Err(self.failed(&error, what)),
        }
        match self.hear(what, until)? {
            Answer::Filled => {}
            other => return Err(refusal(&other)),
        }
        let mut regions = Vec::new();
        for file in files {
            // From here on nobody can change what is checked.
            file.seal().map_err(|error| {
                ImportError::Nonsense(format!("its frame can still be changed: {error}"))
            })?;
            regions.push(file.map().map_err(ImportError::File)?);
        }
        // Arrays of one frame are gone before it would pay.
        if let Some(film) = layout.of_film(&regions) {
            self.small_pages.add(film);
        }
        let scene = head
            .receive(self.last.as_ref(), &layout, &regions)
            .map_err(|error| nonsense(&error))?;
        self.last = Some(kept(&scene, self.geometry_moves));
        Ok(scene)
    }

    fn timed(&self, until: Instant) -> Timed<'_> {
        Timed { socket: &self.socket, until, stopped: &self.stopped }
    }

    fn failed(&mut self, error: &std::io::Error, what: &'static str) -> ImportError {
        match error.kind() {
            ErrorKind::TimedOut | ErrorKind::WouldBlock => {
                ImportError::Time { what, limit: self.limits.time }
            }
            ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => {
                self.end()
            }
            // It was stopped.
            ErrorKind::ConnectionAborted => ImportError::Gone,
            // This process has no memory for the frame's arrays.
            ErrorKind::OutOfMemory => ImportError::Memory { limit_bytes: self.limits.memory_bytes },
            _ => ImportError::Nonsense(error.to_string()),
        }
    }

    /// Returns why a process has closed its pipe.
    fn end(&mut self) -> ImportError {
        let until = Instant::now() + END_WAIT;
        let status = loop {
            match self.child.try_wait() {
                Ok(Some(status)) => break Some(status),
                Ok(None) if Instant::now() < until => std::thread::sleep(Duration::from_millis(5)),
                _ => break None,
            }
        };
        // The listener holds the other handle until standard error is closed, which happens now or
        // never.
        while Arc::strong_count(&self.words) > 1 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        let words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        let words = String::from_utf8_lossy(&words);
        if words.contains(NO_MEMORY) {
            return ImportError::Memory { limit_bytes: self.limits.memory_bytes };
        }
        match status {
            Some(status) if status.signal() == Some(Signal::KILL.as_raw()) => ImportError::Killed,
            Some(status) => ImportError::Crashed { how: how(&status.to_string(), &words) },
            None => ImportError::Crashed { how: how("it does not end", &words) },
        }
    }
}

/// Returns what an answer means that is no scene and no frame.
fn refusal(answer: &Answer) -> ImportError {
    match answer {
        Answer::Refused { problem, memory: true, .. } => {
            ImportError::MemoryAt { problem: problem.clone() }
        }
        Answer::Refused { problem, absent, .. } => {
            ImportError::Scene { problem: problem.clone(), absent: *absent }
        }
        Answer::Ready(_) | Answer::NotReady { .. } => {
            ImportError::Nonsense("it said twice that it is ready".into())
        }
        Answer::Filled | Answer::Loaded { .. } | Answer::Frame(_) => {
            ImportError::Nonsense("it answered another request".into())
        }
    }
}

/// Converts the error of a process that does not start in time, which is not the scene's fault.
fn late(error: ImportError) -> ImportError {
    match error {
        ImportError::Time { .. } => {
            let problem = format!("it is not ready after {} s", START_TIME.as_secs());
            ImportError::Start(std::io::Error::new(ErrorKind::TimedOut, problem))
        }
        error => error,
    }
}

fn how(status: &str, words: &str) -> String {
    match words.lines().rev().find(|line| !line.trim().is_empty()) {
        Some(line) => super::error::cut(&format!("{status}: {}", line.trim())),
        None => status.to_owned(),
    }
}

/// The process's pipe with a deadline.
struct Timed<'a> {
    socket: &'a UnixStream,
    until: Instant,
    stopped: &'a AtomicBool,
}

impl Read for Timed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        loop {
            let left = self.until.saturating_duration_since(Instant::now());
            if self.stopped.load(Ordering::Relaxed) {
                return Err(ErrorKind::ConnectionAborted.into());
            }
            if left.is_zero() {
                return Err(ErrorKind::TimedOut.into());
            }
            self.socket.set_read_timeout(Some(left.min(STOP_LOOK)))?;
            let mut socket = self.socket;
            match socket.read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                read => return read,
            }
        }
    }
}

/// Keeps the end of what the process writes to standard error.
fn listen(mut errors: ChildStderr, words: &Mutex<Vec<u8>>) {
    let mut buffer = [0u8; 1024];
    while let Ok(length @ 1..) = errors.read(&mut buffer) {
        let mut words = words.lock().unwrap_or_else(PoisonError::into_inner);
        words.extend_from_slice(&buffer[..length]);
        let excess = words.len().saturating_sub(WORDS_BYTES_MAX);
        words.drain(..excess);
    }
}

/// Returns the memory of a process without that of files. A frame's files are counted with the
/// frame, here, and not where the process has them in its memory too.
fn own_bytes(process: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/statm")).unwrap_or_default();
    let mut pages = text.split(' ').skip(1).map(|pages| pages.parse::<u64>().unwrap_or(0));
    let (resident, of_files) = (pages.next().unwrap_or(0), pages.next().unwrap_or(0));
    let pages = resident.saturating_sub(of_files);
    pages.saturating_mul(rustix::param::page_size() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_importer_that_ends_early_counts_as_crashed() {
        let readable = Vec::new();
        let begin = Order::Begin {
            parent: 0,
            readable,
            confine: false,
            memory_bytes: 0,
            threads: 1,
            record: None,
            is_required: false,
        };
        let limits = ImportLimits { memory_bytes: 1 << 30, time: Duration::from_secs(60) };
        let limits = (limits, Arc::default());
        let ended = Process::begin(&PathBuf::from("/bin/false"), &begin, &limits).err();
        assert!(matches!(ended, Some(ImportError::Crashed { .. })), "{ended:?}");
    }

    #[test]
    fn an_importer_that_never_starts_is_not_the_scenes_fault() {
        let text = chain(&late(ImportError::Time { what: "starting", limit: START_TIME }));
        assert_eq!(text, "cannot start the scene importer: it is not ready after 30 s");
    }

    #[test]
    fn an_import_that_is_not_wanted_any_more_ends() {
        let (socket, _silent) = UnixStream::pair().unwrap();
        let stopped = AtomicBool::new(false);
        let hour = Duration::from_secs(3600);
        let mut from = Timed { socket: &socket, until: Instant::now() + hour, stopped: &stopped };
        std::thread::scope(|threads| {
            let reading = threads.spawn(move || from.read(&mut [0]).unwrap_err().kind());
            stopped.store(true, Ordering::Relaxed);
            assert_eq!(reading.join().unwrap(), ErrorKind::ConnectionAborted);
        });
        let mut late =
            Timed { socket: &socket, until: Instant::now(), stopped: &Default::default() };
        assert_eq!(late.read(&mut [0]).unwrap_err().kind(), ErrorKind::TimedOut);
    }
}
