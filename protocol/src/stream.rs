//! What a QUIC stream is for. The first byte of every stream is its kind; then come frames: u32
//! length (little endian, at most [`crate::limits::MESSAGE_BYTES_MAX`]) and that many bytes of the
//! codec; raw bytes follow only where said.

/// First byte of a stream. The byte values are frozen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum StreamKind {
    /// Both ways, the first stream of a connection, opened by the dialling side: [`crate::Hello`]
    /// each way. Not framed.
    Hello = 1,
    /// Both ways, opened by a node, one a session: [`crate::node::NodeToCoordinator`] /
    /// [`crate::node::CoordinatorToNode`].
    NodeControl = 2,
    /// One way, opened by a node, one a result: a frame with [`crate::node::ResultHeader`], then
    /// its bytes, then the end.
    Result = 3,
    /// One way, opened by a node, one a session: frames of [`crate::node::Heartbeat`].
    Telemetry = 4,
    /// Both ways, opened by anybody who may read the blob: a frame with [`BlobRequest`]; answered
    /// by a frame with [`BlobReply`], then the bytes from the offset to the end.
    BlobGet = 5,
    /// Both ways, opened by a client: a frame with [`BlobOffer`]; answered by a frame with
    /// [`BlobReply`] whose offset says what is held already; then the client's bytes from there;
    /// then a frame with [`BlobReceipt`].
    BlobPut = 6,
    /// Both ways, opened by a client: a frame with [`crate::client::Request`]; answered by one
    /// frame with [`crate::client::Response`], or by a sequence of them that ends with the stream
    /// for [`crate::client::Request::Watch`].
    Request = 7,
    /// Both ways, opened by a peer without a certificate, once: a frame with
    /// [`crate::client::EnrolRequest`], answered by a frame with [`crate::client::EnrolReply`].
    Enrol = 8,
    /// Both ways, opened by a peer with a certificate, as often as it likes: a frame with
    /// [`crate::renewal::RenewRequest`], answered by a frame with [`crate::renewal::RenewReply`].
    Renew = 9,
    /// Both ways, opened by a peer with a certificate, by a node before its session's or in the
    /// place of it: a frame with [`ClockReading`] comes back.
    Clock = 10,
}

impl StreamKind {
    /// The kind that a first byte names.
    pub fn from_byte(byte: u8) -> Option<Self> {
        use StreamKind::*;
        [Hello, NodeControl, Result, Telemetry, BlobGet, BlobPut, Request, Enrol, Renew, Clock]
            .into_iter()
            .find(|kind| *kind as u8 == byte)
    }
}

use crate::ids::BlobHash;
use serde::{Deserialize, Serialize};

/// Asks for a blob from an offset on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlobRequest {
    /// Which blob.
    pub hash: BlobHash,
    /// First byte wanted.
    pub offset: u64,
}

/// Offers a blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlobOffer {
    /// Which blob.
    pub hash: BlobHash,
    /// Its length in bytes, at most [`crate::limits::BLOB_BYTES_MAX`].
    pub length: u64,
}

/// Answers a [`BlobRequest`] or a [`BlobOffer`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BlobReply {
    /// The blob is this long, and the bytes go from this offset.
    From {
        /// First byte that follows.
        offset: u64,
        /// Length of the whole blob.
        length: u64,
    },
    /// It is not here.
    Absent,
    /// It is here, whole (answers an offer).
    Held,
    /// It cannot be given or taken.
    Refused(String),
}

/// Ends a put.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BlobReceipt {
    /// Stored, synced, and its bytes have its hash.
    Stored,
    /// The bytes have another hash, or cannot be kept; nothing was kept.
    Refused(String),
}

/// What the coordinator's clock shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockReading {
    /// Milliseconds since the Unix epoch.
    pub unix_millis: u64,
}
