//! Modules: PTX as a driver takes or refuses it, with the log that it writes; functions and
//! variables. Does not launch.

use super::context::Context;
use super::{driver, locked};
use crate::config::{FaultKind, Occasion};
use crate::fault;
use crate::status::Status;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::SeqCst};
use tessera_ptx::{Kernel, LoadedModule, Module};

/// A loaded module.
pub(crate) struct Image {
    pub(crate) context: Arc<Context>,
    pub(crate) loaded: LoadedModule,
    pub(crate) module: Arc<Module>,
    /// From 1, in the order in which this process loaded them.
    pub(crate) number: u64,
}

/// A kernel of a loaded module.
pub(crate) struct Function {
    pub(crate) context: Arc<Context>,
    pub(crate) image: Arc<Image>,
    pub(crate) kernel: Kernel,
    /// Dynamic shared memory that a launch may ask for, bytes.
    pub(crate) shared_bytes_max: AtomicI32,
}

/// Most shared memory of a kernel that is declared with a size, bytes.
const STATIC_SHARED_BYTES_MAX: u32 = 48 << 10;
/// Most shared memory of a block, bytes (compute capability 8.6).
const SHARED_BYTES_MAX: i32 = 99 << 10;

/// Why a module was refused: the code, and what the JIT compiler would have said.
pub(crate) struct Refusal {
    pub(crate) status: Status,
    pub(crate) log: String,
}

impl Refusal {
    fn new(status: Status, log: impl Into<String>) -> Refusal {
        Refusal { status, log: log.into() }
    }
}

impl From<Status> for Refusal {
    fn from(status: Status) -> Refusal {
        Refusal::new(status, "")
    }
}

/// The newest PTX that a driver of this version takes, as (major, minor): PTX ISA, "release notes".
fn ptx_version_max(driver: i32) -> (u32, u32) {
    let (major, minor) = ((driver / 1000).unsigned_abs(), (driver % 1000 / 10).unsigned_abs());
    match major {
        0..=10 => (6, 5),
        11 => (7, minor),
        12 if minor <= 5 => (8, minor),
        12 => (8, minor - 1),
        major => (major - 4, minor),
    }
}

/// Loads an image into a context.
pub(crate) fn load(context: &Arc<Context>, image: &[u8]) -> Result<Arc<Image>, Refusal> {
    context.alive()?;
    let page = context.page();
    page.loads.fetch_add(1, SeqCst);
    let newest = ptx_version_max(driver().config.driver);
    let struck = fault::strike(driver().faults(context.target), page, Occasion::Load, ("", 0));
    let capability = driver().device_of(context.target).capability;
    let module = read(code_of(image, capability).unwrap_or(image))?;
    let version = module.version();
    if struck == Some(FaultKind::UnsupportedPtx) || version > newest {
        let log = format!(
            "ptxas application ptx input, line 1; fatal   : Unsupported .version {}.{}; current \
                version is '{}.{}'",
            version.0, version.1, newest.0, newest.1
        );
        return Err(Refusal::new(Status::UNSUPPORTED_PTX_VERSION, log));
    }
    let [major, minor] = driver().device_of(context.target).capability;
    if target_of(&module).is_some_and(|target| target > major * 10 + minor) {
        let log = "ptxas application ptx input, line 1; error   : SM version specified by \
        .target is higher than \
                   default SM version assumed";
        return Err(Refusal::new(Status::INVALID_PTX, log));
    }
    if let Some(kernel) =
        module.kernels().iter().find(|kernel| kernel.shared_bytes > STATIC_SHARED_BYTES_MAX)
    {
        let log = format!(
            "ptxas error   : Entry function '{}' uses too much shared data ({:#x} bytes, {:#x} \
                max)",
            kernel.name, kernel.shared_bytes, STATIC_SHARED_BYTES_MAX
        );
        return Err(Refusal::new(Status::INVALID_PTX, log));
    }
    let module = Arc::new(module);
    let loaded = locked(&context.machine).load(&module).map_err(|error| {
        Refusal::new(Status::OUT_OF_MEMORY, format!("variables of the module: {error}"))
    })?;
    for variable in module.variables() {
        if let Some((address, bytes)) = loaded.variable(&variable.name) {
            context.admit(address, bytes);
        }
    }
    static LOADED: AtomicU64 = AtomicU64::new(0);
    let number = LOADED.fetch_add(1, SeqCst) + 1;
    Ok(Arc::new(Image { context: context.clone(), loaded, module, number }))
}

/// First bytes of what stands for machine code here: an ELF file whose header is followed by its
/// target, such as `sm_86`, a line's end, and the PTX that it would have been made of.
const CODE: &[u8] = b"\x7fELFtessera-fake ";

/// Returns the PTX of what stands for machine code, if a device of this capability runs it: one of
/// the same major number, and no older.
fn code_of(image: &[u8], [major, minor]: [i32; 2]) -> Option<&[u8]> {
    let rest = image.strip_prefix(CODE)?;
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    let target: i32 = std::str::from_utf8(&rest[..end]).ok()?.strip_prefix("sm_")?.parse().ok()?;
    (target / 10 == major && target % 10 <= minor).then(|| &rest[end + 1..])
}

fn read(image: &[u8]) -> Result<Module, Refusal> {
    // A cubin is an ELF file, a fat binary begins with its magic number: machine code, which
    // nothing here can run.
    if image.starts_with(b"\x7fELF") || image.starts_with(&0xBA55_ED50_u32.to_le_bytes()) {
        return Err(Refusal::new(
            Status::NO_BINARY_FOR_GPU,
            "machine code; the fake driver executes PTX alone",
        ));
    }
    let text = std::str::from_utf8(image).map_err(|_| Status::INVALID_IMAGE)?;
    if !text.contains(".version") {
        return Err(Status::INVALID_IMAGE.into());
    }
    Module::parse(text).map_err(|error| {
        let log =
            format!("ptxas application ptx input, line {}; error   : {}", error.line, error.what);
        Refusal::new(Status::INVALID_PTX, log)
    })
}

/// `sm_86` as 86; `None` for what is no plain number.
fn target_of(module: &Module) -> Option<i32> {
    let digits: String = module.target().chars().skip_while(|c| !c.is_ascii_digit()).collect();
    digits.trim_end_matches(|c: char| !c.is_ascii_digit()).parse().ok()
}

impl Image {
    /// A kernel by name.
    pub(crate) fn function(self: &Arc<Image>, name: &str) -> Result<Arc<Function>, Status> {
        let kernel = self.module.kernel(name).ok_or(Status::NOT_FOUND)?.clone();
        Ok(Arc::new(Function {
            context: self.context.clone(),
            image: self.clone(),
            shared_bytes_max: AtomicI32::new(
                (STATIC_SHARED_BYTES_MAX - kernel.shared_bytes).cast_signed(),
            ),
            kernel,
        }))
    }

    /// Address and size of a variable.
    pub(crate) fn variable(&self, name: &str) -> Result<(u64, u64), Status> {
        self.loaded.variable(name).ok_or(Status::NOT_FOUND)
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        for variable in self.module.variables() {
            if let Some((address, _)) = self.loaded.variable(&variable.name) {
                self.context.withdraw(address);
                // The memory of a machine that is going away goes with it.
                let _ = locked(&self.context.machine).free(address);
            }
        }
    }
}

impl Function {
    /// `cuFuncGetAttribute`, by cuda.h's `CUfunction_attribute`.
    pub(crate) fn attribute(&self, attribute: u32) -> Result<i32, Status> {
        let version = self.image.module.version();
        Ok(match attribute {
            0 => self.threads_max(),
            1 => self.kernel.shared_bytes.cast_signed(),
            2 => 0,
            3 => self.kernel.local_bytes.cast_signed(),
            4 => self.registers(),
            5 => (version.0 * 10 + version.1).cast_signed(),
            6 => {
                let [major, minor] = driver().device_of(self.context.target).capability;
                major * 10 + minor
            }
            8 => self.shared_bytes_max.load(SeqCst),
            7 | 9 | 10..=15 => 0,
            _ => return Err(Status::INVALID_VALUE),
        })
    }

    /// Registers of a thread: the interpreter has no limit, so the rack says a number. A compiler
    /// keeps to the bounds of a kernel's blocks.
    pub(crate) fn registers(&self) -> i32 {
        let registers = driver().device_of(self.context.target).registers.max(1);
        match self.kernel.has_bounds {
            true => {
                let threads = self.kernel.threads_max.max(1).cast_signed();
                registers.min(super::launch::REGISTERS_PER_MULTIPROCESSOR / threads)
            }
            false => registers,
        }
    }

    /// Threads of a block at most: by the kernel's bounds, and by its registers in whole warps.
    pub(crate) fn threads_max(&self) -> i32 {
        let by_registers = super::launch::REGISTERS_PER_MULTIPROCESSOR / self.registers() / 32 * 32;
        self.kernel.threads_max.cast_signed().min(by_registers)
    }

    /// Lets launches ask for more dynamic shared memory.
    pub(crate) fn allow_shared(&self, bytes: i32) -> Result<(), Status> {
        let most = SHARED_BYTES_MAX - self.kernel.shared_bytes.cast_signed();
        if !(0..=most).contains(&bytes) {
            return Err(Status::INVALID_VALUE);
        }
        self.shared_bytes_max.store(bytes, SeqCst);
        Ok(())
    }

    /// Blocks of this many threads that a multiprocessor holds at once.
    pub(crate) fn blocks_per_multiprocessor(&self, threads: i32, shared_bytes: usize) -> i32 {
        let threads = threads.max(1);
        let device = driver().device_of(self.image.context.target);
        let by_threads = device.threads_per_multiprocessor() / threads;
        let by_registers =
            super::launch::REGISTERS_PER_MULTIPROCESSOR / (self.registers() * threads);
        let shared = shared_bytes as u64 + u64::from(self.kernel.shared_bytes);
        let by_shared =
            (100_u64 << 10).checked_div(shared).map_or(i32::MAX, |blocks| blocks.min(16) as i32);
        by_threads.min(by_registers).min(by_shared).min(16)
    }
}

#[cfg(test)]
mod tests {
    use super::ptx_version_max;

    #[test]
    fn drivers_know_the_ptx_of_their_time() {
        let known = [
            (11_000, (7, 0)),
            (11_080, (7, 8)),
            (12_000, (8, 0)),
            (12_080, (8, 7)),
            (12_090, (8, 8)),
            (13_000, (9, 0)),
        ];
        for (driver, ptx) in known {
            assert_eq!(ptx_version_max(driver), ptx, "{driver}");
        }
    }
}
