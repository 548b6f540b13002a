//! Peers of a coordinator: a node that does as it is told, and a client that submits small jobs.

use crate::farm::{Farm, PATIENCE};
use std::path::Path;
use std::time::{Duration, Instant};
use tessera_protocol::client::{Request, Response};
use tessera_protocol::device::{DeviceInfo, DeviceKind, DeviceState};
use tessera_protocol::film::TileSums;
use tessera_protocol::job::{AssetFile, FilterSpec, JobKind, JobSpec, RenderSpec};
use tessera_protocol::node::{
    Assignment, CoordinatorToNode, Join, NodeToCoordinator, ResultHeader, ResultHeaders,
};
use tessera_protocol::status::FrameState;
use tessera_protocol::stream::StreamKind;
use tessera_protocol::{BlobHash, JobId, Lease, ProcessEpoch};
use tessera_transport::frame::{open_both, open_one_way};
use tessera_transport::{
    BlobError, FarmClient, FrameReceiver, FrameSender, Identity, Link, Timing, blob,
};

pub(crate) const EDGE: u32 = 16;

/// A job of one unit.
pub(crate) fn spec(scene: BlobHash, length: u64) -> JobSpec {
    let render = RenderSpec {
        scene: "a.gltf".into(),
        files: vec![AssetFile { path: "a.gltf".into(), hash: scene, length }],
        width: EDGE,
        height: EDGE,
        frames: "0".parse().unwrap(),
        spp: 1,
        depth: 1,
        filter: FilterSpec::Box,
        tile: EDGE,
        ..RenderSpec::default()
    };
    JobSpec::new("a", JobKind::Render(render))
}

pub(crate) struct FakeNode {
    pub(crate) link: Link,
    pub(crate) control: FrameSender,
    incoming: FrameReceiver,
}

impl FakeNode {
    pub(crate) async fn join(farm: &Farm, identity: &Identity, running: Vec<Lease>) -> Self {
        let link = farm.dial(identity).await.unwrap();
        let (mut control, incoming) =
            open_both(&link.connection, StreamKind::NodeControl).await.unwrap();
        let device = DeviceInfo {
            slot: "cpu".into(),
            kind: DeviceKind::Cpu,
            name: "CPU".into(),
            parallelism: 1,
            memory_bytes: 1 << 33,
            cuda: None,
            state: DeviceState::Ready,
        };
        let join = Join {
            devices: vec![device],
            capacity: 1,
            running,
            ..Join::new(identity.peer.node.unwrap(), identity.peer.name.clone(), ProcessEpoch(7))
        };
        control.send(&NodeToCoordinator::Join(join)).await.unwrap();
        Self { link, control, incoming }
    }

    /// Asks for no work.
    pub(crate) async fn drain(&mut self) {
        self.control.send(&NodeToCoordinator::Draining).await.unwrap();
    }

    /// The next unit that it is given.
    pub(crate) async fn work(&mut self) -> Assignment {
        let read = async {
            loop {
                if let CoordinatorToNode::Work(work) =
                    self.incoming.receive().await.unwrap().unwrap()
                {
                    return work[0];
                }
            }
        };
        tokio::time::timeout(PATIENCE, read).await.expect("work in time")
    }

    /// The next message.
    pub(crate) async fn next(&mut self) -> CoordinatorToNode {
        let read = tokio::time::timeout(PATIENCE, self.incoming.receive()).await;
        read.expect("a message in time").unwrap().unwrap()
    }

    /// Delivers a black tile.
    pub(crate) async fn deliver(&self, lease: Lease) {
        let (header, bytes) = black_tile(lease);
        let mut sender = open_one_way(&self.link.connection, StreamKind::Result).await.unwrap();
        sender.send(&ResultHeaders::one(header)).await.unwrap();
        sender.send_raw(&bytes).await.unwrap();
        sender.finish();
    }

    pub(crate) async fn may_read(&self, hash: BlobHash, folder: &Path) -> bool {
        let target = folder.join("fetched");
        let fetched = blob::get(
            &self.link.connection,
            hash.into(),
            1 << 20,
            blob::Target::replacing(&target),
            &Timing::default(),
            &mut |_, _| {},
        )
        .await;
        match fetched {
            Ok(_) => true,
            Err(BlobError::Absent(_)) => false,
            Err(other) => panic!("{other:?}"),
        }
    }
}

/// A black tile as the result of a lease.
pub(crate) fn black_tile(lease: Lease) -> (ResultHeader, Vec<u8>) {
    let mut film = TileSums::empty(EDGE as u16, EDGE as u16, 3);
    film.samples = 1;
    let bytes = film.to_bytes();
    let header = ResultHeader {
        lease,
        hash: BlobHash::of(&bytes),
        length: bytes.len() as u32,
        device: 0,
        device_micros: 1,
        waited_micros: 0,
        device_bytes: 1,
        first_sample: 0,
        rays: 1,
    };
    (header, bytes)
}

pub(crate) async fn submit(client: &FarmClient, folder: &Path, scene: &[u8]) -> (JobId, BlobHash) {
    let (job, hash, file) =
        (JobId(uuid::Uuid::now_v7()), BlobHash::of(scene), folder.join("scene"));
    std::fs::write(&file, scene).unwrap();
    client.put_blob((hash, scene.len() as u64), &file, &mut |_, _| {}).await.unwrap();
    let spec = Box::new(spec(hash, scene.len() as u64).into());
    assert_eq!(
        client.request(&Request::Submit { job, spec }).await.unwrap(),
        Response::Accepted(job)
    );
    (job, hash)
}

pub(crate) async fn frame_file(client: &FarmClient, job: JobId) -> BlobHash {
    let begun = Instant::now();
    loop {
        assert!(begun.elapsed() < PATIENCE, "the frame is not finished in time");
        let Response::Frames(frames) =
            client.request(&Request::Frames { job, from: 0 }).await.unwrap()
        else {
            panic!("no frames")
        };
        if let FrameState::Done(files) = &frames[0].state {
            return files[0].hash;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
