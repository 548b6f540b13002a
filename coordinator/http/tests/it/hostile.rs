//! Requests that are wrong on purpose. Whatever comes, others are served.

use crate::farm::{Farm, PATIENCE};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use tessera_protocol::client::Role;

/// A small generator (xorshift64*), so that a failure can be repeated.
pub(crate) struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

async fn is_served(farm: &Farm, token: &str) {
    let began = Instant::now();
    let answer = farm.send(token, ("GET", "/api/v1/jobs"), None).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(began.elapsed() < PATIENCE);
}

// promise: P8
#[tokio::test(flavor = "multi_thread")]
async fn requests_for_another_host_are_refused() {
    let farm = Farm::start().await;
    let token = farm.token(&farm.person(Role::Viewer, "ada")).await;
    let port = farm.address().port();
    let get = |hosts: &str| {
        format!(
            "GET /api/v1/me HTTP/1.1\r\n{hosts}Connection: close\r\nAuthorization: Bearer \
             {token}\r\n\r\n"
        )
        .into_bytes()
    };
    for hosts in [
        "Host: rebound.example\r\n".to_owned(),
        format!("Host: rebound.example:{port}\r\n"),
        "Host: 127.0.0.1\r\n".to_owned(),
        format!("Host: 127.0.0.1:{port}\r\nHost: rebound.example\r\n"),
        String::new(),
    ] {
        let answer = farm.raw(get(&hosts)).await.expect("an answer");
        assert!([400, 421].contains(&answer.status), "{hosts:?}: {}", answer.head);
    }
    for host in ["127.0.0.1", "localhost", "LocalHost", "[::1]"] {
        let answer = farm.raw(get(&format!("Host: {host}:{port}\r\n"))).await.expect("an answer");
        assert_eq!(answer.status, 200, "{host}: {}", answer.head);
    }
}

/// How many malformed requests a test sends.
pub(crate) fn requests() -> usize {
    let given = std::env::var("TESSERA_HOSTILE_REQUESTS").ok();
    given.map_or(1500, |text| text.parse().expect("TESSERA_HOSTILE_REQUESTS is a number"))
}

/// A request for a job, changed in one to four places.
pub(crate) struct Malformed {
    good: Vec<u8>,
    random: Random,
}

impl Malformed {
    pub(crate) fn new(farm: &Farm, token: &str, seed: u64) -> Self {
        let good = format!(
            "PUT /api/v1/jobs/4f1d2c3b-0000-4000-8000-000000000000?x=%41 HTTP/1.1\r\nHost: {}\r\n\
             Authorization: Bearer {token}\r\nContent-Type: application/json\r\nCookie: a=b; \
             c\r\nRange: bytes=0-9\r\nLast-Event-ID: 1.2\r\nContent-Length: 24\r\nConnection: \
             close\r\n\r\n{{\"name\":\"a\",\"render\":{{}}}}",
            farm.address()
        );
        Self { good: good.into_bytes(), random: Random(seed) }
    }

    pub(crate) fn next(&mut self) -> Vec<u8> {
        let (mut bytes, random) = (self.good.clone(), &mut self.random);
        for _ in 0..=random.below(4) {
            let at = random.below(bytes.len());
            match random.below(4) {
                0 => bytes[at] = random.next() as u8,
                1 => drop(bytes.drain(at..(at + random.below(40)).min(bytes.len()))),
                2 => bytes.insert(at, b"\r\n\0:/%\x7f\xff"[random.below(8)]),
                _ => bytes.truncate(at.max(1)),
            }
            if bytes.is_empty() {
                bytes.push(b'G');
            }
        }
        bytes
    }
}

// promise: P8
#[tokio::test(flavor = "multi_thread")]
async fn malformed_requests_harm_nobody() {
    let farm = Farm::start().await;
    let token = farm.token(&farm.person(Role::Artist, "ada")).await;
    let mut malformed = Malformed::new(&farm, &token, 0x5eed);
    for round in 0..requests() {
        let (address, bytes) = (farm.address(), malformed.next());
        let status = tokio::task::spawn_blocking(move || brief(address, &bytes)).await.unwrap();
        assert!(status.is_none_or(|status| status < 500), "round {round}: {status:?}");
    }
    is_served(&farm, &token).await;
}

/// Sends bytes and the end of them, and returns the status that comes.
pub(crate) fn brief(address: std::net::SocketAddr, bytes: &[u8]) -> Option<u16> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut head = [0; 64];
    let count = stream.read(&mut head).ok()?;
    String::from_utf8_lossy(&head[..count]).split(' ').nth(1)?.parse().ok()
}

// promise: P8
#[tokio::test(flavor = "multi_thread")]
async fn huge_heads_and_bodies_are_refused() {
    let farm = Farm::start().await;
    let token = farm.token(&farm.person(Role::Artist, "ada")).await;
    let long = format!("X-Long: {}\r\n", "x".repeat(100_000));
    assert_eq!(farm.request(("GET", "/jobs"), &long, None).await.status, 431);
    let many = (0..200).map(|n| format!("X-{n}: y\r\n")).collect::<String>();
    assert_eq!(farm.request(("GET", "/jobs"), &many, None).await.status, 431);
    let headers = format!("Authorization: Bearer {token}\r\n");
    let huge = Some((vec![b' '; 9 << 20], "application/json"));
    let answer = farm.request(("POST", "/api/v1/jobs/change"), &headers, huge).await;
    assert_eq!(answer.status, 413, "{}", answer.head);
    let deep = Some(("[".repeat(100_000).into_bytes(), "application/json"));
    let answer = farm.request(("POST", "/api/v1/jobs/change"), &headers, deep).await;
    assert_eq!(answer.status, 400, "{}", answer.text());
    let text = Some((b"{}".to_vec(), "text/plain"));
    let answer = farm.request(("POST", "/api/v1/jobs/change"), &headers, text).await;
    assert_eq!(answer.status, 415, "{}", answer.text());
    is_served(&farm, &token).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_values_is_no_object() {
    let farm = Farm::start().await;
    let token = farm.token(&farm.person(Role::Admin, "root")).await;
    let list = serde_json::json!([null, null]);
    for (method, path) in [("POST", "/api/v1/tokens/api"), ("POST", "/api/v1/authority/rotate")] {
        let answer = farm.send(&token, (method, path), Some(&list)).await;
        assert_eq!(answer.status, 400, "{path}: {}", answer.text());
    }
    let object = serde_json::json!({});
    let answer = farm.send(&token, ("POST", "/api/v1/blobs/missing"), Some(&object)).await;
    assert_eq!(answer.status, 400, "{}", answer.text());
    let none = serde_json::json!([]);
    let answer = farm.send(&token, ("POST", "/api/v1/blobs/missing"), Some(&none)).await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "[]"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_rotation_is_refused_and_no_fault() {
    let farm = Farm::start().await;
    let token = farm.token(&farm.person(Role::Admin, "root")).await;
    let form = serde_json::json!({ "overlap_secs": 3600 });
    let rotate = ("POST", "/api/v1/authority/rotate");
    assert_eq!(farm.send(&token, rotate, Some(&form)).await.status, 200);
    let answer = farm.send(&token, rotate, Some(&form)).await;
    assert_eq!(answer.status, 422, "{}", answer.text());
    assert!(answer.text().contains("rotate again after that"), "{}", answer.text());
}

// promise: P8
#[tokio::test(flavor = "multi_thread")]
async fn slow_and_silent_clients_slow_nobody() {
    let farm = Farm::start().await;
    let token = farm.token(&farm.person(Role::Artist, "ada")).await;
    let address = farm.address();
    // Heads that never end, bodies that never come, and answers that nobody reads.
    let body = format!(
        "POST /api/v1/jobs/change HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\
         \r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{{"
    );
    let unread = format!("GET /api/v1/me HTTP/1.1\r\nHost: {address}\r\n\r\n").repeat(50);
    let held: Vec<TcpStream> = (0..300)
        .map(|number| {
            let mut stream = TcpStream::connect(address).unwrap();
            let bytes: &[u8] = match number % 3 {
                0 => b"GET / HTTP/1.1\r\nX",
                1 => body.as_bytes(),
                _ => unread.as_bytes(),
            };
            stream.write_all(bytes).unwrap();
            stream
        })
        .collect();
    let began = Instant::now();
    for _ in 0..20 {
        is_served(&farm, &token).await;
    }
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    drop(held);
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_lead_to_nothing_but_what_is_served() {
    let farm = Farm::start().await;
    let token = farm.token(&farm.person(Role::Admin, "root")).await;
    for path in [
        "/../../etc/passwd",
        "/assets/../../Cargo.toml",
        "/assets/x/..%2f..%2fCargo.toml",
        "/assets/x/%2e%2e/style.css",
        "//evil.example/",
        "/api/v1/../../jobs",
        "/api/v1/jobs/..%2f..%2f",
        "/api/v1/blobs/..%2fadmin",
        "/api/v1/nothing",
        "/%00",
    ] {
        let answer = farm.send(&token, ("GET", path), None).await;
        assert!([400, 404].contains(&answer.status), "{path}: {}", answer.head);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_who_asks_too_often_is_told_to_wait() {
    let farm = Farm::start().await;
    let (ada, bob) = (farm.person(Role::Viewer, "ada"), farm.person(Role::Viewer, "bob"));
    let (ada, bob) = (farm.token(&ada).await, farm.token(&bob).await);
    let mut refused = None;
    for _ in 0..2000 {
        let answer = farm.send(&ada, ("GET", "/api/v1/me"), None).await;
        if answer.status == 429 {
            refused = Some(answer);
            break;
        }
    }
    let refused = refused.expect("a limit");
    assert_eq!(refused.header("retry-after"), Some("1"));
    is_served(&farm, &bob).await;
}
