//! Signatures of webhooks: HMAC-SHA-256 of the time and the body, so that a receiver knows who sent
//! it, and can refuse one that was sent long ago.

use crate::secret::Secret;
use ring::hmac;
use std::fmt::Write as _;

/// Header with the time of the attempt, in seconds since the Unix epoch.
pub(crate) const TIMESTAMP: &str = "tessera-timestamp";
/// Header with the signature.
pub(crate) const SIGNATURE: &str = "tessera-signature";

/// Returns the value of the header: `v1=` and the HMAC-SHA-256 of the time, a dot and the body, in
/// hexadecimal.
pub(crate) fn signature(secret: &Secret, at: u64, body: &[u8]) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.text().as_bytes());
    let mut context = hmac::Context::with_key(&key);
    context.update(format!("{at}.").as_bytes());
    context.update(body);
    let mut text = "v1=".to_owned();
    for byte in context.sign().as_ref() {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_that_of_other_tools() {
        // Made by Python's hmac.
        let signed = signature(&Secret::of("correct horse battery"), 1_700_000_000, b"{\"a\":1}");
        assert_eq!(signed, EXPECTED);
    }

    #[test]
    fn time_body_and_secret_all_count() {
        let (one, other) = (Secret::of("correct horse battery"), Secret::of("another one of it"));
        let all = [
            signature(&one, 1, b"x"),
            signature(&one, 2, b"x"),
            signature(&one, 1, b"y"),
            signature(&other, 1, b"x"),
        ];
        let mut different = all.to_vec();
        different.sort();
        different.dedup();
        assert_eq!(different.len(), all.len());
    }

    const EXPECTED: &str = "v1=98a51b330afc58453095af8ed727e6cc4bd565edb4230482620146eda751b416";
}
