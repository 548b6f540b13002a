//! Requests to a farm and their answers, independent of the transport. A transport (QUIC, HTTP)
//! authenticates its peer, makes a [`Caller`], and passes requests on. This module checks the
//! deny-list, the role and the ownership of jobs, and writes the entries of the audit log.

mod answer;
mod askers;
mod audit;
mod audit_entries;
mod backup;
mod blobs;
mod caller;
mod context;
mod costs;
mod figures;
mod finished_frames;
mod follow;
mod frames;
mod identities;
mod jobs;
pub mod json;
mod live;
mod logs;
mod members;
mod naming;
mod nodes;
mod own;
mod presets;
mod roles;
mod selected;
mod sessions;
mod shares;
mod staged;
mod standing;
mod targets;
mod tokens;
mod vouching;
mod watch;

pub use crate::access::bearers::Bearer;
pub use crate::access::vouched::Vouched;
pub use crate::changes::{Changes, News};
pub use crate::driver::{Counted, Named, Present};
pub use crate::event_targets::{EventTargets, TargetFigures, Tested};
pub use crate::meters::Spread;
pub use crate::standing::Standing;
pub use answer::{Answer, Api};
pub(crate) use askers::{Askers, Counts};
pub use backup::BackupPieces;
pub use blobs::{BlobPut, BlobPutError};
pub use caller::Caller;
pub(crate) use context::Context;
pub use figures::{DiskFigures, Figures, StoreFigures};
pub use follow::Follow;
pub use live::Live;
pub use logs::LogFollow;
pub use own::Missing;
pub use sessions::{SignedIn, Watching};
pub use staged::{Staged, StagedFiles};
pub use tessera_transport::peer::PeerError;
pub use watch::Watch;

#[cfg(test)]
mod tests;
