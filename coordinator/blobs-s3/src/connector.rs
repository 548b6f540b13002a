//! HTTP to the store: one client of hyper for all requests, with TLS that is always checked, and a
//! limit on how long an answer may not begin.

use crate::address::BlobAddress;
use crate::failure::innermost;
use async_trait::async_trait;
use http_body_util::BodyExt;
use hyper::Response;
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector as Tcp;
use hyper_util::rt::TokioExecutor;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody,
    HttpResponse, HttpResponseBody, HttpService,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::net::{IpAddr, Ipv6Addr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// Longest wait for a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// Longest time from a request's first byte to the head of its answer. A part of 8 MiB takes a
/// minute at 140 KB a second.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);
/// The clouds' service for roles of machines, by IPv6.
const METADATA_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);

/// Makes clients of the store.
#[derive(Clone, Debug)]
pub(crate) struct Connector(Service);

#[derive(Clone)]
struct Service {
    client: Client<HttpsConnector<Tcp>, HttpRequestBody>,
    /// Whether the last request failed.
    fails: Arc<AtomicBool>,
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Service")
    }
}

impl Connector {
    /// Reads the authorities that a certificate may be of. The error says what is wrong.
    pub(crate) fn new(address: &BlobAddress) -> Result<Self, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots(address.root.as_deref())?)
            .with_no_client_auth();
        let mut tcp = Tcp::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT_WITHIN));
        let https = HttpsConnectorBuilder::new()
            .with_tls_config(config)
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let client = Client::builder(TokioExecutor::new()).build(https);
        Ok(Self(Service { client, fails: Arc::default() }))
    }
}

fn roots(file: Option<&Path>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let Some(path) = file else {
        let found = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(found.certs);
        // Without any, only a service of this machine can be spoken to; others are refused by TLS.
        return Ok(roots);
    };
    let failed = |error: &dyn std::fmt::Display| {
        format!("`{}` (root) cannot be read: {error}", path.display())
    };
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| failed(&error))? {
        let certificate = certificate.map_err(|error| failed(&error))?;
        roots.add(certificate).map_err(|error| failed(&error))?;
    }
    match roots.is_empty() {
        true => Err(format!("`{}` (root) has no certificate", path.display())),
        false => Ok(roots),
    }
}

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.0.clone()))
    }
}

/// Whether a host may be asked without TLS: this machine, and what a cloud has on each machine to
/// tell its role.
fn may_be_plain(host: &str) -> bool {
    let name = host.trim_start_matches('[').trim_end_matches(']');
    match name.parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) => address.is_loopback() || address.is_link_local(),
        Ok(IpAddr::V6(address)) => address.is_loopback() || address == METADATA_V6,
        Err(_) => name == "localhost" || name.ends_with(".localhost"),
    }
}

fn other(kind: HttpErrorKind, text: &'static str) -> HttpError {
    HttpError::new(kind, std::io::Error::other(text))
}

impl Service {
    async fn ask(&self, request: HttpRequest) -> Result<Response<Incoming>, HttpError> {
        let answer = tokio::time::timeout(ANSWER_WITHIN, self.client.request(request)).await;
        let answer = answer.map_err(|_| other(HttpErrorKind::Timeout, "no answer within 60 s"))?;
        answer.map_err(|error| {
            let kind = match error.is_connect() {
                true => HttpErrorKind::Connect,
                false => HttpErrorKind::Interrupted,
            };
            HttpError::new(kind, error)
        })
    }

    /// Says when the service begins to fail, and when it answers again; not every try.
    fn tell(&self, problem: Option<&str>) {
        let failed = self.fails.swap(problem.is_some(), Relaxed);
        match problem {
            Some(error) if !failed => tracing::warn!(
                error,
                "the store of files fails; requests are tried again, and what needs it waits"
            ),
            None if failed => tracing::info!("the store of files answers again"),
            _ => {}
        }
    }
}

#[async_trait]
impl HttpService for Service {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let uri = request.uri();
        let is_plain = uri.scheme_str() != Some("https");
        if is_plain && !uri.host().is_some_and(may_be_plain) {
            let text = "a redirection to another machine without TLS was refused";
            return Err(other(HttpErrorKind::Unknown, text));
        }
        let answer = self.ask(request).await;
        match &answer {
            Ok(answer) if answer.status().is_server_error() => {
                self.tell(Some(&answer.status().to_string()));
            }
            Ok(_) => self.tell(None),
            Err(error) => self.tell(Some(&innermost(error))),
        }
        let (head, body) = answer?.into_parts();
        let body = body.map_err(|error| HttpError::new(HttpErrorKind::Interrupted, error));
        Ok(HttpResponse::from_parts(head, HttpResponseBody::new(body)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_asked_without_tls() {
        for here in ["127.0.0.1", "[::1]", "localhost", "film.localhost", "169.254.169.254"] {
            assert!(may_be_plain(here), "{here}");
        }
        for there in ["192.0.2.1", "s3.example", "localhost.example", "[2001:db8::1]"] {
            assert!(!may_be_plain(there), "{there}");
        }
    }
}
