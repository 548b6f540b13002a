//! Options of `job set`.

use super::farm::FarmArgs;
use super::start::parse_start;
use clap::{ArgGroup, Args};

/// Options of `job set`.
#[derive(Debug, Args)]
#[command(
    override_usage = "tessera job set [OPTIONS] <JOB>",
    group(
        ArgGroup::new("change").required(true).multiple(true)
            .args(["priority", "name", "pool", "any_pool", "max_nodes", "no_max_nodes"])
            .args(["not_before", "at_once"])
    ),
    after_help = "Owners share the farm equally, and a job's priority is its share among the jobs \
        of its owner: 50 unless you say otherwise. You may set your own jobs to 50 or less. An \
        operator or admin may set any job to more: its owner's share of the farm then grows with \
        the highest of these. Units that nodes have begun go on."
)]
pub struct JobSetArgs {
    /// Job, by its id, the beginning of one, or its name
    pub job: String,
    /// Share among the owner's jobs, 0 to 100; above 50 needs the role operator
    #[arg(long, value_name = "N")]
    pub priority: Option<u8>,
    /// Name of the job, and of the files that are fetched from now on
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Use only nodes of this pool
    #[arg(long, value_name = "POOL")]
    pub pool: Option<String>,
    /// Use nodes of any pool
    #[arg(long, conflicts_with = "pool")]
    pub any_pool: bool,
    /// Most nodes that work on the job at a time
    #[arg(long, value_name = "N")]
    pub max_nodes: Option<u32>,
    /// Use any number of nodes
    #[arg(long, conflicts_with = "max_nodes")]
    pub no_max_nodes: bool,
    /// Begin no further unit before this time: 20:00, 2026-12-01T20:00 (by this machine's clock, or
    /// with Z in UTC) or +2h
    #[arg(long, value_name = "WHEN", value_parser = parse_start)]
    pub not_before: Option<u64>,
    /// Begin now, whenever it was to begin
    #[arg(long, conflicts_with = "not_before")]
    pub at_once: bool,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}
