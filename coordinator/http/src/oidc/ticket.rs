//! Tickets: what ties a browser to the sign-in that it has begun. A ticket is in the browser's
//! cookie; here is only which ones were used. So nobody can fill a table by beginning sign-ins.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom, SystemRandom};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, PoisonError};

/// How long a sign-in may take, in seconds.
pub(crate) const TICKET_SECS: u64 = 600;
/// Tickets of the last ten minutes that were used. Each costs its address a request of its rate.
const USED_MAX: usize = 65_536;
const SEED_BYTES: usize = 16;
const UNTIL_BYTES: usize = 8;
const SEAL_BYTES: usize = 32;

/// Why a browser that comes back is sent away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TicketError {
    #[error("this browser has begun no sign-in here; begin again")]
    Missing,
    #[error("the sign-in took more than ten minutes; begin again")]
    Late,
    #[error("the answer belongs to another sign-in than this browser's last; begin again")]
    State,
    #[error("this sign-in was used already; begin again")]
    Used,
    #[error("too many have signed in during the last ten minutes; try again later")]
    Full,
}

/// The tickets of one process.
pub(crate) struct Tickets {
    key: [u8; 32],
    /// Until when each used ticket would have been valid.
    used: Mutex<BTreeMap<[u8; SEED_BYTES], u64>>,
}

impl std::fmt::Debug for Tickets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tickets")
    }
}

/// One sign-in. All that the provider hears of it follows from the seed and the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    seed: [u8; SEED_BYTES],
    until: u64,
    /// Comes back with the browser.
    pub(crate) state: String,
    /// Comes back in the signed token.
    pub(crate) nonce: String,
    /// Proves to the provider that the code is ours (RFC 7636).
    pub(crate) verifier: String,
}

impl Tickets {
    /// Tickets under a new key: those of a former process are unknown.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { key: random()?, used: Mutex::default() })
    }

    /// Makes a ticket. Returns it with its text for the cookie.
    pub(crate) fn issue(&self, now: u64) -> io::Result<(Ticket, String)> {
        let ticket = self.ticket(random()?, now.saturating_add(TICKET_SECS));
        let body = [&ticket.seed[..], &ticket.until.to_be_bytes()].concat();
        let cookie = [&body[..], self.sealed("cookie", &body).as_bytes()].concat();
        Ok((ticket, URL_SAFE_NO_PAD.encode(cookie)))
    }

    /// Uses up the ticket of a cookie, if the state that came back is its own.
    pub(crate) fn take(&self, cookie: &str, state: &str, now: u64) -> Result<Ticket, TicketError> {
        let ticket = self.read(cookie).ok_or(TicketError::Missing)?;
        if ticket.until <= now {
            return Err(TicketError::Late);
        }
        // Hashes are compared in the same time wherever they differ.
        if blake3::hash(ticket.state.as_bytes()) != blake3::hash(state.as_bytes()) {
            return Err(TicketError::State);
        }
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if used.contains_key(&ticket.seed) {
            return Err(TicketError::Used);
        }
        if used.len() >= USED_MAX {
            used.retain(|_, until| *until > now);
        }
        if used.len() >= USED_MAX {
            return Err(TicketError::Full);
        }
        used.insert(ticket.seed, ticket.until);
        Ok(ticket)
    }

    fn read(&self, cookie: &str) -> Option<Ticket> {
        // Nothing longer is decoded.
        if cookie.len() > 2 * (SEED_BYTES + UNTIL_BYTES + SEAL_BYTES) {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(cookie).ok()?;
        let (body, seal) = bytes.split_at_checked(SEED_BYTES + UNTIL_BYTES)?;
        let seal: [u8; SEAL_BYTES] = seal.try_into().ok()?;
        if self.sealed("cookie", body) != seal {
            return None;
        }
        let (seed, until) = body.split_at(SEED_BYTES);
        Some(self.ticket(seed.try_into().ok()?, u64::from_be_bytes(until.try_into().ok()?)))
    }

    fn ticket(&self, seed: [u8; SEED_BYTES], until: u64) -> Ticket {
        let derived = |what| URL_SAFE_NO_PAD.encode(self.sealed(what, &seed).as_bytes());
        let [state, nonce, verifier] = ["state", "nonce", "verifier"].map(derived);
        Ticket { seed, until, state, nonce, verifier }
    }

    fn sealed(&self, what: &str, bytes: &[u8]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(what.as_bytes()).update(&[0]).update(bytes);
        hasher.finalize()
    }
}

impl Ticket {
    /// What the provider hears of the verifier: its SHA-256.
    pub(crate) fn challenge(&self) -> String {
        let digest = ring::digest::digest(&ring::digest::SHA256, self.verifier.as_bytes());
        URL_SAFE_NO_PAD.encode(digest)
    }
}

fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| io::Error::other("the operating system gives no random numbers"))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_taken_once_with_its_own_state() {
        let tickets = Tickets::new().unwrap();
        let (ticket, cookie) = tickets.issue(100).unwrap();
        let (other, others) = tickets.issue(100).unwrap();
        assert_ne!(ticket.state, other.state);
        assert_eq!(tickets.take(&cookie, &other.state, 200), Err(TicketError::State));
        assert_eq!(tickets.take(&others, &ticket.state, 200), Err(TicketError::State));
        assert_eq!(tickets.take(&cookie, "", 200), Err(TicketError::State));
        assert_eq!(tickets.take("", &ticket.state, 200), Err(TicketError::Missing));
        assert_eq!(tickets.take(&cookie, &ticket.state, 699), Ok(ticket.clone()));
        assert_eq!(tickets.take(&cookie, &ticket.state, 699), Err(TicketError::Used));
        assert_eq!(tickets.take(&others, &other.state, 700), Err(TicketError::Late));
    }

    #[test]
    fn a_changed_or_foreign_ticket_is_none() {
        let tickets = Tickets::new().unwrap();
        let (ticket, cookie) = tickets.issue(100).unwrap();
        for at in 0..cookie.len() {
            let mut changed = cookie.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(tickets.take(&changed, &ticket.state, 101), Err(TicketError::Missing));
            assert!(tickets.take(&cookie[..at], &ticket.state, 101).is_err(), "{at}");
        }
        let restarted = Tickets::new().unwrap();
        assert_eq!(restarted.take(&cookie, &ticket.state, 101), Err(TicketError::Missing));
        let long = "A".repeat(100_000);
        assert_eq!(tickets.take(&long, &ticket.state, 101), Err(TicketError::Missing));
    }

    #[test]
    fn used_tickets_take_bounded_room() {
        let tickets = Tickets::new().unwrap();
        let mut taken = 0;
        for _ in 0..USED_MAX + 10 {
            let (ticket, cookie) = tickets.issue(0).unwrap();
            taken += usize::from(tickets.take(&cookie, &ticket.state, 1).is_ok());
        }
        assert_eq!(taken, USED_MAX);
        let (ticket, cookie) = tickets.issue(TICKET_SECS).unwrap();
        assert!(tickets.take(&cookie, &ticket.state, TICKET_SECS + 1).is_ok(), "old ones end");
    }

    #[test]
    fn what_is_sent_has_the_form_of_pkce() {
        let (ticket, _) = Tickets::new().unwrap().issue(0).unwrap();
        let texts = [&ticket.state, &ticket.nonce, &ticket.verifier, &ticket.challenge()];
        assert!(texts.iter().all(|text| text.len() == 43), "{texts:?}");
        // The example of RFC 7636, appendix B.
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk".to_owned();
        let known = Ticket { verifier, ..ticket };
        assert_eq!(known.challenge(), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }
}
