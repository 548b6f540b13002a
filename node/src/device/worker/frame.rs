//! Frames between a node and its worker: a message with raw bytes after it, both bounded. Knows no
//! message.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{ErrorKind, Read, Write};
use tessera_protocol::{CodecError, decode, encode};

/// Longest encoded message in bytes. The longest content is the log of a compiler.
pub(crate) const MESSAGE_BYTES_MAX: usize = 1 << 20;
/// Longest payload in bytes: 512 × 512 pixels × 32 channels × 8 bytes of sums are 64 MiB.
pub(crate) const PAYLOAD_BYTES_MAX: usize = 64 << 20;

/// Why a frame could not be received or sent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FrameError {
    /// Reading or writing the pipe failed.
    #[error("the pipe between node and worker failed")]
    Pipe(#[source] std::io::Error),
    /// A length is above its limit.
    #[error("a frame of {message} + {payload} bytes is beyond the bounds")]
    TooLong {
        /// Length of the message.
        message: usize,
        /// Length of the payload.
        payload: usize,
    },
    /// The bytes are not the encoding of a message.
    #[error(transparent)]
    Codec(#[from] CodecError),
}

/// Writes one frame and flushes it.
pub(crate) fn send<T: Serialize>(
    to: &mut impl Write,
    message: &T,
    payload: &[u8],
) -> Result<(), FrameError> {
    let message = encode(message)?;
    check(message.len(), payload.len())?;
    let mut head = [0u8; 8];
    // Both lengths fit: they were checked against limits far below 4 GiB.
    head[..4].copy_from_slice(&(message.len() as u32).to_le_bytes());
    head[4..].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    to.write_all(&head).map_err(FrameError::Pipe)?;
    to.write_all(&message).map_err(FrameError::Pipe)?;
    to.write_all(payload).map_err(FrameError::Pipe)?;
    to.flush().map_err(FrameError::Pipe)
}

/// Reads one frame; None if the other side is gone, between frames or within one.
pub(crate) fn receive<T: DeserializeOwned>(
    from: &mut impl Read,
) -> Result<Option<(T, Vec<u8>)>, FrameError> {
    let mut head = [0u8; 8];
    if !fill(from, &mut head)? {
        return Ok(None);
    }
    let length = |at: usize| {
        u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]) as usize
    };
    let (message, payload) = (length(0), length(4));
    check(message, payload)?;
    let (mut text, mut data) = (vec![0; message], vec![0; payload]);
    if !fill(from, &mut text)? || !fill(from, &mut data)? {
        return Ok(None);
    }
    Ok(Some((decode(&text)?, data)))
}

fn check(message: usize, payload: usize) -> Result<(), FrameError> {
    if message > MESSAGE_BYTES_MAX || payload > PAYLOAD_BYTES_MAX {
        return Err(FrameError::TooLong { message, payload });
    }
    Ok(())
}

/// Fills the buffer. Returns false if the other side is gone.
fn fill(from: &mut impl Read, bytes: &mut [u8]) -> Result<bool, FrameError> {
    match from.read_exact(bytes) {
        Ok(()) => Ok(true),
        Err(error)
            if matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset) =>
        {
            Ok(false)
        }
        Err(error) => Err(FrameError::Pipe(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worker_messages_round_trip() {
        let mut pipe = Vec::new();
        send(&mut pipe, &(7u32, "seven"), b"raw").unwrap();
        send(&mut pipe, &(8u32, ""), b"").unwrap();
        let mut from = pipe.as_slice();
        let first: Option<((u32, String), Vec<u8>)> = receive(&mut from).unwrap();
        assert_eq!(first, Some(((7, "seven".into()), b"raw".to_vec())));
        let second: Option<((u32, String), Vec<u8>)> = receive(&mut from).unwrap();
        assert_eq!(second, Some(((8, String::new()), Vec::new())));
        assert!(receive::<u32>(&mut from).unwrap().is_none());
    }

    #[test]
    fn oversized_lengths_are_refused_before_allocation() {
        let heads = [[0xff; 8], [0, 0, 0, 0, 1, 0, 0, 4], [1, 0, 16, 0, 0, 0, 0, 0]];
        for head in heads {
            let refused = receive::<u32>(&mut head.as_slice());
            assert!(matches!(refused, Err(FrameError::TooLong { .. })), "{head:?}: {refused:?}");
        }
    }

    #[test]
    fn a_cut_frame_is_the_end_and_a_corrupt_one_an_error() {
        let mut pipe = Vec::new();
        send(&mut pipe, &1u64, b"payload").unwrap();
        for length in 0..pipe.len() {
            assert!(receive::<u64>(&mut &pipe[..length]).unwrap().is_none(), "{length}");
        }
        let false_one = [2, 0, 0, 0, 0, 0, 0, 0, 1, 1];
        assert!(matches!(receive::<u8>(&mut false_one.as_slice()), Err(FrameError::Codec(_))));
    }
}
