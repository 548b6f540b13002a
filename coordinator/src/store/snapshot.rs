//! Encoding of a snapshot: its parts, each after its length (u32, little endian).

use tessera_core::SnapshotPart;
use tessera_protocol::CodecError;

/// Encodes all parts of a snapshot, one after another.
pub fn encode(parts: &[SnapshotPart]) -> Result<Vec<u8>, CodecError> {
    let mut bytes = Vec::new();
    for part in parts {
        let part = part.to_bytes()?;
        let length = u32::try_from(part.len()).map_err(|_| CodecError::TooLong(part.len()))?;
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(&part);
    }
    Ok(bytes)
}

/// Decodes all parts. The error says what is wrong with the bytes.
pub fn decode(mut bytes: &[u8]) -> Result<Vec<SnapshotPart>, String> {
    let mut parts = Vec::new();
    while !bytes.is_empty() {
        let (length, rest) = bytes.split_first_chunk::<4>().ok_or("a part is cut short")?;
        let (part, rest) = rest
            .split_at_checked(u32::from_le_bytes(*length) as usize)
            .ok_or("a part is cut short")?;
        parts.push(SnapshotPart::from_bytes(part).map_err(|error| error.to_string())?);
        bytes = rest;
    }
    Ok(parts)
}
