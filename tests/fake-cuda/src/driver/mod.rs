//! The driver of one process: which devices it sees, its contexts, and what every handle means.
//! Speaks no C.

pub(crate) mod context;
pub(crate) mod event;
pub(crate) mod host;
mod host_output;
pub(crate) mod image;
pub(crate) mod launch;
pub(crate) mod queue;
mod system;
pub(crate) mod table;

use crate::config::{Config, Device, Fault};
use crate::shared::{Shared, TargetPage};
use crate::status::Status;
use crate::topology::{self, Target};
use context::Context;
use event::Event;
use image::{Function, Image};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use table::Table;

/// A stream's handle leads here.
pub(crate) struct Stream {
    pub(crate) context: Arc<Context>,
    /// Its lane in the context's queue.
    pub(crate) lane: u64,
    pub(crate) flags: u32,
    pub(crate) priority: i32,
}

/// Everything that the process's CUDA and NVML know.
pub(crate) struct Driver {
    pub(crate) config: Config,
    pub(crate) targets: Vec<Target>,
    /// The targets that CUDA enumerates, by ordinal.
    pub(crate) visible: Vec<usize>,
    pub(crate) shared: Arc<Shared>,
    is_initialised: AtomicBool,
    primary: Mutex<BTreeMap<usize, Primary>>,
    pub(crate) contexts: Table<Context>,
    pub(crate) streams: Table<Stream>,
    pub(crate) events: Table<Event>,
    pub(crate) images: Table<Image>,
    pub(crate) functions: Table<Function>,
}

/// A device's primary context, and how often it is retained.
struct Primary {
    handle: u64,
    retained: u32,
}

/// Locks what no panic leaves half-changed.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The process's driver, made at its first use from the file that `TESSERA_FAKE_CUDA` names;
/// without one it has no devices.
pub(crate) fn driver() -> &'static Driver {
    static DRIVER: OnceLock<Driver> = OnceLock::new();
    DRIVER.get_or_init(|| {
        let named = std::env::var_os("TESSERA_FAKE_CUDA");
        named.map_or_else(
            || Driver::new(Config::default()),
            |path| Driver::from_file(Path::new(&path)),
        )
    })
}

impl Driver {
    fn from_file(path: &Path) -> Driver {
        match Config::read(path) {
            Ok(config) => Driver::new(config),
            Err(error) => {
                complain(&error);
                Driver::new(Config { init_error: Status::UNKNOWN.0, ..Config::default() })
            }
        }
    }

    fn new(mut config: Config) -> Driver {
        let named =
            if config.devices.is_empty() { Shared::private() } else { Shared::open(&config.state) };
        let shared = named.or_else(|error| {
            complain(&error);
            config.init_error = Status::UNKNOWN.0;
            config.devices.clear();
            Shared::private()
        });
        let shared = shared.expect("a page of anonymous memory can be mapped");
        let targets = topology::targets(&config);
        let visible =
            topology::visible(&targets, std::env::var("CUDA_VISIBLE_DEVICES").ok().as_deref());
        Driver {
            config,
            targets,
            visible,
            shared: Arc::new(shared),
            is_initialised: AtomicBool::new(false),
            primary: Mutex::default(),
            contexts: Table::new(0x1_0000),
            streams: Table::new(0x2_0000),
            events: Table::new(0x3_0000),
            images: Table::new(0x4_0000),
            functions: Table::new(0x5_0000),
        }
    }

    /// `cuInit`.
    pub(crate) fn initialise(&self) -> Result<(), Status> {
        match self.config.init_error {
            0 if self.visible.is_empty() => Err(Status::NO_DEVICE),
            0 => {
                system::ask().map_err(|error| {
                    complain(&error);
                    Status::OPERATING_SYSTEM
                })?;
                self.is_initialised.store(true, SeqCst);
                Ok(())
            }
            error => Err(Status(error)),
        }
    }

    /// Refuses to work before `cuInit`.
    pub(crate) fn ready(&self) -> Result<(), Status> {
        self.is_initialised.load(SeqCst).then_some(()).ok_or(Status::NOT_INITIALIZED)
    }

    /// The target of a `CUdevice`, which is an ordinal here.
    pub(crate) fn target(&self, device: i32) -> Result<usize, Status> {
        self.ready()?;
        let ordinal = usize::try_from(device).map_err(|_| Status::INVALID_DEVICE)?;
        self.visible.get(ordinal).copied().ok_or(Status::INVALID_DEVICE)
    }

    /// The ordinal of a target that this process sees.
    pub(crate) fn ordinal(&self, target: usize) -> i32 {
        self.visible.iter().position(|seen| *seen == target).map_or(-1, |ordinal| ordinal as i32)
    }

    /// The device that a target is, or is a slice of.
    pub(crate) fn device_of(&self, target: usize) -> &Device {
        &self.config.devices[self.targets[target].device]
    }

    /// What is planned to go wrong with a target.
    pub(crate) fn faults(&self, target: usize) -> &[Fault] {
        &self.device_of(target).faults
    }

    /// The counters of the whole device that a target belongs to: what is lost is lost as a whole.
    pub(crate) fn device_page(&self, target: usize) -> &TargetPage {
        &self.shared.targets[self.targets[target].device]
    }

    /// True once a target has fallen off the bus.
    pub(crate) fn is_lost(&self, target: usize) -> bool {
        self.device_page(target).is_lost.load(SeqCst) != 0
    }

    /// Retains a target's primary context; its handle.
    pub(crate) fn retain_primary(&self, target: usize) -> Result<u64, Status> {
        let mut primary = locked(&self.primary);
        if let Some(context) = primary.get_mut(&target) {
            self.contexts.get(context.handle).ok_or(Status::INVALID_CONTEXT)?.alive()?;
            context.retained += 1;
            return Ok(context.handle);
        }
        let handle = self.new_context(target)?;
        primary.insert(target, Primary { handle, retained: 1 });
        Ok(handle)
    }

    /// Gives a target's primary context back; the last to do so ends it, unless it is dead: a dead
    /// one stays, so that the process cannot begin anew (as with CUDA, only a new process can).
    pub(crate) fn release_primary(&self, target: usize, all: bool) -> Result<(), Status> {
        let mut primary = locked(&self.primary);
        let context = primary.get_mut(&target).ok_or(Status::INVALID_CONTEXT)?;
        self.contexts.get(context.handle).ok_or(Status::INVALID_CONTEXT)?.alive()?;
        context.retained -= 1;
        if context.retained == 0 || all {
            let handle = context.handle;
            primary.remove(&target);
            drop(primary);
            self.end_context(handle)?;
        }
        Ok(())
    }

    /// Whether a target's primary context is there.
    pub(crate) fn has_primary(&self, target: usize) -> bool {
        locked(&self.primary).contains_key(&target)
    }

    /// A new context; its handle.
    pub(crate) fn new_context(&self, target: usize) -> Result<u64, Status> {
        if self.is_lost(target) {
            return Err(Status::DEVICE_UNAVAILABLE);
        }
        let context = Context::start(self, target)?;
        Ok(self.contexts.insert(context))
    }

    /// Ends a context when its work is done, and gives its memory back.
    pub(crate) fn end_context(&self, handle: u64) -> Result<(), Status> {
        let context = self.contexts.remove(handle).ok_or(Status::INVALID_CONTEXT)?;
        self.streams.retain(|stream| !Arc::ptr_eq(&stream.context, &context));
        self.functions.retain(|function| !Arc::ptr_eq(&function.context, &context));
        self.images.retain(|image| !Arc::ptr_eq(&image.context, &context));
        context.end();
        Ok(())
    }
}

/// Says what a person who wrote the configuration must know; there is no other way out of a driver.
pub(crate) fn complain(error: &dyn std::error::Error) {
    use std::io::Write;
    let mut text = format!("fake cuda: {error}");
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    // Where standard error is closed, nobody listens.
    let _ = writeln!(std::io::stderr(), "{text}");
}
