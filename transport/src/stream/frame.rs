//! Framed messages on QUIC streams: first a kind byte, then u32 lengths and the codec's bytes. Does
//! not know any message.

use crate::close::CloseCode;
use crate::error::Ended;
use crate::stream::meter::Meter;
use bytes::Bytes;
use quinn::{Connection, ReadError, RecvStream, SendStream, StoppedError, VarInt, WriteError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tessera_protocol::limits::MESSAGE_BYTES_MAX;
use tessera_protocol::stream::StreamKind;
use tessera_protocol::{CodecError, decode, encode};

const LENGTH_BYTES: usize = 4;
/// Bytes that are read from QUIC at once. A length never makes this side allocate more than this
/// before the bytes arrive.
const STEP_BYTES: usize = 64 << 10;

/// Why a message could not be received or sent.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The length is above the limit.
    #[error("the peer announces a message of {length} bytes; the limit is {limit}")]
    TooLong {
        /// Bytes that the peer announces.
        length: u32,
        /// Most bytes of a message on this stream.
        limit: usize,
    },
    /// The bytes are not a message of the expected type.
    #[error(transparent)]
    Codec(#[from] CodecError),
    /// The stream ended within a message.
    #[error("the stream ended within a message")]
    Cut,
    /// The stream ended although a message was expected.
    #[error("the stream ended where a message was due")]
    Missing,
    /// The message did not arrive completely in time.
    #[error("the peer was silent for {} s", .0.as_secs_f32())]
    Silent(Duration),
    /// The first byte is not a kind of stream.
    #[error("the peer opened a stream of the unknown kind {0}")]
    Kind(u8),
    /// The peer reset the stream.
    #[error(
        "the peer gave the stream up{}",
        .0.map(|code| format!(" ({code:?})")).unwrap_or_default()
    )]
    Reset(Option<CloseCode>),
    /// The connection ended.
    #[error(transparent)]
    Ended(#[from] Ended),
}

impl FrameError {
    /// Returns whether the peer broke the protocol. Otherwise the network or this side failed.
    pub fn is_peers_fault(&self) -> bool {
        matches!(
            self,
            Self::TooLong { .. } | Self::Codec(_) | Self::Cut | Self::Missing | Self::Kind(_)
        )
    }
}

fn reset(code: VarInt) -> FrameError {
    FrameError::Reset(CloseCode::from_number(code.into_inner()))
}

impl From<quinn::ConnectionError> for FrameError {
    fn from(error: quinn::ConnectionError) -> Self {
        Self::Ended(error.into())
    }
}

impl From<ReadError> for FrameError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Reset(code) => reset(code),
            ReadError::ConnectionLost(error) => error.into(),
            ReadError::ClosedStream
            | ReadError::IllegalOrderedRead
            | ReadError::ZeroRttRejected => Self::Ended(Ended::Here),
        }
    }
}

impl From<WriteError> for FrameError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Stopped(code) => reset(code),
            WriteError::ConnectionLost(error) => error.into(),
            WriteError::ClosedStream | WriteError::ZeroRttRejected => Self::Ended(Ended::Here),
        }
    }
}

impl From<StoppedError> for FrameError {
    fn from(error: StoppedError) -> Self {
        match error {
            StoppedError::ConnectionLost(error) => error.into(),
            StoppedError::ZeroRttRejected => Self::Ended(Ended::Here),
        }
    }
}

/// Returns the result of `work`, or [`FrameError::Silent`] after the time `limit`.
pub async fn within<T, E: Into<FrameError>>(
    limit: Duration,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, FrameError> {
    match tokio::time::timeout(limit, work).await {
        Ok(result) => result.map_err(Into::into),
        Err(_) => Err(FrameError::Silent(limit)),
    }
}

/// Opens a stream of a kind, both ways.
pub async fn open_both(
    connection: &Connection,
    kind: StreamKind,
) -> Result<(FrameSender, FrameReceiver), FrameError> {
    let (mut sender, receiver) = connection.open_bi().await?;
    sender.write_all(&[kind as u8]).await?;
    Ok((FrameSender { stream: sender }, FrameReceiver::new(receiver)))
}

/// Opens a stream of a kind, one way.
pub async fn open_one_way(
    connection: &Connection,
    kind: StreamKind,
) -> Result<FrameSender, FrameError> {
    let mut stream = connection.open_uni().await?;
    stream.write_all(&[kind as u8]).await?;
    Ok(FrameSender { stream })
}

/// Reads the kind of an accepted stream. The peer must send it within `limit`.
pub async fn accept_kind(
    mut stream: RecvStream,
    limit: Duration,
) -> Result<(StreamKind, FrameReceiver), FrameError> {
    let mut byte = [0];
    match within(limit, stream.read(&mut byte)).await? {
        None | Some(0) => Err(FrameError::Missing),
        Some(_) => match StreamKind::from_byte(byte[0]) {
            Some(kind) => Ok((kind, FrameReceiver::new(stream))),
            None => Err(FrameError::Kind(byte[0])),
        },
    }
}

/// The sending end of a stream.
#[derive(Debug)]
pub struct FrameSender {
    stream: SendStream,
}

impl FrameSender {
    /// Wraps the sending half of an accepted stream.
    pub fn new(stream: SendStream) -> Self {
        Self { stream }
    }

    /// Sends one message. Not cancel-safe: half a message would be on the stream.
    pub async fn send<T: Serialize>(&mut self, message: &T) -> Result<(), FrameError> {
        self.send_all([message]).await
    }

    /// Sends several messages at once, so that they share packets. Not cancel-safe.
    pub async fn send_all<'a, T: Serialize + 'a>(
        &mut self,
        messages: impl IntoIterator<Item = &'a T>,
    ) -> Result<(), FrameError> {
        let mut bytes = Vec::new();
        for message in messages {
            let body = encode(message)?;
            bytes.reserve(LENGTH_BYTES + body.len());
            // The codec's limit is far below u32::MAX.
            bytes.extend_from_slice(&(body.len() as u32).to_le_bytes());
            bytes.extend_from_slice(&body);
        }
        if !bytes.is_empty() {
            self.stream.write_chunk(bytes.into()).await?;
        }
        Ok(())
    }

    /// Sends raw bytes, for kinds of streams that have them. They are copied; see
    /// [`Self::send_bytes`].
    pub async fn send_raw(&mut self, bytes: &[u8]) -> Result<(), FrameError> {
        Ok(self.stream.write_all(bytes).await?)
    }

    /// Sends raw bytes without copying them. They stay in memory until the peer has them.
    pub async fn send_bytes(&mut self, bytes: Bytes) -> Result<(), FrameError> {
        Ok(self.stream.write_chunk(bytes).await?)
    }

    /// Hands over as many of the bytes as the windows allow, at least one, without copying them.
    /// The rest stays in `bytes`.
    pub async fn send_some(&mut self, bytes: &mut Bytes) -> Result<(), FrameError> {
        self.stream.write_chunks(std::slice::from_mut(bytes)).await?;
        Ok(())
    }

    /// Ends the stream. Sent bytes still arrive. A repeated call is harmless.
    pub fn finish(&mut self) {
        // The only possible error is that the stream has ended already.
        let _ = self.stream.finish();
    }

    /// Ends the stream and waits until the peer's transport has everything.
    pub async fn finish_and_deliver(&mut self, limit: Duration) -> Result<(), FrameError> {
        self.finish();
        match within(limit, self.stream.stopped()).await? {
            None => Ok(()),
            Some(code) => Err(reset(code)),
        }
    }

    /// Resets the stream. The peer sees [`FrameError::Reset`].
    pub fn reset(&mut self, code: CloseCode) {
        // The only possible error is that the stream has ended already.
        let _ = self.stream.reset(code.into());
    }

    /// Sets the priority among the connection's streams. The default is 0; higher goes first.
    pub fn set_priority(&self, priority: i32) {
        // The only possible error is that the stream has ended already.
        let _ = self.stream.set_priority(priority);
    }
}

/// The receiving end of a stream.
#[derive(Debug)]
pub struct FrameReceiver {
    stream: RecvStream,
    meter: Option<Arc<Meter>>,
    // Most bytes of a message.
    limit: usize,
    // The arriving message: its length and its bytes so far, never a byte after it.
    buffer: Vec<u8>,
}

impl FrameReceiver {
    /// Wraps the receiving half of a stream whose kind has been read, or is known.
    pub fn new(stream: RecvStream) -> Self {
        Self { stream, meter: None, limit: MESSAGE_BYTES_MAX, buffer: Vec::new() }
    }

    /// Counts arriving bytes for their sender from now on, and slows a sender that sends too much.
    pub fn metered(mut self, meter: Arc<Meter>) -> Self {
        meter.count_message();
        self.meter = Some(meter);
        self
    }

    /// Refuses messages of more than `limit` bytes from now on.
    pub fn limited(mut self, limit: usize) -> Self {
        self.limit = limit.min(MESSAGE_BYTES_MAX);
        self
    }

    async fn may_come(&self) {
        if let Some(meter) = &self.meter {
            meter.wait().await;
        }
    }

    fn came(&self, bytes: usize) {
        if let Some(meter) = &self.meter {
            meter.count_bytes(bytes);
        }
    }

    /// Returns the next message; None if the stream has ended after a message. Cancel-safe.
    pub async fn receive<T: DeserializeOwned>(&mut self) -> Result<Option<T>, FrameError> {
        loop {
            let wanted = self.wanted()?;
            if wanted == 0 {
                let message = decode(&self.buffer[LENGTH_BYTES..])?;
                self.buffer = Vec::new();
                if let Some(meter) = &self.meter {
                    meter.count_message();
                }
                return Ok(Some(message));
            }
            self.may_come().await;
            match self.stream.read_chunk(wanted.min(STEP_BYTES), true).await? {
                Some(chunk) => {
                    self.came(chunk.bytes.len());
                    self.buffer.extend_from_slice(&chunk.bytes);
                }
                None if self.buffer.is_empty() => return Ok(None),
                None => return Err(FrameError::Cut),
            }
        }
    }

    /// Returns the number of bytes that are missing from the message, or from its length.
    fn wanted(&self) -> Result<usize, FrameError> {
        let Some(word) = self.buffer.first_chunk::<LENGTH_BYTES>() else {
            return Ok(LENGTH_BYTES - self.buffer.len());
        };
        let length = u32::from_le_bytes(*word);
        if length as usize > self.limit {
            return Err(FrameError::TooLong { length, limit: self.limit });
        }
        Ok(LENGTH_BYTES + length as usize - self.buffer.len())
    }

    /// Returns the next message, which must arrive completely within `limit`.
    pub async fn expect<T: DeserializeOwned>(&mut self, limit: Duration) -> Result<T, FrameError> {
        within(limit, self.receive()).await?.ok_or(FrameError::Missing)
    }

    /// Reads at most `limit_bytes` raw bytes, for kinds of streams that have them; None at the end
    /// of the stream. Only allowed between messages.
    pub async fn receive_raw(&mut self, limit_bytes: usize) -> Result<Option<Bytes>, FrameError> {
        self.may_come().await;
        let chunk = self.stream.read_chunk(limit_bytes, true).await?;
        Ok(chunk.map(|chunk| chunk.bytes).inspect(|bytes| self.came(bytes.len())))
    }

    /// Takes the raw bytes that have arrived, in as many pieces as there are places. Returns the
    /// number of pieces, at least one; None at the end of the stream. Cancel-safe.
    pub async fn receive_pieces(
        &mut self,
        pieces: &mut [Bytes],
    ) -> Result<Option<usize>, FrameError> {
        self.may_come().await;
        let count = self.stream.read_chunks(pieces).await?;
        self.came(pieces[..count.unwrap_or(0)].iter().map(Bytes::len).sum());
        Ok(count)
    }

    pub(crate) fn stream_mut(&mut self) -> &mut RecvStream {
        &mut self.stream
    }

    /// Tells the peer to stop sending.
    pub fn stop(&mut self, code: CloseCode) {
        // The only possible error is that the stream has ended already.
        let _ = self.stream.stop(code.into());
    }
}
