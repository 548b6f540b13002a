//! Options of `logs`.

use super::farm::FarmArgs;
use super::time::parse_ttl;
use clap::Args;
use tessera_protocol::logs::{LOG_PAGE_MAX, LogSource, Severity};

/// Options of `logs`.
#[derive(Debug, Args)]
#[command(
    after_help = "It prints what the node, the scene importer, the device worker and the compiler \
        said of a job, a frame or a unit, for the job's owner and for operators; or all that a \
        node said, for operators. Names of units are those that tessera job prints: \
        JOB/f0007/u00012. The newest 256 KiB of each job and node are kept. A name that both a job \
        and a node have means the job, unless --node is given."
)]
pub struct LogsArgs {
    /// Job, JOB/FRAME or JOB/FRAME/UNIT, by the job's id, its beginning or its name; or node
    #[arg(value_name = "JOB[/FRAME[/UNIT]]|NODE")]
    pub what: String,
    /// Print further lines as they come, until the job ends
    #[arg(long, short)]
    pub follow: bool,
    /// Least severity: info, warning or error
    #[arg(long, value_name = "SEVERITY", default_value = "info", value_parser = severity)]
    pub level: Severity,
    /// Only what it said: node, importer, device, compiler or finishing
    #[arg(long, value_parser = source)]
    pub source: Option<LogSource>,
    /// Only lines of this time before now: 90s, 30m, 24h, 7d
    #[arg(long, value_name = "TIME", value_parser = parse_ttl)]
    pub since: Option<u64>,
    /// Print at most so many lines, the newest
    #[arg(long, short = 'n', value_name = "N", default_value_t = 200,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(LOG_PAGE_MAX)))]
    pub lines: u32,
    /// It is a node
    #[arg(long)]
    pub node: bool,
    /// Print a line of JSON for each line
    #[arg(long)]
    pub json: bool,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}

fn severity(text: &str) -> Result<Severity, String> {
    Severity::of_name(text).ok_or_else(|| {
        format!("`{text}` is none; write {}", Severity::ALL.map(Severity::name).join(", "))
    })
}

fn source(text: &str) -> Result<LogSource, String> {
    LogSource::of_name(text).ok_or_else(|| {
        format!("`{text}` says nothing; write {}", LogSource::ALL.map(LogSource::name).join(", "))
    })
}
