//! Options of `explain`.

use super::farm::FarmArgs;
use clap::Args;

/// Options of `explain`.
#[derive(Debug, Args)]
#[command(
    after_help = "It says why a job, a frame or a node stands as it does, what would help, who is \
        before it, and when it should begin and end, as far as that is known. The pages say the \
        same. A name that both a job and a node have means the job, unless --node is given."
)]
pub struct ExplainArgs {
    /// Job, by its id, the beginning of one, or its name; or node, by its name or id
    pub what: String,
    /// Explain this frame of the job
    #[arg(long, value_name = "N", conflicts_with = "node")]
    pub frame: Option<u32>,
    /// It is a node
    #[arg(long)]
    pub node: bool,
    /// Print JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}
