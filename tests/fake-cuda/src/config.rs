//! What a rack consists of and what goes wrong with it: the file that `TESSERA_FAKE_CUDA` names.
//! Does nothing by itself.

use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// A rack: the driver, its devices and what is planned to go wrong.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// What `cuDriverGetVersion` says: 1000 × major + 10 × minor. Decides which PTX is too new.
    pub driver: i32,
    /// The driver package's version, as NVML says it.
    pub driver_name: String,
    /// A `CUresult` that `cuInit` gives instead of starting; 0 for none.
    pub init_error: u32,
    /// The folder in which the processes of a rack keep what they share; the configuration's own
    /// where empty.
    pub state: PathBuf,
    /// The devices, in order of their index.
    #[serde(rename = "device")]
    pub devices: Vec<Device>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            driver: 12_080,
            driver_name: "570.86.15".to_owned(),
            init_error: 0,
            state: PathBuf::new(),
            devices: Vec::new(),
        }
    }
}

/// One GPU.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Device {
    /// The product's name.
    pub name: String,
    /// `GPU-` and a UUID; made from the index where empty.
    pub uuid: String,
    /// Compute capability: major, minor.
    pub capability: [i32; 2],
    /// Device memory, bytes.
    pub memory: u64,
    /// What a context itself takes of it, bytes.
    pub context_bytes: u64,
    /// Streaming multiprocessors.
    pub multiprocessors: i32,
    /// Threads that a multiprocessor holds at once; 1536 where it is 0.
    pub threads_per_multiprocessor: i32,
    /// Registers of a thread that a kernel takes, where the bounds of its blocks leave as many.
    pub registers: i32,
    /// A pause after each launch, per instruction that the interpreter executed: makes a device
    /// slow.
    pub pause_nanos_per_step: f64,
    /// A launch lasts at least so long per instruction that the interpreter executed, its pauses
    /// not counted: the pace of a device, whatever the machine that plays it is busy with.
    pub nanos_per_step: f64,
    /// A launch lasts so many times as long as the interpreter takes for it: one device slower than
    /// another by this, however slow the machine is that plays both.
    pub stretch: f64,
    /// A pause after each launch, microseconds.
    pub pause_micros_per_launch: u64,
    /// A launch of more instructions never ends, and takes none of the host's processors for it; 0
    /// where any number is executed.
    pub steps_max: u64,
    /// Each launch begins with another of its blocks, and the same launch with another on each
    /// device, as GPUs are free to.
    pub varies_block_order: bool,
    /// Whether one process at a time has it: exclusive-process mode.
    pub exclusive: bool,
    /// A pause before each copy of a stream, microseconds: a host that reads too early reads old
    /// bytes.
    pub pause_micros_per_copy: u64,
    /// Degrees Celsius.
    pub temperature: u32,
    /// Milliwatts.
    pub power: u32,
    /// Clocks of the multiprocessors and of the memory, MHz.
    pub clocks: [u32; 2],
    /// NVML's bits for why clocks are held back.
    pub throttle_reasons: u64,
    /// ECC errors since the driver was loaded: corrected, uncorrected.
    pub ecc: [u64; 2],
    /// What is read and written down after launches.
    #[serde(rename = "watch")]
    pub watches: Vec<Watch>,
    /// MIG slices; with any, the device itself is not offered to CUDA.
    #[serde(rename = "slice")]
    pub slices: Vec<Slice>,
    /// What goes wrong.
    #[serde(rename = "fault")]
    pub faults: Vec<Fault>,
}

impl Default for Device {
    fn default() -> Device {
        Device {
            name: "Fake RTX 4000".to_owned(),
            uuid: String::new(),
            capability: [8, 6],
            memory: 1 << 30,
            context_bytes: 4 << 20,
            multiprocessors: 4,
            threads_per_multiprocessor: 0,
            registers: 64,
            pause_nanos_per_step: 0.0,
            nanos_per_step: 0.0,
            stretch: 1.0,
            pause_micros_per_launch: 0,
            steps_max: 0,
            varies_block_order: false,
            exclusive: false,
            pause_micros_per_copy: 0,
            temperature: 41,
            power: 70_000,
            clocks: [1_410, 5_001],
            throttle_reasons: 0,
            ecc: [0, 0],
            watches: Vec::new(),
            slices: Vec::new(),
            faults: Vec::new(),
        }
    }
}

impl Device {
    pub(crate) fn threads_per_multiprocessor(&self) -> i32 {
        match self.threads_per_multiprocessor {
            // Compute capability 8.6.
            ..=0 => 1536,
            threads => threads,
        }
    }
}

/// A word of device memory that is written down after each launch of some kernels: element `index`
/// of an array. Positions are in the launch's parameter, in bytes.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Watch {
    /// Launches of kernels whose name has this in it.
    pub kernel: String,
    /// Where the array's device address is, 64 bits.
    pub address: usize,
    /// Where `index` is, 32 bits.
    pub index: usize,
    /// Bytes of an element of the array; the word is its first.
    pub stride: u64,
    /// Where another 32 bits are that tell launches apart.
    pub mark: usize,
}

/// A MIG slice of a device.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slice {
    /// The profile, as in `1g.5gb`.
    pub profile: String,
    /// Its own memory, bytes.
    pub memory: u64,
    /// Its own multiprocessors.
    pub multiprocessors: i32,
}

/// What goes wrong, and when. Counts run over all processes of the rack, so that a restarted worker
/// does not meet a fault anew.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// What goes wrong.
    pub kind: FaultKind,
    /// So many launches (or allocations, or module loads: what the kind strikes) pass unharmed
    /// first.
    #[serde(default)]
    pub after: u64,
    /// How often it strikes, each time that it is told to; 0 for always.
    #[serde(default = "once")]
    pub times: u64,
    /// Counts only launches of kernels whose name has this in it.
    #[serde(default)]
    pub kernel: String,
    /// Counts only launches of kernels of the module that their process loaded as its first (1),
    /// second and so on; 0 for all.
    #[serde(default)]
    pub module: u64,
    /// Strikes only when this file has appeared, and removes it: the way of a test to say "now",
    /// and "now again".
    #[serde(default)]
    pub trigger: PathBuf,
}

fn once() -> u64 {
    1
}

impl Fault {
    /// A fault that strikes once, at the first occasion.
    pub fn new(kind: FaultKind) -> Fault {
        Fault {
            kind,
            after: 0,
            times: 1,
            kernel: String::new(),
            module: 0,
            trigger: PathBuf::new(),
        }
    }

    /// After so many occasions have passed unharmed.
    pub fn after(mut self, occasions: u64) -> Fault {
        self.after = occasions;
        self
    }

    /// So many times; 0 for always.
    pub fn times(mut self, times: u64) -> Fault {
        self.times = times;
        self
    }

    /// Only at kernels whose name has this in it.
    pub fn at_kernel(mut self, part: &str) -> Fault {
        self.kernel = part.to_owned();
        self
    }

    /// Only at kernels of the module that a process loads as its first (1), second and so on.
    pub fn at_module(mut self, number: u64) -> Fault {
        self.module = number;
        self
    }

    /// Only when this file exists.
    pub fn when(mut self, trigger: PathBuf) -> Fault {
        self.trigger = trigger;
        self
    }
}

/// The kinds of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// An allocation is refused with `CUDA_ERROR_OUT_OF_MEMORY`. Not sticky.
    OutOfMemory,
    /// A launch ends in `CUDA_ERROR_ILLEGAL_ADDRESS`, Xid 31; the context is dead afterwards.
    IllegalAddress,
    /// A launch never ends.
    Endless,
    /// A module is refused with `CUDA_ERROR_UNSUPPORTED_PTX_VERSION` and a log.
    UnsupportedPtx,
    /// The device is gone at a launch: `CUDA_ERROR_UNKNOWN`, Xid 79, `NVML_ERROR_GPU_IS_LOST`, for
    /// every process from now on.
    OffTheBus,
    /// One bit of what a launch wrote is wrong. Nobody is told.
    WrongResult,
    /// A launch ends in `CUDA_ERROR_ECC_UNCORRECTABLE`, Xid 48, and is counted by NVML; the context
    /// is dead afterwards.
    Ecc,
    /// The driver brings its process down at a launch.
    Crash,
}

/// What a fault strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occasion {
    Allocation,
    Launch,
    Load,
}

impl FaultKind {
    pub(crate) fn occasion(self) -> Occasion {
        match self {
            FaultKind::OutOfMemory => Occasion::Allocation,
            FaultKind::UnsupportedPtx => Occasion::Load,
            _ => Occasion::Launch,
        }
    }
}

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("the fake driver's configuration `{path}` cannot be read")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The file is not what it should be.
    #[error("the fake driver's configuration `{path}` is not valid")]
    Parse {
        /// The file.
        path: PathBuf,
        /// Where and why.
        #[source]
        source: Box<toml::de::Error>,
    },
}

impl Config {
    /// `count` devices that are alike.
    pub fn of(count: usize, device: Device) -> Config {
        Config { devices: vec![device; count], ..Config::default() }
    }

    /// Reads the file that `TESSERA_FAKE_CUDA` names.
    ///
    /// # Errors
    /// The file cannot be read or is not valid.
    pub fn read(path: &Path) -> Result<Config, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        let mut config: Config = toml::from_str(&text).map_err(|source| ConfigError::Parse {
            path: path.to_owned(),
            source: Box::new(source),
        })?;
        if config.state.as_os_str().is_empty() {
            config.state = path.parent().unwrap_or(Path::new(".")).to_owned();
        }
        Ok(config)
    }
}
