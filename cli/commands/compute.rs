//! `compute`: a kernel over a domain, on a farm; waits for the result and writes it.

use super::follow;
use super::jobs::frames;
use crate::args::compute::ComputeArgs;
use crate::client::Farm;
use crate::compute_spec::{self, Prepared};
use crate::error::{CliError, Status};
use crate::frame_files::{Destination, fetch, format_of};
use crate::progress::{Audience, Uploads};
use crate::{json, submission};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tessera_protocol::JobId;
use tessera_protocol::compute::{Element, npy};
use tessera_protocol::status::FrameState;

/// `tessera compute`.
pub(crate) async fn run(args: ComputeArgs) -> Result<Status, CliError> {
    if args.header {
        json::line(tessera_node::compute::HEADER.trim_end())?;
        return Ok(Status::Done);
    }
    let args = Arc::new(args);
    let destination = destination(&args)?;
    let prepared = {
        let args = args.clone();
        tokio::task::spawn_blocking(move || compute_spec::prepare(&args)).await
    };
    let Prepared { spec, files } = prepared.map_err(|error| CliError::new(Status::Failure, error))??;
    let farm = Farm::of(&args.farm)?;
    let mut uploads = Uploads::new(Audience::of_stderr(args.json));
    let job = submission::submit(&farm, &spec, &files, &mut uploads).await?;
    drop(files);
    let Some(destination) = destination.filter(|_| !args.detach) else {
        match args.json {
            true => json::print(&json!({ "job": job, "name": spec.name }))?,
            false => json::line(&job.to_string())?,
        }
        return Ok(Status::Done);
    };
    let outcome = follow::follow(&farm, job, false).await;
    // What is finished is written, whatever became of the rest.
    let written = write(&farm, job, &destination, &args).await?;
    outcome?;
    if args.json {
        json::print(&json!({ "job": job, "files": written }))?;
    }
    Ok(Status::Done)
}

fn destination(args: &ComputeArgs) -> Result<Option<Destination>, CliError> {
    let Some(out) = &args.out else { return Ok(None) };
    let Some(format) = format_of(out) else {
        let message = format!("`{}` is neither .npy, .exr nor .png", out.display());
        return Err(CliError::new(Status::Usage, message).hint("the extension of --out says the format"));
    };
    Destination::file(out, format, &args.frames).map(Some)
}

async fn write(
    farm: &Farm,
    job: JobId,
    destination: &Destination,
    args: &ComputeArgs,
) -> Result<Vec<PathBuf>, CliError> {
    let client = farm.connect().await?;
    let mut written = Vec::new();
    for status in frames(&client, job).await? {
        let FrameState::Done(files) = status.state else { continue };
        for file in files {
            let Some(path) = destination.path(status.frame, &file.format) else { continue };
            fetch(&client, &file, &path, &mut |_| {}).await?;
            if args.reduce.is_some() && !args.json {
                print_values(&path)?;
            }
            written.push(path);
        }
    }
    client.close().await;
    Ok(written)
}

/// A reduced result, a value a channel, on one line.
fn print_values(path: &Path) -> Result<(), CliError> {
    let bytes = std::fs::read(path)?;
    let header = npy::Header::read(&bytes, bytes.len() as u64)
        .map_err(|error| CliError::new(Status::Failure, error).context(format!("`{}`", path.display())))?;
    let values = bytes[header.data_offset..].chunks_exact(header.element.bytes());
    let texts: Vec<String> = values.map(|value| text_of(header.element, value)).collect();
    json::line(&texts.join(" "))
}

fn text_of(element: Element, bytes: &[u8]) -> String {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    let bits = u64::from_le_bytes(word);
    match element {
        Element::F32 => f32::from_bits(bits as u32).to_string(),
        Element::F64 => f64::from_bits(bits).to_string(),
        Element::I32 => (bits as u32 as i32).to_string(),
        Element::U32 | Element::U64 => bits.to_string(),
        Element::I64 => (bits as i64).to_string(),
    }
}
