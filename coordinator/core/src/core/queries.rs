//! Questions to the core, and their answers: jobs, frames, units, nodes, costs. Changes nothing.

use super::Core;
use crate::audit::invariants;
use crate::input::{Caller, SessionId};
use crate::journal::Record;
use crate::owner::Owner;
use crate::report::listing::{Census, KeptPart};
use crate::report::pages::{self, JobsPage};
use crate::report::quarantine::{self, Quarantine};
use crate::report::tally::{self, JobsTally};
use crate::report::{costs, explain, listing};
use crate::requests::{self, shares};
use crate::selection::Selection;
use crate::state::rounds::FrameRounds;
use crate::state::snapshot::SnapshotPart;
use crate::state::usage::JobUsage;
use crate::time::Moment;
use crate::unit_state::UnitState;
use crate::{audit, frames};
use std::collections::{BTreeMap, BTreeSet};
use tessera_protocol::client::{AuditReport, RequestError};
use tessera_protocol::cost::{CostReport, CostRules};
use tessera_protocol::explain::{Explanation, Subject};
use tessera_protocol::ids::{
    BlobHash, Epoch, FrameNumber, JobId, Lease, NodeId, UnitIndex, UnitKey,
};
use tessera_protocol::preset::{Preset, PresetSummary};
use tessera_protocol::selection::JobPage;
use tessera_protocol::status::{FrameStatus, JobDetail, JobSummary, NodeSummary};

/// Queries, which change nothing.
impl Core {
    /// Returns every current lease with its node.
    pub fn leases(&self) -> impl Iterator<Item = (Lease, NodeId)> + '_ {
        self.books.leases().iter().map(|(lease, held)| (lease, held.node))
    }

    /// Returns the leases of a unit with their nodes, the older first: none, one, or two.
    pub fn leases_of(&self, unit: UnitKey) -> impl Iterator<Item = (Lease, NodeId)> + '_ {
        let leases = self.books.leases();
        let of_unit = leases.of_unit(unit).map(move |epoch| Lease { unit, epoch });
        of_unit.filter_map(|lease| leases.get(lease).map(|held| (lease, held.node)))
    }

    /// Returns the jobs of which a node holds a lease now.
    pub fn jobs_leased_to(&self, node: NodeId) -> BTreeSet<JobId> {
        let leases = self.books.leases().of_node(node);
        leases.map(|(lease, _)| lease.unit.job).collect()
    }

    /// Returns the first epoch that is not reserved; no lease has it or a later one.
    pub fn epochs_reserved(&self) -> Epoch {
        self.books.farm().epochs_reserved()
    }

    /// Returns all jobs, in the order of their acceptance.
    pub fn job_ids(&self) -> impl Iterator<Item = JobId> + '_ {
        self.books.farm().order()
    }

    /// Returns the jobs that have not ended, in the order of their ids, from this one on.
    pub fn open_jobs(&self, from: Option<JobId>) -> impl Iterator<Item = JobId> + '_ {
        let from = from.map_or(std::ops::Bound::Unbounded, std::ops::Bound::Included);
        self.books.queues().range((from, std::ops::Bound::Unbounded)).map(|(id, _)| *id)
    }

    /// Counts nodes, jobs and leased units.
    pub fn census(&self) -> Census {
        listing::census(&self.books)
    }

    /// Counts a part of the jobs and what they have to do, of those after one in the order of their
    /// ids. Returns the last job of the part too, if there may be more after it.
    pub fn tally(&self, after: Option<JobId>) -> (JobsTally, Option<JobId>) {
        tally::tally(&self.books, after)
    }

    /// Counts the nodes that are in doubt, and those that gave wrong results and are not trusted
    /// again.
    pub fn suspects(&self) -> (u64, u64) {
        tally::suspects(&self.books)
    }

    /// Returns the camera samples of so many samples per pixel of a unit, or the indices of a
    /// chunk; 0 for a unit that finishes a frame.
    pub fn camera_samples(&self, unit: UnitKey, size: u32) -> u64 {
        let job = self.books.farm().job(unit.job);
        job.map_or(0, |job| job.grid().camera_samples(unit.unit, size))
    }

    /// Returns a page of the selected jobs, newest first, of those before a place in the order of
    /// acceptance.
    pub fn jobs(
        &self,
        selection: &Selection,
        before: Option<u64>,
        now: Moment,
    ) -> Result<JobPage, RequestError> {
        self.jobs_page(selection, JobsPage { before, ..JobsPage::default() }, now)
    }

    /// Returns a page of the selected jobs, in any order.
    pub fn jobs_page(
        &self,
        selection: &Selection,
        page: JobsPage,
        now: Moment,
    ) -> Result<JobPage, RequestError> {
        pages::page(&self.books, selection, page, now)
    }

    /// Returns the committed units of a complete frame that waits for its files; None otherwise.
    pub fn committed_units(&self, id: JobId, frame: FrameNumber) -> Option<Vec<UnitIndex>> {
        listing::committed_units(&self.books, id, frame)
    }

    /// Returns the index of a unit's first sample; 0 for a compute job or an unknown unit.
    pub fn first_sample(&self, unit: UnitKey) -> u32 {
        listing::first_sample(&self.books, unit)
    }

    /// Returns the valid parts of a frame's units, each unit's in the order of their samples, also
    /// of complete units. None of a frame that has ended.
    pub fn parts(&self, id: JobId, frame: FrameNumber) -> Vec<KeptPart> {
        listing::parts(&self.books, id, frame)
    }

    /// Whether the shelf has lost what the files of a finished frame are. Then snapshots, listings
    /// and named blobs are incomplete: do not use them, and restart.
    pub fn has_lost_files(&self) -> bool {
        self.books.farm().has_lost_files()
    }

    /// Returns the number of a job's units that wait for a result.
    pub fn units_open(&self, id: JobId) -> u64 {
        listing::units_open(&self.books, id)
    }

    /// Returns the blobs that jobs name: files of open jobs, and every finished frame. A blob may
    /// occur several times.
    pub fn named_blobs(&self) -> Vec<BlobHash> {
        listing::named_blobs(&self.books)
    }

    /// Returns whether a caller is allowed to read a blob: as a file of this finished frame, as a
    /// file that a job of theirs names, or as an operator.
    pub fn may_read(
        &self,
        hash: BlobHash,
        of: Option<(JobId, FrameNumber)>,
        caller: &Caller,
    ) -> bool {
        listing::may_read(&self.books, hash, of, caller)
    }

    /// Returns the summary of one job.
    pub fn job_summary(&self, id: JobId) -> Option<JobSummary> {
        listing::job_summary(&self.books, id)
    }

    /// Explains why a job, a frame or a node stands as it does, and what would help.
    pub fn explain(&self, subject: &Subject) -> Result<Explanation, RequestError> {
        explain::explain(&self.books, subject)
    }

    /// Returns whether a job is known.
    pub fn has_job(&self, id: JobId) -> bool {
        self.books.farm().job(id).is_some()
    }

    /// Returns whether a session's node was sent a job and not told yet to forget it.
    pub fn works_on(&self, session: SessionId, job: JobId) -> bool {
        let roster = self.books.roster();
        let node = roster.node_of(session).and_then(|node| roster.get(node));
        node.is_some_and(|node| node.knows_job(job))
    }

    /// Checks that a caller owns a job, or is an admin.
    pub fn owned(&self, job: JobId, caller: &Caller) -> Result<(), RequestError> {
        requests::job_of(&self.books, job, caller).map(|_| ())
    }

    /// Returns all details of one job.
    pub fn job(&self, id: JobId) -> Option<JobDetail> {
        listing::job(&self.books, id)
    }

    /// Returns a page of a job's frames from a position on, at most
    /// [`FRAME_PAGE_MAX`](tessera_protocol::limits::FRAME_PAGE_MAX); None for an unknown job.
    pub fn frames(&self, id: JobId, from: u32) -> Option<Vec<FrameStatus>> {
        self.frames_up_to(id, from, u32::MAX)
    }

    /// Returns the same, at most `most` frames.
    pub fn frames_up_to(&self, id: JobId, from: u32, most: u32) -> Option<Vec<FrameStatus>> {
        listing::frames(&self.books, id, from, most)
    }

    /// Returns one frame of a job; None if there is no such frame.
    pub fn frame(&self, id: JobId, number: FrameNumber) -> Option<FrameStatus> {
        listing::frame(&self.books, id, number)
    }

    /// Returns what the jobs of every owner have.
    pub fn usage(&self) -> BTreeMap<Owner, JobUsage> {
        self.books.farm().usage().all().clone()
    }

    /// Returns the files that jobs name which have not ended.
    pub fn named_files(&self) -> BTreeSet<BlobHash> {
        shares::named_files(&self.books)
    }

    /// Returns the files and the files of finished frames of all jobs, but not of one owner's.
    pub fn known_blobs(&self, without: Option<&Owner>) -> BTreeSet<BlobHash> {
        shares::known_blobs(&self.books, without)
    }

    /// Returns the files of the finished frames of an owner's jobs.
    pub fn frame_files_of(&self, owner: &Owner) -> Vec<BlobHash> {
        shares::frame_files_of(&self.books, owner)
    }

    /// Returns the finished frames of a job, in order.
    pub fn frames_done(&self, id: JobId) -> Vec<FrameNumber> {
        listing::frames_done(&self.books, id)
    }

    /// Returns the frames of a job that have begun and are not finished, in order.
    pub fn frames_in_work(&self, id: JobId) -> Vec<FrameNumber> {
        listing::frames_in_work(&self.books, id)
    }

    /// Returns whether a frame is done or has failed, or does not exist.
    pub fn is_frame_over(&self, id: JobId, frame: FrameNumber) -> bool {
        let known = self.books.farm().job(id).and_then(|job| job.frame(frame));
        known.is_none_or(|frame| frame.is_final())
    }

    /// Returns the name of a node that is known or was suspected; otherwise its id.
    pub fn node_name(&self, node: NodeId) -> String {
        self.books.name_of(node)
    }

    /// Returns what owners have spent in a month such as `2026-11`, or now.
    pub fn costs(&self, month: Option<&str>, now: Moment) -> Result<CostReport, RequestError> {
        costs::report(&self.books, month, now)
    }

    /// Returns the rules of what is spent.
    pub fn cost_rules(&self) -> &CostRules {
        self.books.farm().accounts().rules()
    }

    /// Returns the templates that admins have published, by name.
    pub fn presets(&self) -> Vec<PresetSummary> {
        self.books.farm().presets().list()
    }

    /// Returns a template that an admin has published.
    pub fn preset(&self, name: &str) -> Option<Preset> {
        self.books.farm().presets().get(name)
    }

    /// Returns the owner of a job; None for an unknown job.
    pub fn owner_of(&self, job: JobId) -> Option<Owner> {
        self.books.farm().job(job).map(|job| job.held_by())
    }

    /// Returns nodes of the present and the past by name, at most
    /// [`ROWS_MAX`](tessera_protocol::limits::ROWS_MAX).
    pub fn nodes(&self, now: Moment) -> Vec<NodeSummary> {
        listing::nodes(&self.books, now)
    }

    /// Returns a node of the present or the past.
    pub fn node(&self, id: NodeId, now: Moment) -> NodeSummary {
        listing::node_row(&self.books, id, now)
    }

    /// Returns which nodes and devices are quarantined or in doubt.
    pub fn quarantines(&self) -> Vec<Quarantine> {
        quarantine::quarantines(&self.books)
    }

    /// Returns the rounds of a frame that has begun and has not ended; None if it is not sampled in
    /// rounds.
    pub fn frame_rounds(&self, id: JobId, frame: FrameNumber) -> Option<FrameRounds> {
        frames::measure::frame_rounds(&self.books, id, frame)
    }

    /// Derives the state of a unit. The error says that the unit does not exist, or how the books
    /// contradict each other.
    pub fn state_of(&self, unit: UnitKey) -> Result<UnitState, String> {
        self.books.state_of(unit)
    }

    /// Checks every invariant. An error names the first one that is violated.
    pub fn verify(&self) -> Result<(), String> {
        invariants::verify(&self.books)
    }

    /// Says how the durable states of two cores differ; None if they are equal.
    pub fn durable_difference(&self, other: &Self) -> Option<String> {
        invariants::durable_difference(self.books.farm(), other.books.farm())
    }

    /// Checks a snapshot (may be empty) and the records after it: every unit committed at most once
    /// (and again only where it was taken back) and under a reserved epoch used for no other unit,
    /// every finished frame with all its units, every job that is done with all its frames.
    pub fn audit(
        snapshot: impl IntoIterator<Item = SnapshotPart>,
        records: impl IntoIterator<Item = Record>,
    ) -> AuditReport {
        audit::audit(snapshot, records)
    }
}
