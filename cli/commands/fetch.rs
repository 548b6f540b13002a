//! `fetch`: downloads the finished frames of a job.

use super::job;
use crate::args::fetch::FetchArgs;
use crate::client::{Farm, unexpected};
use crate::error::{CliError, Status};
use crate::frame_files::{Destination, Fetched, fetch};
use crate::progress::{Audience, Downloads};
use crate::table::counted;
use crate::{job_id, json};
use serde_json::json;
use std::path::PathBuf;
use tessera_protocol::FrameNumber;
use tessera_protocol::client::{Request, Response};
use tessera_protocol::status::{FrameFile, FrameState, FrameStatus, JobState};

/// A file to fetch.
struct Item {
    frame: FrameNumber,
    file: FrameFile,
    path: PathBuf,
}

/// `tessera fetch`.
pub(crate) async fn run(args: FetchArgs) -> Result<Status, CliError> {
    let farm = Farm::of(&args.farm)?;
    let job = job_id::find(&farm, &args.job).await?;
    let client = farm.connect().await?;
    let Response::Job(detail) = client.request(&Request::Job(job)).await? else {
        return Err(unexpected());
    };
    let wanted = wanted(&args, &job::frames(&client, job).await?)?;
    let numbers = tessera_protocol::FrameSet::from_frames(wanted.iter().map(|status| status.frame));
    let numbers = numbers.map_err(|error| CliError::new(Status::Failure, error))?;
    let outputs = detail.spec.kind.compute().map_or(&[][..], |compute| &compute.outputs);
    let outputs: Vec<String> = outputs.iter().map(|output| output.name.clone()).collect();
    let destination = Destination::new(&args.output, &detail.spec.name, &numbers, &outputs)?;
    let items = items(&wanted, &destination);
    let done = wanted.iter().filter(|status| matches!(status.state, FrameState::Done(_))).count();
    if done > 0 && items.is_empty() {
        let formats = detail.spec.kind.extensions();
        let message = format!(
            "the job's frames are {}, not what `{}` says",
            formats.join(" and "),
            args.output.display()
        );
        return Err(CliError::new(Status::NotFound, message));
    }
    let bytes = items.iter().map(|item| item.file.length).sum();
    let mut bar = Downloads::new(Audience::of_stderr(args.json), bytes);
    for item in &items {
        bar.begin(&item.path.display().to_string());
        let fetched =
            fetch(&client, ((job, item.frame), &item.file), &item.path, &mut |held| bar.set(held))
                .await?;
        bar.advance(item.file.length);
        if args.json {
            let mut line = json::value(&item.file)?;
            line["frame"] = json!(item.frame.0);
            line["path"] = json!(item.path);
            line["fetched"] = json!(fetched == Fetched::New);
            json::line(&line.to_string())?;
        }
    }
    bar.end();
    client.close().await;
    conclude(&wanted, done, detail.summary.state)
}

fn wanted(args: &FetchArgs, all: &[FrameStatus]) -> Result<Vec<FrameStatus>, CliError> {
    let Some(frames) = &args.frames else { return Ok(all.to_vec()) };
    if let Some(missing) =
        frames.iter().find(|frame| !all.iter().any(|status| status.frame == *frame))
    {
        return Err(CliError::new(Status::NotFound, format!("the job has no frame {}", missing.0)));
    }
    Ok(all.iter().filter(|status| frames.position(status.frame).is_some()).cloned().collect())
}

fn items(wanted: &[FrameStatus], destination: &Destination) -> Vec<Item> {
    let mut items = Vec::new();
    for status in wanted {
        let FrameState::Done(files) = &status.state else { continue };
        for file in files {
            if let Some(path) = destination.path(status.frame, &file.format) {
                items.push(Item { frame: status.frame, file: file.clone(), path });
            }
        }
    }
    items
}

fn conclude(wanted: &[FrameStatus], done: usize, state: JobState) -> Result<Status, CliError> {
    let failed =
        wanted.iter().filter(|status| matches!(status.state, FrameState::Failed(_))).count();
    let open = wanted.len() - done - failed;
    let all = counted(wanted.len() as u64, "frame");
    if open > 0 {
        eprintln!("{done} of {all} finished and here; fetch again for the rest");
    }
    if failed == 0 {
        return Ok(Status::Done);
    }
    if state == JobState::Cancelled {
        let message = format!("{done} of {all} finished: the job was cancelled");
        return Err(CliError::new(Status::SomeFramesFailed, message));
    }
    Err(CliError::new(Status::SomeFramesFailed, format!("{failed} of {all} failed"))
        .hint("`tessera job JOB --frames` says why"))
}
