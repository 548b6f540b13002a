//! `submit`: checks a scene, sends its files and the job, and prints the job's id.

use super::watch;
use crate::args::picture::PictureArgs;
use crate::args::submit::SubmitArgs;
use crate::client::Farm;
use crate::error::{CliError, Status};
use crate::json;
use crate::progress::{Audience, Doing, Uploads};
use crate::submission::after;
use crate::submission::render::{self, JobOptions, SceneFiles};
use crate::submission::send;
use crate::table::{bytes, printable, span};
use crate::vectors::FrameSize;
use serde_json::json;
use std::sync::Arc;
use tessera_node::import::{ImportError, ImportedScene};
use tessera_protocol::job::FormatSpec;
use tessera_protocol::job::options::{self, Chosen, away_from_default};
use tessera_protocol::{FrameNumber, FrameSet, JobSpec};
use tessera_scenes::{CameraChoice, FlattenOptions};

/// `tessera submit`.
pub(crate) async fn run(args: SubmitArgs) -> Result<Status, CliError> {
    let args = Arc::new(args);
    // Before the scene is read, which takes longer.
    let after = after::find(&args.farm, &args.after).await?;
    let checked = {
        let args = args.clone();
        tokio::task::spawn_blocking(move || check(&args)).await
    };
    let (mut spec, files) = checked.map_err(|error| {
        // An importer that panics is a fault of ours; it must still be told as an error about this
        // scene.
        CliError::new(Status::Failure, error)
            .context(format!("`{}` cannot be read", args.picture.scene.display()))
    })??;
    spec.after = after;
    if args.dry_run {
        return dry_run(&args, &spec, &files);
    }
    let farm = Farm::of(&args.farm)?;
    let mut uploads = Uploads::new(Audience::of_stderr(false));
    let job = send::submit(&farm, &spec, &files, &mut uploads).await?;
    match args.json {
        true => json::print(&json!({ "job": job, "name": spec.name }))?,
        false => json::line(&job.to_string())?,
    }
    if args.wait || args.watch {
        return watch::watch(&farm, job, Doing::Rendering, args.json && args.watch).await;
    }
    Ok(Status::Done)
}

fn check(args: &SubmitArgs) -> Result<(JobSpec, SceneFiles), CliError> {
    let picture = &args.picture;
    let options = render::load_options_of(picture);
    let scene = render::load(&picture.scene, &options, args.import.limits())?;
    let size = render::frame_size(picture)?;
    let report = scene.report();
    let notes =
        if args.picture.eye.is_none() { report.camera_note(&CameraChoice::Default) } else { None };
    let is_still = render::frames(picture) == FrameSet::one(FrameNumber(0));
    let still = if is_still { report.still_note() } else { None };
    let notes = notes.into_iter().chain(still.as_deref());
    for warning in report.warnings.iter().map(String::as_str).chain(notes) {
        tracing::warn!("{warning}");
    }
    let files = SceneFiles::gather(&args.picture.scene, &args.picture.env)?;
    let mut formats: Vec<_> = args.format.iter().map(|format| format.0).collect();
    formats.sort();
    formats.dedup();
    render::warn_of_formats(picture, &formats, false);
    let device_bytes = device_bytes(&scene, picture, size)?;
    let options = JobOptions {
        name: args.name.clone(),
        priority: args.priority,
        pool: args.pool.clone(),
        retry: args.tries.policy(),
        max_nodes: args.max_nodes,
        size,
        formats,
        device_bytes,
        space: render::space_of(&scene, picture),
    };
    let spec = render::job(&args.picture, options, &files)?;
    Ok((spec, files))
}

/// Returns the device memory that the first frame needs, in bytes; 0 if the frame cannot be laid
/// out, which nodes will report. The hierarchy is built for this, which takes seconds for millions
/// of triangles. A job that fits on no device is refused before anything is sent.
///
/// # Errors
///
/// If flattening exceeds the limits or ends the importer, since nodes would fail in the same way.
fn device_bytes(
    scene: &ImportedScene,
    picture: &PictureArgs,
    size: FrameSize,
) -> Result<u64, ImportError> {
    let first = render::frames(picture).iter().next().map_or(0, |frame| frame.0);
    let still = FlattenOptions::still(size.width, size.height);
    let (time_secs, frame_secs) = (f64::from(first) / picture.fps, 1.0 / picture.fps);
    let options = FlattenOptions { time_secs, frame_secs, ..still };
    match scene.flatten(&options) {
        Ok(flat) => Ok(flat.bytes()),
        Err(error) if error.is_end() => Err(error),
        Err(_) => Ok(0),
    }
}

fn dry_run(args: &SubmitArgs, spec: &JobSpec, files: &SceneFiles) -> Result<Status, CliError> {
    if args.json {
        json::print(spec)?;
        return Ok(Status::Done);
    }
    let total = files.assets.iter().map(|asset| asset.length).sum();
    let frames = render::frames(&args.picture);
    let pool = spec.pool.as_ref().map(|pool| format!(", pool {pool}")).unwrap_or_default();
    let nodes = spec.max_nodes.map(|nodes| format!(", at most {nodes} nodes")).unwrap_or_default();
    json::line(&format!("job     {}, priority {}{pool}{nodes}", spec.name, spec.priority))?;
    for after in &spec.after {
        json::line(&format!("after   {}, {}", after.job, after.until.words()))?;
    }
    json::line(&format!("files   {}, {}", files.assets.len(), bytes(total)))?;
    let spp = args.picture.spp();
    let time =
        args.picture.time.map(|secs| format!(" in {}", span(secs.into()))).unwrap_or_default();
    let samples = match args.picture.noise {
        None if time.is_empty() => format!("{spp} spp"),
        None => format!("at most {spp} spp{time}"),
        Some(noise) => format!("noise {noise} with at most {spp} spp{time}"),
    };
    let size = spec.kind.render().map(|render| format!("{}x{}", render.width, render.height));
    let size = size.unwrap_or_default();
    let depth = args.picture.depth;
    json::line(&format!("frames  {frames} ({}), {size}, {samples}, depth {depth}", frames.len()))?;
    if let Some(render) = spec.kind.render() {
        let formats: Vec<_> = render.formats.iter().map(|format| flag_of(*format)).collect();
        json::line(&format!("formats {}", formats.join(", ")))?;
        let chosen = away_from_default(render);
        if let Some(words) = options::words(&chosen) {
            json::line(&format!("options {}", printable(&words)))?;
        }
        for sentence in chosen.iter().filter_map(Chosen::sentence) {
            json::line(&format!("note    {sentence}"))?;
        }
    }
    json::line(&format!("memory  {} on a device", bytes(spec.device_bytes)))?;
    Ok(Status::Done)
}

/// The value of --format.
fn flag_of(format: FormatSpec) -> &'static str {
    match format {
        FormatSpec::Exr => "exr",
        FormatSpec::Png => "png",
        FormatSpec::Png16 => "png16",
        FormatSpec::Jpeg => "jpeg",
    }
}
