//! Options about the jobs that a new job waits for.

use clap::Args;
use tessera_protocol::job::AfterText;

/// Jobs that a new job waits for.
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
