//! The peer of one live connection: its identity, and how long its certificate is valid. Decides
//! nothing else.

use super::denied::Denied;
use super::members::Members;
use crate::sync::lock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tessera_protocol::access::DeniedIdentity;
use tessera_transport::validity::now_secs;
use tessera_transport::{CloseCode, Credential, PeerIdentity};

/// Why the connection of a peer is closed.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) code: CloseCode,
    pub(crate) text: String,
}

/// A connection of any transport, with the operations that access control needs.
pub(crate) trait PeerConnection: Send + Sync {
    /// Closes the connection, with a reason for the peer.
    fn close(&self, code: CloseCode, text: &str);
}

/// A peer with a live connection.
pub(crate) struct LivePeer {
    connection: Box<dyn PeerConnection>,
    peer: PeerIdentity,
    credential: Mutex<Credential>,
    /// Whether it came with an expired certificate and has not renewed it.
    must_renew: AtomicBool,
    denied: Arc<Denied>,
    members: Arc<Members>,
}

impl LivePeer {
    pub(super) fn new(
        connection: Box<dyn PeerConnection>,
        credential: Credential,
        (denied, members): (Arc<Denied>, Arc<Members>),
    ) -> Self {
        let peer = credential.peer.clone();
        let must_renew = AtomicBool::new(credential.validity.is_expired(now_secs()));
        let credential = Mutex::new(credential);
        Self { connection, peer, credential, must_renew, denied, members }
    }

    /// Returns the identity of the peer.
    pub(crate) fn peer(&self) -> &PeerIdentity {
        &self.peer
    }

    pub(crate) fn credential(&self) -> Credential {
        lock(&self.credential).clone()
    }

    pub(super) fn renewed(&self, credential: Credential) {
        *lock(&self.credential) = credential;
        self.must_renew.store(false, Ordering::Release);
    }

    /// Returns whether the peer has to renew its certificate before anything else, because it had
    /// expired when it came.
    pub(crate) fn must_renew(&self) -> bool {
        self.must_renew.load(Ordering::Acquire)
    }

    /// Returns whether the certificate has expired. Its peer can still renew it, but do nothing
    /// else.
    pub(crate) fn is_expired(&self) -> bool {
        lock(&self.credential).validity.is_expired(now_secs())
    }

    /// Refuses a peer that is on the deny-list, or whose certificate no longer counts.
    pub(crate) fn check_denied(&self) -> Result<(), Refusal> {
        let refused = |text| Err(Refusal { code: CloseCode::Denied, text });
        if let Some(entry) = self.denied.get(self.peer.number) {
            return refused(denial(&entry));
        }
        let serial = lock(&self.credential).serial;
        self.members.refusal(self.peer.number, serial).map_or(Ok(()), refused)
    }

    /// Refuses a peer that is denied or whose certificate has expired.
    pub(crate) fn check(&self, now_secs: u64) -> Result<(), Refusal> {
        self.check_denied()?;
        if lock(&self.credential).validity.is_expired(now_secs) {
            let text = format!("the certificate of {} has expired, and was not renewed", self.peer);
            return Err(Refusal { code: CloseCode::Expired, text });
        }
        Ok(())
    }

    /// As [`Self::check`], but leaves a peer that has come to renew its expired certificate. Who
    /// serves its connection makes it do so before anything else, and in time.
    pub(super) fn check_unless_renewing(&self, now_secs: u64) -> Result<(), Refusal> {
        if self.must_renew() { self.check_denied() } else { self.check(now_secs) }
    }

    /// Closes the connection, and tells the peer why.
    pub(crate) fn close(&self, refusal: &Refusal) {
        self.connection.close(refusal.code, &refusal.text);
    }
}

/// Returns the message for a denied peer.
pub(super) fn denial(entry: &DeniedIdentity) -> String {
    let DeniedIdentity { identity, by, reason, .. } = entry;
    let reason = if reason.is_empty() { String::new() } else { format!(" ({reason})") };
    format!(
        "{identity} was denied by {by}{reason}; an admin ends that with `tessera allow {identity}`"
    )
}
