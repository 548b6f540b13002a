//! The kernels' version: a hash of everything that can change a pixel.

use std::sync::OnceLock;
use tessera_layout::{CHANNELS_MAX, FILM_FRACTION_BITS, FILM_VALUE_MAX};

include!(concat!(env!("OUT_DIR"), "/sources.rs"));

/// Version of the format. It is raised when the meaning of the layout or of the film changes
/// without a change of the sources.
const FORMAT_VERSION: u32 = 1;

/// Compiler flags of every host build. Those that name a processor change no result and are left
/// out, so that all machines have one fingerprint.
const FLAGS: &str = env!("TESSERA_KERNEL_FLAGS");

/// BLAKE3 of the kernel sources (names and texts), the flags that they are compiled with, the
/// layout and the film format. Nodes with different fingerprints never work on one frame.
pub fn fingerprint() -> [u8; 32] {
    static HASH: OnceLock<[u8; 32]> = OnceLock::new();
    *HASH.get_or_init(|| {
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"tessera kernels");
        for number in [FORMAT_VERSION, FILM_FRACTION_BITS, CHANNELS_MAX, FILM_VALUE_MAX.to_bits()] {
            hasher.update(&number.to_le_bytes());
        }
        for (name, text) in SOURCES.iter().chain(&[("flags", FLAGS)]) {
            for part in [name.as_bytes(), text.as_bytes()] {
                hasher.update(&(part.len() as u64).to_le_bytes());
                hasher.update(part);
            }
        }
        *hasher.finalize().as_bytes()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flags_forbid_what_changes_a_result() {
        let at = |flag: &str| FLAGS.split(' ').position(|other| other == flag);
        for flag in
            ["-ffp-contract=off", "-fno-fast-math", "-fno-associative-math", "-fsigned-zeros"]
        {
            assert!(at(flag) > at("-O3"), "{flag}: {FLAGS}");
        }
        assert!(!FLAGS.contains("-march"), "the fingerprint would differ by machine: {FLAGS}");
    }

    #[test]
    fn the_fingerprint_covers_the_path_tracer() {
        let names: Vec<&str> = SOURCES.iter().map(|(name, _)| *name).collect();
        assert!(names.contains(&"layout.h") && names.contains(&"entry/host.cpp"), "{names:?}");
        assert!(!names.contains(&"tests/functions.cpp"));
        assert!(names.is_sorted());
        assert_eq!(fingerprint(), fingerprint());
        assert_ne!(fingerprint(), [0; 32]);
    }
}
