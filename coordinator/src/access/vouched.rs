//! Members for whom an identity provider vouches: they sign in over HTTP and have no certificate.
//! Who vouches is checked before; this module decides whose name and number it is.

use super::members::{MEMBERS_MAX, Members, Table, members, next_number};
use crate::store::Commit;
use tessera_protocol::client::Role;
use tessera_transport::PeerIdentity;
use tessera_transport::member::{Login, MemberRecord, is_reserved};
use tokio::sync::oneshot;

/// Most members that sign in by a provider. Machines and other people keep room beside them.
const LOGINS_MAX: usize = 20_000;
/// Longest issuer and subject, in bytes. A subject has 255 at most (OpenID Connect Core, 2).
const LOGIN_BYTES_MAX: usize = 255;

/// A person who has signed in at a provider.
#[derive(Clone, Debug)]
pub struct Vouched {
    /// Address of the provider.
    pub issuer: String,
    /// The provider's own name of the person.
    pub subject: String,
    /// Name to hold in the farm, or why there is none. A member keeps the name of the first time.
    pub name: Result<String, String>,
    /// Role that the provider's groups give, or why they give none.
    pub role: Result<Role, String>,
}

/// A vouched member that is in memory, and not yet durable.
pub(crate) struct Admitted {
    pub(crate) peer: PeerIdentity,
    /// Whether this is the first sign-in.
    pub(crate) is_new: bool,
    pub(crate) durable: oneshot::Receiver<()>,
}

impl Members {
    /// Admits a person until `until`, with the role that they have now. `admits` refuses denied
    /// identities. The error is a message for the person.
    pub(crate) fn vouch(
        &self,
        person: &Vouched,
        (now_secs, until): (u64, u64),
        admits: impl Fn(&PeerIdentity) -> Result<(), String>,
    ) -> Result<Admitted, String> {
        let login = login_of(person)?;
        let mut table = self.lock();
        let known = table.values().find(|held| held.login.as_ref() == Some(&login)).cloned();
        if let Some(known) = &known {
            admits(&person_of(known)?)?;
        }
        let held = known.as_ref().filter(|held| held.removed_at.is_none());
        let role = match &person.role {
            Ok(role) => *role,
            Err(reason) => {
                if let Some(held) = held {
                    self.end_rights(&mut table, held.number, now_secs);
                }
                return Err(reason.clone());
            }
        };
        let (member, is_new) = match held {
            Some(held) => (MemberRecord { role, expires_at: until, ..held.clone() }, false),
            None => {
                let mut member = new_member(&table, person, (role, now_secs))?;
                (member.expires_at, member.login) = (until, Some(login));
                (member, true)
            }
        };
        let peer = person_of(&member)?;
        admits(&peer)?;
        let mut changed = vec![member.number];
        if let Some(former) = known.filter(|known| known.removed_at.is_some()) {
            // An admin allowed the person again after the name was taken away.
            changed.push(former.number);
            table.insert(former.number, MemberRecord { login: None, ..former });
        }
        table.insert(member.number, member);
        let durable = self.keep_durably(&table, changed, Commit::new());
        Ok(Admitted { peer, is_new, durable })
    }

    /// Ends what a member's sessions and tokens may do, until the next sign-in.
    fn end_rights(&self, table: &mut Table, number: u64, now_secs: u64) {
        let Some(member) = table.get_mut(&number) else { return };
        if member.expires_at > now_secs {
            member.expires_at = now_secs;
            drop(self.keep_durably(table, [number], Commit::new()));
        }
    }
}

fn login_of(person: &Vouched) -> Result<Login, String> {
    let Vouched { issuer, subject, .. } = person;
    let fits = |text: &str| (1..=LOGIN_BYTES_MAX).contains(&text.len());
    if !fits(issuer) || !fits(subject) {
        return Err(format!("the provider's name of you is not 1 to {LOGIN_BYTES_MAX} bytes"));
    }
    Ok(Login { issuer: issuer.clone(), subject: subject.clone() })
}

fn person_of(member: &MemberRecord) -> Result<PeerIdentity, String> {
    let peer = PeerIdentity::new(member.role, &member.name, None);
    peer.map(|peer| peer.numbered(member.number)).map_err(|error| error.to_string())
}

/// Makes the record of somebody who is here for the first time, if the name is free.
fn new_member(
    table: &Table,
    person: &Vouched,
    (role, now_secs): (Role, u64),
) -> Result<MemberRecord, String> {
    let name = person.name.as_deref().map_err(Clone::clone)?;
    let peer = PeerIdentity::new(role, name, None).map_err(|error| error.to_string())?;
    if is_reserved(name) {
        return Err(format!("the name `{name}`, which the provider gives you, is reserved here"));
    }
    if let Some(held) = members(table).find(|held| held.name.eq_ignore_ascii_case(name)) {
        return Err(format!(
            "the name `{name}`, which the provider gives you, belongs to {} here; `tessera web` \
             signs its holder in, and an admin can free it: `tessera members remove {}`",
            held.who(),
            held.name
        ));
    }
    let logins = members(table).filter(|held| held.login.is_some()).count();
    if logins >= LOGINS_MAX || table.len() >= MEMBERS_MAX {
        return Err(format!(
            "{logins} people sign in by a provider already; an admin can free some"
        ));
    }
    Ok(MemberRecord::new(next_number(table), &peer, now_secs))
}
