//! What is sent to a collector, and what becomes of it when there is none: over real sockets.

use super::health::{Health, WAITING_MAX};
use super::{Running, start};
use crate::{Line, Lines, Service, Settings, Share, Span, Tracer};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};
use tessera_protocol::logs::{LogAbout, Severity};
use tessera_protocol::{FrameNumber, JobId};

/// Begins to send to an address.
fn begin(address: SocketAddr) -> (Tracer, Lines, Running) {
    let settings = Settings { traces: Some(Share::ALL), logs: true };
    let service = Service { name: "tessera-test", version: "7".to_owned() };
    start(settings, &service, Some(&format!("http://{address}"))).expect("it begins")
}

fn span() -> Span {
    let now = SystemTime::now();
    Span::of_frame(JobId::new(), FrameNumber(1), (now, now))
}

fn line() -> Line {
    Line {
        at: SystemTime::now(),
        severity: Severity::Info,
        text: "said".to_owned(),
        about: LogAbout::Node,
        node: None,
        source: None,
    }
}

/// Sent and left out: spans, then lines.
fn counts(running: &Running) -> [(u64, u64); 2] {
    let of = |health: &Arc<Health>| health.counts();
    [of(&running.spans.as_ref().unwrap().1), of(&running.lines.as_ref().unwrap().1)]
}

fn wait_for(what: &str, holds: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Reads a request whole; its head and body.
fn request(stream: &mut TcpStream) -> (String, Vec<u8>) {
    let (mut bytes, mut part) = (Vec::new(), [0; 4096]);
    loop {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        if let Some(end) = end {
            let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.expect("a length").trim().parse().expect("a number");
            if bytes.len() >= end + 4 + length {
                return (head, bytes[end + 4..end + 4 + length].to_vec());
            }
        }
        let count = stream.read(&mut part).expect("a request");
        assert!(count > 0, "a request is cut");
        bytes.extend_from_slice(&part[..count]);
    }
}

type Requests = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

/// A collector that answers every request with this status.
fn collector(status: &'static str) -> (SocketAddr, Requests) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, requests) = (listener.local_addr().unwrap(), Requests::default());
    let kept = requests.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            kept.lock().unwrap().push(request(&mut stream));
            let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    (address, requests)
}

#[test]
fn spans_and_lines_reach_a_collector_by_the_end() {
    let (address, requests) = collector("200 OK");
    let (tracer, lines, running) = begin(address);
    assert!(tracer.offer(span()));
    lines.offer(line);
    running.finish();
    let requests = requests.lock().unwrap();
    let of = |path: &str| {
        let found = requests.iter().find(|(head, _)| head.starts_with(&format!("post {path} ")));
        found.unwrap_or_else(|| panic!("{path}: {requests:?}"))
    };
    for (path, word) in [("/v1/traces", "frame"), ("/v1/logs", "said")] {
        let (head, body) = of(path);
        assert!(head.contains("content-type: application/x-protobuf"), "{head}");
        assert!(head.contains(&format!("host: {address}")), "{head}");
        let has = |word: &str| body.windows(word.len()).any(|part| part == word.as_bytes());
        assert!(has(word) && has("tessera-test") && has("service.version"), "{body:?}");
    }
}

// promise: P8
#[test]
fn without_a_collector_all_is_counted_as_left_out() {
    // Nobody listens where somebody did.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (tracer, lines, running) = begin(address);
    for _ in 0..100 {
        assert!(tracer.offer(span()));
        lines.offer(line);
    }
    wait_for("what is left out is counted", || counts(&running) == [(0, 100), (0, 100)]);
    running.finish();
}

// promise: P8
#[test]
fn a_collector_that_refuses_is_no_reason_to_wait() {
    let (address, requests) = collector("400 Bad Request");
    let (tracer, lines, running) = begin(address);
    assert!(tracer.offer(span()));
    lines.offer(line);
    wait_for("it is refused", || counts(&running) == [(0, 1), (0, 1)]);
    running.finish();
    assert_eq!(requests.lock().unwrap().len(), 2, "and is not sent again");
}

// promise: P8
#[test]
fn a_collector_that_never_answers_holds_up_nobody() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (tracer, lines, running) = begin(address);
    // What it takes is held, and never read.
    let held = std::thread::spawn(move || listener.incoming().take(2).collect::<Vec<_>>());
    assert!(tracer.offer(span()));
    lines.offer(line);
    let held = held.join().unwrap();
    // Both wait for an answer. The queues fill up, and nobody waits at them.
    let many = 5 * WAITING_MAX;
    (0..many).for_each(|_| lines.offer(line));
    let [_, (sent, left_out)] = counts(&running);
    assert_eq!((sent, left_out), (0, (many - (WAITING_MAX - 1)) as u64));
    let began = Instant::now();
    running.finish();
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    drop(held);
}
