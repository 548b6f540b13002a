//! The live connections whose peers have a certificate. Decides nothing about them.

use super::live_peer::LivePeer;
use crate::sync::lock;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Every live connection that has a certificate, each under its own number.
#[derive(Default)]
pub(super) struct Live {
    connections: Mutex<(u64, BTreeMap<u64, Arc<LivePeer>>)>,
}

impl Live {
    /// Adds a connection until the returned value is dropped.
    pub(super) fn admit(self: &Arc<Self>, peer: Arc<LivePeer>) -> Admitted {
        let mut connections = lock(&self.connections);
        connections.0 += 1;
        let number = connections.0;
        connections.1.insert(number, peer.clone());
        Admitted { peer, live: self.clone(), number }
    }

    /// Returns the peers of all connections.
    pub(super) fn peers(&self) -> Vec<Arc<LivePeer>> {
        lock(&self.connections).1.values().cloned().collect()
    }
}

/// An admitted connection. Dropping this value removes it from the live connections.
pub(crate) struct Admitted {
    peer: Arc<LivePeer>,
    live: Arc<Live>,
    number: u64,
}

impl Admitted {
    pub(crate) fn peer(&self) -> Arc<LivePeer> {
        self.peer.clone()
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        lock(&self.live.connections).1.remove(&self.number);
    }
}
