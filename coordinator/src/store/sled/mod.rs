//! The store on this machine's disk: sled, and files for values that are too large for it.

mod copy;
mod export;
mod journal;
mod large;
mod leftovers;
mod opening;
mod reader;
mod sled_open;
mod witness;

pub use export::{ExportError, ExportSummary, export};
pub use journal::Journal;
pub use reader::JournalReader;
