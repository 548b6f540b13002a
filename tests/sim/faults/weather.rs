//! What goes wrong by itself, until it no longer does; and what must then be true.

use crate::sim::checks::violation::{Checked, Violation, violated};
use crate::sim::client::Ask;
use crate::sim::faults::Fault;
use crate::sim::model::tasks::file_hash;
use crate::sim::situations::sometimes;
use crate::sim::world::World;
use crate::sim::world::events::{Event, LinkId, NodeEvent};
use std::collections::BTreeSet;
use tessera_core::{Core, Input, ResolveFailure, TileSet};
use tessera_protocol::ids::{FrameNumber, JobId};
use tessera_protocol::node::NodeToCoordinator;
use tessera_protocol::status::{FrameFile, JobSummary, NodeState, Waits};

impl World {
    /// An opportunity for everything that happens to whole processes and connections.
    pub(crate) fn on_weather(&mut self) -> Checked {
        if self.healed {
            return Ok(());
        }
        let next = self.random.between(60, 200);
        self.after(next, Event::Weather);
        self.weather_of_nodes();
        self.weather_of_links();
        self.weather_of_operators()?;
        if self.chance(Fault::FilesGone) {
            let jobs: Vec<JobId> = self.plan.jobs.iter().map(|job| job.id).collect();
            let until = self.now + self.random.between(1_000, 25_000);
            if let Some(job) = self.random.pick(&jobs) {
                self.files_gone.insert(job, until);
            }
        }
        if self.chance(Fault::ClockStep) {
            let (ahead, back) =
                (self.random.between(0, 20_000) as i64, self.random.between(0, 3_000) as i64);
            self.shell.clock_offset += if self.random.permille(500) { ahead } else { -back };
            if let Some(process) = &mut self.shell.process {
                process.wakeup = None;
            }
            self.plan_tick();
        }
        if self.chance(Fault::PowerCut) {
            for node in 0..self.nodes.len() {
                let away = self.random.between(500, 20_000);
                self.end_node(node, away);
            }
            self.crash()?;
        }
        if self.chance(Fault::CoordinatorCrash) {
            self.crash()?;
        }
        if self.random.permille(100) {
            self.count_standings();
            self.check_waits()?;
        }
        Ok(())
    }

    fn weather_of_nodes(&mut self) {
        let node = self.random.index(self.nodes.len());
        if self.chance(Fault::NodeCrash) {
            let away = self.random.between(300, 25_000);
            self.end_node(node, away);
        }
        if self.chance(Fault::NodeDrains) {
            self.drain_node(node);
            if self.random.permille(500) {
                let within = self.random.between(1, 3_000);
                self.node_after(node, within, NodeEvent::Cut);
            }
        }
        if self.chance(Fault::CapacityChange) {
            let units = self.random.between(0, 6) as u32;
            self.set_capacity(node, units);
        }
        if self.chance(Fault::DeviceStall) {
            let longest = self.plan.settings.lease_longest.as_millis() as u64;
            let millis = self.random.between(1_000, longest * 2);
            if let Some(process) = &mut self.nodes[node].process {
                process.stuck_until = self.now + millis;
            }
        }
        if self.chance(Fault::DeviceQuarantine) {
            self.quarantine(node);
        }
        if self.chance(Fault::ProcessStall) {
            let millis = self.random.between(500, 40_000);
            self.stall_node(node, millis);
            // The transport gives up on a silent peer.
            let link = self.nodes[node].process.as_ref().and_then(|process| process.link);
            if let Some(link) = link.filter(|_| millis > 10_000) {
                self.cut(link);
            }
        }
        if self.chance(Fault::NodeSlow) {
            self.nodes[node].slowness = self.random.between(3, 20);
        }
        if self.chance(Fault::NodeLeaves)
            && let Some(node) = self.node_to_leave()
        {
            self.drain_node(node);
            let within = self.random.between(1, 1_000);
            self.node_after(node, within, NodeEvent::Cut);
        }
        if self.chance(Fault::NodePreempted) {
            self.drain_node(node);
            let notice = self.random.between(500, 25_000);
            self.node_after(node, notice * 3 / 4, NodeEvent::Cut);
            self.node_after(node, notice, NodeEvent::Preempted);
        }
    }

    fn weather_of_links(&mut self) {
        let cuts = [Fault::LinkCut, Fault::DeafUp, Fault::DeafDown];
        for fault in cuts {
            if !self.chance(fault) {
                continue;
            }
            let links: Vec<LinkId> = self.links.links.keys().copied().collect();
            let Some(link) = self.random.pick(&links) else { continue };
            match fault {
                Fault::LinkCut => self.cut(link),
                _ => self.deafen(link, fault == Fault::DeafUp),
            }
        }
        if self.chance(Fault::LinkSlow) {
            let node = self.random.index(self.nodes.len());
            self.nodes[node].lag = self.random.between(300, 4_000);
        }
        if self.chance(Fault::LastNode) {
            self.leave_one();
        }
        if self.chance(Fault::Partition) {
            // From a few nodes to all of them.
            let share = [50, 300, 700, 990, 1000][self.random.index(5)];
            let until = self.now + self.random.between(1_000, 30_000);
            for node in 0..self.nodes.len() {
                if self.random.permille(share) {
                    self.cut_off(node, until);
                }
            }
        }
    }

    /// One node is left, and everything fails on it: it must go on being given work.
    fn leave_one(&mut self) {
        let here: Vec<usize> =
            (0..self.nodes.len()).filter(|node| self.nodes[*node].process.is_some()).collect();
        let Some(last) = self.random.pick(&here) else { return };
        let until = self.now + self.random.between(14_000, 25_000);
        self.nodes[last].fails_until = until;
        for node in here.into_iter().filter(|node| *node != last) {
            self.cut_off(node, until);
        }
    }

    /// A node's connection is gone, and it finds no way to the coordinator for a while.
    fn cut_off(&mut self, node: usize, until: u64) {
        self.nodes[node].cut_off_until = until;
        if let Some(link) = self.nodes[node].process.as_ref().and_then(|process| process.link) {
            self.cut(link);
        }
    }

    fn weather_of_operators(&mut self) -> Checked {
        if self.chance(Fault::OperatorDrain) {
            let node = self.random.index(self.nodes.len());
            let until = self.random.between(2_000, 40_000);
            self.after(until, Event::Ask(Ask::Drain(node, false)));
            self.on_ask(Ask::Drain(node, true))?;
        }
        if self.chance(Fault::Audit) { self.audit() } else { Ok(()) }
    }

    fn set_capacity(&mut self, node: usize, units: u32) {
        if let Some(process) = &mut self.nodes[node].process {
            process.capacity = units;
            self.control(node, NodeToCoordinator::Capacity { units });
        }
    }

    fn count_standings(&mut self) {
        self.note_farm();
        let Some(process) = &self.shell.process else { return };
        for row in process.core.nodes(self.clock()) {
            match row.state {
                NodeState::Lost => self.tally.count(Fault::GraceOver),
                NodeState::Unfit if row.note.contains("in a row") => {
                    self.tally.count(Fault::NodeUnfit)
                }
                NodeState::Unfit if row.note.contains("quarantined") => {
                    self.tally.count(Fault::DevicesAllOut)
                }
                _ => {}
            }
        }
        let waits = |row: &JobSummary| row.note.contains("of the devices that are ready");
        let lacks = process.core.jobs().iter().any(|row| row.note.starts_with("waiting: "));
        sometimes!(self, ShortageTold, lacks);
        let Some(process) = &self.shell.process else { return };
        if process.core.jobs().iter().any(waits) {
            self.tally.count(Fault::JobWaitsForMemory);
        }
        let waits: BTreeSet<Waits> =
            process.core.jobs().iter().filter_map(|row| row.waits).collect();
        sometimes!(self, WaitsForNodes, waits.contains(&Waits::Nodes));
        sometimes!(self, WaitsForPool, waits.contains(&Waits::Pool));
        sometimes!(self, WaitsForCheck, waits.contains(&Waits::Check));
        sometimes!(self, WaitsForBuild, waits.contains(&Waits::Fingerprint));
        sometimes!(self, WaitsForOutOfWork, waits.contains(&Waits::OutOfWork));
    }

    /// No job waits without a word: where nothing of it is leased and something is to be done, it
    /// says why.
    fn check_waits(&self) -> Checked {
        // Inputs whose step is not taken yet may have changed what the books do not have.
        let Some(process) = self.shell.process.as_ref().filter(|process| process.seen.inputs == 0)
        else {
            return Ok(());
        };
        let silent = |row: &&JobSummary| {
            let book = self.ledger.believed.jobs.get(&row.job);
            let to_do = book.is_some_and(|book| book.ended.is_none() && book.open_units() > 0);
            to_do && row.units_leased == 0 && (row.waits.is_none() || row.note.is_empty())
        };
        match process.core.jobs().iter().find(silent) {
            Some(row) => {
                violated(format!("job {} waits, and does not say for what: {row:?}", row.job))
            }
            None => Ok(()),
        }
    }

    /// The resolver of the coordinator is done with a frame, one way or the other.
    pub(crate) fn on_resolved(&mut self, job: JobId, frame: FrameNumber) -> Checked {
        let retry = |text: &str| ResolveFailure::Retry(text.to_owned());
        if self.chance(Fault::ResolveRetry) {
            return self.input(Input::FrameResolveFailed {
                job,
                frame,
                failure: retry("the disk is full"),
            });
        }
        if self.chance(Fault::ResolveFatal) {
            let failure = ResolveFailure::Fatal("no format takes it".to_owned());
            return self.input(Input::FrameResolveFailed { job, frame, failure });
        }
        let Some(book) = self.ledger.believed.jobs.get(&job) else { return Ok(()) };
        let file = |extension: &'static str| FrameFile {
            format: extension.to_owned(),
            hash: file_hash(job, frame),
            length: 1,
            pixels_sha256: [2; 32],
        };
        self.blobs.put(file_hash(job, frame), self.now);
        let mut files: Vec<FrameFile> = book.kind().extensions().into_iter().map(file).collect();
        if self.chance(Fault::ResolveMiscount) {
            files.pop();
        }
        if self.chance(Fault::ResolveRepeated) {
            self.input(Input::FrameResolved { job, frame, files: files.clone() })?;
            self.input(Input::FrameResolveFailed { job, frame, failure: retry("late") })?;
        }
        self.input(Input::FrameResolved { job, frame, files })
    }

    /// The resolver has measured a round of a frame, or could not.
    pub(crate) fn on_measured(
        &mut self,
        job: JobId,
        frame: FrameNumber,
        (round, noisy): (u32, TileSet),
    ) -> Checked {
        if self.chance(Fault::ResolveRetry) {
            let failure = ResolveFailure::Retry("the disk does not answer".to_owned());
            return self.input(Input::FrameResolveFailed { job, frame, failure });
        }
        if self.chance(Fault::ResolveRepeated) {
            self.input(Input::RoundMeasured { job, frame, round, noisy: noisy.clone() })?;
        }
        self.input(Input::RoundMeasured { job, frame, round, noisy })
    }

    /// From now on nothing goes wrong: whatever was stuck goes on, and everything must come to its
    /// end.
    pub(crate) fn heal(&mut self) -> Checked {
        self.healed = true;
        self.files_gone.clear();
        self.poisoned.clear();
        for node in 0..self.nodes.len() {
            let healed = &mut self.nodes[node];
            (healed.cut_off_until, healed.fails_until, healed.lag, healed.slowness) = (0, 0, 0, 1);
            self.nodes[node].stalled_until = self.now;
            self.wake_node(node)?;
            if let Some(process) = &mut self.nodes[node].process {
                process.stuck_until = 0;
            }
            let capacity = self.nodes[node].plan.capacity;
            self.set_capacity(node, capacity);
        }
        self.plan_calm_pauses();
        self.after(1_000, Event::Look);
        Ok(())
    }

    /// What is not over yet; None where all is.
    pub(crate) fn unfinished(&mut self) -> Option<String> {
        let drained: Vec<_> = self.ledger.believed.drained.iter().copied().collect();
        for node in drained {
            self.after(1, Event::Ask(Ask::Drain(crate::sim::world::plan::index_of(node), false)));
        }
        let suspects: Vec<_> = self.ledger.believed.suspects.iter().copied().collect();
        for node in suspects {
            self.after(1, Event::Ask(Ask::Drain(crate::sim::world::plan::index_of(node), false)));
        }
        let paused: Vec<usize> = (0..self.clients.jobs.len())
            .filter(|index| self.ledger.believed.is_paused(self.clients.jobs[*index].plan.id))
            .collect();
        paused.into_iter().for_each(|index| self.after(1, Event::Ask(Ask::Resume(index))));
        let Some(process) = &self.shell.process else {
            return Some("the coordinator is away".to_owned());
        };
        let waits =
            |job: &&crate::sim::client::ClientJob| !job.accepted && !job.refused && !job.vanished;
        if let Some(job) = self.clients.jobs.iter().find(waits) {
            return Some(format!("job {} is not accepted", job.plan.id));
        }
        let going = |job: &&crate::sim::client::ClientJob| {
            let book = self.ledger.durable.jobs.get(&job.plan.id);
            // A refusal may have been overtaken by the acceptance of the same job, asked for twice.
            book.map_or(!job.refused && !job.vanished, |book| book.ended.is_none())
        };
        if let Some(job) = self.clients.jobs.iter().find(going) {
            let note = process.core.job_summary(job.plan.id);
            return Some(format!("job {} has not ended: {note:?}", job.plan.id));
        }
        for node in &self.nodes {
            let name = &node.plan.name;
            if let Some(lease) = node.outbox.keys().next() {
                return Some(format!("{name} has had no word on {lease}"));
            }
            let busy = node.process.as_ref().and_then(|process| process.units.keys().next());
            if let Some(lease) = busy {
                return Some(format!("{name} still works on {lease}"));
            }
        }
        if let Some((lease, node)) = process.core.leases().next() {
            return Some(format!("{node} still has the lease {lease}"));
        }
        if !process.pending.is_empty() {
            return Some("steps are pending".to_owned());
        }
        let rows = process.core.nodes(self.clock());
        let tired = rows.iter().find(|row| row.state != NodeState::Ready);
        tired.map(|row| format!("node {} is {:?}: {}", row.name, row.state, row.note))
    }

    /// All is over: what was promised has been kept, and the disk tells the same.
    pub(crate) fn check_end(&mut self) -> Checked {
        self.ledger.check_promises()?;
        self.audit()?;
        if self.disk.spools() > 0 {
            return violated(format!("{} spools are left", self.disk.spools()));
        }
        let Some(process) = &self.shell.process else { return Ok(()) };
        process.core.verify().map_err(Violation)?;
        process.watch.compare(&process.core, &self.ledger.believed, false)?;
        self.ledger.durable.compare(&process.core)?;
        let history = self.disk.history.iter().cloned();
        let settings = self.plan.settings.clone();
        match Core::replay(settings, [], history, self.clock()) {
            Err(error) => violated(format!("the history is refused: {error}")),
            Ok(replayed) => match process.core.durable_difference(&replayed) {
                Some(difference) => violated(format!("life and replay differ: {difference}")),
                None => Ok(()),
            },
        }
    }
}
