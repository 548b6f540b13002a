//! Join tokens as the coordinator keeps them: hashed, counted, bounded in time.

use serde::{Deserialize, Serialize};
use tessera_protocol::client::Role;

/// BLAKE3 of a token's secret, under a key of its own. The secret has 256 random bits, so a plain hash is enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TokenHash(pub [u8; 32]);

impl TokenHash {
    /// The hash of a secret.
    pub fn of(secret: &[u8]) -> Self {
        Self(blake3::derive_key("tessera join token 1", secret))
    }
}

/// What a token is still good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenState {
    /// What its bearer becomes.
    pub role: Role,
    /// Times it may still be used.
    pub uses_left: u32,
    /// Seconds since the Unix epoch when it ends.
    pub expires_at: u64,
}
