//! The shell around the agent: waits for events, lets the agent decide, and executes its actions.
//! Owns the tasks, clocks, files and connections of one node.

mod busy;
mod delivery;
mod devices;
pub(crate) mod event;
mod frame_files;
mod kernel_texts;
mod live;
mod logs;
mod membership;
mod opening;
mod owners;
pub(crate) mod preparation;
mod preparing;
mod pulse;
mod reports;
mod results;
mod session;
mod spans;
mod storing;
mod units;

use crate::agent::{Action, Agent, FrameKey};
use crate::config::Config;
use crate::device::{CancelToken, Device, Devices};
use crate::folder::DataFolder;
use crate::frame_memory::{Claim, NotPrepared};
use crate::outbox::Outbox;
use crate::status::{Ended, NodeError, NodeStatus};
use busy::Busy;
use delivery::Delivery;
use event::{Command, Event, Prepared, Session};
use frame_files::FrameFiles;
use kernel_texts::KernelTexts;
use live::Live;
use owners::Owners;
use preparing::{Preparing, log_unprepared};
use pulse::Pulse;
pub use pulse::Vitals;
use results::Results;
use spans::Spans;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tessera_protocol::device::DeviceInfo;
use tessera_protocol::node::{
    CoordinatorToNode, Failure, NodeToCoordinator, SampleRange, TileRect,
};
use tessera_protocol::{BlobHash, Lease};
use tessera_transport::error::chain;
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
    /// When it was given.
    at: SystemTime,
    /// Tile and samples to render; None for a compute or finishing unit.
    tile: Option<(TileRect, SampleRange)>,
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
    frame_files: FrameFiles,
    spans: Spans,
    events: mpsc::UnboundedReceiver<Event>,
    sender: mpsc::UnboundedSender<Event>,
    session: Option<Session>,
    /// Results on their way over the session.
    delivery: Option<Delivery>,
    /// Units that devices have.
    given: BTreeMap<Lease, Given>,
    texts: KernelTexts,
    owners: Owners,
    live: Live,
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

impl Shell {
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
                    Some(event) => {
                        self.agent.pass_time(Instant::now());
                        self.on_event(event);
                    }
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
                    self.agent.pass_time(Instant::now());
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
                    self.delivery = None;
                    self.agent.on_disconnected();
                }
            }
            Event::Message { session, message } => {
                if let Some(current) =
                    self.session.as_ref().filter(|current| current.number == session)
                {
                    self.counted.committed +=
                        u64::from(matches!(message, CoordinatorToNode::Committed { .. }));
                    if let CoordinatorToNode::Forget { job } = &message {
                        self.texts.forget(*job);
                    }
                    self.owners.note(&message);
                    self.live.note(&message);
                    match &message {
                        CoordinatorToNode::StoreResults => self.results.store_elsewhere(session),
                        CoordinatorToNode::MakeFiles { order } => {
                            self.frame_files.begin(current.connection.clone(), *order);
                        }
                        _ => {}
                    }
                    self.note_wishes(&message);
                    self.agent.on_message(message);
                }
            }
            Event::Frame { frame, number, result, took } => {
                self.counted.preparing += took;
                self.spans.prepared(frame, &result, took);
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
                self.tell_prepared(frame, &prepared);
                self.agent.on_prepared_in(frame, took);
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

    /// Executes the agent's actions. Returns true if one of them is to leave.
    fn perform(&mut self) -> bool {
        while let Some(action) = self.agent.poll_action() {
            match action {
                Action::Send(message) => self.send(message),
                Action::Prepare { frame, spec, task, beside } => {
                    self.preparing.begin(frame, (spec, task), beside);
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
                    if let Some(delivery) = &self.delivery {
                        delivery.offer(lease, !self.agent.has_waiting());
                    }
                }
                Action::Remove(lease) => {
                    if let Err(error) = self.outbox.remove(lease) {
                        // The result is offered again after a restart, and is then found unwanted.
                        tracing::warn!(%lease, error = chain(&error), "result not \
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
}
