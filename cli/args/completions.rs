//! Options of `completions`.

use clap::Args;

/// Options of `completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// Shell to write the script for
    pub shell: clap_complete::Shell,
}
