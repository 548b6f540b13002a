//! The first message on a connection, sent by both sides. Its layout is frozen, so it is written by
//! hand and not by the codec.
//!
//! `"TSRA"`, u16 oldest and u16 newest protocol version (little endian), 32 bytes of fingerprint,
//! u8 length and UTF-8 bytes of the build's name. After both hellos, the peers speak the highest
//! version that both know.

use crate::ids::Fingerprint;

/// Protocol versions: this enum is the changelog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u16)]
pub enum ProtocolVersion {
    /// First version.
    V1 = 1,
}

/// The newest version that this build speaks.
pub const PROTOCOL_VERSION: u16 = ProtocolVersion::V1 as u16;
/// The oldest version that this build speaks.
pub const PROTOCOL_VERSION_OLDEST: u16 = ProtocolVersion::V1 as u16;
/// First bytes of a hello.
pub const MAGIC: [u8; 4] = *b"TSRA";
/// Longest hello in bytes: the fixed part and a build name of 255 bytes.
pub const HELLO_BYTES_MAX: usize = HELLO_BYTES_FIXED + 255;
/// Length of the part before the build's name, in bytes.
pub const HELLO_BYTES_FIXED: usize = 4 + 2 + 2 + 32 + 1;
/// ALPN name of every connection.
pub const ALPN: &[u8] = b"tessera/1";

/// Introduces a peer: its build, and the versions that it speaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Oldest protocol version that the peer speaks.
    pub oldest: u16,
    /// Newest protocol version that the peer speaks.
    pub newest: u16,
    /// Fingerprint of the peer's build: equal fingerprints give equal bits.
    pub fingerprint: Fingerprint,
    /// The build's name and version, for people.
    pub build: String,
}

/// Why the bytes are not a hello, or why the peers cannot talk to each other.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HelloError {
    /// The peer is not a Tessera program.
    #[error("peer does not speak the Tessera protocol")]
    Foreign,
    /// The hello is cut short.
    #[error("hello is cut short")]
    Short,
    /// The peers have no version in common.
    #[error(
        "peer `{build}` speaks protocol {oldest} to {newest}, this build speaks \
            {PROTOCOL_VERSION_OLDEST} to {PROTOCOL_VERSION}"
    )]
    Version {
        /// Build of the peer, for people.
        build: String,
        /// The peer's oldest version.
        oldest: u16,
        /// The peer's newest version.
        newest: u16,
    },
}

impl Hello {
    /// Returns the hello of this build.
    pub fn ours(fingerprint: Fingerprint) -> Self {
        let build = format!("tessera {}", env!("CARGO_PKG_VERSION"));
        Self { oldest: PROTOCOL_VERSION_OLDEST, newest: PROTOCOL_VERSION, fingerprint, build }
    }

    /// Encodes the hello in its frozen layout. A build name of more than 255 bytes is cut at the
    /// end of a character.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut end = self.build.len().min(255);
        while !self.build.is_char_boundary(end) {
            end -= 1;
        }
        let mut bytes = Vec::with_capacity(HELLO_BYTES_FIXED + end);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&self.oldest.to_le_bytes());
        bytes.extend_from_slice(&self.newest.to_le_bytes());
        bytes.extend_from_slice(&self.fingerprint.0);
        bytes.push(end as u8);
        bytes.extend_from_slice(&self.build.as_bytes()[..end]);
        bytes
    }

    /// Decodes the fixed part. Returns the hello without its build name, and the length of that
    /// name in bytes.
    pub fn from_fixed(bytes: &[u8; HELLO_BYTES_FIXED]) -> Result<(Self, usize), HelloError> {
        if bytes[..4] != MAGIC {
            return Err(HelloError::Foreign);
        }
        let mut fingerprint = [0; 32];
        fingerprint.copy_from_slice(&bytes[8..40]);
        let hello = Self {
            oldest: u16::from_le_bytes([bytes[4], bytes[5]]),
            newest: u16::from_le_bytes([bytes[6], bytes[7]]),
            fingerprint: Fingerprint(fingerprint),
            build: String::new(),
        };
        Ok((hello, bytes[40] as usize))
    }

    /// Decodes a whole hello.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, HelloError> {
        let fixed = bytes.first_chunk::<HELLO_BYTES_FIXED>().ok_or(HelloError::Short)?;
        let (mut hello, length) = Self::from_fixed(fixed)?;
        let name =
            bytes.get(HELLO_BYTES_FIXED..HELLO_BYTES_FIXED + length).ok_or(HelloError::Short)?;
        hello.build = String::from_utf8_lossy(name).into_owned();
        Ok(hello)
    }

    /// Returns the version to speak with this peer.
    pub fn agree(&self) -> Result<u16, HelloError> {
        let newest = self.newest.min(PROTOCOL_VERSION);
        if newest < self.oldest.max(PROTOCOL_VERSION_OLDEST) {
            return Err(HelloError::Version {
                build: self.build.clone(),
                oldest: self.oldest,
                newest: self.newest,
            });
        }
        Ok(newest)
    }
}
