//! The version of finishing: a hash of everything besides the kernels that can change a byte of a
//! frame's files.

use tessera_protocol::Fingerprint;

/// BLAKE3 of this crate's sources and of the versions of the encoders, in hex.
const HASH: &str = env!("TESSERA_FINISHING_HASH");

/// Returns the fingerprint of this build's finishing. Pieces are made by nodes that have that of
/// their coordinator, so that all pieces of a frame go together.
pub fn fingerprint() -> Fingerprint {
    let mut bytes = [0; 32];
    for (byte, digits) in bytes.iter_mut().zip(HASH.as_bytes().chunks_exact(2)) {
        let digits = digits.iter().filter_map(|digit| char::from(*digit).to_digit(16));
        *byte = digits.fold(0, |value, digit| value << 4 | digit as u8);
    }
    Fingerprint(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fingerprint_is_the_hash_of_the_build() {
        let hex: String = fingerprint().0.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, HASH);
        assert_eq!(HASH.len(), 64);
    }
}
