//! A connection to the coordinator that leads: with TLS, whose certificate one of the system's
//! authorities or the farm's own has signed, or without it on this machine.

use axum::http::Uri;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Longest wait until a connection is open.
const OPEN_WITHIN: Duration = Duration::from_secs(5);

/// An open connection.
pub(super) type Stream = Box<dyn Both>;

/// What is read and written.
pub(super) trait Both: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Both for T {}

/// Connects to an address, as `https://HOST:PORT`. Returns the connection and its Host header.
pub(super) async fn leader(
    url: &str,
    authority: CertificateDer<'static>,
) -> Result<(Stream, String), String> {
    let opening = tokio::time::timeout(OPEN_WITHIN, open(url, authority));
    opening.await.map_err(|_| format!("no connection within {} s", OPEN_WITHIN.as_secs()))?
}

async fn open(url: &str, authority: CertificateDer<'static>) -> Result<(Stream, String), String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let uri: Uri = url.parse().map_err(|_| "it is no address".to_owned())?;
    let is_tls = match uri.scheme_str() {
        Some("https") => true,
        Some("http") => false,
        _ => return Err("it is no address".to_owned()),
    };
    let host = uri.host().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
    let named = uri.authority().map(ToString::to_string).unwrap_or_default();
    let stream = TcpStream::connect((bare.as_str(), port)).await.map_err(|error| text(&error))?;
    // Events come in small pieces.
    stream.set_nodelay(true).map_err(|error| text(&error))?;
    if is_tls {
        let name = ServerName::try_from(bare).map_err(|error| text(&error))?;
        let stream = connector(authority)?.connect(name, stream).await;
        return Ok((Box::new(stream.map_err(|error| text(&error))?), named));
    }
    let peer = stream.peer_addr().map_err(|error| text(&error))?;
    match peer.ip().is_loopback() {
        true => Ok((Box::new(stream), named)),
        false => Err("it is on another machine, and without TLS".to_owned()),
    }
}

/// The system's authorities, which are read once.
fn system_roots() -> &'static RootCertStore {
    static ROOTS: OnceLock<RootCertStore> = OnceLock::new();
    ROOTS.get_or_init(|| {
        let mut roots = RootCertStore::empty();
        // A system without any still has the farm's own.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        roots
    })
}

fn connector(authority: CertificateDer<'static>) -> Result<TlsConnector, String> {
    let mut roots = system_roots().clone();
    roots.add(authority).map_err(|error| error.to_string())?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn plain_http_is_spoken_on_this_machine_alone() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let here = format!("http://{}", listener.local_addr().unwrap());
        let none = || CertificateDer::from(Vec::new());
        let (_, host) = leader(&here, none()).await.map_err(drop).unwrap();
        assert_eq!(format!("http://{host}"), here);
        for wrong in ["ftp://127.0.0.1/", "x", "", "127.0.0.1:1"] {
            let refused = leader(wrong, none()).await.map(drop);
            assert!(refused.is_err_and(|error| error.contains("no address")), "{wrong}");
        }
    }
}
