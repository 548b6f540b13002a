//! The envelope of every value in a store: version, kind and checksum.

use tessera_protocol::VersionError;

/// Version of the envelope and of the keys.
const VERSION: u8 = 1;
/// Bytes before the payload: version, kind, checksum.
const HEADER_BYTES: usize = 2 + CHECKSUM_BYTES;
const CHECKSUM_BYTES: usize = 16;
const INLINE: u8 = 0;
const LARGE: u8 = 1;

/// Place of a value's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Payload {
    /// The bytes are in the journal.
    Inline(Vec<u8>),
    /// The bytes are in a file of the records folder, named by this BLAKE3.
    Large([u8; 32]),
}

impl Payload {
    /// Returns the number in an inline value of eight bytes.
    pub(crate) fn count(&self) -> Option<u64> {
        match self {
            Self::Inline(bytes) => bytes.as_slice().try_into().ok().map(u64::from_le_bytes),
            Self::Large(_) => None,
        }
    }
}

/// Encodes the value of a key. The checksum includes the key, so a value under a wrong key counts
/// as damaged.
pub(crate) fn seal(key: &[u8], payload: &Payload) -> Vec<u8> {
    let (kind, bytes) = match payload {
        Payload::Inline(bytes) => (INLINE, bytes.as_slice()),
        Payload::Large(hash) => (LARGE, hash.as_slice()),
    };
    let mut sealed = Vec::with_capacity(HEADER_BYTES + bytes.len());
    sealed.extend_from_slice(&[VERSION, kind]);
    sealed.extend_from_slice(&checksum(key, kind, bytes));
    sealed.extend_from_slice(bytes);
    sealed
}

/// Decodes the value of a key. The error describes the damage.
pub(crate) fn open(key: &[u8], sealed: &[u8]) -> Result<Payload, String> {
    let Some((header, bytes)) = sealed.split_first_chunk::<HEADER_BYTES>() else {
        return Err(format!("{} bytes are too few", sealed.len()));
    };
    let (version, kind) = (header[0], header[1]);
    if version != VERSION {
        let (found, reads) = (version.into(), VERSION.into());
        let error = VersionError { what: "value", found, oldest: reads, newest: reads };
        return Err(error.to_string());
    }
    if header[2..] != checksum(key, kind, bytes) {
        return Err("the checksum is wrong".into());
    }
    match (kind, <[u8; 32]>::try_from(bytes)) {
        (INLINE, _) => Ok(Payload::Inline(bytes.to_vec())),
        (LARGE, Ok(hash)) => Ok(Payload::Large(hash)),
        _ => Err(format!("kind {kind} is unknown")),
    }
}

/// Encodes a value that is stored under its key, with a checksum of both.
pub fn seal_value(key: &[u8], value: &[u8]) -> Vec<u8> {
    seal(key, &Payload::Inline(value.to_vec()))
}

/// Decodes a value of [`seal_value`]. The error describes the damage.
pub fn open_value(key: &[u8], sealed: &[u8]) -> Result<Vec<u8>, String> {
    match open(key, sealed)? {
        Payload::Inline(bytes) => Ok(bytes),
        Payload::Large(_) => Err("it names a file, and this store has none".into()),
    }
}

fn checksum(key: &[u8], kind: u8, bytes: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&[VERSION, kind]);
    hasher.update(&(key.len() as u64).to_le_bytes());
    hasher.update(key);
    hasher.update(bytes);
    let mut checksum = [0; CHECKSUM_BYTES];
    checksum.copy_from_slice(&hasher.finalize().as_bytes()[..CHECKSUM_BYTES]);
    checksum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_opens_only_under_its_own_key() {
        for payload in
            [Payload::Inline(b"fact".to_vec()), Payload::Inline(vec![]), Payload::Large([7; 32])]
        {
            let sealed = seal(b"key", &payload);
            assert_eq!(open(b"key", &sealed), Ok(payload));
            assert!(open(b"kez", &sealed).is_err());
        }
    }

    #[test]
    fn every_changed_byte_is_seen() {
        let sealed = seal(b"key", &Payload::Inline(b"fact".to_vec()));
        for position in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[position] ^= 0x10;
            assert!(open(b"key", &changed).is_err(), "byte {position}");
        }
        assert!(open(b"key", &sealed[..sealed.len() - 1]).is_err());
        assert!(open(b"key", b"").is_err());
    }
}
