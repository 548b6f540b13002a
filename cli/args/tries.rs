//! How often and how long a farm tries before it gives a job up.

use super::time::parse_grace;
use clap::Args;
use tessera_protocol::job::RetryPolicy;

/// A job's own bounds for retries.
#[derive(Clone, Debug, Default, Args)]
pub struct TriesArgs {
    /// Failed attempts of a unit after which its frame fails, 1 to 100 [default: 4]
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u8).range(1..=100),
        help_heading = "Job"
    )]
    pub attempts: Option<u8>,
    /// How long the job waits once every node is too small for it (memory or time for scenes,
    /// disk), such as 90s, 30m or 2d; then it fails [default: 10m]
    #[arg(long, value_name = "DURATION", value_parser = parse_grace, help_heading = "Job")]
    pub give_up: Option<u64>,
}

impl TriesArgs {
    /// As a job's spec has them.
    pub(crate) fn policy(&self) -> RetryPolicy {
        let give_up_secs = self.give_up.map(|secs| u32::try_from(secs).unwrap_or(u32::MAX));
        RetryPolicy { attempts: self.attempts, give_up_secs }
    }
}
