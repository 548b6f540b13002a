//! Nodes and their sessions: who is here, what it holds, and whether it may have work. Not durable;
//! which nodes there are and where each is, is (see `state::register`).

use crate::input::SessionId;
use crate::nodes::devices::is_ready;
use crate::nodes::fitness::Fitness;
use crate::nodes::passed::{Cause, PassedOver};
use crate::state::job::Job;
use crate::text::cut;
use crate::time::Moment;
use std::collections::{BTreeMap, BTreeSet};
use tessera_protocol::compute::{ComputeSpec, Program};
use tessera_protocol::device::{DeviceInfo, DeviceState, DeviceTelemetry};
use tessera_protocol::ids::{BlobHash, Fingerprint, JobId, NodeId, ProcessEpoch};
use tessera_protocol::job::JobKind;
use tessera_protocol::limits::{LEASES_MAX, NAME_MAX, REASON_MAX};
use tessera_protocol::node::Join;

/// Most prepared scenes that are remembered of one node; a node's cache holds tens.
pub(crate) const SCENES_MAX: usize = 256;
/// Seconds over which a node's rate is measured.
const RATE_SECS: u64 = 60;
/// Seconds of one bucket of the rate.
const BUCKET_SECS: u64 = 10;

/// Whether a node is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    /// It has a session.
    Here(SessionId),
    /// It has no session; its leases are kept until this time.
    Away(Moment),
    /// It has neither a session nor leases.
    Lost,
}

/// A node as the core knows it.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(in crate::nodes) name: String,
    pub(in crate::nodes) pool: Option<String>,
    pub(in crate::nodes) build: String,
    pub(in crate::nodes) fingerprint: Fingerprint,
    pub(in crate::nodes) process: ProcessEpoch,
    pub(in crate::nodes) devices: Vec<DeviceInfo>,
    /// Telemetry of its devices in the last heartbeat.
    pub(in crate::nodes) telemetry: Vec<DeviceTelemetry>,
    /// How busy its devices are while there is work, by its last heartbeat.
    pub(in crate::nodes) busy: Option<f32>,
    /// Whether it can compile CUDA C++.
    pub(in crate::nodes) compiles: bool,
    /// What the kernel of its machine cannot confine; None if nothing.
    pub(in crate::nodes) unconfined: Option<String>,
    /// Whether it finishes frames.
    pub(in crate::nodes) finishes: bool,
    pub(in crate::nodes) capacity: u32,
    pub(in crate::nodes) presence: Presence,
    pub(in crate::nodes) scenes: BTreeSet<BlobHash>,
    /// Whether it is leaving at its own request.
    pub(in crate::nodes) leaving: bool,
    /// Jobs that were sent to it in this session.
    pub(in crate::nodes) jobs_sent: BTreeSet<JobId>,
    /// Jobs that it may still hold data of, from this session or former ones of its process.
    pub(in crate::nodes) jobs_known: BTreeSet<JobId>,
    /// Jobs for which it is passed over.
    pub(in crate::nodes) passed: PassedOver,
    pub(in crate::nodes) heard: Moment,
    /// Time of its last sign of work.
    pub(in crate::nodes) active: Moment,
    pub(in crate::nodes) units_committed: u64,
    /// Time of its last commit.
    pub(in crate::nodes) committed_at: Moment,
    pub(in crate::nodes) fitness: Fitness,
    /// Camera samples committed by bucket of time: `(bucket, samples)`, oldest first.
    rate: Vec<(u64, u64)>,
}

impl Node {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn pool(&self) -> Option<&str> {
        self.pool.as_deref()
    }

    pub(crate) fn build(&self) -> &str {
        &self.build
    }

    pub(crate) fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    pub(crate) fn devices(&self) -> &[DeviceInfo] {
        &self.devices
    }

    /// Returns the telemetry of its devices in the last heartbeat.
    pub(crate) fn telemetry(&self) -> &[DeviceTelemetry] {
        &self.telemetry
    }

    /// Returns how busy its devices are while there is work, 0 to 1, by its last heartbeat.
    pub(crate) fn busy(&self) -> Option<f32> {
        self.busy
    }

    /// What the kernel of the node's machine cannot confine; None if nothing.
    pub(crate) fn unconfined(&self) -> Option<&str> {
        self.unconfined.as_deref()
    }

    /// Whether it finishes frames.
    pub(crate) fn finishes(&self) -> bool {
        self.finishes
    }

    pub(crate) fn capacity(&self) -> u32 {
        self.capacity
    }

    pub(crate) fn presence(&self) -> Presence {
        self.presence
    }

    pub(crate) fn scenes(&self) -> &BTreeSet<BlobHash> {
        &self.scenes
    }

    /// Whether it is leaving at its own request.
    pub(crate) fn leaving(&self) -> bool {
        self.leaving
    }

    /// Returns the jobs that it may still hold data of, from this session or former ones of its
    /// process.
    pub(crate) fn jobs_known(&self) -> &BTreeSet<JobId> {
        &self.jobs_known
    }

    pub(crate) fn heard(&self) -> Moment {
        self.heard
    }

    /// Returns the time of its last sign of work.
    pub(crate) fn active(&self) -> Moment {
        self.active
    }

    pub(crate) fn units_committed(&self) -> u64 {
        self.units_committed
    }

    /// Returns the time of its last commit.
    pub(crate) fn committed_at(&self) -> Moment {
        self.committed_at
    }

    pub(crate) fn fitness(&self) -> &Fitness {
        &self.fitness
    }

    pub(crate) fn new(
        join: &Join,
        fingerprint: Fingerprint,
        build: &str,
        session: SessionId,
        now: Moment,
    ) -> Self {
        Self {
            name: cut(&join.name, NAME_MAX),
            pool: join.pool.as_deref().map(|pool| cut(pool, NAME_MAX)),
            build: cut(build, NAME_MAX),
            fingerprint,
            process: join.process,
            devices: crate::nodes::devices::listed(&join.devices),
            telemetry: Vec::new(),
            busy: None,
            compiles: join.nvrtc.is_some(),
            unconfined: join.unconfined.as_deref().map(|text| cut(text, REASON_MAX)),
            finishes: join.finishing.is_some(),
            capacity: capacity(join.capacity),
            presence: Presence::Here(session),
            scenes: join.scenes.iter().take(SCENES_MAX).copied().collect(),
            leaving: false,
            jobs_sent: BTreeSet::new(),
            jobs_known: BTreeSet::new(),
            passed: PassedOver::default(),
            heard: now,
            active: now,
            units_committed: 0,
            committed_at: Moment::default(),
            fitness: Fitness::default(),
            rate: Vec::new(),
        }
    }

    /// Takes over what is known of the same process from its former session.
    pub(crate) fn keep_history(&mut self, known: &Self) {
        self.jobs_known = known.jobs_known.clone();
        self.passed = known.passed.clone();
        self.leaving = known.leaving;
        self.units_committed = known.units_committed;
        self.committed_at = known.committed_at;
        self.rate = known.rate.clone();
    }

    pub(crate) fn session(&self) -> Option<SessionId> {
        match self.presence {
            Presence::Here(session) => Some(session),
            _ => None,
        }
    }

    /// Whether it is connected, has a usable device, is not leaving, and is not unfit.
    pub(crate) fn is_willing(&self) -> bool {
        self.session().is_some()
            && !self.leaving
            && self.fitness.unfit().is_none()
            && self.devices.iter().any(is_ready)
    }

    /// Whether it is of the job's pool, if the job has one.
    pub(crate) fn is_of(&self, pool: Option<&str>) -> bool {
        pool.is_none() || self.pool.as_deref() == pool
    }

    /// Whether it is of the job's pool, is not passed over for it, and has a device that runs such
    /// jobs.
    pub(crate) fn serves(&self, job: &Job) -> bool {
        !self.passed.excludes(job.id()) && self.may_serve(job)
    }

    /// The same, even if the job exceeds a limit of it now.
    pub(crate) fn may_serve(&self, job: &Job) -> bool {
        self.is_of(job.spec().pool.as_deref())
            && self.passed.of(job.id()).is_none_or(|passed| passed.cause != Cause::Unable)
            && self.can_do(job.kind())
    }

    /// Whether some device of it runs such jobs.
    pub(crate) fn can_do(&self, kind: &JobKind) -> bool {
        let Some(compute) = kind.compute() else { return true };
        let usable =
            |device: &DeviceInfo| device.state == DeviceState::Ready && device.runs(compute);
        !compute.needs_cuda() || (self.compiles_for(compute) && self.devices.iter().any(usable))
    }

    /// Whether some device of it is of the kind that such jobs need, even if it may not work now.
    pub(crate) fn has_kind(&self, kind: &JobKind) -> bool {
        let Some(compute) = kind.compute().filter(|compute| compute.needs_cuda()) else {
            return true;
        };
        self.compiles_for(compute) && self.devices.iter().any(|device| device.runs(compute))
    }

    /// Whether it compiles the program of such a job, or need not.
    fn compiles_for(&self, compute: &ComputeSpec) -> bool {
        self.compiles || !matches!(compute.program, Program::Cuda(_))
    }

    /// Returns its record of failures, to be changed.
    pub(crate) fn fitness_mut(&mut self) -> &mut Fitness {
        &mut self.fitness
    }

    /// Resets its failures, because an operator trusts it again.
    pub(crate) fn forgive(&mut self) {
        self.fitness = Fitness::default();
        self.passed = PassedOver::default();
    }

    /// Notes that the node holds data of a job.
    pub(crate) fn note_job(&mut self, job: JobId) {
        self.jobs_known.insert(job);
    }

    /// Returns whether it may hold data of a job.
    pub(crate) fn knows_job(&self, job: JobId) -> bool {
        self.jobs_known.contains(&job)
    }

    /// Returns the jobs for which it is passed over.
    pub(crate) fn passed(&self) -> &PassedOver {
        &self.passed
    }

    pub(crate) fn passed_mut(&mut self) -> &mut PassedOver {
        &mut self.passed
    }

    /// Notes that the node works: it is not only heard.
    pub(crate) fn note_active(&mut self, now: Moment) {
        self.active = now;
    }

    /// Notes that a job is sent to the node. False if it was sent in this session already.
    pub(crate) fn note_job_sent(&mut self, job: JobId) -> bool {
        self.jobs_sent.insert(job)
    }

    /// Notes that the node was told to forget a job.
    pub(crate) fn forget_job(&mut self, job: JobId) {
        self.jobs_known.remove(&job);
        self.jobs_sent.remove(&job);
        self.passed.forget(job);
    }

    /// Notes that the node was heard.
    pub(crate) fn note_heard(&mut self, now: Moment) {
        self.heard = now;
    }

    /// Counts a committed result of the node, for its statistics.
    pub(crate) fn note_commit(&mut self, camera_samples: u64, now: Moment) {
        self.units_committed += 1;
        self.committed_at = now;
        self.fitness.note_commit();
        let bucket = now.secs() / BUCKET_SECS;
        self.rate.retain(|(at, _)| at + RATE_SECS / BUCKET_SECS > bucket);
        match self.rate.last_mut() {
            Some((at, samples)) if *at == bucket => *samples += camera_samples,
            _ => self.rate.push((bucket, camera_samples)),
        }
    }

    /// Returns the camera samples per second that were committed over the last minute.
    pub(crate) fn samples_per_second(&self, now: Moment) -> f64 {
        let oldest = (now.secs() / BUCKET_SECS + 1).saturating_sub(RATE_SECS / BUCKET_SECS);
        let recent = self.rate.iter().filter(|(at, _)| *at >= oldest);
        recent.map(|(_, samples)| *samples).sum::<u64>() as f64 / RATE_SECS as f64
    }
}

/// All nodes that have joined in this process, and the sessions of connected ones.
#[derive(Debug, Default)]
pub(crate) struct Roster {
    nodes: BTreeMap<NodeId, Node>,
    sessions: BTreeMap<SessionId, NodeId>,
}

impl Roster {
    /// Returns all known nodes, by id.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&NodeId, &Node)> {
        self.nodes.iter()
    }

    /// Returns all known nodes, in the order of their ids.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.nodes.values()
    }

    /// Returns the node of a session; None if the session is unknown, lost or replaced.
    pub(crate) fn node_of(&self, session: SessionId) -> Option<NodeId> {
        self.sessions.get(&session).copied()
    }

    pub(crate) fn get(&self, node: NodeId) -> Option<&Node> {
        self.nodes.get(&node)
    }

    pub(crate) fn get_mut(&mut self, node: NodeId) -> Option<&mut Node> {
        self.nodes.get_mut(&node)
    }

    pub(crate) fn session_of(&self, node: NodeId) -> Option<SessionId> {
        self.get(node)?.session()
    }

    /// Adds a node under its session. Its former session, if any, is forgotten.
    pub(crate) fn join(&mut self, id: NodeId, session: SessionId, node: Node) {
        self.drop_session(id);
        self.nodes.insert(id, node);
        self.sessions.insert(session, id);
    }

    /// Forgets a node that has no session.
    pub(crate) fn remove(&mut self, id: NodeId) {
        self.drop_session(id);
        self.nodes.remove(&id);
    }

    /// Forgets the session of a node, which is then away or lost.
    pub(crate) fn leave(&mut self, id: NodeId, presence: Presence) {
        self.drop_session(id);
        if let Some(node) = self.nodes.get_mut(&id) {
            node.presence = presence;
            node.jobs_sent.clear();
        }
    }

    fn drop_session(&mut self, id: NodeId) {
        if let Some(session) = self.session_of(id) {
            self.sessions.remove(&session);
        }
    }

    /// Checks that sessions and nodes agree.
    pub(crate) fn check(&self) -> Result<(), String> {
        let here = self.nodes.values().filter(|node| node.session().is_some()).count();
        let matched =
            self.sessions.iter().all(|(session, node)| self.session_of(*node) == Some(*session));
        match matched && here == self.sessions.len() {
            true => Ok(()),
            false => Err(format!("{here} nodes are here, with {} sessions", self.sessions.len())),
        }
    }
}

/// Cuts a capacity to its limit.
pub(crate) fn capacity(units: u32) -> u32 {
    units.min(LEASES_MAX as u32)
}
