//! What the farm tells people and programs about its jobs, frames and nodes.

use crate::core::Core;
use crate::nodes::devices::none_usable;
use crate::nodes::roster::{Node, Presence};
use crate::state::frame::Frame;
use crate::state::job::Place;
use crate::state::rounds::FrameRounds;
use crate::time::Moment;
use tessera_protocol::ids::{BlobHash, Epoch, FrameNumber, JobId, NodeId, UnitIndex, UnitKey};
use tessera_protocol::limits::{FRAME_PAGE_MAX, ROWS_MAX};
use tessera_protocol::node::Task;
use tessera_protocol::status::{
    CopyCount, FrameStatus, JobDetail, JobState, JobSummary, NodeState, NodeSummary,
};

/// The farm in three numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Nodes with a session.
    pub nodes: usize,
    /// Jobs that have not ended.
    pub jobs: usize,
    /// Units leased.
    pub units: usize,
}

/// A committed part of a unit, as its frame's spool must have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptPart {
    /// The unit.
    pub unit: UnitIndex,
    /// First sample, counted from the unit's first.
    pub first: u32,
    /// Samples per pixel.
    pub samples: u32,
    /// The lease that made it.
    pub epoch: Epoch,
    /// Its bytes.
    pub hash: BlobHash,
}

impl Core {
    /// What is here now.
    pub fn census(&self) -> Census {
        let nodes = self.roster.nodes().filter(|node| node.session().is_some()).count();
        Census { nodes, jobs: self.queues.len(), units: self.leases.count() }
    }

    /// Jobs in the order of their acceptance, at most the newest [`ROWS_MAX`].
    pub fn jobs(&self) -> Vec<JobSummary> {
        let newest =
            self.farm.order().iter().skip(self.farm.order().len().saturating_sub(ROWS_MAX));
        newest.filter_map(|id| self.job_summary(*id)).collect()
    }

    /// First epoch that no lease has had, and none may have before more are reserved.
    pub fn epochs_reserved(&self) -> Epoch {
        self.farm.epochs_reserved()
    }

    /// Every job, in the order of acceptance.
    pub fn job_ids(&self) -> impl Iterator<Item = JobId> + '_ {
        self.farm.order().iter().copied()
    }

    /// Units of a frame that are committed and wait for its files to be made; None for no such
    /// frame, and for one that has ended.
    pub fn committed_units(&self, id: JobId, frame: FrameNumber) -> Option<Vec<UnitIndex>> {
        let job = self.farm.job(id)?;
        let position =
            job.position(frame).filter(|_| !job.frame(frame).is_none_or(Frame::is_final))?;
        let books = self.books_of(job);
        let is_committed = |unit: &UnitIndex| {
            let state = books.state_of(Place { position, unit: *unit });
            state.is_ok_and(|state| state.is_committed())
        };
        Some((0..job.grid().units()).map(UnitIndex).filter(is_committed).collect())
    }

    /// How the rounds of a frame go that has begun and has not ended; None of one that is not
    /// sampled in rounds.
    pub fn frame_rounds(&self, id: JobId, frame: FrameNumber) -> Option<FrameRounds> {
        let open = self.farm.job(id)?.frame(frame)?.unfinished()?;
        open.rounds().cloned()
    }

    /// Index of a unit's first sample; 0 of a compute job, or where there is no such unit.
    pub fn first_sample(&self, unit: UnitKey) -> u32 {
        let task = self.farm.job(unit.job).and_then(|job| job.grid().task(unit.unit, None));
        match task {
            Some(Task::Tile { samples, .. }) => samples.first,
            _ => 0,
        }
    }

    /// Parts of a frame's units, whole by now or not, each unit's in the order of their samples:
    /// those of a spool that count. None of a frame that has ended.
    pub fn parts(&self, id: JobId, frame: FrameNumber) -> Vec<KeptPart> {
        let frame = self.farm.job(id).and_then(|job| job.frame(frame)?.unfinished());
        let units = frame.into_iter().flat_map(|open| open.parts().iter());
        let kept = units.flat_map(|(unit, parts)| {
            parts.iter().scan(0, move |first, part| {
                let kept = KeptPart {
                    unit,
                    first: *first,
                    samples: part.samples,
                    epoch: part.result.epoch,
                    hash: part.result.hash,
                };
                *first += part.samples;
                Some(kept)
            })
        });
        kept.collect()
    }

    /// Units of a job that wait for a result.
    pub fn units_open(&self, id: JobId) -> u64 {
        self.farm.job(id).map_or(0, |job| job.counts().units_open)
    }

    /// Blobs that jobs name: the files of jobs that have not ended, and every finished frame. May
    /// name one several times.
    pub fn named_blobs(&self) -> Vec<BlobHash> {
        let mut named = Vec::new();
        for job in self.farm.jobs() {
            if !job.is_final() {
                named.extend(job.kind().files().iter().map(|(_, hash, _)| *hash));
            }
            let done = job.frames().iter().filter_map(|frame| match frame {
                Frame::Done(done) => Some(&done.files),
                _ => None,
            });
            named.extend(done.flatten().map(|file| file.hash));
        }
        named
    }

    /// The line of one job.
    pub fn job_summary(&self, id: JobId) -> Option<JobSummary> {
        let job = self.farm.job(id)?;
        let counts = job.counts();
        let units_leased = self.leases.count_in(id) as u64;
        let begun =
            self.queues.get(&id).is_some_and(|work| work.begun()) || counts.units_committed > 0;
        let state = match job.end() {
            Some(end) => end.state,
            None if job.paused().is_some() => JobState::Paused,
            None if begun => JobState::Running,
            None => JobState::Queued,
        };
        let waiting = self.waiting(job, units_leased);
        let ended = || job.end().map(|end| end.note.clone()).unwrap_or_default();
        Some(JobSummary {
            job: id,
            name: job.spec().name.clone(),
            owner: job.owner().to_owned(),
            state,
            priority: job.spec().priority,
            submitted_at: job.submitted_at().secs(),
            ended_at: job.end().map(|end| end.at.secs()),
            frames: job.frames().len() as u32,
            frames_done: counts.frames_done,
            frames_failed: counts.frames_failed,
            units: job.units(),
            units_committed: counts.units_committed,
            units_leased,
            samples_committed: counts.samples_committed,
            waits: waiting.as_ref().map(|(waits, _)| *waits),
            note: waiting.map_or_else(ended, |(_, note)| note),
            samples_kept: job.samples_kept(),
            pool: job.spec().pool.clone(),
        })
    }

    /// One job, whole.
    pub fn job(&self, id: JobId) -> Option<JobDetail> {
        let job = self.farm.job(id)?;
        Some(JobDetail {
            summary: self.job_summary(id)?,
            spec: job.spec().clone(),
            fingerprint: job.fingerprint(),
            failures: job.failures().iter().cloned().collect(),
            copies: CopyCount {
                running: self.leases.copied_in(id) as u64,
                won: job.copies().won,
                lost: job.copies().lost,
                wasted_millis: job.copies().wasted_millis,
            },
        })
    }

    /// A page of a job's frames from a position on, at most [`FRAME_PAGE_MAX`]; None for no such
    /// job.
    pub fn frames(&self, id: JobId, from: u32) -> Option<Vec<FrameStatus>> {
        let job = self.farm.job(id)?;
        let positions = from..from.saturating_add(FRAME_PAGE_MAX as u32);
        let rows = positions.map_while(|position| {
            let frame = job.frames().get(position as usize)?;
            let (state, samples) =
                (frame.status(&job.grid()), job.time().and(frame.newest_samples()));
            Some(FrameStatus { frame: job.number(position)?, state, samples })
        });
        Some(rows.collect())
    }

    /// Nodes by name, at most [`ROWS_MAX`].
    pub fn nodes(&self, now: Moment) -> Vec<NodeSummary> {
        let mut rows: Vec<NodeSummary> =
            self.roster.iter().map(|(id, node)| self.node_summary(*id, node, now)).collect();
        rows.sort_by(|a, b| (&a.name, a.node).cmp(&(&b.name, b.node)));
        rows.truncate(ROWS_MAX);
        rows
    }

    pub(crate) fn is_ready(&self, id: NodeId, node: &Node) -> bool {
        node.is_willing() && !self.farm.is_drained(id) && !self.is_barred(id)
    }

    fn node_summary(&self, id: NodeId, node: &Node, now: Moment) -> NodeSummary {
        let (state, note) = self.standing(id, node);
        NodeSummary {
            node: id,
            name: node.name().to_owned(),
            state,
            devices: node.devices().to_vec(),
            telemetry: node.telemetry().to_vec(),
            units_leased: self.leases.count_of(id),
            units_committed: node.units_committed(),
            samples_per_second: node.samples_per_second(now),
            silent_secs: now.since(node.heard()).as_secs(),
            build: node.build().to_owned(),
            note,
            pool: node.pool().map(str::to_owned),
        }
    }

    pub(crate) fn standing(&self, id: NodeId, node: &Node) -> (NodeState, String) {
        let (state, note) = self.standing_unsuspected(id, node);
        let Some(suspect) = self.farm.trust().suspect_of(id) else { return (state, note) };
        let (barred, name) = (self.is_barred(id), node.name());
        let said = match (suspect.guilty, barred) {
            (true, true) => "quarantined: it gave a wrong result",
            (true, false) => {
                "it gave a wrong result, and gets work only because no other node may have any"
            }
            (false, _) => "in doubt, so that all its results are checked",
        };
        let end =
            format!("once it is in order (`tessera doctor`), `tessera undrain {name}` ends that");
        let text = [note, format!("{said}: {}; {end}", suspect.reason)];
        let text: Vec<String> = text.into_iter().filter(|part| !part.is_empty()).collect();
        let state = if barred && state == NodeState::Ready { NodeState::Unfit } else { state };
        (state, text.join("; "))
    }

    fn standing_unsuspected(&self, id: NodeId, node: &Node) -> (NodeState, String) {
        match node.presence() {
            Presence::Away(_) => {
                return (
                    NodeState::Away,
                    "connection lost; its leases are kept for a while".to_owned(),
                );
            }
            Presence::Lost => return (NodeState::Lost, "connection lost".to_owned()),
            Presence::Here(_) => {}
        }
        if self.farm.is_drained(id) {
            return (NodeState::Draining, "drained by an operator".to_owned());
        }
        if node.leaving() {
            return (NodeState::Draining, "leaving".to_owned());
        }
        if let Some((_, reason)) = node.fitness().unfit() {
            return (NodeState::Unfit, reason.clone());
        }
        if let Some(reason) = none_usable(node.devices()) {
            return (NodeState::Unfit, reason);
        }
        if let Some((job, reason)) = node.unable().iter().next() {
            let count = node.unable().len();
            let note = format!("not able to do {count} open jobs, such as {job}: {reason}");
            return (NodeState::Ready, note);
        }
        let pins =
            self.queues.keys().filter_map(|job| self.farm.job(*job)).map(|job| job.fingerprint());
        let foreign =
            pins.clone().filter(|pin| pin.is_some_and(|pin| pin != node.fingerprint())).count();
        if foreign == 0 {
            return (NodeState::Ready, String::new());
        }
        let note = format!(
            "fingerprint {} differs from the first results of {foreign} open jobs; run the same \
                build everywhere",
            node.fingerprint()
        );
        let state = if foreign == pins.count() { NodeState::Unfit } else { NodeState::Ready };
        (state, note)
    }
}
