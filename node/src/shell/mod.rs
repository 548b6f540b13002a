//! The shell around the agent: waits for events, lets the agent decide, and executes its actions.
//! Owns the tasks, clocks, files and connections of one node.

mod busy;
pub(crate) mod event;
mod kernel_texts;
mod owners;
mod preparing;
mod pulse;
mod results;
mod session;

use crate::agent::{Action, Agent, FrameKey, Rendered};
use crate::cache::BlobCache;
use crate::compute::Preparations;
use crate::config::Config;
use crate::device::{
    CancelToken, Device, DeviceError, DeviceUnit, Devices, Finish, TextSink, UnitOutput, Work,
};
use crate::folder::DataFolder;
use crate::frame_memory::{Claim, FrameMemory, NotPrepared};
use crate::import::Importer;
use crate::job::unit_params;
use crate::memory::HostMemory;
use crate::outbox::Outbox;
use crate::scene::Preparer;
use crate::scene::fetch::Fetcher;
use crate::status::{Ended, NodeError, NodeStatus};
use busy::Busy;
use event::{AnyFrame, Command, Event, Prepared, Session};
use kernel_texts::KernelTexts;
use owners::Owners;
use preparing::{Preparing, log_unprepared};
use pulse::Pulse;
pub use pulse::Vitals;
use results::Results;
use session::Dialler;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tessera_protocol::device::{DeviceInfo, DeviceKind, DeviceState, DeviceTelemetry};
use tessera_protocol::node::{
    Assignment, CoordinatorToNode, Failure, Heartbeat, Join, MemoryShortage, NodeToCoordinator,
    Progress, SampleRange, Task,
};
use tessera_protocol::{BlobHash, JobKind, Lease};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

/// Time between two heartbeats.
const HEARTBEAT: Duration = Duration::from_secs(2);
/// Time between two tries to deliver results.
const TICK: Duration = Duration::from_millis(500);

/// A unit that was given to a device.
struct Given {
    device: usize,
    cancel: CancelToken,
    /// Samples to render; None for a compute unit.
    samples: Option<SampleRange>,
    /// Memory of its frame. It is in use until the unit ends.
    _claim: Claim,
}

/// A running node with its sockets, files and devices.
pub(crate) struct Shell {
    config: Config,
    folder: DataFolder,
    devices: Vec<Arc<dyn Device>>,
    /// The devices as they were last reported to the coordinator.
    devices_told: Vec<DeviceInfo>,
    /// Keeps the devices' monitor alive, and knows their compiler.
    opened: Devices,
    agent: Agent<Prepared>,
    preparing: Preparing,
    outbox: Arc<Outbox>,
    results: Results,
    events: mpsc::UnboundedReceiver<Event>,
    sender: mpsc::UnboundedSender<Event>,
    session: Option<Session>,
    /// Units that devices have.
    given: BTreeMap<Lease, Given>,
    texts: KernelTexts,
    owners: Owners,
    /// Outputs that wait for room on the disk, with the disk's error.
    no_room: BTreeMap<Lease, String>,
    pulse: Pulse,
    vitals: watch::Sender<Vitals>,
    /// Scenes that were reported to the coordinator as prepared.
    scenes_told: Vec<BlobHash>,
    /// Counts since the start. The other fields are filled in when the status is published.
    counted: NodeStatus,
    heartbeats: u64,
    /// Device time of each device at the last heartbeat.
    busy_before: Vec<Duration>,
    /// When the last heartbeat was sent.
    last_beat: Instant,
    /// How busy the devices are while there is work.
    busy_share: Busy,
    /// Since when only acknowledgements are missing.
    idle_since: Option<Instant>,
    status: watch::Sender<NodeStatus>,
    dialling: JoinHandle<()>,
    hang_up: Option<oneshot::Sender<String>>,
    /// Why the node leaves, once it does.
    leaves_because: Option<String>,
}

/// Returns the state of devices whose outputs cannot be stored.
fn no_room(problem: &str) -> DeviceState {
    DeviceState::Quarantined {
        reason: format!("its node has no room for results: {problem}"),
        remedy: "make room on that disk; then it continues by itself".to_owned(),
    }
}

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
    fetcher: Fetcher,
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
    Preparing::new(means, (fetcher, folder.views()), FrameMemory::new(host, kept), events)
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
        let fetcher = Fetcher::new(Arc::new(cache), connections, config.timing.answer);
        let preparing = preparing_for(&config, (&folder, &devices), fetcher, sender.clone());
        let (hang_up, hung_up) = oneshot::channel();
        let mut agent = Agent::new(devices.len(), config.hold, outbox.leases());
        for (index, device) in devices.iter().enumerate() {
            agent.set_info(index, device.info());
        }
        Ok(Self {
            agent,
            preparing,
            results: Results::new(outbox.clone(), sender.clone()),
            outbox,
            events,
            session: None,
            given: BTreeMap::new(),
            texts: KernelTexts::default(),
            owners: Owners::default(),
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

    /// Works until the node has left, is stopped, or cannot continue.
    pub(crate) async fn run(
        mut self,
        mut commands: mpsc::Receiver<Command>,
    ) -> Result<Ended, NodeError> {
        let mut tick = tokio::time::interval(TICK);
        let mut beat = tokio::time::interval(HEARTBEAT);
        let ended = loop {
            tokio::select! {
                event = self.events.recv() => match event {
                    Some(Event::Hopeless(error)) => break Err(error),
                    Some(event) => self.on_event(event),
                    // This cannot happen, because this struct holds a sender.
                    None => break Ok(Ended::Stopped),
                },
                command = commands.recv() => match command {
                    Some(Command::Leave(why)) => {
                        self.leaves_because.get_or_insert(why);
                        self.agent.drain();
                    }
                    Some(Command::HandIn) => self.agent.hand_in(),
                    // A handle that is dropped without a command stops its node.
                    Some(Command::Stop) | None => {
                        self.agent.give_up();
                        self.perform();
                        break Ok(Ended::Stopped);
                    }
                },
                _ = tick.tick() => {
                    self.agent.offer_again();
                    self.look_at_devices();
                }
                _ = beat.tick() => self.beat(),
            }
            if self.perform() || self.waited_enough() {
                break Ok(Ended::Drained { unacknowledged: self.agent.finished().len() });
            }
            self.publish();
            self.busy_share.look(self.agent.has_unfinished(), Instant::now());
            self.vitals.send_replace(
                self.pulse.look(self.devices.iter().map(|device| device.busy()), Instant::now()),
            );
        };
        self.leave().await;
        ended
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::Connected(session) => self.join(session),
            Event::Lost(number) => {
                if self.session.as_ref().is_some_and(|session| session.number == number) {
                    self.session = None;
                    self.agent.on_disconnected();
                }
            }
            Event::Message { session, message } => {
                if self.session.as_ref().is_some_and(|current| current.number == session) {
                    self.counted.committed +=
                        u64::from(matches!(message, CoordinatorToNode::Committed { .. }));
                    if let CoordinatorToNode::Forget { job } = &message {
                        self.texts.forget(*job);
                    }
                    self.owners.note(&message);
                    self.note_wishes(&message);
                    self.agent.on_message(message);
                }
            }
            Event::Frame { frame, number, result, took } => {
                self.counted.preparing += took;
                if self.preparing.ends(frame, number) {
                    self.on_frame(frame, result, took);
                }
                self.tell_scenes();
            }
            Event::Rendered { device, lease, result } => self.on_rendered(device, lease, result),
            Event::KernelText { lease, text } => {
                if let Some(text) = self.texts.take(lease.unit, text) {
                    self.send(NodeToCoordinator::KernelText { lease, text });
                }
            }
            Event::NoRoom { lease, problem } => {
                self.no_room.insert(lease, problem);
            }
            Event::Stored { lease, result } => {
                self.no_room.remove(&lease);
                match result {
                    Ok(()) => self.agent.on_stored(lease),
                    Err(failure) => self.agent.on_store_failed(lease, failure),
                }
            }
            Event::NotOffered { session, lease } => {
                if self.session.as_ref().is_some_and(|current| current.number == session) {
                    self.agent.on_offer_failed(lease);
                }
            }
            Event::ResultLost { lease, problem } => {
                tracing::warn!(%lease, problem, "a result was lost from the outbox");
                self.agent
                    .on_result_lost(lease, Failure::Asset(format!("a result was lost: {problem}")));
            }
            // The loop handles this and ends.
            Event::Hopeless(_) => {}
        }
    }

    fn on_frame(&mut self, frame: FrameKey, result: Result<Prepared, NotPrepared>, took: Duration) {
        match result {
            Ok(prepared) => {
                self.agent.on_prepared_in(took);
                self.agent.on_frame(frame, Ok(prepared));
            }
            Err(reason) => {
                log_unprepared(frame, &reason);
                match reason {
                    NotPrepared::Failed(failure) => self.agent.on_frame(frame, Err(failure)),
                    NotPrepared::Postponed(_) => self.agent.on_postponed(frame),
                }
            }
        }
    }

    /// Logs what an operator wishes of the node.
    fn note_wishes(&mut self, message: &CoordinatorToNode) {
        match message {
            CoordinatorToNode::Leave => {
                let why = "drained by an operator, with --leave".to_owned();
                self.leaves_because.get_or_insert(why);
                tracing::warn!(
                    "an operator drains this node and lets it leave: what is in work \
                    will be finished and delivered"
                );
            }
            CoordinatorToNode::Drained { drained: true } => {
                tracing::warn!(
                    "an operator has drained this node: it stays connected, and gets \
                    no work until `tessera undrain`"
                );
            }
            CoordinatorToNode::Drained { drained: false } => {
                tracing::info!("an operator gives this node work again");
            }
            _ => {}
        }
    }

    fn join(&mut self, session: Session) {
        self.scenes_told = self.preparing.scenes();
        self.look_at_devices();
        let join = Join {
            node: self.folder.node(),
            name: self.config.name.clone(),
            pool: self.config.pool.clone(),
            process: self.folder.process(),
            devices: self.devices_told.clone(),
            capacity: self.agent.capacity(),
            running: self.agent.held(),
            finished: self.agent.finished(),
            scenes: self.scenes_told.clone(),
            nvrtc: self.opened.compiler,
            unconfined: self.config.sandbox.check().ok().flatten(),
        };
        self.heartbeats = 0;
        self.session = Some(session);
        self.send(NodeToCoordinator::Join(join));
        self.agent.on_connected();
    }

    fn on_rendered(
        &mut self,
        device: usize,
        lease: Lease,
        result: Result<UnitOutput, DeviceError>,
    ) {
        let given = self.given.remove(&lease);
        let samples = given.and_then(|given| given.samples);
        // Look at the devices first, so that a device that has just failed does not get its units
        // back.
        self.look_at_devices();
        self.pulse.ended(device, Instant::now());
        self.counted.rays += result.as_ref().map_or(0, |output| output.rays);
        let (rendered, output) = match result {
            Ok(output) => (Rendered::Done(output.device_time), Some(output)),
            Err(DeviceError::Cancelled) => (Rendered::Cancelled, None),
            Err(DeviceError::NoCompiler(reason)) => {
                self.lose_compiler(&reason);
                (Rendered::Cancelled, None)
            }
            Err(DeviceError::Failed(reason)) => (Rendered::Failed(Failure::Device(reason)), None),
            Err(DeviceError::Worker(reason)) => (Rendered::Failed(Failure::Worker(reason)), None),
            Err(DeviceError::TimedOut(reason)) => {
                (Rendered::Failed(Failure::TimedOut(reason)), None)
            }
            Err(DeviceError::Unable(reason)) => (Rendered::Failed(Failure::Unable(reason)), None),
            Err(DeviceError::Program(reason)) => (Rendered::Failed(Failure::Program(reason)), None),
            Err(DeviceError::Kernel(reason)) => (Rendered::Failed(Failure::Kernel(reason)), None),
            Err(error @ DeviceError::OutOfMemory { needed, available }) => {
                let reason = error.to_string();
                let shortage = MemoryShortage { device: device as u8, needed, available, reason };
                (Rendered::Failed(Failure::OutOfMemory(shortage)), None)
            }
        };
        if let Rendered::Failed(failure) = &rendered {
            tracing::warn!(%lease, reason = failure.reason(), "unit failed");
        }
        let wanted = self.agent.on_rendered(device, lease, rendered);
        if let (true, Some(output)) = (wanted, output) {
            let (done, of) = (output.sums.samples, samples.map_or(0, |samples| samples.count));
            if done < of {
                tracing::info!(%lease, done, of, "the samples that are done are handed in");
            }
            self.results.store(
                lease,
                device as u8,
                samples.map_or(0, |samples| samples.first),
                output,
            );
        }
    }

    /// Handles the loss of a compiler that was there at the start. A node reports its abilities
    /// when it joins, so it joins again without the compiler. Units that need the compiler then go
    /// elsewhere without a counted attempt, and no more of them come.
    fn lose_compiler(&mut self, reason: &str) {
        if self.opened.compiler.take().is_none() {
            return;
        }
        tracing::warn!(
            reason,
            "NVRTC is gone; kernels that come as CUDA C++ are for other nodes until this one is \
                restarted"
        );
        if let Some(session) = self.session.take() {
            self.agent.on_disconnected();
            use tessera_transport::{CloseCode, close::close};
            close(&session.connection, CloseCode::Done, "joins again without a compiler");
        }
    }

    /// Executes the agent's actions. Returns true if one of them is to leave.
    fn perform(&mut self) -> bool {
        while let Some(action) = self.agent.poll_action() {
            match action {
                Action::Send(message) => self.send(message),
                Action::Prepare { frame, spec, feed, beside } => {
                    self.preparing.begin(frame, (spec, feed), beside);
                }
                Action::Abandon(frame) => self.preparing.abandon(frame),
                Action::Start { device, assignment, spec, frame } => {
                    self.start(device, assignment, &spec, frame);
                }
                Action::Withdraw(lease) => {
                    if self.given.get(&lease).is_some_and(|given| given.cancel.withdraw()) {
                        self.agent.on_withdrawn(lease);
                    }
                }
                Action::Cancel(lease) => {
                    if let Some(given) = self.given.get(&lease) {
                        given.cancel.cancel();
                    }
                }
                Action::Cut(lease) => {
                    if let Some(given) = self.given.get(&lease) {
                        given.cancel.cut();
                    }
                }
                Action::Offer(lease) => {
                    if let Some(session) = &self.session {
                        self.results.offer(session.number, session.connection.clone(), lease);
                    }
                }
                Action::Remove(lease) => {
                    if let Err(error) = self.outbox.remove(lease) {
                        // The result is offered again after a restart, and is then found unwanted.
                        tracing::warn!(%lease, error = crate::scene::chain(&error), "result not \
                            removed");
                    }
                }
                Action::Leave => return true,
            }
        }
        false
    }

    fn send(&mut self, message: NodeToCoordinator) {
        let Some(session) = &self.session else { return };
        if session.outgoing.try_send(message).is_err() {
            // The coordinator does not read, or the session is lost and its end not yet noticed.
            // The next session starts from the beginning.
            use tessera_transport::{CloseCode, close::close};
            close(&session.connection, CloseCode::Failed, "control messages are not read");
        }
    }

    fn start(&mut self, device: usize, assignment: Assignment, kind: &JobKind, frame: Prepared) {
        let (lease, events) = (assignment.lease(), self.sender.clone());
        let cancel = CancelToken::default();
        let samples = match assignment.task {
            Task::Tile { samples, .. } => Some(samples),
            Task::Chunk { .. } => None,
        };
        let Prepared { frame, claim } = frame;
        let given = Given { device, cancel: cancel.clone(), samples, _claim: claim };
        self.given.insert(lease, given);
        self.pulse.given(device, Instant::now());
        let finish: Finish = Box::new(move |result| {
            let _ = events.send(Event::Rendered { device, lease, result });
        });
        self.counted.first_unit_at.get_or_insert_with(Instant::now);
        let work = match (kind, frame, assignment.task) {
            (JobKind::Render(spec), AnyFrame::Scene(frame), Task::Tile { tile, samples }) => {
                Work::Render { frame, params: unit_params(spec, assignment.frame, tile, samples) }
            }
            (_, AnyFrame::Compute(job), Task::Chunk { first, count, .. }) => {
                let events = self.sender.clone();
                let text: TextSink = Arc::new(move |text| {
                    let _ = events.send(Event::KernelText { lease, text });
                });
                let owner = self.owners.of(lease.unit.job);
                Work::Compute { job, owner, first, count, text }
            }
            // The agent has checked that job and unit have the same kind, and frames are prepared
            // for their job's kind.
            _ => {
                return finish(Err(DeviceError::Failed(
                    "a unit of another kind than its job".into(),
                )));
            }
        };
        self.devices[device].submit(DeviceUnit { work, cancel, finish });
    }

    fn tell_scenes(&mut self) {
        let held = self.preparing.scenes();
        let told = std::mem::replace(&mut self.scenes_told, held.clone());
        for (these, others, now_held) in [(&held, &told, true), (&told, &held, false)] {
            for scene in these.iter().filter(|scene| !others.contains(scene)) {
                self.send(NodeToCoordinator::Scene { scene: *scene, held: now_held });
            }
        }
    }

    fn beat(&mut self) {
        let now = Instant::now();
        let before = std::mem::replace(&mut self.last_beat, now);
        let usable = self.devices_told.iter().filter(|info| info.state == DeviceState::Ready);
        let worked = (self.busy(), usable.count());
        let busy = self.busy_share.beat(worked, now);
        self.heartbeats += 1;
        let heartbeat = Heartbeat {
            sequence: self.heartbeats,
            leases: self.agent.held(),
            outbox: self.agent.finished().len() as u32,
            working: self.working(),
            busy,
            devices: self.telemetry(now - before),
            progress: self.progress(),
        };
        if let Some(session) = &self.session {
            // A heartbeat that cannot be written in time is useless later.
            let _ = session.heartbeats.try_send(heartbeat);
        }
    }

    /// Returns the number of units and frames that the node works on.
    fn working(&self) -> u32 {
        let begun = self.given.values().filter(|given| given.cancel.has_begun()).count();
        u32::try_from(begun + self.agent.in_preparation()).unwrap_or(u32::MAX)
    }

    /// Returns the progress of units whose devices report it.
    fn progress(&self) -> Vec<Progress> {
        let told = self.given.iter().filter_map(|(lease, given)| {
            let (device, done) = (u8::try_from(given.device).ok()?, given.cancel.done()?);
            Some(Progress { lease: *lease, device, done })
        });
        told.collect()
    }

    /// Tells the agent which devices take units now, and the coordinator which devices have
    /// changed.
    fn look_at_devices(&mut self) {
        let mut infos: Vec<DeviceInfo> = self.devices.iter().map(|device| device.info()).collect();
        if let Some(problem) = self.no_room.values().next() {
            // Their outputs could not be stored.
            let ready = infos.iter_mut().filter(|info| info.state == DeviceState::Ready);
            ready.for_each(|info| info.state = no_room(problem));
        }
        if infos == self.devices_told {
            return;
        }
        for (index, info) in infos.iter().enumerate() {
            self.agent.set_usable(index, info.state == DeviceState::Ready);
        }
        self.devices_told = infos;
        self.send(NodeToCoordinator::Devices(self.devices_told.clone()));
    }

    /// Returns the state of the devices for a heartbeat.
    fn telemetry(&mut self, since: Duration) -> Vec<DeviceTelemetry> {
        let mut telemetry = Vec::new();
        for (index, (device, before)) in self.devices.iter().zip(&mut self.busy_before).enumerate()
        {
            let busy = device.busy();
            let share = busy.saturating_sub(std::mem::replace(before, busy)).as_secs_f32()
                / since.as_secs_f32().max(1e-3);
            let position = u8::try_from(index).unwrap_or(u8::MAX);
            telemetry.push(DeviceTelemetry {
                device: position,
                busy: share.clamp(0.0, 1.0),
                ..device.telemetry()
            });
        }
        telemetry
    }

    fn busy(&self) -> Duration {
        self.devices.iter().map(|device| device.busy()).sum()
    }

    fn publish(&self) {
        let status = NodeStatus {
            connected: self.session.is_some(),
            draining: self.agent.is_draining(),
            drained: self.agent.is_drained(),
            held: self.agent.held().len(),
            finished: self.agent.finished().len(),
            busy: self.busy(),
            ..self.counted.clone()
        };
        self.status.send_if_modified(|current| {
            let changed = *current != status;
            *current = status;
            changed
        });
    }

    /// Returns whether a drained node has waited long enough for the last acknowledgements.
    fn waited_enough(&mut self) -> bool {
        if !self.agent.is_draining() || self.agent.is_working() {
            self.idle_since = None;
            return false;
        }
        self.idle_since.get_or_insert_with(Instant::now).elapsed() >= self.config.drain_wait
    }

    /// Closes the session and releases the devices.
    async fn leave(mut self) {
        for given in self.given.values() {
            given.cancel.cancel();
        }
        // Before the end of the session, so that the dialler knows that we ended it.
        if let Some(hang_up) = self.hang_up.take() {
            let why = self.leaves_because.take().unwrap_or_else(|| "stopped".to_owned());
            // The receiver is gone if the dialler has given up already.
            let _ = hang_up.send(why);
        }
        self.session = None;
        if let Err(error) = self.dialling.await {
            tracing::warn!(%error, "the session's task failed");
        }
        // A device's threads end with their blocks. Wait for them on a thread for blocking work.
        let devices = (self.devices, self.opened);
        if tokio::task::spawn_blocking(move || drop(devices)).await.is_err() {
            tracing::warn!("a device ended with an error");
        }
    }
}
