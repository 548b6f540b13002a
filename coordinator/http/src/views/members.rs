//! Identities, tokens, denials and the audit log in JSON. Times are seconds since the Unix epoch.

use serde::Serialize;
use tessera_coordinator::api::Bearer;
use tessera_protocol::access;
use utoipa::ToSchema;

/// Who is signed in.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Me {
    /// Name of the identity.
    pub(crate) name: String,
    /// Number of the identity.
    pub(crate) number: u64,
    /// What the session or token may do: `viewer`, `artist`, `operator` or `admin`.
    pub(crate) role: String,
    /// `session` or `api`.
    pub(crate) kind: String,
    /// When the session or token ends.
    pub(crate) expires_at: u64,
}

impl From<&Bearer> for Me {
    fn from(bearer: &Bearer) -> Self {
        Self {
            name: bearer.caller.name().to_owned(),
            number: bearer.caller.number(),
            role: bearer.caller.role().to_string(),
            kind: bearer.kind.name().to_owned(),
            expires_at: bearer.expires_at,
        }
    }
}

/// A token, without its secret.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Token {
    /// First digits of the token's hash, which name it.
    id: String,
    /// The role that the token gives to its bearer.
    role: String,
    /// The pool that a node joins.
    pool: Option<String>,
    /// The name that the bearer must have, or whom it acts for.
    name: Option<String>,
    /// When the token expires.
    expires_at: u64,
    /// How often the token can be used in all.
    uses: u32,
    /// How often the token can still be used.
    uses_left: u32,
    /// Who made the token: role and name.
    made_by: String,
    /// Whether the bearer replaces the present holder of the name.
    replace: bool,
    /// `join`, `api` or `session`.
    kind: String,
}

impl From<&access::TokenSummary> for Token {
    fn from(token: &access::TokenSummary) -> Self {
        Self {
            id: token.id.clone(),
            role: token.role.to_string(),
            pool: token.pool.clone(),
            name: token.name.clone(),
            expires_at: token.expires_at,
            uses: token.uses,
            uses_left: token.uses_left,
            made_by: token.made_by.clone(),
            replace: token.replace,
            kind: token.kind.name().to_owned(),
        }
    }
}

/// Who holds a name of the farm.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Member {
    /// Number of the identity.
    number: u64,
    /// Name that it holds.
    name: String,
    /// Role of its certificates.
    role: String,
    /// Id of a node; null for a person.
    node: Option<String>,
    /// When it was enrolled, or last replaced.
    enrolled_at: u64,
    /// When its newest certificate ends; or the role of one who signs in by a provider.
    expires_at: u64,
    /// Serial number of the newest certificate that was given.
    issued: u64,
    /// Serial number of the newest certificate that was shown.
    used: u64,
    /// Whether it is on the deny-list.
    denied: bool,
    /// What an operator should know or decide; empty if there is nothing.
    note: String,
    /// Identity provider by which a person signs in; null for one who has certificates.
    provider: Option<String>,
}

impl From<&access::MemberSummary> for Member {
    fn from(member: &access::MemberSummary) -> Self {
        Self {
            number: member.number,
            name: member.name.clone(),
            role: member.role.to_string(),
            node: member.node.map(|node| node.to_string()),
            enrolled_at: member.enrolled_at,
            expires_at: member.expires_at,
            issued: member.issued,
            used: member.used,
            denied: member.denied,
            note: member.note.clone(),
            provider: member.provider.clone(),
        }
    }
}

/// An identity that the farm shuts out.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Denied {
    /// `node:UUID` or `user:NAME`.
    identity: String,
    /// Number of the identity.
    number: u64,
    /// The node's name when it was denied; empty for people.
    name: String,
    /// Who denied it.
    by: String,
    /// When it was denied.
    at: u64,
    /// Reason, for people.
    reason: String,
}

impl From<&access::DeniedIdentity> for Denied {
    fn from(denied: &access::DeniedIdentity) -> Self {
        let access::DeniedIdentity { identity, number, name, by, at, reason } = denied.clone();
        Self { identity, number, name, by, at, reason }
    }
}

/// One entry of the audit log.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct LogEntry {
    /// Number of the entry, from 1 without a gap.
    n: u64,
    /// When it was done.
    at: u64,
    /// Who did it.
    who: String,
    /// What was done.
    what: String,
    /// To what, and details.
    about: String,
    /// BLAKE3 of the previous entry's hash and of all fields above.
    hash: String,
}

/// The audit log: whether its chain is intact, and its newest entries.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct LogReport {
    /// Number of the oldest entry that is kept; 0 if there is none.
    first: u64,
    /// Number of entries that are kept.
    entries: u64,
    /// Hash of the newest entry.
    head: String,
    /// Faults of the chain. Empty if it is intact.
    problems: Vec<String>,
    /// The newest entries, oldest first.
    newest: Vec<LogEntry>,
}

impl From<access::LogReport> for LogReport {
    fn from(report: access::LogReport) -> Self {
        let access::LogReport { first, entries, head, problems, newest } = report;
        let entry = |entry: access::LogEntry| {
            let access::LogEntry { n, at, who, what, about, hash } = entry;
            LogEntry { n, at, who, what, about, hash }
        };
        let newest = newest.into_iter().map(entry).collect();
        Self { first, entries, head, problems, newest }
    }
}
