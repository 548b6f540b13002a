//! How nodes join, send heartbeats and leave; what happens to their leases.

use crate::action::Action;
use crate::books::Books;
use crate::input::SessionId;
use crate::nodes::roster::{Node, Presence, SCENES_MAX, capacity};
use crate::nodes::{absent, devices, drain};
use crate::results::acceptance::{is_acceptable, is_committed, refusal};
use crate::results::failed::lose;
use crate::results::idle::on_work_told;
use crate::results::stalled::on_progress;
use crate::schedule::memory::on_new_process;
use crate::timers::Timer;
use std::collections::BTreeSet;
use tessera_protocol::device::{DeviceInfo, DeviceState, DeviceTelemetry};
use tessera_protocol::ids::{BlobHash, Epoch, Fingerprint, JobId, Lease, NodeId};
use tessera_protocol::limits::LEASES_MAX;
use tessera_protocol::node::{CoordinatorToNode, Heartbeat, Join};

/// A node joins or returns: the leases that the core keeps for it and those that it names are
/// reconciled.
pub(crate) fn on_joined(
    books: &mut Books,
    session: SessionId,
    join: &Join,
    fingerprint: Fingerprint,
    build: &str,
) {
    if books.roster().node_of(session).is_some() {
        return books
            .act(Action::CloseSession { session, reason: "a session joins once".to_owned() });
    }
    let mut node = Node::new(join, fingerprint, build, session, books.now());
    let mut same_process = false;
    if let Some(known) = books.roster().get(join.node) {
        same_process = known.process == join.process;
        node.fitness = known.fitness.clone();
        if same_process {
            node.keep_history(known);
        }
        if let Some(replaced) = known.session() {
            let reason = "the node has opened another session".to_owned();
            books.act(Action::CloseSession { session: replaced, reason });
        }
    }
    books.join(join.node, session, node);
    absent::on_joined(books, join.node);
    if !same_process {
        on_new_process(books, join.node);
    }
    books.mark_node(join.node);
    reconcile(books, join, same_process);
    forget_ended(books, join.node);
    drain::on_joined(books, join.node, session);
}

/// Makes the leases that the core keeps for a node and those that it names the same.
fn reconcile(books: &mut Books, join: &Join, same_process: bool) {
    let (running, finished) = (listed(&join.running), listed(&join.finished));
    let named: BTreeSet<Epoch> = running
        .iter()
        .chain(finished)
        .filter(|lease| books.leases().get(**lease).is_some_and(|held| held.node == join.node))
        .map(|lease| lease.epoch)
        .collect();
    let mut unnamed = books.leases().epochs_of(join.node);
    unnamed.retain(|epoch| !named.contains(epoch));
    if same_process {
        // The message that gave them was lost: no node began them.
        for epoch in unnamed {
            match books.release_unbegun(epoch) {
                Some(held) => books.give_back(held.unit, books.now()),
                None => books.fault("a lease of a node is not held"),
            }
        }
    } else {
        lose(books, join.node, &unnamed);
    }
    let mut stale = Vec::new();
    for lease in running {
        if !take_back(books, join.node, *lease) {
            stale.push(*lease);
        }
    }
    if !stale.is_empty() {
        books.tell(join.node, CoordinatorToNode::Revoke { leases: stale });
    }
    for lease in finished {
        if !take_back(books, join.node, *lease) && !may_still_come(books, join.node, *lease) {
            let message = refusal(books, *lease);
            books.tell(join.node, message);
        }
    }
    let jobs: BTreeSet<JobId> =
        running.iter().chain(finished).map(|lease| lease.unit.job).collect();
    if let Some(node) = books.node_mut(join.node) {
        node.jobs_known.extend(jobs);
    }
}

/// Whether a finished result of a node may still be accepted later, because its job is paused.
fn may_still_come(books: &Books, node: NodeId, lease: Lease) -> bool {
    books.is_paused(lease.unit.job) && is_acceptable(books, node, lease)
}

/// Whether a lease that a node names is valid: renews it, or grants it again if its result would be
/// accepted.
fn take_back(books: &mut Books, node: NodeId, lease: Lease) -> bool {
    if books.leases().get(lease).is_some_and(|held| held.node == node) {
        books.renew(lease.epoch);
        return true;
    }
    let acceptable = !books.is_paused(lease.unit.job) && is_acceptable(books, node, lease);
    if acceptable {
        books.hold(lease, node);
    }
    acceptable
}

/// Tells a returning node which of its jobs have ended.
fn forget_ended(books: &mut Books, id: NodeId) {
    let mut ended = books.roster().get(id).map(|node| node.jobs_known.clone()).unwrap_or_default();
    ended.retain(|job| !books.is_open(*job));
    for job in ended {
        books.tell(id, CoordinatorToNode::Forget { job });
        if let Some(node) = books.node_mut(id) {
            node.jobs_known.remove(&job);
            node.passed.forget(job);
        }
    }
}

/// Keeps the leases of a node for the grace after its session was lost.
pub(crate) fn on_session_lost(books: &mut Books, session: SessionId) {
    let Some(id) = books.roster().node_of(session) else { return };
    let until = books.now().after(books.settings().grace);
    books.leave(id, Presence::Away(until));
    books.hold_until(id, until);
    books.set_timer(until, Timer::Away(id));
}

/// A node has ended its session itself, because it leaves. Its leases are kept for the grace, as it
/// may be restarted with results that it has not delivered.
pub(crate) fn on_node_left(books: &mut Books, session: SessionId, why: &str) {
    let Some(id) = books.roster().node_of(session) else { return };
    on_session_lost(books, session);
    absent::on_left(books, id, why);
}

/// Renews the leases that a node's heartbeat names.
pub(crate) fn on_heartbeat(books: &mut Books, session: SessionId, heartbeat: &Heartbeat) {
    let Some(id) = books.heard_from(session) else { return };
    let mut stale = Vec::new();
    for lease in listed(&heartbeat.leases) {
        match books.leases().get(*lease) {
            Some(held) if held.node == id => {
                books.renew(lease.epoch);
            }
            _ if is_committed(books, *lease) => {}
            _ => stale.push(*lease),
        }
    }
    if !stale.is_empty() {
        books.send(session, CoordinatorToNode::Revoke { leases: stale });
    }
    on_progress(books, id, &heartbeat.progress);
    on_work_told(books, id, heartbeat);
    if let Some(node) = books.node_mut(id) {
        node.busy = heartbeat.busy.filter(|busy| (0.0..=1.0).contains(busy));
    }
    on_telemetry(books, id, &heartbeat.devices);
}

/// Notes free memory: if other programs have released some, more units may fit.
fn on_telemetry(books: &mut Books, id: NodeId, told: &[DeviceTelemetry]) {
    let Some(node) = books.node_mut(id) else {
        return books.fault("a session belongs to an unknown node");
    };
    let telemetry = devices::telemetry(told, node.devices.len());
    let room = |all: &[DeviceTelemetry]| -> Vec<(u8, Option<u64>, Option<u64>)> {
        all.iter().map(|one| (one.device, one.memory_free, one.memory_held)).collect()
    };
    let changed = room(&telemetry) != room(&node.telemetry);
    node.telemetry = telemetry;
    match changed {
        true => books.mark_node(id),
        false => books.mark_heard(id),
    }
}

/// A node changes the number of units that it wants to hold.
pub(crate) fn on_capacity(books: &mut Books, session: SessionId, units: u32) {
    let Some(id) = books.heard_from(session) else { return };
    if let Some(node) = books.node_mut(id) {
        node.capacity = capacity(units);
    }
    books.mark_node(id);
}

/// A node has prepared a scene, or dropped one.
pub(crate) fn on_scene_held(books: &mut Books, session: SessionId, scene: BlobHash, held: bool) {
    let Some(id) = books.heard_from(session) else { return };
    books.note_active(id);
    if let Some(node) = books.node_mut(id) {
        if !held {
            node.scenes.remove(&scene);
        } else if node.scenes.len() < SCENES_MAX {
            node.scenes.insert(scene);
        }
    }
}

/// A node takes no new work, at its own request.
pub(crate) fn on_node_draining(books: &mut Books, session: SessionId) {
    let Some(id) = books.heard_from(session) else { return };
    if let Some(node) = books.node_mut(id) {
        node.leaving = true;
    }
    // Units that were withheld from it may now be for the others only.
    books.mark_all();
}

/// Cuts a peer's list to its limit.
fn listed(leases: &[Lease]) -> &[Lease] {
    &leases[..leases.len().min(LEASES_MAX)]
}

/// A node reports changed states of its devices.
pub(crate) fn on_devices(books: &mut Books, session: SessionId, told: &[DeviceInfo]) {
    let Some(id) = books.heard_from(session) else { return };
    if let Some(node) = books.node_mut(id)
        && told.len() == node.devices.len()
    {
        node.devices = devices::listed(told);
        let gone = |device: &DeviceInfo| matches!(device.state, DeviceState::Quarantined { .. });
        let all_gone = node.devices.iter().all(gone);
        // A device that is back wants work. If one is gone, units that were withheld from
        // other nodes are free for them.
        books.mark_all();
        if all_gone {
            books.take_away(id);
        }
    }
}

/// Ends the leases of a node that has not returned within its grace.
pub(crate) fn on_grace_over(books: &mut Books, id: NodeId) {
    let Some(node) = books.roster().get(id) else {
        return absent::on_lost(books, id, "it has not come back since the coordinator started");
    };
    if matches!(node.presence(), Presence::Away(until) if until <= books.now()) {
        books.leave(id, Presence::Lost);
        let lost = books.leases().epochs_of(id);
        lose(books, id, &lost);
        absent::on_lost(books, id, "connection lost");
    }
}
