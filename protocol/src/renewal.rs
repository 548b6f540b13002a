//! A certificate for the next while, over a connection that is authenticated by the one that ends.
//! Owns no clock and no key.

use serde::{Deserialize, Serialize};

/// Asks for a certificate for the same identity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RenewRequest {
    /// A PKCS #10 certificate request, DER. Only its public key is used; its private key stays
    /// where it was made.
    pub certificate_request: Vec<u8>,
}

/// Answers a [`RenewRequest`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RenewReply {
    /// The chain to present from now on, DER: the new certificate, then the authority's.
    Certificate(Vec<Vec<u8>>),
    /// The one in use has most of its life before it.
    NotYet {
        /// Seconds after which to ask again.
        ask_again_secs: u32,
    },
    /// Why not, and what to do.
    Refused(String),
}
