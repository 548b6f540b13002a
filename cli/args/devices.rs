//! Which devices a command uses.

use clap::Args;
use tessera_node::{DeviceSpec, Isa};

/// Which devices to use, and how.
#[derive(Clone, Debug, Args)]
pub struct DeviceArgs {
    /// Devices to use, comma-separated: auto (working CUDA devices, else the CPU), cpu, cuda,
    /// cuda:INDEX
    #[arg(
        long,
        value_name = "DEVICE",
        value_delimiter = ',',
        env = "TESSERA_DEVICE",
        default_value = "auto",
        help_heading = "Work"
    )]
    pub device: Vec<DeviceSpec>,
    /// Minimum seconds that a unit may make no progress before its CUDA worker process is killed
    /// [default: 60]
    #[arg(
        long,
        value_name = "SECS",
        env = "TESSERA_WATCHDOG",
        value_parser = clap::value_parser!(u64).range(1..=86_400),
        help_heading = "Work",
    )]
    pub watchdog: Option<u64>,
    /// Number of threads of the CPU device [default: all]
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=4096),
        help_heading = "Work",
    )]
    pub threads: Option<u32>,
    /// Instruction set of the CPU device: base, x86-64-v2, x86-64-v3; does not change the picture
    /// [default: the best]
    #[arg(long, value_name = "NAME", help_heading = "Work")]
    pub isa: Option<Isa>,
}
