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
    /// Job or JOB/FRAME, by the job's id, its beginning or its name; or node, by its name or id
    #[arg(value_name = "JOB[/FRAME]|NODE")]
    pub what: String,
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
