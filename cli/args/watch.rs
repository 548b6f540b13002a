//! Options of `watch`.

use super::farm::FarmArgs;
use clap::Args;

/// Options of `watch`.
#[derive(Debug, Args)]
pub struct WatchArgs {
    /// Job, by its id, the beginning of one, or its name
    #[arg(required_unless_present = "all")]
    pub job: Option<String>,
    /// Follow all jobs of the farm, without end
    #[arg(long, conflicts_with_all = ["job", "tev"])]
    pub all: bool,
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
