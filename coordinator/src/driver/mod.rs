//! The driver: the only task that owns the core. It takes events in, makes the resulting steps
//! durable, and only then performs them.
//!
//! The core continues while a step is being synced. Steps are performed in order, each after its
//! own sync.

mod about_blobs;
mod counted;
pub(crate) mod event;
mod kernel_text;
mod live;
mod live_room;
mod logs;
mod news;
mod not_durable;
mod perform;
mod present;
mod replica_desk;
mod sessions;
mod spans;
mod tell_news;
mod told;

pub use counted::{Counted, Named};
pub(crate) use event::{Ask, BlobQuestion, Event, Question, Taken};
pub use present::Present;
pub(crate) use replica_desk::ReplicaDesk;
pub(crate) use sessions::{Outgoing, Readable, SessionHandle};

use crate::changes::Publisher;
use crate::clock::Clock;
use crate::farm_log::FarmLog;
use crate::finish_inputs::InputsOrder;
use crate::live::Board;
use crate::logs::Logs;
use crate::meters::Meters;
use crate::resolve::order::ResolveOrder;
use crate::result_memory::ResultPermit;
use crate::spool::{EntryHeader, SpoolBody, SpoolEntry, SpoolKey};
use crate::store::{Commit, Sequence, StoreError, StoreQueue, StoreWriter, snapshot};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;
use tessera_core::{
    Action, Arrived, Core, Input, Record, RequestId, SessionId, Step, Timing, UnitMove,
};
use tessera_protocol::client::Response;
use tessera_protocol::node::CoordinatorToNode;
use tessera_protocol::{BlobHash, JobId, Lease};
use tessera_telemetry::Tracer;
use tokio::sync::{mpsc, oneshot};

/// Most events that are handled before their step is taken. They share one commit.
const EVENTS_MAX: usize = 256;

/// A result that waits for the core's decision.
struct Waiting {
    arrived: Arrived,
    length: u32,
    body: SpoolBody,
    /// It is that of all results of the stream.
    permit: Arc<ResultPermit>,
}

/// Something to do once a step is durable.
enum After {
    Action(Action),
    /// An answer that was read from the core, and the job that it is about. Before this step is
    /// durable, the answer may contain facts that are not.
    Answer(oneshot::Sender<Response>, Option<JobId>, Box<Response>),
    Tell(Box<dyn FnOnce() + Send>),
    /// What a finishing unit reads. It is looked up when all results of the frame are durable.
    Inputs(SessionId, Lease, oneshot::Sender<Option<InputsOrder>>),
}

/// A step that is being written to the disk.
struct Pending {
    told: Option<oneshot::Receiver<()>>,
    /// Sequence of the newest record in the step.
    through: Sequence,
    after: Vec<After>,
    not_durable: not_durable::NotDurable,
    /// What it ends, for whoever follows the farm by spans.
    ended: Vec<spans::Ended>,
    /// Memory of the step's results. It is given back with the step.
    _permits: Vec<Arc<ResultPermit>>,
}

/// Parts of the coordinator that the driver uses.
pub(crate) struct Surroundings {
    pub(crate) clock: Clock,
    pub(crate) writer: Arc<StoreWriter>,
    pub(crate) resolver: mpsc::UnboundedSender<ResolveOrder>,
    pub(crate) publisher: Publisher,
    pub(crate) live: Arc<Board>,
    pub(crate) logs: Logs,
    pub(crate) meters: Arc<Meters>,
    pub(crate) snapshot_records: u64,
    pub(crate) log: Arc<FarmLog>,
    pub(crate) tracer: Tracer,
}

/// State of the driver's task.
pub(crate) struct Driver {
    core: Core,
    around: Surroundings,
    queue: StoreQueue,
    /// Sequence of the newest record.
    sequence: Sequence,
    /// Sequence of the newest snapshot.
    snapshot_at: Sequence,
    results: BTreeMap<(SessionId, Lease), VecDeque<Waiting>>,
    replies: BTreeMap<RequestId, oneshot::Sender<Response>>,
    next_request: u64,
    kernel_texts: kernel_text::KernelTexts,
    sessions: BTreeMap<SessionId, SessionHandle>,
    readable: sessions::ReadableByNode,
    pending: VecDeque<Pending>,
    /// Things to do once the next step is durable.
    asked: Vec<After>,
    /// Files that open jobs name, and until when they are not counted again.
    named_files: Option<(Instant, Arc<BTreeSet<BlobHash>>)>,
    news: news::NewsRoom,
    live: live_room::LiveRoom,
    spans: spans::SpanRoom,
    counted: Counted,
}

impl Driver {
    /// Creates a driver. The core holds the state after the record `sequence`, and its newest
    /// snapshot the state after `snapshot_at`.
    pub(crate) fn new(
        mut core: Core,
        (sequence, snapshot_at): (Sequence, Sequence),
        around: Surroundings,
    ) -> Self {
        core.watch_units(tracing::enabled!(tracing::Level::DEBUG));
        Self {
            core,
            queue: around.writer.queue(),
            spans: spans::SpanRoom::new(around.tracer.clone()),
            around,
            sequence,
            snapshot_at,
            results: BTreeMap::new(),
            replies: BTreeMap::new(),
            next_request: 0,
            kernel_texts: kernel_text::KernelTexts::default(),
            sessions: BTreeMap::new(),
            readable: BTreeMap::new(),
            pending: VecDeque::new(),
            asked: Vec::new(),
            named_files: None,
            news: news::NewsRoom::default(),
            live: live_room::LiveRoom::default(),
            counted: Counted::default(),
        }
    }

    /// Runs until it is told to stop, or until the store fails.
    pub(crate) async fn run(mut self, mut events: mpsc::Receiver<Event>) -> Result<(), StoreError> {
        self.take_step()?;
        self.forget_ended_spools();
        self.around.logs.retain(self.core.job_ids().collect());
        loop {
            let wakeup = self.core.next_wakeup().map(|moment| self.around.clock.instant(moment));
            tokio::select! {
                biased;
                told = front(&mut self.pending), if !self.pending.is_empty() => self.durable(told)?,
                event = events.recv() => {
                    let Some(event) = event else { return Ok(()) };
                    // One that stood still does not say what it knew before.
                    self.around.writer.check_lead()?;
                    if self.on_events(event, &mut events) {
                        self.take_step()?;
                        return self.finish().await;
                    }
                }
                () = sleep_until(wakeup) => self.core.handle(Input::Tick, self.around.clock.now()),
                () = sleep_until(self.news.due()) => {}
                () = self.around.writer.failed() => {
                    return Err(self.around.writer.take_failure().unwrap_or(StoreError::Stopped));
                }
            }
            self.tell_news();
            self.take_step()?;
            if self.around.writer.is_full() {
                self.release_answers();
            }
        }
    }

    /// Handles an event and those that are already in the queue. Returns true if one of them is the
    /// stop.
    fn on_events(&mut self, first: Event, events: &mut mpsc::Receiver<Event>) -> bool {
        let mut next = Some(first);
        let mut handled = 0;
        while let Some(event) = next {
            if matches!(event, Event::Stop) {
                return true;
            }
            self.on_event(event);
            handled += 1;
            next = if handled < EVENTS_MAX { events.try_recv().ok() } else { None };
        }
        false
    }

    fn on_event(&mut self, event: Event) {
        let now = self.around.clock.now();
        match event {
            Event::Input(input) => self.on_input(*input),
            Event::Joined { handle, input } => self.on_joined(handle, *input),
            Event::Results { session, results, permit } => {
                self.on_results(session, results, &Arc::new(permit));
            }
            Event::KernelText { session, lease, text } => {
                self.on_kernel_text(session, lease, &text)
            }
            Event::LiveTile { session, tile, place } => {
                self.on_live_tile(session, *tile);
                drop(place);
            }
            Event::Watched(watched) => self.on_watched(watched),
            Event::Ask { ask, reply } => {
                let request = RequestId(self.next_request);
                self.next_request += 1;
                self.replies.insert(request, reply);
                self.core.handle(ask.into_input(request), now);
            }
            Event::Question { question, reply } => self.answer(question, reply),
            Event::Progress { job, reply } => {
                let answer =
                    self.core.job_summary(job).map(|summary| (summary, self.frames_done(job)));
                self.after_pending(After::Tell(Box::new(move || drop(reply.send(answer)))));
            }
            Event::Summary { job, reply } => {
                let answer = self.core.job_summary(job);
                self.after_pending(After::Tell(Box::new(move || drop(reply.send(answer)))));
            }
            Event::Census(reply) => drop(reply.send(self.core.census())),
            Event::Tally { after, reply } => drop(reply.send(self.core.tally(after))),
            Event::Present(reply) => drop(reply.send(Box::new(self.present()))),
            Event::Quarantines(reply) => drop(reply.send(self.core.quarantines())),
            Event::Verify(reply) => drop(reply.send(self.core.verify())),
            Event::Usage(reply) => {
                let usage = self.core.usage();
                self.after_pending(After::Tell(Box::new(move || drop(reply.send(usage)))));
            }
            Event::AboutBlobs(question) => self.on_blob_question(question),
            Event::Offered { session, results, reply } => {
                let _ = reply.send(self.on_offer(session, results));
            }
            Event::Inputs { session, lease, reply } => {
                self.after_pending(After::Inputs(session, lease, reply));
            }
            Event::MakeFiles { session, order } => self.call_for_files(session, order),
            Event::Stop => {}
        }
    }

    /// Gives results that came together to the core, which then hands out units once.
    fn on_results(&mut self, session: SessionId, taken: Vec<Taken>, permit: &Arc<ResultPermit>) {
        let mut inputs = Vec::with_capacity(taken.len());
        for one in taken {
            let (arrived, length, body) = match one {
                Taken::Whole(arrived, bytes) => {
                    (arrived, bytes.len() as u32, SpoolBody::Bytes(bytes))
                }
                Taken::Stored(arrived, length, (object, offset)) => {
                    (arrived, length, SpoolBody::Stored(object, offset))
                }
                Taken::Damaged(lease, reason) => {
                    inputs.push(Input::ResultDamaged { session, lease, reason });
                    continue;
                }
            };
            let waiting = Waiting { arrived, length, body, permit: permit.clone() };
            self.note_arrived(session, &arrived);
            self.results.entry((session, arrived.lease)).or_default().push_back(waiting);
            inputs.push(Input::ResultArrived { session, result: arrived });
        }
        self.core.handle_all(inputs, self.around.clock.now());
    }

    /// Whether any of the results that a node offers to store would be taken. If none would, the
    /// core says so of each at once: a moment later one might be, and it is stored nowhere.
    fn on_offer(&mut self, session: SessionId, results: Vec<Arrived>) -> bool {
        let leases: Vec<Lease> = results.iter().map(|result| result.lease).collect();
        let is_wanted = self.core.may_hand_in(session, &leases);
        if !is_wanted {
            let arrived = |result| Input::ResultArrived { session, result };
            let inputs: Vec<Input> = results.into_iter().map(arrived).collect();
            self.core.handle_all(inputs, self.around.clock.now());
        }
        is_wanted
    }

    /// Calls a session's node for the files of a frame. Nobody waits long for one that is gone.
    fn call_for_files(&self, session: SessionId, order: u64) {
        if let Some(handle) = self.sessions.get(&session) {
            handle.send(CoordinatorToNode::MakeFiles { order });
        }
    }

    fn on_input(&mut self, input: Input) {
        if let Input::SessionLost { session } | Input::NodeLeft { session, .. } = &input {
            self.sessions.remove(session);
            self.news.note_nodes();
        }
        if let Input::UnitFailed { failure, .. } = &input {
            self.counted.note_failure(failure);
        }
        self.core.handle(input, self.around.clock.now());
    }

    /// Begins a node's session.
    fn on_joined(&mut self, handle: SessionHandle, input: Input) {
        let joined = match &input {
            Input::NodeJoined { join, .. } => Some((join.node, join.process, join.running.clone())),
            _ => None,
        };
        let (session, readable) = (handle.session, handle.readable.clone());
        let sayable = handle.sayable.clone();
        self.sessions.insert(session, handle);
        self.news.note_nodes();
        self.core.handle(input, self.around.clock.now());
        self.greet_with_watched(session);
        let Some((node, process, running)) = joined else { return };
        let here = (process, readable.clone(), sayable.clone());
        let former = self.readable.insert(node, here);
        if let Some((_, read, said)) = former.filter(|(before, ..)| *before == process) {
            readable.take_over(&read);
            sayable.take_over(&said);
        }
        self.readmit_lines(session, &running);
        // After a restart of the coordinator the node keeps its leases, and is not told of those
        // jobs again.
        for job in self.core.jobs_leased_to(node) {
            if let Some(detail) = self.core.job(job) {
                readable.admit(job, &detail.spec.kind);
            }
        }
    }

    /// Takes the step of the handled inputs, sends it to the store, and adds the requested answers
    /// to the newest step that is not durable.
    fn take_step(&mut self) -> Result<(), StoreError> {
        self.store_step()?;
        let asked = std::mem::take(&mut self.asked);
        match self.pending.back_mut() {
            Some(pending) => pending.after.extend(asked),
            None => asked.into_iter().for_each(|after| self.perform(after)),
        }
        Ok(())
    }

    fn store_step(&mut self) -> Result<(), StoreError> {
        let step = self.core.take_step();
        if self.core.has_lost_files() {
            return Err(StoreError::Shelf);
        }
        for UnitMove { unit, from, to } in &step.moves {
            tracing::debug!(%unit, ?from, ?to, "a unit has moved");
        }
        if step.is_empty() {
            return Ok(());
        }
        let Step { records, actions, .. } = step;
        let (mut commit, told) = Commit::new();
        let mut not_durable = not_durable::NotDurable::default();
        for record in records {
            self.sequence += 1;
            told::tell(&self.around.log, &self.core, &record);
            self.note(&record);
            not_durable.note(&record, &self.core);
            let bytes = record.to_bytes().map_err(|error| StoreError::Record(error.to_string()))?;
            commit.records.push((self.sequence, bytes));
        }
        let (mut permits, mut after) = (Vec::new(), Vec::new());
        for action in actions {
            self.note_action(&action);
            match (action.timing(), action) {
                (_, Action::KeepResult { session, lease }) => {
                    if let Some((entry, permit)) = self.keep(session, lease) {
                        commit.results.push(entry);
                        permits.push(permit);
                    }
                }
                (_, Action::DropResult { session, lease }) => {
                    drop(self.take_waiting(session, lease))
                }
                (Timing::AnyTime, action) => self.perform(After::Action(action)),
                (_, action) => {
                    if let Action::ResolveFrame { job, frame }
                    | Action::MeasureFrame { job, frame } = action
                    {
                        // All results have arrived: the spool is sealed with the last of them.
                        commit.sealed.push(SpoolKey { job, frame });
                    }
                    after.push(After::Action(action));
                }
            }
        }
        commit.snapshot = self.snapshot_if_due()?;
        let durable = !commit.records.is_empty() || !commit.results.is_empty();
        if durable {
            let (records, results) = (commit.records.len(), commit.results.len());
            tracing::debug!(through = self.sequence, records, results, "step goes to the store");
            self.queue.send(commit)?;
        }
        let (told, ended) = (durable.then_some(told), self.spans.take_ended());
        if told.is_none() && self.pending.is_empty() {
            self.perform_all(after, ended);
        } else {
            self.pending.push_back(Pending {
                told,
                through: self.sequence,
                after,
                not_durable,
                ended,
                _permits: permits,
            });
        }
        Ok(())
    }

    /// Notes a record for whoever is told of it.
    fn note(&mut self, record: &Record) {
        self.news.note(record);
        self.counted.note(record);
        self.spans.note(record);
        self.drop_lines(record);
    }

    /// Notes an action for whoever is told of it.
    fn note_action(&mut self, action: &Action) {
        self.news.note_action(action);
        self.spans.note_action(&self.core, action);
    }

    /// Notes a result that has arrived for whoever is told of it.
    fn note_arrived(&mut self, session: SessionId, arrived: &Arrived) {
        self.live.note_result(&self.core, session, arrived.lease);
        self.spans.note_arrived(&self.core, arrived);
    }

    /// Does what was to be done once a step is durable.
    fn perform_all(&mut self, after: Vec<After>, ended: Vec<spans::Ended>) {
        after.into_iter().for_each(|after| self.perform(after));
        self.spans.durable(ended);
    }

    /// Makes a snapshot, if there are enough records since the last one.
    fn snapshot_if_due(&mut self) -> Result<Option<(Sequence, Vec<u8>)>, StoreError> {
        if self.sequence - self.snapshot_at < self.around.snapshot_records {
            return Ok(None);
        }
        let parts = self.core.snapshot();
        let bytes =
            snapshot::encode(&parts).map_err(|error| StoreError::Record(error.to_string()))?;
        // It replaces the records, and must be complete.
        if self.core.has_lost_files() {
            return Err(StoreError::Shelf);
        }
        self.snapshot_at = self.sequence;
        Ok(Some((self.sequence, bytes)))
    }

    fn take_waiting(&mut self, session: SessionId, lease: Lease) -> Option<Waiting> {
        let queue = self.results.get_mut(&(session, lease))?;
        let waiting = queue.pop_front();
        if queue.is_empty() {
            self.results.remove(&(session, lease));
        }
        waiting
    }

    fn keep(
        &mut self,
        session: SessionId,
        lease: Lease,
    ) -> Option<(SpoolEntry, Arc<ResultPermit>)> {
        let waiting = self.take_waiting(session, lease)?;
        self.counted.note_result(&self.core, &waiting.arrived);
        let header = EntryHeader {
            unit: lease.unit.unit,
            epoch: lease.epoch,
            first: waiting.arrived.shape.first().saturating_sub(self.core.first_sample(lease.unit)),
            samples: waiting.arrived.shape.size(),
            length: waiting.length,
            hash: waiting.arrived.hash,
        };
        let key = SpoolKey { job: lease.unit.job, frame: lease.unit.frame };
        Some((SpoolEntry { key, header, body: waiting.body }, waiting.permit))
    }

    /// Does something once all decisions of the core so far are durable, including those of the
    /// next step.
    fn after_pending(&mut self, after: After) {
        self.asked.push(after);
    }

    /// Handles the end of the oldest step's sync. An error means that the step will never be
    /// durable.
    fn durable(&mut self, told: Result<(), oneshot::error::RecvError>) -> Result<(), StoreError> {
        if told.is_err() {
            return Err(self.around.writer.take_failure().unwrap_or(StoreError::Stopped));
        }
        if let Some(pending) = self.pending.pop_front() {
            tracing::debug!(through = pending.through, "step is durable, and acknowledged");
            self.perform_all(pending.after, pending.ended);
        }
        Ok(())
    }

    /// Waits for the steps that were sent to the store. If the disk is full, the rest is given up
    /// without an answer.
    async fn finish(mut self) -> Result<(), StoreError> {
        while !self.pending.is_empty() && !self.around.writer.is_full() {
            tokio::select! {
                told = front(&mut self.pending) => self.durable(told)?,
                () = tokio::time::sleep(std::time::Duration::from_millis(100)) => {}
            }
        }
        Ok(())
    }
}

async fn front(pending: &mut VecDeque<Pending>) -> Result<(), oneshot::error::RecvError> {
    match pending.front_mut().and_then(|pending| pending.told.as_mut()) {
        Some(told) => told.await,
        None => Ok(()),
    }
}

async fn sleep_until(instant: Option<std::time::Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant.into()).await,
        None => std::future::pending().await,
    }
}
