//! `fetch`: downloads the finished frames of a job.

use super::job;
use crate::args::fetch::FetchArgs;
use crate::client::{Farm, unexpected};
use crate::error::{CliError, Status};
use crate::folder_claim::Claim;
use crate::frame_files::{Destination, Fetched, Found, Named, fetch};
use crate::progress::{Audience, Downloads};
use crate::table::{counted, printable};
use crate::{job_id, json};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tessera_protocol::client::{Request, Response};
use tessera_protocol::selection::{JobQuery, JobSelection};
use tessera_protocol::status::{
    FrameFile, FrameState, FrameStatus, JobDetail, JobState, JobSummary,
};
use tessera_protocol::{BlobHash, FrameNumber, FrameSet, JobId};
use tessera_transport::FarmClient;
use tessera_transport::blob::Existing;
use tessera_transport::client::hash_file;

/// Files that an error names one by one.
const BLOCKED_TOLD: usize = 10;
/// Jobs of the same name that are looked through for a file that is there.
const OTHERS_MAX: usize = 16;

/// A file to fetch.
struct Item {
    frame: FrameNumber,
    file: FrameFile,
    path: PathBuf,
}

/// A file that was not fetched, since something else has its name.
struct Blocked {
    item: Item,
    found: Found,
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
    let done = wanted.iter().filter(|status| matches!(status.state, FrameState::Done(_))).count();
    let (items, _claim) = plan(&args, &detail, &wanted, done > 0)?;
    let (fetched, blocked) = fetch_all(&client, &args, job, items).await?;
    let outcome = conclude(&wanted, done, detail.summary.state);
    if blocked.is_empty() {
        client.close().await;
        return outcome;
    }
    let others = others(&client, &detail.summary).await;
    client.close().await;
    if let Err(error) = outcome {
        eprint!("{}", error.for_people());
    }
    Err(not_replaced(&args, fetched, &blocked, &others)?)
}

/// The files of the wanted frames with their places, and the right to plain names, to be kept while
/// files are written.
fn plan(
    args: &FetchArgs,
    detail: &JobDetail,
    wanted: &[FrameStatus],
    any_done: bool,
) -> Result<(Vec<Item>, Option<Claim>), CliError> {
    let numbers = FrameSet::from_frames(wanted.iter().map(|status| status.frame));
    let numbers = numbers.map_err(|error| CliError::new(Status::Failure, error))?;
    let outputs = detail.spec.kind.compute().map_or(&[][..], |compute| &compute.outputs);
    let outputs = outputs.iter().map(|output| output.name.clone()).collect();
    let named = Named::new(detail.summary.job, &detail.spec.name, outputs);
    let mut destination = Destination::new(&args.output, &named, &numbers)?;
    if let Some(file) = destination.folder().filter(|path| path.exists() && !path.is_dir()) {
        let message = format!("`{}` is a file, not a folder", file.display());
        return Err(CliError::new(Status::Usage, message)
            .hint("give a folder, or a pattern such as out/frame.####.exr"));
    }
    if !any_done {
        return Ok((Vec::new(), None));
    }
    let claim = destination.claim(&named, args.overwrite);
    if let (Some(Claim::Other(other)), Some(folder)) = (&claim, destination.folder()) {
        eprintln!(
            "`{}` has frames of job {other}, which has the same name; these go to `{}`",
            printable(&args.output.display().to_string()),
            printable(&folder.display().to_string())
        );
    }
    let items = items(wanted, &destination);
    if items.is_empty() {
        let formats = detail.spec.kind.extensions();
        let message = format!(
            "the job's frames are {}, not what `{}` says",
            formats.join(" and "),
            args.output.display()
        );
        return Err(CliError::new(Status::NotFound, message));
    }
    Ok((items, claim))
}

/// Fetches what can be, and returns the number of files that are here and what is not.
async fn fetch_all(
    client: &FarmClient,
    args: &FetchArgs,
    job: JobId,
    items: Vec<Item>,
) -> Result<(usize, Vec<Blocked>), CliError> {
    let existing = if args.overwrite { Existing::Replace } else { Existing::Keep };
    let bytes = items.iter().map(|item| item.file.length).sum();
    let mut bar = Downloads::new(Audience::of_stderr(args.json), bytes);
    let (mut here, mut blocked) = (0, Vec::new());
    for item in items {
        if item.path.is_dir() {
            blocked.push(Blocked { item, found: Found::Folder });
            continue;
        }
        bar.begin(&item.path.display().to_string());
        let of = ((job, item.frame), &item.file);
        let fetched = fetch(client, of, (&item.path, existing), &mut |held| bar.set(held)).await?;
        bar.advance(item.file.length);
        if let Fetched::NotReplaced(found) = fetched {
            blocked.push(Blocked { item, found });
            continue;
        }
        here += 1;
        if args.json {
            print_line(&item, fetched == Fetched::New, None)?;
        }
    }
    bar.end();
    Ok((here, blocked))
}

fn print_line(item: &Item, is_new: bool, problem: Option<&str>) -> Result<(), CliError> {
    let mut line = json::value(&item.file)?;
    line["frame"] = json!(item.frame.0);
    line["path"] = json!(item.path);
    line["fetched"] = json!(is_new);
    line["problem"] = json!(problem);
    json::print_value(&line)
}

/// Frames of other jobs, by the bytes of their files.
type Others = BTreeMap<BlobHash, (JobId, FrameNumber)>;

/// Frames of the newest other jobs of the same name. Only the error's text depends on them, so a
/// failure counts as none.
async fn others(client: &FarmClient, of: &JobSummary) -> Others {
    let mut others = Others::new();
    let query = JobQuery::first(JobSelection { name: Some(of.name.clone()), ..Default::default() });
    let Ok(Response::Jobs(page)) = client.request(&Request::Jobs(query)).await else {
        return others;
    };
    let of_name = page.jobs.iter().filter(|job| job.name == of.name && job.job != of.job);
    for job in of_name.map(|job| job.job).take(OTHERS_MAX) {
        for status in job::frames(client, job).await.unwrap_or_default() {
            let FrameState::Done(files) = status.state else { continue };
            others.extend(files.iter().map(|file| (file.hash, (job, status.frame))));
        }
    }
    others
}

/// The error for what was not fetched: each file, and what has its name.
fn not_replaced(
    args: &FetchArgs,
    fetched: usize,
    blocked: &[Blocked],
    others: &Others,
) -> Result<CliError, CliError> {
    let count = counted(blocked.len() as u64, "file");
    let verb = if blocked.len() == 1 { "was" } else { "were" };
    let rest = if fetched > 0 { format!("; the other {fetched} are here") } else { String::new() };
    let mut text = format!("{count} {verb} not replaced{rest}");
    for (index, Blocked { item, found }) in blocked.iter().enumerate() {
        if index < BLOCKED_TOLD || args.json {
            let problem = problem(*found, &item.path, others);
            if index < BLOCKED_TOLD {
                text += &format!("\n  `{}` {problem}", item.path.display());
            }
            if args.json {
                print_line(item, false, Some(&problem))?;
            }
        }
    }
    if blocked.len() > BLOCKED_TOLD {
        text += &format!("\n  and {} more", blocked.len() - BLOCKED_TOLD);
    }
    Ok(CliError::new(Status::NotReplaced, text).hint(
        "fetch elsewhere (-o 'DIR/{job}'), move what is there away, or replace it (--overwrite)",
    ))
}

/// What has the name of a file.
fn problem(found: Found, path: &Path, others: &Others) -> String {
    match found {
        Found::Folder => "is a folder, which --overwrite does not replace either".to_owned(),
        Found::BrokenLink => "is a link to nothing".to_owned(),
        Found::Special => "is a device, a pipe or a socket".to_owned(),
        Found::Same | Found::Different => {
            let other = hash_file(path).ok().and_then(|(hash, _)| others.get(&hash));
            match other {
                Some((job, frame)) => format!("is frame {} of job {job}", frame.0),
                None => "is not this job's: it was changed or made by somebody".to_owned(),
            }
        }
    }
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
