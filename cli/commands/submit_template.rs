//! `submit` of a template or a preset: checks all its jobs, sends them as one batch, and prints
//! their ids.

use super::watch::{follow, outcome_on_farm, unless_interrupted};
use super::{export, preset};
use crate::args::submit::SubmitArgs;
use crate::client::{Farm, unexpected};
use crate::error::{CliError, Status};
use crate::json;
use crate::progress::{Audience, Doing, Uploads};
use crate::submission::batch::{self, Batch};
use crate::submission::send;
use crate::table::{bytes, counted, printable, table};
use crate::template::Planned;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;
use tessera_protocol::JobSpec;
use tessera_protocol::client::{Request, Response};
use tessera_protocol::job::Until;
use tessera_protocol::selection::{JobChange, JobSelection, JobsChange};

/// Options that are about the command and not about a job.
const TAKEN: [&str; 10] = [
    "coordinator",
    "dry-run",
    "export",
    "identity",
    "json",
    "name",
    "scene-memory",
    "set",
    "wait",
    "watch",
];
/// Reason of the cancel of jobs whose others were refused.
const HALF: &str = "another job of its template was refused";

/// `tessera submit TEMPLATE.toml`, or `preset:NAME`.
pub(super) async fn run(args: SubmitArgs) -> Result<Status, CliError> {
    if let Some(other) = args.given.iter().find(|name| !TAKEN.contains(&name.as_str())) {
        let text = format!("--{other} is not taken with a template");
        return Err(CliError::new(Status::Usage, text).hint(format!(
            "write `{other}` into the step that it is for, or make it a parameter of the template \
             and give that a value by --set"
        )));
    }
    let (path, name) = (args.picture.scene.clone(), args.name.clone());
    let set = args.set.clone();
    let preset = match preset::named(&path) {
        Some(name) => Some(preset::get(&Farm::of(&args.farm)?, name).await?),
        None => None,
    };
    let checked = tokio::task::spawn_blocking(move || match preset {
        Some(preset) => batch::check_text(&preset.text, &path, name.as_deref(), &set),
        None => batch::check(&path, name.as_deref(), &set),
    })
    .await;
    let batch = checked.map_err(|error| {
        CliError::new(Status::Failure, error)
            .context(format!("`{}` cannot be read", args.picture.scene.display()))
    })??;
    for note in &batch.plan.notes {
        eprintln!("note: {}", printable(note));
    }
    if args.export.is_some() {
        return export::all(&batch, args.picture.scene.parent().unwrap_or(Path::new("")));
    }
    if args.dry_run {
        return dry_run(&batch, &args.picture.scene, args.json);
    }
    let farm = Farm::of(&args.farm)?;
    let mut uploads = Uploads::new(Audience::of_stderr(false));
    if let Err(error) = send::submit_all(&farm, &batch.jobs, &batch.files, &mut uploads).await {
        return Err(taken_back(&farm, &batch, error).await);
    }
    told(&batch, args.json)?;
    match args.wait || args.watch {
        true => wait(&farm, &batch, args.watch).await,
        false => Ok(Status::Done),
    }
}

/// The ids on standard output, in the order of the plan.
fn told(batch: &Batch, as_json: bool) -> Result<(), CliError> {
    if as_json {
        let job = |(sending, planned): (&send::Sending, &Planned)| {
            let values: BTreeMap<_, _> = planned.values.iter().cloned().collect();
            let Planned { step, name, .. } = planned;
            json!({ "job": sending.job, "name": name, "step": step, "values": values })
        };
        let jobs: Vec<_> = batch.jobs.iter().zip(&batch.plan.jobs).map(job).collect();
        return json::print(&json!({ "batch": batch.name, "jobs": jobs }));
    }
    for sending in &batch.jobs {
        json::line(&sending.job.to_string())?;
    }
    let Batch { name, jobs, .. } = batch;
    let count = counted(jobs.len() as u64, "job");
    eprintln!("{count} in the batch {name}; `tessera jobs --batch {name}` lists them");
    Ok(())
}

/// Nothing of a batch stays where a job of it was refused.
async fn taken_back(farm: &Farm, batch: &Batch, error: CliError) -> CliError {
    let Batch { name, .. } = batch;
    let selection = JobSelection { batch: Some(name.clone()), ..JobSelection::default() };
    let change = JobChange::Cancel { reason: HALF.to_owned() };
    let change = JobsChange { change, selection, all: false, dry_run: false };
    match farm.ask(&Request::ChangeJobs(Box::new(change))).await {
        Ok(Response::Changed(changed)) if changed.jobs.is_empty() => error,
        Ok(Response::Changed(changed)) => {
            let count = counted(changed.jobs.len() as u64, "job");
            error.context(format!("the template was refused, and {count} of it cancelled"))
        }
        Ok(_) => unexpected(),
        Err(_) => error.hint(format!(
            "some of its jobs may have been accepted; `tessera cancel --batch {name}` ends them"
        )),
    }
}

/// Waits for all jobs, and says how each ended.
async fn wait(farm: &Farm, batch: &Batch, is_shown: bool) -> Result<Status, CliError> {
    let mut worst: Option<CliError> = None;
    let mut wrong = 0;
    for sending in &batch.jobs {
        let ended = match is_shown {
            true => follow(farm, sending.job, Doing::of(&sending.spec.kind), false).await,
            false => {
                let mut heard = |_: &_| {};
                let following = farm.follow(sending.job, &mut heard);
                let summary = unless_interrupted(sending.job, following).await;
                summary.and_then(|summary| outcome_on_farm(&summary).map(|_| summary))
            }
        };
        let name = printable(&sending.spec.name);
        match ended {
            Ok(summary) => {
                let frames = counted(summary.frames.into(), "frame");
                eprintln!("{name}: done, {} of {frames}", summary.frames_done);
            }
            Err(error) if error.status() == Status::Interrupted => {
                return Err(error.hint(format!("`tessera cancel --batch {}`", batch.name)));
            }
            Err(error) => {
                wrong += 1;
                eprintln!("{name}: {}", error.to_string().trim_start_matches("error: "));
                worst.get_or_insert(error);
            }
        }
    }
    let count = counted(batch.jobs.len() as u64, "job");
    match worst {
        None => Ok(Status::Done),
        Some(error) => Err(error.context(format!("{wrong} of {count} did not succeed"))),
    }
}

/// What would be submitted.
fn dry_run(batch: &Batch, path: &Path, as_json: bool) -> Result<Status, CliError> {
    if as_json {
        let specs: Vec<&JobSpec> = batch.jobs.iter().map(|sending| &sending.spec).collect();
        json::print(&specs)?;
        return Ok(Status::Done);
    }
    let plan = &batch.plan;
    let shown = |text: &str| json::line(&printable(text));
    shown(&format!("template {}, {}", plan.name, path.display()))?;
    if !plan.description.is_empty() {
        shown(&format!("for      {}", plan.description))?;
    }
    let (files, sum) = batch.files.sum();
    shown(&format!("files    {files}, {}", bytes(sum)))?;
    shown(&format!("jobs     {}", plan.jobs.len()))?;
    let rows: Vec<Vec<String>> = batch
        .jobs
        .iter()
        .zip(&plan.jobs)
        .map(|(sending, planned)| {
            let kind = &sending.spec.kind;
            let verb = if kind.render().is_some() { "render" } else { "compute" };
            let frames = kind.frames().to_string();
            vec![planned.name.clone(), verb.to_owned(), frames, waits(planned, &plan.jobs)]
        })
        .collect();
    json::line(table(&["NAME", "KIND", "FRAMES", "AFTER"], &rows).trim_end())?;
    Ok(Status::Done)
}

fn waits(planned: &Planned, jobs: &[Planned]) -> String {
    let one = |(place, until): &(usize, Until)| {
        let how = match until {
            Until::Success => "",
            Until::Frames => ":frames",
            Until::End => " (any end)",
        };
        format!("{}{how}", jobs[*place].name)
    };
    let mut words: Vec<String> = planned.after.iter().take(3).map(one).collect();
    if planned.after.len() > words.len() {
        words.push(format!("and {} more", planned.after.len() - words.len()));
    }
    words.join(", ")
}
