//! `submit`: checks a scene, sends its files and the job, and prints the job's id. A template is
//! for `submit_template`.

use super::test_frame::{self, Prediction};
use super::{export, preset, submit_template, watch};
use crate::args::submit::SubmitArgs;
use crate::client::Farm;
use crate::error::{CliError, Status};
use crate::json;
use crate::openjd::is_document;
use crate::progress::{Audience, Doing, Uploads};
use crate::submission::after;
use crate::submission::render::{self, SceneFiles};
use crate::submission::scenes::Scenes;
use crate::submission::send;
use crate::table::{bytes, printable, span};
use crate::template::{Work, is_template};
use serde_json::json;
use std::sync::Arc;
use tessera_protocol::JobSpec;
use tessera_protocol::job::FormatSpec;
use tessera_protocol::job::options::{self, Chosen, away_from_default};
use tessera_protocol::utc::utc;

/// `tessera submit`.
pub(crate) async fn run(args: SubmitArgs) -> Result<Status, CliError> {
    let path = &args.picture.scene;
    if preset::named(path).is_some() || is_template(path) || is_document(path) {
        return submit_template::run(args).await;
    }
    if !args.set.is_empty() {
        let text = "--set is for templates, and a scene has no parameters";
        return Err(CliError::new(Status::Usage, text));
    }
    let args = Arc::new(args);
    if args.export.is_some() {
        export::refuse_waits(&args.after)?;
    }
    // Before the scene is read, which takes longer.
    let after = after::find(&args.farm, &args.after).await?;
    let checked = {
        let args = args.clone();
        tokio::task::spawn_blocking(move || Scenes::default().check(&args)).await
    };
    let (mut spec, files) = checked.map_err(|error| {
        // An importer that panics is a fault of ours; it must still be told as an error about this
        // scene.
        CliError::new(Status::Failure, error)
            .context(format!("`{}` cannot be read", args.picture.scene.display()))
    })??;
    spec.after = after;
    if args.export.is_some() {
        let work = Work::Render(args.picture.scene.to_string_lossy().into_owned());
        return export::one(work, &args.chosen, &spec);
    }
    let prediction = predicted(&args, &spec, &files).await?;
    if args.dry_run {
        return dry_run(&args, (&spec, prediction), &files);
    }
    let farm = Farm::of(&args.farm)?;
    let mut uploads = Uploads::new(Audience::of_stderr(false));
    let job = send::submit(&farm, &spec, &*files, &mut uploads).await?;
    match args.json {
        true => json::print(&json!({ "job": job, "name": spec.name }))?,
        false => json::line(&job.to_string())?,
    }
    if args.wait || args.watch {
        return watch::watch(&farm, job, Doing::Rendering, args.json && args.watch).await;
    }
    Ok(Status::Done)
}

/// Renders a test frame, if one is wanted, and says what the job should take.
async fn predicted(
    args: &SubmitArgs,
    spec: &JobSpec,
    files: &SceneFiles,
) -> Result<Option<Prediction>, CliError> {
    if !args.test_frame {
        return Ok(None);
    }
    let mut uploads = Uploads::new(Audience::of_stderr(false));
    let prediction = test_frame::predict(&Farm::of(&args.farm)?, spec, files, &mut uploads).await?;
    eprintln!("{}", prediction.words());
    Ok(Some(prediction))
}

fn dry_run(
    args: &SubmitArgs,
    (spec, prediction): (&JobSpec, Option<Prediction>),
    files: &SceneFiles,
) -> Result<Status, CliError> {
    if args.json {
        let mut value = json::value(spec)?;
        if let Some(prediction) = &prediction {
            value["prediction"] = json::value(prediction)?;
        }
        json::print_value(&value)?;
        return Ok(Status::Done);
    }
    let total = files.assets.iter().map(|asset| asset.length).sum();
    let frames = render::frames(&args.picture);
    let pool = spec.pool.as_ref().map(|pool| format!(", pool {pool}")).unwrap_or_default();
    let nodes = spec.max_nodes.map(|nodes| format!(", at most {nodes} nodes")).unwrap_or_default();
    json::line(&format!("job     {}, priority {}{pool}{nodes}", spec.name, spec.priority))?;
    if let Some(secs) = spec.not_before {
        json::line(&format!("begins  not before {}", utc(secs)))?;
    }
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
