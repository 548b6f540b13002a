//! What becomes of the certificates that peers show and renew: the rules of members, put into
//! effect and told in the audit log.

use super::{Access, LivePeer, Refusal};
use crate::sync::lock;
use std::time::Duration;
use tessera_protocol::NodeId;
use tessera_protocol::access::DeniedIdentity;
use tessera_protocol::renewal::{RenewReply, RenewRequest};
use tessera_transport::member::{ADMIN_NUMBER, Shown};
use tessera_transport::validity::now_secs;
use tessera_transport::{CloseCode, Credential, renew};

/// Longest wait until a given certificate is on the disk. A full disk takes longer.
const DURABLE_WITHIN: Duration = Duration::from_secs(5);
/// How long listings show what happened to a node's identity, in seconds.
const NOTED_SECS: u64 = 3600;
/// Wait of a holder of the coordinator's own identity, which nobody else renews, in seconds.
const KEPT_ASK_AGAIN_SECS: u32 = 60;

impl Access {
    /// Takes note of the certificate of a new connection. The refusal says why it does not count.
    pub(crate) async fn shown(&self, live: &LivePeer, from: &str) -> Result<(), Refusal> {
        let credential = live.credential();
        let refused = |text| Err(Refusal { code: CloseCode::Denied, text });
        match self.members.shown(&credential, now_secs(), from) {
            Shown::Counts | Shown::First => live.check_denied(),
            Shown::Refused(text) => refused(text),
            Shown::Conflict => {
                self.sweep(now_secs());
                let refusal = self.members.refusal(credential.peer.number, credential.serial);
                let text = refusal.unwrap_or_default();
                tracing::error!(peer = %live.peer(), text, "two copies of an identity");
                let told =
                    self.tell(live.peer().to_string(), "two copies of an identity", text.clone());
                if let Err(error) = told.await {
                    tracing::error!(%error, "the audit log cannot be written");
                }
                refused(text)
            }
        }
    }

    /// Answers a peer that asks for its next certificate. The certificate is on record, and in the
    /// audit log, before it is given.
    pub(crate) async fn renew(
        &self,
        peer: &LivePeer,
        request: &RenewRequest,
        from: &str,
    ) -> RenewReply {
        self.try_renew(peer, request, from).await.unwrap_or_else(RenewReply::Refused)
    }

    async fn try_renew(
        &self,
        peer: &LivePeer,
        request: &RenewRequest,
        from: &str,
    ) -> Result<RenewReply, String> {
        peer.check_denied().map_err(|refusal| refusal.text)?;
        let (authority, credential) = (self.authority(), peer.credential());
        if credential.peer.number == ADMIN_NUMBER {
            return Ok(RenewReply::NotYet { ask_again_secs: KEPT_ASK_AGAIN_SECS });
        }
        if let Some(early) = renew::early(&authority, &credential, now_secs()) {
            return Ok(early);
        }
        let late = peer.is_expired();
        let renewed = self.members.renew(&credential, |serial| {
            renew::sign(&authority, (&credential.peer, serial), request)
        })?;
        let durable = tokio::time::timeout(DURABLE_WITHIN, renewed.durable).await;
        if !matches!(durable, Ok(Ok(()))) {
            return Err("the coordinator's disk is full, or it is stopping; ask again".to_owned());
        }
        let what = if late { "certificate renewed in its grace" } else { "certificate renewed" };
        let about = format!("certificate {}, from {from}", renewed.serial);
        let told = self.tell(peer.peer().to_string(), what, about).await;
        told.map_err(|error| format!("the audit log cannot be written: {error}"))?;
        let (validity, serial) = (renewed.validity, renewed.serial);
        let authority = Some(authority.pin());
        peer.renewed(Credential { validity, serial, authority, ..credential });
        Ok(renewed.reply)
    }

    /// Notes for listings what happened to a node's identity.
    pub(crate) fn note_node(&self, node: NodeId, text: String) {
        let (mut notes, now) = (lock(&self.notes), now_secs());
        notes.retain(|_, (at, _)| at.saturating_add(NOTED_SECS) > now);
        notes.insert(node, (now, text));
    }

    /// Returns what happened to a node's identity within the last hour.
    pub(crate) fn note_of(&self, node: NodeId) -> Option<String> {
        let notes = lock(&self.notes);
        let (at, text) = notes.get(&node)?;
        (at.saturating_add(NOTED_SECS) > now_secs()).then(|| text.clone())
    }

    /// Returns the deny-list's entry of an identity.
    pub(crate) fn denial_of(&self, number: u64) -> Option<DeniedIdentity> {
        self.denied.get(number)
    }
}
