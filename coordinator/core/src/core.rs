//! The core itself: takes inputs in, gives each to the room that decides on it, and answers what it
//! is asked. Keeps nothing but the books; decides nothing itself.

mod finished;
mod leased;
mod replica;

pub use replica::Replica;

use crate::action::Step;
use crate::audit::invariants;
use crate::books::Books;
use crate::input::{Caller, Input, ResolveFailure, SessionId};
use crate::journal::Record;
use crate::owner::Owner;
use crate::report::costs;
use crate::report::explain;
use crate::report::listing::{self, Census, KeptPart};
use crate::report::pages::{self, JobsPage};
use crate::report::quarantine::{self, Quarantine};
use crate::report::tally::{self, JobsTally};
use crate::requests::shares;
use crate::selection::Selection;
use crate::settings::Settings;
use crate::state::farm::Farm;
use crate::state::rounds::FrameRounds;
use crate::state::shelf::{MemoryShelf, Shelf};
use crate::state::snapshot::{self, SnapshotPart};
use crate::state::usage::JobUsage;
use crate::time::Moment;
use crate::timers::Timer;
use crate::unit_state::UnitState;
use crate::{audit, checks, ends, frames, nodes, requests, results, schedule};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tessera_protocol::client::{AuditReport, RequestError};
use tessera_protocol::cost::{CostReport, CostRules};
use tessera_protocol::explain::{Explanation, Subject};
use tessera_protocol::ids::{
    BlobHash, Epoch, FrameNumber, JobId, Lease, NodeId, UnitIndex, UnitKey,
};
use tessera_protocol::preset::{Preset, PresetSummary};
use tessera_protocol::selection::JobPage;
use tessera_protocol::status::{FrameStatus, JobDetail, JobSummary, NodeSummary};

/// Reason why records cannot be replayed: the store is damaged, or of another farm. Never repaired
/// silently.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("entry {position} of the journal contradicts what is before it: {problem}")]
pub struct ReplayError {
    /// Position among the snapshot's parts and then the records, counted from 0.
    pub position: u64,
    /// Contradiction that was found, as text for people.
    pub problem: String,
}

/// The state machine that makes all decisions of the coordinator.
#[derive(Debug)]
pub struct Core {
    books: Books,
}

impl Core {
    /// Creates a farm that has never run.
    pub fn new(settings: Settings, now: Moment) -> Self {
        Self { books: Books::new(settings, Farm::new(MemoryShelf::new()), now) }
    }

    /// Restores the farm from a snapshot (may be empty) and the records after it. The first step
    /// asks again for the files of complete frames. What the files of finished frames are is kept
    /// in memory.
    pub fn replay(
        settings: Settings,
        snapshot: impl IntoIterator<Item = SnapshotPart>,
        records: impl IntoIterator<Item = Record>,
        now: Moment,
    ) -> Result<Self, ReplayError> {
        Self::replay_onto(MemoryShelf::new(), settings, snapshot, records, now)
    }

    /// Restores the farm as [`Core::replay`] does, and keeps on an empty shelf what the files of
    /// finished frames are.
    pub fn replay_onto(
        shelf: Arc<dyn Shelf>,
        settings: Settings,
        snapshot: impl IntoIterator<Item = SnapshotPart>,
        records: impl IntoIterator<Item = Record>,
        now: Moment,
    ) -> Result<Self, ReplayError> {
        let farm = restored(shelf, snapshot, records)?;
        let mut core = Self { books: Books::new(settings, farm, now) };
        core.take_up();
        Ok(core)
    }

    /// Resumes everything that was open when the records ended.
    fn take_up(&mut self) {
        let books = &mut self.books;
        nodes::absent::take_up(books);
        books.recount_budgets();
        let order = books.farm().order();
        let open: Vec<JobId> = order.filter(|job| books.is_open(*job)).collect();
        open.iter().for_each(|id| books.open_queue(*id));
        for id in open {
            // One before it may have ended, for which it waited.
            if !books.is_open(id) {
                continue;
            }
            let Some(job) = books.farm().job(id) else {
                books.fault("an open job is unknown");
                continue;
            };
            let begun = job.frames().unfinished();
            let numbers: Vec<_> = begun.filter_map(|(position, _)| job.number(position)).collect();
            for frame in numbers {
                frames::resolve::ask_if_due(books, id, frame);
            }
            checks::take_up_checks(books, id);
            // The process may have ended between a job's last frame and its end.
            ends::end_if_over(books, id);
            ends::settle_waits(books, id);
        }
        if books.farm().epochs_reserved().0 > 0 && !books.queues().is_empty() {
            books.settle_first();
        }
    }

    /// Returns the durable state in parts, with all records so far, also those of a step that is
    /// not taken yet. Take the step first, and store the snapshot after it.
    pub fn snapshot(&self) -> Vec<SnapshotPart> {
        snapshot::parts(self.books.farm())
    }

    /// Handles one input. Never panics, whatever a peer sent.
    pub fn handle(&mut self, input: Input, now: Moment) {
        self.handle_all([input], now);
    }

    /// Handles inputs that came together, in order. Units are handed out after the last one, so
    /// that a node gets in one message what it may have for all of them.
    pub fn handle_all(&mut self, inputs: impl IntoIterator<Item = Input>, now: Moment) {
        self.books.advance(now);
        self.on_time();
        for input in inputs {
            self.on_input(input);
        }
        self.books.settle_budgets();
        schedule::schedule(&mut self.books);
        self.books.settle_budgets();
    }

    /// Fires the timers that are due, and ends the leases whose deadline has passed.
    fn on_time(&mut self) {
        while let Some(timer) = self.books.take_due_timer() {
            self.on_timer(timer);
        }
        while let Some((until, epoch)) = self.books.leases().first_deadline()
            && until <= self.books.now()
        {
            results::failed::on_lease_expired(&mut self.books, epoch);
        }
    }

    fn on_timer(&mut self, timer: Timer) {
        let books = &mut self.books;
        match timer {
            Timer::Settled => books.mark_all(),
            Timer::Look => {
                let now = books.now();
                books.copy_looks_mut().fire(now);
                books.mark_all();
            }
            Timer::Away(node) => nodes::sessions::on_grace_over(books, node),
            Timer::Fit(node) => results::failed::on_fit_again(books, node),
            Timer::Unit(job, place) => books.end_wait(job, place),
            Timer::Checks(job, frame) => checks::on_checks_due(books, job, frame),
            Timer::Resolve(job, frame) => frames::resolve::on_resolve_due(books, job, frame),
            Timer::AskAgain(node, job) => results::limits::on_ask_again(books, node, job),
            Timer::Month => books.recount_budgets(),
            Timer::GiveUp(job) => results::limits::look_at_limits(books, job),
            Timer::Finish(job, frame) => frames::close::on_look(books, job, frame),
        }
    }

    fn on_input(&mut self, input: Input) {
        use nodes::sessions;
        use requests::{change, edit, forget, jobs, sweep};
        let books = &mut self.books;
        match input {
            Input::Submit { request, job, spec, caller } => {
                jobs::on_submit(books, request, job, spec, caller)
            }
            Input::EditJob { request, job, edit, caller } => {
                edit::on_edit(books, request, job, *edit, &caller)
            }
            Input::Sweep { request, owner, sweep, caller } => {
                sweep::on_sweep(books, request, &owner, sweep, &caller)
            }
            Input::ChangeJobs { request, change, selection, dry_run, caller } => {
                change::on_change_jobs(books, request, &change, &selection, dry_run, &caller)
            }
            Input::ForgetEnded { before } => forget::on_forget_ended(books, before),
            Input::SetCostRules { request, rules, by } => {
                requests::cost_rules::on_set(books, request, rules, &by)
            }
            Input::SetPreset { request, preset, by } => {
                requests::presets::on_set(books, request, preset, by);
            }
            Input::Drain { .. } | Input::RemoveNode { .. } | Input::RetireNode { .. } => {
                on_listed(books, input)
            }
            Input::NodeJoined { session, join, fingerprint, build } => {
                sessions::on_joined(books, session, &join, fingerprint, &build)
            }
            Input::SessionLost { session } => sessions::on_session_lost(books, session),
            Input::Capacity { session, units } => sessions::on_capacity(books, session, units),
            Input::SceneHeld { session, scene, held } => {
                sessions::on_scene_held(books, session, scene, held)
            }
            Input::Heartbeat { session, heartbeat } => {
                sessions::on_heartbeat(books, session, &heartbeat)
            }
            Input::DevicesChanged { session, devices } => {
                sessions::on_devices(books, session, &devices)
            }
            Input::NodeDraining { session } => sessions::on_node_draining(books, session),
            Input::ResultArrived { session, result } => results::on_result(books, session, &result),
            Input::ResultDamaged { session, lease, reason } => {
                results::on_result_damaged(books, session, lease, &reason)
            }
            Input::UnitFailed { session, lease, failure } => {
                results::on_unit_failed(books, session, lease, &failure)
            }
            Input::Returned { session, leases } => results::on_returned(books, session, &leases),
            Input::FrameResolved { .. }
            | Input::RoundMeasured { .. }
            | Input::FrameResolveFailed { .. }
            | Input::StoredWrong { .. }
            | Input::ResultsLost { .. } => on_frame(books, input),
            Input::NodeLeft { session, why } => sessions::on_node_left(books, session, &why),
            Input::Tick => {}
        }
    }

    /// Sets whether steps report which units moved. Off at first: it costs time and memory for each
    /// unit that moves.
    pub fn watch_units(&mut self, watch: bool) {
        self.books.watch_units(watch);
    }

    /// Takes the records and actions since the last call.
    pub fn take_step(&mut self) -> Step {
        self.books.take_step()
    }

    /// Returns when the core needs an [`Input::Tick`] at the latest if no other input arrives; None
    /// if never.
    pub fn next_wakeup(&self) -> Option<Moment> {
        self.books.next_wakeup()
    }
}

/// Restores the durable state from a snapshot and the records after it.
fn restored(
    shelf: Arc<dyn Shelf>,
    snapshot: impl IntoIterator<Item = SnapshotPart>,
    records: impl IntoIterator<Item = Record>,
) -> Result<Farm, ReplayError> {
    let mut position = 0;
    let mut farm = Farm::new(shelf);
    for part in snapshot {
        let restored = snapshot::restore(&mut farm, part);
        restored.map_err(|problem| ReplayError { position, problem })?;
        position += 1;
    }
    farm.recount();
    for record in records {
        farm.apply(&record).map_err(|problem| ReplayError { position, problem })?;
        position += 1;
    }
    Ok(farm)
}

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

/// What operators wish of nodes on the list, connected or not.
fn on_listed(books: &mut Books, input: Input) {
    use nodes::{absent, drain};
    match input {
        Input::Drain { request, node, drain, leave, by } => {
            let wish = drain.then_some(drain::Wish { leave });
            drain::on_drain(books, request, &node, wish, &by)
        }
        Input::RemoveNode { request, node, by } => absent::on_remove(books, request, &node, &by),
        Input::RetireNode { request, node, why } => absent::on_retire(books, request, node, &why),
        _ => {}
    }
}

/// What was made or measured of frames, or could not be, and what of them cannot be read.
fn on_frame(books: &mut Books, input: Input) {
    use frames::resolve;
    match input {
        Input::FrameResolved { job, frame, files, exposure } => {
            resolve::on_resolved(books, job, frame, files, exposure)
        }
        Input::RoundMeasured { job, frame, round, noisy } => {
            resolve::on_measured(books, job, frame, round, &noisy)
        }
        Input::FrameResolveFailed { job, frame, failure: ResolveFailure::Unjoined(reason) } => {
            frames::close::on_unjoined(books, job, frame, &reason)
        }
        Input::FrameResolveFailed { job, frame, failure } => {
            resolve::on_resolve_failed(books, job, frame, failure)
        }
        Input::StoredWrong { node, job } if books.roster().get(node).is_some() => {
            results::failed::doubt(books, node, job);
        }
        Input::ResultsLost { job, frame, units, reason } => {
            checks::redo::lose_results(books, job, frame, units, &reason);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn a_core_with_a_fault_fails_its_checks() {
        let mut core = Core::new(Settings::default(), Moment(0));
        assert_eq!(core.verify(), Ok(()));
        let fault = || core.books.fault("a");
        assert!(catch_unwind(AssertUnwindSafe(fault)).is_err(), "a fault panics in tests");
        assert!(core.verify().is_err());
    }
}
