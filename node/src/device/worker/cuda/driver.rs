//! The driver calls that a worker makes, through cudarc's bindings: context, streams, events,
//! memory. Decides nothing.
//!
//! Everything here belongs to one process, one device and one context, which live as long as the
//! process. The driver frees what is still allocated at its end.

use crate::device::worker::message::{CallError, FoundDevice, Refusal};
use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::{
    self, CUdevice_attribute as Attribute, CUevent_flags as EventFlags, CUresult,
};
use std::ffi::c_void;

/// Version of the bindings, which a driver must offer. It is as low as possible.
const DRIVER_VERSION_MIN: i32 = 12_000;

/// Result of a call.
pub(super) type Call<T> = Result<T, CallError>;

/// Names a failed call.
pub(super) fn call<T>(name: &str, result: Result<T, DriverError>) -> Call<T> {
    result.map_err(|error| failed(name, error))
}

fn failed(call: &str, error: DriverError) -> CallError {
    let name = error
        .error_name()
        .map_or_else(|_| "unknown".into(), |name| name.to_string_lossy().into_owned());
    CallError { call: call.to_owned(), code: error.0 as u32, name }
}

/// Returns whether the device has too little memory, and is otherwise healthy.
pub(super) fn is_out_of_memory(error: &CallError) -> bool {
    error.code == CUresult::CUDA_ERROR_OUT_OF_MEMORY as u32
}

/// Initialises the driver. Returns the version of CUDA that it offers.
pub(super) fn start() -> Result<i32, Refusal> {
    // SAFETY: the call loads a library that the system has under the driver's name.
    if !unsafe { sys::is_culib_present() } {
        return Err(Refusal::NoDriver);
    }
    let mut version = 0;
    // SAFETY: the pointer is valid for the call.
    let asked = unsafe { sys::cuDriverGetVersion(&mut version) }.result();
    if asked.is_ok() && version < DRIVER_VERSION_MIN {
        return Err(Refusal::DriverTooOld { found: version, needed: DRIVER_VERSION_MIN });
    }
    match result::init() {
        Ok(()) => Ok(version),
        Err(DriverError(CUresult::CUDA_ERROR_NO_DEVICE)) => Err(Refusal::NoDevices),
        Err(error) => Err(Refusal::Driver(failed("cuInit", error))),
    }
}

/// Returns the number of devices that the driver shows to this process.
pub(super) fn device_count() -> Call<u32> {
    let count = call("cuDeviceGetCount", result::device::get_count())?;
    Ok(u32::try_from(count).unwrap_or(0))
}

/// Returns the properties of a device, as the driver reports them.
pub(super) fn describe(ordinal: u32) -> Call<FoundDevice> {
    let device = device(ordinal)?;
    let attribute = |attribute: Attribute| {
        // SAFETY: the device comes from the driver.
        let value = call("cuDeviceGetAttribute", unsafe {
            result::device::get_attribute(device, attribute)
        });
        value.map(|value| u32::try_from(value).unwrap_or(0))
    };
    let major = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
    let minor = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
    // SAFETY: as above.
    let memory = call("cuDeviceTotalMem", unsafe { result::device::total_mem(device) })?;
    Ok(FoundDevice {
        ordinal,
        uuid: uuid_text("GPU", &uuid(device)?),
        name: call("cuDeviceGetName", result::device::get_name(device))?,
        capability: (major, minor),
        memory_bytes: memory as u64,
        multiprocessors: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        mig_parent: None,
        by_uuid: false,
    })
}

/// Returns how much shared memory a block has at most, in bytes: without, and with, a request for
/// more than the default.
pub(super) fn shared_bytes_max(ordinal: u32) -> Call<(u32, u32)> {
    let device = device(ordinal)?;
    let attribute = |attribute: Attribute| {
        // SAFETY: the device comes from the driver.
        let value = call("cuDeviceGetAttribute", unsafe {
            result::device::get_attribute(device, attribute)
        });
        value.map(|value| u32::try_from(value).unwrap_or(0))
    };
    let plain = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK)?;
    let most = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
    Ok((plain, most.max(plain)))
}

/// Returns how many threads one multiprocessor holds at once.
pub(super) fn threads_per_multiprocessor(ordinal: u32) -> Call<u32> {
    let attribute = Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR;
    let device = device(ordinal)?;
    // SAFETY: the device comes from the driver.
    let threads =
        call("cuDeviceGetAttribute", unsafe { result::device::get_attribute(device, attribute) })?;
    Ok(u32::try_from(threads).unwrap_or(0))
}

fn device(ordinal: u32) -> Call<sys::CUdevice> {
    call("cuDeviceGet", result::device::get(i32::try_from(ordinal).unwrap_or(i32::MAX)))
}

/// Calls the second version of the function, which knows slices. The first version, which cudarc's
/// own function calls, returns the UUID of the whole device for a slice.
fn uuid(device: sys::CUdevice) -> Call<[u8; 16]> {
    let mut uuid = sys::CUuuid { bytes: [0; 16] };
    // SAFETY: the driver writes 16 bytes to a place of that size.
    let asked = unsafe { sys::cuDeviceGetUuid_v2(&mut uuid, device) };
    call("cuDeviceGetUuid_v2", asked.result())?;
    Ok(uuid.bytes.map(|byte| byte as u8))
}

/// Formats a UUID like `nvidia-smi -L`.
fn uuid_text(kind: &str, bytes: &[u8; 16]) -> String {
    format!("{kind}-{}", uuid::Uuid::from_bytes(*bytes))
}

/// The device's primary context.
#[derive(Clone, Copy)]
pub(super) struct Context(sys::CUcontext);

// SAFETY: a context is a handle that any thread may use; each thread binds it before its own calls.
unsafe impl Send for Context {}

impl Context {
    /// Retains the context and binds it to the calling thread.
    pub(super) fn open(ordinal: u32) -> Call<Self> {
        let device = device(ordinal)?;
        // SAFETY: the device comes from the driver.
        let context =
            call("cuDevicePrimaryCtxRetain", unsafe { result::primary_ctx::retain(device) })?;
        let this = Self(context);
        this.bind()?;
        Ok(this)
    }

    /// Binds the context to the calling thread.
    pub(super) fn bind(self) -> Call<()> {
        // SAFETY: the context is retained and never released.
        call("cuCtxSetCurrent", unsafe { result::ctx::set_current(self.0) })
    }
}

/// Returns the free and the total memory of the current context's device, in bytes.
pub(super) fn memory() -> Call<(u64, u64)> {
    let (free, total) = call("cuMemGetInfo", result::mem_get_info())?;
    Ok((free as u64, total as u64))
}

/// A range of device memory, which is freed when it is dropped.
#[derive(Debug)]
pub(super) struct Memory {
    pub(super) address: u64,
    pub(super) bytes: u64,
}

impl Memory {
    /// Allocates memory with undefined content.
    pub(super) fn allocate(bytes: u64) -> Call<Self> {
        let size = usize::try_from(bytes).unwrap_or(usize::MAX);
        // SAFETY: what is read from it is written before, by copies or by kernels.
        let address = call("cuMemAlloc", unsafe { result::malloc_sync(size) })?;
        Ok(Self { address, bytes })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated by `allocate` and freed once; the driver waits for commands that still
        // use it. If the context is dead, so is the memory.
        let _ = unsafe { result::free_sync(self.address) };
    }
}

/// Page-locked host memory, which devices can read and write directly. It is not write-combined,
/// because the host reads it too.
#[derive(Debug)]
pub(super) struct Pinned {
    start: *mut u8,
    bytes: usize,
}

// SAFETY: plain memory with one owner.
unsafe impl Send for Pinned {}

impl Pinned {
    /// Allocates zeroed memory.
    pub(super) fn allocate(bytes: usize) -> Call<Self> {
        // SAFETY: the memory is zeroed before it is read.
        let start = unsafe { result::malloc_host(bytes.max(1), sys::CU_MEMHOSTALLOC_PORTABLE) };
        let start: *mut u8 = call("cuMemHostAlloc", start)?.cast();
        // SAFETY: so many bytes were allocated.
        unsafe { start.write_bytes(0, bytes) };
        Ok(Self { start, bytes })
    }

    pub(super) fn len(&self) -> usize {
        self.bytes
    }

    /// Returns the bytes. No copy to or from them may be in progress.
    pub(super) fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: allocated with this length, initialised, and borrowed as long as the slice lives.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.bytes) }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // SAFETY: allocated by `allocate`, freed once. Where the context is dead, the process is
        // about to end.
        let _ = unsafe { result::free_host(self.start.cast::<c_void>()) };
    }
}

/// A point in a stream.
#[derive(Debug)]
pub(super) struct Event(sys::CUevent);

// SAFETY: a handle that any thread with the context may use.
unsafe impl Send for Event {}

impl Event {
    /// Creates an event on which a thread can wait asleep, and whose time can be read.
    pub(super) fn new() -> Call<Self> {
        Ok(Self(call("cuEventCreate", result::event::create(EventFlags::CU_EVENT_BLOCKING_SYNC))?))
    }

    /// Waits until the stream has reached this event. An error may belong to any earlier command of
    /// the device.
    pub(super) fn wait(&self) -> Call<()> {
        // SAFETY: the event lives.
        call("cuEventSynchronize", unsafe { result::event::synchronize(self.0) })
    }

    /// Returns the time from `earlier` to this event in nanoseconds. The caller must have waited
    /// for both.
    pub(super) fn nanos_since(&self, earlier: &Event) -> Call<u64> {
        // SAFETY: both live and are recorded.
        let millis =
            call("cuEventElapsedTime", unsafe { result::event::elapsed(earlier.0, self.0) })?;
        Ok((f64::from(millis.max(0.0)) * 1e6) as u64)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: created by `new`, destroyed once; the driver frees it when it is over.
        let _ = unsafe { result::event::destroy(self.0) };
    }
}

/// Blocks of a launch, threads of a block, and dynamic shared memory of a block in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
    pub(super) shared_bytes: u32,
}

/// A queue of commands that a device executes in order. It lives as long as the process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stream(sys::CUstream);

// SAFETY: a handle that any thread with the context may use.
unsafe impl Send for Stream {}

impl Stream {
    pub(super) fn new() -> Call<Self> {
        let kind = result::stream::StreamKind::NonBlocking;
        Ok(Self(call("cuStreamCreate", result::stream::create(kind))?))
    }

    pub(super) fn record(&self, event: &Event) -> Call<()> {
        // SAFETY: both live.
        call("cuEventRecord", unsafe { result::event::record(event.0, self.0) })
    }

    /// Makes all later commands of this stream wait for the event.
    pub(super) fn wait_for(&self, event: &Event) -> Call<()> {
        let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: both live.
        call("cuStreamWaitEvent", unsafe { result::stream::wait_event(self.0, event.0, flags) })
    }

    pub(super) fn zero(&self, address: u64, bytes: u64) -> Call<()> {
        // SAFETY: the range lies in a workspace that lives until this stream is done with it.
        call("cuMemsetD8Async", unsafe {
            result::memset_d8_async(address, 0, bytes as usize, self.0)
        })
    }

    /// Writes a few bytes, less than 64 KiB, which the driver keeps until this stream is there.
    pub(super) fn write(&self, address: u64, bytes: &[u8]) -> Call<()> {
        // SAFETY: the range lies in a workspace that lives until this stream is done with it. From
        // memory that is not page-locked, the driver has copied the bytes when it returns.
        let told = unsafe { result::memcpy_htod_async(address, bytes, self.0) };
        call("cuMemcpyHtoDAsync", told)
    }

    /// Copies `bytes` bytes on the device.
    ///
    /// # Safety
    /// Both ranges must be allocated, and must not overlap.
    pub(super) unsafe fn copy(&self, to: u64, from: u64, bytes: u64) -> Call<()> {
        // SAFETY: as promised by the caller.
        let told = unsafe { result::memcpy_dtod_async(to, from, bytes as usize, self.0) };
        call("cuMemcpyDtoDAsync", told)
    }

    /// Copies the first `bytes` of `from` to the device.
    ///
    /// # Safety
    /// The range of the device must be allocated; `from` must not be touched until this stream has
    /// come past.
    pub(super) unsafe fn upload(&self, address: u64, from: &mut Pinned, bytes: usize) -> Call<()> {
        // SAFETY: as promised by the caller.
        let told = unsafe { result::memcpy_htod_async(address, &from.bytes()[..bytes], self.0) };
        call("cuMemcpyHtoDAsync", told)
    }

    /// Copies from the device into `to` from `at` on.
    ///
    /// # Safety
    /// The range of the device must be allocated; `to` must not be touched until this stream has
    /// come past.
    pub(super) unsafe fn download(
        &self,
        address: u64,
        to: &mut Pinned,
        at: usize,
        bytes: usize,
    ) -> Call<()> {
        // SAFETY: as promised by the caller.
        let told =
            unsafe { result::memcpy_dtoh_async(&mut to.bytes()[at..at + bytes], address, self.0) };
        call("cuMemcpyDtoHAsync", told)
    }

    /// Runs a kernel with its only parameter.
    pub(super) fn launch(
        &self,
        kernel: sys::CUfunction,
        grid: u32,
        block: u32,
        params: &[u8],
    ) -> Call<()> {
        let shape = Shape { grid: [grid, 1, 1], block: [block, 1, 1], shared_bytes: 0 };
        self.launch_in(kernel, shape, params)
    }

    /// Runs a kernel with its only parameter in a grid of any shape.
    pub(super) fn launch_in(
        &self,
        kernel: sys::CUfunction,
        shape: Shape,
        params: &[u8],
    ) -> Call<()> {
        // The driver copies the parameter before it returns.
        let mut pointers = [params.as_ptr().cast_mut().cast::<c_void>()];
        let ([gx, gy, gz], [bx, by, bz]) = (shape.grid, shape.block);
        let (grid, block) = ((gx, gy, gz), (bx, by, bz));
        let shared = shape.shared_bytes;
        // SAFETY: the caller gives each kernel the parameter that it takes, with addresses of
        // living memory.
        let told =
            unsafe { result::launch_kernel(kernel, grid, block, shared, self.0, &mut pointers) };
        call("cuLaunchKernel", told)
    }
}
