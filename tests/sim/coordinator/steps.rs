//! Steps of the core: taken, checked, written and performed in the documented order.

use crate::checks::violation::{Checked, Violation, violated};
use crate::client::Ask;
use crate::coordinator::bucket::{Kept, Sent};
use crate::coordinator::places::place;
use crate::coordinator::{Pending, Process};
use crate::faults::Fault;
use crate::situations::sometimes;
use crate::world::World;
use crate::world::events::Event;
use std::collections::VecDeque;
use tessera_core::{Action, Record, SessionId, Step};
use tessera_protocol::client::Response;
use tessera_protocol::ids::{Lease, UnitKey};
use tessera_protocol::node::CoordinatorToNode;

impl World {
    /// Takes what came of the inputs, checks it, and sends it on its way.
    pub(crate) fn take_step(&mut self) -> Checked {
        let Some(process) = &mut self.shell.process else { return Ok(()) };
        process.step_planned = false;
        let mut step = process.core.take_step();
        if let Some(planted) = &mut self.planted {
            planted.on_step(&mut step, process, &self.ledger.believed, &mut self.random);
        }
        let seen = std::mem::take(&mut process.seen);
        let whole = self.steps.is_multiple_of(self.whole_every);
        self.note_step(&step, &seen);
        let Some(process) = &mut self.shell.process else { return Ok(()) };
        if let Some(diary) = &mut self.diary {
            let lines = step.records.iter().map(|record| format!("{:>9}   > {record:?}", self.now));
            diary.extend(lines.chain(
                step.actions.iter().map(|action| format!("{:>9}   > {action:?}", self.now)),
            ));
        }
        process.watch.on_step(&step, &seen, &process.core, &mut self.ledger.believed)?;
        sometimes!(self, LeaseTakenBack, process.watch.taken_back > 0);
        sometimes!(self, LeftAlone, process.watch.left_alone > 0);
        if whole {
            process.core.verify().map_err(Violation)?;
            process.watch.compare(&process.core, &self.ledger.believed, seen.inputs > 0)?;
        }
        self.ledger.believed.check_waits()?;
        self.note_waits(&step);
        self.check_origins(&step)?;
        self.steps += 1;
        self.check_last_node(&step, &seen)?;
        self.tell_early(&mut step)?;
        let pending = self.split_step(step)?;
        let needs_sync = !pending.results.is_empty()
            || !pending.records.is_empty()
            || pending.snapshot.is_some();
        let Some(process) = &mut self.shell.process else { return Ok(()) };
        if needs_sync || !process.pending.is_empty() {
            process.pending.push_back(pending);
            self.start_sync()?;
        } else {
            self.perform(pending.actions)?;
            self.start_sync()?;
        }
        self.plan_tick();
        if whole { self.check_running() } else { Ok(()) }
    }

    /// A bug tells things before they are durable.
    fn tell_early(&mut self, step: &mut Step) -> Checked {
        let Some(planted) = &self.planted else { return Ok(()) };
        let (early, rest): (Vec<Action>, Vec<Action>) = std::mem::take(&mut step.actions)
            .into_iter()
            .partition(|action| planted.told_early(action));
        step.actions = rest;
        early.into_iter().try_for_each(|action| self.perform_one(action))
    }

    /// Splits a step by when its parts are performed.
    fn split_step(&mut self, step: Step) -> Result<Pending, Violation> {
        let snapshot = self.chance(Fault::Snapshot);
        let Some(process) = &mut self.shell.process else { return Ok(Pending::default()) };
        let mut pending = Pending { records: step.records, ..Pending::default() };
        for action in step.actions {
            match action {
                Action::KeepResult { session, lease } => {
                    let sent = take_arrived(process, session, lease)?;
                    pending.results.push(Kept { lease, sent });
                }
                Action::DropResult { session, lease } => {
                    take_arrived(process, session, lease)?;
                }
                Action::Fault { what } => return violated(format!("fault of the core: {what}")),
                action => {
                    if let Action::Send { session, .. } = &action
                        && let Some(id) = process.sessions.get(session)
                        && let Some(link) = self.links.links.get_mut(id)
                    {
                        link.down += 1;
                    }
                    pending.actions.push(action);
                }
            }
        }
        if let Some(((session, lease), _)) = process.arrived.first_key_value() {
            return violated(format!(
                "the result of {lease} from {session:?} is neither kept nor dropped"
            ));
        }
        if snapshot {
            pending.snapshot = Some(process.core.snapshot());
        }
        Ok(pending)
    }

    /// Writes all that is pending, unless something is being written already.
    pub(super) fn start_sync(&mut self) -> Checked {
        if self.leaders.is_some() {
            return self.begin_commit();
        }
        let incarnation = self.shell.incarnation;
        let idle = |process: &&mut Process| process.syncing == 0 && !process.pending.is_empty();
        let has_bucket = self.bucket.is_some();
        let Some(process) = self.shell.process.as_mut().filter(idle) else { return Ok(()) };
        process.syncing = process.pending.len();
        for pending in process.pending.iter_mut().filter(|_| has_bucket) {
            place(&mut process.known, pending);
        }
        let (slow, full) = (self.chance(Fault::SlowDisk), self.chance(Fault::DiskFull));
        let delay = match (slow, full) {
            (_, true) => self.random.between(5_000, 20_000),
            (true, false) => self.random.between(500, 6_000),
            (false, false) => self.random.between(1, 25),
        };
        self.after(delay, Event::Synced(incarnation));
        if self.chance(Fault::CrashInSync) {
            let end = self.random.between(0, delay);
            self.after(end, Event::Crash(incarnation));
        }
        Ok(())
    }

    /// What was being written is durable: now it may be told.
    pub(crate) fn on_synced(&mut self) -> Checked {
        let Some(process) = &mut self.shell.process else { return Ok(()) };
        let count = std::mem::take(&mut process.syncing);
        let mut group: Vec<Pending> = process.pending.drain(..count).collect();
        for pending in &mut group {
            self.write(pending)?;
        }
        sometimes!(self, LongQueue, count >= 20);
        for mut pending in group {
            self.delete_places(&mut pending);
            self.perform(pending.actions)?;
            if self.shell.process.is_none() {
                return Ok(());
            }
            for answers in pending.answers {
                sometimes!(self, PendingTold);
                self.send_answers(answers);
            }
        }
        self.start_sync()
    }

    /// Makes a step durable: its results, then its records, then the snapshot after them.
    pub(crate) fn write(&mut self, pending: &mut Pending) -> Checked {
        for kept in pending.results.drain(..) {
            self.check_put(&kept)?;
            self.disk.keep(&kept);
        }
        self.disk.places.apply(std::mem::take(&mut pending.places));
        pending.finished.iter().for_each(|key| self.disk.drop_objects(*key));
        for record in pending.records.drain(..) {
            if let Record::JobRetried { job, .. } = &record {
                self.saw_retry(*job)?;
            }
            let void = self.void_by(&record);
            self.ledger.durable.apply(&record)?;
            for unit in void {
                self.saw(self.history.ask(), &tessera_history::Seen::TakenBack(unit))?;
            }
            self.disk.append(record)?;
        }
        match pending.snapshot.take() {
            Some(parts) => self.disk.take_snapshot(&parts),
            None => Ok(()),
        }
    }

    /// Units that clients hear of and that are not committed any more after a record.
    fn void_by(&self, record: &Record) -> Vec<UnitKey> {
        let (Record::UnitsTakenBack { job, frame, units, .. }
        | Record::ResultsLost { job, frame, units, .. }) = record
        else {
            return Vec::new();
        };
        let units = units.iter().map(|unit| UnitKey { job: *job, frame: *frame, unit: *unit });
        units.filter(|unit| !self.ledger.durable.is_piece(*unit)).collect()
    }

    fn perform(&mut self, actions: Vec<Action>) -> Checked {
        for action in actions {
            if self.chance(Fault::CrashHalfTold) {
                return self.end_process();
            }
            self.perform_one(action)?;
        }
        Ok(())
    }

    fn perform_one(&mut self, action: Action) -> Checked {
        let incarnation = self.shell.incarnation;
        let Some(process) = &mut self.shell.process else { return Ok(()) };
        let link = match &action {
            Action::Send { session, .. } | Action::CloseSession { session, .. } => {
                process.sessions.get(session).copied()
            }
            _ => None,
        };
        let node =
            link.and_then(|id| self.links.links.get(&id)).map(|link| self.nodes[link.node].plan.id);
        self.check_lead(&action)?;
        self.ledger.on_performed(&action, node, &self.disk)?;
        sometimes!(self, ThirdLease, self.ledger.leased_thrice(&action));
        if let Action::Send { message: CoordinatorToNode::Committed { lease }, .. } = &action {
            self.acknowledged_at = self.now;
            self.check_is_kept(*lease)?;
            // A later step of the same sync may have taken it back.
            if self.ledger.durable.part_leases.contains(lease) {
                self.saw(self.history.ask(), &tessera_history::Seen::PartCommitted(*lease))?;
            } else if self.ledger.durable.stands(*lease)
                && !self.ledger.durable.is_piece(lease.unit)
            {
                self.saw(self.history.ask(), &tessera_history::Seen::Committed(*lease))?;
            }
        }
        let Some(process) = &mut self.shell.process else { return Ok(()) };
        match action {
            Action::Fault { what } => return violated(format!("fault of the core: {what}")),
            Action::Send { message, .. } => {
                if let Some(id) = link {
                    self.send_down(id, message);
                }
            }
            Action::CloseSession { session, .. } => {
                process.sessions.remove(&session);
                if let Some(id) = link {
                    self.check_no_clone(id)?;
                    self.hang_up(id, 100);
                }
                if self.chance(Fault::LateLoss) {
                    let delay = self.random.between(1, 3_000);
                    self.after(delay, Event::LateLoss(incarnation, session));
                }
            }
            Action::Reply { request, response } => {
                let Some(ask) = process.asks.remove(&request) else {
                    return violated(format!("{request:?} is answered and waits for no answer"));
                };
                return self.tell_client(ask, response);
            }
            Action::ResolveFrame { job, frame } => {
                let delay = self.random.between(20, 3_000);
                self.after(delay, Event::Resolved(incarnation, job, frame));
            }
            Action::MeasureFrame { job, frame } => {
                let measured = self.ledger.noisy_tiles(job, frame, &self.disk);
                let delay = self.random.between(20, 3_000);
                self.after(delay, Event::Measured(incarnation, job, frame, measured));
            }
            Action::FrameFinished { job, frame } | Action::FrameFailed { job, frame } => {
                self.drop_results(job, Some(frame));
            }
            Action::JobEnded { job } => self.drop_results(job, None),
            Action::KeepResult { .. } | Action::DropResult { .. } => {}
        }
        Ok(())
    }
}

/// The result that an action speaks of.
fn take_arrived(
    process: &mut Process,
    session: SessionId,
    lease: Lease,
) -> Result<Sent, Violation> {
    let films = process.arrived.get_mut(&(session, lease));
    let film = films.and_then(VecDeque::pop_front);
    if process.arrived.get(&(session, lease)).is_some_and(VecDeque::is_empty) {
        process.arrived.remove(&(session, lease));
    }
    film.ok_or_else(|| Violation(format!("{session:?} is said to have sent a result of {lease}")))
}

impl World {
    /// A client is answered. One whose clock stood still past its term refuses by what it knew,
    /// which nobody judges.
    fn tell_client(&mut self, ask: Ask, response: Response) -> Checked {
        self.ledger.on_reply(&response)?;
        match self.is_stale() && is_refusal(&response) {
            true => Ok(()),
            false => self.answer(ask, response),
        }
    }
}

/// Whether an answer needs no commit: something is refused.
fn is_refusal(response: &Response) -> bool {
    match response {
        Response::Error(_) => true,
        Response::Changed(changed) => changed.refused > 0,
        _ => false,
    }
}
