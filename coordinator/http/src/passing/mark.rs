//! The mark of a request that a coordinator passes on: for whom, and signed by the secret of the
//! leader's term, which only the farm's coordinators know.

use axum::http::HeaderValue;
use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

/// What the key is used for.
const CONTEXT: &str = "tessera 2026-11-28 a request that was passed on to the leader";
/// How far the clocks of two coordinators may differ, and how long a mark counts, in seconds.
const SECS: u64 = 300;

/// What a mark is about.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    pub(super) method: &'a str,
    /// Path and query.
    pub(super) target: &'a str,
    /// Token of the browser's session; empty if there is none.
    pub(super) token: &'a str,
    /// Whether a page of the other coordinator makes the request.
    pub(super) is_own: bool,
}

/// What is signed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark<'a> {
    pub(super) client: SocketAddr,
    pub(super) asked: Asked<'a>,
}

impl Mark<'_> {
    /// Writes it, for a leader whose term has this secret.
    pub(super) fn signed(&self, key: &[u8]) -> Option<HeaderValue> {
        let secs = now_secs();
        let code = code((secs, self.client), &self.asked, key);
        format!("{secs} {} {}", self.client, code.to_hex()).parse().ok()
    }
}

/// Returns the client of a mark; None if no coordinator that knows the secret has made it for this
/// request.
pub(super) fn believed(mark: &str, asked: &Asked<'_>, key: &[u8]) -> Option<SocketAddr> {
    let [secs, client, given] = mark.split(' ').collect::<Vec<_>>().try_into().ok()?;
    let (secs, client): (u64, SocketAddr) = (secs.parse().ok()?, client.parse().ok()?);
    let given = blake3::Hash::from_hex(given).ok()?;
    // Hashes are compared in constant time.
    let is_signed = given == code((secs, client), asked, key);
    (is_signed && secs.abs_diff(now_secs()) <= SECS).then_some(client)
}

fn now_secs() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

fn code((secs, client): (u64, SocketAddr), asked: &Asked<'_>, key: &[u8]) -> blake3::Hash {
    let Asked { method, target, token, is_own } = asked;
    let mut hasher = blake3::Hasher::new_keyed(&blake3::derive_key(CONTEXT, key));
    for part in [&secs.to_string(), &client.to_string(), *method, *target, *token] {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
    }
    hasher.update(&[u8::from(*is_own)]).finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_counts_for_its_request_and_term_alone() {
        let asked = Asked { method: "POST", target: "/a?b", token: "t", is_own: true };
        let client = "192.0.2.7:99".parse().unwrap();
        let mark = Mark { client, asked }.signed(b"key").unwrap();
        let mark = mark.to_str().unwrap();
        assert_eq!(believed(mark, &asked, b"key"), Some(client));
        let others = [
            Asked { method: "PUT", ..asked },
            Asked { target: "/a?c", ..asked },
            Asked { token: "", ..asked },
            Asked { is_own: false, ..asked },
        ];
        for other in others {
            assert_eq!(believed(mark, &other, b"key"), None, "{other:?}");
        }
        assert_eq!(believed(mark, &asked, b"yek"), None);
        for wrong in
            ["", "1", mark.replace("192.0.2.7", "192.0.2.8").as_str(), &format!("{mark} x")]
        {
            assert_eq!(believed(wrong, &asked, b"key"), None, "{wrong}");
        }
        let old = code((now_secs() - 2 * SECS, client), &asked, b"key").to_hex();
        let old = format!("{} {client} {old}", now_secs() - 2 * SECS);
        assert_eq!(believed(&old, &asked, b"key"), None);
    }
}
