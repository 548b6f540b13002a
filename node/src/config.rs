//! Settings of a node. Defaults that depend on the machine are determined when the node starts.

use crate::device::cuda::Watchdog;
use crate::device::worker::Sandbox;
use crate::frame_prepared::FramePrepared;
use crate::import::ImportLimits;
use crate::log::NodeLog;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use tessera_kernels::host::Isa;
use tessera_telemetry::Tracer;
use tessera_transport::Timing;
use tokio::sync::mpsc::UnboundedSender;

/// A device as the user names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceSpec {
    /// Every CUDA device if one works, otherwise the CPU.
    Auto,
    /// The CPU of this machine.
    Cpu,
    /// CUDA devices: the one with this index, or all.
    Cuda(Option<u32>),
}

/// The text does not name a device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a device; write `auto`, `cpu`, `cuda` or `cuda:INDEX`")]
pub struct DeviceSpecError(String);

impl FromStr for DeviceSpec {
    type Err = DeviceSpecError;
    fn from_str(text: &str) -> Result<Self, DeviceSpecError> {
        match text {
            "auto" => Ok(Self::Auto),
            "cpu" => Ok(Self::Cpu),
            "cuda" => Ok(Self::Cuda(None)),
            _ => text
                .strip_prefix("cuda:")
                .and_then(|index| index.parse().ok())
                .map(|index| Self::Cuda(Some(index)))
                .ok_or_else(|| DeviceSpecError(text.to_owned())),
        }
    }
}

impl fmt::Display for DeviceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(None) => f.write_str("cuda"),
            Self::Cuda(Some(index)) => write!(f, "cuda:{index}"),
        }
    }
}

/// Folder of machine code of the kernels, or `none`.
const CUBINS: &str = "TESSERA_CUBINS";

/// Returns the folder that the environment names, otherwise the one that the package
/// `tessera-cubins` installs beside this program, if it is there.
fn cubins_of_environment() -> Option<PathBuf> {
    match std::env::var_os(CUBINS) {
        Some(none) if none == "none" || none.is_empty() => None,
        Some(folder) => Some(folder.into()),
        None => {
            let program = std::env::current_exe().ok()?;
            let folder = program.parent()?.parent()?.join("lib/tessera/cubins");
            folder.is_dir().then_some(folder)
        }
    }
}

/// Whether a node finishes frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finishes {
    /// It does.
    Always,
    /// It does if it has a CUDA device, which can denoise them. For a node in the coordinator's
    /// own process: that coordinator has the results already.
    WithCuda,
    /// It does not.
    Never,
}

/// `auto`, `gpu` or `cpu`.
const DENOISE: &str = "TESSERA_DENOISE";

/// Where a node with CUDA devices denoises frames. The bits are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DenoiseOn {
    /// On a device that is faster at it than a thread of the processor.
    #[default]
    Auto,
    /// On any device that computes it rightly.
    Gpu,
    /// On the processor.
    Cpu,
}

impl DenoiseOn {
    /// Returns the setting of this process's environment. Any other text counts as none.
    fn of_environment() -> Self {
        match std::env::var(DENOISE).as_deref() {
            Ok("gpu") => Self::Gpu,
            Ok("cpu") => Self::Cpu,
            _ => Self::Auto,
        }
    }
}

/// Settings of one node.
#[derive(Clone, Debug)]
pub struct Config {
    /// `HOST:PORT` of the coordinator, or of several, with commas between them.
    pub coordinator: String,
    /// The node's own folder: identity, id, cache, outbox. Only one node at a time can use it.
    pub data: PathBuf,
    /// Name for people: 1 to [`tessera_protocol::limits::NAME_MAX`] letters, digits and `.`, `_`,
    /// `-`, `@`.
    pub name: String,
    /// Whether a node that is enrolled under another name is refused. Otherwise its certificate's
    /// name counts, and `name` is only for an enrolment.
    pub name_is_fixed: bool,
    /// The node's pool, unless its certificate names one.
    pub pool: Option<String>,
    /// Join token, which is needed only while `data` has no identity.
    pub token: Option<String>,
    /// Program whose `device-worker` command drives CUDA devices, and whose `scene-importer`
    /// command reads scenes. It is this program.
    pub worker: PathBuf,
    /// Environment variables for these workers, besides those of this process that CUDA needs.
    pub worker_environment: Vec<(String, String)>,
    /// Folder of machine code of the kernels, made ahead of time; None has the driver compile them.
    pub cubins: Option<PathBuf>,
    /// Where frames are denoised.
    pub denoise: DenoiseOn,
    /// Whether these workers are confined.
    pub sandbox: Sandbox,
    /// Time limits of a worker that makes no progress.
    pub watchdog: Watchdog,
    /// File whose rows replace those of the built-in table of driver events.
    pub xid_table: Option<PathBuf>,
    /// Devices to use, each once.
    pub devices: Vec<DeviceSpec>,
    /// Threads of the CPU device; None takes all that this process may use.
    pub threads: Option<usize>,
    /// Instruction set of the CPU device; None takes the best. All give the same bits.
    pub isa: Option<Isa>,
    /// Limit in bytes for scene files on disk.
    pub cache_bytes: u64,
    /// Limits for the process that reads a scene.
    pub import: ImportLimits,
    /// Limit in bytes for prepared scenes and frames in memory that are not in use.
    pub prepared_bytes: u64,
    /// Limit in bytes for results on disk that are not acknowledged. With more, no unit is
    /// finished.
    pub outbox_bytes: u64,
    /// Work to hold ahead per device. It hides the round trip to the coordinator, but more of it
    /// makes the end of a frame uneven.
    pub hold: Duration,
    /// Longest wait, after a drain, for the coordinator to acknowledge finished results.
    pub drain_wait: Duration,
    /// Timeouts of the connection to the coordinator.
    pub timing: Timing,
    /// Whether the node finishes frames.
    pub finishes: Finishes,
    /// Where each prepared frame is told; None tells nobody.
    pub prepared: Option<UnboundedSender<FramePrepared>>,
    /// What the node and its children say, for the coordinator.
    pub log: NodeLog,
    /// Takes spans of what the node does.
    pub tracer: Tracer,
}

impl Config {
    /// Creates the usual settings, for a node that uses the best devices of this machine.
    pub fn new(
        coordinator: impl Into<String>,
        data: impl Into<PathBuf>,
        name: impl Into<String>,
    ) -> Self {
        Self {
            coordinator: coordinator.into(),
            data: data.into(),
            name: name.into(),
            name_is_fixed: false,
            pool: None,
            token: None,
            // The running file, even if its name belongs to another file by now.
            worker: PathBuf::from("/proc/self/exe"),
            worker_environment: Vec::new(),
            cubins: cubins_of_environment(),
            denoise: DenoiseOn::of_environment(),
            sandbox: Sandbox::of_environment(),
            watchdog: Watchdog::default(),
            xid_table: None,
            devices: vec![DeviceSpec::Auto],
            threads: None,
            isa: None,
            cache_bytes: 16 << 30,
            import: ImportLimits::default(),
            prepared_bytes: 4 << 30,
            outbox_bytes: 4 << 30,
            hold: Duration::from_millis(500),
            drain_wait: Duration::from_secs(30),
            timing: Timing::default(),
            finishes: Finishes::Always,
            prepared: None,
            log: NodeLog::default(),
            tracer: Tracer::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_named_as_the_command_line_does() {
        for text in ["auto", "cpu", "cuda", "cuda:3"] {
            assert_eq!(text.parse::<DeviceSpec>().unwrap().to_string(), text);
        }
        for text in ["", "gpu", "cuda:", "cuda:x", "CPU"] {
            assert!(text.parse::<DeviceSpec>().is_err(), "{text}");
        }
    }
}
