//! Receivers of webhooks as tests need them: good ones that check the signature and keep what they
//! got, and such that are silent, lie or send elsewhere. Each is a small server on a thread.

use serde_json::Value;
use sha2::{Digest, Sha256};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Secret of all webhooks of a test.
pub(super) const SECRET: &str = "a-secret-between-farm-and-studio";
/// Longest wait for bytes of a sender.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a receiver does with a request.
#[derive(Clone, Debug)]
pub(super) enum Manner {
    /// Takes it.
    Takes,
    /// Refuses the first few with 503, and takes the others.
    TakesAfter(usize),
    /// Reads it and says nothing, for as long as the sender waits.
    Silent,
    /// Says this and no more.
    Says(String),
    /// Says this, and then something else without end.
    Endless(String),
}

/// A request that was taken, or would have been.
#[derive(Clone, Debug)]
pub(super) struct Got {
    pub(super) body: Value,
    /// Seconds since the Unix epoch when it came.
    pub(super) at: u64,
}

#[derive(Default)]
struct Seen {
    connections: AtomicUsize,
    got: Mutex<Vec<Got>>,
    over: AtomicBool,
}

/// A receiver. It ends with this value.
pub(super) struct Receiver {
    address: String,
    seen: Arc<Seen>,
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.seen.over.store(true, Relaxed);
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(&self.address);
    }
}

impl Receiver {
    /// A receiver at a free port.
    pub(super) fn start(manner: Manner) -> Self {
        Self::start_at("127.0.0.1:0", manner)
    }

    /// A receiver at this address.
    pub(super) fn start_at(address: &str, manner: Manner) -> Self {
        let listener = TcpListener::bind(address).expect("the port is free");
        let address = listener.local_addr().expect("an address").to_string();
        let seen = Arc::new(Seen::default());
        let shared = seen.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if shared.over.load(Relaxed) {
                    return;
                }
                let (seen, manner) = (shared.clone(), manner.clone());
                let Ok(stream) = stream else { continue };
                std::thread::spawn(move || serve(stream, &seen, &manner));
            }
        });
        Self { address, seen }
    }

    /// Host and port.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Connections that were made.
    pub(super) fn connections(&self) -> usize {
        self.seen.connections.load(Relaxed)
    }

    /// Requests that were taken.
    pub(super) fn got(&self) -> Vec<Got> {
        self.seen.got.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Events that were taken, in their order.
    pub(super) fn events(&self) -> Vec<Value> {
        let got = self.got();
        got.iter().flat_map(|got| got.body["events"].as_array().expect("events").clone()).collect()
    }

    /// Kinds of the events about a job.
    pub(super) fn kinds_of(&self, job: &str) -> Vec<String> {
        let events = self.events();
        let about = events.iter().filter(|event| event["job"]["id"] == job);
        about.map(|event| event["kind"].as_str().expect("a kind").to_owned()).collect()
    }
}

fn serve(mut stream: TcpStream, seen: &Seen, manner: &Manner) {
    let before = seen.connections.fetch_add(1, Relaxed);
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let Some((head, body)) = request(&mut stream) else { return };
    // The sender may be gone at any time.
    match manner {
        Manner::TakesAfter(refused) if before < *refused => {
            drop(stream.write_all(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"));
        }
        Manner::Takes | Manner::TakesAfter(_) => {
            check(&head, &body);
            let got = Got { body: serde_json::from_slice(&body).expect("JSON"), at: now() };
            seen.got.lock().unwrap_or_else(PoisonError::into_inner).push(got);
            drop(stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n"));
        }
        Manner::Silent => while matches!(stream.read(&mut [0; 64]), Ok(1..)) {},
        Manner::Says(text) => drop(stream.write_all(text.as_bytes())),
        Manner::Endless(text) => {
            let mut said = stream.write_all(text.as_bytes());
            while said.is_ok() {
                said = stream.write_all(&[b'x'; 4096]);
            }
        }
    }
}

/// Reads a request; None where the connection was only tried.
fn request(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        let mut some = [0; 4096];
        match stream.read(&mut some) {
            Ok(0) | Err(_) => return None,
            Ok(count) => bytes.extend(&some[..count]),
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).expect("a head of text");
    let length: usize = header(&head, "content-length")?.parse().expect("a length");
    let mut body = bytes.split_off(end + 4);
    let begun = body.len();
    body.resize(length, 0);
    stream.read_exact(&mut body[begun..]).ok()?;
    Some((head, body))
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (key, value) = line.split_once(": ")?;
        key.eq_ignore_ascii_case(name).then_some(value)
    })
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_secs()
}

/// Checks what `docs/events.md` promises of a request.
fn check(head: &str, body: &[u8]) {
    assert!(head.starts_with("POST /tessera?key=1 HTTP/1.1\r\n"), "{head}");
    assert_eq!(header(head, "content-type"), Some("application/json"));
    let stamp = header(head, "tessera-timestamp").expect("a time");
    let age = now().abs_diff(stamp.parse().expect("seconds"));
    assert!(age < 60, "sent {age} s ago");
    let signed = [stamp.as_bytes(), b".", body].concat();
    let expected: String =
        hmac(SECRET.as_bytes(), &signed).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(header(head, "tessera-signature"), Some(format!("v1={expected}").as_str()));
}

/// HMAC-SHA-256 (RFC 2104) of a message under a key of at most 64 bytes.
fn hmac(key: &[u8], message: &[u8]) -> [u8; 32] {
    let mut block = [0; 64];
    block[..key.len()].copy_from_slice(key);
    let pad = |with: u8| block.map(|byte| byte ^ with);
    let inner = Sha256::new().chain_update(pad(0x36)).chain_update(message).finalize();
    Sha256::new().chain_update(pad(0x5c)).chain_update(inner).finalize().into()
}
