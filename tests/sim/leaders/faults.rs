//! What goes wrong with coordinators and their database, by itself, until the run heals.

use crate::checks::violation::Checked;
use crate::faults::Fault;
use crate::leaders::Doing;
use crate::situations::sometimes;
use crate::world::World;
use crate::world::events::{Event, LinkId};

impl World {
    /// An opportunity for everything that happens to coordinators and to the database.
    pub(crate) fn roll_leader_faults(&mut self) -> Checked {
        let Some(leaders) = &self.leaders else { return Ok(()) };
        let (count, term) = (leaders.machines.len(), leaders.plan.term);
        let leader = self.shell.machine;
        let other = self.random.index(count);
        if self.chance(Fault::LeaderKilled) {
            self.crash()?;
        }
        if self.chance(Fault::StandbyKilled) && self.stands_by(other) {
            let away = self.random.between(500, 10_000);
            self.end_machine(other, away);
        }
        let long = self.random.between(term, 3 * term);
        if self.chance(Fault::LeaderStopped) {
            let short = self.random.between(100, term);
            let millis = if self.random.permille(600) { long } else { short };
            self.stop_machine(leader, millis, false);
        }
        if self.chance(Fault::LeaderSleeps) {
            self.stop_machine(leader, long, true);
        }
        let until = self.now + self.random.between(500, 2 * term);
        if self.chance(Fault::NoDatabase) {
            self.cut_off_machine(leader, Some(until), None);
        }
        if self.chance(Fault::NoNodes) {
            self.cut_off_machine(leader, None, Some(until));
        }
        if self.chance(Fault::NoBoth) {
            self.cut_off_machine(leader, Some(until), Some(until));
        }
        if self.chance(Fault::DatabaseAway) {
            let away = if self.random.permille(400) { long } else { term / 3 };
            self.leave_database(away, 0);
        }
        if self.chance(Fault::DatabaseFailsOver) {
            let lag = self.random.between(0, 3_000);
            let away = self.random.between(0, term / 2);
            self.leave_database(away, lag);
        }
        Ok(())
    }

    /// A process stands still until its term is over. One whose virtual machine was paused does not
    /// know it when it goes on.
    pub(super) fn stop_past_term(&mut self, machine: usize) {
        let term = self.leaders.as_ref().map_or(1, |leaders| leaders.plan.term);
        let millis = self.random.between(term, 2 * term);
        self.stop_machine(machine, millis, millis.is_multiple_of(2));
    }

    fn stands_by(&self, machine: usize) -> bool {
        let leaders = self.leaders.as_deref();
        leaders.is_some_and(|all| matches!(all.machines[machine].doing, Doing::StandingBy { .. }))
    }

    /// A process stands still for a while; paused, its machine's clock does as well.
    fn stop_machine(&mut self, machine: usize, millis: u64, paused: bool) {
        let Some(leaders) = &mut self.leaders else { return };
        let known = &mut leaders.machines[machine];
        let Doing::Leading(incarnation) = known.doing else { return };
        if known.stopped_until > self.now {
            return;
        }
        (known.stopped_until, known.was_stopped) = (self.now + millis, true);
        known.paused += if paused { millis } else { 0 };
        self.note(|| format!("coordinator {machine} stands still for {millis} ms"));
        self.after(millis, Event::MachineWakes(machine));
        // The transport gives up on a silent peer.
        if millis > 10_000 {
            self.cut_links_of(incarnation);
        }
    }

    fn cut_off_machine(&mut self, machine: usize, database: Option<u64>, nodes: Option<u64>) {
        let Some(leaders) = &mut self.leaders else { return };
        let known = &mut leaders.machines[machine];
        known.no_database_until = database.unwrap_or(known.no_database_until);
        known.no_nodes_until = nodes.unwrap_or(known.no_nodes_until);
        if let (Some(_), Doing::Leading(incarnation)) = (nodes, known.doing) {
            self.cut_links_of(incarnation);
        }
    }

    fn cut_links_of(&mut self, incarnation: u64) {
        let own = self.links.links.iter().filter(|(_, link)| link.incarnation == incarnation);
        let own: Vec<LinkId> = own.map(|(id, _)| *id).collect();
        own.into_iter().for_each(|id| self.cut(id));
    }

    /// The database is away for a while. Where it fails over, a standby takes its place; one that
    /// is not synchronous lacks the newest commits.
    fn leave_database(&mut self, millis: u64, lag: u64) {
        let now = self.now;
        let Some(leaders) = &mut self.leaders else { return };
        leaders.database.away_until = leaders.database.away_until.max(now + millis);
        if lag == 0 || leaders.plan.synchronous {
            return;
        }
        let lost = leaders.database.fail_over(now, lag);
        self.note(|| format!("a standby of the database takes over, without {lost} commits"));
        if lost > 0 {
            self.tally.count(Fault::EndLost);
            let led = self.shell.process.is_some();
            sometimes!(self, EndLostUnled, !led);
        }
    }

    /// Nothing goes wrong any more with coordinators and their database.
    pub(crate) fn heal_leaders(&mut self) -> Checked {
        let now = self.now;
        let Some(leaders) = &mut self.leaders else { return Ok(()) };
        leaders.database.away_until = now;
        let stopped: Vec<usize> = (0..leaders.machines.len())
            .filter(|machine| leaders.machines[*machine].stopped_until > now)
            .collect();
        for machine in &mut leaders.machines {
            (machine.no_database_until, machine.no_nodes_until) = (0, 0);
            machine.stopped_until = machine.stopped_until.min(now);
        }
        stopped.into_iter().try_for_each(|machine| self.wake_machine(machine))
    }
}
