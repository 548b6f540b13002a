//! Compute jobs on a device: one program at a time, its inputs in device memory, and one chunk
//! after another. A separate process serves them, so that a user's kernel that fails affects only
//! this process.

use super::driver::{Call, Context, Event, Memory, Pinned, Stream, call, is_out_of_memory, memory};
use super::{guard, module};
use crate::device::reading::same_uuid;
use crate::device::worker::Outlet;
use crate::device::worker::message::{Opened, Order, Refusal, Report, UnitError};
use cudarc::driver::result;
use cudarc::driver::sys;
use std::ffi::CString;
use std::time::{Duration, Instant};
use tessera_kernels::compute::{ArrayParams, ChunkParams};
use tessera_kernels::cuda::COMPUTE_CAPABILITY_MIN;
use tessera_nvrtc::Nvrtc;

/// A loaded program. It is loaded again for every frame, so that no variable keeps a value of
/// another job.
struct Loaded {
    module: sys::CUmodule,
    function: sys::CUfunction,
}

/// An open device with its program and inputs.
pub(in crate::device::worker) struct Serving {
    _context: Context,
    stream: Stream,
    start: Event,
    done: Event,
    program: Option<Loaded>,
    arrays: Vec<Memory>,
    /// Variables that the program can write.
    restored: Restored,
    out: Option<Memory>,
    results: Option<Pinned>,
    /// Why chunks cannot be run. It is reported in place of their values.
    problem: Option<UnitError>,
}

/// Opens the device.
pub(in crate::device::worker) fn open(
    ordinal: u32,
    uuid: &str,
) -> Result<(Serving, Opened), Refusal> {
    guard(|| {
        let begun = Instant::now();
        let driver_version = super::driver::start()?;
        let count = super::driver::device_count().map_err(Refusal::Driver)?;
        if ordinal >= count {
            return Err(Refusal::NoSuchDevice(ordinal));
        }
        let device = super::driver::describe(ordinal).map_err(Refusal::Driver)?;
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
        let context = Context::open(ordinal).map_err(Refusal::Driver)?;
        let serving = Serving::new(context).map_err(Refusal::Driver)?;
        let (free_bytes, _) = memory().map_err(Refusal::Driver)?;
        let start = begun.elapsed();
        Ok((serving, Opened { device, driver_version, free_bytes, start, compile: Duration::ZERO }))
    })
}

impl Serving {
    fn new(context: Context) -> Call<Self> {
        Ok(Self {
            _context: context,
            stream: Stream::new()?,
            start: Event::new()?,
            done: Event::new()?,
            program: None,
            arrays: Vec::new(),
            restored: Restored::default(),
            out: None,
            results: None,
            problem: None,
        })
    }

    /// Executes one order. An error is the end of the context.
    pub(in crate::device::worker) fn obey(
        &mut self,
        order: Order,
        payload: Vec<u8>,
        outlet: &Outlet,
    ) -> Call<()> {
        match order {
            Order::Compile { name } => {
                match Nvrtc::find().map(|compiler| compile(&compiler, &name, &payload)) {
                    Ok(Ok(ptx)) => outlet.send(&Report::Compiled, ptx.as_bytes()),
                    Ok(Err(problem)) => {
                        outlet.send(&Report::Unusable(UnitError::Refused(problem)), &[])
                    }
                    Err(error) => outlet.send(&Report::NoCompiler(error.to_string()), &[]),
                }
            }
            Order::Program { entry } => match self.load(&entry, payload)? {
                Ok(()) => outlet.send(&Report::Loaded, &[]),
                Err(problem) => outlet.send(&Report::Unusable(UnitError::Refused(problem)), &[]),
            },
            Order::Variable { name } => self.set(&name, &payload, true)?,
            Order::Restore { name, is_zero } => self.restore(&name, is_zero),
            Order::Array { name, element, shape, bytes } => {
                self.array(&name, (element, &shape), bytes)?
            }
            Order::ArrayBytes { offset } => self.fill(offset, &payload)?,
            Order::Chunk { params, count, block, bytes } => {
                match self.problem.clone().map_or_else(
                    || self.run(&params, (count, block), bytes, outlet),
                    |p| Ok(Err(p)),
                )? {
                    Ok(()) => {}
                    Err(problem) => outlet.send(&Report::Unusable(problem), &[]),
                }
            }
            // Orders for a rendering worker are invalid here.
            _ => {}
        }
        Ok(())
    }

    fn load(&mut self, entry: &str, text: Vec<u8>) -> Call<Result<(), String>> {
        self.problem = None;
        self.arrays.clear();
        self.restored = Restored::default();
        if let Some(old) = self.program.take() {
            // SAFETY: this process loaded the module, and nothing uses it any more, because chunks
            // are run to their end.
            call("cuModuleUnload", unsafe { result::module::unload(old.module) })?;
        }
        let Ok(ptx) = std::str::from_utf8(&text) else { return Ok(Err("it is not text".into())) };
        let module = match module::compile(ptx) {
            Ok(module) => module,
            Err(Refusal::Kernels { error, log }) => {
                return Ok(Err(format!("the driver's compiler refuses it ({error}): {log}")));
            }
            Err(other) => return Ok(Err(other.to_string())),
        };
        let name = CString::new(entry).unwrap_or_default();
        // SAFETY: the module is loaded.
        let function =
            call("cuModuleGetFunction", unsafe { result::module::get_function(module, name) })?;
        self.program = Some(Loaded { module, function });
        Ok(Ok(()))
    }

    /// Writes a variable of the program: all of it, or its first bytes.
    fn set(&mut self, name: &str, bytes: &[u8], whole: bool) -> Call<()> {
        let Some(loaded) = &self.program else { return Ok(()) };
        let symbol = CString::new(name).unwrap_or_default();
        // SAFETY: the module is loaded.
        let found = unsafe { result::module::get_global(loaded.module, symbol) };
        match found {
            Ok((address, length)) if length == bytes.len() || (!whole && length > bytes.len()) => {
                // SAFETY: the variable has at least this length.
                call("cuMemcpyHtoD", unsafe { result::memcpy_htod_sync(address, bytes) })
            }
            _ => {
                let problem =
                    format!("its variable `{name}` is not there, or not of {} bytes", bytes.len());
                self.problem.get_or_insert(UnitError::Refused(problem));
                Ok(())
            }
        }
    }

    /// Notes a variable that gets its first value again before every chunk. The driver leaves out
    /// variables that the program does not use.
    fn restore(&mut self, name: &str, is_zero: bool) {
        let Some(loaded) = &self.program else { return };
        let symbol = CString::new(name).unwrap_or_default();
        // SAFETY: the module is loaded.
        if let Ok((address, bytes)) = unsafe { result::module::get_global(loaded.module, symbol) } {
            self.restored.add((address, bytes as u64), is_zero);
        }
    }

    fn array(&mut self, name: &str, (element, shape): (u32, &[u64]), bytes: u64) -> Call<()> {
        // Frames of another job may have left less memory than there is now.
        let allocated = match Memory::allocate(bytes.max(1)) {
            Err(error) if is_out_of_memory(&error) && self.out.take().is_some() => {
                Memory::allocate(bytes.max(1))
            }
            other => other,
        };
        match allocated {
            Ok(memory) => {
                let params = ArrayParams::new(memory.address, element, shape);
                self.arrays.push(memory);
                self.set(name, &params.to_bytes(), false)
            }
            Err(error) if is_out_of_memory(&error) => self.short_of(bytes),
            Err(error) => Err(error),
        }
    }

    fn short_of(&mut self, bytes: u64) -> Call<()> {
        let needed = bytes + self.arrays.iter().map(|memory| memory.bytes).sum::<u64>();
        let available = memory()?.0 + self.arrays.iter().map(|memory| memory.bytes).sum::<u64>();
        self.problem.get_or_insert(UnitError::OutOfMemory { needed, available });
        Ok(())
    }

    /// Writes the next bytes of the last array.
    fn fill(&mut self, offset: u64, bytes: &[u8]) -> Call<()> {
        let Some(memory) = self.arrays.last().filter(|_| self.problem.is_none()) else {
            return Ok(());
        };
        let fits = offset.checked_add(bytes.len() as u64).is_some_and(|end| end <= memory.bytes);
        if !fits {
            self.problem = Some(UnitError::Refused("an input is longer than announced".into()));
            return Ok(());
        }
        // SAFETY: the range lies in the array's memory.
        call("cuMemcpyHtoD", unsafe { result::memcpy_htod_sync(memory.address + offset, bytes) })
    }

    /// Runs a chunk to its end and sends its values.
    fn run(
        &mut self,
        params: &[u8],
        (count, block): (u32, u32),
        bytes: u64,
        outlet: &Outlet,
    ) -> Call<Result<(), UnitError>> {
        let Some(function) = self.program.as_ref().map(|loaded| loaded.function) else {
            return Ok(Err(UnitError::Refused("no program is loaded".into())));
        };
        let prepared = self.make_room(bytes).and_then(|()| self.restored.prepare(&self.stream));
        if let Err(error) = prepared {
            if !is_out_of_memory(&error) {
                return Err(error);
            }
            self.short_of(bytes)?;
            return Ok(self.problem.take().map_or(Ok(()), Err));
        }
        let (Some(out), Some(results)) = (&self.out, &mut self.results) else {
            return Ok(Err(UnitError::Refused("no room for values".into())));
        };
        let Some(head) = params.first_chunk::<{ ChunkParams::BYTES - 8 }>() else {
            return Ok(Err(UnitError::Refused("a chunk without parameters".into())));
        };
        let params = [head.as_slice(), &out.address.to_le_bytes()].concat();
        let block = block.clamp(1, 1024);
        // Copies into variables and arrays must be complete before this stream continues.
        call("cuCtxSynchronize", result::ctx::synchronize())?;
        outlet.send(&Report::Begun, &[]);
        self.stream.zero(out.address, bytes)?;
        self.stream.record(&self.start)?;
        self.stream.launch(function, count.div_ceil(block).max(1), block, &params)?;
        self.stream.record(&self.done)?;
        // SAFETY: the values' memory and the results have at least this size, and the code below
        // waits for the results.
        unsafe { self.stream.download(out.address, results, 0, bytes as usize) }?;
        let copied = Event::new()?;
        self.stream.record(&copied)?;
        copied.wait()?;
        let device_nanos = self.done.nanos_since(&self.start)?;
        let arrays = self.arrays.iter().map(|memory| memory.bytes).sum::<u64>();
        let device_bytes = bytes + arrays + self.restored.bytes();
        let report = Report::Values { device_nanos, device_bytes };
        outlet.send(&report, &results.bytes()[..bytes as usize]);
        Ok(Ok(()))
    }

    fn make_room(&mut self, bytes: u64) -> Call<()> {
        if self.out.as_ref().is_none_or(|memory| memory.bytes < bytes) {
            self.out = None;
            self.out = Some(Memory::allocate(bytes)?);
        }
        if self.results.as_ref().is_none_or(|memory| (memory.len() as u64) < bytes) {
            self.results = None;
            self.results = Some(Pinned::allocate(usize::try_from(bytes).unwrap_or(usize::MAX))?);
        }
        Ok(())
    }
}

/// Address and size of a variable in bytes.
type Range = (u64, u64);

/// Variables that a program can write. Their first values are kept on the device and written again
/// before every later chunk, so that no chunk sees what another one wrote.
#[derive(Default)]
struct Restored {
    zero: Vec<Range>,
    others: Vec<Range>,
    /// The first values of the others, one after another.
    values: Option<Memory>,
    /// Whether the first chunk was prepared.
    begun: bool,
}

impl Restored {
    /// Adds a variable. `is_zero` tells that its first value is zero.
    fn add(&mut self, range: Range, is_zero: bool) {
        match is_zero {
            true => self.zero.push(range),
            false => self.others.push(range),
        }
    }

    /// Returns the size of the kept values in bytes.
    fn bytes(&self) -> u64 {
        self.values.as_ref().map_or(0, |memory| memory.bytes)
    }

    /// Prepares the variables for a chunk. Call it after all of them have their first values. A
    /// call that fails for lack of memory can be repeated.
    fn prepare(&mut self, stream: &Stream) -> Call<()> {
        if self.begun {
            self.copy(stream, |variable, kept| (variable, kept))?;
            return self.zero.iter().try_for_each(|(address, bytes)| stream.zero(*address, *bytes));
        }
        if !self.others.is_empty() {
            // What was written into the variables must have arrived.
            call("cuCtxSynchronize", result::ctx::synchronize())?;
            self.values = Some(Memory::allocate(self.others.iter().map(|(_, bytes)| bytes).sum())?);
            self.copy(stream, |variable, kept| (kept, variable))?;
        }
        self.begun = true;
        Ok(())
    }

    /// Copies between the variables and their kept values. `ends` gives target and source.
    fn copy(&self, stream: &Stream, ends: impl Fn(u64, u64) -> (u64, u64)) -> Call<()> {
        let mut kept = self.values.as_ref().map_or(0, |memory| memory.address);
        for (variable, bytes) in &self.others {
            let (to, from) = ends(*variable, kept);
            // SAFETY: both ranges are allocated, and live as long as the program.
            unsafe { stream.copy(to, from, *bytes) }?;
            kept += bytes;
        }
        Ok(())
    }
}

/// Compiles a user's CUDA C++ to PTX that every node of the farm accepts.
fn compile(compiler: &Nvrtc, name: &str, source: &[u8]) -> Result<String, String> {
    let source = std::str::from_utf8(source).map_err(|_| format!("`{name}` is not UTF-8 text"))?;
    crate::compute::compile(compiler, name, source).map_err(|error| error.to_string())
}
