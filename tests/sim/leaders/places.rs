//! Where nodes and clients find a coordinator: each knows the places of all.

use crate::checks::violation::Checked;
use crate::client::Ask;
use crate::faults::planted::Planted;
use crate::leaders::{Doing, Machine};
use crate::situations::sometimes;
use crate::world::World;
use crate::world::events::Event;
use tessera_protocol::client::Response;

impl World {
    /// A coordinator that can be reached and listens: one that leads, or believes that it does.
    pub(crate) fn find_coordinator(&mut self) -> Option<u64> {
        let Some(leaders) = &self.leaders else {
            return self.shell.process.as_ref().map(|_| self.shell.incarnation);
        };
        let there = leaders.machines.iter().filter(|machine| {
            machine.stopped_until <= self.now && machine.no_nodes_until <= self.now
        });
        let leading: Vec<u64> = there
            .filter_map(|machine| match machine.doing {
                Doing::Leading(incarnation) => Some(incarnation),
                _ => None,
            })
            .collect();
        let found = self.random.pick(&leading);
        let former = found.is_some_and(|of| of != self.shell.incarnation);
        sometimes!(self, FormerLeaderFound, former);
        found
    }

    /// The process that is looked at stands still.
    pub(crate) fn is_stopped(&self) -> bool {
        let stopped =
            |of: &crate::leaders::Leaders| self.now < of.machines[self.shell.machine].stopped_until;
        self.leaders.as_deref().is_some_and(stopped)
    }

    /// Keeps what reaches a coordinator that stands still; gives back everything else.
    pub(crate) fn defer_at_coordinator(&mut self, event: Event) -> Option<Event> {
        let Some(leaders) = &mut self.leaders else { return Some(event) };
        let incarnation = match &event {
            Event::Up(link, _) | Event::CoordinatorNotices(link) => {
                self.links.links.get(link).map(|link| link.incarnation)
            }
            Event::TakeStep(of)
            | Event::Together(of, ..)
            | Event::Tick(of, _)
            | Event::LateLoss(of, _)
            | Event::Resolved(of, ..)
            | Event::Measured(of, ..)
            | Event::AskAgain(of)
            | Event::Renew(of)
            | Event::CheckTerm(of)
            | Event::Forget(of, _)
            | Event::FoundWrong(of, _) => Some(*of),
            _ => None,
        };
        let machine = match (&event, incarnation) {
            (Event::Said((machine, _), ..) | Event::StandBy(machine, _), _) => Some(*machine),
            (_, Some(of)) => {
                leaders.machines.iter().position(|known| known.doing == Doing::Leading(of))
            }
            (_, None) => None,
        };
        match machine.map(|machine| &mut leaders.machines[machine]) {
            Some(machine) if self.now < machine.stopped_until => {
                machine.deferred.push(event);
                None
            }
            _ => Some(event),
        }
    }

    /// A coordinator goes on after standing still.
    pub(crate) fn wake_machine(&mut self, machine: usize) -> Checked {
        let Some(leaders) = &mut self.leaders else { return Ok(()) };
        let known = &mut leaders.machines[machine];
        if self.now < known.stopped_until {
            return Ok(());
        }
        let deferred = std::mem::take(&mut known.deferred);
        let incarnation = match known.doing {
            Doing::Leading(incarnation) => incarnation,
            _ => 0,
        };
        let stale = incarnation > 0 && incarnation != self.shell.incarnation;
        sometimes!(self, GoesOnAfterTerm, stale);
        sometimes!(self, GoesOnInTerm, incarnation > 0 && !stale);
        if stale {
            // Somebody has asked it meanwhile.
            let index = self.now as usize % self.clients.jobs.len().max(1);
            self.as_process(incarnation, |world| world.answer_question(index))?;
        }
        deferred.into_iter().try_for_each(|event| self.dispatch(event))
    }
}

impl World {
    /// A client finds no coordinator that leads: those that stand by listen to nobody.
    pub(crate) fn ask_standby(&mut self, ask: Ask) -> Checked {
        let answers = self.planted.as_ref().is_some_and(Planted::answers_standing_by);
        let Some(leaders) = self.leaders.as_deref().filter(|_| answers) else { return Ok(()) };
        let waits = |machine: &Machine| matches!(machine.doing, Doing::StandingBy { .. });
        match ask {
            Ask::Submit(index) if leaders.machines.iter().any(waits) => {
                let response = Response::Accepted(self.clients.jobs[index].plan.id);
                self.ledger.on_reply(&response)?;
                self.answer(ask, response)
            }
            _ => Ok(()),
        }
    }
}
