//! The end of a run: once nothing goes wrong any more, everything must come to its end, and every
//! promise must have been kept.

use crate::checks::violation::{Checked, Violation, violated};
use crate::client::Ask;
use crate::world::World;
use crate::world::events::Event;
use tessera_core::Core;
use tessera_protocol::status::{NodeState, NodeSummary};

impl World {
    /// From now on nothing goes wrong: whatever was stuck goes on, and everything must come to its
    /// end.
    pub(crate) fn heal(&mut self) -> Checked {
        self.healed = true;
        self.files_gone.clear();
        self.poisoned.clear();
        for node in 0..self.nodes.len() {
            let healed = &mut self.nodes[node];
            (healed.cut_off_until, healed.fails_until, healed.lag, healed.slowness) = (0, 0, 0, 1);
            healed.no_bucket_until = 0;
            self.nodes[node].stalled_until = self.now;
            self.wake_node(node)?;
            if let Some(process) = &mut self.nodes[node].process {
                (process.stuck_until, process.idle_until) = (0, 0);
            }
            let capacity = self.nodes[node].plan.capacity;
            self.set_capacity(node, capacity);
        }
        if let Some(bucket) = &mut self.bucket {
            bucket.away_until = self.now;
        }
        self.heal_leaders()?;
        self.plan_calm_pauses();
        self.after(1_000, Event::Look);
        Ok(())
    }

    /// What is not over yet; None where all is.
    pub(crate) fn unfinished(&mut self) -> Option<String> {
        let drained: Vec<_> = self.ledger.believed.drained.keys().copied().collect();
        for node in drained {
            self.after(1, Event::Ask(Ask::Undrain(crate::world::plan::index_of(node))));
        }
        let suspects: Vec<_> = self.ledger.believed.suspects.iter().copied().collect();
        for node in suspects {
            self.after(1, Event::Ask(Ask::Undrain(crate::world::plan::index_of(node))));
        }
        let paused: Vec<usize> = (0..self.clients.jobs.len())
            .filter(|index| self.ledger.believed.is_paused(self.clients.jobs[*index].plan.id))
            .collect();
        paused.into_iter().for_each(|index| self.after(1, Event::Ask(Ask::Resume(index))));
        if self.ledger.believed.budgets > 0 {
            self.after(1, Event::Ask(Ask::Budget(0)));
        }
        let Some(process) = &self.shell.process else {
            return Some("the coordinator is away".to_owned());
        };
        let waits =
            |job: &&crate::client::ClientJob| !job.accepted && !job.refused && !job.vanished;
        if let Some(job) = self.clients.jobs.iter().find(waits) {
            return Some(format!("job {} is not accepted", job.plan.id));
        }
        let going = |job: &&crate::client::ClientJob| {
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
        // Of machines that were installed anew, the older selves stay.
        let current = |row: &&NodeSummary| self.nodes.iter().any(|of| of.plan.id == row.node);
        let mut rows = rows.iter().filter(current);
        let tired = rows.find(|row| row.state != NodeState::Ready);
        tired.map(|row| format!("node {} is {:?}: {}", row.name, row.state, row.note))
    }

    /// All is over: what was promised has been kept, and the disk tells the same.
    pub(crate) fn check_end(&mut self) -> Checked {
        self.ledger.check_promises()?;
        self.audit()?;
        if self.disk.spools() > 0 {
            return violated(format!("{} spools are left", self.disk.spools()));
        }
        self.check_swept()?;
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
