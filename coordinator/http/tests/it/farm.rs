//! A coordinator with HTTP, and a client that says exactly what a test wants.

use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tessera_coordinator::api::Caller;
use tessera_coordinator::{Config, Coordinator, RunningCoordinator};
use tessera_http::{HttpConfig, HttpServer, Inspector};
use tessera_protocol::Fingerprint;
use tessera_protocol::access::ApiTokenScope;
use tessera_protocol::client::{Request, Response, Role};
use tessera_transport::Identity;

/// Longest wait for an answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// What the farm's bits depend on.
pub(crate) const FINGERPRINT: Fingerprint = Fingerprint([7; 32]);

/// A running farm.
pub(crate) struct Farm {
    pub(crate) coordinator: RunningCoordinator,
    http: HttpServer,
    /// Where its data is, unless somebody else has it.
    _folder: Option<tempfile::TempDir>,
}

/// What came back.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// The body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| {
            panic!("{error}: {} {}", self.head, String::from_utf8_lossy(&self.body))
        })
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

impl Farm {
    pub(crate) async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    /// A farm whose pages are served in another way.
    pub(crate) async fn start_with(change: impl FnOnce(&mut HttpConfig)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let farm = Self::run(folder.path(), |_| {}, (change, None)).await;
        Self { _folder: Some(folder), ..farm }
    }

    /// A farm that can look at scenes.
    pub(crate) async fn start_looking(inspector: impl Inspector) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let inspector: Option<Arc<dyn Inspector>> = Some(Arc::new(inspector));
        let farm = Self::run(folder.path(), |_| {}, (|_: &mut HttpConfig| {}, inspector)).await;
        Self { _folder: Some(folder), ..farm }
    }

    /// A farm with its data in a folder, and other settings.
    pub(crate) async fn start_in(folder: &Path, change: impl FnOnce(&mut Config)) -> Self {
        Self::run(folder, change, (|_: &mut HttpConfig| {}, None)).await
    }

    async fn run(
        folder: &Path,
        settings: impl FnOnce(&mut Config),
        (pages, inspector): (impl FnOnce(&mut HttpConfig), Option<Arc<dyn Inspector>>),
    ) -> Self {
        let local = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut config = Config::new(folder.join("farm"), local, FINGERPRINT);
        (config.disk_reserve_bytes, config.frame_reserve_bytes) = (0, Some(0));
        // A check that no other node is there for is waived soon.
        config.settings.check_wait = Duration::from_millis(100);
        settings(&mut config);
        let coordinator = Coordinator::start(config).await.unwrap();
        let (tls, base, advertise, oidc) = (None, None, None, None);
        let mut http = HttpConfig { listen: local, tls, base, advertise, oidc };
        pages(&mut http);
        let http = HttpServer::start(&http, coordinator.api(), inspector).unwrap();
        Self { coordinator, http, _folder: None }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.http.local_address()
    }

    pub(crate) fn base(&self) -> &str {
        self.http.base()
    }

    /// A person who is a member of the farm.
    pub(crate) fn person(&self, role: Role, name: &str) -> Identity {
        self.coordinator.issue(role, name, None).unwrap()
    }

    pub(crate) async fn ask(&self, person: &Identity, request: Request) -> Response {
        let caller = Caller::from(&person.peer);
        self.coordinator.api().answer(&caller, request).await.next().await.unwrap()
    }

    /// An API token for a person, with all of their rights.
    pub(crate) async fn token(&self, person: &Identity) -> String {
        let scope = ApiTokenScope { role: None, owner: None, ttl_secs: 600 };
        match self.ask(person, Request::CreateApiToken(scope)).await {
            Response::Token(token) => token,
            other => panic!("{other:?}"),
        }
    }

    /// The code of a link that signs in as a person.
    pub(crate) async fn code(&self, person: &Identity) -> String {
        match self.ask(person, Request::WebLink).await {
            Response::WebLink(link) => link.split_once('#').unwrap().1.to_owned(),
            other => panic!("{other:?}"),
        }
    }

    /// Sends bytes as they are, and returns what comes until the other side closes or the answer is
    /// whole.
    pub(crate) async fn raw(&self, bytes: Vec<u8>) -> Option<Answer> {
        let address = self.address();
        tokio::task::spawn_blocking(move || exchange(address, &bytes)).await.unwrap()
    }

    /// Makes a request of a program with a token.
    pub(crate) async fn send(
        &self,
        token: &str,
        (method, path): (&str, &str),
        body: Option<&Value>,
    ) -> Answer {
        let body = body.map(|value| (value.to_string().into_bytes(), "application/json"));
        let headers = format!("Authorization: Bearer {token}\r\n");
        self.request((method, path), &headers, body).await
    }

    /// Makes a request with these further headers.
    pub(crate) async fn request(
        &self,
        (method, path): (&str, &str),
        headers: &str,
        body: Option<(Vec<u8>, &str)>,
    ) -> Answer {
        let (body, kind) = match body {
            Some((body, kind)) => (body, format!("Content-Type: {kind}\r\n")),
            None => (Vec::new(), String::new()),
        };
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{headers}{kind}\
             Content-Length: {}\r\n\r\n",
            self.address(),
            body.len()
        );
        let bytes = [head.into_bytes(), body].concat();
        self.raw(bytes).await.expect("an answer")
    }
}

fn exchange(address: SocketAddr, bytes: &[u8]) -> Option<Answer> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    // The server may answer, and close, before it has read everything.
    let _ = stream.write_all(bytes);
    let mut all = Vec::new();
    let _ = stream.read_to_end(&mut all);
    let split = all.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&all[..split]).into_owned();
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let body = all[split + 4..].to_vec();
    let is_chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    let body = if is_chunked { unchunked(&body) } else { body };
    Some(Answer { status, head, body })
}

/// Puts the pieces of a chunked body together (RFC 9112, section 7.1).
fn unchunked(mut bytes: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some(end) = bytes.windows(2).position(|two| two == b"\r\n") {
        let digits = std::str::from_utf8(&bytes[..end]).unwrap_or_default();
        let Ok(length) = usize::from_str_radix(digits, 16) else { break };
        if length == 0 {
            break;
        }
        let from = end + 2;
        all.extend_from_slice(&bytes[from..from + length]);
        bytes = &bytes[from + length + 2..];
    }
    all
}
