//! The `nvml*` entry points: what management tools know of the rack, from the state that all
//! processes share.

mod device;
mod event;
mod health;
mod link;
mod memory;
mod slice;
mod system;

use crate::driver::driver;
use crate::ffi::BadPointer;
use crate::topology::Target;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

/// An `nvmlReturn_t` other than success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Failure(u32);

impl Failure {
    const UNINITIALIZED: Failure = Failure(1);
    const INVALID_ARGUMENT: Failure = Failure(2);
    const NOT_SUPPORTED: Failure = Failure(3);
    const NOT_FOUND: Failure = Failure(6);
    const INSUFFICIENT_SIZE: Failure = Failure(7);
    const TIMEOUT: Failure = Failure(10);
    const GPU_IS_LOST: Failure = Failure(15);
}

impl From<Failure> for u32 {
    fn from(failure: Failure) -> u32 {
        failure.0
    }
}

impl From<BadPointer> for Failure {
    fn from(_: BadPointer) -> Failure {
        Failure::INVALID_ARGUMENT
    }
}

/// How often `nvmlInit` was called without its `nvmlShutdown`.
static USERS: AtomicU32 = AtomicU32::new(0);

fn ready() -> Result<(), Failure> {
    if USERS.load(SeqCst) > 0 { Ok(()) } else { Err(Failure::UNINITIALIZED) }
}

/// The handle of a target: its place, counted from 1, so that null is none.
fn handle_of(target: usize) -> usize {
    target + 1
}

/// The target of a handle, lost or not.
fn named(handle: usize) -> Result<(usize, &'static Target), Failure> {
    ready()?;
    let target = handle.checked_sub(1).ok_or(Failure::INVALID_ARGUMENT)?;
    Ok((target, driver().targets.get(target).ok_or(Failure::INVALID_ARGUMENT)?))
}

/// The target of a handle, if its device still answers.
fn found(handle: usize) -> Result<(usize, &'static Target), Failure> {
    let (target, described) = named(handle)?;
    if driver().is_lost(target) { Err(Failure::GPU_IS_LOST) } else { Ok((target, described)) }
}

/// The whole device of a handle; slices have no sensors of their own.
fn whole(handle: usize) -> Result<(usize, &'static crate::config::Device), Failure> {
    let (target, described) = found(handle)?;
    if described.slice.is_some() {
        Err(Failure::NOT_SUPPORTED)
    } else {
        Ok((target, driver().device_of(target)))
    }
}

/// A device's place on the bus, as NVML writes it.
pub(crate) fn pci_bus_id(device: usize) -> String {
    format!("00000000:{:02X}:00.0", device + 1)
}
