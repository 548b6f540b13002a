//! The worker: a child process of a node that drives a device, without network and keys. If the
//! driver, a kernel or the device crashes it, the node and its other devices continue.
//!
//! The node starts it with one end of a socket pair as its standard input. It then says which
//! parent the worker has, and what to do: list the devices, watch them (`monitor.rs`), or serve one
//! (`cuda/`).

pub(crate) mod cuda;
pub(crate) mod frame;
pub(crate) mod message;
mod monitor;
pub(crate) mod sandbox;
mod self_check;

pub use message::{CallError, FoundCompiler, FoundDevice, Refusal};
pub use sandbox::{FileConfinement, Sandbox, SandboxError, SandboxReport, Unconfined};

pub(crate) use sandbox::Allowed;

use frame::{receive, send};
use message::{Order, Report};
use rustix::process::Signal;
use std::io::{BufReader, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use tessera_transport::error::chain;

/// Argument with which the program of a node becomes a worker.
pub const COMMAND: &str = "device-worker";

/// Exit status if the driver has failed.
const EXIT_BROKEN: i32 = 3;
/// Exit status if the node is gone, or sent an invalid message.
const EXIT_ALONE: i32 = 4;

/// Channel to the node, shared by the worker's threads.
#[derive(Clone)]
pub(crate) struct Outlet(Arc<Mutex<UnixStream>>);

impl Outlet {
    /// Sends a report to the node. If the node is gone, this process ends.
    pub(crate) fn send(&self, report: &Report, payload: &[u8]) {
        let mut stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = send(&mut *stream, report, payload) {
            // Standard error may be gone as well.
            let _ = writeln!(std::io::stderr(), "cannot report: {}", chain(&error));
            std::process::exit(EXIT_ALONE);
        }
    }
}

type Orders = BufReader<UnixStream>;

/// Runs a worker to its end. Its standard input must be the socket from a node.
pub fn main() -> ExitCode {
    let Some(socket) = socket_of_stdin() else {
        // Standard error may be closed.
        let _ = writeln!(std::io::stderr(), "device-worker is started by a node, not by people");
        return ExitCode::from(2);
    };
    match socket.try_clone() {
        Ok(outlet) => run(BufReader::new(socket), Outlet(Arc::new(Mutex::new(outlet)))),
        Err(_) => ExitCode::FAILURE,
    }
}

/// Takes the socket that is the standard input; None if it is something else.
pub(crate) fn socket_of_stdin() -> Option<UnixStream> {
    let socket = std::io::stdin().as_fd().try_clone_to_owned().map(UnixStream::from).ok()?;
    socket.peer_addr().is_ok().then_some(socket)
}

fn run(mut orders: Orders, outlet: Outlet) -> ExitCode {
    let Some(Order::Begin { parent, allowed }) = next(&mut orders).map(|(order, _)| order) else {
        return ExitCode::FAILURE;
    };
    die_with(parent);
    let report = allowed.as_ref().map_or_else(sandbox::not_wanted, sandbox::enter);
    if allowed.is_some_and(|allowed| allowed.is_required) && !report.holds() {
        let _ = writeln!(std::io::stderr(), "cannot confine itself, as is required: {report}");
        return ExitCode::FAILURE;
    }
    outlet.send(&Report::Ready(report), &[]);
    while let Some((order, _)) = next(&mut orders) {
        match order {
            Order::List => {
                let listed = cuda::list().map_or_else(Report::Refused, |devices| {
                    Report::Devices(monitor::with_slices(devices))
                });
                outlet.send(&listed, &[]);
            }
            Order::FindCompiler => {
                let found = tessera_nvrtc::Nvrtc::find()
                    .map(|found| FoundCompiler {
                        version: found.version(),
                        path: found.path().to_owned(),
                    })
                    .map_err(|error| chain(&error));
                outlet.send(&Report::Compiler(found), &[]);
            }
            Order::Watch { period } => return monitor::watch(period, orders, &outlet),
            Order::Open { ordinal, uuid, cubins } => {
                return open((ordinal, &uuid, cubins), orders, &outlet);
            }
            Order::Compute { ordinal, uuid } => return compute(ordinal, &uuid, orders, &outlet),
            Order::TryForbidden { port, file } => {
                outlet.send(&self_check::attempt(port, &file), &[])
            }
            // Orders for an open device are invalid here.
            _ => return ExitCode::FAILURE,
        }
    }
    ExitCode::SUCCESS
}

/// Returns the next order; None if the node is gone or sent an invalid message.
fn next(orders: &mut Orders) -> Option<(Order, Vec<u8>)> {
    match receive(orders) {
        Ok(order) => order,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "cannot read orders: {}", chain(&error));
            None
        }
    }
}

/// Makes the kernel end this process when the thread that started it ends. The node keeps that
/// thread as long as it wants the worker. If it ended before this call, the parent's id differs.
pub(crate) fn die_with(parent: u32) {
    // If the kernel refuses, the pipe remains: a worker without a node reads its end.
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    if std::os::unix::process::parent_id() != parent {
        std::process::exit(EXIT_ALONE);
    }
}

fn open(
    (ordinal, uuid, cubins): (u32, &str, Option<PathBuf>),
    mut orders: Orders,
    outlet: &Outlet,
) -> ExitCode {
    let (serving, opened) = match cuda::open((ordinal, uuid), cubins, outlet) {
        Ok(open) => open,
        Err(refusal) => {
            outlet.send(&Report::Refused(refusal), &[]);
            return ExitCode::SUCCESS;
        }
    };
    outlet.send(&Report::Opened(opened), &[]);
    while let Some((order, bytes)) = next(&mut orders) {
        let task = match order {
            Order::Render { unit, scene, params, in_stages } => {
                cuda::Task::Render { unit, scene, params: bytemuck::must_cast(params), in_stages }
            }
            Order::Scene { scene, bytes, view, parts } => {
                cuda::Task::Scene { scene, bytes, view, parts }
            }
            Order::SceneBytes { scene, offset, last } => {
                cuda::Task::SceneBytes { scene, offset, last, bytes }
            }
            Order::NoScene { scene, problem } => cuda::Task::NoScene { scene, problem },
            Order::GiveUp => cuda::Task::GiveUp,
            Order::Cancel { unit } => {
                serving.cancelled.add(unit);
                continue;
            }
            _ => continue,
        };
        if serving.tasks.send(task).is_err() {
            break;
        }
    }
    // Exit directly: the device's threads may be in a call that never ends.
    std::process::exit(0);
}

/// Serves compute jobs on a device until the node is gone or the driver has failed.
fn compute(ordinal: u32, uuid: &str, mut orders: Orders, outlet: &Outlet) -> ExitCode {
    let mut serving = match cuda::compute::open(ordinal, uuid) {
        Ok((serving, opened)) => {
            outlet.send(&Report::Opened(opened), &[]);
            serving
        }
        Err(refusal) => {
            outlet.send(&Report::Refused(refusal), &[]);
            return ExitCode::SUCCESS;
        }
    };
    while let Some((order, bytes)) = next(&mut orders) {
        if let Err(error) = serving.obey(order, bytes, outlet) {
            outlet.send(&Report::Broken(error), &[]);
            std::process::exit(EXIT_BROKEN);
        }
    }
    // Exit directly: the driver may be in a call that never ends.
    std::process::exit(0);
}
