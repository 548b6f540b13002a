//! Results of a node that share a stream: they are held until the stream is whole, and handled as
//! one.

use crate::checks::violation::{Checked, Violation};
use crate::coordinator::bucket::Sent;
use crate::faults::Fault;
use crate::model::film::Film;
use crate::situations::sometimes;
use crate::world::World;
use crate::world::events::{Event, LinkId, Parcel};
use tessera_core::{Arrived, Input, SessionId};
use tessera_protocol::ids::Lease;

impl World {
    /// A result arrives alone, or begins or joins a stream.
    pub(super) fn on_result(
        &mut self,
        (id, session): (LinkId, SessionId),
        parcel: Parcel,
    ) -> Checked {
        let Some(process) = &self.shell.process else { return Ok(()) };
        let joins = process.together.contains_key(&session);
        if !joins && !self.chance(Fault::Together) {
            return self.on_parcels((id, session), vec![parcel]);
        }
        if !joins {
            let delay = self.random.between(1, 60);
            self.after(delay, Event::Together(self.shell.incarnation, id, session));
        }
        if let Some(process) = &mut self.shell.process {
            process.together.entry(session).or_default().push(parcel);
        }
        // It is still on its way.
        if let Some(link) = self.links.links.get_mut(&id) {
            link.up += 1;
        }
        Ok(())
    }

    /// A stream of results is whole.
    pub(crate) fn on_together(&mut self, (id, session): (LinkId, SessionId)) -> Checked {
        let Some(process) = &mut self.shell.process else { return Ok(()) };
        let parcels = process.together.remove(&session).unwrap_or_default();
        if let Some(link) = self.links.links.get_mut(&id) {
            link.up -= parcels.len() as u32;
        }
        if parcels.len() > 1 {
            self.tally.count(Fault::SharedStream);
        }
        self.on_parcels((id, session), parcels)
    }

    /// Results that share a stream, or one alone.
    fn on_parcels(&mut self, (id, session): (LinkId, SessionId), parcels: Vec<Parcel>) -> Checked {
        let (mut inputs, mut whole) = (Vec::new(), Vec::new());
        for parcel in parcels {
            match parcel {
                Parcel::Result(lease, film) => whole.push((lease, film)),
                Parcel::Damaged(lease) => {
                    let reason = "other hash".to_owned();
                    inputs.push(Input::ResultDamaged { session, lease, reason });
                }
                _ => {}
            }
        }
        for (lease, sent) in self.store_here(id, whole)? {
            inputs.push(self.result_input((id, session), lease, sent));
        }
        self.inputs(inputs)
    }

    /// A node says that it has stored results.
    pub(super) fn on_stored_results(
        &mut self,
        (id, session): (LinkId, SessionId),
        results: Vec<(Lease, Sent)>,
    ) -> Checked {
        let input = |(lease, sent)| self.result_input((id, session), lease, sent);
        let inputs = results.into_iter().map(input).collect();
        self.inputs(inputs)
    }

    /// A node has offered results that would not be taken, and nothing is stored of them. False if
    /// the coordinator stands still, and says nothing.
    pub(crate) fn refuse_offer(
        &mut self,
        id: LinkId,
        results: Vec<(Lease, Film)>,
    ) -> Result<bool, Violation> {
        let Some(link) = self.links.links.get(&id) else { return Ok(true) };
        let (incarnation, Some(session)) = (link.incarnation, link.session) else {
            return Ok(true);
        };
        let mut answers = true;
        self.as_process(incarnation, |world| {
            answers = !world.is_stopped();
            if !answers {
                return Ok(());
            }
            sometimes!(world, OfferRefused);
            let input = |(lease, film)| world.result_input((id, session), lease, Sent::from(film));
            let inputs = results.into_iter().map(input).collect();
            world.inputs(inputs)
        })?;
        Ok(answers)
    }

    /// A result as an input, with what its node measured.
    fn result_input(
        &mut self,
        (id, session): (LinkId, SessionId),
        lease: Lease,
        sent: Sent,
    ) -> Input {
        let film = sent.film;
        if let Some(process) = &mut self.shell.process {
            process.arrived.entry((session, lease)).or_default().push_back(sent);
        }
        let node = self.links.links.get(&id).map(|link| link.node);
        let micros = node.map_or(1, |node| self.nodes[node].plan.unit_millis * 1000);
        // Half of the results tell of a wait: as long as a unit takes, or far longer.
        let waited = match (lease.unit.frame.0 + lease.unit.unit.0) % 4 {
            0 => micros,
            1 => u64::MAX,
            _ => 0,
        };
        let measured = Arrived {
            device_micros: micros,
            waited_micros: waited,
            device_bytes: self.needs(lease.unit.job),
            ..film.arrived(lease)
        };
        Input::ResultArrived { session, result: measured }
    }
}
