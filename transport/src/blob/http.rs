//! Requests by HTTP to a store of objects, by addresses that a coordinator has signed. Connections
//! are kept for the next request to the same place. Follows no redirection.

use super::sent::Sent;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::http::request::Builder;
use hyper::{Request, StatusCode, Uri, header};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Longest wait for a connection, and for the head of an answer after it.
pub(super) const CONNECT_WITHIN: Duration = Duration::from_secs(4);
/// How long the usual way is taken after the other one did not work.
const PAUSE: Duration = Duration::from_secs(60);
/// Most places that are remembered.
const PLACES_MAX: usize = 64;
/// Most connections to a place that are kept, and for how long.
const KEPT_MAX: usize = 8;
const KEPT_FOR: Duration = Duration::from_secs(15);

/// Places that could not be reached, and until when they are not tried again.
static UNREACHED: Mutex<BTreeMap<String, Instant>> = Mutex::new(BTreeMap::new());
/// Connections that wait for their next request, by place, with the time of the last one.
static KEPT: Mutex<BTreeMap<String, Vec<Kept>>> = Mutex::new(BTreeMap::new());

/// A connection, and the time of its last request.
type Kept = (Instant, SendRequest<Sent>);

fn lock<T>(what: &'static Mutex<T>) -> MutexGuard<'static, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a place is worth a try. Not for a while after it could not be reached, so that a line
/// that lets no HTTP through costs little.
fn is_tried(place: &str) -> bool {
    lock(&UNREACHED).get(place).is_none_or(|until| *until <= Instant::now())
}

fn could_not_reach(place: &str) {
    let mut places = lock(&UNREACHED);
    if places.len() >= PLACES_MAX {
        places.clear();
    }
    places.insert(place.to_owned(), Instant::now() + PAUSE);
}

/// Where a request goes.
struct Place {
    uri: Uri,
    host: String,
    name: String,
    is_tls: bool,
}

impl Place {
    /// Takes an address apart. None if it is not one that may be asked: without TLS only on this
    /// machine.
    fn of(url: &str) -> Option<Self> {
        let uri: Uri = url.parse().ok()?;
        let host = uri.host()?.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = uri.authority()?.as_str().to_owned();
        let is_tls = match uri.scheme_str()? {
            "https" => true,
            "http" if is_here(&host) => false,
            _ => return None,
        };
        Some(Self { uri, host, name, is_tls })
    }

    async fn dial(&self) -> Option<SendRequest<Sent>> {
        let port = self.uri.port_u16().unwrap_or(if self.is_tls { 443 } else { 80 });
        let stream = TcpStream::connect((self.host.as_str(), port)).await.ok()?;
        // Without it the last packet of a request would wait.
        stream.set_nodelay(true).ok()?;
        if !self.is_tls {
            return begin(stream).await;
        }
        let name = ServerName::try_from(self.host.clone()).ok()?;
        begin(TLS.as_ref()?.connect(name, stream).await.ok()?).await
    }

    /// Returns a connection that was kept.
    fn kept(&self) -> Option<SendRequest<Sent>> {
        let mut kept = lock(&KEPT);
        let lines = kept.get_mut(&self.name)?;
        lines.retain(|(since, line)| since.elapsed() < KEPT_FOR && !line.is_closed());
        lines.pop().map(|(_, line)| line)
    }

    fn request(&self, builder: Builder, body: Sent) -> Option<Request<Sent>> {
        let path = self.uri.path_and_query()?.as_str();
        let builder = builder
            .uri(path)
            .header(header::HOST, &self.name)
            .header(header::USER_AGENT, concat!("tessera/", env!("CARGO_PKG_VERSION")));
        builder.body(body).ok()
    }
}

async fn begin<T>(stream: T) -> Option<SendRequest<Sent>>
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.ok()?;
    // It ends with the last of its two ends. An error of it is one of the answer as well.
    tokio::spawn(async { drop(connection.await) });
    Some(sender)
}

/// An answer, whose bytes are still to come.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    /// Announced number of bytes.
    pub(super) length: Option<u64>,
    body: Incoming,
    line: Option<(String, SendRequest<Sent>)>,
}

impl Answer {
    /// Returns the next bytes; None at the end. The connection is then kept. `Err` if it broke.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, hyper::Error> {
        loop {
            let Some(frame) = self.body.frame().await else {
                self.keep();
                return Ok(None);
            };
            if let Ok(bytes) = frame?.into_data() {
                return Ok(Some(bytes));
            }
        }
    }

    fn keep(&mut self) {
        let Some((place, line)) = self.line.take().filter(|(_, line)| !line.is_closed()) else {
            return;
        };
        let mut kept = lock(&KEPT);
        if kept.len() >= PLACES_MAX {
            kept.clear();
        }
        let lines = kept.entry(place).or_default();
        if lines.len() < KEPT_MAX {
            lines.push((Instant::now(), line));
        }
    }
}

/// Makes a request, and waits for the head of its answer, at most for `within` after the
/// connection. None if there is none, or the place could not be reached lately.
pub(super) async fn ask(
    (url, within): (&str, Duration),
    builder: impl Fn() -> Builder,
    body: Sent,
) -> Option<Answer> {
    let place = Place::of(url)?;
    if !is_tried(&place.name) {
        return None;
    }
    if let Some(line) = place.kept() {
        // One that its other end has closed meanwhile is replaced.
        if let Some(answer) = exchange(&place, line, (builder(), body.clone()), within).await {
            return Some(answer);
        }
    }
    let answer = match tokio::time::timeout(CONNECT_WITHIN, place.dial()).await {
        Ok(Some(line)) => exchange(&place, line, (builder(), body), within).await,
        _ => None,
    };
    if answer.is_none() {
        could_not_reach(&place.name);
    }
    answer
}

async fn exchange(
    place: &Place,
    mut line: SendRequest<Sent>,
    (builder, body): (Builder, Sent),
    within: Duration,
) -> Option<Answer> {
    let request = place.request(builder, body)?;
    let answered = async {
        line.ready().await.ok()?;
        line.send_request(request).await.ok()
    };
    let answer = tokio::time::timeout(within, answered).await.ok().flatten()?;
    let (head, body) = answer.into_parts();
    let length = head.headers.get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
    Some(Answer { status: head.status, length, body, line: Some((place.name.clone(), line)) })
}

/// Notes that the place of an address does not do what is needed.
pub(super) fn give_up(url: &str) {
    if let Some(place) = Place::of(url) {
        could_not_reach(&place.name);
    }
}

/// Whether a host is this machine.
fn is_here(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// TLS with the authorities of this machine; None if it has none.
static TLS: LazyLock<Option<TlsConnector>> = LazyLock::new(|| {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return None;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .ok()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Some(TlsConnector::from(Arc::new(config)))
});
