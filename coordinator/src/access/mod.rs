//! Who may be here, and until when: the authority in use, every live connection,
//! and what keeps both fresh. Serves no stream; the doors ask here.

pub(crate) mod audit_log;
mod denied;
mod live_peer;
pub(crate) mod tokens;
mod upkeep;

pub(crate) use audit_log::Log;
pub use denied::DeniedError;
pub(crate) use denied::{Denied, Subject};
pub(crate) use live_peer::{Admitted, LivePeer, PeerConnection, Refusal};
pub(crate) use upkeep::{ADMIN_NAME, Kept, KeptError, keep};

use crate::sync::lock;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;
use tessera_protocol::access::DeniedIdentity;
use tessera_protocol::renewal::{RenewReply, RenewRequest};
use tessera_transport::server::ServeError;
use tessera_transport::validity::now_secs;
use tessera_transport::{Authority, AuthorityError, Credential, PeerIdentity};

/// Who may be here.
pub(crate) struct Access {
    authority: RwLock<Arc<Authority>>,
    denied: Arc<Denied>,
    live: Arc<Live>,
    /// The authority's folder.
    folder: PathBuf,
    doors: TellDoors,
    pub(crate) log: Arc<Log>,
}

/// Tells everything that listens of a new authority.
pub(crate) type TellDoors = Box<dyn Fn(&Authority) -> Result<(), ServeError> + Send + Sync>;

/// Every live connection that has a certificate, by a number of its own.
#[derive(Default)]
struct Live {
    connections: Mutex<(u64, BTreeMap<u64, Arc<LivePeer>>)>,
}

impl Access {
    /// Under this authority, without those who are denied. `doors` tells everything that listens of
    /// a new authority.
    pub(crate) fn new(
        (authority, folder): (Authority, PathBuf),
        denied: Denied,
        log: Log,
        doors: TellDoors,
    ) -> Self {
        Self {
            doors,
            authority: RwLock::new(Arc::new(authority)),
            denied: Arc::new(denied),
            live: Arc::default(),
            folder,
            log: Arc::new(log),
        }
    }

    /// Everybody who is denied.
    pub(crate) fn denied(&self) -> Vec<DeniedIdentity> {
        self.denied.list()
    }

    /// Whoever would become this: not if denied. The error is for the peer.
    pub(crate) fn admits(&self, peer: &PeerIdentity) -> Result<(), String> {
        match self.denied.get(&Subject::of(peer)) {
            Some(entry) => Err(live_peer::denial(&entry)),
            None => Ok(()),
        }
    }

    /// Shuts an identity out, durably, and ends its connections; or lets it in again. False: there
    /// was no such entry to take off. Blocks.
    pub(crate) fn deny(
        &self,
        subject: Subject,
        entry: Option<DeniedIdentity>,
    ) -> Result<bool, DeniedError> {
        let there = self.denied.get(&subject).is_some();
        if entry.is_some() || there {
            self.denied.change(subject, entry)?;
            self.sweep(now_secs());
        }
        Ok(there)
    }

    /// The authority that signs now.
    pub(crate) fn authority(&self) -> Arc<Authority> {
        self.authority.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A new authority in the place of this one, trusted beside it for so long; whoever listens
    /// must hear of it. Blocks.
    pub(crate) fn rotate(
        &self,
        overlap: Option<Duration>,
    ) -> Result<Arc<Authority>, AuthorityError> {
        let mut authority = self.authority.write().unwrap_or_else(PoisonError::into_inner);
        let overlap = overlap.unwrap_or_else(|| authority.lifetimes().longest());
        *authority = Arc::new(authority.rotate(&self.folder, now_secs(), overlap)?);
        Ok(authority.clone())
    }

    /// Tells everything that listens of an authority.
    pub(crate) fn tell_doors(&self, authority: &Authority) -> Result<(), ServeError> {
        (self.doors)(authority)
    }

    /// Ends the former authority, where its time is over; None where it is not. Blocks.
    fn end_overlap(&self) -> Result<Option<Arc<Authority>>, AuthorityError> {
        let mut authority = self.authority.write().unwrap_or_else(PoisonError::into_inner);
        let Some(alone) = authority.past_overlap(&self.folder, now_secs())? else {
            return Ok(None);
        };
        *authority = Arc::new(alone);
        Ok(Some(authority.clone()))
    }

    /// Tells the audit log something, synced on return.
    pub(crate) async fn tell(
        &self,
        who: String,
        what: &'static str,
        about: String,
    ) -> std::io::Result<()> {
        let log = self.log.clone();
        let told =
            tokio::task::spawn_blocking(move || log.append((now_secs(), &who), what, &about)).await;
        told.map_err(std::io::Error::other)?
    }

    /// Lets a connection in, until what comes back is dropped. One whose certificate has expired is
    /// let in too: it may renew it.
    pub(crate) fn admit(
        &self,
        connection: Box<dyn PeerConnection>,
        credential: Credential,
    ) -> Admitted {
        let peer = Arc::new(LivePeer::new(connection, credential, self.denied.clone()));
        let mut connections = lock(&self.live.connections);
        connections.0 += 1;
        let number = connections.0;
        connections.1.insert(number, peer.clone());
        Admitted { peer, live: self.live.clone(), number }
    }

    /// Answers a peer that wants its next certificate.
    pub(crate) fn renew(&self, peer: &LivePeer, request: &RenewRequest) -> RenewReply {
        if let Err(refusal) = peer.check_denied() {
            return RenewReply::Refused(refusal.text);
        }
        let (authority, credential) = (self.authority(), peer.credential());
        let (reply, validity) =
            tessera_transport::renew::answer(&authority, &credential, request, now_secs());
        if let Some(validity) = validity {
            peer.renewed(Credential { validity, authority: Some(authority.pin()), ..credential });
        }
        reply
    }

    /// Closes the connections whose peers may not be here any more.
    fn sweep(&self, now_secs: u64) {
        let peers: Vec<Arc<LivePeer>> = lock(&self.live.connections).1.values().cloned().collect();
        for peer in peers {
            if let Err(refusal) = peer.check(now_secs) {
                tracing::warn!(peer = %peer.peer(), reason = refusal.text, "connection closed");
                peer.close(&refusal);
            }
        }
    }
}
