//! The shell around the core: sessions, store, blobs, frame assembly. Makes no decision of its own.

pub mod blobs;
mod durable;
pub mod folder;
pub mod resolve;
pub mod spool;
pub mod store;
pub mod tokens;
