//! The stream of what changes.

use crate::farm::{Farm, PATIENCE};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use tessera_protocol::client::{Request, Role};

/// One event: kind, id and data.
pub(crate) type Event = (String, Option<String>, Value);

/// A stream of events.
pub(crate) struct Stream {
    events: mpsc::Receiver<Event>,
    connection: TcpStream,
}

impl Stream {
    fn open(farm: &Farm, token: &str, last: Option<&str>) -> Self {
        Self::open_at(farm, "/api/v1/events", token, last)
    }

    /// The stream of another address.
    pub(crate) fn open_at(farm: &Farm, path: &str, token: &str, last: Option<&str>) -> Self {
        let mut connection = TcpStream::connect(farm.address()).unwrap();
        let last = last.map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
        write!(
            connection,
            "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nAuthorization: Bearer \
             {token}\r\n{last}\r\n",
            farm.address()
        )
        .unwrap();
        let (send, events) = mpsc::channel();
        let reader = BufReader::new(connection.try_clone().unwrap());
        std::thread::spawn(move || read(reader, &send));
        Self { events, connection }
    }

    pub(crate) fn next(&self, kind: &str) -> Event {
        let until = Instant::now() + PATIENCE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let event = self.events.recv_timeout(left).unwrap_or_else(|_| panic!("no {kind}"));
            if event.0 == kind {
                return event;
            }
        }
    }

    /// Whether the server ends the stream.
    pub(crate) fn ends(&self, within: Duration) -> bool {
        let until = Instant::now() + within;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.events.recv_timeout(left) {
                Ok(_) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => return true,
                Err(mpsc::RecvTimeoutError::Timeout) => return false,
            }
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let _ = self.connection.shutdown(std::net::Shutdown::Both);
    }
}

fn read(reader: impl BufRead, send: &mpsc::Sender<Event>) {
    let (mut kind, mut id) = (String::new(), None);
    for line in reader.lines() {
        let Ok(line) = line else { return };
        if let Some(text) = line.strip_prefix("event: ") {
            kind = text.to_owned();
        } else if let Some(text) = line.strip_prefix("id: ") {
            id = Some(text.to_owned());
        } else if let Some(text) = line.strip_prefix("data: ") {
            let data = serde_json::from_str(text).unwrap_or_else(|_| json!(text));
            if send.send((std::mem::take(&mut kind), id.take(), data)).is_err() {
                return;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_told_within_a_second() {
    let farm = Farm::start().await;
    let token = farm.token(&farm.person(Role::Artist, "ada")).await;
    let stream = Stream::open(&farm, &token, None);
    let (_, _, hello) = stream.next("hello");
    assert_eq!(hello, json!({ "resumed": false }));
    let job = crate::roles::job(&farm, &token, "hers").await;
    let began = Instant::now();
    let (_, _, told) = stream.next("jobs");
    assert_eq!(told["jobs"][0]["job"], json!(job.to_string()));
    assert_eq!(told["jobs"][0]["state"], "queued");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    let change = |word: &str| json!({ "change": word, "jobs": [job.to_string()] });
    let path = ("POST", "/api/v1/jobs/change");
    farm.send(&token, path, Some(&change("cancel"))).await;
    let (_, _, told) = stream.next("jobs");
    assert_eq!(told["jobs"][0]["state"], "cancelled");
    farm.send(&token, path, Some(&change("forget"))).await;
    let (_, _, told) = stream.next("jobs");
    assert_eq!(told["gone"], json!([job.to_string()]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_was_cut_goes_on_where_it_was() {
    let farm = Farm::start().await;
    let token = farm.token(&farm.person(Role::Artist, "ada")).await;
    let stream = Stream::open(&farm, &token, None);
    let (_, id, _) = stream.next("hello");
    let hello = id.unwrap();
    let first = crate::roles::job(&farm, &token, "first").await;
    let (_, id, _) = stream.next("through");
    let first_id = id.unwrap();
    drop(stream);
    let other = Stream::open(&farm, &token, None);
    other.next("hello");
    let second = crate::roles::job(&farm, &token, "second").await;
    other.next("through");
    let (again, _, _) = (Stream::open(&farm, &token, Some(&first_id)), (), ());
    assert_eq!(again.next("hello").2, json!({ "resumed": true }));
    assert_eq!(again.next("jobs").2["jobs"][0]["job"], json!(second.to_string()));
    let all = Stream::open(&farm, &token, Some(&hello));
    assert_eq!(all.next("hello").2, json!({ "resumed": true }));
    assert_eq!(all.next("jobs").2["jobs"][0]["job"], json!(first.to_string()));
    for wrong in ["", "1", "x.y", "9.9", "1.1.1", "99999999999999999999.1"] {
        let stream = Stream::open(&farm, &token, Some(wrong));
        assert_eq!(stream.next("hello").2, json!({ "resumed": false }), "{wrong}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_with_the_right_to_it() {
    let farm = Farm::start().await;
    let (ada, root) = (farm.person(Role::Viewer, "ada"), farm.person(Role::Admin, "root"));
    let token = farm.token(&ada).await;
    let stream = Stream::open(&farm, &token, None);
    stream.next("hello");
    farm.ask(&root, Request::Deny { identity: "user:ada".into(), reason: String::new() }).await;
    assert!(stream.ends(PATIENCE), "it still goes on");
}
