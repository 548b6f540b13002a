//! Launches: checked when they are asked for, executed when their stream gets there, with the
//! faults that are planned.

use super::context::Context;
use super::image::Function;
use super::{complain, driver, host_output, locked};
use crate::config::{FaultKind, Occasion, Watch};
use crate::fault;
use crate::shared::Watched;
use crate::status::Status;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};
use tessera_ptx::{Cause, Fault, Limits};

/// Registers of a multiprocessor.
pub(crate) const REGISTERS_PER_MULTIPROCESSOR: i32 = 65_536;

/// A launch that was checked.
pub(crate) struct Launch {
    pub(crate) function: Arc<Function>,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) shared_bytes: u32,
    pub(crate) parameters: Vec<u8>,
}

impl Launch {
    /// Refuses what a driver refuses before it starts anything.
    pub(crate) fn check(&self) -> Result<(), Status> {
        let threads = self.block.iter().try_fold(1_u32, |all, side| all.checked_mul(*side));
        let threads =
            threads.filter(|threads| (1..=1024).contains(threads)).ok_or(Status::INVALID_VALUE)?;
        let [x, y, z] = self.grid;
        let is_grid =
            x > 0 && x <= 0x7fff_ffff && (1..=65_535).contains(&y) && (1..=65_535).contains(&z);
        let shared_max = self.function.shared_bytes_max.load(SeqCst);
        if !is_grid || self.block[2] > 64 || i64::from(self.shared_bytes) > i64::from(shared_max) {
            return Err(Status::INVALID_VALUE);
        }
        if threads.cast_signed() > self.function.threads_max() {
            return Err(Status::LAUNCH_OUT_OF_RESOURCES);
        }
        Ok(())
    }
}

/// Xids: NVIDIA, "Xid errors". Graphics engine exception, MMU fault, uncorrectable ECC error,
/// fallen off the bus.
const XID_EXCEPTION: u64 = 13;
const XID_MMU: u64 = 31;
const XID_ECC: u64 = 48;
const XID_BUS: u64 = 79;

/// Executes a launch, or what is planned to happen instead.
pub(crate) fn execute(context: &Context, launch: &Launch) -> Result<(), Status> {
    let shared = &driver().shared;
    context.holder.begin_launch(shared);
    let faults = driver().faults(context.target);
    let function = &launch.function;
    let at = (function.kernel.name.as_str(), function.image.number);
    let struck = fault::strike(faults, context.page(), Occasion::Launch, at);
    let result = match struck {
        None | Some(FaultKind::OutOfMemory | FaultKind::UnsupportedPtx) => run(context, launch),
        Some(FaultKind::WrongResult) => run_wrongly(context, launch),
        Some(FaultKind::Endless) => never(context),
        Some(FaultKind::Crash) => std::process::abort(),
        Some(FaultKind::IllegalAddress) => Err(report(context, XID_MMU, Status::ILLEGAL_ADDRESS)),
        Some(FaultKind::Ecc) => {
            driver().device_page(context.target).uncorrected.fetch_add(1, SeqCst);
            Err(report(context, XID_ECC, Status::ECC_UNCORRECTABLE))
        }
        Some(FaultKind::OffTheBus) => {
            driver().device_page(context.target).is_lost.store(1, SeqCst);
            Err(report(context, XID_BUS, Status::UNKNOWN))
        }
    };
    context.holder.end_launch(shared);
    result
}

fn report(context: &Context, xid: u64, status: Status) -> Status {
    driver().device_page(context.target).report(xid);
    status
}

/// The kernel that never ends: only the end of its process ends it. It takes no processor, as a
/// kernel takes none of the host's.
fn never(_context: &Context) -> Result<(), Status> {
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

fn run(context: &Context, launch: &Launch) -> Result<(), Status> {
    let begun = Instant::now();
    let steps = match driver().device_of(context.target).steps_max {
        0 => u64::MAX,
        most => most,
    };
    let mut machine = locked(&context.machine);
    let ended = machine.launch(
        &launch.function.image.loaded,
        &launch.function.kernel.name,
        launch.grid,
        launch.block,
        launch.shared_bytes,
        &launch.parameters,
        &Limits { steps, first_block: first_block(context), ..Limits::default() },
    );
    let (printed, assertion) = (machine.take_printed(), machine.take_assertion());
    drop(machine);
    host_output::print(&printed);
    if let Some(assertion) = assertion {
        host_output::complain(&assertion);
    }
    match ended {
        Ok(stats) => {
            context.page().steps.fetch_add(stats.steps, SeqCst);
            watch(context, launch);
            pause(context, stats.steps, begun);
            Ok(())
        }
        Err(fault) => Err(failed(context, &fault)),
    }
}

/// The block that a launch begins with: on a device that varies it, another one than that of the
/// launches before, and than that of the same launch on the devices beside it, each of which a
/// process of its own may drive.
fn first_block(context: &Context) -> u32 {
    static LAUNCHES: AtomicU32 = AtomicU32::new(0);
    let launch = LAUNCHES.fetch_add(1, SeqCst);
    if !driver().device_of(context.target).varies_block_order {
        return 0;
    }
    launch.wrapping_add((context.target as u32).wrapping_mul(5))
}

fn pause(context: &Context, steps: u64, begun: Instant) {
    let device = driver().device_of(context.target);
    let of_steps = |nanos: f64| Duration::from_nanos((nanos * steps as f64) as u64);
    let took = begun.elapsed();
    let lasts = of_steps(device.nanos_per_step).max(took.mul_f64(device.stretch.clamp(1.0, 1e6)));
    let pace = lasts.saturating_sub(took);
    let for_launch = Duration::from_micros(device.pause_micros_per_launch);
    let pause = pace + of_steps(device.pause_nanos_per_step) + for_launch;
    if !pause.is_zero() {
        std::thread::sleep(pause);
    }
}

/// Writes down what is watched at a launch that has ended.
fn watch(context: &Context, launch: &Launch) {
    let watches = &driver().device_of(context.target).watches;
    let name = &launch.function.kernel.name;
    for watch in watches.iter().filter(|watch| name.contains(&watch.kernel)) {
        let Some(watched) = watched(context, launch, watch) else { continue };
        if let Err(error) = driver().shared.write_down(context.target, watched) {
            complain(&error);
        }
    }
}

fn watched(context: &Context, launch: &Launch, watch: &Watch) -> Option<Watched> {
    let word = |at: usize| {
        let bytes = launch.parameters.get(at..at + 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    };
    let (low, high) = (word(watch.address)?, word(watch.address + 4)?);
    let (index, mark) = (word(watch.index)?, word(watch.mark)?);
    let array = u64::from(high) << 32 | u64::from(low);
    let mut value = [0; 4];
    let address = array.wrapping_add(u64::from(index).wrapping_mul(watch.stride));
    locked(&context.machine).read(address, &mut value).ok()?;
    Some(Watched { mark, index, word: u32::from_le_bytes(value) })
}

/// What a driver says of a kernel that stopped; what the interpreter knows of it goes where a
/// kernel log would.
fn failed(context: &Context, fault: &Fault) -> Status {
    complain(fault);
    let (xid, status) = match fault.cause() {
        Some(Cause::OutOfBounds { .. }) => (XID_MMU, Status::ILLEGAL_ADDRESS),
        Some(Cause::Misaligned { .. }) => (XID_EXCEPTION, Status::MISALIGNED_ADDRESS),
        Some(Cause::Asserted) => (XID_EXCEPTION, Status::ASSERT),
        Some(Cause::Unsupported) => (XID_EXCEPTION, Status::ILLEGAL_INSTRUCTION),
        Some(Cause::StackOverflow) => (XID_EXCEPTION, Status::HARDWARE_STACK_ERROR),
        // Threads that wait for each other wait for ever.
        Some(Cause::Deadlock | Cause::StepLimit(_)) => {
            return never(context).err().unwrap_or(Status::UNKNOWN);
        }
        Some(_) => (XID_EXCEPTION, Status::LAUNCH_FAILED),
        None => return Status::INVALID_VALUE,
    };
    report(context, xid, status)
}

/// Runs a launch and turns one bit of what it wrote.
fn run_wrongly(context: &Context, launch: &Launch) -> Result<(), Status> {
    let before = memory(context);
    run(context, launch)?;
    let after = memory(context);
    let changed = before.iter().zip(&after).flat_map(|((address, old), (_, new))| {
        let pairs = old.iter().zip(new).enumerate();
        pairs
            .filter(|(_, (old, new))| old != new)
            .map(move |(index, (_, new))| (address + index as u64, *new))
    });
    let changed: Vec<(u64, u8)> = changed.collect();
    // The top byte of a word: large enough to be seen in a float and in a sum.
    let top: Vec<(u64, u8)> =
        changed.iter().copied().filter(|(address, _)| address % 4 == 3).collect();
    let candidates = if top.is_empty() { changed } else { top };
    if let Some((address, byte)) = candidates.get(candidates.len() / 2) {
        let written = locked(&context.machine).write(*address, &[byte ^ 0x20]);
        written.map_err(|_| Status::ILLEGAL_ADDRESS)?;
    }
    Ok(())
}

/// All memory that the program can name.
fn memory(context: &Context) -> Vec<(u64, Vec<u8>)> {
    let machine = locked(&context.machine);
    let read = context.ranges().into_iter().filter_map(|(address, bytes)| {
        let mut copy = vec![0; usize::try_from(bytes).ok()?];
        machine.read(address, &mut copy).ok()?;
        Some((address, copy))
    });
    read.collect()
}

/// Calls a function of the program's own: `cuLaunchHostFunc`.
pub(crate) fn call_host(function: usize, data: usize) {
    if function == 0 {
        return;
    }
    // SAFETY: the program gave this address as a `CUhostFn`, and vouches for it and for its
    // argument.
    let function: extern "C" fn(usize) = unsafe { std::mem::transmute(function) };
    function(data);
}
