//! The agent of a farm: its session with the coordinator, the scene cache, the devices, the outbox.
//! Does not decide what to render next.
//!
//! ```text
//! session ─ lease ─► agent ─ prepare ─► scene ─ frame ─► device
//!    ▲                                                         │ sums
//!    └──────────────────────── offer ─ outbox ◄────────────────┘
//! ```

mod agent;
mod backoff;
pub mod bare;
mod cache;
pub mod compute;
mod config;
pub mod device;
mod disk;
mod folder;
mod frame_memory;
mod frame_prepared;
pub mod import;
mod inputs;
mod job;
mod live_mean;
pub mod log;
pub mod memory;
mod node;
mod outbox;
pub mod piece;
mod scene;
mod shell;
pub mod spot;
mod status;
#[cfg(test)]
mod test_scene;

pub use cache::{BlobCache, CacheError};
pub use config::{Config, DenoiseOn, DeviceSpec, DeviceSpecError, Finishes};
pub use device::worker;
pub use device::worker::Sandbox;
pub use folder::{DataFolder, FolderError};
pub use frame_prepared::{FramePrepared, SentBytes};
pub use job::{choice, flatten_options, light_units, load_options};
pub use node::{Node, RunningNode};
pub use outbox::{Outbox, OutboxError};
pub use shell::Vitals;
pub use status::{Ended, FirstUnit, NodeError, NodeStatus};
pub use tessera_kernels::host::Isa;

/// The version hash of this build's kernels (and of how they are compiled), scene flattening and
/// film: results of different ones are never mixed in a job.
pub fn fingerprint() -> tessera_protocol::Fingerprint {
    let mut hasher = blake3::Hasher::new_derive_key("tessera fingerprint 1");
    hasher.update(&tessera_kernels::fingerprint());
    // Part of the images, which are of the same sources.
    for option in tessera_nvrtc::STRICT_OPTIONS {
        hasher.update(option.as_bytes());
        hasher.update(&[0]);
    }
    hasher.update(tessera_scenes::SOURCE_HASH.as_bytes());
    tessera_protocol::Fingerprint(*hasher.finalize().as_bytes())
}
