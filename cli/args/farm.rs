//! Which farm a command asks, and as whom.

use clap::Args;
use std::path::PathBuf;

/// Which farm, and as whom.
#[derive(Clone, Debug, Args)]
pub struct FarmArgs {
    /// Address of the coordinator, or of several of which one leads [default: the one in the
    /// identity, else 127.0.0.1:7420]
    #[arg(long, value_name = "HOST:PORT,...", env = "TESSERA_COORDINATOR", help_heading = "Farm")]
    pub coordinator: Option<String>,
    /// Identity folder [default: $XDG_CONFIG_HOME/tessera/identity]
    #[arg(long, value_name = "DIR", env = "TESSERA_IDENTITY", help_heading = "Farm")]
    pub identity: Option<PathBuf>,
}

/// Options of listings.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Print JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}
