//! A node that does as it is told, and jobs for it.

use crate::farm::{Farm, PATIENCE};
use std::path::Path;
use tessera_protocol::client::{Request, Response};
use tessera_protocol::device::{DeviceInfo, DeviceKind, DeviceState, DeviceTelemetry, XidEvent};
use tessera_protocol::film::TileSums;
use tessera_protocol::job::{AssetFile, FilterSpec, JobKind, JobSpec, RenderSpec};
use tessera_protocol::node::{
    Assignment, CoordinatorToNode, Failure, Heartbeat, Join, NodeToCoordinator, ResultHeader,
};
use tessera_protocol::stream::StreamKind;
use tessera_protocol::{BlobHash, JobId, Lease, ProcessEpoch};
use tessera_transport::frame::{open_both, open_one_way};
use tessera_transport::{FarmClient, FrameReceiver, FrameSender, Link};

const EDGE: u32 = 16;

/// Uploads a scene, and submits a job with so many units of 256 camera samples.
pub(crate) async fn submit(client: &FarmClient, folder: &Path, units: u32) -> JobId {
    let job = JobId(uuid::Uuid::now_v7());
    let scene = format!("scene of {job}").into_bytes();
    let (hash, length) = (BlobHash::of(&scene), scene.len() as u64);
    let file = folder.join("scene");
    std::fs::write(&file, scene).unwrap();
    client.put_blob((hash, length), &file, &mut |_, _| {}).await.unwrap();
    let render = RenderSpec {
        scene: "a.gltf".into(),
        files: vec![AssetFile { path: "a.gltf".into(), hash, length }],
        width: EDGE * units,
        height: EDGE,
        frames: "0".parse().unwrap(),
        spp: 1,
        depth: 1,
        filter: FilterSpec::Box,
        tile: EDGE,
        ..RenderSpec::default()
    };
    let spec = Box::new(JobSpec::new("a", JobKind::Render(render)).into());
    let accepted = client.request(&Request::Submit { job, spec }).await.unwrap();
    assert_eq!(accepted, Response::Accepted(job));
    job
}

/// A node with one CUDA device.
pub(crate) struct Node {
    link: Link,
    control: FrameSender,
    incoming: FrameReceiver,
    telemetry: FrameSender,
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
        Self { link, control, incoming, telemetry }
    }

    /// The next unit that it is given.
    pub(crate) async fn work(&mut self) -> Assignment {
        let read = async {
            loop {
                let message = self.incoming.receive().await.unwrap().unwrap();
                if let CoordinatorToNode::Work(work) = message {
                    return work[0];
                }
            }
        };
        tokio::time::timeout(PATIENCE, read).await.expect("work in time")
    }

    /// Delivers a tile of one grey.
    pub(crate) async fn deliver(&self, lease: Lease, grey: i64) {
        let mut film = TileSums::empty(EDGE as u16, EDGE as u16, 3);
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
        sender.send(&header).await.unwrap();
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
