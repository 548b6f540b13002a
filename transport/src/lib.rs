//! QUIC connections for both sides: the farm's authority, identities, endpoints with mutual TLS,
//! the hello, framed messages and blob streams. Makes no decision for the farm, and stores no job,
//! lease or token ledger.
//!
//! A dialling side holds an [`Identity`] and calls [`connect`] (or [`FarmClient::connect`]).
//! Without an identity it calls [`enrol::enrol`] with a [`JoinToken`]. The coordinator holds an
//! [`Authority`], binds a [`Server`], and gets a [`Link`] from each [`Arriving`] connection. A link
//! is a connection whose peer is known and has agreed on a version in its hello.

pub mod address;
pub mod authority;
pub mod blob;
pub mod client;
pub mod close;
pub mod dial;
pub mod enrol;
pub mod error;
pub mod files;
pub mod frame;
pub mod identity;
pub mod link;
pub mod meter;
pub mod peer;
pub mod renew;
pub mod rotation;
pub mod server;
pub mod timing;
pub mod token;
pub mod validity;

mod congestion;
mod grace;
mod hello;
mod socket;
mod tls;

pub use address::{Address, AddressError};
pub use authority::{Authority, AuthorityError};
pub use blob::{BlobError, BlobRead, BlobSink, BlobStore, PartFile, SinkError};
pub use client::{Backup, ClientError, FarmClient, Watch};
pub use close::CloseCode;
pub use dial::connect;
pub use enrol::EnrolError;
pub use error::{ConnectError, ConnectFailure};
pub use frame::{FrameError, FrameReceiver, FrameSender};
pub use identity::{Identity, IdentityError};
pub use link::{Credential, Link};
pub use meter::{Meter, Rates};
pub use peer::PeerIdentity;
pub use server::{AcceptError, Arriving, Server};
pub use timing::Timing;
pub use token::{JoinToken, TokenError, TokenRecord};
pub use validity::{Lifetimes, Validity};
