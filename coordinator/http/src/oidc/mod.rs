//! Signing in by an OpenID Connect provider: authorization code with PKCE (OpenID Connect Core 1.0,
//! section 3.1; RFC 7636). Finds out who somebody is and which role their groups give; makes no
//! session and no member.
//!
//! `begin` gives a browser a ticket in a cookie and sends it to the provider. What comes back is
//! taken only with that ticket, once, within ten minutes.

mod config;
mod exchange;
mod fetch;
mod id_token;
mod person;
mod provider;
mod refusal;
mod signature;
mod ticket;

pub use config::{OidcConfig, OidcError};
pub(crate) use refusal::Refusal;
pub(crate) use ticket::TICKET_SECS;

use crate::crowd::Crowd;
use fetch::Fetcher;
use provider::Provider;
use refusal::quoted;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use tessera_coordinator::api::Vouched;
use ticket::Tickets;
use tokio::sync::Semaphore;

/// Sign-ins of which the provider is asked at a time, of all addresses and of one.
const ASKED_MAX: usize = 16;
const ASKED_OF_ONE_MAX: usize = 4;

/// Signing in by one provider.
#[derive(Debug)]
pub(crate) struct Oidc {
    config: OidcConfig,
    /// Where the provider sends browsers back to.
    redirect: String,
    provider: Arc<Provider>,
    tickets: Tickets,
    asking: Semaphore,
    crowd: Arc<Crowd>,
}

/// What the provider has added to our address.
#[derive(Debug, Default, serde::Deserialize)]
pub(crate) struct Returned {
    code: Option<String>,
    state: Option<String>,
    iss: Option<String>,
    error: Option<String>,
    error_description: Option<String>,
}

impl Oidc {
    /// Signing in for pages at this base.
    pub(crate) fn new(config: &OidcConfig, base: &str) -> Result<Self, OidcError> {
        config.check()?;
        let fetcher = Fetcher::new(config.is_local())?;
        Ok(Self {
            redirect: format!("{base}/oidc/return"),
            provider: Arc::new(Provider::new(config.issuer.clone(), fetcher)),
            tickets: Tickets::new().map_err(OidcError::Random)?,
            asking: Semaphore::new(ASKED_MAX),
            crowd: Crowd::new(ASKED_OF_ONE_MAX),
            config: config.clone(),
        })
    }

    /// The provider's name for people: its host.
    pub(crate) fn host(&self) -> &str {
        self.config.host()
    }

    /// Asks the provider where its parts are, in the background, if that is not known. For pages,
    /// which do not wait for it. Returns what went wrong the last time.
    pub(crate) fn look(&self) -> Option<String> {
        let provider = self.provider.clone();
        if provider.is_unknown() {
            tokio::spawn(async move { provider.known().await.map(drop) });
        }
        self.provider.problem()
    }

    /// Begins a sign-in. Returns the value of the ticket's cookie, and the address to go to.
    pub(crate) async fn begin(&self) -> Result<(String, String), Refusal> {
        let known = self.provider.known().await.map_err(Refusal::Unavailable)?;
        let (ticket, cookie) = self
            .tickets
            .issue(now())
            .map_err(|error| Refusal::Unavailable(format!("no ticket can be made: {error}")))?;
        Ok((cookie, exchange::address(&known, (&self.config, &self.redirect), &ticket)))
    }

    /// Ends a sign-in: finds out who has come back. `cookie` is the ticket's.
    pub(crate) async fn end(
        &self,
        (cookie, from): (Option<&str>, IpAddr),
        returned: Returned,
    ) -> Result<Vouched, Refusal> {
        let refused = |text: String| Refusal::Refused(text);
        let state = returned.state.as_deref().unwrap_or_default();
        let taken = self.tickets.take(cookie.unwrap_or_default(), state, now());
        let ticket = taken.map_err(|error| refused(error.to_string()))?;
        let host = self.host();
        if returned.iss.as_ref().is_some_and(|issuer| *issuer != self.config.issuer) {
            return Err(refused(format!("the answer is from another provider than {host}")));
        }
        if let Some(error) = &returned.error {
            let about = returned.error_description.as_deref().unwrap_or_default();
            let text = format!("{host} refuses: {} {}", quoted(error), quoted(about));
            return Err(refused(text.trim_end().to_owned()));
        }
        let code = returned.code.ok_or_else(|| refused(format!("{host} has sent no code")))?;
        let busy = || Refusal::Unavailable("too many sign in at once; try again".to_owned());
        let _one = self.crowd.enter(from).ok_or_else(busy)?;
        let _all = self.asking.try_acquire().map_err(|_| busy())?;
        let settings = (&self.config, self.redirect.as_str());
        let claims = exchange::claims(&self.provider, settings, (&code, &ticket)).await?;
        Ok(person::vouched(&self.config, claims))
    }
}

/// Seconds since the Unix epoch.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
