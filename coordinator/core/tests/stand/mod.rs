//! A small farm for tests of the core: nodes that are here, one job of a frame at a time, and what they hold.

use std::time::Duration;
use tessera_core::{
    Action, Arrived, Caller, Core, FilmShape, Input, Moment, Record, RequestId, ResultShape, SessionId,
    Settings, Step,
};
use tessera_protocol::client::Response;
use tessera_protocol::device::{DeviceInfo, DeviceKind, DeviceState};
use tessera_protocol::frames::FrameSet;
use tessera_protocol::ids::{BlobHash, Fingerprint, FrameNumber, JobId, Lease, NodeId, ProcessEpoch};
use tessera_protocol::job::{
    AssetFile, CameraSpec, EnvironmentSpec, FilterSpec, FormatSpec, JobKind, JobSpec, RenderSpec, ToneMapSpec,
};
use tessera_protocol::node::Join;
use tessera_protocol::status::{FrameFile, FrameState};
use uuid::Uuid;

/// Every unit is one tile of this edge.
const TILE: u32 = 8;

/// A node by its number, which is its session's too.
pub(crate) fn node(number: u64) -> NodeId {
    NodeId(Uuid::from_u128(number.into()))
}

fn spec(units: u32) -> Box<JobSpec> {
    let render = RenderSpec {
        scene: "a.gltf".to_owned(),
        files: vec![AssetFile { path: "a.gltf".to_owned(), hash: BlobHash([1; 32]), length: 1 }],
        environment: EnvironmentSpec::None,
        environment_intensity: 1.0,
        environment_rotation_degrees: 0.0,
        camera: CameraSpec::Default,
        lens: None,
        width: units * TILE,
        height: TILE,
        frames: FrameSet::one(FrameNumber(1)),
        fps: 24.0,
        spp: 1,
        depth: 8,
        seed: 0,
        filter: FilterSpec::Box,
        tile: TILE,
        unit_samples: 1,
        aovs: Vec::new(),
        formats: vec![FormatSpec::Exr],
        exposure: 0.0,
        tone_map: ToneMapSpec::Standard,
    };
    Box::new(JobSpec { name: "a".to_owned(), priority: 50, kind: JobKind::Render(render), device_bytes: 0 })
}

fn join(number: u64) -> Input {
    let device = DeviceInfo {
        slot: "cpu".to_owned(),
        kind: DeviceKind::Cpu,
        name: "test".to_owned(),
        parallelism: 1,
        memory_bytes: 1 << 30,
        cuda: None,
        state: DeviceState::Ready,
    };
    let join = Join {
        node: node(number),
        name: format!("n{number}"),
        process: ProcessEpoch(1),
        devices: vec![device],
        capacity: 1,
        running: Vec::new(),
        finished: Vec::new(),
        nvrtc: None,
        scenes: Vec::new(),
    };
    let (fingerprint, build) = (Fingerprint([1; 32]), "test".to_owned());
    Input::NodeJoined { session: SessionId(number), join: Box::new(join), fingerprint, build }
}

/// The farm.
pub(crate) struct Stand {
    pub(crate) core: Core,
    pub(crate) now: Moment,
    /// The newest job.
    pub(crate) job: JobId,
    pub(crate) records: Vec<Record>,
    resolving: Vec<JobId>,
    reply: Option<Response>,
}

impl Stand {
    /// Nodes 1 to `nodes`, each with room for one unit, and a job of so many units.
    pub(crate) fn new(settings: Settings, units: u32, nodes: u64) -> Self {
        let now = Moment(1_000_000);
        let core = Core::new(settings, now);
        let mut stand = Self {
            core,
            now,
            job: JobId(Uuid::nil()),
            records: Vec::new(),
            resolving: Vec::new(),
            reply: None,
        };
        (1..=nodes).for_each(|number| stand.step(join(number)));
        stand.submit_units(1, units);
        stand
    }

    /// Another job of one unit.
    pub(crate) fn submit(&mut self, number: u128) {
        self.submit_units(number, 1);
    }

    fn submit_units(&mut self, number: u128, units: u32) {
        self.job = JobId(Uuid::from_u128(number));
        let caller = Caller { name: "ada".to_owned(), admin: false };
        self.step(Input::Submit { request: RequestId(1), job: self.job, spec: spec(units), caller });
    }

    pub(crate) fn step(&mut self, input: Input) {
        self.core.handle(input, self.now);
        let Step { records, actions } = self.core.take_step();
        self.records.extend(records);
        for action in actions {
            match action {
                Action::ResolveFrame { job, .. } => self.resolving.push(job),
                Action::Reply { response, .. } => self.reply = Some(response),
                _ => {}
            }
        }
        self.core.verify().expect("the core stands by its invariants");
    }

    /// Time passes, and everybody is heard.
    pub(crate) fn later(&mut self, duration: Duration) {
        self.now = self.now.after(duration);
        self.step(Input::Tick);
    }

    /// What a node holds.
    pub(crate) fn lease(&self, number: u64) -> Option<Lease> {
        self.core.leases().find(|(_, holder)| *holder == node(number)).map(|(lease, _)| lease)
    }

    /// Units that a node holds.
    pub(crate) fn leased(&self, number: u64) -> Vec<u32> {
        let held = self.core.leases().filter(|(_, holder)| *holder == node(number));
        held.map(|(lease, _)| lease.unit.unit.0).collect()
    }

    /// A node ends what it holds, if anything, with a result of this hash.
    pub(crate) fn work(&mut self, number: u64, hash: u8) {
        let Some(lease) = self.lease(number) else { return };
        let shape = FilmShape { width: TILE, height: TILE, channels: 3, samples: 1 };
        let result = Arrived {
            lease,
            hash: BlobHash([hash; 32]),
            shape: ResultShape::Film(shape),
            device: 0,
            device_micros: 1,
            device_bytes: 0,
        };
        self.step(Input::ResultArrived { session: SessionId(number), result });
    }

    /// The newest job's frame is asked for.
    pub(crate) fn is_resolving(&self) -> bool {
        self.resolving.contains(&self.job)
    }

    /// How often a job's frame has been asked for.
    pub(crate) fn orders_of(&self, job: JobId) -> usize {
        self.resolving.iter().filter(|asked| **asked == job).count()
    }

    /// The newest job's frame has been made.
    pub(crate) fn finish(&mut self) {
        let file = FrameFile {
            format: "exr".to_owned(),
            hash: BlobHash([3; 32]),
            length: 1,
            pixels_sha256: [0; 32],
        };
        let (job, frame) = (self.job, FrameNumber(1));
        self.step(Input::FrameResolved { job, frame, files: vec![file] });
    }

    pub(crate) fn frame(&self) -> Option<FrameState> {
        self.frame_of(self.job)
    }

    pub(crate) fn frame_of(&self, job: JobId) -> Option<FrameState> {
        self.core.frames(job, 0)?.into_iter().next().map(|row| row.state)
    }

    pub(crate) fn undrain(&mut self, name: &str) {
        self.reply = None;
        self.step(Input::Drain { request: RequestId(2), node: name.to_owned(), drain: false });
        assert_eq!(self.reply, Some(Response::Done));
    }

    /// Units that the records have, which are without a fault.
    pub(crate) fn audit(&self) -> u64 {
        let report = Core::audit([], self.records.clone());
        assert_eq!(report.problems, Vec::<String>::new());
        report.units_committed
    }
}
