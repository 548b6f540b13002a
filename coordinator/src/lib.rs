//! The shell around the core: sessions, store, blobs and the making of frames. Makes no decision
//! itself.
//!
//! [`Coordinator::start`] opens a data folder and listens. Inside, one task drives the core
//! ([`driver`](crate)) and one thread writes ([`store`]). Nothing is reported to any peer before it
//! is durable.

mod access;
pub mod api;
pub mod backup;
pub mod blobs;
mod changes;
mod clock;
pub mod config;
pub mod coordinator;
mod coordinator_error;
mod driver;
mod entrance;
mod event_targets;
mod farm_files;
mod farm_log;
mod finish_inputs;
pub mod folder;
pub mod fsck;
mod housekeeping;
mod live;
mod logs;
pub mod lost_spools;
mod mark;
pub mod measure;
mod meters;
mod opened;
mod openings;
mod quic;
pub mod resolve;
mod result_memory;
mod secret;
mod shelf;
pub mod spool;
pub mod standby;
mod standing;
#[cfg(test)]
mod stopped_farm;
pub mod store;
mod sync;
mod uploads;

pub use access::DeniedError;
pub use config::{Config, Limits};
pub use coordinator::{Coordinator, Probe, RunningCoordinator};
pub use coordinator_error::CoordinatorError;
pub use farm_files::{FarmFilesError, FarmKey, FarmKeyError};
pub use fsck::{AuditError, Depth, FarmAt, Finding, FsckReport, Severity, audit, fsck};
pub use standby::{Begun, Standby};
pub use store::{ExportError, ExportSummary, export};
pub use tessera_core::{Census, JobsTally, PerUser, Settings, Weights};
pub use tessera_finishing::screen_map;
