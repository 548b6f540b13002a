//! The ledger of join tokens, which let nodes and users enrol. Keeps only hashes. Counts a use
//! durably before it gives the certificate.

use super::members::{Enrolled, Members};
use crate::store::{Commit, StoreQueue, TokenHash};
use std::collections::BTreeMap;
use tessera_protocol::access::TokenScope;
use tessera_protocol::client::{EnrolRequest, RequestError, Role};
use tessera_transport::member::is_reserved;
use tessera_transport::peer::is_name;
use tessera_transport::{Authority, JoinToken, PeerIdentity, TokenError, TokenRecord, TokenUse};
use tokio::sync::Mutex;

/// Longest life of a token in seconds: one year.
const TTL_SECS_MAX: u64 = 31_536_000;
/// Most uses of a token.
const USES_MAX: u32 = 10_000;
/// Most tokens that are valid at the same time.
const TOKENS_MAX: usize = 100_000;

/// The ledger of join tokens. It handles one enrolment at a time, so that no use counts twice.
#[derive(Debug)]
pub(crate) struct Ledger {
    records: Mutex<BTreeMap<TokenHash, TokenRecord>>,
    store: StoreQueue,
}

impl Ledger {
    /// Creates the ledger from the store's content. Changes go to `store`.
    pub(crate) fn new(records: BTreeMap<TokenHash, TokenRecord>, store: StoreQueue) -> Self {
        Self { records: Mutex::new(records), store }
    }

    /// Creates a token for this scope, made by `by`. The token is durable on return.
    pub(crate) async fn create(
        &self,
        authority: &Authority,
        scope: TokenScope,
        by: &str,
        now_secs: u64,
    ) -> Result<JoinToken, RequestError> {
        check_scope(&scope)?;
        let token = JoinToken::generate(authority.pin())
            .map_err(|error| RequestError::Unavailable(error.to_string()))?;
        let TokenScope { role, pool, name, ttl_secs, uses, replace } = scope;
        let record = TokenRecord {
            hash: token.hash(),
            role,
            expires_at: now_secs.saturating_add(ttl_secs),
            uses_left: uses,
            pool,
            uses,
            made_by: by.to_owned(),
            name,
            replace,
            purpose: TokenUse::Join,
        };
        let mut records = self.records.lock().await;
        self.forget_expired(&mut records, now_secs);
        if records.len() >= TOKENS_MAX {
            return Err(RequestError::Unavailable(format!(
                "{TOKENS_MAX} tokens are valid already"
            )));
        }
        self.make_durable(token.hash(), Some(record.clone())).await?;
        records.insert(token.hash(), record);
        Ok(token)
    }

    /// Returns the tokens that have not expired.
    pub(crate) async fn list(&self, now_secs: u64) -> Vec<TokenRecord> {
        let mut records = self.records.lock().await;
        self.forget_expired(&mut records, now_secs);
        records.values().cloned().collect()
    }

    /// Revokes a token, durably. Identities that already used it stay valid.
    pub(crate) async fn revoke(&self, hash: TokenHash) -> Result<(), RequestError> {
        let mut records = self.records.lock().await;
        self.make_durable(hash, None).await?;
        records.remove(&hash);
        Ok(())
    }

    /// Answers an enrolment, if `admits` does not refuse the new identity. The use of the token and
    /// the member are durable, in one commit, before the certificate is returned.
    pub(crate) async fn enrol(
        &self,
        (authority, members): (&Authority, &Members),
        request: &EnrolRequest,
        now_secs: u64,
        admits: impl Fn(&PeerIdentity) -> Result<(), String>,
    ) -> Result<Enrolled, String> {
        let hash = tessera_transport::token::hash_secret(&request.secret);
        let mut records = self.records.lock().await;
        let record = records.get(&hash).ok_or(TokenError::Unknown).map_err(refusal)?;
        let grant = record.check(&request.secret, now_secs).map_err(refusal)?;
        // A used-up token stays in the ledger until it expires, so that its bearer gets the right
        // error.
        let mut used = record.clone();
        used.uses_left -= 1;
        let (mut commit, durable) = Commit::new();
        commit.token = Some((hash, Some(used.clone())));
        let commit = (commit, durable);
        let enrolled = members.enrol(authority, (&grant, request), now_secs, commit, admits)?;
        records.insert(hash, used);
        let stopping = |_| "the coordinator is stopping".to_owned();
        enrolled.durable.await.map_err(stopping)?;
        Ok(enrolled.done)
    }

    fn forget_expired(&self, records: &mut BTreeMap<TokenHash, TokenRecord>, now_secs: u64) {
        let expired: Vec<TokenHash> = records
            .values()
            .filter(|record| record.expires_at <= now_secs)
            .map(|record| record.hash)
            .collect();
        for hash in expired {
            records.remove(&hash);
            let (mut commit, _) = Commit::new();
            commit.token = Some((hash, None));
            // If the store has stopped, the token has expired all the same.
            drop(self.store.send(commit));
        }
    }

    async fn make_durable(
        &self,
        hash: TokenHash,
        record: Option<TokenRecord>,
    ) -> Result<(), RequestError> {
        let stopped = || RequestError::Unavailable("the coordinator is stopping".into());
        let (mut commit, told) = Commit::new();
        commit.token = Some((hash, record));
        self.store.send(commit).map_err(|_| stopped())?;
        told.await.map_err(|_| stopped())
    }
}

fn check_scope(scope: &TokenScope) -> Result<(), RequestError> {
    let TokenScope { role, pool, name, ttl_secs, uses, replace } = scope;
    if !(1..=TTL_SECS_MAX).contains(ttl_secs) {
        let text = format!("ttl of {ttl_secs} s is not in 1 s to a year ({TTL_SECS_MAX} s)");
        return Err(RequestError::Invalid(text));
    }
    if !(1..=USES_MAX).contains(uses) {
        return Err(RequestError::Invalid(format!("uses {uses} is not in 1 to {USES_MAX}")));
    }
    if let Some(name) = name.as_deref().filter(|name| !is_name(name)) {
        return Err(RequestError::Invalid(format!(
            "name {name:?} is not 1 to 128 letters, digits and `.`, `_`, `-`, `@`"
        )));
    }
    if let Some(name) = name.as_deref().filter(|name| is_reserved(name)) {
        return Err(RequestError::Invalid(format!("the name `{name}` is reserved")));
    }
    if *replace && name.is_none() {
        let text = "a token that replaces a holder is for one name: --name NAME --replace";
        return Err(RequestError::Invalid(text.to_owned()));
    }
    match pool {
        Some(_) if *role != Role::Node => Err(RequestError::Invalid(format!(
            "only nodes belong to a pool, and this token is for the role {role}"
        ))),
        Some(pool) if !is_name(pool) => Err(RequestError::Invalid(format!(
            "pool {pool:?} is not 1 to 128 letters, digits and `.`, `_`, `-`, `@`"
        ))),
        _ => Ok(()),
    }
}

fn refusal(error: TokenError) -> String {
    format!("{error}; ask the farm's administrator for a new one (`tessera token create`)")
}
