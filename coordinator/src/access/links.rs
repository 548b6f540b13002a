//! Links that sign a browser in: each works once, for two minutes. Kept in memory only, by their
//! hashes.

use crate::sync::lock;
use std::collections::BTreeMap;
use std::sync::Mutex;
use tessera_protocol::client::RequestError;
use tessera_transport::{BearerToken, PeerIdentity};

/// How long a link works, in seconds.
const LINK_SECS: u64 = 120;
/// Most links of one member that nobody has used. A further one ends the oldest.
const PER_MEMBER_MAX: usize = 8;
/// Most links of the farm that nobody has used.
const LINKS_MAX: usize = 4096;

/// Links that nobody has used.
#[derive(Debug, Default)]
pub(crate) struct Links {
    links: Mutex<BTreeMap<[u8; 32], Link>>,
}

#[derive(Debug)]
struct Link {
    peer: PeerIdentity,
    until: u64,
}

impl Links {
    /// Makes the code of a link for this identity.
    pub(crate) fn make(&self, peer: &PeerIdentity, now_secs: u64) -> Result<String, RequestError> {
        let code = BearerToken::generate()
            .map_err(|error| RequestError::Unavailable(error.to_string()))?;
        let mut links = lock(&self.links);
        links.retain(|_, link| link.until > now_secs);
        let own = links.iter().filter(|(_, link)| link.peer.number == peer.number);
        if own.clone().count() >= PER_MEMBER_MAX {
            let oldest = own.min_by_key(|(_, link)| link.until).map(|(hash, _)| *hash);
            oldest.and_then(|hash| links.remove(&hash));
        }
        if links.len() >= LINKS_MAX {
            let text = format!("{LINKS_MAX} links wait to be used; try again in two minutes");
            return Err(RequestError::Unavailable(text));
        }
        let until = now_secs.saturating_add(LINK_SECS);
        links.insert(code.hash(), Link { peer: peer.clone(), until });
        Ok(code.to_string())
    }

    /// Uses up a link. None if there is no such link.
    pub(crate) fn take(&self, code: &str, now_secs: u64) -> Option<PeerIdentity> {
        let code: BearerToken = code.parse().ok()?;
        let link = lock(&self.links).remove(&code.hash())?;
        (link.until > now_secs).then_some(link.peer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tessera_protocol::client::Role;

    fn peer(number: u64) -> PeerIdentity {
        PeerIdentity::new(Role::Artist, "ada", None).unwrap().numbered(number)
    }

    #[test]
    fn a_link_works_once_and_for_two_minutes() {
        let links = Links::default();
        let code = links.make(&peer(3), 100).unwrap();
        assert_eq!(links.take("tsb1_other", 100), None);
        assert_eq!(links.take(&code, 219), Some(peer(3)));
        assert_eq!(links.take(&code, 219), None, "it is used up");
        let late = links.make(&peer(3), 100).unwrap();
        assert_eq!(links.take(&late, 220), None);
    }

    #[test]
    fn links_of_one_member_end_those_before_them() {
        let links = Links::default();
        let other = links.make(&peer(4), 0).unwrap();
        let codes: Vec<_> =
            (0..20).map(|now| links.make(&peer(3), now).expect("the oldest ends")).collect();
        let working = codes.iter().filter(|code| links.take(code, 20).is_some()).count();
        assert_eq!(working, PER_MEMBER_MAX);
        assert_eq!(links.take(&other, 20), Some(peer(4)), "others keep theirs");
    }
}
