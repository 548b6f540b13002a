//! The jobs that a new job waits for: from what people write to ids.

use crate::args::after::AfterArgs;
use crate::args::farm::FarmArgs;
use crate::client::Farm;
use crate::error::CliError;
use crate::job_id;
use crate::table::counted;
use tessera_protocol::job::{After, AfterText, Until};
use tessera_protocol::status::AfterStatus;

/// Finds the jobs that are named. Asks the farm only where one is not named by its whole id.
pub(crate) async fn find(farm: &FarmArgs, args: &AfterArgs) -> Result<Vec<After>, CliError> {
    if args.after.is_empty() && args.after_any.is_empty() {
        return Ok(Vec::new());
    }
    let farm = Farm::of(farm)?;
    let by_success = args.after.iter().map(|AfterText { job, by_frames }| {
        let until = if *by_frames { Until::Frames } else { Until::Success };
        (job, until, "--after")
    });
    let by_end = args.after_any.iter().map(|job| (job, Until::End, "--after-any"));
    let mut after = Vec::new();
    for (job, until, option) in by_success.chain(by_end) {
        let found = job_id::find(&farm, job).await;
        let job = found.map_err(|error| error.context(option))?;
        after.push(After { job, until });
    }
    Ok(after)
}

/// Describes one end of a wait in a line.
pub(crate) fn words(status: &AfterStatus) -> String {
    let name = match status.name.is_empty() {
        true => status.job.to_string(),
        false => format!("{} ({})", status.name, status.job),
    };
    let state = status.state.map_or("forgotten", |state| state.name());
    let frames = counted(u64::from(status.frames), "frame");
    let progress = match status.over {
        true => "the wait is over".to_owned(),
        false => format!("{} of {frames} done", status.frames_done),
    };
    format!("{name}, {}: {progress}, {state}", status.until.words())
}
