//! The identity in a certificate: one URI among its alternative names, `tessera://ROLE/NAME`.
//! Checks no signature; TLS does.

use crate::authority::serial::serial_parts;
use rustls::pki_types::CertificateDer;
use std::fmt;
use tessera_protocol::NodeId;
use tessera_protocol::client::Role;
use tessera_protocol::limits::NAME_MAX;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

const SCHEME: &str = "tessera://";

/// Identity of a peer, as the farm's authority has signed it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PeerIdentity {
    /// Role, which gives the rights.
    pub role: Role,
    /// Name for people. It belongs to one holder at a time.
    pub name: String,
    /// A node's id; None for people.
    pub node: Option<NodeId>,
    /// Pool of a node, if its token was for one.
    pub pool: Option<String>,
    /// Number of the identity, which no other identity of the farm has; 0 before the coordinator
    /// has given one.
    pub number: u64,
}

/// Why a certificate has no identity, or why an identity cannot be signed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PeerError {
    /// The bytes are not a certificate.
    #[error("the certificate cannot be read")]
    Malformed,
    /// The certificate has no Tessera identity, or several.
    #[error("the certificate names no Tessera identity")]
    Nameless,
    /// A certificate cannot contain the name.
    #[error("name {0:?} is not 1 to {NAME_MAX} letters, digits and `.`, `_`, `-`, `@`")]
    Name(String),
    /// A node has no id, or another identity has one.
    #[error("a node needs an id, and only a node has one")]
    NodeId,
    /// The token is for another name.
    #[error(
        "the token is for the name `{granted}`, and `{claimed}` was given; use --name {granted}, \
            or another token"
    )]
    OtherName {
        /// Name that the token is for.
        granted: String,
        /// Name that was given.
        claimed: String,
    },
    /// An identity that is not a node has a pool.
    #[error("only nodes can belong to a pool")]
    Pool,
}

impl PeerIdentity {
    /// Creates an identity that can be signed. The name has letters, digits and `.`, `_`, `-`, `@`.
    /// Nodes must have an id, and all others must not.
    pub fn new(role: Role, name: &str, node: Option<NodeId>) -> Result<Self, PeerError> {
        if !is_name(name) {
            return Err(PeerError::Name(crate::close::cut(name, NAME_MAX).to_owned()));
        }
        if (role == Role::Node) != node.is_some() {
            return Err(PeerError::NodeId);
        }
        Ok(Self { role, name: name.to_owned(), node, pool: None, number: 0 })
    }

    /// Puts a node into this pool. The pool's name has the same characters as other names.
    pub fn in_pool(mut self, pool: Option<&str>) -> Result<Self, PeerError> {
        if let Some(pool) = pool {
            if !is_name(pool) {
                return Err(PeerError::Name(crate::close::cut(pool, NAME_MAX).to_owned()));
            }
            if self.role != Role::Node {
                return Err(PeerError::Pool);
            }
        }
        self.pool = pool.map(str::to_owned);
        Ok(self)
    }

    /// Gives the identity its number.
    pub fn numbered(mut self, number: u64) -> Self {
        self.number = number;
        self
    }

    /// Returns the URI that names the identity in a certificate.
    pub fn uri(&self) -> String {
        match self.node {
            Some(node) => format!("{SCHEME}{}/{node}", self.role),
            None => format!("{SCHEME}{}/{}", self.role, self.name),
        }
    }

    /// Reads the identity of a certificate that TLS has verified.
    pub fn of_certificate(certificate: &CertificateDer<'_>) -> Result<Self, PeerError> {
        let (_, certificate) =
            X509Certificate::from_der(certificate).map_err(|_| PeerError::Malformed)?;
        let names = certificate.subject_alternative_name().map_err(|_| PeerError::Malformed)?;
        let mut uris = names.iter().flat_map(|names| &names.value.general_names).filter_map(
            |name| match name {
                GeneralName::URI(uri) => uri.strip_prefix(SCHEME),
                _ => None,
            },
        );
        let (Some(uri), None) = (uris.next(), uris.next()) else { return Err(PeerError::Nameless) };
        let (role, name) = uri.split_once('/').ok_or(PeerError::Nameless)?;
        let role: Role = role.parse().map_err(|_| PeerError::Nameless)?;
        let (number, _) = serial_parts(certificate.raw_serial()).ok_or(PeerError::Nameless)?;
        if role != Role::Node {
            return Ok(Self::new(role, name, None)?.numbered(number));
        }
        let node = name.parse().map_err(|_| PeerError::Nameless)?;
        let common = certificate.subject().iter_common_name().next();
        let name = common.and_then(|name| name.as_str().ok()).ok_or(PeerError::Nameless)?;
        let pool = certificate.subject().iter_organizational_unit().next();
        let pool = pool.map(|pool| pool.as_str().map_err(|_| PeerError::Malformed)).transpose()?;
        Ok(Self::new(role, name, Some(node))?.in_pool(pool)?.numbered(number))
    }
}

impl fmt::Display for PeerIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.role, self.name)?;
        match self.number {
            0 => Ok(()),
            number => write!(f, " #{number}"),
        }
    }
}

/// Returns whether a certificate can contain this name.
pub fn is_name(name: &str) -> bool {
    tessera_protocol::job::is_label(name)
}
