//! What a worker writes to its standard output and error: the text of a user's kernel while one of
//! its chunks runs. Read without waiting, so that it holds up nobody, and bounded.

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use std::io::{ErrorKind, Read};
use std::os::fd::AsFd;
use std::process::{ChildStderr, ChildStdout};
use tessera_protocol::limits::UNIT_TEXT_BYTES_MAX;
use tessera_protocol::logs::LogSource;
use tessera_transport::close::cut;

/// Most lines of a worker's standard error that are logged, and their length. A faulty worker
/// cannot fill the disk.
pub(super) const LINES_MAX: usize = 200;
pub(super) const LINE_BYTES_MAX: u64 = 400;
/// Bytes that one look reads at most, of each pipe. CUDA holds at most 1 MiB of a launch.
const LOOK_BYTES_MAX: usize = 4 << 20;
/// Bytes of a read.
const READ_BYTES: usize = 64 << 10;
/// How a line of a failed assertion ends, and what stands in it.
const ASSERTION: (&str, &str) = (" Assertion `", "` failed.");

/// Both pipes of a worker.
pub(super) struct Output {
    label: String,
    printed: ChildStdout,
    errors: ChildStderr,
    /// Line of the standard error that has not ended.
    line: Vec<u8>,
    lines_logged: usize,
    text: Vec<u8>,
}

impl Output {
    /// Takes the pipes of a worker.
    ///
    /// # Errors
    /// The system refuses reads that do not wait.
    pub(super) fn new(
        label: &str,
        printed: ChildStdout,
        errors: ChildStderr,
    ) -> std::io::Result<Self> {
        for pipe in [printed.as_fd(), errors.as_fd()] {
            fcntl_setfl(pipe, fcntl_getfl(pipe)? | OFlags::NONBLOCK)?;
        }
        let label = label.to_owned();
        Ok(Self { label, printed, errors, line: Vec::new(), lines_logged: 0, text: Vec::new() })
    }

    /// Begins the text of another unit.
    pub(super) fn begin(&mut self) {
        self.look();
        self.text.clear();
    }

    /// Reads what there is. Errors are logged too, since they may be the driver's.
    pub(super) fn look(&mut self) {
        let printed = available(&mut self.printed);
        self.keep(&printed);
        let errors = available(&mut self.errors);
        self.keep(&errors);
        for byte in errors {
            match byte {
                b'\n' => self.log_line(),
                _ if (self.line.len() as u64) < LINE_BYTES_MAX => self.line.push(byte),
                _ => {}
            }
        }
    }

    /// Adds a text that somebody else has of the unit.
    pub(super) fn keep(&mut self, text: &[u8]) {
        // One byte more than may be sent shows that the text is cut.
        let room = (UNIT_TEXT_BYTES_MAX + 1).saturating_sub(self.text.len());
        self.text.extend(&text[..text.len().min(room)]);
    }

    /// Adds what a compiler says of the unit's program, and logs it.
    pub(super) fn keep_log(&mut self, log: &str) {
        let (device, source) = (&self.label, LogSource::Compiler.name());
        for line in log.lines().filter(|line| !line.is_empty()).take(LINES_MAX) {
            tracing::info!(device, source, "{}", cut(line, LINE_BYTES_MAX as usize));
        }
        self.keep(log.as_bytes());
    }

    fn log_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        self.lines_logged += 1;
        let device = &self.label;
        match self.lines_logged {
            count if count <= LINES_MAX => {
                tracing::warn!(device, "{}", String::from_utf8_lossy(&line).trim_end());
            }
            count if count == LINES_MAX + 1 => {
                tracing::warn!(device, "further output of its worker is not logged");
            }
            _ => {}
        }
    }

    /// Returns the first assertion in the text of the unit: its file, line, and condition.
    pub(super) fn assertion(&self) -> Option<String> {
        let text = String::from_utf8_lossy(&self.text);
        assertion_in(&text)
    }

    /// Takes the text of the unit; empty if there is none.
    pub(super) fn take(&mut self) -> String {
        self.look();
        String::from_utf8_lossy(&std::mem::take(&mut self.text)).into_owned()
    }
}

/// Reads from a pipe until it is empty.
fn available(pipe: &mut impl Read) -> Vec<u8> {
    let mut found = Vec::new();
    let mut part = vec![0; READ_BYTES];
    while found.len() < LOOK_BYTES_MAX {
        match pipe.read(&mut part) {
            Ok(0) => break,
            Ok(count) => found.extend(&part[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // Nothing is there now, or never again.
            Err(_) => break,
        }
    }
    found
}

/// Finds a line such as ``a.cu:7: void compute(TesseraChunk): block: [0,0,0], thread: [1,0,0]
/// Assertion `x < 1` failed.``
fn assertion_in(text: &str) -> Option<String> {
    let (inside, end) = ASSERTION;
    let mut lines = text.lines().map(str::trim);
    lines.find(|line| line.contains(inside) && line.ends_with(end)).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    fn of(script: &str) -> (Output, std::process::Child) {
        let mut child = Command::new("sh")
            .args(["-c", script])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a shell");
        let (printed, errors) = (child.stdout.take(), child.stderr.take());
        let output =
            Output::new("test", printed.expect("a pipe"), errors.expect("a pipe")).expect("pipes");
        (output, child)
    }

    #[test]
    fn a_text_is_both_outputs_of_the_unit() {
        let (mut output, mut child) = of("echo one; echo two >&2");
        child.wait().expect("an end");
        assert_eq!(output.take(), "one\ntwo\n");
        assert_eq!(output.take(), "");
    }

    #[test]
    fn an_endless_text_is_cut_and_holds_up_nobody() {
        let (mut output, mut child) = of("while :; do echo endless; done");
        let begun = std::time::Instant::now();
        while output.text.len() <= UNIT_TEXT_BYTES_MAX && begun.elapsed().as_secs() < 60 {
            output.look();
        }
        child.kill().expect("it runs");
        child.wait().expect("an end");
        assert_eq!(output.take().len(), UNIT_TEXT_BYTES_MAX + 1);
    }

    #[test]
    fn assertions_are_found_in_a_text() {
        let line = "a.cu:7: void compute(TesseraChunk): block: [0,0,0], thread: [1,0,0] \
                    Assertion `x < 1` failed.";
        assert_eq!(assertion_in(&format!("i 1\n{line}\ni 2\n")), Some(line.to_owned()));
        assert_eq!(assertion_in("Assertion failed"), None);
    }
}
