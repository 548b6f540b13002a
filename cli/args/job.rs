//! Options of `job`.

use super::farm::FarmArgs;
use super::job_set::JobSetArgs;
use clap::{Args, Subcommand};

/// What to do with a job beside showing it.
#[derive(Debug, Subcommand)]
pub enum JobCommand {
    /// Change the priority, the pool, the name or the number of nodes of a job
    Set(JobSetArgs),
}

/// Options of `job`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct JobArgs {
    /// What to do instead of showing the job.
    #[command(subcommand)]
    pub command: Option<JobCommand>,
    /// Job, by its id, the beginning of one, or its name
    #[arg(required = true)]
    pub job: Option<String>,
    /// List the frames too
    #[arg(long)]
    pub frames: bool,
    /// Print JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}
