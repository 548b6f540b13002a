//! Options of `watch`.

use super::farm::FarmArgs;
use clap::Args;

/// Options of `watch`.
#[derive(Debug, Args)]
pub struct WatchArgs {
    /// Job, by its id, the beginning of one, or its name
    pub job: String,
    /// Print a line of JSON at each change
    #[arg(long)]
    pub json: bool,
    /// Also show the picture as it is rendered in tev, which listens there [default port: 14158]
    #[arg(long, value_name = "HOST:PORT")]
    pub tev: Option<String>,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}
