//! `submit`: checks a scene, sends it and the job; prints the job's id.

use super::follow;
use crate::args::users::SubmitArgs;
use crate::client::Farm;
use crate::error::{CliError, Status};
use crate::progress::{Audience, Uploads};
use crate::spec::{self, JobOptions, SceneFiles};
use crate::table::bytes;
use crate::{json, submission};
use serde_json::json;
use std::sync::Arc;
use tessera_protocol::JobSpec;
use tessera_scenes::CameraChoice;

/// `tessera submit`.
pub(crate) async fn run(args: SubmitArgs) -> Result<Status, CliError> {
    let args = Arc::new(args);
    let checked = {
        let args = args.clone();
        tokio::task::spawn_blocking(move || check(&args)).await
    };
    let (spec, files) = checked.map_err(|error| {
        // An importer that panics is a fault of ours; it must still be told as an error about this scene.
        CliError::new(Status::Failure, error)
            .context(format!("`{}` cannot be read", args.picture.scene.display()))
    })??;
    if args.dry_run {
        return dry_run(&args, &spec, &files);
    }
    let farm = Farm::of(&args.farm)?;
    let mut uploads = Uploads::new(Audience::of_stderr(false));
    let job = submission::submit(&farm, &spec, &files, &mut uploads).await?;
    match args.json {
        true => json::print(&json!({ "job": job, "name": spec.name }))?,
        false => json::line(&job.to_string())?,
    }
    if args.wait || args.watch {
        return follow::follow(&farm, job, args.json && args.watch).await;
    }
    Ok(Status::Done)
}

fn check(args: &SubmitArgs) -> Result<(JobSpec, SceneFiles), CliError> {
    let scene = spec::load(&args.picture.scene, &args.picture.env)?;
    let report = scene.report();
    let notes = if args.picture.eye.is_none() { report.camera_note(&CameraChoice::Default) } else { None };
    for warning in report.warnings.iter().map(String::as_str).chain(notes) {
        tracing::warn!("{warning}");
    }
    let files = SceneFiles::gather(&args.picture.scene, &args.picture.env)?;
    let mut formats: Vec<_> = args.format.iter().map(|format| format.0).collect();
    formats.sort();
    formats.dedup();
    let options = JobOptions { name: args.name.clone(), priority: args.priority, formats };
    let spec = spec::job(&args.picture, options, &files)?;
    Ok((spec, files))
}

fn dry_run(args: &SubmitArgs, spec: &JobSpec, files: &SceneFiles) -> Result<Status, CliError> {
    if args.json {
        json::print(spec)?;
        return Ok(Status::Done);
    }
    let total = files.assets.iter().map(|asset| asset.length).sum();
    let frames = spec::frames(&args.picture);
    json::line(&format!("job     {}, priority {}", spec.name, spec.priority))?;
    json::line(&format!("files   {}, {}", files.assets.len(), bytes(total)))?;
    json::line(&format!(
        "frames  {frames} ({}), {}, {} spp",
        frames.len(),
        args.picture.size,
        args.picture.spp
    ))?;
    Ok(Status::Done)
}
