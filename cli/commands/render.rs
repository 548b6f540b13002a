//! `render`: renders a scene on a farm in this process (`local_farm`), and writes frames as they
//! finish.

use super::job::{frames, metered};
use super::watch::{detail_of, outcome};
use crate::args::render::RenderArgs;
use crate::client::Farm;
use crate::error::{CliError, Status};
use crate::frame_files::{Destination, fetch, format_of};
use crate::json;
use crate::local_farm::{FrameCost, LocalFarm, node_failed};
use crate::progress::{Audience, Doing, JobProgress, Uploads};
use crate::rusage::usage;
use crate::submission::render::{self, JobOptions, SceneFiles};
use crate::submission::send;
use crate::table::{bytes, count, printable};
use crate::vectors::FrameSize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;
use tessera_node::{Finishes, NodeStatus};
use tessera_protocol::client::Progress;
use tessera_protocol::job::options::{Chosen, OPTIONS, away_from_default};
use tessera_protocol::job::{FormatSpec, RetryPolicy, SpaceSpec};
use tessera_protocol::status::{FrameFile, FrameState, JobDetail, JobSummary};
use tessera_protocol::{FrameNumber, JobId, JobSpec};
use tessera_transport::FarmClient;
use tessera_transport::blob::Existing;
use tokio::sync::mpsc;

/// `tessera render`.
pub(crate) async fn run(args: RenderArgs) -> Result<Status, CliError> {
    let began = Instant::now();
    let args = Arc::new(args);
    let outputs = Outputs::of(&args)?;
    render::warn_of_formats(&args.picture, &outputs.formats, args.png16);
    let gathered = {
        let args = args.clone();
        tokio::task::spawn_blocking(move || gather(&args)).await
    };
    let (files, size, space) =
        gathered.map_err(|error| CliError::new(Status::Failure, error))??;
    let options = JobOptions {
        name: None,
        priority: 50,
        pool: None,
        // This process is the only node there will be.
        retry: RetryPolicy { give_up_secs: Some(0), ..RetryPolicy::default() },
        max_nodes: None,
        not_before: None,
        notify: Vec::new(),
        size,
        formats: outputs.formats.clone(),
        device_bytes: 0,
        space,
    };
    let spec = render::job(&args.picture, options, &files)?;

    let folder = tempfile::Builder::new().prefix("tessera-render-").tempdir()?;
    // What the coordinator finishes, it denoises on the processor.
    let finishes = if args.picture.denoise { Finishes::WithCuda } else { Finishes::Never };
    let nodes = (args.nodes, args.import.limits());
    let local = LocalFarm::start(folder.path(), &args.devices, nodes, finishes).await?;
    let mut rendering =
        Rendering { args: &args, spec: &spec, files: &files, outputs: &outputs, local };
    let result = tokio::select! {
        result = rendering.finish() => result,
        _ = tokio::signal::ctrl_c() => Err(CliError::new(Status::Interrupted, "interrupted; \
            only finished frames were kept")),
    };
    let (ended, status, (cpu, peak_bytes)) = (Instant::now(), rendering.local.status(), usage());
    let prepared = rendering.local.prepared();
    let cpu_before = rendering.local.stop().await;
    let (finished, written) = result?;
    let used = Used { cpu_secs: cpu - cpu_before.unwrap_or(cpu), peak_bytes };
    let chosen = spec.kind.render().map(away_from_default).unwrap_or_default();
    let report = Report { time: (began, ended), finished, written, status, prepared, used, chosen };
    report.print(&args)?;
    Ok(Status::Done)
}

/// The files of the scene, the size of its frames, and the space of the scene where the frames'
/// files depend on it. Blocks.
fn gather(args: &RenderArgs) -> Result<(SceneFiles, FrameSize, Option<SpaceSpec>), CliError> {
    let picture = &args.picture;
    let files = SceneFiles::gather(&picture.scene, &picture.env)?;
    let size = render::frame_size(picture)?;
    let space = match render::shows_places(picture) {
        true => {
            let options = render::load_options_of(picture);
            let scene = render::load(&picture.scene, &options, args.import.limits())?;
            render::space_of(scene.report(), picture)
        }
        false => None,
    };
    Ok((files, size, space))
}

/// Files to write, and their places.
struct Outputs {
    destinations: Vec<Destination>,
    formats: Vec<FormatSpec>,
}

impl Outputs {
    fn of(args: &RenderArgs) -> Result<Self, CliError> {
        let frames = render::frames(&args.picture);
        let mut formats = Vec::new();
        let mut destinations = Vec::new();
        for output in &args.output {
            let Some(format) = format_of(output).filter(|format| *format != "npy") else {
                let message = format!("`{}` is neither .exr, .png nor .jpg", output.display());
                return Err(CliError::new(Status::Usage, message)
                    .hint("the extension of -o says the format"));
            };
            let destination = Destination::file(output, format, &frames)?;
            destination.check("-o", &frames)?;
            destinations.push(destination);
            formats.push(match (format, args.png16) {
                ("exr", _) => FormatSpec::Exr,
                ("jpg", _) => FormatSpec::Jpeg,
                (_, false) => FormatSpec::Png,
                (_, true) => FormatSpec::Png16,
            });
        }
        formats.sort();
        formats.dedup();
        Ok(Self { destinations, formats })
    }

    fn paths(&self, frame: FrameNumber, format: &str) -> impl Iterator<Item = std::path::PathBuf> {
        self.destinations.iter().filter_map(move |destination| destination.path(frame, format))
    }
}

/// Written frames, by number.
type Written = BTreeMap<FrameNumber, WrittenFrame>;

/// Files that were written for one frame.
#[derive(Default)]
struct WrittenFrame {
    files: Vec<(FrameFile, std::path::PathBuf)>,
    /// For a frame with --time: the `--spp` that renders the same picture.
    spp: Option<u32>,
}

struct Rendering<'a> {
    args: &'a RenderArgs,
    spec: &'a JobSpec,
    files: &'a SceneFiles,
    outputs: &'a Outputs,
    local: LocalFarm,
}

impl Rendering<'_> {
    /// Submits, follows, and fetches each frame as it finishes. Ends early where a node gives up.
    async fn finish(&mut self) -> Result<(Finished, Written), CliError> {
        let audience = Audience::of_stderr(self.args.quiet);
        let mut uploads = Uploads::new(Audience::Quiet);
        let farm = &self.local.farm;
        let job = send::submit(farm, self.spec, self.files, &mut uploads).await?;
        let mut bar = JobProgress::new(audience, Doing::Rendering);
        let (finished, arriving) = mpsc::unbounded_channel();
        let mut heard = move |progress: &Progress| {
            bar.show(progress);
            for frame in progress.finished.iter() {
                // The receiver lives as long as this.
                let _ = finished.send(frame);
            }
            if progress.summary.state.is_final() {
                bar.end();
            }
        };
        let following = async {
            let summary = farm.follow(job, &mut heard).await;
            drop(heard);
            summary
        };
        let fetching = self.outputs.fetch_all(farm, job, arriving);
        let (summary, written) = tokio::select! {
            both = async { tokio::join!(following, fetching) } => both,
            error = node_failed(&mut self.local.nodes) => return Err(error),
        };
        let summary = summary?;
        let written = written?;
        outcome(&summary)?;
        // Asking takes a connection of its own.
        let detail = match self.spec.kind.render().is_some_and(|render| render.auto_exposure) {
            true => Some(detail_of(farm, job).await?),
            false => None,
        };
        Ok((Finished { summary, detail }, written))
    }
}

impl Outputs {
    /// Fetches every frame that is named, until no more follow. No connection stays open for the
    /// time of a frame, because a machine that sleeps in between loses it.
    async fn fetch_all(
        &self,
        farm: &Farm,
        job: JobId,
        mut arriving: mpsc::UnboundedReceiver<FrameNumber>,
    ) -> Result<Written, CliError> {
        let mut written = Written::new();
        while let Some(first) = arriving.recv().await {
            let mut new = vec![first];
            while let Ok(frame) = arriving.try_recv() {
                new.push(frame);
            }
            new.retain(|frame| !written.contains_key(frame));
            written.extend(
                farm.persist(async |client| self.fetch_frames(client, job, &new).await).await?,
            );
        }
        Ok(written)
    }

    /// Fetches these frames if they are finished. Existing files stay.
    async fn fetch_frames(
        &self,
        client: &FarmClient,
        job: JobId,
        wanted: &[FrameNumber],
    ) -> Result<Written, CliError> {
        let mut written = Written::new();
        for (frame, files, spp) in finished_files(client, job, wanted).await? {
            let mut of_frame = WrittenFrame { spp, ..WrittenFrame::default() };
            for file in files {
                for path in self.paths(frame, &file.format) {
                    fetch(client, ((job, frame), &file), (&path, Existing::Replace), &mut |_| {})
                        .await?;
                    of_frame.files.push((file.clone(), path));
                }
            }
            written.insert(frame, of_frame);
        }
        Ok(written)
    }
}

async fn finished_files(
    client: &FarmClient,
    job: JobId,
    wanted: &[FrameNumber],
) -> Result<Vec<(FrameNumber, Vec<FrameFile>, Option<u32>)>, CliError> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let all = frames(client, job).await?;
    let done = all.into_iter().filter(|status| wanted.contains(&status.frame));
    Ok(done
        .filter_map(|status| match status.state {
            FrameState::Done(files) => Some((status.frame, files, status.samples)),
            _ => None,
        })
        .collect())
}

/// Report at the end.
struct Report {
    /// When the command began, and when the last file was written.
    time: (Instant, Instant),
    finished: Finished,
    written: Written,
    status: NodeStatus,
    /// What frames took before their samples.
    prepared: BTreeMap<FrameNumber, FrameCost>,
    used: Used,
    /// The options of the job that are not at their default.
    chosen: Vec<Chosen>,
}

/// A job that has ended.
struct Finished {
    summary: JobSummary,
    /// Of a job whose exposure was metered.
    detail: Option<Box<JobDetail>>,
}

/// Resources of the machine that the rendering used.
struct Used {
    /// CPU seconds of all threads, from the first unit to the end of the job.
    cpu_secs: f64,
    /// Largest resident size of the process.
    peak_bytes: u64,
}

impl Report {
    fn print(&self, args: &RenderArgs) -> Result<(), CliError> {
        if args.json {
            return json::print_value(&self.json()?);
        }
        if !args.quiet {
            let secs = (self.time.1 - self.time.0).as_secs_f64();
            let rate =
                self.finished.summary.samples_committed as f64 / self.render_secs().max(1e-3);
            for frame in self.written.values() {
                let spp = frame
                    .spp
                    .map(|spp| format!(", which --spp {spp} reproduces"))
                    .unwrap_or_default();
                for (_, path) in &frame.files {
                    eprintln!("wrote {}{spp}", printable(&path.display().to_string()));
                }
            }
            if let Some(exposure) = self.finished.detail.as_deref().and_then(metered) {
                eprintln!("exposure: {exposure}");
            }
            for sentence in self.chosen.iter().filter_map(Chosen::sentence) {
                eprintln!("{sentence}");
            }
            eprintln!(
                "{secs:.2} s, {}samples/s, {} of memory",
                count(rate),
                bytes(self.used.peak_bytes)
            );
        }
        Ok(())
    }

    /// Seconds from the first unit on a device to the last file written.
    fn render_secs(&self) -> f64 {
        self.status.first_unit.map_or(0.0, |first| (self.time.1 - first.at).as_secs_f64())
    }

    /// Seconds from the start of the command to the first unit on a device, without the preparation
    /// of that unit's frame, which lies between the two.
    fn start_secs(&self) -> Option<f64> {
        let first = self.status.first_unit?;
        let to_unit = first.at.saturating_duration_since(self.time.0);
        Some(to_unit.saturating_sub(first.prepared_in).as_secs_f64())
    }

    fn json(&self) -> Result<Value, CliError> {
        let (began, ended) = self.time;
        let frames = self.written.iter().map(|(frame, WrittenFrame { files, spp })| {
            let sha256 = files.first().map(|(file, _)| hexadecimal(&file.pixels_sha256));
            let paths: Vec<_> = files.iter().map(|(_, path)| path).collect();
            let cost = self.prepared.get(frame);
            let mut value = json!({
                "frame": frame.0,
                "pixels_sha256": sha256,
                "prepare_s": cost.map(|cost| cost.preparation.as_secs_f64()),
                "uploaded_bytes": cost.map(|cost| cost.uploaded_bytes),
                "files": paths,
            });
            if let Some(spp) = spp {
                value["spp"] = (*spp).into();
            }
            value
        });
        let frames: Vec<Value> = frames.collect();
        let first = frames.first().map(|frame| frame["pixels_sha256"].clone());
        let files: Vec<_> =
            frames.iter().filter_map(|frame| frame["files"].as_array()).flatten().collect();
        let mut report = json!({
            "render_s": self.render_secs(),
            "build_s": self.status.preparing.as_secs_f64(),
            "start_s": self.start_secs(),
            "total_s": (ended - began).as_secs_f64(),
            "device_s": self.status.busy.as_secs_f64(),
            "cpu_s": self.used.cpu_secs,
            "samples": self.finished.summary.samples_committed,
            "rays": self.status.rays,
            "peak_bytes": self.used.peak_bytes,
            "pixels_sha256": first.filter(|_| frames.len() == 1),
            "files": files,
            "frames": frames,
            "version": env!("CARGO_PKG_VERSION"),
        });
        let detail = self.finished.detail.as_deref().filter(|detail| metered(detail).is_some());
        if let Some(render) = detail.and_then(|detail| detail.spec.kind.render()) {
            report["exposure"] = render.exposure.into();
        }
        // A program that reads pictures must find everything that makes them differ from the scene.
        for option in OPTIONS.iter().filter(|option| option.warning.is_some()) {
            let chosen = self.chosen.iter().find(|chosen| chosen.option == option);
            report[option.field] = chosen.map_or(Value::Null, |chosen| chosen.value.clone());
        }
        Ok(report)
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
