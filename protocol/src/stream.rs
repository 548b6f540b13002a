//! Kinds of QUIC streams. The first byte of every stream is its kind, and frames follow. A frame is
//! a u32 length (little endian, at most [`crate::limits::MESSAGE_BYTES_MAX`]) and that many bytes
//! of the codec. Raw bytes follow only where a kind says so.

/// Kind of a stream, which is its first byte. The byte values are frozen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum StreamKind {
    /// Both ways: the first stream of a connection, opened by the dialling side. Each side sends a
    /// [`crate::Hello`], which is not a frame.
    Hello = 1,
    /// Both ways, opened by a node, one per session: frames of [`crate::node::NodeToCoordinator`]
    /// and [`crate::node::CoordinatorToNode`].
    NodeControl = 2,
    /// One way, opened by a node for results that are ready together: a frame with
    /// [`crate::node::ResultHeaders`], of at most [`crate::limits::RESULT_HEADERS_MAX`] bytes, then
    /// the bytes of each result, then the end of the stream. Each result stands for itself: one
    /// that is damaged, stale or cut short says nothing of the others.
    Result = 3,
    /// One way, opened by a node, one per session: frames of [`crate::node::Heartbeat`].
    Telemetry = 4,
    /// Both ways, opened by a peer that is allowed to read the blob: a frame with [`BlobRequest`].
    /// The answer is a frame with [`BlobReply`], then the bytes of the range.
    BlobGet = 5,
    /// Both ways, opened by a client: a frame with [`BlobOffer`]. The answer is a frame with
    /// [`BlobReply`], whose offset says how many bytes are already there. The client sends the
    /// bytes from that offset on, and a frame with [`BlobReceipt`] ends the stream. If the offer
    /// says so, later bytes are on streams of [`Self::BlobRange`].
    BlobPut = 6,
    /// Both ways, opened by a client: a frame with [`crate::client::Request`]. The answer is one
    /// frame with [`crate::client::Response`]. For [`crate::client::Request::Watch`] it is a
    /// sequence of them that ends with the stream.
    Request = 7,
    /// Both ways, opened once by a peer without a certificate: a frame with
    /// [`crate::client::EnrolRequest`]. The answer is a frame with [`crate::client::EnrolReply`].
    Enrol = 8,
    /// Both ways, opened by a peer with a certificate, as often as it likes: a frame with
    /// [`crate::renewal::RenewRequest`]. The answer is a frame with [`crate::renewal::RenewReply`].
    Renew = 9,
    /// Both ways, opened by a peer with a certificate. A node opens it before the stream of its
    /// session or instead of it. The answer is a frame with [`ClockReading`].
    Clock = 10,
    /// Both ways, opened by a client in an upload: a frame with [`BlobRange`], then its bytes.
    /// There is no answer.
    BlobRange = 11,
    /// Both ways, opened by a node: a frame with [`InputsRequest`]. The answer is a frame with
    /// [`InputsReply`], and if it is [`InputsReply::Inputs`], that many bytes: for each part its
    /// place and its length (u32 each, little endian), and its bytes.
    FinishInputs = 12,
    /// One way, opened by a node, one per live tile: a frame with [`crate::live::LiveTile`], of at
    /// most [`crate::live::LIVE_MESSAGE_MAX`] bytes, then the end of the stream.
    LiveTile = 13,
    /// One way, opened by a node, one per session: frames of [`crate::logs::LogLines`], of at most
    /// [`crate::logs::LINES_MESSAGE_MAX`] bytes.
    Log = 14,
    /// Both ways, opened by a node after [`crate::node::CoordinatorToNode::StoreResults`] for
    /// results of one frame that are ready together: a frame with [`crate::stored::StoreOffer`], of
    /// at most [`crate::limits::STORE_OFFER_MAX`] bytes. The answer is a frame with
    /// [`crate::stored::StoreReply`]. If it has an address, the node puts the results there and
    /// ends with a frame with [`crate::stored::StoreReceipt`].
    StoreResults = 15,
    /// Both ways, opened by a node after [`crate::node::CoordinatorToNode::MakeFiles`]: a frame
    /// with [`crate::frame_files::FilesRequest`]. The answer is a frame with
    /// [`crate::frame_files::FilesReply`]. If it has an order, the node ends with a frame with
    /// [`crate::frame_files::FilesReport`], of at most [`crate::limits::FILES_REPORT_MAX`] bytes.
    FrameFiles = 16,
}

impl StreamKind {
    /// Returns the kind that the first byte of a stream names.
    pub fn from_byte(byte: u8) -> Option<Self> {
        use StreamKind::*;
        [
            Hello,
            NodeControl,
            Result,
            Telemetry,
            BlobGet,
            BlobPut,
            Request,
            Enrol,
            Renew,
            Clock,
            BlobRange,
            FinishInputs,
            LiveTile,
            Log,
            StoreResults,
            FrameFiles,
        ]
        .into_iter()
        .find(|kind| *kind as u8 == byte)
    }
}

use crate::addresses::Addresses;
use crate::ids::{BlobHash, FrameNumber, JobId, Lease};
use serde::{Deserialize, Serialize};

/// Asks for a range of a blob's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlobRequest {
    /// The blob that is wanted.
    pub hash: BlobHash,
    /// Position of the first byte that is wanted.
    pub offset: u64,
    /// Finished frame that has the blob as a file. Without it, people get only files of jobs that
    /// they own, unless they are operators.
    pub of: Option<(JobId, FrameNumber)>,
    /// Position after the last byte that is wanted; None: all from the offset on. Over a line with
    /// a long round trip a blob is asked for in ranges, each on a stream of its own.
    pub end: Option<u64>,
    /// Whether the answer may be where the blob is ([`BlobReply::Elsewhere`]).
    pub direct: bool,
    /// Ranges of the blob that were asked for before this one and are not read yet. Those that are
    /// waited for go before those ahead.
    pub ahead: u8,
}

/// Offers a blob to the receiving side of a put.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlobOffer {
    /// The blob that is offered.
    pub hash: BlobHash,
    /// Length of the blob in bytes, at most [`crate::limits::BLOB_BYTES_MAX`].
    pub length: u64,
    /// How the bytes are spread over streams; None: all are on this one.
    pub ranges: Option<BlobRanges>,
}

/// How an upload is spread over streams. Over a line with a long round trip one stream is too
/// slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlobRanges {
    /// Number of the upload, which no other one on this connection has.
    pub upload: u32,
    /// Bytes of each stream, except the last one. The first bytes are on the stream of the offer.
    pub bytes: u64,
}

/// Begins a further stream of an upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlobRange {
    /// Number of the upload; see [`BlobRanges`].
    pub upload: u32,
    /// Position of the stream's first byte in the blob.
    pub offset: u64,
}

/// Answers a [`BlobRequest`] or a [`BlobOffer`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BlobReply {
    /// The bytes from this offset on follow, or are to be sent.
    From {
        /// Position of the first byte of them.
        offset: u64,
        /// Length of the whole blob in bytes.
        length: u64,
    },
    /// The coordinator does not have the blob.
    Absent,
    /// The coordinator already has the whole blob. Answers an offer.
    Held,
    /// The blob cannot be given or taken, for this reason.
    Refused(String),
    /// The whole blob can be got elsewhere, for a few minutes; who cannot reach it asks again.
    /// Answers a request that allows it.
    Elsewhere {
        /// Address for HTTP, which is secret: at most [`crate::limits::ADDRESS_MAX`] bytes.
        url: String,
        /// Length of the whole blob in bytes.
        length: u64,
    },
}

/// Ends the upload of a blob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BlobReceipt {
    /// The blob is stored and synced, and its bytes have its hash.
    Stored,
    /// The bytes have another hash, or cannot be stored. Nothing was kept.
    Refused(String),
}

/// Asks for what a finishing unit reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputsRequest {
    /// Lease of the unit, which the asking node holds.
    pub lease: Lease,
    /// Whether the answer may be where the results are ([`InputsReply::Elsewhere`]).
    pub direct: bool,
}

/// Answers an [`InputsRequest`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum InputsReply {
    /// What the unit reads follows, in parts. The place of a part is a tile, whose film it is, or a
    /// part of, since films of a tile are added; or a band, whose pixels it is.
    Inputs {
        /// Number of parts.
        parts: u32,
        /// Number of bytes that follow, with the places and lengths.
        bytes: u64,
    },
    /// The node does not hold the lease any more, or the results cannot be read, for this reason.
    Refused(String),
    /// What the unit reads is in objects of the farm's store, which can be got for a few minutes;
    /// who cannot reach them asks again. Answers a request that allows it.
    Elsewhere {
        /// Addresses of the objects.
        addresses: Addresses,
        /// The parts, in the order in which the unit reads them.
        parts: Vec<StoredPart>,
    },
}

/// A result in an object, which a finishing unit reads. Of a band's result it reads the pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredPart {
    /// Tile or band of the part.
    pub place: u32,
    /// Position of the object in the list of them.
    pub object: u32,
    /// Position of the result's first byte in the object.
    pub offset: u32,
    /// Number of the result's bytes.
    pub length: u32,
    /// BLAKE3 of these bytes.
    pub hash: BlobHash,
}

/// Time of the coordinator's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockReading {
    /// Milliseconds since the Unix epoch.
    pub unix_millis: u64,
}
