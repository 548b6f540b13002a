//! Members of a farm: who holds a name, and which of the holder's certificates count. A pure rule:
//! the coordinator keeps the records and says what time it is.
//!
//! Certificates of a member have serial numbers that grow. A newer one replaces the older ones when
//! it is first *shown*, not when it is given, because the answer with it can be lost. An older one
//! that is shown after that comes from another copy of the identity.

use crate::identity::peer::PeerIdentity;
use serde::{Deserialize, Serialize};
use tessera_protocol::NodeId;
use tessera_protocol::access::Keep;
use tessera_protocol::client::Role;

/// Names that nobody can enrol under, in any spelling of small and capital letters.
pub const RESERVED_NAMES: [&str; 5] = ["admin", "administrator", "all", "everyone", "nobody"];
/// Name of the identity in the coordinator's own data folder.
pub const ADMIN_NAME: &str = "admin";
/// Number of the identity in the coordinator's own data folder. It is no member: the coordinator
/// makes its certificates itself, and nobody else renews them.
pub const ADMIN_NUMBER: u64 = 1;
/// Longest time, in seconds, for which an older certificate may still be shown: another command of
/// the same person may have read it before it was replaced.
const SETTLE_SECS_MAX: u64 = 60;

/// Two copies of one identity: an older certificate was shown after a newer one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conflict {
    /// When the older certificate was shown, in seconds since the Unix epoch.
    pub at: u64,
    /// Serial number of the older certificate.
    pub older: u64,
    /// Serial number of the newest certificate that was shown before.
    pub newer: u64,
    /// Address that the older one came from.
    pub from: String,
    /// Address that the newer one was first shown from.
    pub newer_from: String,
}

/// A person as an identity provider knows them. Both texts together name one person for ever.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Login {
    /// Address of the provider, as its tokens have it.
    pub issuer: String,
    /// The provider's own name of the person, which is given to nobody else.
    pub subject: String,
}

/// A member: one holder of one name. Times are seconds since the Unix epoch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberRecord {
    /// Number of the identity.
    pub number: u64,
    /// Name that it holds.
    pub name: String,
    /// Role of its certificates.
    pub role: Role,
    /// Id of a node; None for a person.
    pub node: Option<NodeId>,
    /// When it was enrolled, or last replaced.
    pub enrolled_at: u64,
    /// Serial number of the newest certificate that was given.
    pub issued: u64,
    /// When the newest certificate ends.
    pub expires_at: u64,
    /// Serial number of the newest certificate that was shown; 0 before the first.
    pub used: u64,
    /// When that one was first shown.
    pub used_at: u64,
    /// Address that it was first shown from.
    pub used_from: String,
    /// Certificates with a lower serial number do not count.
    pub floor: u64,
    /// The one certificate below the floor that counts, because an operator decided so.
    pub kept: Option<u64>,
    /// The conflict that an operator has to decide.
    pub conflict: Option<Conflict>,
    /// When the name was taken away. The record is kept until the last certificate is useless.
    pub removed_at: Option<u64>,
    /// Who signs in by an identity provider instead of a certificate. Then `expires_at` is when the
    /// role that the last sign-in gave ends.
    pub login: Option<Login>,
}

/// What becomes of a certificate that is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shown {
    /// It counts, and nothing has changed.
    Counts,
    /// It counts, and from now on the older ones do not.
    First,
    /// It is older than one that was shown before. This has ended the identity until an operator
    /// decides.
    Conflict,
    /// It does not count. The text is for its holder.
    Refused(String),
}

impl MemberRecord {
    /// Creates the record of a member that has no certificate yet.
    pub fn new(number: u64, peer: &PeerIdentity, now_secs: u64) -> Self {
        Self {
            number,
            name: peer.name.clone(),
            role: peer.role,
            node: peer.node,
            enrolled_at: now_secs,
            issued: 0,
            expires_at: 0,
            used: 0,
            used_at: 0,
            used_from: String::new(),
            floor: 1,
            kept: None,
            conflict: None,
            removed_at: None,
            login: None,
        }
    }

    /// Creates the record of a certificate of the farm that no record knows, because the records
    /// are older than it: they come from a backup.
    pub fn of_certificate(peer: &PeerIdentity, expires_at: u64, now_secs: u64) -> Self {
        Self { expires_at, ..Self::new(peer.number, peer, now_secs) }
    }

    /// Returns how long an older certificate may still be shown after a newer one, for certificates
    /// with this life: a minute, or a twentieth of a short life.
    pub fn settle_secs(life_secs: u64) -> u64 {
        (life_secs / 20).min(SETTLE_SECS_MAX)
    }

    /// Returns whether this is the member that a certificate names.
    pub fn is(&self, peer: &PeerIdentity) -> bool {
        self.number == peer.number && self.name == peer.name && self.node == peer.node
    }

    /// Returns why a certificate does not count; None if it does. Changes nothing: for connections
    /// that exist already.
    pub fn refusal(&self, serial: u64) -> Option<String> {
        let who = self.who();
        if self.removed_at.is_some() {
            return Some(format!(
                "the name was taken away from {who}; an admin can make a token for it: \
                 `tessera token create --role {} --name {}`",
                self.role, self.name
            ));
        }
        if let Some(conflict) = &self.conflict {
            return Some(format!(
                "there are two copies of the identity of {who}: certificate {} came from {} after \
                 certificate {} had come from {}; neither counts until an operator decides: \
                 `tessera members keep {} --newer`, or `--older`",
                conflict.older, conflict.from, conflict.newer, conflict.newer_from, self.name
            ));
        }
        if serial < self.floor && self.kept != Some(serial) {
            return Some(format!(
                "certificate {serial} of {who} no longer counts: the identity was enrolled again, \
                 or an operator trusts another copy of it; if this machine or person is the right \
                 one, an admin can make a token: `tessera token create --role {} --name {} \
                 --replace`",
                self.role, self.name
            ));
        }
        None
    }

    /// Takes note of a certificate that was shown in a new connection.
    pub fn show(&mut self, serial: u64, (now_secs, settle): (u64, u64), from: &str) -> Shown {
        if let Some(refusal) = self.refusal(serial) {
            return Shown::Refused(refusal);
        }
        if serial == self.used {
            return Shown::Counts;
        }
        if serial > self.used {
            (self.used, self.used_at, self.used_from) = (serial, now_secs, from.to_owned());
            self.issued = self.issued.max(serial);
            self.kept = None;
            return Shown::First;
        }
        if now_secs < self.used_at.saturating_add(settle) {
            return Shown::Counts;
        }
        self.conflict = Some(Conflict {
            at: now_secs,
            older: serial,
            newer: self.used,
            from: from.to_owned(),
            newer_from: self.used_from.clone(),
        });
        Shown::Conflict
    }

    /// Returns why the holder of this certificate gets no newer one; None if it does.
    pub fn renewal_refusal(&self, serial: u64) -> Option<String> {
        let newer = || {
            let used = self.used;
            let text = format!(
                "certificate {used} of {} is in use already; this connection began with \
                 certificate {serial}",
                self.who()
            );
            (serial < self.used).then_some(text)
        };
        self.refusal(serial).or_else(newer)
    }

    /// Counts a certificate that is given. Returns its serial number.
    pub fn give(&mut self, expires_at: u64) -> u64 {
        self.issued += 1;
        self.expires_at = expires_at;
        self.issued
    }

    /// The name is enrolled again: no earlier certificate counts, and an open conflict is decided.
    pub fn replace(&mut self, peer: &PeerIdentity, now_secs: u64) {
        (self.role, self.node, self.enrolled_at) = (peer.role, peer.node, now_secs);
        (self.floor, self.kept) = (self.issued + 1, None);
        self.conflict = None;
    }

    /// Decides a conflict. False if there is none.
    pub fn keep(&mut self, keep: Keep) -> bool {
        let Some(conflict) = self.conflict.take() else { return false };
        match keep {
            // The newer copy may hold a certificate that it has not shown yet.
            Keep::Newer => (self.floor, self.kept) = (self.used, None),
            Keep::Older => {
                (self.floor, self.kept) = (self.issued + 1, Some(conflict.older));
                (self.used, self.used_from) = (conflict.older, conflict.from);
            }
        }
        true
    }

    /// Returns name and number, for people.
    pub fn who(&self) -> String {
        format!("{} #{}", self.name, self.number)
    }
}

/// Returns whether nobody can enrol under this name.
pub fn is_reserved(name: &str) -> bool {
    RESERVED_NAMES.iter().any(|reserved| reserved.eq_ignore_ascii_case(name))
}

#[cfg(test)]
#[path = "member_tests.rs"]
mod tests;
