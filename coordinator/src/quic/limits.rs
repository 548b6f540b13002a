//! Limits on what peers can use: handshakes at a time, connections, and what each identity sends
//! per second. Decides neither about work nor about rights.

use crate::config::Limits;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tessera_protocol::client::Role;
use tessera_transport::{Meter, PeerIdentity};

/// Most connections of one node. A node has one, and its lost connections are noticed within
/// seconds.
const NODE_CONNECTIONS_MAX: usize = 4;

/// How to handle a connection that arrives.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// Do the handshake while holding the guest.
    Establish(Guest),
    /// Make the peer prove its address first.
    Prove,
    /// Do not answer; the peer will ask again.
    Ignore,
}

/// Counts of connections of one coordinator.
#[derive(Debug)]
pub(crate) struct Gate {
    limits: Limits,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    /// Number of all connections, including those in their handshake.
    connections: usize,
    /// Number of connections with an unknown peer, by address: those in their handshake, and those
    /// that enrol.
    unknown: BTreeMap<IpAddr, usize>,
    /// Identities that have connections.
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

    /// Decides about a connection that arrives. `proven` says whether the sender has shown that it
    /// receives at its address. From a quarter of the handshakes on it must, and one address can
    /// have at most a quarter of them. So neither invented addresses nor a real one can take all
    /// handshakes.
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

/// A counted connection. Dropping this value ends the count.
#[derive(Debug)]
pub(crate) struct Guest {
    gate: Arc<Gate>,
    from: IpAddr,
    member: Option<String>,
}

impl Guest {
    /// Records that the connection's peer is known now: it counts for its identity, whose meter is
    /// returned. An error says why it cannot stay.
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
    fn under_load_addresses_are_validated_and_limited() {
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
