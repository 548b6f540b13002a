//! The members of the farm: one durable table of who holds which name, and which of the holder's
//! certificates count. The rule is [`MemberRecord`]'s; this module keeps the records.

use crate::store::{Commit, StoreQueue};
use crate::sync::lock;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use tessera_protocol::NodeId;
use tessera_protocol::access::{Keep, MEMBER_PAGE_MAX, MemberSummary};
use tessera_protocol::client::{EnrolReply, EnrolRequest, Role};
use tessera_protocol::renewal::RenewReply;
use tessera_transport::member::{ADMIN_NUMBER, MemberRecord, Shown, is_reserved};
use tessera_transport::token::Grant;
use tessera_transport::{
    Authority, AuthorityError, Credential, Identity, Lifetimes, PeerIdentity, Validity, enrol,
};
use tokio::sync::oneshot;

/// Most members of a farm.
pub(super) const MEMBERS_MAX: usize = 100_000;

pub(crate) type Table = BTreeMap<u64, MemberRecord>;

/// The table of members, in memory and in the store.
#[derive(Debug)]
pub(crate) struct Members {
    table: Mutex<Table>,
    store: StoreQueue,
    lifetimes: Lifetimes,
}

/// An enrolment.
pub(crate) struct Enrolled {
    pub(crate) peer: PeerIdentity,
    pub(crate) serial: u64,
    pub(crate) reply: EnrolReply,
    /// What happened, for the audit log.
    pub(crate) what: &'static str,
}

/// An enrolment that is in memory, and not yet durable.
pub(super) struct Enrolling {
    pub(super) done: Enrolled,
    pub(super) durable: oneshot::Receiver<()>,
}

/// A new certificate for a member that is in memory, and not yet durable.
pub(crate) struct Renewed {
    pub(crate) reply: RenewReply,
    pub(crate) validity: Validity,
    pub(crate) serial: u64,
    pub(crate) durable: oneshot::Receiver<()>,
}

impl Members {
    /// Creates the table from the store's content. Changes go to `store`.
    pub(crate) fn new(table: Table, store: StoreQueue, lifetimes: Lifetimes) -> Self {
        Self { table: Mutex::new(table), store, lifetimes }
    }

    /// Takes over the table of the coordinator that leads.
    pub(crate) fn follow(&self, table: Table) {
        *self.lock() = table;
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Table> {
        lock(&self.table)
    }

    /// Sends changed members to the store, in the order of the changes: the table is still locked.
    pub(super) fn keep_durably(
        &self,
        table: &Table,
        changed: impl IntoIterator<Item = u64>,
        (mut commit, durable): (Commit, oneshot::Receiver<()>),
    ) -> oneshot::Receiver<()> {
        let changed = changed.into_iter().map(|number| (number, table.get(&number).cloned()));
        commit.members.extend(changed);
        // If the store has stopped, the coordinator is stopping, and nobody hears of the change.
        drop(self.store.send(commit));
        durable
    }

    /// Enrols the bearer of a token. The commit takes the use of the token along.
    pub(super) fn enrol(
        &self,
        authority: &Authority,
        (grant, request): (&Grant, &EnrolRequest),
        now_secs: u64,
        commit: (Commit, oneshot::Receiver<()>),
        admits: impl Fn(&PeerIdentity) -> Result<(), String>,
    ) -> Result<Enrolling, String> {
        let peer = enrol::grant_to(grant, request).map_err(|error| error.to_string())?;
        let mut table = self.lock();
        let gone = self.forget_gone(&mut table, now_secs);
        let holder = self.holder_for(&table, grant, &peer, now_secs)?;
        if holder.is_none() && table.len() >= MEMBERS_MAX {
            return Err(format!(
                "{MEMBERS_MAX} names are held; an admin can free some: `tessera members remove`"
            ));
        }
        let number = holder.unwrap_or_else(|| next_number(&table));
        let peer = peer.numbered(number);
        admits(&peer)?;
        let mut member = match holder.and_then(|number| table.get(&number)) {
            Some(known) => known.clone(),
            None => MemberRecord::new(number, &peer, now_secs),
        };
        let what = match (holder, grant.replace) {
            (None, _) => "enrolled by a token",
            (Some(_), true) => "enrolled again: earlier certificates replaced",
            (Some(_), false) => "enrolled again: earlier certificates had ended",
        };
        if holder.is_some() {
            member.replace(&peer, now_secs);
        }
        let serial = member.give(now_secs.saturating_add(self.life_secs(peer.role)));
        let reply = enrol::sign(authority, (&peer, serial), request);
        let reply = reply.map_err(|error| error.to_string())?;
        table.insert(number, member);
        let changed = gone.into_iter().chain([number]);
        let durable = self.keep_durably(&table, changed, commit);
        Ok(Enrolling { done: Enrolled { peer, serial, reply, what }, durable })
    }

    /// Returns the member that an enrolment is for; None for a new one. The error says who holds
    /// the name, and what to do.
    fn holder_for(
        &self,
        table: &Table,
        grant: &Grant,
        peer: &PeerIdentity,
        now_secs: u64,
    ) -> Result<Option<u64>, String> {
        let name = &peer.name;
        if is_reserved(name) {
            return Err(format!(
                "the name `{name}` is reserved; use another one: --name NAME (the identity of the \
                 data folder is called `admin`)"
            ));
        }
        let mut named = members(table).filter(|held| held.name.eq_ignore_ascii_case(name));
        let by_name = named.next();
        let by_node = peer.node.and_then(|node| of_node(table, node));
        if let Some(other) = by_node.filter(|held| by_name.map(|by| by.number) != Some(held.number))
        {
            return Err(format!(
                "this node's id belongs to `{}`; use --name {}, or let an admin free the id: \
                 `tessera members remove {}`",
                other.who(),
                other.name,
                other.name
            ));
        }
        let Some(held) = by_name else { return Ok(None) };
        if held.node.is_some() != peer.node.is_some() {
            let kind = if held.node.is_some() { "a node" } else { "a person" };
            return Err(format!("the name `{name}` belongs to {kind}; use another: --name NAME"));
        }
        if let Some(login) = &held.login {
            return Err(format!(
                "the name `{name}` belongs to {}, who signs in at {}; use another name (--name), \
                 or an admin frees it: `tessera members remove {}`",
                held.who(),
                login.issuer,
                held.name
            ));
        }
        // Nobody holds a certificate that counts, and nobody can renew one.
        let ended = held.expires_at.saturating_add(self.grace_secs(held.role)) <= now_secs;
        let same_node = held.node.is_some() && held.node == peer.node;
        if grant.replace || (ended && same_node) {
            return Ok(Some(held.number));
        }
        Err(format!(
            "the name `{name}` belongs to {}; use another name (--name), or, if this is the same \
             machine or person, ask an admin for a token that replaces: `tessera token create \
             --role {} --name {} --replace`",
            held.who(),
            held.role,
            held.name
        ))
    }

    fn life_secs(&self, role: Role) -> u64 {
        self.lifetimes.life(role).as_secs()
    }

    fn grace_secs(&self, role: Role) -> u64 {
        self.lifetimes.grace(role).as_secs()
    }

    /// Forgets members whose name was taken away so long ago that no certificate of theirs can be
    /// valid. If the table is full, also nodes whose certificates have all ended. The highest
    /// number stays, so that no number is given twice.
    pub(super) fn forget_gone(&self, table: &mut Table, now_secs: u64) -> Vec<u64> {
        let full = table.len() >= MEMBERS_MAX;
        let longest = self.lifetimes.longest().as_secs();
        let newest = table.last_key_value().map(|(number, _)| *number);
        let is_gone = |held: &MemberRecord| {
            // Whoever signs in elsewhere can come back at any time, and is known then.
            if held.login.is_some() {
                return false;
            }
            let removed = held.removed_at.is_some_and(|at| at.saturating_add(longest) <= now_secs);
            let ended = held.expires_at.saturating_add(longest) <= now_secs;
            removed || (full && ended && held.node.is_some())
        };
        let mut gone: Vec<u64> =
            table.values().filter(|held| is_gone(held)).map(|held| held.number).collect();
        gone.retain(|number| Some(*number) != newest);
        gone.iter().for_each(|number| drop(table.remove(number)));
        gone
    }

    /// Takes note of the certificate of a new connection.
    pub(crate) fn shown(&self, credential: &Credential, now_secs: u64, from: &str) -> Shown {
        let Credential { peer, serial, validity, .. } = credential;
        if peer.number == ADMIN_NUMBER {
            // Only the authority's key makes this one. Whoever has the key owns the farm.
            return Shown::Counts;
        }
        if peer.number == 0 {
            return Shown::Refused("the certificate names no identity; enrol again".to_owned());
        }
        let mut table = self.lock();
        if !table.contains_key(&peer.number) {
            if let Some(refusal) = adoption_refusal(&table, peer) {
                return Shown::Refused(refusal);
            }
            // The farm was restored from a backup that is older than this identity.
            tracing::warn!(%peer, "a member that the table did not have");
            let member = MemberRecord::of_certificate(peer, validity.expires_at, now_secs);
            table.insert(peer.number, member);
        }
        let settle = MemberRecord::settle_secs(self.life_secs(peer.role));
        let Some(member) = table.get_mut(&peer.number) else {
            return Shown::Refused("the identity is not known".to_owned());
        };
        if !member.is(peer) || member.login.is_some() {
            let other = format!(
                "identity #{} belongs to `{}` now; enrol again with a new token",
                peer.number, member.name
            );
            return Shown::Refused(member.refusal(*serial).unwrap_or(other));
        }
        let shown = member.show(*serial, (now_secs, settle), from);
        if matches!(shown, Shown::First | Shown::Conflict) {
            drop(self.keep_durably(&table, [peer.number], Commit::new()));
        }
        shown
    }

    /// Returns why this certificate no longer counts; None if it does.
    pub(crate) fn refusal(&self, number: u64, serial: u64) -> Option<String> {
        self.lock().get(&number).and_then(|member| member.refusal(serial))
    }

    /// Signs a member's next certificate.
    pub(crate) fn renew(
        &self,
        credential: &Credential,
        sign: impl FnOnce(u64) -> Result<(RenewReply, Validity), String>,
    ) -> Result<Renewed, String> {
        let number = credential.peer.number;
        let mut table = self.lock();
        let member = table.get_mut(&number).ok_or("the identity is not known; enrol again")?;
        if let Some(refusal) = member.renewal_refusal(credential.serial) {
            return Err(refusal);
        }
        let (reply, validity) = sign(member.issued + 1)?;
        let serial = member.give(validity.expires_at);
        let durable = self.keep_durably(&table, [number], Commit::new());
        Ok(Renewed { reply, validity, serial, durable })
    }

    /// Makes an identity for this process. A name or node id that is held gets another key of the
    /// same identity.
    pub(crate) fn issue(
        &self,
        authority: &Authority,
        peer: PeerIdentity,
        now_secs: u64,
    ) -> Result<Identity, AuthorityError> {
        let mut table = self.lock();
        let held = match peer.node {
            Some(node) => of_node(&table, node),
            None => members(&table).find(|held| held.node.is_none() && held.name == peer.name),
        };
        let number = held.map_or_else(|| next_number(&table), |held| held.number);
        let peer = peer.numbered(number);
        let mut member =
            held.cloned().unwrap_or_else(|| MemberRecord::new(number, &peer, now_secs));
        if member.issued == 0 {
            member.give(now_secs.saturating_add(self.life_secs(peer.role)));
        }
        let identity = authority.issue_as(&peer, member.issued)?;
        table.insert(number, member);
        drop(self.keep_durably(&table, [number], Commit::new()));
        Ok(identity)
    }

    /// Finds the member that a text names: `#` and a number, a node's id, or a name, the latter two
    /// also behind `node:` or `user:`.
    pub(crate) fn find(&self, text: &str) -> Option<MemberRecord> {
        let (kind, name) = match text.split_once(':') {
            Some((kind @ ("node" | "user"), name)) => (kind, name),
            _ => ("", text),
        };
        let table = self.lock();
        let number = name.strip_prefix('#').and_then(|digits| digits.parse::<u64>().ok());
        let node: Option<NodeId> = name.parse().ok();
        let is = |held: &&MemberRecord| {
            let kind_fits = kind.is_empty() || (kind == "node") == held.node.is_some();
            let named = match (number, node) {
                (Some(number), _) => held.number == number,
                (None, Some(node)) => held.node == Some(node),
                (None, None) => held.name.eq_ignore_ascii_case(name),
            };
            kind_fits && named
        };
        members(&table).find(is).cloned()
    }

    /// Returns the member of a number, if it holds its name.
    pub(crate) fn of_number(&self, number: u64) -> Option<MemberRecord> {
        self.lock().get(&number).filter(|held| held.removed_at.is_none()).cloned()
    }

    /// Changes a member, and tells when that is durable.
    pub(crate) fn change<T>(
        &self,
        number: u64,
        change: impl FnOnce(&mut MemberRecord) -> T,
    ) -> Option<(T, oneshot::Receiver<()>)> {
        let mut table = self.lock();
        let changed = change(table.get_mut(&number)?);
        let durable = self.keep_durably(&table, [number], Commit::new());
        Some((changed, durable))
    }

    /// Decides a conflict. None if there is none.
    pub(crate) fn keep(&self, number: u64, keep: Keep) -> Option<oneshot::Receiver<()>> {
        self.change(number, |member| member.keep(keep)).filter(|(kept, _)| *kept).map(|(_, at)| at)
    }

    /// Returns one page of members, in the order of their numbers, from a position on.
    pub(crate) fn list(&self, from: u32, denied: impl Fn(u64) -> bool) -> Vec<MemberSummary> {
        let table = self.lock();
        let page = members(&table).skip(from as usize).take(MEMBER_PAGE_MAX);
        page.map(|member| summary(member, denied(member.number))).collect()
    }

    /// Returns number and note of every member that is a node.
    pub(crate) fn nodes(&self) -> BTreeMap<NodeId, (u64, String)> {
        let table = self.lock();
        let of = |held: &MemberRecord| Some((held.node?, (held.number, note(held))));
        members(&table).filter_map(of).collect()
    }
}

/// Returns the members that hold their names.
pub(super) fn members(table: &Table) -> impl Iterator<Item = &MemberRecord> {
    table.values().filter(|held| held.removed_at.is_none())
}

fn of_node(table: &Table, node: NodeId) -> Option<&MemberRecord> {
    members(table).find(|held| held.node == Some(node))
}

pub(super) fn next_number(table: &Table) -> u64 {
    table.last_key_value().map_or(ADMIN_NUMBER, |(number, _)| *number).max(ADMIN_NUMBER) + 1
}

/// Returns why an identity that no record knows is not taken into the table.
fn adoption_refusal(table: &Table, peer: &PeerIdentity) -> Option<String> {
    let same = |held: &&MemberRecord| {
        held.name.eq_ignore_ascii_case(&peer.name)
            || (peer.node.is_some() && held.node == peer.node)
    };
    let held = members(table).find(same)?;
    Some(format!(
        "the farm does not know identity #{} any more, and `{}` belongs to {}; enrol again with a \
         new token",
        peer.number,
        peer.name,
        held.who()
    ))
}

/// Returns a member as listings show it.
pub(crate) fn summary(member: &MemberRecord, denied: bool) -> MemberSummary {
    MemberSummary {
        number: member.number,
        name: member.name.clone(),
        role: member.role,
        node: member.node,
        enrolled_at: member.enrolled_at,
        expires_at: member.expires_at,
        issued: member.issued,
        used: member.used,
        denied,
        note: note(member),
        provider: member.login.as_ref().map(|login| login.issuer.clone()),
    }
}

fn note(member: &MemberRecord) -> String {
    match &member.conflict {
        Some(conflict) => format!(
            "two copies: certificate {} came from {} after certificate {} had come from {}; \
             decide by `tessera members keep {} --newer` or `--older`",
            conflict.older, conflict.from, conflict.newer, conflict.newer_from, member.name
        ),
        None => String::new(),
    }
}
