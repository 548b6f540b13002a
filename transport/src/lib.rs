//! QUIC connections for both sides: the farm's authority, identities, endpoints with mutual TLS,
//! the hello, framed messages and blob streams. Makes no decision for the farm, and stores no job,
//! lease or token ledger.
//!
//! A dialling side holds an [`Identity`] and calls [`connect`] (or [`FarmClient::connect`]).
//! Without an identity it calls [`enrol::enrol`] with a [`JoinToken`]. The coordinator holds an
//! [`Authority`], binds a [`Server`], and gets a [`Link`] from each [`Arriving`] connection. A link
//! is a connection whose peer is known and has agreed on a version in its hello.

pub mod authority;
pub mod blob;
pub mod client;
pub mod close;
pub mod error;
pub mod files;
pub mod generation;
pub mod identity;
pub mod placing;
pub mod timing;

mod endpoint;
mod stream;

pub use authority::{member, token, validity};
pub use endpoint::{address, dial, link, server};
pub use identity::{enrol, peer, renew};
pub use stream::{frame, meter};

pub use authority::token::{BearerToken, JoinToken, TokenError, TokenRecord, TokenUse};
pub use authority::validity::{Lifetimes, Validity};
pub use authority::{Authority, AuthorityError};
pub use blob::{BlobError, BlobRead, BlobSink, BlobStore, PartFile, SinkError};
pub use client::{Backup, ClientError, FarmClient, LiveTiles, LogPages, Watch};
pub use close::CloseCode;
pub use endpoint::address::{Address, AddressError};
pub use endpoint::dial::connect;
pub use endpoint::link::{Credential, Link};
pub use endpoint::server::{AcceptError, Arriving, Server};
pub use endpoint::socket::PACKET_BYTES_MAX;
pub use error::{ConnectError, ConnectFailure};
pub use identity::enrol::EnrolError;
pub use identity::peer::PeerIdentity;
pub use identity::{Identity, IdentityError};
pub use stream::frame::{FrameError, FrameReceiver, FrameSender};
pub use stream::meter::{Meter, Rates};
pub use timing::Timing;
