//! A client of HTTP that says exactly what a test wants, over one connection for each request.

use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Longest wait for bytes.
const PATIENCE: Duration = Duration::from_secs(90);

/// What came back.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: Vec<u8>,
}

impl Answer {
    pub(super) fn text(&self) -> String {
        format!("{}\n{}", self.head, String::from_utf8_lossy(&self.body))
    }

    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

/// One request to a server at an address, with these lines of its head.
pub(super) fn ask(
    address: &str,
    (method, path): (&str, &str),
    lines: &[String],
    body: &str,
) -> Answer {
    let sent = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{}Content-Length: \
         {}\r\n\r\n{body}",
        lines.iter().map(|line| format!("{line}\r\n")).collect::<String>(),
        body.len()
    );
    let mut stream = connect(address);
    stream.write_all(sent.as_bytes()).expect("the request is sent");
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("an answer");
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a whole head");
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    let is_chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    let body = match is_chunked {
        true => joined(&bytes[end + 4..]),
        false => bytes[end + 4..].to_vec(),
    };
    Answer { status: status.expect("a status"), head, body }
}

fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).expect("the server listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream
}

/// The chunks of a body, joined.
fn joined(mut bytes: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    loop {
        let end = bytes.windows(2).position(|two| two == b"\r\n").expect("a chunk's length");
        let length = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let length = usize::from_str_radix(length.trim(), 16).expect("a length");
        if length == 0 {
            return whole;
        }
        whole.extend_from_slice(&bytes[end + 2..end + 2 + length]);
        bytes = &bytes[end + 2 + length + 2..];
    }
}

/// A stream of events.
pub(super) struct Events(TcpStream, String);

impl Events {
    /// Begins to follow; `lines` are of its head.
    pub(super) fn follow(address: &str, lines: &[String]) -> Self {
        let lines: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
        let sent = format!(
            "GET /api/v1/events HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{lines}\r\n"
        );
        let mut stream = connect(address);
        stream.write_all(sent.as_bytes()).expect("the request is sent");
        Self(stream, String::new())
    }

    /// Reads until a text has come; false if the stream ends before. What is after it stays.
    pub(super) fn until(&mut self, text: &str) -> bool {
        let mut bytes = [0; 4096];
        while !self.1.contains(text) {
            match self.0.read(&mut bytes).expect("an event in time") {
                0 => return false,
                count => self.1 += &String::from_utf8_lossy(&bytes[..count]),
            }
        }
        let after = self.1.find(text).map_or(0, |at| at + text.len());
        self.1.drain(..after);
        true
    }
}
