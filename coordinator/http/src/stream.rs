//! Bodies that are sent piece by piece, with bounded memory.

use axum::body::{Body, HttpBody};
use axum::http::header;
use axum::response::IntoResponse;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tessera_coordinator::blobs::BlobRead;
use tokio::sync::mpsc;

/// Pieces that wait to be sent.
const WAITING_MAX: usize = 4;
/// Length of a piece of a blob in bytes.
const PIECE_BYTES: usize = 256 << 10;

/// A body whose pieces come over a channel.
#[derive(Debug)]
pub(crate) struct Pieces {
    pieces: mpsc::Receiver<io::Result<Bytes>>,
    left: Option<u64>,
}

impl Pieces {
    /// A body and its sender. `length`: the body's bytes, where they are known.
    pub(crate) fn channel(length: Option<u64>) -> (Self, mpsc::Sender<io::Result<Bytes>>) {
        let (send, pieces) = mpsc::channel(WAITING_MAX);
        (Self { pieces, left: length }, send)
    }

    /// Answers with what comes as it comes: nothing on the way keeps it, or keeps it back.
    pub(crate) fn live(self, kind: &'static str) -> impl IntoResponse + use<> {
        let headers = [
            (header::CONTENT_TYPE, kind),
            (header::CACHE_CONTROL, "no-store"),
            // Proxies that collect answers would take away what makes it live.
            (header::HeaderName::from_static("x-accel-buffering"), "no"),
        ];
        (headers, Body::new(self))
    }

    /// Sends a range of a blob, which is read by a thread for blocking work.
    pub(crate) fn of_blob(mut blob: Box<dyn BlobRead>, from: u64, length: u64) -> Self {
        let (body, send) = Self::channel(Some(length));
        tokio::task::spawn_blocking(move || {
            let end = from + length;
            let mut at = from;
            while at < end {
                let mut piece = vec![0; PIECE_BYTES.min((end - at) as usize)];
                let read = match blob.read_at(at, &mut piece) {
                    Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
                    Ok(count) => {
                        piece.truncate(count);
                        at += count as u64;
                        Ok(Bytes::from(piece))
                    }
                    Err(error) => Err(error),
                };
                let ends = read.is_err();
                // The client may be gone.
                if send.blocking_send(read).is_err() || ends {
                    return;
                }
            }
        });
        body
    }
}

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        self.pieces.poll_recv(context).map(|piece| {
            let piece = piece?;
            if let (Ok(bytes), Some(left)) = (&piece, self.left.as_mut()) {
                *left = left.saturating_sub(bytes.len() as u64);
            }
            Some(piece.map(Frame::data))
        })
    }

    fn is_end_stream(&self) -> bool {
        self.left == Some(0)
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::new, SizeHint::with_exact)
    }
}
