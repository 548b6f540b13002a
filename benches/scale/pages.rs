//! What pages cost, and how quick they are: lists of many jobs and nodes, and followers of events,
//! beside the coordinator's own work.

use serde_json::Value;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tessera_support::farm::Farm;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::watch;

/// How often each list is asked for.
const ASKED: usize = 11;

/// The door to a farm's pages.
#[derive(Clone, Debug)]
pub(crate) struct Door {
    address: SocketAddr,
    host: String,
    token: String,
}

impl Door {
    pub(crate) fn of(farm: &Farm) -> Self {
        let link: Value = serde_json::from_str(&farm.text(&["web", "--json"])).expect("JSON");
        let link = link["link"].as_str().expect("a link");
        let host = link.trim_start_matches("http://").split('/').next().expect("a host").to_owned();
        let token = farm.text(&["token", "create", "--api", "--role", "admin"]);
        let token = token.split_whitespace().last().expect("a token").to_owned();
        Self { address: host.parse().expect("an address"), host, token }
    }

    async fn open(&self, path: &str, further: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.expect("a connection");
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n{further}\r\n",
            self.host, self.token
        );
        stream.write_all(head.as_bytes()).await.expect("a request");
        stream
    }

    /// Seconds until the whole answer is here, and its bytes.
    async fn ask(&self, path: &str) -> (f64, usize) {
        let begun = Instant::now();
        let mut stream = self.open(path, "Connection: close\r\n").await;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.expect("an answer");
        let head = String::from_utf8_lossy(&answer[..answer.len().min(64)]);
        assert!(head.starts_with("HTTP/1.1 200"), "{path}: {head}");
        (begun.elapsed().as_secs_f64(), answer.len())
    }

    /// Prints how long each list takes.
    pub(crate) async fn lists(&self) {
        let paths = [
            "/api/v1/jobs?rows=100",
            "/api/v1/jobs?rows=100&order=priority&name=*9*",
            "/api/v1/nodes",
            "/metrics",
        ];
        for path in paths {
            let mut found = Vec::new();
            let mut length = 0;
            for _ in 0..ASKED {
                let (secs, bytes) = self.ask(path).await;
                found.push(secs * 1e3);
                length = bytes;
            }
            found.sort_by(f64::total_cmp);
            println!(
                "{path}: {:.1} ms (median of {ASKED}; most {:.1}), {length} bytes",
                found[ASKED / 2],
                found[ASKED - 1]
            );
        }
    }

    /// Followers of events, as pages are: each reads for as long as it lives.
    pub(crate) async fn follow(&self, count: usize) -> Followers {
        let (wanted, _) = watch::channel(String::new());
        let wanted = Arc::new(wanted);
        let (seen_by, seen) = tokio::sync::mpsc::channel(count.max(1));
        let mut tasks = Vec::new();
        for _ in 0..count {
            let stream = self.open("/api/v1/events", "").await;
            let (wanted, seen_by) = (wanted.subscribe(), seen_by.clone());
            tasks.push(tokio::spawn(async move {
                let mut lines = BufReader::new(stream).lines();
                let mut told = String::new();
                while let Ok(Some(line)) = lines.next_line().await {
                    let text = wanted.borrow().clone();
                    if !text.is_empty() && text != told && line.contains(&text) {
                        told = text;
                        // Whoever waits may have gone.
                        let _ = seen_by.send(Instant::now()).await;
                    }
                }
            }));
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
        Followers { wanted, seen, tasks }
    }
}

/// Open streams of events.
pub(crate) struct Followers {
    wanted: Arc<watch::Sender<String>>,
    seen: tokio::sync::mpsc::Receiver<Instant>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

impl Followers {
    /// Says what all wait for next.
    pub(crate) fn expect(&self, text: &str) {
        self.wanted.send_replace(text.to_owned());
    }

    /// Seconds since then until the first and the last of them have seen it.
    pub(crate) async fn all_seen(&mut self, since: Instant) -> (f64, f64) {
        let (mut first, mut last) = (f64::INFINITY, 0f64);
        for _ in 0..self.tasks.len() {
            let next = tokio::time::timeout(Duration::from_secs(30), self.seen.recv()).await;
            let at = next.expect("an event within 30 s").expect("followers live");
            let secs = at.saturating_duration_since(since).as_secs_f64();
            (first, last) = (first.min(secs), last.max(secs));
        }
        (first, last)
    }

    pub(crate) fn close(self) {
        for task in self.tasks {
            task.abort();
        }
    }
}
