//! Faults that happen by themselves until the run heals. Each has a chance every tenth of a second.

use crate::checks::violation::Checked;
use crate::client::Ask;
use crate::faults::Fault;
use crate::model::books::FrameEnd;
use crate::world::World;
use crate::world::events::{Event, LinkId, NodeEvent};
use tessera_core::Input;
use tessera_protocol::ids::{FrameNumber, JobId, UnitIndex};

impl World {
    /// An opportunity for everything that happens to whole processes and connections.
    pub(crate) fn roll_faults(&mut self) -> Checked {
        if self.healed {
            return Ok(());
        }
        let next = self.random.between(60, 200);
        self.after(next, Event::RollFaults);
        self.roll_node_faults();
        self.roll_link_faults();
        self.roll_operator_faults()?;
        self.roll_leader_faults()?;
        self.roll_bucket_faults();
        if self.chance(Fault::FilesGone) {
            let jobs: Vec<JobId> = self.plan.jobs.iter().map(|job| job.id).collect();
            let until = self.now + self.random.between(1_000, 25_000);
            if let Some(job) = self.random.pick(&jobs) {
                self.files_gone.insert(job, until);
            }
        }
        self.lose_results()?;
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

    /// The coordinator reads results for a node that finishes a frame, and cannot.
    fn lose_results(&mut self) -> Checked {
        let jobs = self.ledger.believed.jobs.iter().filter(|(_, book)| book.ended.is_none());
        let frames = jobs.flat_map(|(job, book)| {
            let open = book.frames.iter().filter(|(_, frame)| frame.end == FrameEnd::Open);
            open.filter(|(_, frame)| frame.is_by_nodes()).map(|(number, _)| (*job, *number))
        });
        let frames: Vec<(JobId, FrameNumber)> = frames.collect();
        let Some((job, frame)) = self.random.pick(&frames) else { return Ok(()) };
        if self.shell.process.is_none() || self.is_stopped() || !self.chance(Fault::ResultsLost) {
            return Ok(());
        }
        let units = self.some_committed(job, frame);
        self.input(Input::ResultsLost { job, frame, units, reason: "other hash".to_owned() })
    }

    /// Some units of a frame with a result, and perhaps one that does not exist.
    pub(crate) fn some_committed(&mut self, job: JobId, frame: FrameNumber) -> Vec<UnitIndex> {
        let book = self.ledger.believed.jobs.get(&job).and_then(|book| book.frames.get(&frame));
        let Some(book) = book else { return Vec::new() };
        // Half of the time only of what finishes the frame, if there is any.
        let pieces: Vec<u32> = book.committed.range(book.units..).map(|(unit, _)| *unit).collect();
        let all: Vec<u32> = book.committed.keys().copied().collect();
        let of = if pieces.is_empty() || self.random.permille(500) { all } else { pieces };
        let count = self.random.between(1, 3);
        let units = (0..count).filter_map(|_| self.random.pick(&of));
        let mut units: Vec<UnitIndex> = units.map(UnitIndex).collect();
        if self.random.permille(100) {
            units.push(UnitIndex(1 << 20));
        }
        units
    }

    fn roll_node_faults(&mut self) {
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
        if self.chance(Fault::IdleNode) {
            let stall = self.plan.settings.stall.as_millis() as u64;
            let millis = self.random.between(1_000, stall * 3);
            if let Some(process) = &mut self.nodes[node].process {
                process.idle_until = self.now + millis;
            }
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

    fn roll_link_faults(&mut self) {
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
        // A slow one beside it takes no work from it, and could do what fails on it.
        let beside = if self.random.permille(500) { self.random.pick(&here) } else { None };
        if let Some(beside) = beside {
            self.nodes[beside].slowness = 20;
        }
        for node in here.into_iter().filter(|node| ![Some(last), beside].contains(&Some(*node))) {
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

    fn roll_operator_faults(&mut self) -> Checked {
        if self.chance(Fault::OperatorDrain) {
            let node = self.random.index(self.nodes.len());
            let until = self.random.between(2_000, 40_000);
            self.after(until, Event::Ask(Ask::Undrain(node)));
            let leave = self.chance(Fault::DrainToLeave);
            self.on_ask(Ask::Drain(node, leave))?;
        }
        if self.chance(Fault::BudgetSet) {
            let millis = self.random.between(1, 200) as u16;
            let raise = self.random.between(1_000, 25_000);
            self.after(raise, Event::Ask(Ask::Budget(0)));
            self.on_ask(Ask::Budget(millis))?;
        }
        if self.chance(Fault::OperatorRemove) {
            let node = self.random.index(self.nodes.len());
            self.on_ask(Ask::RemoveNode(node))?;
        }
        if self.chance(Fault::NodeCloned) {
            let node = self.random.index(self.nodes.len());
            self.clone_node(node);
        }
        if self.chance(Fault::Audit) { self.audit() } else { Ok(()) }
    }
}
