//! What peers may take of the coordinator: handshakes at a time, connections, and what each
//! identity sends in a second. Decides nothing about work, and who may ask for what.

use crate::config::Limits;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tessera_protocol::client::Role;
use tessera_transport::{Meter, PeerIdentity};

/// Connections of one node at most: a node has one, and those that it lost are known to be lost
/// within seconds.
const NODE_CONNECTIONS_MAX: usize = 4;

/// What to do with a connection that arrives.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// Do the handshake while the guest is held.
    Establish(Guest),
    /// Have it show its address first.
    Prove,
    /// Do not answer; it will ask again.
    Ignore,
}

/// The counts of a coordinator.
#[derive(Debug)]
pub(crate) struct Gate {
    limits: Limits,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    /// All connections, those in their handshake among them.
    connections: usize,
    /// Connections whose peer is not known, by where they come from: in their handshake, or
    /// enrolling.
    unknown: BTreeMap<IpAddr, usize>,
    /// Members with connections.
    members: BTreeMap<String, Member>,
}

#[derive(Debug)]
struct Member {
    connections: usize,
    meter: Arc<Meter>,
}

impl Gate {
    pub(crate) fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self { limits, counts: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection arrives, whose sender may or may not have shown that it receives at its
    /// address. From a quarter of the handshakes on it must, and nobody may have more than a
    /// quarter of them: so neither addresses that are made up nor one that is real can take them
    /// all.
    pub(crate) fn arrives(self: &Arc<Self>, from: SocketAddr, proven: bool) -> Verdict {
        let ip = from.ip().to_canonical();
        let quarter = self.limits.handshakes.div_ceil(4);
        let mut counts = self.lock();
        let unknown: usize = counts.unknown.values().sum();
        if unknown >= quarter && !proven {
            return Verdict::Prove;
        }
        let theirs = counts.unknown.get(&ip).copied().unwrap_or(0);
        let full =
            counts.connections >= self.limits.connections || unknown >= self.limits.handshakes;
        if full || theirs >= quarter {
            return Verdict::Ignore;
        }
        counts.connections += 1;
        *counts.unknown.entry(ip).or_default() += 1;
        Verdict::Establish(Guest { gate: self.clone(), from: ip, member: None })
    }

    fn connections_of(&self, role: Role) -> usize {
        match role {
            Role::Node => self.limits.connections_per_identity.min(NODE_CONNECTIONS_MAX),
            _ => self.limits.connections_per_identity,
        }
    }
}

/// A connection that is counted, until it is dropped.
#[derive(Debug)]
pub(crate) struct Guest {
    gate: Arc<Gate>,
    from: IpAddr,
    member: Option<String>,
}

impl Guest {
    /// Its peer is known: it gives its place among the unknown ones up, and gets the meter of its
    /// identity. An error says why it may not stay.
    pub(crate) fn becomes(&mut self, peer: &PeerIdentity) -> Result<Arc<Meter>, String> {
        let limit = self.gate.connections_of(peer.role);
        let mut counts = self.gate.lock();
        let member = counts.members.entry(peer.uri()).or_insert_with(|| Member {
            connections: 0,
            meter: Arc::new(Meter::new(self.gate.limits.rates)),
        });
        if member.connections >= limit {
            return Err(format!(
                "{limit} connections of this identity are open; no more are taken"
            ));
        }
        member.connections += 1;
        let meter = member.meter.clone();
        counts.forget_unknown(self.from);
        self.member = Some(peer.uri());
        Ok(meter)
    }
}

impl Counts {
    fn forget_unknown(&mut self, ip: IpAddr) {
        if let Some(count) = self.unknown.get_mut(&ip) {
            *count -= 1;
            if *count == 0 {
                self.unknown.remove(&ip);
            }
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let mut counts = self.gate.lock();
        counts.connections -= 1;
        let Some(uri) = &self.member else { return counts.forget_unknown(self.from) };
        if let Some(member) = counts.members.get_mut(uri) {
            member.connections -= 1;
            if member.connections == 0 {
                counts.members.remove(uri);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate(handshakes: usize, connections: usize) -> Arc<Gate> {
        Gate::new(Limits {
            handshakes,
            connections,
            connections_per_identity: 2,
            ..Limits::default()
        })
    }

    fn from(host: u8) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, host], 4000))
    }

    fn enter(gate: &Arc<Gate>, host: u8) -> Option<Guest> {
        match gate.arrives(from(host), true) {
            Verdict::Establish(guest) => Some(guest),
            Verdict::Prove | Verdict::Ignore => None,
        }
    }

    // promise: P8
    #[test]
    fn under_load_addresses_must_be_shown_and_none_takes_all() {
        let gate = gate(8, 100);
        let calm: Vec<_> = (0..2).map(|_| gate.arrives(from(1), false)).collect();
        assert!(calm.iter().all(|verdict| matches!(verdict, Verdict::Establish(_))));
        assert!(matches!(gate.arrives(from(2), false), Verdict::Prove));
        assert!(enter(&gate, 1).is_none(), "one address has more than a quarter");
        let others: Vec<_> =
            (2..5).flat_map(|host| [enter(&gate, host), enter(&gate, host)]).collect();
        assert!(others.iter().all(Option::is_some));
        assert!(enter(&gate, 9).is_none(), "more handshakes than the limit");
        drop(others);
        assert!(enter(&gate, 9).is_some());
    }

    // promise: P8
    #[test]
    fn an_identity_has_a_bound_and_gives_its_place_back() {
        let gate = gate(100, 3);
        let ada = PeerIdentity::new(Role::Artist, "ada", None).unwrap();
        let bob = PeerIdentity::new(Role::Artist, "bob", None).unwrap();
        let mut guests: Vec<_> = (0..3).filter_map(|host| enter(&gate, host)).collect();
        assert!(enter(&gate, 9).is_none(), "more connections than the limit");
        assert!(Arc::ptr_eq(&guests[0].becomes(&ada).unwrap(), &guests[1].becomes(&ada).unwrap()));
        assert!(guests[2].becomes(&ada).unwrap_err().contains("2 connections"));
        assert!(guests[2].becomes(&bob).is_ok());
        drop(guests);
        let counts = gate.lock();
        assert!(counts.connections == 0 && counts.unknown.is_empty() && counts.members.is_empty());
    }
}
