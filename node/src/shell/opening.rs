//! The start of the shell: it opens the caches, the outbox and the devices' surroundings, and
//! begins to dial.

use super::Shell;
use super::busy::Busy;
use super::event::Event;
use super::frame_files::FrameFiles;
use super::kernel_texts::KernelTexts;
use super::live::Live;
use super::owners::Owners;
use super::preparing::Preparing;
use super::pulse::{Pulse, Vitals};
use super::results::Results;
use super::session::Dialler;
use super::spans::Spans;
use crate::agent::Agent;
use crate::cache::BlobCache;
use crate::compute::Preparations;
use crate::config::Config;
use crate::device::{Device, Devices};
use crate::folder::DataFolder;
use crate::frame_memory::FrameMemory;
use crate::import::Importer;
use crate::inputs::InputsFetcher;
use crate::memory::HostMemory;
use crate::outbox::Outbox;
use crate::scene::Preparer;
use crate::scene::fetch::Fetcher;
use crate::status::{NodeError, NodeStatus};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tessera_protocol::device::DeviceKind;
use tokio::sync::{mpsc, oneshot, watch};

fn importer_of(config: &Config) -> Importer {
    let (program, limits) = (config.worker.clone(), config.import.clone());
    Importer::new(program, limits, config.threads, config.sandbox)
}

/// Returns the memory for prepared scenes. They must leave room for one that is being prepared.
fn kept_of(config: &Config, host: u64) -> u64 {
    if host == 0 { config.prepared_bytes } else { config.prepared_bytes.min(host / 4) }
}

/// Returns what prepares frames for these devices, within the memory of this process.
fn preparing_for(
    config: &Config,
    (folder, devices): (&DataFolder, &[Arc<dyn Device>]),
    (fetcher, inputs): (Fetcher, InputsFetcher),
    events: mpsc::UnboundedSender<Event>,
) -> Preparing {
    let infos = || devices.iter().map(|device| device.info());
    let memory = infos().map(|info| info.memory_bytes).max().unwrap_or(0);
    let host = HostMemory::of_this_process().bytes();
    let kept = kept_of(config, host);
    let (importer, room) = (importer_of(config), (memory, kept));
    let preparer = Preparer::new(fetcher.clone(), importer, folder.views(), room)
        .laying_out(infos().any(|info| info.kind == DeviceKind::Cuda));
    let means = (preparer, Preparations::new(memory, host, kept));
    let files = (fetcher, folder.views(), inputs);
    Preparing::new(means, files, FrameMemory::new(host, kept), events)
}

impl Shell {
    /// Opens everything that the node needs and begins to dial.
    pub(crate) fn open(
        config: Config,
        folder: DataFolder,
        opened: Devices,
        (status, vitals): (watch::Sender<NodeStatus>, watch::Sender<Vitals>),
    ) -> Result<Self, NodeError> {
        let fingerprint = crate::fingerprint();
        let devices = opened.devices.clone();
        let cache =
            BlobCache::open(&folder.cache(), config.cache_bytes).map_err(NodeError::Cache)?;
        let outbox = Outbox::open(&folder.outbox(), fingerprint, config.outbox_bytes)
            .map_err(NodeError::Outbox)?;
        let outbox = Arc::new(outbox);
        let (sender, events) = mpsc::unbounded_channel();
        let (connection, connections) = watch::channel(None);
        let dialler = Dialler::new(
            &config,
            folder.identity(),
            folder.node(),
            fingerprint,
            sender.clone(),
            connection,
        )?;
        let answer = config.timing.answer;
        let inputs = InputsFetcher::new(folder.inputs(), connections.clone(), answer);
        let fetchers = (Fetcher::new(Arc::new(cache), connections, answer), inputs);
        let preparing = preparing_for(&config, (&folder, &devices), fetchers, sender.clone());
        let spans = Spans::new(config.tracer.clone(), config.name.clone());
        let (hang_up, hung_up) = oneshot::channel();
        let mut agent = Agent::new(devices.len(), config.hold, outbox.leases());
        for (index, device) in devices.iter().enumerate() {
            agent.set_info(index, device.info());
        }
        Ok(Self {
            agent,
            preparing,
            frame_files: FrameFiles::new(folder.inputs()),
            results: Results::new(outbox.clone(), sender.clone(), spans.clone()),
            spans,
            outbox,
            events,
            session: None,
            delivery: None,
            given: BTreeMap::new(),
            texts: KernelTexts::default(),
            owners: Owners::default(),
            live: Live::new(),
            no_room: BTreeMap::new(),
            pulse: Pulse::new(devices.len(), Instant::now()),
            vitals,
            scenes_told: Vec::new(),
            counted: NodeStatus::default(),
            heartbeats: 0,
            busy_before: vec![Duration::ZERO; devices.len()],
            last_beat: Instant::now(),
            busy_share: Busy::new(Instant::now()),
            idle_since: None,
            status,
            dialling: tokio::spawn(dialler.run(hung_up)),
            hang_up: Some(hang_up),
            leaves_because: None,
            sender,
            config,
            folder,
            devices_told: Vec::new(),
            opened,
            devices,
        })
    }
}
