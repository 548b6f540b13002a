//! The caller of a request: an identity that a transport has authenticated.

use std::fmt;
use tessera_core::Owner;
use tessera_protocol::client::Role;
use tessera_transport::PeerIdentity;
use tessera_transport::peer::PeerError;

/// The identity behind a request. A transport makes one only after it has authenticated the peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller(PeerIdentity);

impl Caller {
    /// Creates the caller for a person with this name, role, and number of the identity.
    pub fn new(role: Role, name: &str, number: u64) -> Result<Self, PeerError> {
        PeerIdentity::new(role, name, None).map(|peer| Self(peer.numbered(number)))
    }

    /// Returns the role in the caller's certificate.
    pub fn role(&self) -> Role {
        self.0.role
    }

    /// Returns the number of the identity.
    pub fn number(&self) -> u64 {
        self.0.number
    }

    /// Returns the name. It owns the jobs that it submits.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Whose share the caller's jobs, files and requests take of.
    pub(crate) fn owner(&self) -> Owner {
        Owner::new(self.0.number, &self.0.name)
    }

    pub(crate) fn identity(&self) -> &PeerIdentity {
        &self.0
    }
}

impl From<&PeerIdentity> for Caller {
    fn from(peer: &PeerIdentity) -> Self {
        Self(peer.clone())
    }
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
