//! The store on this machine's disk: sled, and files for values that are too large for it.

mod copy;
mod envelope;
mod export;
mod journal;
mod keys;
mod large;
mod leftovers;
mod opening;
mod reader;
mod sled_open;
mod survey;
mod witness;

pub use export::{ExportError, ExportSummary, export};
pub use journal::Journal;
pub use keys::values_of;
pub use reader::JournalReader;
pub use survey::Survey;
