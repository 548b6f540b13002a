//! The durable state as a sequence of bounded parts, so that the journal before it may go.

use crate::farm::Farm;
use crate::frame::Frame;
use crate::job::{End, Job};
use crate::journal::{JournalError, from_versioned, to_versioned};
use crate::moment::Moment;
use serde::{Deserialize, Serialize};
use tessera_protocol::CodecError;
use tessera_protocol::ids::{Epoch, Fingerprint, JobId, NodeId, UnitKey};
use tessera_protocol::job::JobSpec;
use tessera_protocol::status::FailureNote;

/// Frames in one part weigh at most about this many bytes, far below what the codec takes.
const PART_BYTES: usize = 1 << 20;

/// One part of a snapshot, small enough for the codec. All parts of one snapshot, in order, are the state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SnapshotPart(pub(crate) Part);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Part {
    Farm(FarmPart),
    Job(Box<JobPart>),
    Frames { job: JobId, from: u32, frames: Vec<Frame> },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct FarmPart {
    pub(crate) epochs_reserved: Epoch,
    drained: Vec<NodeId>,
    recent: Vec<(Epoch, UnitKey)>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct JobPart {
    pub(crate) id: JobId,
    pub(crate) spec: JobSpec,
    pub(crate) owner: String,
    pub(crate) submitted_at: Moment,
    pub(crate) fingerprint: Option<Fingerprint>,
    pub(crate) end: Option<End>,
    pub(crate) failures: Vec<FailureNote>,
}

impl SnapshotPart {
    /// Version byte and encoding. Fails where a single frame's exceptions are beyond the codec's limit.
    pub fn to_bytes(&self) -> Result<Vec<u8>, CodecError> {
        to_versioned(self)
    }

    /// The part that bytes hold.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, JournalError> {
        from_versioned(bytes)
    }
}

/// The parts of a state.
pub(crate) fn parts(farm: &Farm) -> Vec<SnapshotPart> {
    let mut parts = vec![SnapshotPart(Part::Farm(FarmPart {
        epochs_reserved: farm.epochs_reserved,
        drained: farm.drained.iter().copied().collect(),
        recent: farm.recent.iter().map(|(epoch, unit)| (*epoch, *unit)).collect(),
    }))];
    for job in farm.order.iter().filter_map(|id| farm.jobs.get(id)) {
        parts.push(SnapshotPart(Part::Job(Box::new(JobPart {
            id: job.id,
            spec: job.spec.clone(),
            owner: job.owner.clone(),
            submitted_at: job.submitted_at,
            fingerprint: job.fingerprint,
            end: job.end.clone(),
            failures: job.failures.iter().cloned().collect(),
        }))));
        push_frames(&mut parts, job);
    }
    parts
}

fn push_frames(parts: &mut Vec<SnapshotPart>, job: &Job) {
    let (mut from, mut weight, mut frames) = (0, 0, Vec::new());
    for (position, frame) in job.frames().iter().enumerate() {
        weight += weight_of(frame, job.grid.units());
        frames.push(frame.clone());
        if weight >= PART_BYTES || position + 1 == job.frames().len() {
            let next = position as u32 + 1;
            parts.push(SnapshotPart(Part::Frames { job: job.id, from, frames: std::mem::take(&mut frames) }));
            (from, weight) = (next, 0);
        }
    }
}

/// Bytes of a frame, about.
fn weight_of(frame: &Frame, units: u32) -> usize {
    match frame {
        Frame::Untouched | Frame::Complete => 1,
        Frame::Open(open) => units as usize / 7 + open.troubled.len() * 48 + 16,
        Frame::Done(files) => files.len() * 96 + 8,
        Frame::Failed(failed) => failed.reason.len() + 24,
    }
}

/// Takes a part in, after those before it.
pub(crate) fn restore(farm: &mut Farm, part: SnapshotPart) -> Result<(), String> {
    match part.0 {
        Part::Farm(part) => {
            farm.epochs_reserved = part.epochs_reserved;
            farm.drained = part.drained.into_iter().collect();
            farm.recent = part.recent.into_iter().collect();
            Ok(())
        }
        Part::Job(part) => {
            let order = farm.next_order();
            let mut job = Job::new(part.id, part.spec, part.owner, order, part.submitted_at);
            job.fingerprint = part.fingerprint;
            job.end = part.end;
            job.failures = part.failures.into();
            farm.insert(job)
        }
        Part::Frames { job, from, frames } => farm.job_mut(job)?.restore_frames(from, frames),
    }
}
