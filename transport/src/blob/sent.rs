//! The bytes that a request sends: pieces in memory, or a file that is read as it is sent. A clone
//! sends them from the beginning.

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::task::JoinHandle;

/// Bytes of a file that are read at once.
const READ_BYTES: u64 = 256 << 10;

/// What a request sends.
#[derive(Clone, Debug)]
pub(super) enum Sent {
    Pieces(VecDeque<Bytes>),
    File(Reading),
}

/// A file that is being sent.
#[derive(Debug)]
pub(super) struct Reading {
    file: Arc<File>,
    length: u64,
    at: u64,
    next: Option<JoinHandle<io::Result<Bytes>>>,
}

impl Clone for Reading {
    fn clone(&self) -> Self {
        Self { file: self.file.clone(), length: self.length, at: 0, next: None }
    }
}

impl Default for Sent {
    fn default() -> Self {
        Self::Pieces(VecDeque::new())
    }
}

impl Sent {
    pub(super) fn pieces(pieces: Vec<Bytes>) -> Self {
        Self::Pieces(pieces.into())
    }

    /// The first bytes of a file.
    pub(super) fn file(file: File, length: u64) -> Self {
        Self::File(Reading { file: Arc::new(file), length, at: 0, next: None })
    }

    /// Returns the number of bytes that are still to be sent.
    pub(super) fn length(&self) -> u64 {
        match self {
            Self::Pieces(pieces) => pieces.iter().map(|piece| piece.len() as u64).sum(),
            Self::File(reading) => reading.length - reading.at,
        }
    }
}

impl Reading {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        if self.at >= self.length {
            return Poll::Ready(None);
        }
        let (file, at) = (self.file.clone(), self.at);
        let count = READ_BYTES.min(self.length - at) as usize;
        let next = self.next.get_or_insert_with(|| {
            tokio::task::spawn_blocking(move || {
                let mut bytes = vec![0; count];
                file.read_exact_at(&mut bytes, at).map(|()| Bytes::from(bytes))
            })
        });
        let read = ready!(Pin::new(next).poll(context)).map_err(io::Error::other).flatten();
        self.next = None;
        self.at += count as u64;
        Poll::Ready(Some(read))
    }
}

impl Body for Sent {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let piece = match &mut *self {
            Self::Pieces(pieces) => pieces.pop_front().map(Ok),
            Self::File(reading) => ready!(reading.poll(context)),
        };
        Poll::Ready(piece.map(|piece| piece.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Pieces(pieces) => pieces.is_empty(),
            Self::File(reading) => reading.at >= reading.length,
        }
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.length())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;
    use std::io::Write;

    #[tokio::test]
    async fn a_file_is_sent_whole_and_from_the_beginning_again() {
        let bytes: Vec<u8> = (0..READ_BYTES as u32 * 2 + 7).map(|byte| byte as u8).collect();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        let mut sent = Sent::file(file, bytes.len() as u64);
        sent.frame().await.unwrap().unwrap();
        assert_eq!(sent.length(), bytes.len() as u64 - READ_BYTES);
        let again = sent.clone();
        assert_eq!(again.length(), bytes.len() as u64);
        assert_eq!(again.collect().await.unwrap().to_bytes(), bytes);
    }

    #[tokio::test]
    async fn a_file_that_is_shorter_than_announced_breaks_the_request() {
        let sent = Sent::file(tempfile::tempfile().unwrap(), 5);
        assert!(sent.collect().await.is_err());
    }
}
