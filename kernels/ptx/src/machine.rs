//! The machine: memory, loaded modules, launches. How instructions run is `run`'s.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::memory::Memory;
use crate::module::{Kernel, Module};
use crate::parse::SHARED_BYTES_MAX;
use crate::profile::{Counters, Profile};
use crate::run::{Core, Launch, Output, Stopped, Tracer, grid};
use crate::{Fault, MemoryError};

/// Blocks of a grid at most, per axis.
const GRID_MAX: [u32; 3] = [i32::MAX as u32, 65_535, 65_535];
/// Threads of a block at most, per axis.
const BLOCK_MAX: [u32; 3] = [1024, 1024, 64];

/// What a machine has and allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Bytes of device memory.
    pub memory_bytes: u64,
    /// Allows 64-bit floats.
    pub doubles: bool,
    /// Allows `ex2.approx` and its like. The results are as exact as 64 bits give them, not a
    /// GPU's.
    pub approximate: bool,
    /// Notes which instructions run ([`Machine::executed_lines`]).
    pub coverage: bool,
    /// Counts what warps do ([`Machine::take_profile`]). Much slower.
    pub profile: bool,
}

impl Default for Settings {
    /// 1 GiB, and nothing whose bits are not the host's.
    fn default() -> Settings {
        Settings {
            memory_bytes: 1 << 30,
            doubles: false,
            approximate: false,
            coverage: false,
            profile: false,
        }
    }
}

/// When a launch ends at the latest.
#[derive(Clone, Copy, Debug)]
pub struct Limits<'a> {
    /// Instructions of all threads together, looked at every 65,536 of them.
    pub steps: u64,
    /// Ends the launch soon after it is set.
    pub cancel: Option<&'a AtomicBool>,
    /// Block of a row that runs first, modulo their number; the others follow. A kernel must not
    /// depend on it.
    pub first_block: u32,
}

impl Default for Limits<'_> {
    /// None.
    fn default() -> Self {
        Limits { steps: u64::MAX, cancel: None, first_block: 0 }
    }
}

/// What a launch did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Instructions of all threads. A guarded instruction that runs counts twice.
    pub steps: u64,
    /// Threads run.
    pub threads: u64,
}

/// A module in a machine: its variables have addresses. Good for the machine that loaded it.
#[derive(Debug)]
pub struct LoadedModule {
    pub(crate) module: Arc<Module>,
    /// What the slots of each function hold when it begins, addresses filled in.
    pub(crate) images: Vec<Vec<u64>>,
    addresses: Vec<u64>,
    number: u64,
}

impl LoadedModule {
    /// What was loaded.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// Address and size of a variable.
    pub fn variable(&self, name: &str) -> Option<(u64, u64)> {
        let at = self.module.variables.iter().position(|variable| variable.name == name)?;
        Some((*self.addresses.get(at)?, self.module.variables[at].bytes))
    }
}

/// A device made of software: runs kernels on the calling thread, deterministically.
///
/// Blocks run in order, and within a block threads in order, each until it ends or waits. New
/// memory, shared memory and locals hold 0xCD in every byte; registers hold it until they are
/// written, a predicate 1.
pub struct Machine {
    memory: Memory,
    settings: Settings,
    loaded: u64,
    executed: BTreeMap<u64, Vec<Vec<bool>>>,
    /// By module and kernel.
    counters: BTreeMap<(u64, String), Counters>,
    output: Output,
}

impl Machine {
    /// A machine with nothing in its memory.
    pub fn new(settings: Settings) -> Machine {
        Machine {
            memory: Memory::new(settings.memory_bytes),
            settings,
            loaded: 0,
            executed: BTreeMap::new(),
            counters: BTreeMap::new(),
            output: Output::default(),
        }
    }

    /// Bytes of device memory.
    pub fn memory_bytes(&self) -> u64 {
        self.memory.capacity()
    }

    /// Bytes that are not allocated.
    pub fn free_bytes(&self) -> u64 {
        self.memory.capacity() - self.memory.used()
    }

    /// New memory, aligned to anything up to 64 GiB. Its address is never used again.
    ///
    /// # Errors
    /// [`MemoryError::Full`]
    pub fn allocate(&mut self, bytes: u64) -> Result<u64, MemoryError> {
        self.memory.allocate(bytes)
    }

    /// Gives memory back.
    ///
    /// # Errors
    /// [`MemoryError::NotAllocated`] for anything but an address from [`Machine::allocate`], once.
    pub fn free(&mut self, address: u64) -> Result<(), MemoryError> {
        self.memory.free(address)
    }

    /// Start and length of the allocation that holds an address.
    pub fn allocation(&self, address: u64) -> Option<(u64, u64)> {
        self.memory.range(address)
    }

    /// Copies into device memory.
    ///
    /// # Errors
    /// [`MemoryError::OutOfBounds`]; nothing is written then.
    pub fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), MemoryError> {
        self.memory.host_slice_mut(address, bytes.len() as u64)?.copy_from_slice(bytes);
        Ok(())
    }

    /// Copies out of device memory.
    ///
    /// # Errors
    /// [`MemoryError::OutOfBounds`]; nothing is read then.
    pub fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), MemoryError> {
        bytes.copy_from_slice(self.memory.host_slice(address, bytes.len() as u64)?);
        Ok(())
    }

    /// Sets every byte of a range.
    ///
    /// # Errors
    /// [`MemoryError::OutOfBounds`]; nothing is written then.
    pub fn fill(&mut self, address: u64, byte: u8, bytes: u64) -> Result<(), MemoryError> {
        self.memory.host_slice_mut(address, bytes)?.fill(byte);
        Ok(())
    }

    /// Copies within device memory; the ranges may overlap.
    ///
    /// # Errors
    /// [`MemoryError::OutOfBounds`]; nothing is written then.
    pub fn copy(&mut self, to: u64, from: u64, bytes: u64) -> Result<(), MemoryError> {
        let data = self.memory.host_slice(from, bytes)?.to_vec();
        self.write(to, &data)
    }

    /// Gives the module's variables memory and their first values.
    ///
    /// # Errors
    /// [`MemoryError::Full`] where they do not fit; nothing is kept then.
    pub fn load(&mut self, module: &Arc<Module>) -> Result<LoadedModule, MemoryError> {
        let mut addresses = Vec::new();
        for variable in &module.variables {
            match self.memory.allocate(variable.bytes) {
                Ok(address) => {
                    self.fill(address, 0, variable.bytes)?;
                    self.write(address, &variable.initial)?;
                    addresses.push(address);
                }
                Err(error) => {
                    addresses.iter().try_for_each(|address| self.memory.free(*address))?;
                    return Err(error);
                }
            }
        }
        let mut images = Vec::new();
        for function in &module.functions {
            let mut image = function.image.clone();
            for relocation in &function.relocations {
                let address = addresses[relocation.variable as usize];
                image[relocation.slot as usize] = address.wrapping_add(relocation.addend);
            }
            images.push(image);
        }
        self.loaded += 1;
        let loaded =
            LoadedModule { module: Arc::clone(module), images, addresses, number: self.loaded };
        if self.settings.coverage {
            let none = module.functions.iter().map(|function| vec![false; function.code.len()]);
            self.executed.insert(loaded.number, none.collect());
        }
        Ok(loaded)
    }

    /// Gives back the memory of a module's variables.
    ///
    /// # Errors
    /// [`MemoryError::NotAllocated`] where another machine loaded it.
    pub fn unload(&mut self, loaded: LoadedModule) -> Result<(), MemoryError> {
        self.executed.remove(&loaded.number);
        self.counters.retain(|(number, _), _| *number != loaded.number);
        loaded.addresses.iter().try_for_each(|address| self.memory.free(*address))
    }

    /// Runs a kernel to its end. `shared_bytes` are those that the launch adds to the kernel's own.
    ///
    /// # Errors
    /// [`Fault`] where the launch does not fit the kernel, or a thread does what it must not.
    #[expect(clippy::too_many_arguments, reason = "a launch has these seven, as in every driver")]
    pub fn launch(
        &mut self,
        loaded: &LoadedModule,
        kernel: &str,
        grid_size: [u32; 3],
        block_size: [u32; 3],
        shared_bytes: u32,
        parameters: &[u8],
        limits: &Limits<'_>,
    ) -> Result<Stats, Fault> {
        let found =
            loaded.module.kernel(kernel).ok_or_else(|| Fault::NoKernel(kernel.to_owned()))?;
        check_shape(found, grid_size, block_size, shared_bytes, parameters)
            .map_err(|what| Fault::Launch { kernel: kernel.to_owned(), what })?;
        let shared_dynamic = found.shared_bytes.next_multiple_of(16);
        let launch = Launch {
            loaded,
            function: found.function,
            blocks: grid_size,
            first_block: limits.first_block,
            threads: block_size,
            shared_bytes: (shared_dynamic + shared_bytes) as usize,
            shared_dynamic,
            parameters,
        };
        let counters = self.settings.profile.then(|| {
            let key = (loaded.number, kernel.to_owned());
            self.counters.entry(key).or_insert_with(|| Counters::new(&loaded.module))
        });
        let mut core = Core {
            memory: &mut self.memory,
            shared: Vec::new(),
            output: &mut self.output,
            settings: self.settings,
            steps: 0,
            pause_at: 0,
            steps_max: limits.steps,
            cancel: limits.cancel,
            executed: self
                .executed
                .get_mut(&loaded.number)
                .map(Vec::as_mut_slice)
                .unwrap_or_default(),
            tracer: counters.map(Tracer::new),
        };
        let outcome = grid(&mut core, &launch);
        if let Some(tracer) = &mut core.tracer {
            tracer.counters.end_launch();
        }
        let threads =
            [grid_size, block_size].iter().flatten().map(|count| u64::from(*count)).product();
        let stats = Stats { steps: core.steps, threads };
        outcome.map(|()| stats).map_err(|stopped| fault(found, loaded, &stopped))
    }

    /// Takes what kernels printed since the last call. Of more than 1 MiB, the oldest is lost.
    pub fn take_printed(&mut self) -> Vec<u8> {
        self.output.take_printed()
    }

    /// Takes the text of the first assertion that failed since the last call: where, and which.
    pub fn take_assertion(&mut self) -> Option<String> {
        self.output.assertion.take()
    }

    /// Takes what the launches of each kernel of a module did since the last call, where
    /// [`Settings::profile`] asks for it.
    pub fn take_profile(&mut self, loaded: &LoadedModule) -> BTreeMap<String, Profile> {
        let of_module = self.counters.extract_if(.., |(number, _), _| *number == loaded.number);
        of_module.map(|((_, name), of)| (name, of.told(&loaded.module))).collect()
    }

    /// Lines of the module's text whose instructions ran, where [`Settings::coverage`] asks for it.
    pub fn executed_lines(&self, loaded: &LoadedModule) -> BTreeSet<u32> {
        let Some(executed) = self.executed.get(&loaded.number) else { return BTreeSet::new() };
        let functions = loaded.module.functions.iter().zip(executed);
        let lines = functions.flat_map(|(function, executed)| function.lines.iter().zip(executed));
        lines.filter(|(_, executed)| **executed).map(|(line, _)| *line).collect()
    }
}

fn check_shape(
    kernel: &Kernel,
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
    parameters: &[u8],
) -> Result<(), String> {
    let within = |size: [u32; 3], most: [u32; 3]| {
        size.iter().zip(most).all(|(n, most)| (1..=most).contains(n))
    };
    if !within(grid, GRID_MAX) {
        return Err(format!("a grid of {grid:?} blocks"));
    }
    let threads = block.iter().fold(1u32, |product, n| product.saturating_mul(*n));
    if !within(block, BLOCK_MAX) || threads > kernel.threads_max {
        return Err(format!(
            "a block of {block:?} threads, where {} are the most",
            kernel.threads_max
        ));
    }
    if u64::from(kernel.shared_bytes) + u64::from(shared_bytes) > SHARED_BYTES_MAX {
        return Err(format!(
            "{shared_bytes} more bytes of shared memory than its own {}",
            kernel.shared_bytes
        ));
    }
    if parameters.len() != kernel.parameter_bytes as usize {
        return Err(format!(
            "{} bytes of parameters, where it has {}",
            parameters.len(),
            kernel.parameter_bytes
        ));
    }
    Ok(())
}

fn fault(kernel: &Kernel, loaded: &LoadedModule, stopped: &Stopped) -> Fault {
    let line = stopped.place.and_then(|(function, at)| {
        loaded.module.functions.get(function as usize)?.lines.get(at).copied()
    });
    let line = line.unwrap_or(0);
    Fault::Thread {
        kernel: kernel.name.clone(),
        line,
        instruction: loaded.module.line(line).to_owned(),
        block: stopped.position.block,
        thread: stopped.position.thread,
        cause: stopped.cause,
    }
}
