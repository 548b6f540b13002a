//! Signing in people for whom an identity provider vouches. What the provider says was checked by
//! whoever asks.

use super::answer::Api;
use super::context::unlogged;
use super::sessions::SignedIn;
use crate::access::Cause;
use crate::access::bearers::{Bearing, SESSION_SECS};
use crate::access::vouched::Vouched;
use tessera_protocol::client::RequestError;
use tessera_protocol::limits::REASON_MAX;
use tessera_transport::TokenUse;
use tessera_transport::close::cut;

impl Api {
    /// Signs a browser in for a person for whom a provider vouches. `from` is the client's address,
    /// for the audit log. The person becomes a member at the first time, durably.
    pub async fn sign_in_vouched(
        &self,
        person: &Vouched,
        from: &str,
    ) -> Result<SignedIn, RequestError> {
        let context = &self.context;
        context.room()?;
        let now = context.clock.now().secs();
        let until = now.saturating_add(SESSION_SECS);
        let admits = |peer: &_| context.access.admits(peer);
        let admitted = match context.access.members.vouch(person, (now, until), admits) {
            Ok(admitted) => admitted,
            Err(reason) => {
                let Vouched { issuer, subject, .. } = person;
                let about = format!("{subject:?} of {issuer}: {reason}");
                self.refused_sign_in(from, about).await;
                return Err(RequestError::NotAllowed(reason));
            }
        };
        let stopping = |_| RequestError::Unavailable("the coordinator is stopping".into());
        admitted.durable.await.map_err(stopping)?;
        let (peer, who) = (admitted.peer.clone(), admitted.peer.to_string());
        let first = if admitted.is_new { ", for the first time" } else { "" };
        let about =
            format!("a browser from {from}, as {:?} of {}{first}", person.subject, person.issuer);
        let told = context.access.tell_within(Cause::Action(&who), "signed in", about);
        told.await.map_err(|error| unlogged(&error))?;
        let purpose = TokenUse::Session(peer.number);
        let bearing = Bearing { peer, purpose, secs: SESSION_SECS, by: who };
        let token = context.web.bearers.create(bearing, now).await?;
        Ok(SignedIn { token: token.to_string(), secs: SESSION_SECS })
    }

    /// Enters that a sign-in was refused before anybody was known. `from` is the client's address.
    pub async fn refused_sign_in(&self, from: &str, about: String) {
        let about = cut(&about, REASON_MAX).to_owned();
        self.context.access.tell_refusal(Cause::Stranger(from), "sign-in refused", about).await;
    }
}
