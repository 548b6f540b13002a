//! The core itself: takes inputs in, and gives each to the room that decides on it. Keeps nothing
//! but the books; decides nothing itself.

mod finished;
mod leased;
mod queries;
mod replica;

pub use replica::Replica;

use crate::action::Step;
use crate::books::Books;
use crate::input::{Input, ResolveFailure};
use crate::journal::Record;
use crate::settings::Settings;
use crate::state::farm::Farm;
use crate::state::shelf::{MemoryShelf, Shelf};
use crate::state::snapshot::{self, SnapshotPart};
use crate::time::Moment;
use crate::timers::Timer;
use crate::{checks, ends, frames, nodes, requests, results, schedule};
use std::sync::Arc;
use tessera_protocol::ids::JobId;

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
        books.plan_storage();
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
            Timer::Storage => books.count_storage_if_due(),
            Timer::Begin(job) => books.begin_job(job),
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
