//! Signing in over HTTP: the sessions of browsers, and who shows a token.

use super::answer::Api;
use super::askers::{Entered, Kind};
use super::caller::Caller;
use super::context::unlogged;
use crate::access::Cause;
use crate::access::bearers::{Bearer, Bearing, SESSION_SECS};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tessera_protocol::access::TokenKind;
use tessera_protocol::client::RequestError;
use tessera_transport::authority::AuthorityError;
use tessera_transport::{BearerToken, TokenUse};

/// A browser that has signed in.
#[derive(Debug)]
pub struct SignedIn {
    /// Text of the session's token, for a cookie.
    pub token: String,
    /// How long it is valid, in seconds.
    pub secs: u64,
}

/// Somebody who watches the farm.
#[derive(Debug)]
pub struct Watching {
    _entered: Entered,
}

impl Api {
    /// Says at which address pages are served, such as `http://127.0.0.1:7421`. Links need it.
    pub fn serve_web_at(&self, base: String) {
        // It is said once, when the server of HTTP begins to listen.
        let _ = self.context.web.base.set(base);
    }

    /// Makes a certificate of the farm's authority for pages at these names or addresses, with its
    /// key.
    pub fn web_certificate(
        &self,
        names: &[String],
    ) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), AuthorityError> {
        self.context.access.authority().issue_web(names)
    }

    /// Returns who shows a token. The error is a message for the client.
    pub fn bearer(&self, token: &str) -> Result<Bearer, String> {
        let context = &self.context;
        let token: BearerToken = token.parse().map_err(|error| format!("{error}"))?;
        let now = context.clock.now().secs();
        let found = context.web.bearers.find(&token, &context.access.members, now);
        let bearer = found.ok_or("the token has expired, was revoked, or was never made here")?;
        context.access.admits(bearer.caller.identity())?;
        Ok(bearer)
    }

    /// Signs a browser in, with the code of a link. `from` is the client's address, for the audit
    /// log.
    pub async fn sign_in(&self, code: &str, from: &str) -> Result<SignedIn, RequestError> {
        let context = &self.context;
        context.room()?;
        let now = context.clock.now().secs();
        let taken = context.web.links.take(code, now);
        let peer = match taken {
            Some(peer) if context.access.admits(&peer).is_ok() => peer,
            _ => {
                let text = "the link was used, or is older than two minutes; `tessera web` makes \
                    a new one";
                let cause = Cause::Stranger(from);
                context.access.tell_refusal(cause, "sign-in refused", text.to_owned()).await;
                return Err(RequestError::NotAllowed(text.to_owned()));
            }
        };
        let (who, purpose) = (peer.to_string(), TokenUse::Session(peer.number));
        let told = context.access.tell_within(
            Cause::Action(&who),
            "signed in",
            format!("a browser from {from}"),
        );
        told.await.map_err(|error| unlogged(&error))?;
        let bearing = Bearing { peer, purpose, secs: SESSION_SECS, by: who };
        let token = context.web.bearers.create(bearing, now).await?;
        Ok(SignedIn { token: token.to_string(), secs: SESSION_SECS })
    }

    /// Ends the session that a token belongs to; a token of another kind stays.
    pub async fn sign_out(&self, token: &str) -> Result<(), RequestError> {
        let Ok(bearer) = self.bearer(token) else { return Ok(()) };
        let Ok(token) = token.parse::<BearerToken>() else { return Ok(()) };
        if bearer.kind != TokenKind::Session {
            return Ok(());
        }
        self.context.web.bearers.end(token.hash()).await
    }

    /// Returns whether a bearer still has the rights that it had when it was found.
    pub fn is_valid(&self, bearer: &Bearer) -> bool {
        let (context, now) = (&self.context, self.context.clock.now().secs());
        context.web.bearers.holds(bearer, &context.access.members, now)
            && context.access.admits(bearer.caller.identity()).is_ok()
    }

    /// Counts one more that watches the farm for this caller, until the returned value is dropped.
    pub fn watching(&self, caller: &Caller) -> Result<Watching, RequestError> {
        self.context
            .askers
            .enter(&caller.owner(), Kind::Watcher)
            .map(|entered| Watching { _entered: entered })
    }
}
