//! A node's session: its join, control messages in both directions, heartbeats, results and blob
//! reads.

use super::rivals::{self, Entry, Place};
use super::shared::Shared;
use super::streams::{make_room, serve_streams};
use super::trouble::{Closing, Trouble, settle, wrong_kind};
use super::{frame_files, inputs, live, logs, renew, results, stored};
use crate::access::LivePeer;
use crate::blobs::{BlobRead, GuardedBlobs};
use crate::driver::{Event, Outgoing, Readable, SessionHandle};
use crate::farm_log::FarmLog;
use crate::logs::Sayable;
use quinn::SendStream;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tessera_core::{Input, SessionId};
use tessera_protocol::job::is_label;
use tessera_protocol::limits::{DEVICES_MAX, LEASES_MAX, NAME_MAX};
use tessera_protocol::node::{CoordinatorToNode, Heartbeat, Join, NodeToCoordinator};
use tessera_protocol::stream::StreamKind;
use tessera_protocol::{BlobHash, NodeId};
use tessera_transport::close::{CloseCode, close};
use tessera_transport::error::Ended;
use tessera_transport::frame::accept_kind;
use tessera_transport::{
    BlobSink, BlobStore, FrameReceiver, FrameSender, Link, Meter, PeerIdentity,
};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

/// Most control messages that wait for a node.
const OUTGOING_MAX: usize = 4096;
/// Most control messages that are written to a node at once. A hundred acknowledgements share a few
/// packets.
const WRITTEN_AT_ONCE_MAX: usize = 64;
/// Most results that a node's outbox can have from before.
const FINISHED_MAX: usize = 1 << 16;
/// Longest time for the last message of a session.
const GOODBYE: Duration = Duration::from_secs(2);
/// Most prepared scenes that a node can name.
const SCENES_MAX: usize = 4096;

/// Whose session it is: its number, the node and its name.
type SaidBy = (SessionId, NodeId, String);

/// Serves a node until its connection ends.
pub(super) async fn serve(
    link: Box<Link>,
    shared: Arc<Shared>,
    (live, meter): (Arc<LivePeer>, Arc<Meter>),
) {
    let _closing = Closing(&link);
    let session = SessionId(shared.next_session.fetch_add(1, Ordering::Relaxed));
    let who = live.peer().to_string();
    let mut begun = false;
    let peer = live.peer().clone();
    let result = run(&link, &shared, (session, &mut begun), (live, meter)).await;
    let end = end_of(&link.connection, &result);
    // A second process of a node has its own line.
    if begun || result.is_err() {
        log_end(&shared, &peer, (begun, &end));
    }
    shared.settle(&link.connection, (&who, "a node's session"), result);
    // The core does not know a session that never joined, and ignores this.
    let input = match end {
        End::Left(why) => Input::NodeLeft { session, why },
        End::Lost(_) => Input::SessionLost { session },
    };
    let _ = shared.events.send(Event::Input(Box::new(input))).await;
}

/// How a session ended, and why.
enum End {
    /// The node ended it, because it leaves.
    Left(String),
    Lost(String),
}

fn end_of(connection: &quinn::Connection, result: &Result<(), Trouble>) -> End {
    match (connection.close_reason().map(Ended::from), result) {
        (Some(Ended::Closed { code: Some(CloseCode::Leaving), reason }), _) => End::Left(reason),
        (_, Err(trouble)) => End::Lost(trouble.to_string()),
        (Some(ended), Ok(())) => End::Lost(ended.to_string()),
        (None, Ok(())) => End::Lost("the node ended its control stream".to_owned()),
    }
}

/// Logs the end of a session, or that there was none. What becomes of the node is logged by the
/// driver.
fn log_end(shared: &Shared, peer: &PeerIdentity, (begun, end): (bool, &End)) {
    let Some(node) = peer.node.filter(|node| shared.log.allows(&format!("node {node}"))) else {
        return;
    };
    let name = peer.name.as_str();
    match (begun, end) {
        (true, End::Left(reason)) => tracing::info!(%node, name, reason, "session ended"),
        (true, End::Lost(reason)) => tracing::info!(%node, name, reason, "session lost"),
        (false, End::Left(reason) | End::Lost(reason)) => {
            tracing::info!(%node, name, reason, "session refused");
        }
    }
}

/// A session that the driver knows.
struct Session<'a> {
    said_by: SaidBy,
    control: FrameReceiver,
    sender: SendStream,
    queue: mpsc::Receiver<Outgoing>,
    readable: Readable,
    sayable: Sayable,
    _place: Place<'a>,
}

async fn run(
    link: &Link,
    shared: &Arc<Shared>,
    (session, begun): (SessionId, &mut bool),
    (live, meter): (Arc<LivePeer>, Arc<Meter>),
) -> Result<(), Trouble> {
    // In a box, since it is over soon and sessions are long.
    let beginning = Box::pin(begin(link, shared, session, (live.clone(), meter.clone())));
    let Some(of) = beginning.await? else { return Ok(()) };
    *begun = true;
    let Session { said_by, mut control, sender, queue, readable, sayable, _place } = of;
    let mut tasks = JoinSet::new();
    tasks.spawn(write_control(FrameSender::new(sender), queue, link.connection.clone()));
    let to = || (link.connection.clone(), link.timing);
    let said = (said_by.clone(), sayable);
    tasks.spawn(serve_one_way(shared.clone(), said, to(), meter.clone()));
    tasks.spawn(serve_blobs(shared.clone(), (said_by, readable, live), to(), meter));
    // The tasks end with the connection or with this function.
    read_control(shared, session, &mut control).await?;
    // A node that leaves says so with the connection's end, which follows.
    drop(tokio::time::timeout(GOODBYE, link.connection.closed()).await);
    Ok(())
}

/// Takes a node's join, and tells the driver. None if the node is not to have its place.
async fn begin<'a>(
    link: &Link,
    shared: &'a Shared,
    session: SessionId,
    (live, meter): (Arc<LivePeer>, Arc<Meter>),
) -> Result<Option<Session<'a>>, Trouble> {
    let limit = link.timing.answer;
    let (sender, control) =
        renew::first_other(shared, &live, link, StreamKind::NodeControl).await?;
    let mut control = control.metered(meter);
    let mut join = match control.expect(limit).await? {
        NodeToCoordinator::Join(join) => join,
        _ => return Err(Trouble::Protocol("a node's session begins with its join".into())),
    };
    check_join(&mut join, link.peer.as_ref())?;
    keep_finishing(&mut join, &shared.log);
    let (outgoing, queue) = mpsc::channel(OUTGOING_MAX);
    let ends = (&link.connection, &outgoing);
    let lists = (&shared.rivals, &*shared.access, &*shared.log);
    let _place = match rivals::enter(lists, &live, &join, ends, link.timing.idle).await {
        Entry::Place(place) => place,
        Entry::Gone => return Ok(None),
        Entry::Refused(reason) => {
            let mut sender = FrameSender::new(sender);
            sender.send(&CoordinatorToNode::Refused { reason: reason.clone() }).await?;
            let _ = sender.finish_and_deliver(GOODBYE).await;
            close(&link.connection, CloseCode::Refused, &reason);
            return Ok(None);
        }
    };
    let (readable, sayable) = (Readable::default(), Sayable::default());
    tell_store(shared, &outgoing).await?;
    let said_by: SaidBy = (session, join.node, join.name.clone());
    let handle = SessionHandle {
        session,
        outgoing,
        readable: readable.clone(),
        sayable: sayable.clone(),
        peer: live.clone(),
    };
    let input = Input::NodeJoined {
        session,
        join: Box::new(join),
        fingerprint: link.hello.fingerprint,
        build: link.hello.build.clone(),
    };
    log_begin(shared, link, live.peer());
    let joined = Event::Joined { handle, input: Box::new(input) };
    shared.events.send(joined).await.map_err(|_| Trouble::Stopping)?;
    Ok(Some(Session { said_by, control, sender, queue, readable, sayable, _place }))
}

/// Tells a node that results go to a store elsewhere, if they do.
async fn tell_store(shared: &Shared, outgoing: &mpsc::Sender<Outgoing>) -> Result<(), Trouble> {
    if shared.spools.elsewhere().is_none() {
        return Ok(());
    }
    let message = Outgoing::Message(Box::new(CoordinatorToNode::StoreResults));
    outgoing.send(message).await.map_err(|_| Trouble::Stopping)
}

fn log_begin(shared: &Shared, link: &Link, peer: &PeerIdentity) {
    let Some(node) = peer.node.filter(|node| shared.log.allows(&format!("node {node}"))) else {
        return;
    };
    let (from, build) = (link.connection.remote_address(), link.hello.build.as_str());
    tracing::info!(%node, name = peer.name, %from, build, "session begun");
}

/// Checks that the node's claims match its certificate: the id, and the pool if it has one. The
/// name is taken from the certificate.
fn check_join(join: &mut Join, peer: Option<&PeerIdentity>) -> Result<(), Trouble> {
    let Some(peer) = peer.filter(|peer| peer.node == Some(join.node)) else {
        let text = format!("node {} is not the node of this certificate", join.node);
        return Err(Trouble::NotAllowed(text));
    };
    if let (Some(fixed), Some(claimed)) =
        (&peer.pool, join.pool.as_ref().filter(|pool| peer.pool.as_ref() != Some(pool)))
    {
        let text = format!(
            "its certificate says that it is of pool `{fixed}`, and it was started for pool \
             `{}`; leave --pool away, or \
             enrol it anew with another token",
            tessera_transport::close::cut(claimed, NAME_MAX)
        );
        return Err(Trouble::NotAllowed(text));
    }
    if let Some(pool) = join.pool.as_deref().filter(|pool| !is_label(pool)) {
        let pool = tessera_transport::close::cut(pool, NAME_MAX);
        return Err(Trouble::Protocol(format!(
            "pool {pool:?} is not of letters, digits and `.`, `_`, `-`, `@`"
        )));
    }
    join.pool = peer.pool.clone().or(join.pool.take());
    join.name = peer.name.clone();
    let within = [
        (join.name.len(), NAME_MAX, "name bytes"),
        (join.devices.len(), DEVICES_MAX, "devices"),
        (join.running.len(), LEASES_MAX, "running leases"),
        (join.finished.len(), FINISHED_MAX, "finished leases"),
        (join.scenes.len(), SCENES_MAX, "scenes"),
    ];
    match within.into_iter().find(|(count, limit, _)| count > limit) {
        Some((count, limit, what)) => {
            Err(Trouble::Protocol(format!("{count} {what} are more than {limit}")))
        }
        None => Ok(()),
    }
}

/// Lets a node finish frames only if it makes the bytes that this coordinator would make.
fn keep_finishing(join: &mut Join, log: &FarmLog) {
    let other = join.finishing.filter(|finishing| *finishing != tessera_finishing::fingerprint());
    if other.is_some() {
        join.finishing = None;
        if log.allows(&format!("node {}", join.node)) {
            tracing::warn!(node = %join.node, name = join.name, "the node finishes no frames, \
                because its build encodes files in another way; install the coordinator's on it");
        }
    }
}

/// Reads the node's control messages until the stream ends.
async fn read_control(
    shared: &Shared,
    session: SessionId,
    control: &mut FrameReceiver,
) -> Result<(), Trouble> {
    while let Some(message) = control.receive().await? {
        let input = match message {
            NodeToCoordinator::KernelText { lease, text } => {
                let said = Event::KernelText { session, lease, text };
                Box::pin(shared.events.send(said)).await.map_err(|_| Trouble::Stopping)?;
                continue;
            }
            NodeToCoordinator::Join(_) => {
                return Err(Trouble::Protocol("a session joins once".into()));
            }
            NodeToCoordinator::Capacity { units } => Input::Capacity { session, units },
            NodeToCoordinator::Scene { scene, held } => Input::SceneHeld { session, scene, held },
            NodeToCoordinator::Failed { lease, failure } => {
                Input::UnitFailed { session, lease, failure }
            }
            NodeToCoordinator::Returned { leases } => Input::Returned { session, leases },
            NodeToCoordinator::Devices(devices) => Input::DevicesChanged { session, devices },
            NodeToCoordinator::Draining => Input::NodeDraining { session },
        };
        Box::pin(shared.events.send(Event::Input(Box::new(input))))
            .await
            .map_err(|_| Trouble::Stopping)?;
    }
    Ok(())
}

/// Writes control messages to the node, in order, until the session is closed or lost.
async fn write_control(
    mut sender: FrameSender,
    mut queue: mpsc::Receiver<Outgoing>,
    connection: quinn::Connection,
) {
    let mut outgoing = Vec::new();
    while queue.recv_many(&mut outgoing, WRITTEN_AT_ONCE_MAX).await > 0 {
        // Messages after a close are dropped.
        let end = outgoing.iter().position(|one| matches!(one, Outgoing::Close(_)));
        let messages =
            outgoing[..end.unwrap_or(outgoing.len())].iter().filter_map(|one| match one {
                Outgoing::Message(message) => Some(&**message),
                Outgoing::Close(_) => None,
            });
        if sender.send_all(messages).await.is_err() {
            return;
        }
        if let Some(Outgoing::Close(reason)) = end.and_then(|end| outgoing.get(end)) {
            let _ = sender.finish_and_deliver(GOODBYE).await;
            return close(&connection, CloseCode::Replaced, reason);
        }
        outgoing.clear();
    }
}

/// Handles the node's one-way streams: results, live tiles, lines and heartbeats.
async fn serve_one_way(
    shared: Arc<Shared>,
    ((session, node, name), sayable): (SaidBy, Sayable),
    (connection, timing): (quinn::Connection, tessera_transport::Timing),
    meter: Arc<Meter>,
) {
    let mut tasks = JoinSet::new();
    while let Ok(stream) = connection.accept_uni().await {
        make_room(&mut tasks).await;
        let (shared, connection, meter) = (shared.clone(), connection.clone(), meter.clone());
        let (name, sayable) = (name.clone(), sayable.clone());
        tasks.spawn(async move {
            let accepted = accept_kind(stream, timing.answer).await;
            // The heartbeats' task stays, and has room for no more than them.
            let result = match accepted.map(|(kind, receiver)| (kind, receiver.metered(meter))) {
                Ok((StreamKind::Result, receiver)) => {
                    let results = results::take(&shared, (session, node, &name), receiver, timing);
                    Box::pin(results).await
                }
                Ok((StreamKind::LiveTile, receiver)) => {
                    Box::pin(live::take(&shared, session, receiver, timing)).await
                }
                Ok((StreamKind::Log, receiver)) => {
                    Box::pin(logs::take(&shared, (node, &name), &sayable, receiver)).await
                }
                Ok((StreamKind::Telemetry, receiver)) => {
                    telemetry(&shared, session, receiver).await
                }
                Ok((kind, _)) => Err(wrong_kind(kind)),
                Err(error) => Err(error.into()),
            };
            settle(&connection, result);
        });
    }
}

async fn telemetry(
    shared: &Shared,
    session: SessionId,
    mut receiver: FrameReceiver,
) -> Result<(), Trouble> {
    while let Some(heartbeat) = receiver.receive::<Heartbeat>().await? {
        if heartbeat.leases.len() > LEASES_MAX {
            return Err(Trouble::Protocol(format!(
                "a heartbeat names more than {LEASES_MAX} leases"
            )));
        }
        if heartbeat.devices.len() > DEVICES_MAX {
            return Err(Trouble::Protocol(format!(
                "a heartbeat lists more than {DEVICES_MAX} devices"
            )));
        }
        let input = Box::new(Input::Heartbeat { session, heartbeat });
        Box::pin(shared.events.send(Event::Input(input))).await.map_err(|_| Trouble::Stopping)?;
    }
    Ok(())
}

/// Serves the blobs of the node's jobs, and its next certificates.
async fn serve_blobs(
    shared: Arc<Shared>,
    ((session, node, name), readable, live): (SaidBy, Readable, Arc<LivePeer>),
    (connection, timing): (quinn::Connection, tessera_transport::Timing),
    meter: Arc<Meter>,
) {
    let (from, served) = (connection.remote_address(), connection.clone());
    let turns = Arc::new(Semaphore::new(inputs::SERVED_MAX));
    let given = Arc::new(stored::Given::default());
    serve_streams(connection, timing, meter, move |kind, sender, mut receiver| {
        let store =
            Arc::new(ReadableBlobs { blobs: shared.blobs.clone(), readable: readable.clone() });
        let (shared, live, served) = (shared.clone(), live.clone(), served.clone());
        let (turns, name, given) = (turns.clone(), name.clone(), given.clone());
        async move {
            if kind == StreamKind::Renew {
                return renew::serve(&shared, &live, (sender, receiver), (timing, from)).await;
            }
            let mut sender = FrameSender::new(sender);
            let ends = (&mut sender, &mut receiver);
            match kind {
                StreamKind::BlobGet => {
                    let get = tessera_transport::blob::serve_get(&store, &served, ends, &timing);
                    get.await?;
                    Ok(())
                }
                StreamKind::FinishInputs => {
                    inputs::serve(&shared, (session, turns), ends, (&served, timing)).await
                }
                StreamKind::StoreResults => {
                    let here = served.remote_address().ip().is_loopback();
                    let ends = (&mut sender, receiver);
                    let how = (&*given, here, timing);
                    stored::take(&shared, (session, node, &name), ends, how).await
                }
                StreamKind::FrameFiles => {
                    let here = served.remote_address().ip().is_loopback();
                    frame_files::serve(&shared, session, (&mut sender, receiver), (here, timing))
                        .await
                }
                kind => Err(wrong_kind(kind).closing(&served)),
            }
        }
    })
    .await;
}

/// The blobs that a node is allowed to read.
struct ReadableBlobs {
    blobs: Arc<GuardedBlobs>,
    readable: Readable,
}

impl BlobStore for ReadableBlobs {
    fn open(&self, hash: BlobHash) -> io::Result<Option<Box<dyn BlobRead>>> {
        if self.readable.contains(hash) { BlobStore::open(&*self.blobs, hash) } else { Ok(None) }
    }

    fn elsewhere(&self, hash: BlobHash, here: bool) -> Option<(String, u64)> {
        let readable = self.readable.contains(hash);
        if readable { BlobStore::elsewhere(&*self.blobs, hash, here) } else { None }
    }

    fn begin(&self, _: BlobHash, _: u64) -> Result<Box<dyn BlobSink>, String> {
        Err("a node gives no blobs".into())
    }
}
