//! Options of `support-bundle`.

use super::farm::FarmArgs;
use clap::Args;
use std::path::PathBuf;

/// Options of `support-bundle`.
#[derive(Debug, Args)]
#[command(
    after_help = "The file is one text that people can read: this program and machine, settings, \
        what doctor says, the farm's nodes and newest jobs, what was said of jobs that failed, \
        the sizes of data folders, and the services' own logs where journalctl has them. \
        Passwords, keys and tokens are left out. It has names of people, machines, jobs and \
        files: read it before you send it."
)]
pub struct SupportBundleArgs {
    /// File to write; it must not exist yet
    #[arg(short, long, value_name = "FILE", default_value = "tessera-support.txt")]
    pub output: PathBuf,
    /// Also what was said of this job; may be given more than once
    #[arg(long, value_name = "JOB")]
    pub job: Vec<String>,
    /// Data folder of a coordinator or a node, whose files are listed; may be given more than once
    #[arg(long, value_name = "DIR")]
    pub data: Vec<PathBuf>,
    /// Ask no farm
    #[arg(long)]
    pub no_farm: bool,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}
