//! Lists the CUDA devices through a worker, so that a driver that hangs or crashes does not affect
//! this process.

use super::child::{Child, Heard};
use super::command::WorkerCommand;
use crate::config::Config;
use crate::device::worker::message::{Order, Report};
use crate::device::worker::{FoundCompiler, FoundDevice, Refusal, SandboxReport};
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Longest wait for an answer. Drivers take seconds to initialise many devices, and a loaded
/// machine is slow.
const WAIT: Duration = Duration::from_secs(60);

/// Why no device could be listed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ProbeError {
    /// The driver or device cannot be used.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The worker process did not get far enough to ask the driver.
    #[error("the worker process failed: {0}")]
    Worker(String),
}

/// Result of a probe.
#[derive(Clone, Debug)]
pub struct Probed {
    /// Devices and MIG slices, usable or not, in the order of their slots.
    pub devices: Result<Vec<FoundDevice>, Refusal>,
    /// How far a worker is confined on this machine.
    pub sandbox: SandboxReport,
}

/// Asks a worker which devices there are, and how far it is confined.
///
/// # Errors
/// No worker could be asked.
pub fn probe(config: &Config) -> Result<Probed, ProbeError> {
    let command =
        WorkerCommand::of(config).map_err(|error| ProbeError::Worker(error.to_string()))?;
    probe_with(&command)
}

pub(crate) fn probe_with(command: &WorkerCommand) -> Result<Probed, ProbeError> {
    let mut asked = Asked::start(command)?;
    let Report::Ready(sandbox) = asked.next()? else {
        return Err(ProbeError::Worker("it does not introduce itself".into()));
    };
    asked.child.order(Order::List);
    match asked.next()? {
        Report::Devices(devices) => Ok(Probed { devices: Ok(devices), sandbox }),
        Report::Refused(refusal) => Ok(Probed { devices: Err(refusal), sandbox }),
        _ => Err(ProbeError::Worker("it answers something else".into())),
    }
}

/// Asks a worker which NVRTC workers can load: it runs initialisers that are not ours, which may
/// bring a process down. The inner error says where it was looked for.
///
/// # Errors
/// The worker did not get that far, or could not be asked.
pub fn find_compiler(config: &Config) -> Result<Result<FoundCompiler, String>, ProbeError> {
    let command =
        WorkerCommand::of(config).map_err(|error| ProbeError::Worker(error.to_string()))?;
    find_compiler_with(&command)
}

fn find_compiler_with(
    command: &WorkerCommand,
) -> Result<Result<FoundCompiler, String>, ProbeError> {
    let mut asked = Asked::start(command)?;
    asked.next()?;
    asked.child.order(Order::FindCompiler);
    match asked.next()? {
        Report::Compiler(found) => Ok(found),
        _ => Err(ProbeError::Worker("it answers something else".into())),
    }
}

/// Returns the version of the NVRTC that workers can load; None if they find none, or if it crashes
/// the process.
pub(crate) fn compiler_of(command: &WorkerCommand) -> Option<(u32, u32)> {
    match find_compiler_with(command) {
        Ok(found) => found.ok().map(|found| found.version),
        Err(error) => {
            tracing::warn!(%error, "looking for NVRTC failed; kernels that come as CUDA C++ are \
                for other nodes");
            None
        }
    }
}

/// Errors of a confined worker, for each forbidden action; None if the action succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// Connecting to a port of this machine.
    pub connect: Option<String>,
    /// Opening a socket.
    pub bind: Option<String>,
    /// Reading the file.
    pub read: Option<String>,
    /// Writing a file beside it.
    pub write: Option<String>,
    /// Running a program.
    pub run: Option<String>,
}

/// Lets a worker try what its sandbox forbids: to reach a port of this machine, and a file.
///
/// # Errors
/// No worker could be asked.
pub fn try_forbidden(
    config: &Config,
    port: u16,
    file: &Path,
) -> Result<(SandboxReport, Tried), ProbeError> {
    let command =
        WorkerCommand::of(config).map_err(|error| ProbeError::Worker(error.to_string()))?;
    let mut asked = Asked::start(&command)?;
    let Report::Ready(sandbox) = asked.next()? else {
        return Err(ProbeError::Worker("it does not introduce itself".into()));
    };
    asked.child.order(Order::TryForbidden { port, file: file.to_owned() });
    match asked.next()? {
        Report::Tried { connect, bind, read, write, run } => {
            Ok((sandbox, Tried { connect, bind, read, write, run }))
        }
        _ => Err(ProbeError::Worker("it answers something else".into())),
    }
}

/// A worker that answers questions.
struct Asked {
    child: Child,
    heard: Receiver<Heard>,
}

impl Asked {
    fn start(command: &WorkerCommand) -> Result<Self, ProbeError> {
        let (sender, heard) = channel();
        let child = Child::start(command, None, "probe", move |heard| {
            // The receiver is gone if the answer came too late.
            let _ = sender.send(heard);
        });
        let program = command.program.display();
        let child = child
            .map_err(|error| ProbeError::Worker(format!("cannot start `{program}`: {error}")))?;
        Ok(Self { child, heard })
    }

    fn next(&mut self) -> Result<Report, ProbeError> {
        let until = Instant::now() + WAIT;
        match self.heard.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(Heard::Report(report, _)) => Ok(report),
            Ok(Heard::Gone(reason)) => {
                Err(ProbeError::Worker(format!("{reason} ({})", self.child.how_it_ended())))
            }
            Err(_) => Err(ProbeError::Worker(format!("no answer within {} s", WAIT.as_secs()))),
        }
    }
}
