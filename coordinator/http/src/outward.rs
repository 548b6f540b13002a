//! Requests that the coordinator makes of others over HTTP: one request over one connection, over
//! TLS where asked, with a longest answer. Follows no redirect and no proxy. Chooses no address:
//! whoever asks connects, and says how long it may take.

use axum::http::{Request, Response, StatusCode};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Longest head of an answer, in bytes.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// No authority of this machine can be read.
#[derive(Debug, thiserror::Error)]
#[error(
    "this machine has no certificates of authorities; install ca-certificates, or name a PEM file \
        in SSL_CERT_FILE"
)]
pub struct NoAuthority;

/// What becomes of an answer's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// It is read, up to so many bytes; a longer one is an error.
    UpTo(usize),
    /// It is not read: the status says enough.
    Unread,
}

/// Speaks TLS with servers that an authority of this machine vouches for.
#[derive(Clone)]
pub struct Trusting(TlsConnector);

impl std::fmt::Debug for Trusting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Trusting")
    }
}

impl Trusting {
    /// Reads the machine's certificates of authorities.
    pub fn of_machine() -> Result<Self, NoAuthority> {
        let found = rustls_native_certs::load_native_certs();
        let mut roots = RootCertStore::empty();
        let (added, _) = roots.add_parsable_certificates(found.certs);
        if added == 0 {
            let problems: Vec<_> = found.errors.iter().map(ToString::to_string).collect();
            tracing::error!(problems = problems.join("; "), "no authority can be read");
            return Err(NoAuthority);
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| {
                tracing::error!(%error, "no version of TLS");
                NoAuthority
            })?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self(TlsConnector::from(Arc::new(config))))
    }

    /// Makes a request of `host` over TLS, over a connection that is open.
    pub async fn exchange(
        &self,
        (host, stream): (&str, TcpStream),
        request: Request<Full<Bytes>>,
        body: Body,
    ) -> Result<(StatusCode, Bytes), String> {
        let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
        let stream = self.0.connect(name, stream).await.map_err(|error| error.to_string())?;
        exchange(stream, request, body).await
    }
}

/// Makes a request over a connection that is open.
pub async fn exchange<T>(
    stream: T,
    request: Request<Full<Bytes>>,
    body: Body,
) -> Result<(StatusCode, Bytes), String>
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let opened = http1::Builder::new()
        .max_buf_size(HEAD_BYTES_MAX)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|error| error.to_string())?;
    let (mut sender, connection) = opened;
    // It ends with this value: also where nobody waits for the answer any more.
    let _driving = Driving(tokio::spawn(connection));
    let answer = sender.send_request(request).await.map_err(|error| said(&error))?;
    let status = answer.status();
    match body {
        Body::Unread => Ok((status, Bytes::new())),
        Body::UpTo(most) => Ok((status, read(answer, most).await?)),
    }
}

/// The task of a connection.
struct Driving(tokio::task::JoinHandle<Result<(), hyper::Error>>);

impl Drop for Driving {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn read(answer: Response<Incoming>, most: usize) -> Result<Bytes, String> {
    let body = Limited::new(answer.into_body(), most).collect().await;
    let body = body.map_err(|_| format!("its answer is cut, or longer than {} KiB", most >> 10))?;
    Ok(body.to_bytes())
}

/// What went wrong, with its cause.
fn said(error: &hyper::Error) -> String {
    let cause = std::error::Error::source(error);
    cause.map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
}
