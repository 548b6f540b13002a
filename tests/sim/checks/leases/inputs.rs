//! What inputs say of leases: who joins, is lost, names, returns or fails what.

use super::{Known, Seen, Watch};
use tessera_core::{Input, SessionId};
use tessera_protocol::device::{DeviceInfo, DeviceState};
use tessera_protocol::ids::{Fingerprint, Lease};
use tessera_protocol::node::{Failure, Join};

impl Watch {
    /// Notes an input before the core has it.
    pub(crate) fn on_input(&mut self, input: &Input, seen: &mut Seen, now: u64) {
        self.now = self.now.max(now);
        if seen.inputs == 0 {
            seen.since = self.now;
        }
        seen.inputs += 1;
        match input {
            Input::NodeJoined { session, join, fingerprint, .. } => {
                self.on_joined(*session, join, *fingerprint, seen);
            }
            Input::SessionLost { session } => self.on_session_lost(*session),
            Input::NodeLeft { session, .. } => {
                seen.left = self.node_of(*session);
                self.on_session_lost(*session);
            }
            Input::Capacity { session, units } => {
                if let Some(known) = self.of_session(*session) {
                    known.capacity = *units;
                }
            }
            Input::NodeDraining { session } => {
                if let Some(known) = self.of_session(*session) {
                    known.leaving = true;
                }
            }
            Input::Heartbeat { session, heartbeat } => {
                let node = self.node_of(*session);
                seen.named.extend(
                    node.iter().flat_map(|node| heartbeat.leases.iter().map(|l| (*node, *l))),
                );
            }
            Input::Returned { leases, .. } => seen.returned.extend(leases),
            // That the device is too small is nobody's fault, and no attempt.
            Input::UnitFailed { lease, failure: Failure::OutOfMemory(_), .. } => {
                seen.returned.insert(*lease);
            }
            // Nor that something is lacking which is not of the unit: it waits.
            Input::UnitFailed { lease, failure: Failure::Asset(_), .. } => {
                seen.returned.insert(*lease);
                self.short.insert(lease.unit);
            }
            Input::UnitFailed { lease, .. } | Input::ResultDamaged { lease, .. } => {
                seen.failed.insert(*lease);
            }
            // It may have the wrong shape.
            Input::ResultArrived { result, .. } => {
                seen.failed.insert(result.lease);
                seen.arrived.insert(result.lease);
            }
            Input::DevicesChanged { session, devices } => {
                if let Some(known) = self.of_session(*session) {
                    known.usable = is_usable(devices);
                }
            }
            _ => {}
        }
    }

    fn on_joined(
        &mut self,
        session: SessionId,
        join: &Join,
        fingerprint: Fingerprint,
        seen: &mut Seen,
    ) {
        seen.joined.insert(join.node);
        let leases = join.running.iter().chain(&join.finished);
        seen.named.extend(leases.map(|lease| (join.node, *lease)));
        // Another session of the same process keeps its wish to leave until it says otherwise: it
        // says so at once.
        let former = self.known.get(&join.node).filter(|known| known.process == join.process);
        let leaving = former.is_some_and(|known| known.leaving);
        let known = Known {
            process: join.process,
            session,
            away_since: None,
            fingerprint,
            capacity: join.capacity,
            usable: is_usable(&join.devices),
            leaving,
        };
        self.known.insert(join.node, known);
        self.nodes.insert(session, join.node);
    }

    pub(crate) fn on_session_lost(&mut self, session: SessionId) {
        // As the core has it: its clock never goes back.
        let since = self.now;
        if let Some(known) = self.of_session(session) {
            known.away_since = Some(since);
        }
        let node = self.nodes.get(&session).copied();
        let held = &self.held;
        let of_node = |lease: &Lease| held.get(lease).map(|held| held.node) == node;
        let quiet = self.quiet.iter_mut().filter(|(lease, _)| of_node(lease));
        quiet.for_each(|(_, due)| *due = 0);
    }
}

fn is_usable(devices: &[DeviceInfo]) -> bool {
    devices.iter().any(|device| device.state == DeviceState::Ready)
}
