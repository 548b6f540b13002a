//! Compute jobs on a device: one program at a time, its inputs in device memory, and one chunk
//! after another. A separate process serves them, so that a user's kernel that fails affects only
//! this process.

use super::driver::{
    Call, Context, Event, Memory, Pinned, Shape, Stream, call, is_out_of_memory, memory,
};
use super::restored::Restored;
use super::{guard, module};
use crate::compute::{Compiled, Header};
use crate::device::reading::same_uuid;
use crate::device::worker::Outlet;
use crate::device::worker::message::{
    KernelCode, Opened, Order, Refusal, Report, UnitError, Written,
};
use cudarc::driver::result;
use cudarc::driver::result::function::{get_function_attribute, set_function_attribute};
use cudarc::driver::sys::{self, CUfunction_attribute_enum as FunctionAttribute};
use std::ffi::CString;
use std::time::{Duration, Instant};
use tessera_kernels::compute::{ArrayParams, ChunkParams, OutputParams};
use tessera_kernels::cuda::COMPUTE_CAPABILITY_MIN;
use tessera_nvrtc::Nvrtc;
use tessera_protocol::compute::PtxNeeds;

/// A loaded program. A user's is loaded again for every frame, so that no variable keeps a value of
/// another job.
struct Loaded {
    module: sys::CUmodule,
    function: sys::CUfunction,
    block: [u32; 3],
    shared_bytes: u32,
}

/// Variables that hold an address in one of the two buffers that the steps of a frame write in
/// turn: of the outputs, and of the fed array.
struct Turns {
    variables: Vec<Turn>,
    /// Addresses as the variables have them, in device memory; None without variables.
    words: Option<Memory>,
}

/// A variable and the words that it takes.
struct Turn {
    /// Address of the variable's field `data`.
    variable: u64,
    /// Word while a step writes the buffer of the chunk's values, and while it writes the other.
    /// None leaves the variable as it is.
    to_out: Option<u64>,
    to_other: Option<u64>,
    /// Word for the first step and after the last one; None leaves it as the steps do.
    at_rest: Option<u64>,
}

const _: () = assert!(std::mem::offset_of!(ArrayParams, data) == 0);
const _: () = assert!(std::mem::offset_of!(OutputParams, data) == 0);
const WORD: usize = size_of::<u64>();

/// An open device with its program and inputs.
pub(in crate::device::worker) struct Serving {
    _context: Context,
    /// Compute capability of the device.
    capability: (u32, u32),
    stream: Stream,
    start: Event,
    done: Event,
    program: Option<Loaded>,
    /// Name and bytes of every header for the next program to compile.
    headers: Vec<(String, Vec<u8>)>,
    /// Inputs by their variables.
    arrays: Vec<(String, Memory)>,
    /// Variables that the program can write.
    restored: Restored,
    out: Option<Memory>,
    /// The buffer that every second step of a frame writes.
    other: Option<Memory>,
    /// Bytes of a block's shared memory: the default and the most.
    shared_bytes_max: (u32, u32),
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
        let unopened = |error| Refusal::of_context(ordinal, error);
        let context = Context::open(ordinal).map_err(unopened)?;
        let shared = super::driver::shared_bytes_max(ordinal).map_err(Refusal::Driver)?;
        let serving = Serving::new(context, device.capability, shared).map_err(Refusal::Driver)?;
        let (free_bytes, _) = memory().map_err(Refusal::Driver)?;
        let start = begun.elapsed();
        let (compile, batch_paths) = (Duration::ZERO, 0);
        let code = KernelCode::default();
        let opened =
            Opened { device, driver_version, free_bytes, batch_paths, start, compile, code };
        Ok((serving, opened))
    })
}

impl Serving {
    fn new(context: Context, capability: (u32, u32), shared_bytes_max: (u32, u32)) -> Call<Self> {
        Ok(Self {
            _context: context,
            capability,
            stream: Stream::new()?,
            start: Event::new()?,
            done: Event::new()?,
            program: None,
            headers: Vec::new(),
            arrays: Vec::new(),
            restored: Restored::default(),
            out: None,
            other: None,
            shared_bytes_max,
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
        let obeyed = self.execute(order, payload, outlet);
        flush_printed();
        obeyed
    }

    fn execute(&mut self, order: Order, payload: Vec<u8>, outlet: &Outlet) -> Call<()> {
        match order {
            Order::Header { name } => self.headers.push((name, payload)),
            Order::Compile { name } => {
                let headers = std::mem::take(&mut self.headers);
                let compiled =
                    Nvrtc::find().map(|compiler| compile(&compiler, (&name, &payload), &headers));
                match compiled {
                    Ok(Ok(Compiled { ptx, log })) => {
                        outlet.send(&Report::Compiled { log }, ptx.as_bytes())
                    }
                    Ok(Err(problem)) => {
                        outlet.send(&Report::Unusable(UnitError::Refused(problem)), &[])
                    }
                    Err(error) => outlet.send(&Report::NoCompiler(error.to_string()), &[]),
                }
            }
            Order::Program { entry, block, shared_bytes } => {
                let loaded = self.load(&entry, payload, (block, shared_bytes))?;
                outlet.send(&loaded.map_or_else(|report| report, |()| Report::Loaded), &[]);
            }
            Order::OtherInputs => {
                self.problem = None;
                self.arrays.clear();
            }
            Order::Variable { name } => self.set(&name, &payload, true)?,
            Order::Restore { name, is_zero } => self.restore(&name, is_zero),
            Order::Array { name, element, shape, bytes } => {
                self.array(&name, (element, &shape), bytes)?
            }
            Order::ArrayBytes { offset } => self.fill(offset, &payload)?,
            Order::Output { name, element, channels } => {
                let params = OutputParams { data: 0, element, channels };
                self.set(&name, &params.to_bytes(), false)?;
            }
            Order::Chunk { params, grid, written, bytes } => {
                match self.problem.clone().map_or_else(
                    || self.run(&params, (grid, &written), bytes, outlet),
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

    /// Loads a program. The inner error is the report of a program that cannot be used.
    fn load(
        &mut self,
        entry: &str,
        text: Vec<u8>,
        (block, shared_bytes): ([u32; 3], u32),
    ) -> Call<Result<(), Report>> {
        let unusable = |problem: String| Ok(Err(Report::Unusable(UnitError::Refused(problem))));
        self.problem = None;
        self.arrays.clear();
        self.restored = Restored::default();
        if let Some(old) = self.program.take() {
            // SAFETY: this process loaded the module, and nothing uses it any more, because chunks
            // are run to their end.
            call("cuModuleUnload", unsafe { result::module::unload(old.module) })?;
        }
        let Ok(ptx) = std::str::from_utf8(&text) else { return unusable("it is not text".into()) };
        let module = match module::compile(ptx) {
            Ok(module) => module,
            Err(Refusal::Kernels { error, log }) => {
                let problem = format!("the driver's compiler refuses it ({error}): {log}");
                return match is_of_this_driver(&error, &log, ptx, self.capability) {
                    true => Ok(Err(Report::Unable(problem))),
                    false => unusable(problem),
                };
            }
            Err(other) => return unusable(other.to_string()),
        };
        let name = CString::new(entry).unwrap_or_default();
        // SAFETY: the module is loaded.
        let function =
            call("cuModuleGetFunction", unsafe { result::module::get_function(module, name) })?;
        self.program = Some(Loaded { module, function, block, shared_bytes });
        match prepare(function, (block, shared_bytes), self.shared_bytes_max)? {
            Ok(()) => Ok(Ok(())),
            Err(problem) => unusable(problem),
        }
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
            Err(error) if is_out_of_memory(&error) && self.give_up_values() => {
                Memory::allocate(bytes.max(1))
            }
            other => other,
        };
        match allocated {
            Ok(memory) => {
                let params = ArrayParams::new(memory.address, element, shape);
                self.arrays.push((name.to_owned(), memory));
                self.set(name, &params.to_bytes(), false)
            }
            Err(error) if is_out_of_memory(&error) => self.short_of(bytes),
            Err(error) => Err(error),
        }
    }

    /// Frees the buffers of values; returns whether there were any.
    fn give_up_values(&mut self) -> bool {
        let (out, other) = (self.out.take(), self.other.take());
        out.is_some() || other.is_some()
    }

    fn array_bytes(&self) -> u64 {
        self.arrays.iter().map(|(_, memory)| memory.bytes).sum()
    }

    fn short_of(&mut self, bytes: u64) -> Call<()> {
        let needed = bytes + self.array_bytes();
        let available = memory()?.0 + self.array_bytes();
        self.problem.get_or_insert(UnitError::OutOfMemory { needed, available });
        Ok(())
    }

    /// Writes the next bytes of the last array.
    fn fill(&mut self, offset: u64, bytes: &[u8]) -> Call<()> {
        let last = self.arrays.last().filter(|_| self.problem.is_none());
        let Some((_, memory)) = last else {
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

    /// Runs a chunk to its end, with all its steps, and sends its values.
    fn run(
        &mut self,
        params: &[u8],
        (grid, written): ([u32; 3], &[Written]),
        bytes: u64,
        outlet: &Outlet,
    ) -> Call<Result<(), UnitError>> {
        let refused = |problem: &str| Ok(Err(UnitError::Refused(problem.to_owned())));
        let Some(Loaded { function, block, shared_bytes, .. }) = self.program else {
            return refused("no program is loaded");
        };
        let Some(params) = ChunkParams::from_bytes(params) else {
            return refused("a chunk without parameters");
        };
        let buffers = if params.steps > 1 { 2 } else { 1 };
        let room = self.make_room(bytes, buffers > 1);
        let prepared = room.and_then(|()| self.restored.prepare(&self.stream));
        if let Err(error) = prepared {
            if !is_out_of_memory(&error) {
                return Err(error);
            }
            self.short_of(bytes.saturating_mul(buffers))?;
            return Ok(self.problem.take().map_or(Ok(()), Err));
        }
        let Some(turns) = self.turns(written, buffers > 1)? else {
            return refused("an output or a fed input that the program does not have");
        };
        // Copies into variables and arrays must be complete before this stream continues.
        call("cuCtxSynchronize", result::ctx::synchronize())?;
        outlet.send(&Report::Begun, &[]);
        // Named outputs say by themselves where their values go.
        let is_plain = written.iter().all(|output| output.name.is_empty());
        let shape = Shape { grid, block, shared_bytes };
        self.stream.record(&self.start)?;
        self.launch((function, shape), &params, (&turns, bytes, is_plain))?;
        self.stream.record(&self.done)?;
        let device_bytes = bytes * buffers + self.array_bytes() + self.restored.bytes();
        let (Some(out), Some(results)) = (&self.out, &mut self.results) else {
            return refused("no room for values");
        };
        // SAFETY: the values' memory and the results have at least this size, and the code below
        // waits for the results.
        unsafe { self.stream.download(out.address, results, 0, bytes as usize) }?;
        let copied = Event::new()?;
        self.stream.record(&copied)?;
        copied.wait()?;
        let device_nanos = self.done.nanos_since(&self.start)?;
        flush_printed();
        let report = Report::Values { device_nanos, device_bytes };
        outlet.send(&report, &results.bytes()[..bytes as usize]);
        Ok(Ok(()))
    }

    /// Enqueues all steps of a chunk. They write two buffers in turn, the last one the buffer of
    /// the chunk's values; the input stays as it is, for another run of the same chunk.
    fn launch(
        &self,
        (function, shape): (sys::CUfunction, Shape),
        params: &ChunkParams,
        (turns, bytes, is_plain): (&Turns, u64, bool),
    ) -> Call<()> {
        let out = self.out.as_ref().map_or(0, |memory| memory.address);
        let other = self.other.as_ref().map_or(out, |memory| memory.address);
        let steps = params.steps.max(1);
        for step in 0..steps {
            let writes_out = (steps - step) % 2 == 1;
            if step > 0 {
                self.restored.restore(&self.stream)?;
            }
            self.point(turns, |turn| match (step, turn.at_rest) {
                (0, Some(_)) => None,
                _ if writes_out => turn.to_out,
                _ => turn.to_other,
            })?;
            let to = if writes_out { out } else { other };
            self.stream.zero(to, bytes)?;
            let params = ChunkParams { step, out: if is_plain { to } else { 0 }, ..*params };
            self.stream.launch_in(function, shape, &params.to_bytes())?;
        }
        self.point(turns, |turn| turn.at_rest)
    }

    /// Enqueues copies of words into the variables.
    fn point(&self, turns: &Turns, word: impl Fn(&Turn) -> Option<u64>) -> Call<()> {
        let Some(words) = &turns.words else { return Ok(()) };
        for turn in &turns.variables {
            let Some(word) = word(turn) else { continue };
            let from = words.address + word * WORD as u64;
            // SAFETY: the variable is of the loaded module, and the words live until the chunk's
            // end.
            unsafe { self.stream.copy(turn.variable, from, WORD as u64) }?;
        }
        Ok(())
    }

    /// Finds the variables of the outputs and, for steps, of the array that one of them becomes.
    /// Puts the addresses that they take on the device. None where one is not there.
    fn turns(&self, written: &[Written], is_stepped: bool) -> Call<Option<Turns>> {
        let out = self.out.as_ref().map_or(0, |memory| memory.address);
        let other = self.other.as_ref().map_or(out, |memory| memory.address);
        let (mut variables, mut words, mut fed) = (Vec::new(), Vec::<u64>::new(), 0);
        for Written { name, offset, bytes, feed } in written {
            let first = words.len() as u64;
            words.extend([out + offset, other + offset]);
            if !name.is_empty() {
                let found = self.variable(name, OutputParams::BYTES)?;
                let Some(variable) = found else { return Ok(None) };
                let (to_out, to_other) = (Some(first), Some(first + 1));
                variables.push(Turn { variable, to_out, to_other, at_rest: None });
            }
            let Some(feed) = feed.as_ref().filter(|_| is_stepped) else { continue };
            let input =
                self.arrays.iter().find(|(name, memory)| name == feed && memory.bytes == *bytes);
            let found = self.variable(feed, ArrayParams::BYTES)?;
            let (Some((_, input)), Some(variable)) = (input, found) else { return Ok(None) };
            words.push(input.address);
            // A step that writes one buffer reads the other.
            let (to_out, to_other) = (Some(first + 1), Some(first));
            variables.push(Turn { variable, to_out, to_other, at_rest: Some(first + 2) });
            fed += 1;
        }
        if is_stepped && fed == 0 {
            return Ok(None);
        }
        if variables.is_empty() {
            return Ok(Some(Turns { variables, words: None }));
        }
        let memory = Memory::allocate((words.len() * WORD) as u64)?;
        let bytes: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
        // SAFETY: the memory has this length.
        let copied = unsafe { result::memcpy_htod_sync(memory.address, &bytes) };
        call("cuMemcpyHtoD", copied)?;
        Ok(Some(Turns { variables, words: Some(memory) }))
    }

    /// Returns the address of a variable of at least so many bytes.
    fn variable(&self, name: &str, least: usize) -> Call<Option<u64>> {
        let Some(loaded) = &self.program else { return Ok(None) };
        let symbol = CString::new(name).unwrap_or_default();
        // SAFETY: the module is loaded.
        let found = unsafe { result::module::get_global(loaded.module, symbol) };
        let (variable, length) = call("cuModuleGetGlobal", found)?;
        Ok((length >= least).then_some(variable))
    }

    fn make_room(&mut self, bytes: u64, is_stepped: bool) -> Call<()> {
        if !is_stepped {
            self.other = None;
        }
        if self.out.as_ref().is_none_or(|memory| memory.bytes < bytes) {
            self.out = None;
            self.out = Some(Memory::allocate(bytes)?);
        }
        if is_stepped && self.other.as_ref().is_none_or(|memory| memory.bytes < bytes) {
            self.other = None;
            self.other = Some(Memory::allocate(bytes)?);
        }
        if self.results.as_ref().is_none_or(|memory| (memory.len() as u64) < bytes) {
            self.results = None;
            self.results = Some(Pinned::allocate(usize::try_from(bytes).unwrap_or(usize::MAX))?);
        }
        Ok(())
    }
}

/// Writes what kernels have printed. The driver prints into C's standard output, which keeps a text
/// for a pipe until its buffer is full.
fn flush_printed() {
    unsafe extern "C" {
        fn fflush(stream: *mut std::ffi::c_void) -> std::ffi::c_int;
    }
    // SAFETY: a null pointer means all streams of the process. If one cannot be written, nobody
    // listens.
    let _ = unsafe { fflush(std::ptr::null_mut()) };
}

/// Returns whether PTX was refused because it is too new for this driver or device, and not for a
/// fault in it.
fn is_of_this_driver(error: &str, log: &str, ptx: &str, capability: (u32, u32)) -> bool {
    let part = |number: u32| u8::try_from(number).unwrap_or(u8::MAX);
    let capability = (part(capability.0), part(capability.1));
    match error {
        "CUDA_ERROR_UNSUPPORTED_PTX_VERSION" | "CUDA_ERROR_NO_BINARY_FOR_GPU" => true,
        // The driver's compiler has one code for all its errors.
        "CUDA_ERROR_INVALID_PTX" => {
            log.contains("Unsupported .version")
                || PtxNeeds::read(ptx).is_some_and(|needs| !needs.suits_device(capability))
        }
        _ => false,
    }
}

/// Checks the threads and the shared memory of a block against the kernel's registers and the
/// device, and asks for more shared memory than the default where it is needed. `limits` are the
/// device's bytes of shared memory, the default and the most.
fn prepare(
    function: sys::CUfunction,
    (block, shared_bytes): ([u32; 3], u32),
    (plain, most): (u32, u32),
) -> Call<Result<(), String>> {
    let attribute = |attribute: FunctionAttribute| {
        // SAFETY: the function is of a loaded module.
        let value =
            call("cuFuncGetAttribute", unsafe { get_function_attribute(function, attribute) });
        value.map(|value| u32::try_from(value).unwrap_or(0))
    };
    let threads = block.iter().fold(1u32, |product, edge| product.saturating_mul(*edge));
    let threads_max = attribute(FunctionAttribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?;
    if !(1..=threads_max).contains(&threads) {
        let registers = attribute(FunctionAttribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?;
        return Ok(Err(format!(
            "a block of {threads} threads is too large for this device: with {registers} registers \
                a thread it takes {threads_max} at most; use a smaller --block, or \
                __launch_bounds__({threads}) in the kernel"
        )));
    }
    let declared = attribute(FunctionAttribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?;
    let all = declared.saturating_add(shared_bytes);
    if all > most {
        return Ok(Err(format!(
            "a block needs {all} bytes of shared memory ({declared} that the kernel declares and \
                {shared_bytes} of --shared), and this device has {most}"
        )));
    }
    if all > plain {
        let value = i32::try_from(shared_bytes).unwrap_or(i32::MAX);
        let name = FunctionAttribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: as above.
        let set = unsafe { set_function_attribute(function, name, value) };
        call("cuFuncSetAttribute", set)?;
    }
    Ok(Ok(()))
}

/// Compiles a user's CUDA C++ to PTX that every node of the farm accepts.
fn compile(
    compiler: &Nvrtc,
    (name, source): (&str, &[u8]),
    headers: &[(String, Vec<u8>)],
) -> Result<Compiled, String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ptx_that_is_too_new_is_no_fault_of_the_job() {
        let new = ".version 8.0\n.target sm_90\n";
        let old = ".version 8.0\n.target sm_75\n";
        for (error, log, ptx, of_driver) in [
            ("CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "", old, true),
            ("CUDA_ERROR_NO_BINARY_FOR_GPU", "", old, true),
            ("CUDA_ERROR_INVALID_PTX", "fatal   : Unsupported .version 9.2", old, true),
            ("CUDA_ERROR_INVALID_PTX", "", new, true),
            ("CUDA_ERROR_INVALID_PTX", "line 7; error   : syntax error", old, false),
            ("CUDA_ERROR_OUT_OF_MEMORY", "", new, false),
        ] {
            assert_eq!(is_of_this_driver(error, log, ptx, (8, 6)), of_driver, "{error} {log}");
        }
    }
}
