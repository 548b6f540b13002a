//! A webhook: posts events over a connection to an address that was checked. The name is looked up
//! once for each attempt, and no redirect and no proxy is followed, so that nothing is sent where
//! the file does not allow it.

use crate::address::Allow;
use crate::config::{Url, WebhookConfig};
use crate::event::{Event, VERSION};
use crate::secret::Secret;
use crate::sign::{SIGNATURE, TIMESTAMP, signature};
use bytes::Bytes;
use http_body_util::Full;
use hyper::{Request, StatusCode, header};
use serde::Serialize;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tessera_http::outward::{Body, Trusting, exchange};
use tokio::net::TcpStream;

/// Most events of a post: with the longest notes 100 × 3 KiB.
pub(crate) const EVENTS_MAX: usize = 100;
/// Longest attempt, from the look-up of the name to the head of the answer.
const WITHIN: Duration = Duration::from_secs(10);
/// Longest wait for one of several addresses.
const CONNECT_WITHIN: Duration = Duration::from_secs(4);

/// A webhook.
#[derive(Debug)]
pub(crate) struct Webhook {
    name: String,
    url: Url,
    secret: Secret,
    allow: Arc<Allow>,
    /// None where the URL is http://.
    tls: Option<Trusting>,
}

/// The body of a post.
#[derive(Serialize)]
struct Post<'a> {
    version: u32,
    target: &'a str,
    /// Events that were given up since the last post that was taken.
    dropped: u64,
    events: Vec<&'a Event>,
}

impl Webhook {
    /// A webhook that sends to what is allowed. `tls`: for https://.
    pub(crate) fn new(config: &WebhookConfig, allow: Arc<Allow>, tls: Option<Trusting>) -> Self {
        let WebhookConfig { name, url, secret, wanted: _ } = config.clone();
        Self { name, url, secret, allow, tls }
    }

    /// Posts events, and says what went wrong. `now`: seconds since the Unix epoch.
    pub(crate) async fn post(
        &self,
        (events, dropped): (&[Arc<Event>], u64),
        now: u64,
    ) -> Result<(), String> {
        let posted = tokio::time::timeout(WITHIN, self.try_post((events, dropped), now)).await;
        let status = posted
            .unwrap_or_else(|_| Err(format!("no answer within {} s", WITHIN.as_secs())))
            .map_err(|problem| format!("{}: {problem}", self.url.authority))?;
        match status {
            status if status.is_success() => Ok(()),
            status if status.is_redirection() => Err(format!(
                "{} answered {status}: no redirect is followed, so give the address that it means",
                self.url.authority
            )),
            status => Err(format!("{} answered {status}", self.url.authority)),
        }
    }

    async fn try_post(
        &self,
        (events, dropped): (&[Arc<Event>], u64),
        now: u64,
    ) -> Result<StatusCode, String> {
        let events = events.iter().map(|event| &**event).collect();
        let post = Post { version: VERSION, target: &self.name, dropped, events };
        let body = serde_json::to_vec(&post).map_err(|error| error.to_string())?;
        let request = self.request(body, now)?;
        let stream = connect(&self.addresses().await?).await?;
        let answer = match &self.tls {
            Some(tls) => tls.exchange((&self.url.host, stream), request, Body::Unread).await,
            None => exchange(stream, request, Body::Unread).await,
        };
        answer.map(|(status, _)| status)
    }

    fn request(&self, body: Vec<u8>, now: u64) -> Result<Request<Full<Bytes>>, String> {
        Request::builder()
            .method("POST")
            .uri(&self.url.path)
            .header(header::HOST, &self.url.authority)
            .header(header::USER_AGENT, concat!("tessera/", env!("CARGO_PKG_VERSION")))
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::CONNECTION, "close")
            .header(TIMESTAMP, now)
            .header(SIGNATURE, signature(&self.secret, now, &body))
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| error.to_string())
    }

    /// Looks the host up. Where one address is refused, none is used.
    async fn addresses(&self) -> Result<Vec<SocketAddr>, String> {
        let host = (self.url.host.as_str(), self.url.port);
        let found = tokio::net::lookup_host(host).await;
        let found: Vec<SocketAddr> = found.map_err(|error| error.to_string())?.collect();
        found.iter().try_for_each(|address| self.allow.check(*address))?;
        match found.is_empty() {
            true => Err("the name has no address".to_owned()),
            false => Ok(found),
        }
    }
}

/// Connects to the first of these addresses that answers.
async fn connect(addresses: &[SocketAddr]) -> Result<TcpStream, String> {
    let mut problem = String::new();
    for address in addresses {
        problem = match tokio::time::timeout(CONNECT_WITHIN, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => format!("{address}: {error}"),
            Err(_) => format!("{address}: no connection within {} s", CONNECT_WITHIN.as_secs()),
        };
    }
    Err(problem)
}
