//! Compute jobs on a device: one program at a time, its inputs in device memory, and one chunk
//! after another. A separate process serves them, so that a user's kernel that fails affects only
//! this process.

use super::driver::{Call, Context, Event, Memory, Pinned, Stream, call, is_out_of_memory, memory};
use super::{guard, module};
use crate::compute::Header;
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
    /// Name and bytes of every header for the next program to compile.
    headers: Vec<(String, Vec<u8>)>,
    arrays: Vec<Memory>,
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
            headers: Vec::new(),
            arrays: Vec::new(),
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
            Order::Header { name } => self.headers.push((name, payload)),
            Order::Compile { name } => {
                let headers = std::mem::take(&mut self.headers);
                let compiled =
                    Nvrtc::find().map(|compiler| compile(&compiler, (&name, &payload), &headers));
                match compiled {
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
            Order::Variable { name } => self.set(&name, &payload)?,
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

    /// Writes a variable of the program.
    fn set(&mut self, name: &str, bytes: &[u8]) -> Call<()> {
        let Some(loaded) = &self.program else { return Ok(()) };
        let symbol = CString::new(name).unwrap_or_default();
        // SAFETY: the module is loaded.
        let found = unsafe { result::module::get_global(loaded.module, symbol) };
        match found {
            Ok((address, length)) if length == bytes.len() => {
                // SAFETY: the variable has this length.
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
                self.set(name, &params.to_bytes())
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
        if let Err(error) = self.make_room(bytes) {
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
        let device_bytes = bytes + self.arrays.iter().map(|memory| memory.bytes).sum::<u64>();
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

/// Compiles a user's CUDA C++ to PTX that every node of the farm accepts.
fn compile(
    compiler: &Nvrtc,
    (name, source): (&str, &[u8]),
    headers: &[(String, Vec<u8>)],
) -> Result<String, String> {
    let text = |name: &str, bytes: &[u8]| {
        let text = std::str::from_utf8(bytes).map(str::to_owned);
        text.map_err(|_| format!("`{name}` is not UTF-8 text"))
    };
    let source = text(name, source)?;
    let header = |(name, bytes): &(String, Vec<u8>)| {
        Ok(Header { name: name.clone(), text: text(name, bytes)? })
    };
    let headers = headers.iter().map(header).collect::<Result<Vec<_>, String>>()?;
    crate::compute::compile(compiler, (name, &source), &headers).map_err(|error| error.to_string())
}
