//! Settings of a node. Defaults that depend on the machine are found when the node starts.

use crate::device::cuda::Watchdog;
use crate::import::ImportLimits;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use tessera_kernels::host::Isa;
use tessera_transport::Timing;

/// A device as the user names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceSpec {
    /// Every CUDA device where there is one that works, else the CPU.
    Auto,
    /// The CPU.
    Cpu,
    /// CUDA devices: the one of this index, or all.
    Cuda(Option<u32>),
}

/// A text that names no device.
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

/// Settings of one node.
#[derive(Clone, Debug)]
pub struct Config {
    /// `HOST:PORT` of the coordinator.
    pub coordinator: String,
    /// The node's own folder: identity, id, cache, outbox. One node at a time may use it.
    pub data: PathBuf,
    /// Name for people: 1 to [`tessera_protocol::limits::NAME_MAX`] letters, digits and `.`, `_`,
    /// `-`, `@`.
    pub name: String,
    /// The pool that it is of, unless its certificate names one.
    pub pool: Option<String>,
    /// Join token; needed only while `data` holds no identity.
    pub token: Option<String>,
    /// Program whose `device-worker` command drives CUDA devices, and whose `scene-importer`
    /// command reads scenes: this one.
    pub worker: PathBuf,
    /// Variables that such workers get beside what CUDA needs of this process's.
    pub worker_environment: Vec<(String, String)>,
    /// When a worker that does not get on is ended.
    pub watchdog: Watchdog,
    /// File whose rows replace those of the built-in table of driver events.
    pub xid_table: Option<PathBuf>,
    /// Devices to use, each once.
    pub devices: Vec<DeviceSpec>,
    /// Threads of the CPU device; None takes all that this process may use.
    pub threads: Option<usize>,
    /// Instruction set of the CPU device; None takes the best. All give the same bits.
    pub isa: Option<Isa>,
    /// Scene files kept on disk, bytes at most.
    pub cache_bytes: u64,
    /// What the process that reads a scene may take.
    pub import: ImportLimits,
    /// Prepared scenes and frames kept in memory beyond those in use, bytes at most.
    pub prepared_bytes: u64,
    /// Results kept on disk until they are acknowledged, bytes at most; no unit is finished beyond
    /// it.
    pub outbox_bytes: u64,
    /// Work to hold ahead per device. It hides the way to the coordinator and back; more of it
    /// makes the end of a frame uneven.
    pub hold: Duration,
    /// Longest wait, once drained, for the coordinator to acknowledge results that are finished.
    pub drain_wait: Duration,
    /// How long the coordinator may be silent.
    pub timing: Timing,
}

impl Config {
    /// Usual settings for a node that uses whatever is best on this machine.
    pub fn new(
        coordinator: impl Into<String>,
        data: impl Into<PathBuf>,
        name: impl Into<String>,
    ) -> Self {
        Self {
            coordinator: coordinator.into(),
            data: data.into(),
            name: name.into(),
            pool: None,
            token: None,
            // The file that runs, even where another one has taken its name since.
            worker: PathBuf::from("/proc/self/exe"),
            worker_environment: Vec::new(),
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
