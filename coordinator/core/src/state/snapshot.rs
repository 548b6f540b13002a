//! The durable state as a sequence of bounded parts, so that the journal before it may go.

use crate::journal::versioned::Format;
use crate::journal::{JournalError, RECORD_VERSION};
use crate::state::accounts::{Account, Accounts};
use crate::state::committed_by::CommittedBy;
use crate::state::done::DoneFrame;
use crate::state::farm::Farm;
use crate::state::frame::Begun;
use crate::state::job::{Copies, End, Job, Pause};
use crate::state::parts::UnitPart;
use crate::state::presets::{Presets, Published};
use crate::state::register::{Drain, Entry, Register};
use crate::state::rounds::WrittenRounds;
use crate::state::spent::Spent;
use crate::state::trust::{Suspect, Trust};
use crate::time::Moment;
use serde::{Deserialize, Serialize};
use tessera_protocol::CodecError;
use tessera_protocol::cost::CostRules;
use tessera_protocol::ids::{Epoch, Fingerprint, JobId, NodeId, UnitIndex, UnitKey};
use tessera_protocol::job::{JobEdit, JobSpec, described};
use tessera_protocol::status::FailureNote;

/// Approximate limit of the bytes of the frames in one part, far below the codec's limit.
const PART_BYTES: usize = 1 << 20;
/// CommittedBy in one part: three bytes each at most, and 65,534 nodes of 16.
const MAKERS_MAX: usize = 1 << 20;
/// Units in parts in one part: 5 of some 70 bytes each at most.
const UNITS_IN_PARTS_MAX: usize = 4096;

/// Nodes in one part: less than a KiB each.
const NODES_MAX: usize = 1024;

/// Versions of a part of a snapshot, the same as those of a record.
const FORMAT: Format<SnapshotPart> =
    Format { what: "part of a snapshot", version: RECORD_VERSION, older: &[] };

/// One part of a snapshot, small enough for the codec. All parts of a snapshot in their order are
/// the state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SnapshotPart(pub(crate) Part);

/// Content of one part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Part {
    Farm(FarmPart),
    Job(Box<JobPart>),
    /// Frames of a job that have begun and are not done, by their position; in several parts where
    /// there are many.
    Frames {
        job: JobId,
        frames: Vec<(u32, Begun)>,
    },
    /// Finished frames of a job, by their position; in several parts where there are many.
    Done {
        job: JobId,
        frames: Vec<(u32, DoneFrame)>,
    },
    /// Nodes of the units of an unfinished frame; in several parts if there are many.
    CommittedBy {
        job: JobId,
        position: u32,
        nodes: Vec<NodeId>,
        of: Vec<u16>,
    },
    Trust {
        passed: Vec<(NodeId, u32)>,
        suspects: Vec<(NodeId, Suspect)>,
    },
    /// Pause of a job that an earlier part names.
    Paused {
        job: JobId,
        pause: Pause,
    },
    /// What came of the copies of a job, where it had any.
    Copies {
        job: JobId,
        copies: Copies,
    },
    /// Failed frames of a job, known from a part before, were opened again.
    Retried {
        job: JobId,
        fence: Epoch,
    },
    /// Camera samples that a job got in parts.
    Kept {
        job: JobId,
        samples: u64,
    },
    /// Units in parts of a frame that is not finished; in several parts where there are many.
    UnitParts {
        job: JobId,
        position: u32,
        units: Vec<(UnitIndex, Vec<UnitPart>)>,
    },
    /// The rounds of a frame that is not finished.
    FrameRounds {
        job: JobId,
        position: u32,
        written: WrittenRounds,
    },
    /// Nodes that get no more of a job.
    Barred {
        job: JobId,
        nodes: Vec<NodeId>,
    },
    /// Nodes of the present and the past, and which are drained; in several parts if there are
    /// many.
    Nodes {
        entries: Vec<(NodeId, Entry)>,
        drains: Vec<(NodeId, Drain)>,
    },
    /// What undoes the changes of a job since it was submitted.
    Changed {
        job: JobId,
        undo: JobEdit,
    },
    /// For how long devices waited for what the units of a job need.
    DevicesWaited {
        job: JobId,
        millis: u64,
    },
    /// Jobs for which a job has waited, and does not any more.
    WaitsEnded {
        job: JobId,
        on: Vec<JobId>,
    },
    /// Device time that was spent for a job.
    Spent {
        job: JobId,
        spent: Spent,
    },
    /// Rules of what is spent, where there are any.
    CostRules {
        rules: Box<CostRules>,
        /// When space was counted last, where it has a price.
        storage_since: Option<Moment>,
    },
    /// What was spent for the jobs of an owner, by the number of its identity.
    Account {
        owner: u64,
        account: Account,
    },
    /// A template that an admin has published.
    Preset {
        name: String,
        published: Published,
    },
}

/// What is of no job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct FarmPart {
    pub(crate) epochs_reserved: Epoch,
    pub(crate) recent: Vec<(Epoch, UnitKey)>,
}

/// A job without its frames.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct JobPart {
    pub(crate) id: JobId,
    #[serde(with = "described")]
    pub(crate) spec: JobSpec,
    pub(crate) owner: String,
    pub(crate) owner_id: u64,
    /// Number in the order of acceptance.
    pub(crate) order: u64,
    pub(crate) submitted_at: Moment,
    pub(crate) fingerprint: Option<Fingerprint>,
    pub(crate) end: Option<End>,
    pub(crate) failures: Vec<FailureNote>,
}

impl SnapshotPart {
    /// Version byte and encoding. Fails where a single frame's exceptions are beyond the codec's
    /// limit.
    pub fn to_bytes(&self) -> Result<Vec<u8>, CodecError> {
        FORMAT.to_bytes(self)
    }

    /// The part that bytes hold.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, JournalError> {
        FORMAT.read(bytes)
    }
}

/// The parts of a state.
pub(crate) fn parts(farm: &Farm) -> Vec<SnapshotPart> {
    let mut parts = vec![SnapshotPart(Part::Farm(FarmPart {
        epochs_reserved: farm.epochs_reserved,
        recent: farm.recent.iter().map(|(epoch, unit)| (*epoch, *unit)).collect(),
    }))];
    let passed: Vec<(NodeId, u32)> =
        farm.trust.passed.iter().map(|(node, passed)| (*node, *passed)).collect();
    let suspects =
        farm.trust.suspects.iter().map(|(node, suspect)| (*node, suspect.clone())).collect();
    parts.push(SnapshotPart(Part::Trust { passed, suspects }));
    push_nodes(&mut parts, &farm.register);
    push_accounts(&mut parts, &farm.accounts);
    push_presets(&mut parts, &farm.presets);
    for job in farm.order().filter_map(|id| farm.jobs.get(&id)) {
        parts.push(SnapshotPart(Part::Job(Box::new(JobPart {
            id: job.id,
            spec: job.spec.clone(),
            owner: job.owner.clone(),
            owner_id: job.owner_id,
            order: job.order,
            submitted_at: job.submitted_at,
            fingerprint: job.fingerprint,
            end: job.end.clone(),
            failures: job.failures.iter().cloned().collect(),
        }))));
        if let Some(pause) = job.paused.clone() {
            parts.push(SnapshotPart(Part::Paused { job: job.id, pause }));
        }
        if job.copies != Copies::default() {
            parts.push(SnapshotPart(Part::Copies { job: job.id, copies: job.copies }));
        }
        if job.fence > Epoch(0) {
            parts.push(SnapshotPart(Part::Retried { job: job.id, fence: job.fence }));
        }
        if job.samples_kept > 0 {
            parts.push(SnapshotPart(Part::Kept { job: job.id, samples: job.samples_kept }));
        }
        if job.devices_waited_millis > 0 {
            let millis = job.devices_waited_millis;
            parts.push(SnapshotPart(Part::DevicesWaited { job: job.id, millis }));
        }
        if !job.spent.is_empty() {
            parts.push(SnapshotPart(Part::Spent { job: job.id, spent: job.spent.clone() }));
        }
        if !job.barred.is_empty() {
            let nodes = job.barred.iter().copied().collect();
            parts.push(SnapshotPart(Part::Barred { job: job.id, nodes }));
        }
        if !job.undo.is_empty() {
            parts.push(SnapshotPart(Part::Changed { job: job.id, undo: job.undo.clone() }));
        }
        let on: Vec<JobId> = job.waits_over().collect();
        if !on.is_empty() {
            parts.push(SnapshotPart(Part::WaitsEnded { job: job.id, on }));
        }
        push_frames(&mut parts, job);
    }
    parts
}

fn push_nodes(parts: &mut Vec<SnapshotPart>, register: &Register) {
    let entries: Vec<(NodeId, Entry)> =
        register.entries().iter().map(|(node, entry)| (*node, entry.clone())).collect();
    for entries in entries.chunks(NODES_MAX) {
        parts.push(SnapshotPart(Part::Nodes { entries: entries.to_vec(), drains: Vec::new() }));
    }
    let drains: Vec<(NodeId, Drain)> =
        register.drains().iter().map(|(node, drain)| (*node, drain.clone())).collect();
    for drains in drains.chunks(NODES_MAX) {
        parts.push(SnapshotPart(Part::Nodes { entries: Vec::new(), drains: drains.to_vec() }));
    }
}

fn push_accounts(parts: &mut Vec<SnapshotPart>, accounts: &Accounts) {
    if *accounts.rules() != CostRules::default() {
        let rules = Box::new(accounts.rules().clone());
        let storage_since = accounts.storage_since();
        parts.push(SnapshotPart(Part::CostRules { rules, storage_since }));
    }
    let part = |(owner, account): (&u64, &Account)| {
        SnapshotPart(Part::Account { owner: *owner, account: account.clone() })
    };
    parts.extend(accounts.owners().iter().map(part));
}

fn push_presets(parts: &mut Vec<SnapshotPart>, presets: &Presets) {
    let part = |(name, published): (&String, &Published)| {
        SnapshotPart(Part::Preset { name: name.clone(), published: published.clone() })
    };
    parts.extend(presets.all().iter().map(part));
}

fn push_frames(parts: &mut Vec<SnapshotPart>, job: &Job) {
    let units = job.grid.all_units();
    let begun = job.frames().begun().map(|(position, begun)| (position, begun.clone()));
    push_weighed(
        parts,
        begun,
        |begun| weight_of(begun, units),
        |frames| Part::Frames { job: job.id, frames },
    );
    let weight = |done: &DoneFrame| done.files.len() * 96 + 32;
    push_weighed(parts, job.frames().done().iter(), weight, |frames| Part::Done {
        job: job.id,
        frames,
    });
    for (position, open) in job.frames().unfinished() {
        push_makers(parts, job.id, position, &open.committed_by);
        let units: Vec<_> = open.parts.iter().map(|(unit, parts)| (unit, parts.to_vec())).collect();
        for units in units.chunks(UNITS_IN_PARTS_MAX) {
            let units = units.to_vec();
            parts.push(SnapshotPart(Part::UnitParts { job: job.id, position, units }));
        }
        if let Some(written) = open.rounds.as_ref().map(|rounds| rounds.written()) {
            parts.push(SnapshotPart(Part::FrameRounds { job: job.id, position, written }));
        }
    }
}

/// Adds frames in parts of about [`PART_BYTES`].
fn push_weighed<T>(
    parts: &mut Vec<SnapshotPart>,
    frames: impl Iterator<Item = (u32, T)>,
    weight_of: impl Fn(&T) -> usize,
    part_of: impl Fn(Vec<(u32, T)>) -> Part,
) {
    let (mut weight, mut some) = (0, Vec::new());
    for (position, frame) in frames {
        weight += weight_of(&frame);
        some.push((position, frame));
        if weight >= PART_BYTES {
            parts.push(SnapshotPart(part_of(std::mem::take(&mut some))));
            weight = 0;
        }
    }
    if !some.is_empty() {
        parts.push(SnapshotPart(part_of(some)));
    }
}

/// Nodes are only in the first part.
fn push_makers(
    parts: &mut Vec<SnapshotPart>,
    job: JobId,
    position: u32,
    committed_by: &CommittedBy,
) {
    let (nodes, of) = committed_by.parts();
    let mut nodes = nodes.to_vec();
    for of in of.chunks(MAKERS_MAX) {
        let (nodes, of) = (std::mem::take(&mut nodes), of.to_vec());
        parts.push(SnapshotPart(Part::CommittedBy { job, position, nodes, of }));
    }
}

/// Bytes of a frame, about.
fn weight_of(frame: &Begun, units: u32) -> usize {
    match frame {
        Begun::Open(open) | Begun::Complete(open) => {
            let checks: usize =
                open.checks.values().map(|check| 64 + 64 * check.others.len()).sum();
            2 * (units as usize / 7) + open.troubled.len() * 48 + checks + 16
        }
        Begun::Failed(failed) => failed.reason.len() + 24,
    }
}

/// Takes a part in, after those before it.
pub(crate) fn restore(farm: &mut Farm, part: SnapshotPart) -> Result<(), String> {
    match part.0 {
        Part::Farm(part) => {
            farm.epochs_reserved = part.epochs_reserved;
            farm.recent = part.recent.into_iter().collect();
            Ok(())
        }
        Part::Job(part) => {
            let (shelf, at) = (farm.shelf.clone(), part.submitted_at);
            let owner = (part.owner, part.owner_id);
            let mut job = Job::new(part.id, part.spec, owner, part.order, at, shelf);
            job.fingerprint = part.fingerprint;
            if let Some(end) = part.end {
                job.restore_end(end);
            }
            job.failures = part.failures.into();
            farm.insert(job)
        }
        Part::Frames { job, frames } => farm.job_mut(job)?.restore_frames(frames),
        Part::Done { job, frames } => farm.job_mut(job)?.restore_done(frames),
        Part::CommittedBy { job, position, nodes, of } => {
            farm.job_mut(job)?.restore_committed_by(position, nodes, of)
        }
        Part::Paused { job, pause } => farm.job_mut(job)?.pause(pause),
        Part::Copies { job, copies } => {
            farm.job_mut(job)?.copies = copies;
            Ok(())
        }
        Part::Retried { job, fence } => {
            farm.job_mut(job)?.fence = fence;
            Ok(())
        }
        Part::Kept { job, samples } => {
            farm.job_mut(job)?.samples_kept = samples;
            Ok(())
        }
        Part::DevicesWaited { job, millis } => {
            farm.job_mut(job)?.devices_waited_millis = millis;
            Ok(())
        }
        Part::Spent { .. }
        | Part::CostRules { .. }
        | Part::Account { .. }
        | Part::Preset { .. } => restore_settings(farm, part.0),
        Part::Barred { job, nodes } => {
            farm.job_mut(job)?.barred = nodes.into_iter().collect();
            Ok(())
        }
        Part::WaitsEnded { job, on } => {
            let job = farm.job_mut(job)?;
            on.into_iter().try_for_each(|on| job.end_wait(on))
        }
        Part::Changed { job, undo } => farm.job_mut(job)?.restore_undo(undo),
        Part::UnitParts { job, position, units } => {
            farm.job_mut(job)?.restore_parts(position, units)
        }
        Part::FrameRounds { job, position, written } => {
            farm.job_mut(job)?.restore_rounds(position, written)
        }
        Part::Trust { passed, suspects } => {
            let (passed, suspects) = (passed.into_iter().collect(), suspects.into_iter().collect());
            farm.trust = Trust { passed, suspects };
            Ok(())
        }
        Part::Nodes { entries, drains } => {
            farm.register.restore(entries, drains);
            Ok(())
        }
    }
}

/// Takes a part in that is about what was spent, or that admins have set.
fn restore_settings(farm: &mut Farm, part: Part) -> Result<(), String> {
    match part {
        Part::Spent { job, spent } => farm.job_mut(job)?.spent = spent,
        Part::CostRules { rules, storage_since } => {
            farm.accounts.restore_rules(*rules, storage_since);
        }
        Part::Account { owner, account } => farm.accounts.restore(owner, account),
        Part::Preset { name, published } => farm.presets.restore(name, published),
        _ => {}
    }
    Ok(())
}
