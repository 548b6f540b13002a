//! Two processes with the identity of one node: the newer one waits, and is refused if the older
//! one goes on answering. Which certificates count is decided in [`crate::access`].

use crate::access::{Access, LivePeer};
use crate::driver::Outgoing;
use crate::farm_log::FarmLog;
use crate::sync::lock;
use quinn::Connection;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::Duration;
use tessera_protocol::node::{CoordinatorToNode, Join};
use tessera_protocol::{NodeId, ProcessEpoch};
use tokio::sync::mpsc;

/// The newest process of each connected node.
#[derive(Debug, Default)]
pub(crate) struct Rivals {
    present: Mutex<(u64, BTreeMap<NodeId, Present>)>,
}

#[derive(Clone, Debug)]
struct Present {
    number: u64,
    process: ProcessEpoch,
    connection: Connection,
    from: SocketAddr,
    outgoing: mpsc::Sender<Outgoing>,
}

/// The place of a node's process. Dropping this value frees it.
pub(super) struct Place<'a> {
    rivals: &'a Rivals,
    node: NodeId,
    number: u64,
}

impl Rivals {
    /// Takes the place of a node, unless another process of it has a live connection, which is
    /// returned. The same process again replaces itself.
    fn take(&self, join: &Join, (connection, outgoing): Ends<'_>) -> Result<Place<'_>, Present> {
        let mut present = lock(&self.present);
        let other = present.1.get(&join.node);
        if let Some(other) = other.filter(|other| {
            other.process != join.process && other.connection.close_reason().is_none()
        }) {
            return Err(other.clone());
        }
        present.0 += 1;
        let (number, process) = (present.0, join.process);
        let (connection, from) = (connection.clone(), connection.remote_address());
        let ours = Present { number, process, connection, from, outgoing: outgoing.clone() };
        present.1.insert(join.node, ours);
        Ok(Place { rivals: self, node: join.node, number })
    }
}

type Ends<'a> = (&'a Connection, &'a mpsc::Sender<Outgoing>);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut present = lock(&self.rivals.present);
        if present.1.get(&self.node).is_some_and(|ours| ours.number == self.number) {
            present.1.remove(&self.node);
        }
    }
}

/// What becomes of a process that wants its node's place.
pub(super) enum Entry<'a> {
    /// It has the place.
    Place(Place<'a>),
    /// The process that has the place goes on answering. The text is for the newer one.
    Refused(String),
    /// The newer process is gone.
    Gone,
}

/// Waits for a node's place. A connection that nobody answers on any more is lost within an idle
/// time, so one that is still there after two of them is answered by a living process.
pub(super) async fn enter<'a>(
    (rivals, access, log): (&'a Rivals, &Access, &FarmLog),
    live: &LivePeer,
    join: &Join,
    (connection, outgoing): Ends<'_>,
    idle: Duration,
) -> Entry<'a> {
    let until = tokio::time::Instant::now() + idle * 2;
    loop {
        let other = match rivals.take(join, (connection, outgoing)) {
            Ok(place) => return Entry::Place(place),
            Err(other) => other,
        };
        tokio::select! {
            _ = other.connection.closed() => {}
            _ = connection.closed() => return Entry::Gone,
            () = tokio::time::sleep_until(until) => {
                let from = connection.remote_address();
                return refuse((access, log), live, join, (&other, from)).await;
            }
        }
    }
}

/// Tells both processes, the log, the audit log and the listings.
async fn refuse(
    (access, log): (&Access, &FarmLog),
    live: &LivePeer,
    join: &Join,
    (other, from): (&Present, SocketAddr),
) -> Entry<'static> {
    let happened = format!(
        "another process has this node's identity: one from {from} was refused, because the one \
         from {} goes on answering; enrol that copy anew, in a data folder of its own",
        other.from
    );
    if log.allows(&format!("node {}", join.node)) {
        tracing::error!(node = %join.node, name = join.name, "{happened}");
    }
    let notice = CoordinatorToNode::Notice { text: happened.clone() };
    // A node that does not read loses its connection elsewhere.
    let _ = other.outgoing.try_send(Outgoing::Message(Box::new(notice)));
    access.note_node(join.node, happened.clone());
    let told = access.tell(live.peer().to_string(), "second process refused", happened);
    if let Err(error) = told.await {
        tracing::error!(%error, "the audit log cannot be written");
    }
    Entry::Refused(format!(
        "another process has this node's identity, and goes on answering from {}: enrol this copy \
         anew, with a token and a data folder of its own, or stop the other one",
        other.from
    ))
}
