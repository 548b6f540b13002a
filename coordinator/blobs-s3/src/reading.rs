//! A blob that is read: one request for a long piece, whose bytes are taken as they come, in the
//! order in which they are usually wanted.

use crate::failure::Failure;
use crate::objects::{Objects, Pieces};
use bytes::{Buf, Bytes};
use object_store::path::Path as Key;
use std::collections::VecDeque;
use std::io;
use tessera_coordinator::blobs::BlobRead;

/// Most bytes that one request asks for. Who reads a part only gives the rest up.
const REQUEST_BYTES: u64 = 64 << 20;
/// Times that a broken request is made again before the reader is told.
const TRIES: u32 = 3;

/// An object that is open for reading.
pub(crate) struct Reading {
    objects: Objects,
    key: Key,
    length: u64,
    /// Called when the object turns out to be gone.
    gone: Box<dyn Fn() + Send>,
    ahead: Ahead,
}

/// What has been asked for and not been read.
#[derive(Default)]
struct Ahead {
    /// Place of the next byte.
    at: u64,
    bytes: VecDeque<Bytes>,
    /// What still comes, and the end of it.
    coming: Option<(Pieces, u64)>,
}

impl Reading {
    /// Reads an object of this length in bytes.
    pub(crate) fn new(
        (objects, key, length): (Objects, Key, u64),
        gone: impl Fn() + Send + 'static,
    ) -> Self {
        Self { objects, key, length, gone: Box::new(gone), ahead: Ahead::default() }
    }

    /// Gets bytes from a place on: some, up to `wanted`.
    fn fetch(&mut self, offset: u64, wanted: usize) -> Result<(), Failure> {
        let mut ahead = std::mem::take(&mut self.ahead);
        if ahead.at != offset {
            ahead = Ahead { at: offset, ..Ahead::default() };
        }
        let (objects, key, length) = (self.objects.clone(), self.key.clone(), self.length);
        let (ahead, result) = self.objects.wait(async move {
            let result = ahead.fill((&objects, &key, length), wanted).await;
            Ok((ahead, result))
        })?;
        self.ahead = ahead;
        result
    }
}

impl Ahead {
    async fn fill(
        &mut self,
        (objects, key, length): (&Objects, &Key, u64),
        wanted: usize,
    ) -> Result<(), Failure> {
        let mut held: usize = self.bytes.iter().map(Bytes::len).sum();
        while held < wanted {
            let next = self.at + held as u64;
            let (pieces, end) = match &mut self.coming {
                Some((pieces, end)) if next < *end => (pieces, *end),
                _ if next >= length => return Ok(()),
                _ => {
                    let end = length.min(next + REQUEST_BYTES);
                    let pieces = objects.stream(key, next..end).await?;
                    let (pieces, end) = self.coming.insert((pieces, end));
                    (pieces, *end)
                }
            };
            match pieces.next().await {
                Ok(Some(piece)) if piece.len() as u64 <= end - next => {
                    held += piece.len();
                    self.bytes.push_back(piece);
                }
                broken => {
                    self.coming = None;
                    let what = "the object ended before its length".to_owned();
                    broken?;
                    return Err(Failure::Store { what, kind: io::ErrorKind::UnexpectedEof });
                }
            }
        }
        Ok(())
    }

    /// Moves bytes to a buffer. Returns their number.
    fn take(&mut self, buffer: &mut [u8]) -> usize {
        let mut count = 0;
        while let Some(first) = self.bytes.front_mut().filter(|_| count < buffer.len()) {
            let some = first.len().min(buffer.len() - count);
            first.copy_to_slice(&mut buffer[count..count + some]);
            count += some;
            if first.is_empty() {
                self.bytes.pop_front();
            }
        }
        self.at += count as u64;
        count
    }
}

impl BlobRead for Reading {
    fn length(&self) -> u64 {
        self.length
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = (self.length.saturating_sub(offset)).min(buffer.len() as u64) as usize;
        if wanted == 0 {
            return Ok(0);
        }
        let mut tries = 1;
        while let Err(failure) = self.fetch(offset, wanted) {
            if failure.is_absent() {
                (self.gone)();
            }
            if tries == TRIES || failure.is_absent() {
                return Err(failure.into_io());
            }
            tries += 1;
        }
        Ok(self.ahead.take(&mut buffer[..wanted]))
    }
}
