//! Information for a node's owner: errors, how the node ended, and what it is doing.

use crate::cache::CacheError;
use crate::device::DeviceOpenError;
use crate::device::worker::Unconfined;
use crate::folder::FolderError;
use crate::outbox::OutboxError;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tessera_transport::{AddressError, ConnectError, EnrolError, IdentityError, TokenError};

/// Why a node does not start, or ends.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The folder cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The kernel cannot confine the node's processes, which is required.
    #[error("--sandbox require: {0}")]
    Unconfined(#[from] Unconfined),
    /// The cache cannot be used.
    #[error("cannot open the scene cache")]
    Cache(#[source] CacheError),
    /// The outbox cannot be used.
    #[error("cannot open the outbox")]
    Outbox(#[source] OutboxError),
    /// A device cannot be used.
    #[error(transparent)]
    Device(#[from] DeviceOpenError),
    /// The name is not valid.
    #[error(
        "node name {0:?} is not 1 to 128 letters, digits and `.`, `_`, `-`, `@`; choose another"
    )]
    Name(String),
    /// The coordinator's address is not valid.
    #[error(transparent)]
    Address(AddressError),
    /// The join token is not valid.
    #[error(transparent)]
    Token(TokenError),
    /// There is no identity, and no token to get one.
    #[error(
        "no identity at `{0}` and no join token; make one with `tessera token create --role node`"
    )]
    NoToken(PathBuf),
    /// The identity cannot be read or stored.
    #[error(transparent)]
    Identity(IdentityError),
    /// The identity belongs to another node.
    #[error("the identity at `{0}` is not of this node; remove it and enrol again")]
    OtherNode(PathBuf),
    /// The identity belongs to another pool.
    #[error(
        "this node's certificate says that it is of pool `{fixed}`, and it was \
            started for pool `{claimed}`; leave --pool away, or remove its identity and enrol it \
            with a token for that pool"
    )]
    OtherPool {
        /// Pool in the certificate.
        fixed: String,
        /// Pool in the settings.
        claimed: String,
    },
    /// The node was started under another name than the one it is enrolled under.
    #[error(
        "this node is enrolled as `{enrolled}`, and --name says `{given}`; leave --name \
            (TESSERA_NODE_NAME) away, or enrol it anew under the new name: `tessera members \
            remove {enrolled}`, `tessera token create --role node --name {given}`, remove `{}`, \
            and start it with --token-file",
        .folder.display()
    )]
    OtherName {
        /// Name in the certificate.
        enrolled: String,
        /// Name in the settings.
        given: String,
        /// Folder of the identity.
        folder: PathBuf,
    },
    /// The coordinator refused to enrol the node.
    #[error(transparent)]
    Enrol(EnrolError),
    /// There is no session, and none is possible before a person changes something.
    #[error(transparent)]
    Connect(ConnectError),
    /// The coordinator refused the node.
    #[error("the coordinator refuses this node: {0}")]
    Refused(String),
    /// The node's task failed, which is a fault of this program.
    #[error("the node's task failed: {0}")]
    Fault(String),
}

/// How a node ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The node was drained. This many results were not acknowledged in time, and stay in the
    /// outbox for the next start.
    Drained {
        /// Number of results that were not acknowledged.
        unacknowledged: usize,
    },
    /// The node was stopped at once.
    Stopped,
}

/// Activity of a node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeStatus {
    /// Whether it has a session with the coordinator.
    pub connected: bool,
    /// Whether it takes no new work.
    pub draining: bool,
    /// Whether an operator has drained it, so that it gets no work and stays connected.
    pub drained: bool,
    /// Number of leases that are waiting, running or being stored.
    pub held: usize,
    /// Number of results in the outbox.
    pub finished: usize,
    /// Number of units whose results were acknowledged since the start.
    pub committed: u64,
    /// Device time since the start, for all devices together.
    pub busy: Duration,
    /// Time for preparing frames since the start (fetching, loading, building hierarchies), added
    /// for all frames.
    pub preparing: Duration,
    /// Number of rays in units that were finished since the start.
    pub rays: u64,
    /// The first unit that was given to a device.
    pub first_unit: Option<FirstUnit>,
}

/// The first unit of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstUnit {
    /// When it was given to a device.
    pub at: Instant,
    /// How long its frame was prepared, which ended before. Other frames do not count: some are
    /// prepared at the same time, and most later.
    pub prepared_in: Duration,
}
