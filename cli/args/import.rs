//! What reading a scene may take.

use clap::Args;
use std::time::Duration;
use tessera_node::import::ImportLimits;
use tessera_node::memory::HostMemory;

/// What the process that reads a scene may take.
#[derive(Clone, Debug, Args)]
pub struct ImportArgs {
    /// Memory limit for reading a scene, in MiB [default: a quarter of the memory that the process
    /// may use, and at least 4096, but never more than half of it]
    #[arg(
        long,
        value_name = "MIB",
        env = "TESSERA_SCENE_MEMORY",
        value_parser = clap::value_parser!(u64).range(64..=1 << 24),
        help_heading = "Limits",
    )]
    pub scene_memory: Option<u64>,
    /// Time limit for reading a scene, and for each of its frames, in seconds [default: 300]
    #[arg(
        long,
        value_name = "SECS",
        env = "TESSERA_SCENE_TIME",
        value_parser = clap::value_parser!(u64).range(1..=86_400),
        help_heading = "Limits",
    )]
    pub scene_time: Option<u64>,
}

impl ImportArgs {
    /// The limits.
    pub fn limits(&self) -> ImportLimits {
        let usual = ImportLimits::default();
        let mut limits = ImportLimits {
            memory_bytes: self.scene_memory.map_or(usual.memory_bytes, |mib| mib << 20),
            time: self.scene_time.map_or(usual.time, Duration::from_secs),
        };
        if let Some(asked) = limits.lower_to(&HostMemory::of_this_process()) {
            tracing::warn!(
                asked_mib = asked >> 20,
                used_mib = limits.memory_bytes >> 20,
                "--scene-memory is more than this process may use"
            );
        }
        limits
    }
}
