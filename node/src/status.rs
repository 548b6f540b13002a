//! What a node tells its owner: errors, how it ended, and what it is doing.

use crate::cache::CacheError;
use crate::device::DeviceOpenError;
use crate::folder::FolderError;
use crate::outbox::OutboxError;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tessera_transport::{AddressError, ConnectError, EnrolError, IdentityError, TokenError};

/// Why a node does not start, or ends.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// Its folder.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// Its cache.
    #[error("cannot open the scene cache")]
    Cache(#[source] CacheError),
    /// Its outbox.
    #[error("cannot open the outbox")]
    Outbox(#[source] OutboxError),
    /// Its devices.
    #[error(transparent)]
    Device(#[from] DeviceOpenError),
    /// Its name.
    #[error(
        "node name {0:?} is not 1 to 128 letters, digits and `.`, `_`, `-`, `@`; choose another"
    )]
    Name(String),
    /// The coordinator's address.
    #[error(transparent)]
    Address(AddressError),
    /// The join token.
    #[error(transparent)]
    Token(TokenError),
    /// No identity, and nothing to get one with.
    #[error(
        "no identity at `{0}` and no join token; make one with `tessera token create --role node`"
    )]
    NoToken(PathBuf),
    /// The identity cannot be read or kept.
    #[error(transparent)]
    Identity(IdentityError),
    /// The identity is of another node.
    #[error("the identity at `{0}` is not of this node; remove it and enrol again")]
    OtherNode(PathBuf),
    /// The identity is of another pool.
    #[error(
        "this node's certificate says that it is of pool `{fixed}`, and it was \
            started for pool `{claimed}`; leave --pool away, or remove its identity and enrol it \
            with a token for that pool"
    )]
    OtherPool {
        /// Pool in its certificate.
        fixed: String,
        /// Pool that it was started with.
        claimed: String,
    },
    /// The coordinator does not let it join the farm.
    #[error(transparent)]
    Enrol(EnrolError),
    /// No session, and none will come without a person's help.
    #[error(transparent)]
    Connect(ConnectError),
    /// The coordinator does not want it.
    #[error("the coordinator refuses this node: {0}")]
    Refused(String),
    /// Its own task failed: a fault of this program.
    #[error("the node's task failed: {0}")]
    Fault(String),
}

/// How a node ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Drained; this many results were not acknowledged in time and stay in the outbox for the next
    /// start.
    Drained {
        /// How many.
        unacknowledged: usize,
    },
    /// Stopped at once.
    Stopped,
}

/// What a node is doing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeStatus {
    /// Whether it has a session with the coordinator.
    pub connected: bool,
    /// Whether it takes no new work.
    pub draining: bool,
    /// Leases waiting, running or being stored.
    pub held: usize,
    /// Results in the outbox.
    pub finished: usize,
    /// Units whose results were acknowledged since the start.
    pub committed: u64,
    /// Device time spent since the start, all devices together.
    pub busy: Duration,
    /// Time spent on preparing frames since the start (fetching, loading, building hierarchies),
    /// each frame's counted.
    pub preparing: Duration,
    /// Rays traced in units that were finished since the start.
    pub rays: u64,
    /// When the first unit was handed to a device.
    pub first_unit_at: Option<Instant>,
}
