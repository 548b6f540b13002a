//! What people may ask of a farm, without a transport: requests in, answers out. A door (QUIC,
//! HTTP) authenticates its peer, makes a [`Caller`], and hands requests on; the caller's place on
//! the deny-list, role and ownership are checked here, and the audit log's entries are written
//! here.

mod answer;
mod audit;
mod audit_entries;
mod backup;
mod blobs;
mod caller;
mod context;
mod finished_frames;
mod identities;
mod jobs;
mod roles;
mod watch;

pub use crate::changes::Changes;
pub use answer::{Answer, Api};
pub use backup::BackupPieces;
pub use blobs::{BlobPut, BlobPutError};
pub use caller::Caller;
pub(crate) use context::Context;
pub use watch::Watch;

#[cfg(test)]
mod tests;
