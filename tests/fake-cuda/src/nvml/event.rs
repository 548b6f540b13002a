//! Event sets: Xid errors as they happen, in whichever process they did.

use super::{Failure, found, handle_of, ready};
use crate::driver::table::Table;
use crate::driver::{driver, locked};
use crate::ffi::{Out, export};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// `nvmlEventTypeXidCriticalError`.
const XID: u64 = 8;
/// What another process reports tells nobody here: so often we look.
const GLANCE: Duration = Duration::from_millis(5);

/// `nvmlEventData_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct EventData {
    device: usize,
    event_type: u64,
    event_data: u64,
    gpu_instance: u32,
    compute_instance: u32,
}

/// The devices of a set, and how many events of each were told.
#[derive(Default)]
struct Set(Mutex<BTreeMap<usize, u64>>);

static SETS: Table<Set> = Table::new(0x7_0000);

fn set(handle: u64) -> Result<Arc<Set>, Failure> {
    ready()?;
    SETS.get(handle).ok_or(Failure::INVALID_ARGUMENT)
}

/// The next event of a set, if there is one.
fn next(set: &Set) -> Option<EventData> {
    let mut told = locked(&set.0);
    for (target, seen) in told.iter_mut() {
        let page = driver().device_page(*target);
        if *seen < page.events() {
            // One that is no longer kept is passed over, as the latest stands for all in NVML.
            let xid = page.xid(*seen);
            *seen += 1;
            if let Some(xid) = xid {
                return Some(EventData {
                    device: handle_of(*target),
                    event_type: XID,
                    event_data: xid,
                    gpu_instance: u32::MAX,
                    compute_instance: u32::MAX,
                });
            }
        }
    }
    None
}

export! { Failure;
    fn nvmlEventSetCreate(handle: Out<u64>) {
        ready()?;
        Ok(handle.put(SETS.insert(Arc::default()))?)
    }

    fn nvmlEventSetFree(handle: u64) {
        ready()?;
        SETS.remove(handle).map(|_| ()).ok_or(Failure::INVALID_ARGUMENT)
    }

    fn nvmlDeviceGetSupportedEventTypes(device: usize, types: Out<u64>) {
        found(device)?;
        Ok(types.put(XID)?)
    }

    fn nvmlDeviceRegisterEvents(device: usize, types: u64, handle: u64) {
        let (target, _) = found(device)?;
        if types & !XID != 0 {
            return Err(Failure::NOT_SUPPORTED);
        }
        let seen = driver().device_page(target).events();
        locked(&set(handle)?.0).insert(target, seen);
        Ok(())
    }

    fn nvmlEventSetWait_v2(handle: u64, data: Out<EventData>, timeout_millis: u32) {
        let set = set(handle)?;
        let deadline = Instant::now() + Duration::from_millis(u64::from(timeout_millis));
        loop {
            if let Some(event) = next(&set) {
                return Ok(data.put(event)?);
            }
            // What was lost has been told by now.
            let is_any_lost = locked(&set.0).keys().any(|target| driver().is_lost(*target));
            if is_any_lost {
                return Err(Failure::GPU_IS_LOST);
            }
            if Instant::now() >= deadline {
                return Err(Failure::TIMEOUT);
            }
            std::thread::sleep(GLANCE);
        }
    }
}
