//! What clients hear of tokens, of who is denied, of the audit log and of the authority. Owns no
//! rule.

use crate::role::Role;
use serde::{Deserialize, Serialize};

/// Tokens in one answer at most; a longer list is asked for in pages.
pub const TOKEN_PAGE_MAX: usize = 1000;
/// Entries of the audit log in one answer at most.
pub const LOG_PAGE_MAX: usize = 1000;
/// Identities that a farm denies at most.
pub const DENIED_MAX: usize = 10_000;

/// What a new join token is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenScope {
    /// What it lets its bearer become.
    pub role: Role,
    /// The pool that nodes become part of; None for nodes of no pool, and for people.
    pub pool: Option<String>,
    /// The name that its bearer must have; None: any.
    pub name: Option<String>,
    /// Seconds it is good for, 1 to 31,536,000.
    pub ttl_secs: u64,
    /// Times it may be used, 1 to 10,000.
    pub uses: u32,
}

/// A join token as its ledger shows it: without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenSummary {
    /// Names it: the first digits of its hash.
    pub id: String,
    /// What it lets its bearer become.
    pub role: Role,
    /// The pool of the nodes that it lets in.
    pub pool: Option<String>,
    /// The name that its bearer must have.
    pub name: Option<String>,
    /// Seconds since the Unix epoch from which it is good no more.
    pub expires_at: u64,
    /// Times it may be used in all; 0 where an older build made it and did not say.
    pub uses: u32,
    /// Times it may still be used.
    pub uses_left: u32,
    /// Who made it; empty where an older build did.
    pub made_by: String,
}

/// One entry of the audit log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEntry {
    /// Its number, from 1 on, without a gap.
    pub n: u64,
    /// Seconds since the Unix epoch.
    pub at: u64,
    /// Who did it: role and name.
    pub who: String,
    /// What was done.
    pub what: String,
    /// To what or whom, and how.
    pub about: String,
    /// Hexadecimal BLAKE3 over the hash of the entry before and everything above.
    pub hash: String,
}

impl LogEntry {
    /// The hash that this entry must have after the one with that hash.
    pub fn chained_to(&self, before: &str) -> String {
        let mut hasher = blake3::Hasher::new_derive_key("tessera 2026 audit log entry");
        for part in [before, &self.who, &self.what, &self.about] {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
        }
        hasher.update(&self.n.to_le_bytes()).update(&self.at.to_le_bytes());
        hasher.finalize().to_hex().to_string()
    }
}

/// What a reading of the audit log found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogReport {
    /// Number of the oldest entry that is kept; 0 where there is none.
    pub first: u64,
    /// Entries kept.
    pub entries: u64,
    /// Hexadecimal hash of the newest entry: whoever notes it elsewhere can tell later that the log
    /// still goes on from it.
    pub head: String,
    /// Everything that is wrong with the chain, a line each; empty is good.
    pub problems: Vec<String>,
    /// The newest entries, oldest first.
    pub newest: Vec<LogEntry>,
}

/// The farm's authority.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthorityStatus {
    /// Hexadecimal BLAKE3 of its public key, which join tokens name.
    pub pin: String,
    /// Seconds since the Unix epoch until which the former one is trusted beside it; None where
    /// there is none.
    pub former_until: Option<u64>,
}

/// An identity that may not be here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeniedIdentity {
    /// `node:UUID`, or `user:NAME`.
    pub identity: String,
    /// The node's name, as it was known then; empty for people.
    pub name: String,
    /// Who denied it.
    pub by: String,
    /// Seconds since the Unix epoch.
    pub at: u64,
    /// Why, in words.
    pub reason: String,
}
