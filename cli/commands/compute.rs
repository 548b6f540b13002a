//! `compute`: runs a kernel over a domain, on a farm or only on this machine; waits for the result
//! and writes it.

use super::job::frames;
use super::{export, watch};
use crate::args::chosen::{Chosen, OptionValue};
use crate::args::compute::ComputeArgs;
use crate::client::Farm;
use crate::error::{CliError, Status};
use crate::frame_files::{Destination, fetch, format_of};
use crate::json;
use crate::local_farm::{LocalFarm, node_failed};
use crate::progress::{Audience, Doing, Uploads};
use crate::submission::compute::{self, Kernels, Prepared};
use crate::submission::job_inputs::{KnownJobs, add_waits};
use crate::submission::{after, outputs, send};
use crate::template::Work;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tessera_node::import::ImportLimits;
use tessera_node::{DeviceSpec, Finishes};
use tessera_protocol::compute::{ComputeFormat, Element, OutputArray, Program, half_to_f64, npy};
use tessera_protocol::device::{CudaInfo, DeviceInfo, DeviceKind};
use tessera_protocol::status::FrameState;
use tessera_protocol::{ComputeSpec, JobId, JobSpec};
use tessera_transport::blob::Existing;

/// `tessera compute`.
pub(crate) async fn run(args: ComputeArgs) -> Result<Status, CliError> {
    if args.header {
        json::line(tessera_node::compute::HEADER.trim_end())?;
        return Ok(Status::Done);
    }
    let here = &args.devices;
    let chosen = here.device != [DeviceSpec::Auto] && std::env::var_os("TESSERA_DEVICE").is_none();
    if !args.local && (chosen || here.threads.is_some() || here.isa.is_some()) {
        return Err(CliError::new(Status::Usage, "--device, --threads and --isa are for --local")
            .hint("the nodes of a farm have devices of their own"));
    }
    let args = Arc::new(args);
    if args.export.is_some() {
        export::refuse_waits(&args.after)?;
    }
    let destination = destination(&args)?;
    let after = after::find(&args.farm, &args.after).await?;
    let known = KnownJobs::find(&args.farm, &args).await?;
    let prepared = {
        let args = args.clone();
        let prepare = move || compute::prepare(&args, &mut Kernels::default(), &known);
        tokio::task::spawn_blocking(prepare).await
    };
    let mut prepared = prepared.map_err(|error| CliError::new(Status::Failure, error))??;
    add_waits(&mut prepared.spec.after, after)?;
    if args.export.is_some() {
        let work = Work::Compute(args.kernel.clone().unwrap_or_default());
        return export::one(work, &with_format(&args), &prepared.spec);
    }
    if args.local {
        return on_this_machine(&args, &prepared, destination).await;
    }
    on_a_farm(&args, prepared, destination).await
}

/// The options that are set, with the format that --out has.
fn with_format(args: &ComputeArgs) -> Chosen {
    let mut chosen = args.chosen.clone();
    if let Some(format) = args.out.as_deref().and_then(format_of) {
        chosen.push(("format".to_owned(), OptionValue::Text(format.to_owned())));
    }
    chosen
}

async fn on_a_farm(
    args: &ComputeArgs,
    prepared: Prepared,
    destination: Option<Destination>,
) -> Result<Status, CliError> {
    let Prepared { spec, files } = prepared;
    let farm = Farm::of(&args.farm)?;
    let mut uploads = Uploads::new(Audience::of_stderr(args.json));
    let job = send::submit(&farm, &spec, &files, &mut uploads).await?;
    drop(files);
    let Some(destination) = destination.filter(|_| !args.detach) else {
        match args.json {
            true => json::print(&json!({ "job": job, "name": spec.name }))?,
            false => json::line(&job.to_string())?,
        }
        return Ok(Status::Done);
    };
    let ended = watch::follow(&farm, job, Doing::Computing, false).await;
    // Write finished frames even if others have failed.
    let written = write(&farm, job, &destination, (&spec, args.json)).await?;
    ended?;
    print(args, job, &written)?;
    Ok(Status::Done)
}

/// A farm in this process, which ends with the job.
async fn on_this_machine(
    args: &ComputeArgs,
    prepared: &Prepared,
    destination: Option<Destination>,
) -> Result<Status, CliError> {
    let Some(destination) = destination else {
        return Err(CliError::new(Status::Usage, "--local needs --out"));
    };
    let folder = tempfile::Builder::new().prefix("tessera-compute-").tempdir()?;
    let own = prepared.spec.kind.compute().is_some_and(|compute| compute.runs_users_kernel());
    let mut local = match own {
        true => LocalFarm::start_compared(folder.path(), &args.devices).await?,
        false => {
            LocalFarm::start(
                folder.path(),
                &args.devices,
                (1, ImportLimits::default()),
                Finishes::Never,
            )
            .await?
        }
    };
    let result = match can_do(&local, &prepared.spec) {
        Ok(()) => tokio::select! {
            result = finish(&mut local, prepared, &destination, args) => result,
            _ = tokio::signal::ctrl_c() => Err(CliError::new(Status::Interrupted, "interrupted; \
                nothing was kept")),
        },
        Err(error) => Err(error),
    };
    local.stop().await;
    result.map(|()| Status::Done)
}

/// No other node will come: a job that would wait forever is refused.
fn can_do(local: &LocalFarm, spec: &JobSpec) -> Result<(), CliError> {
    let Some(compute) = spec.kind.compute().filter(|compute| compute.needs_cuda()) else {
        return Ok(());
    };
    let devices: Vec<&DeviceInfo> = local.nodes.iter().flat_map(|node| node.devices()).collect();
    if !devices.iter().any(|device| device.kind == DeviceKind::Cuda) {
        let message = "the kernel needs a CUDA device, and --local has none";
        return Err(CliError::new(Status::Failure, message).hint(
            "`tessera doctor` says why; built-in kernels run on CPUs too, and without \
                --local a farm is asked",
        ));
    }
    if let Some(needs) = compute.ptx.filter(|_| !devices.iter().any(|of| of.runs(compute))) {
        let take = |cuda: &CudaInfo| {
            let ((ptx, of), (major, minor)) = (cuda.ptx_version, cuda.compute_capability);
            format!("the driver here takes PTX {ptx}.{of}, on compute capability {major}.{minor}")
        };
        let have = devices.iter().find_map(|device| device.cuda.as_ref().map(take));
        let message = format!("the kernel is {needs}, and {}", have.unwrap_or_default());
        return Err(CliError::new(Status::Failure, message).hint(
            "make PTX for an older version and target, or give the .cu file: from it PTX is made \
                for all",
        ));
    }
    if matches!(compute.program, Program::Cuda(_))
        && local.nodes.iter().all(|node| node.compiler().is_none())
    {
        let message = "there is no NVRTC here to compile the kernel with";
        return Err(CliError::new(Status::Failure, message)
            .hint("install it (`tessera doctor` says where it is looked for), or give PTX"));
    }
    Ok(())
}

async fn finish(
    local: &mut LocalFarm,
    prepared: &Prepared,
    destination: &Destination,
    args: &ComputeArgs,
) -> Result<(), CliError> {
    let LocalFarm { farm, nodes, .. } = local;
    let mut uploads = Uploads::new(Audience::Quiet);
    let job = send::submit(farm, &prepared.spec, &prepared.files, &mut uploads).await?;
    let shown = (Doing::Computing, Audience::of_stderr(args.json));
    let summary = tokio::select! {
        summary = watch::follow_shown(farm, job, shown) => summary?,
        error = node_failed(nodes) => return Err(error),
    };
    let written = write(farm, job, destination, (&prepared.spec, args.json)).await?;
    watch::outcome(&summary)?;
    print(args, job, &written)
}

fn print(args: &ComputeArgs, job: JobId, written: &[PathBuf]) -> Result<(), CliError> {
    if args.json { json::print(&json!({ "job": job, "files": written })) } else { Ok(()) }
}

fn destination(args: &ComputeArgs) -> Result<Option<Destination>, CliError> {
    let Some(out) = &args.out else { return Ok(None) };
    let Some(format) = format_of(out) else {
        let message = format!("`{}` is neither .npy, .exr nor .png", out.display());
        return Err(
            CliError::new(Status::Usage, message).hint("the extension of --out says the format")
        );
    };
    let names: Vec<String> = args.output.iter().map(|text| outputs::name(text)).collect();
    let destination = Destination::files(out, format, &args.frames, &names)?;
    if !args.detach {
        destination.check("--out", &args.frames)?;
    }
    Ok(Some(destination))
}

async fn write(
    farm: &Farm,
    job: JobId,
    destination: &Destination,
    (spec, is_json): (&JobSpec, bool),
) -> Result<Vec<PathBuf>, CliError> {
    let outputs = spec.kind.compute().map(ComputeSpec::written).unwrap_or_default();
    let client = farm.connect().await?;
    let mut written = Vec::new();
    for status in frames(&client, job).await? {
        let FrameState::Done(files) = status.state else { continue };
        for file in files {
            let Some(path) = destination.path(status.frame, &file.format) else { continue };
            fetch(&client, ((job, status.frame), &file), (&path, Existing::Replace), &mut |_| {})
                .await?;
            if !is_json {
                print_reduced(&file.format, &path, &outputs)?;
            }
            written.push(path);
        }
    }
    client.close().await;
    Ok(written)
}

/// A reduced result, a value a channel, on one line; a named one after its name. What has keys is
/// not printed.
fn print_reduced(format: &str, path: &Path, outputs: &[OutputArray]) -> Result<(), CliError> {
    let npy = ComputeFormat::Npy.extension();
    let found = outputs.iter().find(|output| output.file_extension(npy) == format);
    let found = found.filter(|output| output.reduction.is_some() && output.keys == 0);
    let Some(OutputArray { name, .. }) = found else { return Ok(()) };
    let bytes = std::fs::read(path)?;
    let header = npy::Header::read(&bytes, bytes.len() as u64).map_err(|error| {
        CliError::new(Status::Failure, error).context(format!("`{}`", path.display()))
    })?;
    let values = bytes[header.data_offset..].chunks_exact(header.element.bytes());
    let texts: Vec<String> = values.map(|value| text_of(header.element, value)).collect();
    let name = if name.is_empty() { String::new() } else { format!("{name} ") };
    json::line(&format!("{name}{}", texts.join(" ")))
}

fn text_of(element: Element, bytes: &[u8]) -> String {
    let mut word = [0; 8];
    let length = bytes.len().min(word.len());
    word[..length].copy_from_slice(&bytes[..length]);
    let bits = u64::from_le_bytes(word);
    match element {
        Element::F32 => f32::from_bits(bits as u32).to_string(),
        Element::F64 => f64::from_bits(bits).to_string(),
        Element::I32 => (bits as u32 as i32).to_string(),
        Element::F16 => half_to_f64(bits as u16).to_string(),
        Element::I8 => (bits as u8 as i8).to_string(),
        Element::I16 => (bits as u16 as i16).to_string(),
        Element::I64 => (bits as i64).to_string(),
        Element::Bool => (bits != 0).to_string(),
        _ => bits.to_string(),
    }
}
