//! Options of `events`.

use super::farm::FarmArgs;
use clap::{Args, Subcommand};

/// What to do with the targets of events.
#[derive(Debug, Subcommand)]
pub enum EventsCommand {
    /// Send a test event to a webhook or a mail target, and say whether it arrived
    Test(TestArgs),
}

/// Options of `events test`.
#[derive(Debug, Args)]
pub struct TestArgs {
    /// Target, by its name in the file of tessera coordinator --events
    pub name: String,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}
