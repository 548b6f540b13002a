//! Answers about join tokens, denied identities, the audit log and the authority. Owns no rule.

use crate::ids::NodeId;
use crate::role::Role;
use serde::{Deserialize, Serialize};

/// Most tokens in one answer. Clients ask for a longer list in pages.
pub const TOKEN_PAGE_MAX: usize = 1000;
/// Most entries of the audit log in one answer.
pub const LOG_PAGE_MAX: usize = 1000;
/// Most identities that a farm can deny.
pub const DENIED_MAX: usize = 10_000;

/// Rights that a new join token gives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenScope {
    /// The role that the token gives to its bearer.
    pub role: Role,
    /// The pool that a node joins; None for nodes without a pool, and for people.
    pub pool: Option<String>,
    /// The name that the bearer must have; None allows any name.
    pub name: Option<String>,
    /// Seconds until the token expires, 1 to 31,536,000.
    pub ttl_secs: u64,
    /// How often the token can be used, 1 to 10,000.
    pub uses: u32,
    /// Whether the bearer may take a name that somebody holds already: that holder's certificates
    /// then no longer count. Needs a name.
    pub replace: bool,
}

/// Rights of a new token for HTTP requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiTokenScope {
    /// Most that the bearer may do; None: what the owner may. The owner's own role limits it, also
    /// later.
    pub role: Option<Role>,
    /// Member whom the bearer acts for: name or `#` and number. None: who asks.
    pub owner: Option<String>,
    /// Seconds until the token expires, 1 to 31,536,000.
    pub ttl_secs: u64,
}

/// What a token is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenKind {
    /// Joining the farm.
    Join,
    /// HTTP requests of programs.
    Api,
    /// A browser that is signed in.
    Session,
}

impl TokenKind {
    /// Returns the name, as people read it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Join => "join",
            Self::Api => "api",
            Self::Session => "session",
        }
    }
}

/// A token as its ledger shows it, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenSummary {
    /// First digits of the token's hash, which name it.
    pub id: String,
    /// The role that the token gives to its bearer.
    pub role: Role,
    /// The pool that a node joins.
    pub pool: Option<String>,
    /// The name that the bearer must have.
    pub name: Option<String>,
    /// When the token expires, in seconds since the Unix epoch.
    pub expires_at: u64,
    /// How often the token can be used in all.
    pub uses: u32,
    /// How often the token can still be used.
    pub uses_left: u32,
    /// Who made the token: role and name.
    pub made_by: String,
    /// Whether the bearer replaces the present holder of the name.
    pub replace: bool,
    /// What the token is for. A token of a member has the member's name.
    pub kind: TokenKind,
}

/// Most members in one answer. Clients ask for a longer list in pages.
pub const MEMBER_PAGE_MAX: usize = 1000;

/// Who holds a name of the farm. Times are seconds since the Unix epoch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberSummary {
    /// Number of the identity. Ownership, denials and the audit log go by it, and no other identity
    /// of the farm ever has it.
    pub number: u64,
    /// Name that it holds.
    pub name: String,
    /// Role of its certificates.
    pub role: Role,
    /// Id of a node; None for a person.
    pub node: Option<NodeId>,
    /// When it was enrolled, or last replaced.
    pub enrolled_at: u64,
    /// When its newest certificate ends; or the role of one who signs in by a provider.
    pub expires_at: u64,
    /// Serial number of the newest certificate that was given.
    pub issued: u64,
    /// Serial number of the newest certificate that was shown.
    pub used: u64,
    /// Whether it is on the deny-list.
    pub denied: bool,
    /// What an operator should know or decide; empty if there is nothing.
    pub note: String,
    /// Identity provider by which a person signs in; None for one who has certificates.
    pub provider: Option<String>,
}

/// Which of two copies of an identity an operator trusts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Keep {
    /// The one with the newer certificate.
    Newer,
    /// The one that came with the older certificate.
    Older,
}

/// One entry of the audit log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEntry {
    /// Number of the entry. Entries are counted from 1, without a gap.
    pub n: u64,
    /// Seconds since the Unix epoch.
    pub at: u64,
    /// Role and name of the client that did it.
    pub who: String,
    /// Action that was done, in words.
    pub what: String,
    /// The object of the action, and details.
    pub about: String,
    /// Hexadecimal BLAKE3 of the previous entry's hash and of all fields above.
    pub hash: String,
}

impl LogEntry {
    /// Returns the hash that this entry must have if the previous entry has the hash `before`.
    pub fn chained_to(&self, before: &str) -> String {
        let mut hasher = blake3::Hasher::new_derive_key("tessera 2026 audit log entry");
        for part in [before, &self.who, &self.what, &self.about] {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
        }
        hasher.update(&self.n.to_le_bytes()).update(&self.at.to_le_bytes());
        hasher.finalize().to_hex().to_string()
    }
}

/// Result of reading the audit log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogReport {
    /// Number of the oldest entry that is kept; 0 if there is none.
    pub first: u64,
    /// Number of entries that are kept.
    pub entries: u64,
    /// Hexadecimal hash of the newest entry. A copy of it that is kept elsewhere shows later
    /// whether the log still contains that entry.
    pub head: String,
    /// Faults of the chain, one per line. Empty if the chain is intact.
    pub problems: Vec<String>,
    /// The newest entries, oldest first.
    pub newest: Vec<LogEntry>,
}

/// The farm's certificate authority.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthorityStatus {
    /// Hexadecimal BLAKE3 of the authority's public key. Join tokens name it.
    pub pin: String,
    /// When the former authority stops being trusted, in seconds since the Unix epoch; None if
    /// there is no former authority.
    pub former_until: Option<u64>,
}

/// An identity that the farm shuts out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeniedIdentity {
    /// `node:UUID` or `user:NAME`.
    pub identity: String,
    /// Number of the identity. The denial goes by it, whatever the identity is called.
    pub number: u64,
    /// The node's name when it was denied; empty for people.
    pub name: String,
    /// Name of the admin that denied the identity.
    pub by: String,
    /// When it was denied, in seconds since the Unix epoch.
    pub at: u64,
    /// Reason that the admin gave, for people.
    pub reason: String,
}
