//! Light nodes: sessions that speak the node's protocol and answer every unit at once, with
//! nothing. Many fit in a process.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tessera_protocol::client::Role;
use tessera_protocol::device::{DeviceInfo, DeviceKind, DeviceState};
use tessera_protocol::node::{
    Assignment, CoordinatorToNode, Heartbeat, Join, NodeToCoordinator, ResultHeader, ResultHeaders,
    Task,
};
use tessera_protocol::stream::StreamKind;
use tessera_protocol::{BlobHash, ChunkValues, Fingerprint, Hello, Lease, NodeId, ProcessEpoch};
use tessera_transport::frame::{open_both, open_one_way};
use tessera_transport::{Address, Authority, FrameError, Link, PeerIdentity, Timing, connect};

/// How often a node says that it lives, as real ones do.
const HEARTBEAT: Duration = Duration::from_secs(2);
/// Nodes that dial at the same time.
const DIALS: usize = 32;

/// What all nodes have done.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// Results acknowledged.
    pub(crate) committed: AtomicU64,
    /// Sessions that ended.
    pub(crate) lost: AtomicU64,
    /// The sessions are to end.
    pub(crate) stop: AtomicBool,
    /// Units are kept in hand instead of answered, as those are that take a while.
    pub(crate) holds: AtomicBool,
    /// Nodes that have units in their hands, of those that hold them.
    pub(crate) holding: AtomicU64,
}

fn hello() -> Hello {
    Hello::ours(Fingerprint([0x5c; 32]))
}

/// Connections of these nodes, without a session on them.
pub(crate) async fn dial(
    address: &Address,
    authority: &Authority,
    nodes: Range<usize>,
) -> Vec<(Link, NodeId)> {
    let gate = Arc::new(tokio::sync::Semaphore::new(DIALS));
    let dials: Vec<_> = nodes
        .map(|index| {
            let node = NodeId(uuid::Uuid::now_v7());
            let peer = PeerIdentity::new(Role::Node, &format!("light-{index}"), Some(node))
                .expect("a name")
                .numbered(1000 + index as u64);
            let identity = authority.issue(&peer).expect("an identity");
            let (address, gate) = (address.clone(), gate.clone());
            tokio::spawn(async move {
                let _permit = gate.acquire().await;
                let link = connect(&address, &identity, &hello(), Timing::default()).await;
                (link.expect("a connection"), node)
            })
        })
        .collect();
    let mut links = Vec::new();
    for dial in dials {
        links.push(dial.await.expect("no panic"));
    }
    links
}

/// Holds a session over each connection, with so many units in each node's hands at most.
pub(crate) fn work(links: Vec<(Link, NodeId)>, capacity: u32, done: &Arc<Done>) {
    for (link, node) in links {
        let done = done.clone();
        tokio::spawn(async move {
            let result = session(&link, node, capacity, &done).await;
            if !done.stop.load(Relaxed) {
                done.lost.fetch_add(1, Relaxed);
                eprintln!("a session ended: {result:?}");
            }
        });
    }
}

async fn session(link: &Link, node: NodeId, capacity: u32, done: &Done) -> Result<(), FrameError> {
    let (mut control, mut incoming) = open_both(&link.connection, StreamKind::NodeControl).await?;
    let mut telemetry = open_one_way(&link.connection, StreamKind::Telemetry).await?;
    control.send(&NodeToCoordinator::Join(join(node, capacity))).await?;
    let mut beat = tokio::time::interval(HEARTBEAT);
    let (mut sequence, mut held) = (0, BTreeSet::new());
    while !done.stop.load(Relaxed) {
        tokio::select! {
            message = incoming.receive::<CoordinatorToNode>() => match message? {
                Some(CoordinatorToNode::Work(assignments)) => {
                    if done.holds.load(Relaxed) {
                        let was_idle = held.is_empty();
                        held.extend(assignments.iter().map(Assignment::lease));
                        done.holding.fetch_add(u64::from(was_idle && !held.is_empty()), Relaxed);
                        continue;
                    }
                    for assignment in assignments {
                        give(link, &assignment).await?;
                    }
                }
                Some(CoordinatorToNode::Forget { .. }) => drop_all(&mut held, done, |_| false),
                Some(CoordinatorToNode::Revoke { leases }) => {
                    drop_all(&mut held, done, |lease| !leases.contains(lease));
                }
                Some(CoordinatorToNode::Committed { .. }) => drop(done.committed.fetch_add(1,
                    Relaxed)),
                Some(_) => {}
                None => return Ok(()),
            },
            _ = beat.tick() => {
                sequence += 1;
                let leases = held.iter().copied().collect();
                let (devices, busy) = (Vec::new(), Some(1.0));
                telemetry.send(&Heartbeat { sequence, leases, outbox: 0, working: 1, busy,
                    devices, progress: Vec::new() }).await?;
            }
        }
    }
    Ok(())
}

/// Drops units from a node's hands, but those that it keeps.
fn drop_all(held: &mut BTreeSet<Lease>, done: &Done, keeps: impl Fn(&Lease) -> bool) {
    let was_idle = held.is_empty();
    held.retain(keeps);
    done.holding.fetch_sub(u64::from(!was_idle && held.is_empty()), Relaxed);
}

/// A unit's result: its indices, all zero.
async fn give(link: &Link, assignment: &Assignment) -> Result<(), FrameError> {
    let Task::Chunk { count, .. } = assignment.task else { return Ok(()) };
    let bytes = ChunkValues { count, width: 4, bytes: vec![0; count as usize * 4] }.to_bytes();
    let header = ResultHeader {
        lease: assignment.lease(),
        hash: BlobHash::of(&bytes),
        length: bytes.len() as u32,
        device: 0,
        device_micros: 1,
        waited_micros: 0,
        device_bytes: 0,
        first_sample: 0,
        rays: 0,
    };
    let mut stream = open_one_way(&link.connection, StreamKind::Result).await?;
    stream.send(&ResultHeaders::one(header)).await?;
    stream.send_raw(&bytes).await?;
    stream.finish();
    Ok(())
}

fn join(node: NodeId, capacity: u32) -> Join {
    let device = DeviceInfo {
        slot: "cpu".into(),
        kind: DeviceKind::Cpu,
        name: "nothing".into(),
        parallelism: 1,
        memory_bytes: 1 << 40,
        cuda: None,
        state: DeviceState::Ready,
    };
    let name = format!("light-{node}");
    Join { devices: vec![device], capacity, ..Join::new(node, name, ProcessEpoch(1)) }
}
