//! A coordinator with HTTP in a folder of its own, and a client that scrapes it.

use crate::page::Page;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};
use tessera_coordinator::api::Caller;
use tessera_coordinator::{Config, Coordinator, RunningCoordinator};
use tessera_http::{HttpConfig, HttpServer};
use tessera_protocol::access::ApiTokenScope;
use tessera_protocol::client::{Request, Response, Role};
use tessera_protocol::{Fingerprint, Hello, NodeId};
use tessera_transport::{ConnectError, Identity, Link, Timing, connect};

/// Longest wait for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// What the farm's bits depend on.
pub(crate) const FINGERPRINT: Fingerprint = Fingerprint([5; 32]);

pub(crate) struct Farm {
    pub(crate) coordinator: RunningCoordinator,
    http: HttpServer,
}

/// Status, head and body of an answer.
pub(crate) type Answer = (u16, String, String);

impl Farm {
    pub(crate) async fn start(data: &Path, change: impl FnOnce(&mut Config)) -> Self {
        let local = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut config = Config::new(data.join("farm"), local, FINGERPRINT);
        (config.disk_reserve_bytes, config.frame_reserve_bytes) = (0, Some(0));
        // A check that no other node is there for is waived soon.
        config.settings.check_wait = Duration::from_millis(100);
        change(&mut config);
        let coordinator = Coordinator::start(config).await.unwrap();
        let http = HttpConfig { listen: local, tls: None, base: None };
        let http = HttpServer::start(&http, coordinator.api()).unwrap();
        Self { coordinator, http }
    }

    /// Where HTTP is served.
    pub(crate) fn address(&self) -> SocketAddr {
        self.http.local_address()
    }

    pub(crate) fn person(&self, role: Role, name: &str) -> Identity {
        self.coordinator.issue(role, name, None).unwrap()
    }

    pub(crate) fn node(&self, name: &str) -> Identity {
        let id = NodeId(uuid::Uuid::now_v7());
        self.coordinator.issue(Role::Node, name, Some(id)).unwrap()
    }

    pub(crate) async fn dial(&self, identity: &Identity) -> Result<Link, ConnectError> {
        let address = self.coordinator.local_address().into();
        let ours = Hello::ours(FINGERPRINT);
        let dialled = connect(&address, identity, &ours, Timing::default());
        tokio::time::timeout(PATIENCE, dialled).await.expect("an answer in time")
    }

    /// Asks in the name of a person.
    pub(crate) async fn ask(&self, identity: &Identity, request: Request) -> Response {
        let caller = Caller::from(&identity.peer);
        self.coordinator.api().answer(&caller, request).await.next().await.unwrap()
    }

    /// A token for a program that may see the farm.
    pub(crate) async fn token(&self) -> String {
        let watcher = self.person(Role::Viewer, "prometheus");
        let scope = ApiTokenScope { role: None, owner: None, ttl_secs: 600 };
        match self.ask(&watcher, Request::CreateApiToken(scope)).await {
            Response::Token(token) => token,
            other => panic!("{other:?}"),
        }
    }

    /// Opens a request, and leaves the answer to the caller.
    pub(crate) fn open(&self, path: &str, headers: &str) -> TcpStream {
        let address = self.address();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let head =
            format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        stream
    }

    pub(crate) fn get(&self, path: &str, headers: &str) -> Answer {
        let mut answer = String::new();
        self.open(path, headers).read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, head.to_lowercase(), body.to_owned())
    }

    /// The metrics in Prometheus's older text form.
    pub(crate) fn text(&self, token: &str) -> String {
        let headers = format!("Authorization: Bearer {token}\r\nAccept: text/plain\r\n");
        let (status, head, body) = self.get("/metrics", &headers);
        assert_eq!(status, 200, "{body}");
        assert!(head.contains("content-type: text/plain; version=0.0.4"), "{head}");
        body
    }

    pub(crate) fn scrape(&self, token: &str) -> Page {
        Page::read(&self.text(token))
    }

    /// Scrapes until something holds.
    pub(crate) async fn until(
        &self,
        token: &str,
        what: &str,
        holds: impl Fn(&Page) -> bool,
    ) -> Page {
        let begun = Instant::now();
        loop {
            let page = self.scrape(token);
            if holds(&page) {
                return page;
            }
            assert!(begun.elapsed() < PATIENCE, "{what} does not come: {:#?}", page.values);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}
