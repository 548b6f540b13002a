//! Asks the provider: one request over one connection, with a deadline and a longest answer.
//! Follows no redirect and no proxy.

use super::config::{OidcError, is_allowed};
use crate::outward::{Body, Trusting, exchange};
use axum::http::{Request, StatusCode, Uri, header};
use bytes::Bytes;
use http_body_util::Full;
use std::time::Duration;
use tokio::net::TcpStream;

/// Longest wait for an answer, from the name's address to the last byte.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// Longest answer: keys of large providers take some 20 KiB, and a token with 200 groups 30.
const ANSWER_BYTES_MAX: usize = 256 << 10;
const ANSWER: Body = Body::UpTo(ANSWER_BYTES_MAX);

/// Makes requests to one provider.
pub(super) struct Fetcher {
    /// None for a provider on this machine without TLS.
    tls: Option<Trusting>,
}

impl std::fmt::Debug for Fetcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Fetcher")
    }
}

/// A request's body and who makes it.
#[derive(Default)]
pub(super) struct Asked {
    /// Value of the Authorization header.
    pub(super) authorization: Option<String>,
    /// A form to post; None to get.
    pub(super) form: Option<String>,
}

impl Fetcher {
    /// Reads the machine's certificates of authorities. `local`: the provider is on this machine,
    /// and may be asked without TLS.
    pub(super) fn new(local: bool) -> Result<Self, OidcError> {
        if local {
            return Ok(Self { tls: None });
        }
        let tls = Trusting::of_machine().map_err(|_| OidcError::Roots("--oidc".to_owned()))?;
        Ok(Self { tls: Some(tls) })
    }

    /// Whether an address may be asked.
    pub(super) fn may_ask(&self, address: &str) -> bool {
        address.parse::<Uri>().is_ok_and(|uri| is_allowed(&uri, self.tls.is_none()))
    }

    /// Returns the status and body of the answer. The error says what went wrong.
    pub(super) async fn ask(
        &self,
        address: &str,
        asked: Asked,
    ) -> Result<(StatusCode, Bytes), String> {
        let answer = tokio::time::timeout(ANSWER_WITHIN, self.try_ask(address, asked));
        let answer = answer.await.unwrap_or_else(|_| {
            Err(format!("no whole answer within {} s", ANSWER_WITHIN.as_secs()))
        });
        answer.map_err(|problem| format!("{address}: {problem}"))
    }

    async fn try_ask(&self, address: &str, asked: Asked) -> Result<(StatusCode, Bytes), String> {
        let uri: Uri = address.parse().map_err(|_| "it is no address".to_owned())?;
        if !is_allowed(&uri, self.tls.is_none()) {
            return Err("it is not https://".to_owned());
        }
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let host = uri.host().unwrap_or_default();
        let bare = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let is_tls = uri.scheme_str() == Some("https");
        let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let stream =
            TcpStream::connect((bare.as_str(), port)).await.map_err(|error| text(&error))?;
        let request = request(&uri, asked)?;
        match &self.tls {
            Some(tls) if is_tls => tls.exchange((&bare, stream), request, ANSWER).await,
            _ => {
                let peer = stream.peer_addr().map_err(|error| text(&error))?;
                if !peer.ip().is_loopback() {
                    return Err("it is on another machine, and without TLS".to_owned());
                }
                exchange(stream, request, ANSWER).await
            }
        }
    }
}

fn request(uri: &Uri, asked: Asked) -> Result<Request<Full<Bytes>>, String> {
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let authority = uri.authority().map(ToString::to_string).unwrap_or_default();
    let method = if asked.form.is_some() { "POST" } else { "GET" };
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::HOST, authority)
        .header(header::ACCEPT, "application/json")
        .header(header::USER_AGENT, concat!("tessera/", env!("CARGO_PKG_VERSION")));
    if asked.form.is_some() {
        request = request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
    }
    if let Some(authorization) = asked.authorization {
        request = request.header(header::AUTHORIZATION, authorization);
    }
    let body = Full::new(Bytes::from(asked.form.unwrap_or_default()));
    request.body(body).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    /// A server that gives one answer; its address.
    fn answering(answer: Vec<u8>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(&answer);
        });
        format!("http://{address}/x")
    }

    async fn ask(answer: &[u8]) -> Result<(StatusCode, Bytes), String> {
        let local = Fetcher::new(true).unwrap();
        local.ask(&answering(answer.to_vec()), Asked::default()).await
    }

    #[tokio::test]
    async fn an_answer_is_read_whole_up_to_a_limit() {
        let (status, body) = ask(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await.unwrap();
        assert_eq!((status.as_u16(), &body[..]), (200, &b"ok"[..]));
        let cut = ask(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok").await;
        assert!(cut.as_ref().is_err_and(|error| error.contains("cut")), "{cut:?}");
        let mut endless = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n".to_vec();
        endless.resize(endless.len() + 2 * ANSWER_BYTES_MAX, b'x');
        let long = ask(&endless).await;
        assert!(long.as_ref().is_err_and(|error| error.contains("256 KiB")), "{long:?}");
    }

    #[tokio::test]
    async fn a_redirect_is_an_answer_and_not_followed() {
        let there = answering(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_vec());
        let redirect =
            format!("HTTP/1.1 302 Found\r\nLocation: {there}\r\nContent-Length: 0\r\n\r\n");
        let (status, body) = ask(redirect.as_bytes()).await.unwrap();
        assert_eq!((status.as_u16(), body.len()), (302, 0));
    }

    #[tokio::test]
    async fn plain_http_is_asked_of_this_machine_alone() {
        let local = Fetcher::new(true).unwrap();
        for wrong in ["http://192.0.2.1/", "http://id.example/", "ftp://127.0.0.1/", "x", ""] {
            assert!(!local.may_ask(wrong), "{wrong}");
            assert!(local.ask(wrong, Asked::default()).await.is_err(), "{wrong}");
        }
        assert!(local.may_ask("http://127.0.0.1:1/") && local.may_ask("https://id.example/"));
    }
}
