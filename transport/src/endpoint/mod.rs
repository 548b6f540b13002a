//! Both ends of a connection: addresses, sockets, TLS, and the hello that makes it a link.

pub mod address;
pub(crate) mod congestion;
pub mod dial;
pub(crate) mod hello;
pub(crate) mod intake;
pub mod link;
pub(crate) mod places;
pub(crate) mod seen_clock;
pub mod server;
pub(crate) mod socket;
pub(crate) mod tls;
