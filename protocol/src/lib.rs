//! Types that cross the wire: ids, job spec, messages, limits, codec and versions. Owns no socket
//! and makes no decision.
//!
//! Values from outside are `Raw*` types, or stay unchecked until their `check` has passed. All
//! other values are valid.

pub mod access;
mod addresses;
pub mod client;
pub mod codec;
pub mod compute;
pub mod cost;
pub mod device;
pub mod explain;
pub mod film;
pub mod frame_files;
pub mod frames;
pub mod hello;
pub mod ids;
pub mod job;
pub mod limits;
pub mod live;
pub mod logs;
pub mod names;
pub mod news;
pub mod node;
pub mod node_limit;
pub mod pattern;
pub mod preset;
pub mod renewal;
mod request_error;
pub mod role;
pub mod rounds;
pub mod selection;
pub mod status;
pub mod stored;
pub mod stream;
mod tile;
pub mod usage;
pub mod utc;
pub mod version;

pub use addresses::Addresses;
pub use codec::{CodecError, decode, encode};
pub use compute::{ChunkValues, ComputeSpec};
pub use film::{CHANNELS_MAX, FilmError, TileSums};
pub use frames::{FrameSet, FrameSetError};
pub use hello::{Hello, HelloError, PROTOCOL_VERSION};
pub use ids::{
    BlobHash, Epoch, Fingerprint, FrameNumber, JobId, Lease, NodeId, ProcessEpoch, UnitIndex,
    UnitKey,
};
pub use job::{JobKind, JobSpec, RawJobSpec, RenderSpec, SpecError};
pub use rounds::Rounds;
pub use version::VersionError;
