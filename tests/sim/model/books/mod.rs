//! The farm as its records tell it, kept by rules of the simulator's own: the core's state is
//! compared with it, never copied.

mod compare;
mod costs;
mod nodes;
mod records;
pub(crate) mod waits;

use crate::checks::violation::{Checked, Violation, violated};
use crate::model::finishing::FinishedBy;
use crate::model::parts::PartBook;
use crate::model::rounds::RoundBook;
use crate::model::tasks::frame_before;
use nodes::NodeBooks;
use std::collections::{BTreeMap, BTreeSet};
use tessera_coordinator::spool::SpoolKey;
use tessera_core::journal::Commit;
use tessera_protocol::ids::{
    BlobHash, Epoch, Fingerprint, FrameNumber, JobId, Lease, NodeId, UnitIndex, UnitKey,
};
use tessera_protocol::job::{After, JobKind, JobSpec};
use tessera_protocol::status::{CopyCount, JobState};

/// All facts up to some record.
#[derive(Clone, Debug, Default)]
pub(crate) struct Books {
    pub(crate) jobs: BTreeMap<JobId, JobBook>,
    order: Vec<JobId>,
    /// Drained nodes, and whether each is to leave and has not left.
    pub(crate) drained: BTreeMap<NodeId, bool>,
    /// Nodes of the present and the past.
    nodes: NodeBooks,
    /// Epochs below this one may be used.
    pub(crate) reserved: u64,
    /// Epochs of commits: each belongs to one unit.
    commit_epochs: BTreeMap<u64, UnitKey>,
    /// Nodes that gave a wrong result, or may have.
    pub(crate) suspects: BTreeSet<NodeId>,
    /// Leases whose results were committed and then taken back, or compared and not kept.
    pub(super) settled: BTreeSet<Lease>,
    /// Leases whose results were committed as parts of their units.
    pub(crate) part_leases: BTreeSet<Lease>,
    /// Number of budgets.
    pub(crate) budgets: usize,
    /// When the space of finished frames was counted last, where it has a price.
    storage_since: Option<u64>,
}

/// One job.
#[derive(Clone, Debug)]
pub(crate) struct JobBook {
    pub(crate) spec: JobSpec,
    pub(crate) owner: String,
    pub(crate) pinned: Option<Fingerprint>,
    pub(crate) frames: BTreeMap<FrameNumber, FrameBook>,
    pub(crate) ended: Option<JobState>,
    /// Nothing of it may be leased.
    pub(crate) paused: bool,
    /// What it still waits for.
    pub(crate) waits: Vec<After>,
    /// It is not as it was submitted, or was not for a while.
    pub(crate) changed: bool,
    /// Nodes that were wrong about the user's kernel.
    pub(crate) barred: BTreeSet<NodeId>,
    /// How often it went on.
    pub(crate) resumed: u32,
    copies: CopyCount,
    /// For how long devices waited for what its units need.
    devices_waited_millis: u64,
    /// Device time that was spent for it.
    spent_micros: u64,
    /// Bytes of its finished frames, and what was counted of their space.
    file_bytes: u64,
    stored_byte_millis: u128,
    /// How often it has ended, and was opened again.
    pub(crate) ends: u32,
    pub(crate) retried: u32,
    /// Samples that came in parts of frames that were opened again.
    kept_before: u64,
    /// Leases below it that nobody holds are of frames that had failed.
    pub(crate) fence: u64,
}

/// One frame.
#[derive(Clone, Debug)]
pub(crate) struct FrameBook {
    /// Units in all; at most, where the frame is sampled in rounds. Those that finish the frame
    /// come after them.
    pub(crate) units: u32,
    /// Units that finish the frame.
    pub(crate) pieces: u32,
    pub(crate) finished_by: FinishedBy,
    /// How these go.
    pub(crate) rounds: Option<RoundBook>,
    pub(crate) committed: BTreeMap<u32, (Epoch, NodeId)>,
    /// Units that were committed and are not any more: taken back from a liar, or of a frame that
    /// is tried again.
    pub(crate) undone: BTreeSet<u32>,
    /// Results of the units that are to be checked, the committed one first.
    pub(crate) checks: BTreeMap<u32, Vec<(NodeId, BlobHash)>>,
    /// Committed units that another node has rendered alike.
    pub(crate) verified: BTreeSet<u32>,
    /// Parts of units, in the order of their samples; of a unit that is committed, its last too.
    pub(crate) parts: BTreeMap<u32, Vec<PartBook>>,
    /// The newest attempt of a unit that ended, whose it was, and whether it failed.
    pub(crate) attempts: BTreeMap<u32, (Epoch, NodeId, bool)>,
    pub(crate) end: FrameEnd,
    /// How often it has failed.
    pub(crate) failures: u32,
}

/// Whether a frame goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameEnd {
    Open,
    Done,
    Failed,
}

impl JobBook {
    pub(crate) fn kind(&self) -> &JobKind {
        &self.spec.kind
    }

    /// The kernel is the user's own: results that differ are not a node's fault alone.
    pub(crate) fn runs_users_kernel(&self) -> bool {
        self.kind().compute().is_some_and(|compute| compute.runs_users_kernel())
    }

    /// Results that differ are meant to.
    pub(crate) fn is_uncompared(&self) -> bool {
        self.kind().compute().is_some_and(|compute| compute.nondeterministic)
    }

    /// Nodes finish one of its frames now.
    pub(crate) fn is_finishing(&self) -> bool {
        let mut frames = self.frames.values();
        self.ended.is_none()
            && frames.any(|frame| frame.end == FrameEnd::Open && frame.is_by_nodes())
    }

    /// Some frame is finished.
    pub(crate) fn some_done(&self) -> bool {
        self.frames.values().any(|frame| frame.end == FrameEnd::Done)
    }

    /// Units that wait for a result.
    pub(crate) fn open_units(&self) -> usize {
        let open = self.frames.values().filter(|frame| frame.end == FrameEnd::Open);
        open.map(|frame| frame.wanted() as usize - frame.sampled()).sum()
    }

    /// The frame reads the result of one before it.
    pub(crate) fn reads_before(&self, frame: FrameNumber) -> bool {
        frame_before(self.kind(), frame).is_some()
    }

    /// Every frame needs the one before, and this one lacks it.
    pub(crate) fn lacks_feed(&self, frame: FrameNumber) -> bool {
        let before = frame_before(self.kind(), frame).and_then(|before| self.frames.get(&before));
        before.is_some_and(|before| before.end != FrameEnd::Done)
    }
}

impl FrameBook {
    /// The unit is part of the frame, as far as its rounds are known.
    pub(crate) fn wants(&self, unit: u32) -> bool {
        if unit >= self.units {
            return self.wants_piece(unit);
        }
        self.rounds.as_ref().is_none_or(|rounds| rounds.wants(unit))
    }

    /// Units of the frame, as far as its rounds are known.
    pub(crate) fn wanted(&self) -> u32 {
        self.rounds.as_ref().map_or(self.units, |rounds| rounds.wanted().count() as u32)
    }

    /// Units that were committed, are not any more, and are to be again.
    pub(crate) fn undone(&self) -> usize {
        self.undone.iter().filter(|unit| self.wants(**unit)).count()
    }

    /// No round follows.
    pub(crate) fn is_last_round(&self) -> bool {
        self.rounds.as_ref().is_none_or(RoundBook::is_over)
    }
}

impl Books {
    /// The book of a unit's frame, if the unit exists.
    pub(crate) fn frame(&self, unit: UnitKey) -> Option<&FrameBook> {
        let frame = self.jobs.get(&unit.job)?.frames.get(&unit.frame)?;
        (unit.unit.0 < frame.units + frame.pieces).then_some(frame)
    }

    /// The unit exists, waits for a result, and its job goes on.
    pub(crate) fn is_open(&self, unit: UnitKey) -> bool {
        let going = self.jobs.get(&unit.job).is_some_and(|job| job.ended.is_none());
        let frame = self.frame(unit);
        let open = frame.is_some_and(|frame| frame.end == FrameEnd::Open);
        let waits = |frame: &FrameBook| {
            frame.wants(unit.unit.0) && !frame.committed.contains_key(&unit.unit.0)
        };
        going && open && frame.is_some_and(waits)
    }

    /// The journal knows the result of this lease, and its frame waits for results or for its
    /// files.
    pub(crate) fn keeps_result(&self, lease: Lease) -> bool {
        let Some(frame) = self.frame(lease.unit).filter(|frame| frame.end == FrameEnd::Open) else {
            return false;
        };
        let unit = lease.unit.unit.0;
        let mut parts = frame.parts.get(&unit).into_iter().flatten();
        frame.committed.get(&unit).is_some_and(|(epoch, _)| *epoch == lease.epoch)
            || parts.any(|part| part.epoch == lease.epoch)
    }

    /// Open frames of which something is committed.
    pub(crate) fn with_results(&self) -> Vec<SpoolKey> {
        let going = self.jobs.iter().filter(|(_, job)| job.ended.is_none());
        let frames = going.flat_map(|(job, book)| {
            book.frames.iter().map(|(number, frame)| (*job, *number, frame))
        });
        let some = frames.filter(|(.., frame)| {
            let begun = frame.parts.values().any(|parts| !parts.is_empty());
            frame.end == FrameEnd::Open && (!frame.committed.is_empty() || begun)
        });
        some.map(|(job, frame, _)| SpoolKey { job, frame }).collect()
    }

    /// The results that a frame has: those of its units, and parts.
    pub(crate) fn results_of(&self, key: SpoolKey) -> BTreeSet<(UnitIndex, Epoch)> {
        let book = self.jobs.get(&key.job).and_then(|job| job.frames.get(&key.frame));
        let Some(book) = book else { return BTreeSet::new() };
        let whole = book.committed.iter().map(|(unit, (epoch, _))| (*unit, *epoch));
        let whole = whole.filter(|(unit, _)| !book.parts.contains_key(unit));
        let parts = book
            .parts
            .iter()
            .flat_map(|(unit, parts)| parts.iter().map(|part| (*unit, part.epoch)));
        whole.chain(parts).map(|(unit, epoch)| (UnitIndex(unit), epoch)).collect()
    }

    /// The unit is committed, and its frame waits for its check.
    pub(crate) fn is_to_be_checked(&self, unit: UnitKey) -> bool {
        let going = self.jobs.get(&unit.job).is_some_and(|job| job.ended.is_none());
        let waits = |frame: &FrameBook| {
            frame.end == FrameEnd::Open && frame.checks.contains_key(&unit.unit.0)
        };
        going && self.frame(unit).is_some_and(waits)
    }

    /// A result of the unit is wanted: it is open, or to be checked.
    pub(crate) fn is_wanted(&self, unit: UnitKey) -> bool {
        self.is_open(unit) || self.is_to_be_checked(unit)
    }

    /// The result of this lease was committed, or compared with one that was.
    pub(crate) fn has_commit(&self, lease: Lease) -> bool {
        self.settled.contains(&lease) || self.part_leases.contains(&lease) || self.stands(lease)
    }

    /// Units of a job that are open, and may be leased, and of which no attempt has ended.
    pub(crate) fn fresh_units(&self, job: JobId) -> impl Iterator<Item = UnitKey> + '_ {
        let book = self.jobs.get(&job).filter(|book| book.ended.is_none());
        let frames = book.into_iter().flat_map(move |book| {
            let open = book.frames.iter().filter(|(_, frame)| frame.end == FrameEnd::Open);
            open.filter(|(number, _)| !book.lacks_feed(**number))
                .filter(move |(number, _)| !self.holds_back(job, **number))
        });
        frames.flat_map(move |(number, frame)| {
            let units = (0..frame.units).filter(|unit| {
                frame.wants(*unit)
                    && !frame.committed.contains_key(unit)
                    && !frame.attempts.contains_key(unit)
            });
            units.map(move |unit| UnitKey { job, frame: *number, unit: UnitIndex(unit) })
        })
    }

    /// The result of this lease is committed now, and was not taken back since.
    pub(crate) fn stands(&self, lease: Lease) -> bool {
        let committed =
            self.frame(lease.unit).and_then(|frame| frame.committed.get(&lease.unit.unit.0));
        committed.is_some_and(|(epoch, _)| *epoch == lease.epoch)
    }

    /// Nobody may have a lease of the job.
    pub(crate) fn is_paused(&self, job: JobId) -> bool {
        self.jobs.get(&job).is_some_and(|book| book.paused)
    }

    /// A job that has not ended.
    fn going(&mut self, job: JobId) -> Result<&mut JobBook, Violation> {
        let book = self.jobs.get_mut(&job).filter(|job| job.ended.is_none());
        book.ok_or_else(|| {
            Violation(format!("a record speaks of job {job}, which is unknown or has ended"))
        })
    }

    /// A frame that has not ended, of a job that has not.
    pub(crate) fn open_frame(
        &mut self,
        job: JobId,
        frame: FrameNumber,
    ) -> Result<&mut FrameBook, Violation> {
        let book =
            self.going(job)?.frames.get_mut(&frame).filter(|frame| frame.end == FrameEnd::Open);
        book.ok_or_else(|| {
            Violation(format!("a record speaks of {job}/{frame}, which is unknown or has ended"))
        })
    }

    /// What holds of every result that is committed, and of every part.
    pub(crate) fn check_commit(&mut self, unit: UnitKey, commit: &Commit) -> Checked {
        if commit.epoch.0 >= self.reserved {
            return violated(format!(
                "{unit} is committed with {}, which was never reserved",
                commit.epoch
            ));
        }
        if let Some(other) = self.commit_epochs.insert(commit.epoch.0, unit) {
            return violated(format!("{} is committed for {unit} and for {other}", commit.epoch));
        }
        match self.going(unit.job)?.pinned {
            Some(_) => Ok(()),
            None => violated(format!("{unit} is committed before its job is pinned")),
        }
    }
}
