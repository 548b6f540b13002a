//! Bearer tokens: sessions of browsers, and tokens of programs. Whoever shows one makes HTTP
//! requests for a member, with at most that member's present rights. Their records lie in the same
//! table of the store as join tokens.

use super::members::Members;
use crate::store::{Commit, StoreQueue, TokenHash};
use crate::sync::lock;
use std::collections::BTreeMap;
use std::sync::Mutex;
use tessera_protocol::access::{TokenKind, TokenSummary};
use tessera_protocol::client::{RequestError, Role};
use tessera_transport::member::{ADMIN_NAME, ADMIN_NUMBER};
use tessera_transport::{BearerToken, PeerIdentity, TokenRecord, TokenUse};

/// How long a browser stays signed in, in seconds: a week.
pub(crate) const SESSION_SECS: u64 = 7 * 86_400;
/// Most sessions of one member. A further one ends the oldest.
const SESSIONS_PER_MEMBER_MAX: usize = 16;
/// Most tokens of one member's programs.
const API_PER_MEMBER_MAX: usize = 64;
/// Most bearer tokens of the farm.
const BEARERS_MAX: usize = 50_000;

/// The table of bearer tokens. Looking one up never waits for the store.
#[derive(Debug)]
pub(crate) struct Bearers {
    table: Mutex<BTreeMap<TokenHash, TokenRecord>>,
    store: StoreQueue,
}

/// What a new bearer token gives.
#[derive(Clone, Debug)]
pub(crate) struct Bearing {
    /// Member that the bearer acts for; the role limits what it may do.
    pub(crate) peer: PeerIdentity,
    pub(crate) purpose: TokenUse,
    pub(crate) secs: u64,
    /// Who made it: role and name.
    pub(crate) by: String,
}

/// A bearer who was recognised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bearer {
    /// First digits of the token's hash, which name it.
    pub id: String,
    /// Whom the bearer acts for.
    pub caller: crate::api::Caller,
    /// Session or API token.
    pub kind: TokenKind,
    /// When the token expires, in seconds since the Unix epoch.
    pub expires_at: u64,
    hash: TokenHash,
}

impl Bearers {
    /// Creates the table from the store's content. Changes go to `store`.
    pub(crate) fn new(
        records: impl IntoIterator<Item = (TokenHash, TokenRecord)>,
        store: StoreQueue,
    ) -> Self {
        Self { table: Mutex::new(records.into_iter().collect()), store }
    }

    /// Takes over the tokens of the coordinator that leads.
    pub(crate) fn follow(&self, records: impl IntoIterator<Item = (TokenHash, TokenRecord)>) {
        *lock(&self.table) = records.into_iter().collect();
    }

    /// Creates a token, which is durable on return.
    pub(crate) async fn create(
        &self,
        bearing: Bearing,
        now_secs: u64,
    ) -> Result<BearerToken, RequestError> {
        let token = BearerToken::generate()
            .map_err(|error| RequestError::Unavailable(error.to_string()))?;
        let Bearing { peer, purpose, secs, by } = bearing;
        let record = TokenRecord {
            hash: token.hash(),
            role: peer.role,
            expires_at: now_secs.saturating_add(secs),
            uses_left: 1,
            pool: None,
            uses: 1,
            made_by: by,
            name: Some(peer.name),
            replace: false,
            purpose,
        };
        let oldest = self.room_for(purpose, now_secs)?;
        self.forget(oldest);
        let (mut commit, durable) = Commit::new();
        commit.token = Some((record.hash, Some(record.clone())));
        self.store.send(commit).map_err(|_| stopping())?;
        durable.await.map_err(|_| stopping())?;
        lock(&self.table).insert(record.hash, record);
        Ok(token)
    }

    /// Returns which tokens end for a new one: those that have expired, and a member's oldest
    /// session where there are too many.
    fn room_for(&self, purpose: TokenUse, now_secs: u64) -> Result<Vec<TokenHash>, RequestError> {
        let table = lock(&self.table);
        let is_over = |record: &&TokenRecord| record.expires_at <= now_secs;
        let mut ended: Vec<TokenHash> =
            table.values().filter(is_over).map(|record| record.hash).collect();
        let live = || table.values().filter(|record| record.expires_at > now_secs);
        let own: Vec<&TokenRecord> = live().filter(|record| record.purpose == purpose).collect();
        match purpose {
            TokenUse::Session(_) if own.len() >= SESSIONS_PER_MEMBER_MAX => {
                let oldest = own.iter().min_by_key(|record| record.expires_at);
                ended.extend(oldest.map(|record| record.hash));
            }
            TokenUse::Api(_) if own.len() >= API_PER_MEMBER_MAX => {
                return Err(RequestError::Unavailable(format!(
                    "{API_PER_MEMBER_MAX} API tokens act for this member already; revoke one \
                     (`tessera token revoke ID`)"
                )));
            }
            _ if table.len() - ended.len() >= BEARERS_MAX => {
                return Err(RequestError::Unavailable(format!(
                    "{BEARERS_MAX} sessions and API tokens are valid already"
                )));
            }
            _ => {}
        }
        Ok(ended)
    }

    /// Ends tokens. If the store has stopped, they have ended all the same in this process.
    fn forget(&self, hashes: Vec<TokenHash>) {
        for hash in hashes {
            lock(&self.table).remove(&hash);
            let (mut commit, _) = Commit::new();
            commit.token = Some((hash, None));
            drop(self.store.send(commit));
        }
    }

    /// Returns who shows a token; None if it is not known, has expired, or its member is gone.
    pub(crate) fn find(
        &self,
        token: &BearerToken,
        members: &Members,
        now_secs: u64,
    ) -> Option<Bearer> {
        self.holder(token.hash(), members, now_secs)
    }

    /// Returns whether a bearer still is one.
    pub(crate) fn holds(&self, bearer: &Bearer, members: &Members, now_secs: u64) -> bool {
        self.holder(bearer.hash, members, now_secs).as_ref() == Some(bearer)
    }

    fn holder(&self, hash: TokenHash, members: &Members, now_secs: u64) -> Option<Bearer> {
        let record = lock(&self.table).get(&hash).cloned()?;
        if record.expires_at <= now_secs {
            return None;
        }
        let number = record.purpose.member()?;
        let (holder, name) = match number {
            ADMIN_NUMBER => (Role::Admin, ADMIN_NAME.to_owned()),
            _ => {
                let member = members.of_number(number)?;
                // The groups that gave the role are looked up when the person signs in.
                if member.login.is_some() && member.expires_at <= now_secs {
                    return None;
                }
                (member.role, member.name)
            }
        };
        let role = if holder.covers(record.role) { record.role } else { holder };
        let peer = PeerIdentity::new(role, &name, None).ok()?.numbered(number);
        let kind = kind(record.purpose);
        let (id, expires_at) = (record.id(), record.expires_at);
        Some(Bearer { id, caller: crate::api::Caller::from(&peer), kind, expires_at, hash })
    }

    /// Returns the records that have not expired, of one member or of all, by their hashes.
    pub(crate) fn list(&self, of: Option<u64>, now_secs: u64) -> Vec<TokenRecord> {
        let table = lock(&self.table);
        let wanted = |record: &&TokenRecord| {
            record.expires_at > now_secs && (of.is_none() || record.purpose.member() == of)
        };
        table.values().filter(wanted).cloned().collect()
    }

    /// Ends a token, durably.
    pub(crate) async fn end(&self, hash: TokenHash) -> Result<(), RequestError> {
        lock(&self.table).remove(&hash);
        let (mut commit, durable) = Commit::new();
        commit.token = Some((hash, None));
        self.store.send(commit).map_err(|_| stopping())?;
        durable.await.map_err(|_| stopping())
    }
}

fn stopping() -> RequestError {
    RequestError::Unavailable("the coordinator is stopping".into())
}

fn kind(purpose: TokenUse) -> TokenKind {
    match purpose {
        TokenUse::Join => TokenKind::Join,
        TokenUse::Api(_) => TokenKind::Api,
        TokenUse::Session(_) => TokenKind::Session,
    }
}

/// Returns a token as listings show it.
pub(crate) fn summary(record: &TokenRecord) -> TokenSummary {
    TokenSummary {
        id: record.id(),
        role: record.role,
        pool: record.pool.clone(),
        name: record.name.clone(),
        expires_at: record.expires_at,
        uses: record.uses,
        uses_left: record.uses_left,
        made_by: record.made_by.clone(),
        replace: record.replace,
        kind: kind(record.purpose),
    }
}
