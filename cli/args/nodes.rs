//! Options of `nodes` and `nodes remove`.

use super::farm::FarmArgs;
use clap::{Args, Subcommand};

/// Options of `nodes`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "States: ready; draining and drained (by tessera drain); unfit (its note says \
        why); away (the connection was lost a moment ago); lost (it did not come back); left (it \
        said that it leaves, and ended); removed (with --all). Absent nodes stay listed over \
        restarts of the coordinator, as many as its --absent-nodes says."
)]
pub struct NodesArgs {
    /// What to do instead.
    #[command(subcommand)]
    pub command: Option<NodesCommand>,
    /// Node to show with its devices, by name or id
    pub node: Option<String>,
    /// List removed nodes too
    #[arg(long)]
    pub all: bool,
    /// Print JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}

/// What to do with nodes.
#[derive(Debug, Subcommand)]
pub enum NodesCommand {
    /// Take an absent node off the list; its identity stays valid
    Remove(RemoveNodeArgs),
}

/// Options of `nodes remove`.
#[derive(Debug, Args)]
#[command(
    after_help = "For machines that will not come back. Nothing but the list changes, and a node \
        that comes back is listed again, without its drain. To shut its identity out and free its \
        name, use tessera members remove, which takes it off the list as well."
)]
pub struct RemoveNodeArgs {
    /// Node, by name or id
    pub node: String,
    /// Print the node as JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}
