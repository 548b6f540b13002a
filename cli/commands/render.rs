//! `render`: a whole farm in one process. Coordinator and nodes on loopback, a store that goes away, frames put where the user wants
//! them as they finish.

use super::follow::outcome;
use super::jobs::frames;
use super::node::with_devices;
use crate::args::local::RenderArgs;
use crate::client::Farm;
use crate::error::{CliError, Status};
use crate::frame_files::{Destination, fetch, format_of};
use crate::progress::{Audience, JobProgress, Uploads};
use crate::rusage::usage;
use crate::spec::{self, JobOptions, SceneFiles};
use crate::table::{bytes, count};
use crate::{json, submission};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};
use tessera_coordinator::{Config, Coordinator, RunningCoordinator};
use tessera_node::{Config as NodeConfig, Ended, Node, NodeStatus, RunningNode};
use tessera_protocol::client::{Progress, Role};
use tessera_protocol::job::FormatSpec;
use tessera_protocol::status::{FrameFile, FrameState, JobSummary};
use tessera_protocol::{FrameNumber, JobId, JobSpec};
use tessera_transport::{FarmClient, Lifetimes};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};

/// `tessera render`.
pub(crate) async fn run(args: RenderArgs) -> Result<Status, CliError> {
    let began = Instant::now();
    let outputs = Outputs::of(&args)?;
    let (scene, env) = (args.picture.scene.clone(), args.picture.env.clone());
    let gathered = tokio::task::spawn_blocking(move || SceneFiles::gather(&scene, &env)).await;
    let files = gathered.map_err(|error| CliError::new(Status::Failure, error))??;
    let options = JobOptions { name: None, priority: 50, formats: outputs.formats.clone(), device_bytes: 0 };
    let spec = spec::job(&args.picture, options, &files)?;

    let folder = tempfile::Builder::new().prefix("tessera-render-").tempdir()?;
    let local = LocalFarm::start(folder.path(), &args).await?;
    let mut rendering = Rendering { args: &args, spec: &spec, files: &files, outputs: &outputs, local };
    let result = tokio::select! {
        result = rendering.finish() => result,
        _ = tokio::signal::ctrl_c() => Err(CliError::new(Status::Interrupted, "interrupted; nothing was kept but finished frames")),
    };
    let (ended, status, (cpu, peak_bytes)) = (Instant::now(), rendering.local.status(), usage());
    let cpu_before = rendering.local.stop().await;
    let (summary, written) = result?;
    let used = Used { cpu_secs: cpu - cpu_before.unwrap_or(cpu), peak_bytes };
    Report { time: (began, ended), summary, written, status, used }.print(&args)?;
    Ok(Status::Done)
}

/// What to write, and where.
struct Outputs {
    destinations: Vec<Destination>,
    formats: Vec<FormatSpec>,
}

impl Outputs {
    fn of(args: &RenderArgs) -> Result<Self, CliError> {
        let frames = spec::frames(&args.picture);
        let mut formats = Vec::new();
        let mut destinations = Vec::new();
        for output in &args.output {
            let Some(format) = format_of(output).filter(|format| *format != "npy") else {
                let message = format!("`{}` is neither .exr nor .png", output.display());
                return Err(CliError::new(Status::Usage, message).hint("the extension of -o says the format"));
            };
            let destination = Destination::file(output, format, &frames)?;
            check_folder(output)?;
            destinations.push(destination);
            formats.push(match (format, args.png16) {
                ("exr", _) => FormatSpec::Exr,
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

/// Better to hear of it now than after a night of rendering.
fn check_folder(output: &Path) -> Result<(), CliError> {
    let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let pattern = folder.to_string_lossy().contains(['#', '%', '{']);
    if !pattern && !folder.is_dir() {
        let message = format!("there is no folder `{}` to write to", folder.display());
        return Err(CliError::new(Status::NotFound, message).hint("make it first, or correct -o"));
    }
    Ok(())
}

/// Coordinator and nodes of this process.
struct LocalFarm {
    coordinator: RunningCoordinator,
    nodes: Vec<RunningNode>,
    farm: Farm,
    /// CPU seconds that the process had used when the first unit began.
    cpu_before: JoinHandle<f64>,
}

/// Gives a node's folder an identity, without the way over a token.
fn enrol(coordinator: &RunningCoordinator, data: &Path, name: &str) -> Result<(), CliError> {
    let folder =
        tessera_node::DataFolder::open(data).map_err(|error| CliError::new(Status::Failure, error))?;
    let identity = coordinator.issue(Role::Node, name, Some(folder.node()))?;
    Ok(identity.save(&folder.identity())?)
}

/// Waits for the first unit on any device.
async fn cpu_at_first_unit(nodes: Vec<watch::Receiver<NodeStatus>>) -> f64 {
    let mut first = JoinSet::new();
    for mut node in nodes {
        // An error is a node that has ended: then there is nothing to wait for.
        first.spawn(async move { drop(node.wait_for(|status| status.first_unit_at.is_some()).await) });
    }
    first.join_next().await;
    usage().0
}

impl LocalFarm {
    async fn start(folder: &Path, args: &RenderArgs) -> Result<Self, CliError> {
        let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut config = Config::new(folder.join("coordinator"), listen, tessera_node::fingerprint());
        // No node of an earlier run can come back, and the folder goes away anyway.
        config.settings.settle = Duration::ZERO;
        // All its nodes are this process.
        config.settings = config.settings.without_checks();
        config.disk_reserve_bytes = 0;
        config.lifetimes = Lifetimes::LONGEST;
        let coordinator = Coordinator::start(config).await?;
        let address = coordinator.local_address();
        let all = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = args.devices.threads.map_or(all, |threads| threads as usize);
        let mut nodes = Vec::new();
        for index in 0..usize::from(args.nodes) {
            let name = format!("node-{index}");
            let data = folder.join(&name);
            let mut config = with_devices(NodeConfig::new(address.to_string(), &data, &name), &args.devices);
            config.import = args.import.limits();
            config.threads = Some(share(threads, usize::from(args.nodes), index));
            enrol(&coordinator, &data, &name)?;
            nodes.push(Node::start(config)?);
        }
        let identity = coordinator.issue(Role::Admin, "render", None)?;
        let cpu_before = tokio::spawn(cpu_at_first_unit(nodes.iter().map(RunningNode::watch).collect()));
        Ok(Self { coordinator, nodes, farm: Farm::new(address.into(), identity), cpu_before })
    }

    /// What all nodes together have done.
    fn status(&self) -> NodeStatus {
        self.nodes.iter().map(RunningNode::status).fold(NodeStatus::default(), |sum, one| NodeStatus {
            committed: sum.committed + one.committed,
            busy: sum.busy + one.busy,
            preparing: sum.preparing.max(one.preparing),
            rays: sum.rays + one.rays,
            first_unit_at: sum.first_unit_at.into_iter().chain(one.first_unit_at).min(),
            ..NodeStatus::default()
        })
    }

    /// Ends the farm; how much CPU time the process had used before the first unit, if there was one.
    async fn stop(self) -> Option<f64> {
        let cpu_before = if self.cpu_before.is_finished() { self.cpu_before.await.ok() } else { None };
        for mut node in self.nodes {
            node.stop_now();
            if let Err(error) = node.join().await {
                tracing::debug!(%error, "a node did not end well");
            }
        }
        if let Err(error) = self.coordinator.shutdown().await {
            tracing::debug!(%error, "the coordinator did not end well");
        }
        cpu_before
    }
}

/// Threads of one of several nodes: at least one each.
fn share(threads: usize, nodes: usize, index: usize) -> usize {
    (threads / nodes + usize::from(index < threads % nodes)).max(1)
}

/// Files written, by frame.
type Written = BTreeMap<FrameNumber, Vec<(FrameFile, std::path::PathBuf)>>;

struct Rendering<'a> {
    args: &'a RenderArgs,
    spec: &'a JobSpec,
    files: &'a SceneFiles,
    outputs: &'a Outputs,
    local: LocalFarm,
}

impl Rendering<'_> {
    /// Submits, follows, and fetches each frame as it finishes. Ends early where a node gives up.
    async fn finish(&mut self) -> Result<(JobSummary, Written), CliError> {
        let audience = Audience::of_stderr(self.args.quiet);
        let mut uploads = Uploads::new(Audience::Nobody);
        let farm = &self.local.farm;
        let job = submission::submit(farm, self.spec, self.files, &mut uploads).await?;
        let mut bar = JobProgress::new(audience);
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
        Ok((summary, written))
    }
}

/// Waits until a node ends by itself, which it should not.
async fn node_failed(nodes: &mut [RunningNode]) -> CliError {
    let mut ends: Vec<_> = nodes.iter_mut().map(|node| Box::pin(node.join())).collect();
    let ended = std::future::poll_fn(|context| {
        for end in &mut ends {
            if let std::task::Poll::Ready(ended) = end.as_mut().poll(context) {
                return std::task::Poll::Ready(ended);
            }
        }
        std::task::Poll::Pending
    });
    match ended.await {
        Err(error) => error.into(),
        Ok(Ended::Drained { .. } | Ended::Stopped) => {
            CliError::new(Status::Failure, "a node has left the farm")
        }
    }
}

impl Outputs {
    /// Fetches every frame that is named, until no more will be.
    async fn fetch_all(
        &self,
        farm: &Farm,
        job: JobId,
        mut arriving: mpsc::UnboundedReceiver<FrameNumber>,
    ) -> Result<Written, CliError> {
        let mut written = Written::new();
        let client = farm.connect().await?;
        while let Some(first) = arriving.recv().await {
            let mut new = vec![first];
            while let Ok(frame) = arriving.try_recv() {
                new.push(frame);
            }
            new.retain(|frame| !written.contains_key(frame));
            for (frame, files) in finished_files(&client, job, &new).await? {
                let mut of_frame = Vec::new();
                for file in files {
                    for path in self.paths(frame, &file.format) {
                        fetch(&client, &file, &path, &mut |_| {}).await?;
                        of_frame.push((file.clone(), path));
                    }
                }
                written.insert(frame, of_frame);
            }
        }
        client.close().await;
        Ok(written)
    }
}

async fn finished_files(
    client: &FarmClient,
    job: JobId,
    wanted: &[FrameNumber],
) -> Result<Vec<(FrameNumber, Vec<FrameFile>)>, CliError> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let all = frames(client, job).await?;
    let done = all.into_iter().filter(|status| wanted.contains(&status.frame));
    Ok(done
        .filter_map(|status| match status.state {
            FrameState::Done(files) => Some((status.frame, files)),
            _ => None,
        })
        .collect())
}

/// What is said at the end.
struct Report {
    /// When the command began, and when the last file was written.
    time: (Instant, Instant),
    summary: JobSummary,
    written: Written,
    status: NodeStatus,
    used: Used,
}

/// What rendering took of the machine.
struct Used {
    /// From the first unit to the end of the job, all threads.
    cpu_secs: f64,
    /// Largest resident size of the process.
    peak_bytes: u64,
}

impl Report {
    fn print(&self, args: &RenderArgs) -> Result<(), CliError> {
        if args.json {
            return json::line(&self.json()?.to_string());
        }
        if !args.quiet {
            let secs = (self.time.1 - self.time.0).as_secs_f64();
            let rate = self.summary.samples_committed as f64 / self.render_secs().max(1e-3);
            for path in self.written.values().flatten().map(|(_, path)| path) {
                eprintln!("wrote {}", path.display());
            }
            eprintln!("{secs:.2} s, {}samples/s, {} of memory", count(rate), bytes(self.used.peak_bytes));
        }
        Ok(())
    }

    /// From the first unit on a device to the last file written.
    fn render_secs(&self) -> f64 {
        self.status.first_unit_at.map_or(0.0, |at| (self.time.1 - at).as_secs_f64())
    }

    fn json(&self) -> Result<Value, CliError> {
        let (began, ended) = self.time;
        let build = self.status.preparing.as_secs_f64();
        let start = self.status.first_unit_at.map(|at| (at - began).as_secs_f64() - build);
        let frames = self.written.iter().map(|(frame, files)| {
            let sha256 = files.first().map(|(file, _)| hexadecimal(&file.pixels_sha256));
            let paths: Vec<_> = files.iter().map(|(_, path)| path).collect();
            json!({ "frame": frame.0, "pixels_sha256": sha256, "files": paths })
        });
        let frames: Vec<Value> = frames.collect();
        let first = frames.first().map(|frame| frame["pixels_sha256"].clone());
        Ok(json!({
            "render_s": self.render_secs(),
            "build_s": build,
            "start_s": start,
            "total_s": (ended - began).as_secs_f64(),
            "device_s": self.status.busy.as_secs_f64(),
            "cpu_s": self.used.cpu_secs,
            "samples": self.summary.samples_committed,
            "rays": self.status.rays,
            "peak_bytes": self.used.peak_bytes,
            "pixels_sha256": first.filter(|_| frames.len() == 1),
            "files": frames.iter().filter_map(|frame| frame["files"].as_array()).flatten().collect::<Vec<_>>(),
            "frames": frames,
            "version": env!("CARGO_PKG_VERSION"),
        }))
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn threads_are_shared_and_nobody_goes_without() {
        let shares =
            |threads, nodes| (0..nodes).map(|index| share(threads, nodes, index)).collect::<Vec<_>>();
        assert_eq!(shares(8, 3), [3, 3, 2]);
        assert_eq!(shares(1, 3), [1, 1, 1]);
    }
}
