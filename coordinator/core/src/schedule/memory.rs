//! Which devices have the memory for a job: predicted by the client, then measured by devices. Not
//! durable, but for the prediction.

use crate::books::Books;
use crate::ends::end_job;
use crate::lease::Held;
use crate::nodes::devices;
use crate::nodes::ready::is_ready;
use crate::nodes::roster::{Node, Presence};
use crate::schedule::measured::Measured;
use crate::state::job::Job;
use crate::text::cut;
use tessera_protocol::device::DeviceInfo;
use tessera_protocol::ids::{JobId, Lease, NodeId, UnitIndex};
use tessera_protocol::limits::REASON_MAX;
use tessera_protocol::node::MemoryShortage;
use tessera_protocol::status::JobState;

/// The device with the most room for a job, where none has enough.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemoryLack {
    /// Bytes that the job needs.
    pub(crate) need: u64,
    /// Bytes that the device could give.
    pub(crate) room: u64,
    /// Name of its node.
    pub(crate) node: String,
    /// Name of the device.
    pub(crate) device: String,
}

/// Writes a number of bytes for people.
pub(crate) fn size(bytes: u64) -> String {
    let mut value = bytes as f64;
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{value:.1} {}", units[unit]) }
}

/// Returns the bytes that a device could give to a unit now: its memory, or less if other programs
/// hold some.
fn room(node: &Node, position: usize, device: &DeviceInfo) -> u64 {
    let total = if device.memory_bytes == 0 { u64::MAX } else { device.memory_bytes };
    let told = node.telemetry().iter().find(|told| usize::from(told.device) == position);
    let now = told.and_then(|told| Some(told.memory_free?.saturating_add(told.memory_held?)));
    now.map_or(total, |now| total.min(now))
}

/// Whether the device runs jobs of that kind.
fn is_of_kind(device: &DeviceInfo, job: &Job) -> bool {
    job.kind().compute().is_none_or(|compute| device.runs(compute))
}

fn is_usable(device: &DeviceInfo, job: &Job) -> bool {
    devices::is_ready(device) && is_of_kind(device, job)
}

/// Returns the memory of a job as measured by devices; None if the job is not open.
fn measured<'a>(books: &'a Books, job: &Job) -> Option<&'a Measured> {
    books.queue(job.id()).map(|queue| queue.estimates().measured())
}

/// Returns the bytes that a device must have for a job; 0 if unknown.
fn need(books: &Books, job: &Job) -> u64 {
    let predicted = job.spec().device_bytes;
    measured(books, job).map_or(predicted, |known| known.need(predicted))
}

/// Returns the indices of a node's devices that may have units of a job: ready, of the job's kind,
/// and with enough memory.
pub(crate) fn usable<'a>(
    books: &'a Books,
    id: NodeId,
    node: &'a Node,
    job: &'a Job,
) -> impl Iterator<Item = u8> + 'a {
    let suspected = job.barred().contains(&id) || node.passed().is_last_for(job.id());
    let allowed = !suspected || !is_barred_from(books, id, job);
    devices_for(books, id, node, job).filter(move |_| allowed)
}

/// The same, even if the node is passed over for the job while another one may have it.
pub(crate) fn devices_for<'a>(
    books: &'a Books,
    id: NodeId,
    node: &'a Node,
    job: &'a Job,
) -> impl Iterator<Item = u8> + 'a {
    let need = need(books, job);
    let short = measured(books, job).and_then(|known| known.short_on(id));
    let can_do = node.serves(job);
    let fits = move |position: usize, device: &DeviceInfo| {
        room(node, position, device) >= need
            && short.is_none_or(|short| device.memory_bytes > short)
    };
    let all = node.devices().iter().enumerate();
    all.filter(move |(position, device)| {
        can_do && is_usable(device, job) && fits(*position, device)
    })
    .map(|(position, _)| position as u8)
}

/// Returns why the known nodes can never render a job; None if some node may, or if no node is
/// known.
pub(crate) fn fits_nowhere(books: &Books, needed: u64, pool: Option<&str>) -> Option<String> {
    let (node, device) = largest(books, |node| node.is_of(pool))?;
    (device.memory_bytes < needed).then(|| {
        format!(
            "the job needs {} on a device; the largest device known has {} (node `{}`, {}); \
             a smaller scene, \
             smaller textures or a node with a larger device would do",
            size(needed),
            size(device.memory_bytes),
            node.name(),
            device.name
        )
    })
}

/// Returns the device with the most memory, among the given nodes. A device of unknown memory
/// counts as the largest.
fn largest(books: &Books, counts: impl Fn(&Node) -> bool) -> Option<(&Node, &DeviceInfo)> {
    let nodes = books.roster().nodes().filter(|node| counts(node));
    let devices = nodes.flat_map(|node| node.devices().iter().map(move |device| (node, device)));
    devices
        .filter(|(_, device)| device.memory_bytes > 0)
        .max_by_key(|(_, device)| device.memory_bytes)
        .filter(|_| {
            let says_nothing = |node: &Node| node.devices().iter().any(|d| d.memory_bytes == 0);
            !books.roster().nodes().any(|node| counts(node) && says_nothing(node))
        })
}

/// Returns which ready device has the most room for a job; None if some node has enough.
pub(crate) fn memory_lack(books: &Books, job: &Job) -> Option<MemoryLack> {
    let ready = |id: NodeId, node: &Node| is_ready(books, id, node);
    let suits = |(id, node): (&NodeId, &Node)| {
        ready(*id, node) && usable(books, *id, node, job).next().is_some()
    };
    if books.roster().iter().any(suits) {
        return None;
    }
    let may = |(id, node): &(&NodeId, &Node)| {
        ready(**id, node) && node.serves(job) && !is_barred_from(books, **id, job)
    };
    let rooms = books.roster().iter().filter(may).flat_map(|(_, node)| {
        let devices =
            node.devices().iter().enumerate().filter(|(_, device)| is_usable(device, job));
        devices.map(move |(position, device)| (room(node, position, device), node, device))
    });
    let (room, node, device) = rooms.max_by_key(|(room, ..)| *room)?;
    let (node, device) = (node.name().to_owned(), device.name.clone());
    Some(MemoryLack { need: need(books, job), room, node, device })
}

/// Handles a unit that ran out of memory on a device. Neither is at fault: the unit goes to a
/// larger device, and no attempt is counted. If no larger one is known, the job ends.
pub(crate) fn on_shortage(books: &mut Books, id: NodeId, lease: Lease, shortage: &MemoryShortage) {
    let released: Option<Held> = books.release(lease.epoch);
    let Some(node) = books.roster().get(id) else {
        return books.fault("a node with a session is unknown");
    };
    let device = node.devices().get(usize::from(shortage.device));
    let total = device.map_or(0, |device| device.memory_bytes);
    let told = format!(
        "{} of node `{}` had {} of {} free, but the job needs {}: {}",
        device.map_or("a device", |device| device.name.as_str()),
        node.name(),
        size(shortage.available),
        size(total),
        size(shortage.needed),
        shortage.reason
    );
    if let Some(estimates) = books.estimates_mut(lease.unit.job) {
        estimates.note_out_of_memory(id, shortage.needed, total);
    }
    let Some(job) = books.farm().job(lease.unit.job) else {
        return books.fault("a lease is acceptable, but its job is unknown");
    };
    if !may_fit_somewhere(books, job) {
        let note = format!("it fits no device that is known; {}", cut(&told, REASON_MAX));
        return end_job(books, lease.unit.job, JobState::Failed, &note);
    }
    // If the lease had ended before, its unit is in the right place already.
    if released.is_some() {
        books.give_back(lease.unit, books.now());
    }
}

/// Whether some device of a known node could hold the job, if it were ready and empty.
fn may_fit_somewhere(books: &Books, job: &Job) -> bool {
    let Some(measured) = measured(books, job) else { return true };
    let need = measured.need(job.spec().device_bytes);
    books.roster().iter().any(|(id, node)| {
        let short = measured.short_on(*id);
        job.fingerprint().is_none_or(|pinned| pinned == node.fingerprint())
            && node.may_serve(job)
            && node.devices().iter().any(|device| {
                is_of_kind(device, job)
                    && (device.memory_bytes == 0 || device.memory_bytes >= need)
                    && short.is_none_or(|short| device.memory_bytes > short)
            })
    })
}

/// Gives a new process of a node another chance at every job. If it has another build, it may have
/// been the last one for some jobs.
pub(crate) fn on_new_process(books: &mut Books, id: NodeId) {
    books.forget_devices_of(id);
    let queues = books.queues().iter();
    let short = queues.filter(|(_, queue)| queue.estimates().measured().has_short());
    let short: Vec<JobId> = short.map(|(job, _)| *job).collect();
    for job in short {
        if books.farm().job(job).is_some_and(|job| !may_fit_somewhere(books, job)) {
            let note = "it ran out of memory on every known device of its build";
            end_job(books, job, JobState::Failed, note);
        }
    }
}

/// Whether a node gets no work of a job because it was wrong about its kernel, or keeps failing it:
/// only while another node may have it.
pub(crate) fn is_barred_from(books: &Books, id: NodeId, job: &Job) -> bool {
    let barred = job.barred().contains(&id);
    let last = || books.roster().get(id).is_some_and(|node| node.passed().is_last_for(job.id()));
    if !barred && !last() {
        return false;
    }
    let may_work = |(other, node): (&NodeId, &Node)| {
        *other != id
            && !job.barred().contains(other)
            && (barred || !node.passed().is_last_for(job.id()))
            && (barred || has_room_for(books, *other, node, job))
            && node.presence() != Presence::Lost
            && !node.leaving()
            && node.serves(job)
            && job.fingerprint().is_none_or(|pinned| pinned == node.fingerprint())
            && !books.farm().is_drained(*other)
            && !books.farm().trust().is_guilty(*other)
    };
    books.roster().iter().any(may_work)
}

/// Whether a node takes units and has a device for a job.
fn has_room_for(books: &Books, id: NodeId, node: &Node, job: &Job) -> bool {
    node.capacity() > 0 && devices_for(books, id, node, job).next().is_some()
}

/// Whether a node does this kind of unit: not every node finishes frames.
pub(crate) fn can_do(node: &Node, job: &Job, unit: UnitIndex) -> bool {
    node.finishes() || !job.grid().is_finishing(unit)
}

/// Whether another node may have units of a job.
pub(crate) fn has_peer(books: &Books, id: NodeId, job: &Job) -> bool {
    let mut others = books.roster().iter().filter(|(other, _)| **other != id);
    others.any(|(other, node)| may_work_at(books, *other, node, job))
}

/// Whether a node may have units of a job, apart from its capacity.
pub(crate) fn may_work_at(books: &Books, id: NodeId, node: &Node, job: &Job) -> bool {
    node.capacity() > 0
        && is_ready(books, id, node)
        && job.fingerprint().is_none_or(|pinned| pinned == node.fingerprint())
        && usable(books, id, node, job).next().is_some()
}
