//! The durable state of one job. Its leases and its queue are not durable and are kept elsewhere.

mod after;
mod barred;
mod changed;
mod check;
mod checks;
mod counts;
mod ends;
mod frames;
mod metered;
mod restored;
mod results;
mod work;

use crate::owner::Owner;
use crate::splitter::Split;
use crate::state::frame::Frame;
use crate::state::shelf::Shelf;
use crate::state::spent::Spent;
use crate::state::waits::Waits;
use crate::time::Moment;
pub(crate) use counts::Counts;
pub(crate) use frames::Frames;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use tessera_protocol::codec;
use tessera_protocol::ids::{
    BlobHash, Epoch, Fingerprint, FrameNumber, JobId, NodeId, UnitIndex, UnitKey,
};
use tessera_protocol::job::{JobEdit, JobKind, JobSpec};
use tessera_protocol::status::{FailureNote, JobState};

/// A unit by the position of its frame among the job's frames; ordered by the order of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) position: u32,
    pub(crate) unit: UnitIndex,
}

/// How and when a job ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct End {
    pub(crate) state: JobState,
    pub(crate) at: Moment,
    pub(crate) note: String,
}

/// Who paused a job, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pause {
    pub(crate) by: String,
    pub(crate) at: Moment,
}

/// Counts of units that had two leases, of which one was stopped after the other's result was
/// taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Copies {
    /// Number of times that the copy was first.
    pub(crate) won: u64,
    /// Number of times that the original lease was first.
    pub(crate) lost: u64,
    /// Total time for which stopped leases were held, in milliseconds.
    pub(crate) wasted_millis: u64,
}

/// Durable state of a job.
#[derive(Debug, PartialEq)]
pub(crate) struct Job {
    pub(in crate::state) id: JobId,
    pub(in crate::state) spec: JobSpec,
    pub(in crate::state) grid: Split,
    /// Hash of the scene, or of the program and its inputs. Nodes use it to say what they hold.
    pub(in crate::state) scene: BlobHash,
    pub(in crate::state) owner: String,
    /// Number of the owner's identity.
    pub(in crate::state) owner_id: u64,
    /// Number in the order of acceptance; grows from job to job.
    pub(in crate::state) order: u64,
    pub(in crate::state) submitted_at: Moment,
    pub(in crate::state) fingerprint: Option<Fingerprint>,
    pub(in crate::state) end: Option<End>,
    /// The pause, if the job is paused. None once it has ended.
    pub(in crate::state) paused: Option<Pause>,
    /// Results below this epoch are of failed frames that were retried, unless their lease is held.
    pub(in crate::state) fence: Epoch,
    pub(in crate::state) failures: VecDeque<FailureNote>,
    pub(in crate::state) copies: Copies,
    /// For how long devices waited for what its units need, in milliseconds.
    pub(in crate::state) devices_waited_millis: u64,
    /// Device time that was spent for it.
    pub(in crate::state) spent: Spent,
    /// Camera samples that leaving nodes handed in as parts, without those that were taken back
    /// later.
    pub(in crate::state) samples_kept: u64,
    /// Nodes that were wrong about a chunk of the user's kernel: their results are not wanted.
    pub(in crate::state) barred: BTreeSet<NodeId>,
    /// What undoes all changes since the job was submitted.
    pub(in crate::state) undo: JobEdit,
    /// What the job still waits for.
    waits: Waits,
    /// Bytes of the description.
    spec_bytes: u64,
    frames: Frames,
    counts: Counts,
}

/// Bytes of a job beside its description and frames, about.
const JOB_BYTES: u64 = 2048;

/// Bytes of a description and of what is kept beside it.
fn bytes_of(spec: &JobSpec) -> u64 {
    codec::encode(spec).map_or(0, |bytes| bytes.len() as u64) + JOB_BYTES
}

impl Job {
    pub(crate) fn id(&self) -> JobId {
        self.id
    }

    pub(crate) fn spec(&self) -> &JobSpec {
        &self.spec
    }

    pub(crate) fn grid(&self) -> Split {
        self.grid
    }

    /// Hash of the scene, or of the program and its inputs. Nodes use it to say what they hold.
    pub(crate) fn scene(&self) -> BlobHash {
        self.scene
    }

    pub(crate) fn owner(&self) -> &str {
        &self.owner
    }

    /// Bytes of the description and of what is kept beside it, without its frames.
    pub(crate) fn spec_bytes(&self) -> u64 {
        self.spec_bytes
    }

    /// Number of the owner's identity. Rights to the job go by it.
    pub(crate) fn owner_id(&self) -> u64 {
        self.owner_id
    }

    /// Whose share the job takes of.
    pub(crate) fn held_by(&self) -> Owner {
        Owner::new(self.owner_id, &self.owner)
    }

    /// Number in the order of acceptance; grows from job to job.
    pub(crate) fn order(&self) -> u64 {
        self.order
    }

    pub(crate) fn submitted_at(&self) -> Moment {
        self.submitted_at
    }

    pub(crate) fn fingerprint(&self) -> Option<Fingerprint> {
        self.fingerprint
    }

    pub(crate) fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// The pause, if the job is paused. None once it has ended.
    pub(crate) fn paused(&self) -> Option<&Pause> {
        self.paused.as_ref()
    }

    /// Results below this epoch are of failed frames that were retried, unless their lease is held.
    pub(crate) fn fence(&self) -> Epoch {
        self.fence
    }

    pub(crate) fn failures(&self) -> &VecDeque<FailureNote> {
        &self.failures
    }

    pub(crate) fn copies(&self) -> Copies {
        self.copies
    }

    /// For how long devices waited for what its units need, in milliseconds.
    pub(crate) fn devices_waited_millis(&self) -> u64 {
        self.devices_waited_millis
    }

    /// Device time that was spent for it.
    pub(crate) fn spent(&self) -> &Spent {
        &self.spent
    }

    /// Camera samples that leaving nodes handed in as parts, without those that were taken back
    /// later.
    pub(crate) fn samples_kept(&self) -> u64 {
        self.samples_kept
    }

    pub(crate) fn new(
        id: JobId,
        spec: JobSpec,
        (owner, owner_id): (String, u64),
        order: u64,
        submitted_at: Moment,
        shelf: Arc<dyn Shelf>,
    ) -> Self {
        let (grid, scene) = (Split::of(&spec.kind), spec.kind.data_hash());
        let frames = Frames::new(spec.kind.frames().len(), shelf);
        let (spec_bytes, waits) = (bytes_of(&spec), Waits::of(&spec.after));
        let (units, samples) = grid.first_work();
        let count = u64::from(frames.len());
        let counts = Counts {
            units_open: u64::from(units) * count,
            samples_open: samples * count,
            ..Counts::default()
        };
        Self {
            id,
            spec,
            grid,
            scene,
            owner,
            owner_id,
            order,
            submitted_at,
            fingerprint: None,
            end: None,
            paused: None,
            fence: Epoch(0),
            failures: VecDeque::new(),
            copies: Copies::default(),
            devices_waited_millis: 0,
            spent: Spent::default(),
            samples_kept: 0,
            barred: BTreeSet::new(),
            undo: JobEdit::default(),
            waits,
            spec_bytes,
            counts,
            frames,
        }
    }

    pub(crate) fn kind(&self) -> &JobKind {
        &self.spec.kind
    }

    pub(crate) fn frames(&self) -> &Frames {
        &self.frames
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }

    pub(crate) fn is_final(&self) -> bool {
        self.end.is_some()
    }

    /// Whether every frame is done or failed.
    pub(crate) fn is_over(&self) -> bool {
        self.counts.frames_done + self.counts.frames_failed == self.frames.len()
    }

    pub(crate) fn position(&self, frame: FrameNumber) -> Option<u32> {
        self.kind().frames().position(frame)
    }

    pub(crate) fn number(&self, position: u32) -> Option<FrameNumber> {
        self.kind().frames().get(position)
    }

    pub(crate) fn frame(&self, number: FrameNumber) -> Option<Frame<'_>> {
        self.frames.get(self.position(number)?)
    }

    /// Returns the place of a unit that the splitter knows.
    pub(crate) fn place(&self, unit: UnitKey) -> Option<Place> {
        let position = self.position(unit.frame)?;
        (unit.unit.0 < self.grid.all_units()).then_some(Place { position, unit: unit.unit })
    }

    pub(crate) fn key(&self, place: Place) -> Option<UnitKey> {
        Some(UnitKey { job: self.id, frame: self.number(place.position)?, unit: place.unit })
    }

    /// Returns the position of a frame that a record names, of a job that has not ended.
    fn position_of(&self, number: FrameNumber) -> Result<u32, String> {
        if self.is_final() {
            return Err(format!("job {} has ended", self.id));
        }
        self.position(number).ok_or_else(|| format!("job {} has no frame {number}", self.id))
    }

    /// Returns the position of a frame of which a result is recorded.
    fn free_position_of(&self, number: FrameNumber) -> Result<u32, String> {
        let position = self.position_of(number)?;
        match self.waits_at(position) {
            true => Err(format!("{}/{number} has a result, and waits for another job", self.id)),
            false => Ok(position),
        }
    }

    pub(crate) fn pin(&mut self, fingerprint: Fingerprint) -> Result<(), String> {
        match self.fingerprint {
            Some(pinned) if pinned != fingerprint => {
                Err(format!("job {} is pinned to {pinned}", self.id))
            }
            _ => {
                self.fingerprint = Some(fingerprint);
                Ok(())
            }
        }
    }
}
