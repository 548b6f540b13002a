//! Options about what a new job waits for: other jobs, and a time.

use super::start::parse_start;
use clap::Args;
use tessera_protocol::job::AfterText;

/// Jobs that a new job waits for, and the time before which it does not begin.
#[derive(Clone, Debug, Default, Args)]
pub struct AfterArgs {
    /// Wait until JOB has succeeded; with :frames, each frame waits for the frame of its number.
    /// If JOB fails or is cancelled, this job ends too. By comma, or more than once
    #[arg(long, value_name = "JOB[:frames]", value_delimiter = ',', help_heading = "Job")]
    pub after: Vec<AfterText>,
    /// Wait until JOB has ended, whichever way. By comma, or more than once
    #[arg(long, value_name = "JOB", value_delimiter = ',', value_parser = parse_any)]
    #[arg(help_heading = "Job")]
    pub after_any: Vec<String>,
    /// Begin no unit before this time: 20:00, 2026-12-01T20:00 (by this machine's clock, or with Z
    /// in UTC) or +2h
    #[arg(long, value_name = "WHEN", value_parser = parse_start, help_heading = "Job")]
    pub not_before: Option<u64>,
}

fn parse_any(text: &str) -> Result<String, String> {
    let AfterText { job, by_frames } = text.parse()?;
    match by_frames {
        true => Err(format!(
            "waits for the end of a whole job, and not for its frames; write `--after {text}`, or \
             `--after-any {job}`"
        )),
        false => Ok(job),
    }
}
