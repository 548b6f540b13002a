//! P6 in virtual time: once a pause or a cancel has been answered, no node works on the job any
//! more than messages take to arrive. Looked at when nothing goes wrong any more; the bound is then
//! the longest time of a message.

use crate::checks::violation::{Checked, violated};
use crate::client::Ask;
use crate::situations::sometimes;
use crate::world::World;
use crate::world::events::Event;
use tessera_core::SessionId;
use tessera_protocol::ids::JobId;

/// Longest time of a message between coordinator and node when nothing is wrong, milliseconds:
/// twice the largest latency of a plan.
const MESSAGE_MAX: u64 = 300;
/// What was slow when the last fault happened has arrived after so long.
const CALM_AFTER: u64 = 20_000;

/// A pause or a cancel that was answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Halt {
    job: JobId,
    /// Process of the coordinator.
    incarnation: u64,
    /// Sessions that were there: whoever joins later is told when it has.
    before: SessionId,
    /// How often the job had gone on.
    resumed: u32,
}

impl World {
    /// When the farm is healed, some jobs are paused.
    pub(crate) fn plan_calm_pauses(&mut self) {
        for index in 0..self.clients.jobs.len() {
            if self.random.permille(400) {
                let at = CALM_AFTER + self.random.between(1, 10_000);
                self.after(at, Event::Ask(Ask::CalmPause(index)));
            }
        }
    }

    /// A client is being told that a job is paused, or that it has ended. The job may have gone on
    /// since that was decided, as answers wait for the disk: then there is nothing to look at.
    pub(crate) fn expect_halt(&mut self, job: JobId) {
        let calm = self.healed && self.now > self.plan.heal_at + CALM_AFTER;
        let Some(book) = self.ledger.believed.jobs.get(&job).filter(|_| calm) else { return };
        if !(book.paused || book.ended.is_some()) {
            return;
        }
        let Some(process) = &self.shell.process else { return };
        let (incarnation, before) = (self.shell.incarnation, SessionId(process.next_session));
        let halt = Halt { job, incarnation, before, resumed: book.resumed };
        self.after(MESSAGE_MAX + 1, Event::Stopped(halt));
    }

    pub(crate) fn check_halt(&mut self, halt: &Halt) -> Checked {
        let Some(book) = self.ledger.believed.jobs.get(&halt.job) else { return Ok(()) };
        // A job that has gone on since may have been halted once more: that has a look of its own.
        let stands = book.resumed == halt.resumed && (book.paused || book.ended.is_some());
        if !stands || self.shell.process.is_none() || self.shell.incarnation != halt.incarnation {
            return Ok(());
        }
        sometimes!(self, StoppedInTime);
        for (id, link) in &self.links.links {
            let working =
                self.nodes[link.node].process.as_ref().filter(|process| process.link == Some(*id));
            let leases = working.into_iter().flat_map(|process| process.units.keys());
            let mut of_job = leases.filter(|lease| lease.unit.job == halt.job);
            let was_there = link.incarnation == halt.incarnation
                && link.session.is_some_and(|session| session < halt.before);
            if let Some(lease) = of_job.next().filter(|_| was_there) {
                let name = &self.nodes[link.node].plan.name;
                return violated(format!(
                    "{name} works on {lease} {MESSAGE_MAX} ms after its job was halted"
                ));
            }
        }
        Ok(())
    }
}
