//! One worker process: starts it, exchanges messages with it, and ends it. Knows no unit and
//! decides nothing.

use super::command::WorkerCommand;
use super::output::{LINE_BYTES_MAX, LINES_MAX, Output};
use crate::compute::PreparedCompute;
use crate::device::PreparedFrame;
use crate::device::worker::cuda::PIECE_BYTES;
use crate::device::worker::frame::{FrameError, receive, send};
use crate::device::worker::message::{Order, Report, ScenePart};
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};
use tessera_kernels::cuda::ImagePart;
use tessera_transport::error::chain;

/// Longest wait for the end of a process that has closed its pipe.
const END_WAIT: Duration = Duration::from_secs(2);

/// Message from a worker.
#[derive(Debug)]
pub(super) enum Heard {
    /// A report, with its payload.
    Report(Report, Vec<u8>),
    /// The worker sends nothing more: it has ended, or sent an invalid message.
    Gone(String),
}

/// Message to a worker.
enum Outgoing {
    Order(Order),
    Payload(Order, Vec<u8>),
    Inputs(Arc<PreparedCompute>),
    Scene(Arc<PreparedFrame>),
    Parts(Arc<PreparedFrame>, Vec<u32>),
}

/// A running worker. It is ended at once when this value is dropped.
pub(super) struct Child {
    process: Option<std::process::Child>,
    outgoing: Sender<Outgoing>,
}

/// What becomes of a worker's standard output and error.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outputs {
    /// The first is dropped, and the second is logged.
    Logged,
    /// They are for the caller.
    Given,
}

impl Child {
    /// Starts a worker that sees the devices in `visible`, or all. It ends with the calling thread.
    /// `heard` is called on a separate thread.
    pub(super) fn start(
        command: &WorkerCommand,
        visible: Option<&str>,
        label: &str,
        heard: impl FnMut(Heard) + Send + 'static,
    ) -> std::io::Result<Self> {
        Self::spawn(command, (visible, Outputs::Logged), label, heard)
    }

    /// Starts such a worker, and gives its standard output and error.
    pub(super) fn start_with_output(
        command: &WorkerCommand,
        visible: Option<&str>,
        label: &str,
        heard: impl FnMut(Heard) + Send + 'static,
    ) -> std::io::Result<(Self, Output)> {
        let mut this = Self::spawn(command, (visible, Outputs::Given), label, heard)?;
        let pipes = this.process.as_mut().map(|child| (child.stdout.take(), child.stderr.take()));
        let Some((Some(printed), Some(errors))) = pipes else {
            return Err(std::io::Error::other("a worker without pipes"));
        };
        let output = Output::new(label, printed, errors)?;
        Ok((this, output))
    }

    fn spawn(
        command: &WorkerCommand,
        (visible, outputs): (Option<&str>, Outputs),
        label: &str,
        heard: impl FnMut(Heard) + Send + 'static,
    ) -> std::io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        let mut process = Command::new(&command.program);
        process.args(&command.arguments).env_clear().envs(command.environment.iter().cloned());
        if let Some(visible) = visible {
            process.env("CUDA_VISIBLE_DEVICES", visible);
        }
        // The worker has its own process group, so that a terminal's signals reach only the node.
        let printed = if outputs == Outputs::Given { Stdio::piped() } else { Stdio::null() };
        process.stdin(Stdio::from(OwnedFd::from(theirs))).stdout(printed).stderr(Stdio::piped());
        let mut process = process.process_group(0).spawn()?;
        let errors = (outputs == Outputs::Logged).then(|| process.stderr.take()).flatten();
        let (outgoing, orders) = channel();
        let this = Self { process: Some(process), outgoing };
        let reading = ours.try_clone()?;
        let thread = |name: &str| std::thread::Builder::new().name(format!("{label} {name}"));
        thread("hears").spawn(move || hear(reading, heard))?;
        thread("tells").spawn(move || tell(ours, &orders))?;
        if let Some(errors) = errors {
            let label = label.to_owned();
            thread("errors").spawn(move || write_down(errors, &label))?;
        }
        this.order(Order::Begin { parent: std::process::id(), allowed: command.allowed.clone() });
        Ok(this)
    }

    /// Sends an order, and returns at once. [`Heard::Gone`] reports a worker that has ended.
    pub(super) fn order(&self, order: Order) {
        let _ = self.outgoing.send(Outgoing::Order(order));
    }

    /// Sends an order with a payload, and returns at once.
    pub(super) fn order_with(&self, order: Order, payload: Vec<u8>) {
        let _ = self.outgoing.send(Outgoing::Payload(order, payload));
    }

    /// Sends all inputs of a compute job, in pieces; returns at once.
    pub(super) fn send_inputs(&self, job: Arc<PreparedCompute>) {
        let _ = self.outgoing.send(Outgoing::Inputs(job));
    }

    /// Announces a scene; returns at once.
    pub(super) fn send_scene(&self, frame: Arc<PreparedFrame>) {
        let _ = self.outgoing.send(Outgoing::Scene(frame));
    }

    /// Sends the parts of a scene that the device lacks, in pieces; returns at once.
    pub(super) fn send_parts(&self, frame: Arc<PreparedFrame>, parts: Vec<u32>) {
        let _ = self.outgoing.send(Outgoing::Parts(frame, parts));
    }

    /// Ends the process and waits a short time for its end, because the driver returns its memory
    /// only then.
    pub(super) fn end(mut self) {
        if let Some(process) = &mut self.process {
            // The process may have ended already.
            let _ = process.kill();
            self.how_it_ended();
        }
    }

    /// Waits a short time for a process that has closed its pipe, and describes its end.
    pub(super) fn how_it_ended(&mut self) -> String {
        let until = Instant::now() + END_WAIT;
        let Some(process) = &mut self.process else { return "it was ended".into() };
        loop {
            match process.try_wait() {
                Ok(Some(status)) => return status.to_string(),
                Ok(None) if Instant::now() < until => std::thread::sleep(Duration::from_millis(10)),
                _ => return "it does not end".into(),
            }
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let Some(mut process) = self.process.take() else { return };
        // The process may have ended already.
        let _ = process.kill();
        // A process that hangs in a call of the driver does not end even now. Only this thread
        // waits for it.
        let waiting =
            std::thread::Builder::new().name("worker ends".into()).spawn(move || process.wait());
        if let Err(error) = waiting {
            tracing::debug!(%error, "an ended worker cannot be waited for");
        }
    }
}

fn hear(stream: UnixStream, mut heard: impl FnMut(Heard)) {
    let mut stream = BufReader::new(stream);
    loop {
        match receive(&mut stream) {
            Ok(Some((report, payload))) => heard(Heard::Report(report, payload)),
            Ok(None) => return heard(Heard::Gone("the worker process ended".into())),
            Err(error) => return heard(Heard::Gone(chain(&error))),
        }
    }
}

/// Writes messages until the worker does not read any more. The other thread notices that.
fn tell(stream: UnixStream, orders: &Receiver<Outgoing>) {
    let mut stream = BufWriter::new(stream);
    while let Ok(outgoing) = orders.recv() {
        let told = match outgoing {
            Outgoing::Order(order) => send(&mut stream, &order, &[]),
            Outgoing::Payload(order, payload) => send(&mut stream, &order, &payload),
            Outgoing::Inputs(job) => tell_inputs(&mut stream, &job),
            Outgoing::Scene(frame) => tell_scene(&mut stream, &frame),
            Outgoing::Parts(frame, parts) => tell_parts(&mut stream, &frame, &parts),
        };
        if told.is_err() {
            return;
        }
    }
}

fn tell_scene(stream: &mut impl Write, frame: &PreparedFrame) -> Result<(), FrameError> {
    let (scene, image) = (frame.id, frame.image());
    let view = image.scene().to_bytes();
    let part = |part: ImagePart<'_>| ScenePart {
        offset: part.offset,
        bytes: part.bytes.len() as u64,
        name: part.name,
    };
    let parts = image.parts().map(part).collect();
    send(stream, &Order::Scene { scene, bytes: image.bytes(), view, parts }, &[])
}

fn tell_parts(
    stream: &mut impl Write,
    frame: &PreparedFrame,
    parts: &[u32],
) -> Result<(), FrameError> {
    let scene = frame.id;
    for (_, part) in (0..).zip(frame.image().parts()).filter(|(at, _)| parts.contains(at)) {
        frame.sent().add(part.bytes.len() as u64);
        for (index, piece) in part.bytes.chunks(PIECE_BYTES).enumerate() {
            let offset = part.offset + (index * PIECE_BYTES) as u64;
            send(stream, &Order::SceneBytes { scene, offset, last: false }, piece)?;
        }
    }
    send(stream, &Order::SceneBytes { scene, offset: 0, last: true }, &[])
}

fn tell_inputs(stream: &mut impl Write, job: &PreparedCompute) -> Result<(), FrameError> {
    for array in &job.arrays {
        let element = array.element.number();
        let (name, shape, bytes) =
            (array.name.clone(), array.shape.clone(), array.bytes().len() as u64);
        send(stream, &Order::Array { name, element, shape, bytes }, &[])?;
        for (index, piece) in array.bytes().chunks(PIECE_BYTES).enumerate() {
            send(stream, &Order::ArrayBytes { offset: (index * PIECE_BYTES) as u64 }, piece)?;
        }
    }
    Ok(())
}

/// Logs what a worker, or the driver in it, writes to standard error.
fn write_down(errors: impl Read, label: &str) {
    let mut errors = BufReader::new(errors);
    for _ in 0..LINES_MAX {
        let mut line = Vec::new();
        match errors.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {
                tracing::warn!(device = label, "{}", String::from_utf8_lossy(&line).trim_end())
            }
        }
    }
    tracing::warn!(device = label, "further output of its worker is not logged");
    // Continue to read, so that the worker does not block.
    let _ = std::io::copy(&mut errors, &mut std::io::sink());
}
