//! The key under which a farm's files are sealed before a store elsewhere gets them. Owns no file.

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};

/// Least characters of a key: 32 random bytes have 43 in base64, and 64 in hexadecimal.
const KEY_CHARS_MIN: usize = 43;
/// Most keys of a text.
const KEYS_MAX: usize = 8;
/// What a key is made for.
const PURPOSE: &str = "tessera 2026 the farm's files in a store";
/// First byte of what is sealed.
const VERSION: u8 = 1;

/// Why a text is no key.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum FarmKeyError {
    /// There is no line.
    #[error("there is no key in it; `head -c 32 /dev/urandom | base64` makes one")]
    Empty,
    /// A line is too short to be a random key.
    #[error(
        "line {0} has fewer than {KEY_CHARS_MIN} characters, so it can be guessed; \
         `head -c 32 /dev/urandom | base64` makes a key"
    )]
    Short(usize),
    /// There are too many lines.
    #[error("it has more than {KEYS_MAX} keys")]
    Many,
}

/// Keys of a farm: the first seals, and all of them open.
#[derive(Clone)]
pub struct FarmKey(Vec<[u8; 32]>);

impl std::fmt::Debug for FarmKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FarmKey({} keys)", self.0.len())
    }
}

impl FarmKey {
    /// Reads the keys of a text, one in each line that is not empty. A new first line and a start
    /// change the key.
    pub fn of_text(text: &str) -> Result<Self, FarmKeyError> {
        let mut keys = Vec::new();
        for (index, line) in text.lines().map(str::trim).enumerate() {
            match line.chars().count() {
                0 => continue,
                1..KEY_CHARS_MIN => return Err(FarmKeyError::Short(index + 1)),
                _ => keys.push(blake3::derive_key(PURPOSE, line.as_bytes())),
            }
        }
        match keys.len() {
            0 => Err(FarmKeyError::Empty),
            1..=KEYS_MAX => Ok(Self(keys)),
            _ => Err(FarmKeyError::Many),
        }
    }

    /// Seals a file of this name: a version, a nonce, and what ChaCha20-Poly1305 makes of it (RFC
    /// 8439).
    pub(super) fn seal(&self, name: &str, bytes: &[u8]) -> Result<Vec<u8>, &'static str> {
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).map_err(|_| "the system gives no random bytes")?;
        let mut sealed = bytes.to_vec();
        key(&self.0[0])
            .seal_in_place_append_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(name.as_bytes()),
                &mut sealed,
            )
            .map_err(|_| "it is too large")?;
        Ok([&[VERSION][..], &nonce, &sealed].concat())
    }

    /// Opens what was sealed under this name. Also says whether that was by the first key.
    pub(super) fn open(&self, name: &str, sealed: &[u8]) -> Result<(Vec<u8>, bool), &'static str> {
        let (version, rest) = sealed.split_first().ok_or("it is empty")?;
        if *version != VERSION {
            return Err("another build sealed it");
        }
        let (nonce, rest) = rest.split_first_chunk::<NONCE_LEN>().ok_or("it is cut short")?;
        for (index, bytes) in self.0.iter().enumerate() {
            let mut opened = rest.to_vec();
            let nonce = Nonce::assume_unique_for_key(*nonce);
            if let Ok(plain) = key(bytes).open_in_place(nonce, Aad::from(name), &mut opened) {
                return Ok((plain.to_vec(), index == 0));
            }
        }
        Err("it was sealed by another key, or is damaged")
    }
}

fn key(bytes: &[u8; 32]) -> LessSafeKey {
    LessSafeKey::new(UnboundKey::new(&CHACHA20_POLY1305, bytes).expect("a key has 32 bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";
    const TWO: &str = "YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXphYmNkZWY=";

    #[test]
    fn what_is_sealed_opens_by_its_name_and_key_only() {
        let farm = FarmKey::of_text(ONE).unwrap();
        let sealed = farm.seal("authority", b"secret").unwrap();
        assert!(!sealed.windows(6).any(|window| window == b"secret"));
        assert_eq!(farm.open("authority", &sealed), Ok((b"secret".to_vec(), true)));
        assert!(farm.open("secret", &sealed).is_err());
        assert!(FarmKey::of_text(TWO).unwrap().open("authority", &sealed).is_err());
        for position in 0..sealed.len() {
            let mut damaged = sealed.clone();
            damaged[position] ^= 1;
            assert!(farm.open("authority", &damaged).is_err(), "byte {position}");
            assert!(farm.open("authority", &sealed[..position]).is_err(), "{position} bytes");
        }
        assert_ne!(farm.seal("authority", b"secret").unwrap(), sealed, "another nonce");
    }

    #[test]
    fn a_new_first_key_seals_and_the_former_one_still_opens() {
        let before = FarmKey::of_text(ONE).unwrap().seal("authority", b"secret").unwrap();
        let both = FarmKey::of_text(&format!("{TWO}\n\n{ONE}\r\n")).unwrap();
        assert_eq!(both.open("authority", &before), Ok((b"secret".to_vec(), false)));
        let after = both.seal("authority", b"secret").unwrap();
        assert!(FarmKey::of_text(TWO).unwrap().open("authority", &after).is_ok());
    }

    #[test]
    fn what_can_be_guessed_is_no_key() {
        let error = |text: &str| FarmKey::of_text(text).unwrap_err();
        assert_eq!(error("\n \n"), FarmKeyError::Empty);
        assert_eq!(error(&format!("{ONE}\nhunter2")), FarmKeyError::Short(2));
        assert_eq!(error(&format!("{ONE}\n").repeat(9)), FarmKeyError::Many);
        assert!(!format!("{:?}", FarmKey::of_text(ONE).unwrap()).contains("MDEy"));
    }
}
