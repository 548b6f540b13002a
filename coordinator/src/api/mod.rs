//! What clients may ask and what they are answered: roles, audit log entries, and the requests
//! themselves.

pub(crate) mod audit;
pub(crate) mod audit_entries;
mod finished_frames;
pub(crate) mod identities;
pub(crate) mod roles;
pub(crate) mod watch;
