//! Options of `man`.

use clap::Args;
use std::path::PathBuf;

/// Options of `man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Folder to write the pages to
    pub folder: PathBuf,
}
