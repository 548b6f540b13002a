//! What is known of the provider: where its parts are, and its keys. Fetched when it is needed,
//! again every hour, and after failures with growing pauses.

use super::fetch::{Asked, Fetcher};
use super::refusal::quoted;
use axum::http::StatusCode;
use jsonwebtoken::jwk::Jwk;
use serde::Deserialize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long what is known is used without asking again.
const KNOWN_FOR: Duration = Duration::from_secs(3600);
/// Least time between two looks for keys that were not known.
const KEYS_AGAIN: Duration = Duration::from_secs(10);
/// Pauses after failures: the first, doubled up to the last.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// Most keys of a provider that are kept.
const KEYS_MAX: usize = 64;

/// The provider.
#[derive(Debug)]
pub(super) struct Provider {
    issuer: String,
    fetcher: Fetcher,
    state: Mutex<State>,
    /// Held by the one that asks.
    asking: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    known: Option<Arc<Known>>,
    /// What went wrong the last time, and how often in a row.
    problem: Option<String>,
    failures: u32,
    again: Option<Instant>,
}

/// What a provider has said of itself.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) parts: Parts,
    pub(super) keys: Vec<Jwk>,
    at: Instant,
}

/// OpenID Connect Discovery 1.0, section 3: what is used of it.
#[derive(Debug, Deserialize)]
pub(super) struct Parts {
    issuer: String,
    pub(super) authorization_endpoint: String,
    pub(super) token_endpoint: String,
    jwks_uri: String,
    pub(super) userinfo_endpoint: Option<String>,
    #[serde(default)]
    pub(super) scopes_supported: Vec<String>,
    #[serde(default)]
    pub(super) token_endpoint_auth_methods_supported: Vec<String>,
}

#[derive(Deserialize)]
struct Keys {
    keys: Vec<serde_json::Value>,
}

impl Provider {
    pub(super) fn new(issuer: String, fetcher: Fetcher) -> Self {
        Self { issuer, fetcher, state: Mutex::default(), asking: tokio::sync::Mutex::default() }
    }

    pub(super) fn fetcher(&self) -> &Fetcher {
        &self.fetcher
    }

    /// Whether nothing is known, nobody asks, and it is time to ask.
    pub(super) fn is_unknown(&self) -> bool {
        let idle = self.asking.try_lock().is_ok();
        let state = self.state();
        idle && state.known.is_none() && state.again.is_none_or(|again| again <= Instant::now())
    }

    /// What went wrong the last time.
    pub(super) fn problem(&self) -> Option<String> {
        self.state().problem.clone()
    }

    /// Returns what is known, and asks first where that is nothing or old. What is old is used
    /// where the provider does not answer.
    pub(super) async fn known(&self) -> Result<Arc<Known>, String> {
        match self.fresh(KNOWN_FOR) {
            Some(known) => Ok(known),
            None => self.again(KNOWN_FOR).await,
        }
    }

    /// Returns what is known after a token with a key that was not: the provider may have new keys.
    pub(super) async fn newer(&self) -> Result<Arc<Known>, String> {
        self.again(KEYS_AGAIN).await
    }

    fn fresh(&self, within: Duration) -> Option<Arc<Known>> {
        self.state().known.clone().filter(|known| known.at.elapsed() < within)
    }

    async fn again(&self, within: Duration) -> Result<Arc<Known>, String> {
        let _alone = self.asking.lock().await;
        // Another one may have asked meanwhile.
        if let Some(known) = self.fresh(within) {
            return Ok(known);
        }
        {
            let state = self.state();
            if state.again.is_some_and(|again| again > Instant::now()) {
                let problem = state.problem.clone().unwrap_or_default();
                return state.known.clone().ok_or(problem);
            }
        }
        let asked = self.ask().await;
        let mut state = self.state();
        match asked {
            Ok(known) => {
                let known = Arc::new(known);
                *state = State { known: Some(known.clone()), ..State::default() };
                Ok(known)
            }
            Err(problem) => {
                let problem = quoted(&problem);
                tracing::warn!(problem, "the sign-in provider does not answer as it should");
                state.again = Some(Instant::now() + pause(state.failures));
                state.failures += 1;
                state.problem = Some(problem.clone());
                state.known.clone().ok_or(problem)
            }
        }
    }

    async fn ask(&self) -> Result<Known, String> {
        let base = self.issuer.trim_end_matches('/');
        let address = format!("{base}/.well-known/openid-configuration");
        let parts: Parts = self.json(&address).await?;
        if parts.issuer != self.issuer {
            return Err(format!(
                "{address} is of the issuer {:?}, and --oidc says {:?}: they must be the same",
                quoted(&parts.issuer),
                self.issuer
            ));
        }
        let all = [&parts.authorization_endpoint, &parts.token_endpoint, &parts.jwks_uri];
        for part in all.into_iter().chain(&parts.userinfo_endpoint) {
            if !self.fetcher.may_ask(part) {
                return Err(format!("{address} names {:?}, which is not safe", quoted(part)));
            }
        }
        let found: Keys = self.json(&parts.jwks_uri).await?;
        // Keys of kinds that nobody here knows are none of ours.
        let keys = found.keys.into_iter().filter_map(|key| serde_json::from_value(key).ok());
        let keys: Vec<Jwk> = keys.take(KEYS_MAX).collect();
        match keys.is_empty() {
            true => Err(format!("{} has no keys", parts.jwks_uri)),
            false => Ok(Known { parts, keys, at: Instant::now() }),
        }
    }

    async fn json<T: serde::de::DeserializeOwned>(&self, address: &str) -> Result<T, String> {
        let (status, body) = self.fetcher.ask(address, Asked::default()).await?;
        if status != StatusCode::OK {
            return Err(format!("{address} answers {status}"));
        }
        serde_json::from_slice(&body).map_err(|error| format!("{address}: {error}"))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The pause after this many failures before.
fn pause(failures: u32) -> Duration {
    PAUSE.saturating_mul(1 << failures.min(16)).min(PAUSE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_minute() {
        let secs: Vec<u64> = (0..8).map(|failures| pause(failures).as_secs()).collect();
        assert_eq!(secs, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(pause(u32::MAX), PAUSE_MAX);
    }

    #[tokio::test]
    async fn a_provider_that_is_down_is_not_asked_on_and_on() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let issuer = format!("http://{}", listener.local_addr().unwrap());
        drop(listener);
        let provider = Provider::new(issuer.clone(), Fetcher::new(true).unwrap());
        assert!(provider.is_unknown() && provider.problem().is_none());
        let problem = provider.known().await.unwrap_err();
        assert!(problem.contains(&issuer), "{problem}");
        assert!(!provider.is_unknown(), "there is a pause first");
        assert_eq!(provider.known().await.unwrap_err(), problem);
        assert_eq!(provider.state().failures, 1, "it was asked once");
        assert_eq!(provider.problem(), Some(problem));
    }
}
