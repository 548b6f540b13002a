//! A node that does as it is told, and jobs for it.

use crate::farm::{Farm, PATIENCE};
use std::collections::VecDeque;
use std::path::Path;
use std::time::{Duration, Instant};
use tessera_protocol::client::{Request, Response};
use tessera_protocol::device::{DeviceInfo, DeviceKind, DeviceState, DeviceTelemetry, XidEvent};
use tessera_protocol::film::TileSums;
use tessera_protocol::job::{AssetFile, FilterSpec, JobKind, JobSpec, RenderSpec};
use tessera_protocol::node::{
    Assignment, CoordinatorToNode, Failure, Heartbeat, Join, NodeToCoordinator, ResultHeader,
    ResultHeaders,
};
use tessera_protocol::stream::StreamKind;
use tessera_protocol::{BlobHash, JobId, Lease, ProcessEpoch};
use tessera_transport::frame::{open_both, open_one_way};
use tessera_transport::{FarmClient, FrameReceiver, FrameSender, Link};

const EDGE: u32 = 16;

/// Uploads a scene, and submits a job with so many units of 256 camera samples.
pub(crate) async fn submit(client: &FarmClient, folder: &Path, units: u32) -> JobId {
    submit_tiles(client, folder, (units, EDGE)).await
}

/// The same with tiles of another edge.
pub(crate) async fn submit_tiles(
    client: &FarmClient,
    folder: &Path,
    (units, edge): (u32, u32),
) -> JobId {
    let job = JobId(uuid::Uuid::now_v7());
    let scene = format!("scene of {job}").into_bytes();
    let (hash, length) = (BlobHash::of(&scene), scene.len() as u64);
    let file = folder.join("scene");
    std::fs::write(&file, scene).unwrap();
    client.put_blob((hash, length), &file, &mut |_, _| {}).await.unwrap();
    let render = RenderSpec {
        scene: "a.gltf".into(),
        files: vec![AssetFile { path: "a.gltf".into(), hash, length }],
        width: edge * units,
        height: edge,
        frames: "0".parse().unwrap(),
        spp: 1,
        depth: 1,
        filter: FilterSpec::Box,
        tile: edge,
        ..RenderSpec::default()
    };
    let spec = Box::new(JobSpec::new("a", JobKind::Render(render)).into());
    let accepted = client.request(&Request::Submit { job, spec }).await.unwrap();
    assert_eq!(accepted, Response::Accepted(job));
    job
}

/// A node with one CUDA device.
pub(crate) struct Node {
    pub(crate) link: Link,
    control: FrameSender,
    incoming: FrameReceiver,
    telemetry: FrameSender,
    /// Units that it was given and that no test has asked for.
    given: VecDeque<Assignment>,
}

impl Node {
    pub(crate) async fn join(farm: &Farm, name: &str) -> Self {
        let identity = farm.node(name);
        let link = farm.dial(&identity).await.unwrap();
        let (mut control, incoming) =
            open_both(&link.connection, StreamKind::NodeControl).await.unwrap();
        let device = DeviceInfo {
            slot: "cuda:0".into(),
            kind: DeviceKind::Cuda,
            name: "GPU".into(),
            parallelism: 1,
            memory_bytes: 1 << 33,
            cuda: None,
            state: DeviceState::Ready,
        };
        let join = Join {
            devices: vec![device],
            capacity: 1,
            ..Join::new(identity.peer.node.unwrap(), name, ProcessEpoch(7))
        };
        control.send(&NodeToCoordinator::Join(join)).await.unwrap();
        let telemetry = open_one_way(&link.connection, StreamKind::Telemetry).await.unwrap();
        Self { link, control, incoming, telemetry, given: VecDeque::new() }
    }

    /// The next message of the coordinator.
    pub(crate) async fn hear(&mut self) -> CoordinatorToNode {
        let heard = tokio::time::timeout(PATIENCE, self.incoming.receive()).await;
        let heard = heard.expect("a message in time").unwrap().expect("the session goes on");
        if let CoordinatorToNode::Work(work) = &heard {
            self.given.extend(work);
        }
        heard
    }

    /// The next unit that it is given.
    pub(crate) async fn work(&mut self) -> Assignment {
        loop {
            if let Some(work) = self.given.pop_front() {
                return work;
            }
            self.hear().await;
        }
    }

    /// Delivers a unit, and waits until it is committed and the next one is here; the next one, and
    /// how long the commit took. `last`: no other follows.
    pub(crate) async fn commit(
        &mut self,
        unit: Assignment,
        last: bool,
    ) -> (Option<Assignment>, Duration) {
        let (began, mut took, mut next) = (Instant::now(), None, None);
        self.deliver(unit.lease(), 0).await;
        let read = async {
            while took.is_none() || (next.is_none() && !last) {
                match self.incoming.receive().await.unwrap().unwrap() {
                    CoordinatorToNode::Work(work) => next = Some(work[0]),
                    CoordinatorToNode::Committed { lease } if lease == unit.lease() => {
                        took = Some(began.elapsed());
                    }
                    _ => {}
                }
            }
        };
        tokio::time::timeout(PATIENCE, read).await.expect("a commit in time");
        (next, took.unwrap())
    }

    /// Delivers a tile of one grey.
    pub(crate) async fn deliver(&self, lease: Lease, grey: i64) {
        self.deliver_tile(lease, EDGE, grey).await;
    }

    /// Delivers a square tile of one grey.
    pub(crate) async fn deliver_tile(&self, lease: Lease, edge: u32, grey: i64) {
        let mut film = TileSums::empty(edge as u16, edge as u16, 3);
        film.samples = 1;
        film.values.fill(grey);
        let bytes = film.to_bytes();
        let header = ResultHeader {
            lease,
            hash: BlobHash::of(&bytes),
            length: bytes.len() as u32,
            device: 0,
            device_micros: 2_000_000,
            waited_micros: 0,
            device_bytes: 1,
            first_sample: 0,
            rays: 1,
        };
        let mut sender = open_one_way(&self.link.connection, StreamKind::Result).await.unwrap();
        sender.send(&ResultHeaders::one(header)).await.unwrap();
        sender.send_raw(&bytes).await.unwrap();
        sender.finish();
    }

    /// Reports that its device failed a unit.
    pub(crate) async fn fail(&mut self, lease: Lease) {
        let failure = Failure::Device("it is too hot".into());
        self.control.send(&NodeToCoordinator::Failed { lease, failure }).await.unwrap();
    }

    /// Says how its device is.
    pub(crate) async fn beat(&mut self, leases: Vec<Lease>) {
        let device = DeviceTelemetry {
            device: 0,
            busy: 0.75,
            samples_per_second: 1e6,
            memory_free: Some(3 << 30),
            memory_held: Some(1 << 30),
            temperature: Some(61),
            power_milliwatts: Some(250_500),
            ecc_corrected: Some(2),
            ecc_uncorrected: Some(1),
            xid: Some(XidEvent { code: 79, secs_ago: 12 }),
            ..DeviceTelemetry::default()
        };
        let heartbeat = Heartbeat {
            sequence: 1,
            leases,
            outbox: 0,
            working: 1,
            busy: Some(0.5),
            devices: vec![device],
            progress: Vec::new(),
        };
        self.telemetry.send(&heartbeat).await.unwrap();
    }
}
