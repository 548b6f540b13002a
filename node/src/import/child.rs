//! The importer's side: confines itself, loads one scene, and flattens frames until the parent is
//! gone. Starts nothing and writes no file.

use super::arrays::{FrameHead, Layout, hand_over, kept};
use super::memory_file;
use super::message::{Answer, Order};
use crate::device::worker::frame::{FrameError, receive, send};
use crate::device::worker::{die_with, sandbox, socket_of_stdin};
use std::io::{BufWriter, Write};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use tessera_layout::FlatScene;
use tessera_scenes::{FlattenOptions, LoadedScene, SceneError};
use tessera_transport::error::chain;

/// Argument with which a program becomes an importer.
pub const COMMAND: &str = "scene-importer";

/// Memory in bytes that a thread needs besides the scene's: its stack.
const THREAD_BYTES: u64 = 4 << 20;

/// Runs an importer to its end. Its standard input must be the socket from its parent.
pub fn main() -> ExitCode {
    let Some(socket) = socket_of_stdin() else {
        // Standard error may be closed.
        let _ =
            writeln!(std::io::stderr(), "{COMMAND} is started by other commands, not by people");
        return ExitCode::from(2);
    };
    match run(socket) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "{}", chain(&error));
            ExitCode::FAILURE
        }
    }
}

fn run(mut orders: UnixStream) -> Result<(), FrameError> {
    let mut to = BufWriter::new(orders.try_clone().map_err(FrameError::Pipe)?);
    let Some((Order::Begin { parent, readable, confine, memory_bytes, threads, record, .. }, _)) =
        receive(&mut orders)?
    else {
        return Ok(());
    };
    die_with(parent);
    // Stacks do not count as the scene's memory.
    let report = sandbox::enter_importer(
        &readable,
        confine,
        memory_bytes.saturating_add(threads.saturating_mul(THREAD_BYTES)),
        record.as_deref(),
    );
    // Start the threads after this: the confinement of files holds for this thread and those that
    // it starts.
    if let Err(error) = start_threads(threads) {
        let problem = format!("it cannot start its {threads} threads: {error}; sandbox: {report}");
        return send(&mut to, &Answer::NotReady { problem }, &[]);
    }
    send(&mut to, &Answer::Ready(report), &[])?;
    let Some((Order::Load { folder, main, options }, _)) = receive(&mut orders)? else {
        return Ok(());
    };
    let mut scene = match guarded(|| tessera_scenes::load(&folder, &main, &options)) {
        Ok(scene) => scene,
        Err(refused) => return send(&mut to, &refused, &[]),
    };
    send(&mut to, &Answer::Loaded { report: Box::new(scene.report().clone()) }, &[])?;
    let mut last = None;
    while let Some((Order::Flatten { options }, _)) = receive(&mut orders)? {
        flatten(&mut scene, &options, &mut last, (&orders, &mut to))?;
    }
    Ok(())
}

/// Starts the threads that share the work. Without them every use of them would end the process.
fn start_threads(threads: u64) -> Result<(), rayon::ThreadPoolBuildError> {
    rayon::ThreadPoolBuilder::new().num_threads(threads as usize).build_global()
}

fn flatten(
    scene: &mut LoadedScene,
    options: &FlattenOptions,
    last: &mut Option<FlatScene>,
    (orders, to): (&UnixStream, &mut impl Write),
) -> Result<(), FrameError> {
    let mut flat = match guarded(|| scene.flatten(options)) {
        Ok(flat) => flat,
        Err(refused) => return send(to, &refused, &[]),
    };
    let geometry_moves = scene.report().geometry_animated;
    let head = FrameHead::of(&flat, last.as_ref());
    send(to, &Answer::Frame(Box::new(head.clone())), &[])?;
    // The node says what is too long.
    let layout = Layout::of(&head, geometry_moves, u64::MAX)
        .map_err(|error| FrameError::Pipe(std::io::Error::other(error)))?;
    let files = memory_file::take(orders, layout.lengths()).map_err(FrameError::Pipe)?;
    match hand_over(&layout, &mut flat, scene.shared_arrays(), &files) {
        Ok(()) => {
            *last = Some(kept(&flat, geometry_moves));
            send(to, &Answer::Filled, &[])
        }
        Err(error) => {
            let problem = format!("the scene's arrays have no room in memory: {error}");
            send(to, &Answer::Refused { problem, absent: false, memory: true }, &[])
        }
    }
}

/// Runs the importer. A panic refuses the scene.
fn guarded<T>(import: impl FnOnce() -> Result<T, SceneError>) -> Result<T, Answer> {
    match catch_unwind(AssertUnwindSafe(import)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(Answer::Refused {
            problem: super::error::cut(&chain(&error)),
            absent: is_absent(&error),
            memory: matches!(error, SceneError::Memory { .. }),
        }),
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
            let problem = super::error::cut(&format!("the scene importer failed on it: {text}"));
            Err(Answer::Refused { problem, absent: false, memory: false })
        }
    }
}

fn is_absent(error: &SceneError) -> bool {
    matches!(error, SceneError::Read { source,
        .. } if source.kind() == std::io::ErrorKind::NotFound)
}
