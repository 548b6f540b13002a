//! Renewal of a certificate over a connection that the old certificate authenticates. Owns no clock
//! and no key.

use serde::{Deserialize, Serialize};

/// Asks for a new certificate for the same identity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RenewRequest {
    /// A PKCS #10 certificate request (DER). Only its public key is used; the private key never
    /// leaves the peer.
    pub certificate_request: Vec<u8>,
}

/// Answers a [`RenewRequest`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RenewReply {
    /// The chain to present from now on (DER): the new certificate, then the authority's.
    Certificate(Vec<Vec<u8>>),
    /// The certificate in use is not old enough yet to be renewed.
    NotYet {
        /// Seconds to wait before asking again.
        ask_again_secs: u32,
    },
    /// Says why there is no certificate, and what to do.
    Refused(String),
}
