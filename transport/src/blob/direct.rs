//! Bytes that are got or put where they are kept, by HTTP: a range of an object, or a whole one.
//! What does not work is done in the usual way.

use super::fill::Source;
use super::http::{Answer, CONNECT_WITHIN, ask, give_up};
use super::sent::Sent;
use crate::stream::frame::FrameError;
use bytes::Bytes;
use hyper::{Method, Request, StatusCode, header};
use std::fs::File;
use std::ops::Range;
use std::time::Duration;
use tessera_protocol::BlobHash;

/// Time for an object to be put, and for its answer, beside what its bytes take at the least rate.
const PUT_WITHIN: Duration = Duration::from_secs(30);
/// Least rate of a put in bytes per second.
const PUT_RATE: u64 = 64 << 10;
/// Longest time without any bytes of an answer.
const SILENT: Duration = Duration::from_secs(10);

/// The bytes of an answer.
pub(super) struct Direct(Answer);

impl Direct {
    /// Asks for the bytes of a blob of this length from a place on. None if that does not work.
    pub(super) async fn open(url: &str, from: u64, length: u64) -> Option<Self> {
        Self::range(url, (format!("bytes={from}-"), from == 0), length - from).await
    }

    /// Asks for a range, of so many bytes. `whole`: it may be everything that is there.
    async fn range(url: &str, (range, whole): (String, bool), length: u64) -> Option<Self> {
        let get = || Request::get("/").header(header::RANGE, &range);
        let answer = ask((url, CONNECT_WITHIN), get, Sent::default()).await?;
        let is_it = answer.status == StatusCode::PARTIAL_CONTENT
            || answer.status == StatusCode::OK && whole;
        if !is_it || answer.length != Some(length) {
            give_up_unless_gone(url, answer.status);
            return None;
        }
        Some(Self(answer))
    }
}

/// A place that answers something else than what it has is not asked for a while.
fn give_up_unless_gone(url: &str, status: StatusCode) {
    if status != StatusCode::NOT_FOUND {
        give_up(url);
    }
}

impl Source for Direct {
    async fn some(&mut self, pieces: &mut [Bytes]) -> Result<Option<usize>, FrameError> {
        let next = self.0.next().await.map_err(|_| FrameError::Cut)?;
        Ok(next.and_then(|bytes| {
            pieces.first_mut().map(|first| *first = bytes)?;
            Some(1)
        }))
    }
}

/// Gets a range of an object, which is not empty, by an address. None if that does not work.
pub async fn get_range(url: &str, range: Range<u64>) -> Option<Vec<u8>> {
    let length = range.end.checked_sub(range.start)?;
    let asked = format!("bytes={}-{}", range.start, range.end.checked_sub(1)?);
    let mut direct = Direct::range(url, (asked, range.start == 0), length).await?;
    let mut bytes = Vec::with_capacity(usize::try_from(length).ok()?);
    loop {
        match tokio::time::timeout(SILENT, direct.0.next()).await.ok()?.ok()? {
            Some(piece) => bytes.extend_from_slice(&piece),
            None => return (bytes.len() as u64 == length).then_some(bytes),
        }
    }
}

/// Returns the BLAKE3 and the length of an object, by an address. Ends after `most` bytes, so that
/// a longer one has another length. None if it cannot be read.
pub async fn hash_object(url: &str, most: u64) -> Option<(BlobHash, u64)> {
    let get = || Request::get("/");
    let mut answer = ask((url, CONNECT_WITHIN), get, Sent::default()).await?;
    if answer.status != StatusCode::OK {
        give_up_unless_gone(url, answer.status);
        return None;
    }
    let mut hasher = blake3::Hasher::new();
    while let Some(piece) = tokio::time::timeout(SILENT, answer.next()).await.ok()?.ok()? {
        hasher.update(&piece);
        if hasher.count() > most {
            break;
        }
    }
    Some((BlobHash(*hasher.finalize().as_bytes()), hasher.count()))
}

/// Puts pieces as an object at an address, if none is there. Returns whether there is one now.
pub async fn put_object(url: &str, pieces: Vec<Bytes>) -> bool {
    put(url, Sent::pieces(pieces)).await
}

/// Puts a file of this length as an object, as [`put_object`] does.
pub async fn put_file(url: &str, file: File, length: u64) -> bool {
    put(url, Sent::file(file, length)).await
}

async fn put(url: &str, sent: Sent) -> bool {
    let bytes = sent.length();
    let within = PUT_WITHIN + Duration::from_secs(bytes / PUT_RATE);
    let put = || {
        let put = Request::builder().method(Method::PUT).header(header::IF_NONE_MATCH, "*");
        put.header(header::CONTENT_LENGTH, bytes)
    };
    let Some(mut answer) = ask((url, within), put, sent).await else {
        return false;
    };
    let is_there = answer.status.is_success() || answer.status == StatusCode::PRECONDITION_FAILED;
    if !is_there {
        give_up(url);
    }
    // The rest of the answer is read so that the connection can be used again.
    while let Ok(Ok(Some(_))) = tokio::time::timeout(SILENT, answer.next()).await {}
    is_there
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    /// A server that gives one answer; its address.
    fn answering(answer: &'static [u8]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut asked = [0; 4096];
            let count = stream.read(&mut asked).unwrap();
            let asked = String::from_utf8_lossy(&asked[..count]);
            assert!(asked.contains("range: bytes=") || asked.contains("if-none-match: *"));
            let _ = stream.write_all(answer);
        });
        format!("http://{address}/x?secret")
    }

    async fn read(answer: &'static [u8], from: u64, length: u64) -> Option<Vec<u8>> {
        let mut direct = Direct::open(&answering(answer), from, length).await?;
        let (mut bytes, mut pieces) = (Vec::new(), [const { Bytes::new() }; 2]);
        while let Some(count) = direct.some(&mut pieces).await.ok()? {
            pieces[..count].iter().for_each(|piece| bytes.extend_from_slice(piece));
        }
        Some(bytes)
    }

    #[tokio::test]
    async fn an_object_that_is_there_counts_as_put() {
        let put = |answer| async move { put_object(&answering(answer), vec!["ab".into()]).await };
        assert!(put(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await);
        assert!(put(b"HTTP/1.1 412 There\r\nContent-Length: 0\r\n\r\n").await);
        assert!(!put(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n").await);
        assert!(!put(b"HTTP/1.1 307 X\r\nLocation: http://127.0.0.1/\r\n\r\n").await);
    }

    #[tokio::test]
    async fn a_connection_is_used_again() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/x", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            for _ in 0..3 {
                let mut asked = [0; 4096];
                let count = stream.read(&mut asked).unwrap();
                assert!(String::from_utf8_lossy(&asked[..count]).contains("range: bytes=2-3"));
                let part = b"HTTP/1.1 206 Partial Content\r\nContent-Length: 2\r\n\r\nod";
                stream.write_all(part).unwrap();
            }
        });
        for _ in 0..3 {
            assert_eq!(get_range(&url, 2..4).await.as_deref(), Some(&b"od"[..]));
        }
    }

    #[tokio::test]
    async fn bytes_of_the_right_number_are_taken() {
        let whole = read(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nwood", 0, 4).await;
        assert_eq!(whole.as_deref(), Some(&b"wood"[..]));
        let part = b"HTTP/1.1 206 Partial Content\r\nContent-Length: 2\r\n\r\nod";
        assert_eq!(read(part, 2, 4).await.as_deref(), Some(&b"od"[..]));
    }

    #[tokio::test]
    async fn other_answers_do_not_count() {
        let all = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nwood";
        assert_eq!(read(all, 2, 4).await, None, "not the part that was asked for");
        assert_eq!(read(all, 0, 5).await, None, "another length");
        let cut = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nwo";
        assert_eq!(read(cut, 0, 4).await, None, "cut");
        let moved = b"HTTP/1.1 307 X\r\nLocation: http://127.0.0.1/\r\nContent-Length: 0\r\n\r\n";
        assert_eq!(read(moved, 0, 0).await, None, "a redirection");
        assert_eq!(
            read(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 4\r\n\r\nwood", 0, 4).await,
            None
        );
        assert_eq!(read(b"SSH-2.0-x\r\n", 0, 4).await, None);
        for url in ["http://192.0.2.1/x", "ftp://127.0.0.1/x", "x", "https://127.0.0.1:1/x"] {
            assert!(Direct::open(url, 0, 4).await.is_none(), "{url}");
        }
    }
}
