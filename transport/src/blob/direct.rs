//! Blobs that are got where they are, by HTTP: one request over one connection, for the bytes from
//! a place on. Follows no redirection. What does not work is asked for in the usual way.

use super::fill::Source;
use crate::stream::frame::FrameError;
use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1;
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
use tokio::task::AbortHandle;
use tokio_rustls::TlsConnector;

/// Longest wait for a connection, and for the head of the answer after it.
const CONNECT_WITHIN: Duration = Duration::from_secs(4);
/// How long the usual way is taken after the other one did not work.
const PAUSE: Duration = Duration::from_secs(60);

/// Most places that are remembered.
const PLACES_MAX: usize = 64;

/// Places that could not be reached, and until when they are not tried again.
static UNREACHED: Mutex<BTreeMap<String, Instant>> = Mutex::new(BTreeMap::new());

fn unreached() -> MutexGuard<'static, BTreeMap<String, Instant>> {
    UNREACHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a place is worth a try. Not for a while after it could not be reached, so that a line
/// that lets no HTTP through costs little.
fn is_tried(place: &str) -> bool {
    unreached().get(place).is_none_or(|until| *until <= Instant::now())
}

fn could_not_reach(place: &str) {
    let mut places = unreached();
    if places.len() >= PLACES_MAX {
        places.clear();
    }
    places.insert(place.to_owned(), Instant::now() + PAUSE);
}

/// The bytes of an answer.
pub(super) struct Direct {
    body: Incoming,
    /// Ends the connection with this value.
    connection: AbortHandle,
}

impl Drop for Direct {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

impl Direct {
    /// Asks for the bytes of a blob of this length from a place on. None if that does not work.
    pub(super) async fn open(url: &str, from: u64, length: u64) -> Option<Self> {
        let uri: Uri = url.parse().ok()?;
        let (host, place) = (uri.host()?, uri.authority()?.as_str());
        if !is_tried(place) {
            return None;
        }
        let bare = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let is_tls = match uri.scheme_str()? {
            "https" => true,
            "http" if is_here(&bare) => false,
            _ => return None,
        };
        let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let opened = async {
            let stream = TcpStream::connect((bare.as_str(), port)).await.ok()?;
            // Without it the last packet of a request would wait.
            stream.set_nodelay(true).ok()?;
            if !is_tls {
                return ask(stream, &uri, from, length).await;
            }
            let name = ServerName::try_from(bare.clone()).ok()?;
            let stream = TLS.as_ref()?.connect(name, stream).await.ok()?;
            ask(stream, &uri, from, length).await
        };
        let opened = tokio::time::timeout(CONNECT_WITHIN, opened).await.ok().flatten();
        if opened.is_none() {
            could_not_reach(place);
        }
        opened
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

async fn ask<T>(stream: T, uri: &Uri, from: u64, length: u64) -> Option<Direct>
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let request = Request::get(uri.path_and_query()?.as_str())
        .header(header::HOST, uri.authority()?.as_str())
        .header(header::USER_AGENT, concat!("tessera/", env!("CARGO_PKG_VERSION")))
        .header(header::RANGE, format!("bytes={from}-"))
        .body(Empty::<Bytes>::new())
        .ok()?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.ok()?;
    // An error of the connection is one of the answer as well.
    let connection = tokio::spawn(async { drop(connection.await) }).abort_handle();
    let answer = sender.send_request(request).await;
    let direct = answer.map(|answer| {
        let (head, body) = answer.into_parts();
        (head, Direct { body, connection: connection.clone() })
    });
    let Ok((head, direct)) = direct else {
        connection.abort();
        return None;
    };
    let told = head.headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse::<u64>().ok()?;
    let is_part =
        head.status == StatusCode::PARTIAL_CONTENT || head.status == StatusCode::OK && from == 0;
    (is_part && told == length - from).then_some(direct)
}

impl Source for Direct {
    async fn some(&mut self, pieces: &mut [Bytes]) -> Result<Option<usize>, FrameError> {
        loop {
            let Some(frame) = self.body.frame().await else { return Ok(None) };
            let frame = frame.map_err(|_| FrameError::Cut)?;
            if let (Ok(bytes), Some(first)) = (frame.into_data(), pieces.first_mut()) {
                *first = bytes;
                return Ok(Some(1));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    /// A server that gives one answer; its address.
    fn answering(answer: &'static [u8]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut asked = [0; 4096];
            let count = stream.read(&mut asked).unwrap();
            assert!(String::from_utf8_lossy(&asked[..count]).contains("range: bytes="));
            let _ = stream.write_all(answer);
        });
        format!("http://{address}/x?secret")
    }

    async fn read(answer: &'static [u8], from: u64, length: u64) -> Option<Vec<u8>> {
        let mut direct = Direct::open(&answering(answer), from, length).await?;
        let (mut bytes, mut pieces) = (Vec::new(), [const { Bytes::new() }; 2]);
        while let Some(count) = direct.some(&mut pieces).await.ok()? {
            pieces[..count].iter().for_each(|piece| bytes.extend_from_slice(piece));
        }
        Some(bytes)
    }

    #[tokio::test]
    async fn bytes_of_the_right_number_are_taken() {
        let whole = read(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nwood", 0, 4).await;
        assert_eq!(whole.as_deref(), Some(&b"wood"[..]));
        let part = b"HTTP/1.1 206 Partial Content\r\nContent-Length: 2\r\n\r\nod";
        assert_eq!(read(part, 2, 4).await.as_deref(), Some(&b"od"[..]));
    }

    #[tokio::test]
    async fn other_answers_do_not_count() {
        let all = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nwood";
        assert_eq!(read(all, 2, 4).await, None, "not the part that was asked for");
        assert_eq!(read(all, 0, 5).await, None, "another length");
        let cut = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nwo";
        assert_eq!(read(cut, 0, 4).await, None, "cut");
        let moved = b"HTTP/1.1 307 X\r\nLocation: http://127.0.0.1/\r\nContent-Length: 0\r\n\r\n";
        assert_eq!(read(moved, 0, 0).await, None, "a redirection");
        assert_eq!(
            read(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 4\r\n\r\nwood", 0, 4).await,
            None
        );
        assert_eq!(read(b"SSH-2.0-x\r\n", 0, 4).await, None);
        for url in ["http://192.0.2.1/x", "ftp://127.0.0.1/x", "x", "https://127.0.0.1:1/x"] {
            assert!(Direct::open(url, 0, 4).await.is_none(), "{url}");
        }
    }
}
