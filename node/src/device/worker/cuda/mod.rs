//! A CUDA device in its worker: listed, opened, given units. There is one process, one device and
//! one context. One thread gives commands to the device, and another waits for it.

pub(super) mod compute;
mod cubins;
mod driver;
mod lane;
mod module;
mod renderer;
mod restored;
mod scenes;
mod task;
mod waiter;

pub(crate) use scenes::PIECE_BYTES;
pub(crate) use task::{Cancelled, Task};

use super::Outlet;
use super::message::{CallError, FoundDevice, Opened, Refusal, Report};
use crate::device::reading::same_uuid;
use cubins::Cubins;
use driver::{Context, Stream, memory};
use lane::{Lane, Streams};
use module::Modules;
use renderer::{LANES, Renderer, State};
use scenes::Scenes;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc::{SyncSender, channel, sync_channel};
use std::time::Instant;
use tessera_kernels::cuda::{COMPUTE_CAPABILITY_MIN, DeviceShape};

/// Most tasks that wait for the device's thread. With pieces of a scene in them they take 32 MiB.
const TASKS_MAX: usize = 8;

/// Lists all devices that CUDA shows to this process, usable or not.
pub(super) fn list() -> Result<Vec<FoundDevice>, Refusal> {
    guard(|| {
        driver::start()?;
        let count = driver::device_count().map_err(Refusal::Driver)?;
        let devices: Result<Vec<_>, CallError> = (0..count).map(driver::describe).collect();
        let devices = devices.map_err(Refusal::Driver)?;
        if devices.is_empty() { Err(Refusal::NoDevices) } else { Ok(devices) }
    })
}

/// Handles that a worker needs to serve its device.
pub(super) struct Serving {
    /// Channel for units and scenes.
    pub(super) tasks: SyncSender<Task>,
    /// Units to stop.
    pub(super) cancelled: Cancelled,
}

/// Opens the device and starts its threads. They end the process if the driver fails.
pub(super) fn open(
    device: (u32, &str),
    cubins: Option<PathBuf>,
    outlet: &Outlet,
) -> Result<(Serving, Opened), Refusal> {
    let (context, modules, (opened, shape)) = guard(|| load(device, cubins))?;
    let started = || start(context, modules, (&opened, shape), outlet).map_err(Refusal::Driver);
    let serving = guard(started)?;
    Ok((serving, opened))
}

fn load(
    (ordinal, uuid): (u32, &str),
    cubins: Option<PathBuf>,
) -> Result<(Context, Modules, (Opened, DeviceShape)), Refusal> {
    let begun = Instant::now();
    let driver_version = driver::start()?;
    if ordinal >= driver::device_count().map_err(Refusal::Driver)? {
        return Err(Refusal::NoSuchDevice(ordinal));
    }
    let device = driver::describe(ordinal).map_err(Refusal::Driver)?;
    if !uuid.is_empty() && !same_uuid(uuid, &device.uuid) {
        return Err(Refusal::OtherDevice {
            ordinal,
            expected: uuid.to_owned(),
            found: device.uuid,
        });
    }
    if device.capability < COMPUTE_CAPABILITY_MIN {
        return Err(Refusal::Capability { name: device.name, found: device.capability });
    }
    let unopened = |error| Refusal::of_context(ordinal, error);
    let context = Context::open(ordinal).map_err(unopened)?;
    let start = begun.elapsed();
    let begun = Instant::now();
    let cubins = cubins.map(|folder| Cubins { folder, capability: device.capability });
    let (modules, code) = Modules::load(cubins)?;
    let compile = begun.elapsed();
    let (free_bytes, _) = memory().map_err(Refusal::Driver)?;
    let threads = driver::threads_per_multiprocessor(ordinal).map_err(Refusal::Driver)?;
    let shape = DeviceShape {
        multiprocessors: device.multiprocessors.max(1),
        threads_per_multiprocessor: threads.max(1),
    };
    let batch_paths = shape.batch_paths(free_bytes);
    let opened = Opened { device, driver_version, free_bytes, batch_paths, start, compile, code };
    Ok((context, modules, (opened, shape)))
}

fn start(
    context: Context,
    modules: Modules,
    (opened, shape): (&Opened, DeviceShape),
    outlet: &Outlet,
) -> Result<Serving, CallError> {
    let (tasks, received) = sync_channel(TASKS_MAX);
    let (waiter, units) = channel();
    let lanes: Result<Vec<_>, CallError> = (0..LANES).map(|_| Lane::new()).collect();
    let cancelled = Cancelled::default();
    let renderer = Renderer {
        outlet: outlet.clone(),
        cancelled: cancelled.clone(),
        modules,
        // The other half is for workspaces and for other programs.
        scenes: Scenes::new(opened.free_bytes / 2)?,
        streams: Streams { compute: Stream::new()?, download: Stream::new()? },
        shape,
        lanes: lanes?,
        waiter,
        paths_max: opened.batch_paths,
        paths: opened.batch_paths,
        state: State::default(),
    };
    let free = tasks.clone();
    thread("device", outlet, move || renderer.run(context, &received));
    let waiting = outlet.clone();
    thread("wait", outlet, move || waiter::run(context, &units, &waiting, &free));
    Ok(Serving { tasks, cancelled })
}

/// Runs a thread that the process cannot do without. If it fails, the node is told and the process
/// ends.
fn thread(
    name: &str,
    outlet: &Outlet,
    work: impl FnOnce() -> Result<(), CallError> + Send + 'static,
) {
    let outlet = outlet.clone();
    let body = move || {
        let ended = catch_unwind(AssertUnwindSafe(work));
        let error = match ended {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error,
            // The driver probably lacks a function. The text of the panic is on standard error.
            Err(_) => CallError { call: "the worker".into(), code: 0, name: "panicked".into() },
        };
        outlet.send(&Report::Broken(error), &[]);
        std::process::exit(super::EXIT_BROKEN);
    };
    if std::thread::Builder::new().name(name.into()).spawn(body).is_err() {
        eprintln!("cannot start thread {name}");
        std::process::exit(super::EXIT_BROKEN);
    }
}

/// Converts the bindings' panic about a function that the driver lacks to a refusal.
fn guard<T>(work: impl FnOnce() -> Result<T, Refusal>) -> Result<T, Refusal> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no name");
        Err(Refusal::MissingFunction(text.chars().take(200).collect()))
    })
}
