//! A farm that is scraped, and that nodes of this process join.

use super::page::Page;
use crate::farm::{FINGERPRINT, Farm, PATIENCE};
use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};
use tessera_protocol::client::Role;
use tessera_protocol::{Hello, NodeId};
use tessera_transport::{ConnectError, Identity, Link, Timing, connect};

impl Farm {
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

    /// A token for a program that may see the farm.
    pub(crate) async fn scraper(&self) -> String {
        self.token(&self.person(Role::Viewer, "prometheus")).await
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

    /// The metrics in Prometheus's older text form.
    pub(super) async fn metrics(&self, token: &str) -> String {
        let headers = format!("Authorization: Bearer {token}\r\nAccept: text/plain\r\n");
        let answer = self.request(("GET", "/metrics"), &headers, None).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let kind = answer.header("content-type").unwrap();
        assert!(kind.starts_with("text/plain; version=0.0.4"), "{kind}");
        answer.text()
    }

    pub(crate) async fn scrape(&self, token: &str) -> Page {
        Page::read(&self.metrics(token).await)
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
            let page = self.scrape(token).await;
            if holds(&page) {
                return page;
            }
            assert!(begun.elapsed() < PATIENCE, "{what} does not come: {:#?}", page.values);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}
