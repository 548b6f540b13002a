//! Blobs that are got where they are, by HTTP, and in the usual way where that does not work.

use crate::blobs::{Bench, bytes_of, quiet};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use tessera_protocol::BlobHash;
use tessera_transport::BlobError;
use tessera_transport::blob::Target;

/// A server of HTTP for one blob.
struct Server {
    url: String,
    /// Requests so far.
    asked: Arc<AtomicUsize>,
}

impl Server {
    /// Answers with the bytes that are asked for, and sends at most so many of them.
    fn of(bytes: Vec<u8>, most: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/blob?signed", listener.local_addr().unwrap());
        let asked = Arc::new(AtomicUsize::new(0));
        let counted = asked.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                counted.fetch_add(1, SeqCst);
                answer(stream.unwrap(), &bytes, most);
            }
        });
        Self { url, asked }
    }

    fn asked(&self) -> usize {
        self.asked.load(SeqCst)
    }
}

fn answer(mut stream: TcpStream, bytes: &[u8], most: usize) {
    let mut request = [0; 4096];
    let count = stream.read(&mut request).unwrap();
    let request = String::from_utf8_lossy(&request[..count]).into_owned();
    let range = request.split("range: bytes=").nth(1).unwrap();
    let from: usize = range.split('-').next().unwrap().parse().unwrap();
    let rest = &bytes[from..];
    let head = format!("HTTP/1.1 206 Partial Content\r\nContent-Length: {}\r\n\r\n", rest.len());
    let sent = [head.as_bytes(), &rest[..rest.len().min(most)]].concat();
    // The other side may have what it wants.
    let _ = stream.write_all(&sent);
}

/// Fetches a blob to a file.
async fn fetch(bench: &Bench, hash: BlobHash) -> Result<Vec<u8>, BlobError> {
    let (client, target) = (bench.client().await, bench.path("target"));
    client.get_blob(hash, 1 << 30, Target::replacing(&target), &mut quiet).await?;
    Ok(std::fs::read(&target).unwrap())
}

#[tokio::test]
async fn a_blob_elsewhere_is_got_there() {
    let bench = Bench::new();
    let (bytes, hash) = bytes_of(3_000_000);
    let server = Server::of(bytes.clone(), usize::MAX);
    bench.is_elsewhere(server.url.clone(), bytes.len() as u64);
    // The coordinator itself has no such bytes.
    assert!(fetch(&bench, hash).await.unwrap() == bytes);
    assert_eq!((server.asked(), bench.ranges_seen().0), (1, 1));
    // A part of a former fetch is not fetched again.
    std::fs::remove_file(bench.path("target")).unwrap();
    std::fs::write(bench.part(hash), &bytes[..2_000_000]).unwrap();
    assert!(fetch(&bench, hash).await.unwrap() == bytes);
}

#[tokio::test]
async fn what_breaks_elsewhere_goes_on_in_the_usual_way() {
    let bench = Bench::new();
    let (bytes, hash) = bytes_of(3_000_000);
    let server = Server::of(bytes.clone(), 1_500_000);
    bench.is_elsewhere(server.url.clone(), bytes.len() as u64);
    bench.add(hash, &bytes);
    assert!(fetch(&bench, hash).await.unwrap() == bytes);
    assert_eq!((server.asked(), bench.ranges_seen().0), (1, 2));
}

#[tokio::test]
async fn a_place_that_cannot_be_reached_is_left_for_a_while() {
    let bench = Bench::new();
    let (bytes, hash) = bytes_of(100_000);
    bench.add(hash, &bytes);
    // It takes connections, and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", silent.local_addr().unwrap());
    bench.is_elsewhere(url, bytes.len() as u64);
    let begun = std::time::Instant::now();
    for _ in 0..10 {
        assert!(fetch(&bench, hash).await.unwrap() == bytes);
    }
    let most = std::time::Duration::from_secs(20);
    assert!(begun.elapsed() < most, "it is waited for once, not ten times");
    assert_eq!(bench.ranges_seen().0, 20);
}

// promise: P3
#[tokio::test]
async fn wrong_bytes_from_elsewhere_leave_no_file() {
    let bench = Bench::new();
    let (mut bytes, hash) = bytes_of(200_000);
    bytes[77] ^= 1;
    let server = Server::of(bytes.clone(), usize::MAX);
    bench.is_elsewhere(server.url.clone(), bytes.len() as u64);
    let error = fetch(&bench, hash).await.unwrap_err();
    assert!(matches!(error, BlobError::Corrupt { .. }), "{error}");
    assert!(!bench.path("target").exists());
}

#[tokio::test]
async fn small_blobs_come_with_the_answer() {
    let bench = Bench::new();
    let (bytes, hash) = bytes_of(1000);
    let server = Server::of(bytes.clone(), usize::MAX);
    bench.is_elsewhere(server.url.clone(), bytes.len() as u64);
    bench.add(hash, &bytes);
    assert!(fetch(&bench, hash).await.unwrap() == bytes);
    assert_eq!(server.asked(), 0);
}
