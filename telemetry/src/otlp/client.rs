//! The HTTP client of the exporters: a connection for each batch, with a deadline and a longest
//! answer; TLS with the machine's authorities. Follows no redirect and no proxy.

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper::header::{HOST, HeaderValue};
use hyper::{Request, Response, Uri};
use hyper_util::rt::TokioIo;
use opentelemetry_http::{HttpClient, HttpError};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio_rustls::TlsConnector;

/// Longest wait for a whole answer, where the environment says nothing (OpenTelemetry's own).
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// Longest wait that the environment can ask for.
const ANSWER_WITHIN_MAX: Duration = Duration::from_secs(60);
/// Longest answer of a collector, which says how much of a batch it has refused.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// Sends requests in a runtime of its own.
pub(super) struct Client {
    runtime: Handle,
    tls: TlsConnector,
    within: Duration,
    /// What went wrong last.
    problem: Mutex<Option<String>>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("within", &self.within).finish_non_exhaustive()
    }
}

impl Client {
    /// Reads the machine's certificates of authorities, or those of `SSL_CERT_FILE`.
    pub(super) fn new(runtime: Handle) -> Result<Self, String> {
        let mut roots = RootCertStore::empty();
        // Without any, a collector with TLS is refused when it is asked.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let tls = TlsConnector::from(Arc::new(config));
        let within = within(std::env::var("OTEL_EXPORTER_OTLP_TIMEOUT").ok().as_deref());
        Ok(Self { runtime, tls, within, problem: Mutex::default() })
    }

    /// Takes what went wrong last.
    pub(super) fn take_problem(&self) -> Option<String> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Reads a time in milliseconds.
fn within(text: Option<&str>) -> Duration {
    let millis = text.and_then(|text| text.trim().parse().ok());
    millis.map_or(ANSWER_WITHIN, Duration::from_millis).min(ANSWER_WITHIN_MAX)
}

#[async_trait::async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (tls, within) = (self.tls.clone(), self.within);
        let asked = async move {
            let address = address_of(request.uri());
            let answered = tokio::time::timeout(within, ask(&tls, request)).await;
            let answered = answered.unwrap_or_else(|_| {
                Err(format!("no whole answer within {} ms", within.as_millis()))
            });
            answered.map_err(|problem| format!("{address}: {problem}"))
        };
        // The exporters' threads have no runtime.
        let answered = self.runtime.spawn(asked).await;
        let answered = answered.unwrap_or_else(|error| Err(error.to_string()));
        answered.map_err(|problem| {
            *self.problem.lock().unwrap_or_else(PoisonError::into_inner) = Some(problem.clone());
            problem.into()
        })
    }
}

/// An address for the log: without what may be a secret, which are names and what is asked for.
fn address_of(uri: &Uri) -> String {
    let port = uri.port().map_or_else(String::new, |port| format!(":{port}"));
    format!("{}{port}", uri.host().unwrap_or_default())
}

async fn ask(tls: &TlsConnector, request: Request<Bytes>) -> Result<Response<Bytes>, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let uri = request.uri().clone();
    let host = uri.host().ok_or("it names no host")?;
    let bare = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let is_tls = match uri.scheme_str() {
        Some("https") => true,
        Some("http") => false,
        _ => return Err("it is neither http:// nor https://".to_owned()),
    };
    let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
    let request = for_host(request, &uri)?;
    let stream = TcpStream::connect((bare.as_str(), port)).await.map_err(|error| text(&error))?;
    if !is_tls {
        return exchange(stream, request).await;
    }
    let name = ServerName::try_from(bare).map_err(|error| text(&error))?;
    let stream = tls.connect(name, stream).await.map_err(|error| text(&error))?;
    exchange(stream, request).await
}

/// Makes a request to a whole address one to the host that has it.
fn for_host(request: Request<Bytes>, uri: &Uri) -> Result<Request<Full<Bytes>>, String> {
    let (mut head, body) = request.into_parts();
    let authority = uri.authority().map(|one| one.as_str()).unwrap_or_default();
    // Who writes a name and password into the address means the header; it is no part of a host.
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = HeaderValue::from_str(host).map_err(|error| error.to_string())?;
    head.headers.insert(HOST, host);
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    head.uri = path.parse().map_err(|_| "its path is none".to_owned())?;
    Ok(Request::from_parts(head, Full::new(body)))
}

/// Makes the request over a connection that is open.
async fn exchange<T>(stream: T, request: Request<Full<Bytes>>) -> Result<Response<Bytes>, String>
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let opened = http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = opened.map_err(|error| error.to_string())?;
    let driving = tokio::spawn(connection);
    let answered = async {
        let answer = sender.send_request(request).await.map_err(|error| error.to_string())?;
        let (head, body) = answer.into_parts();
        let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
        let body = body.map_err(|_| {
            format!("its answer is cut, or longer than {} KiB", ANSWER_BYTES_MAX >> 10)
        })?;
        Ok(Response::from_parts(head, body.to_bytes()))
    };
    let answer = answered.await;
    driving.abort();
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_of_an_address_is_in_the_log() {
        let uri: Uri = "https://ada:secret@id.example:4318/v1/traces?key=secret".parse().unwrap();
        assert_eq!(address_of(&uri), "id.example:4318");
        assert_eq!(address_of(&"http://[::1]/x".parse().unwrap()), "[::1]");
    }

    #[test]
    fn the_time_for_an_answer_is_the_environments_up_to_a_bound() {
        assert_eq!(within(None), ANSWER_WITHIN);
        assert_eq!(within(Some("much")), ANSWER_WITHIN);
        assert_eq!(within(Some(" 250 ")), Duration::from_millis(250));
        assert_eq!(within(Some("99999999999")), ANSWER_WITHIN_MAX);
    }
}
