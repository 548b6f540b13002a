//! Who reads results in the bucket checks them: a node that finishes a frame, or the coordinator.

use crate::checks::violation::{Checked, violated};
use crate::coordinator::bucket::frame_of;
use crate::model::books::FrameBook;
use crate::situations::sometimes;
use crate::world::World;
use crate::world::events::Event;
use tessera_coordinator::lost_spools;
use tessera_coordinator::spool::{maker_of, unknown_objects};
use tessera_core::{Input, ResolveFailure};
use tessera_protocol::ids::{FrameNumber, JobId, Lease, UnitIndex};

/// What a unit that finishes a frame reads.
fn is_read(book: &FrameBook, piece: u32, unit: u32) -> bool {
    match book.is_assembly(piece) {
        true => (book.units..piece).contains(&unit),
        false => unit < book.units,
    }
}

impl World {
    /// Units whose result a piece reads, and that the bucket has lost or changed.
    fn wrong_for(&self, lease: Lease) -> Vec<UnitIndex> {
        let Some(book) = self.ledger.durable.frame(lease.unit) else { return Vec::new() };
        let piece = lease.unit.unit.0;
        self.harmed_units((lease.unit.job, lease.unit.frame), |unit| is_read(book, piece, unit))
    }

    /// Why a node cannot read what a piece is made of. What is wrong it asks of the coordinator.
    pub(crate) fn read_problem(&mut self, node: usize, lease: Lease) -> Option<String> {
        let (job, frame) = (lease.unit.job, lease.unit.frame);
        if self.disk.objects_of(job, frame).is_empty() {
            return None;
        }
        let both = self.disk.on_disk(frame_of(lease)) > 0;
        if !self.is_bucket_there() {
            sometimes!(self, BucketUnread);
            return Some("the bucket is away".to_owned());
        }
        if self.wrong_for(lease).is_empty() {
            sometimes!(self, ReadFromBoth, both);
            sometimes!(self, ReadFromBucket, !both);
            return None;
        }
        let link = self.nodes[node].process.as_ref().and_then(|process| process.link);
        if let Some(link) = link.and_then(|link| self.links.links.get(&link)) {
            let incarnation = link.incarnation;
            let delay = self.random.between(1, 200);
            self.after(delay, Event::FoundWrong(incarnation, lease));
        }
        Some("a result is not what it was".to_owned())
    }

    /// A node has found a result wrong, and the coordinator reads it itself.
    pub(crate) fn on_found_wrong(&mut self, lease: Lease) -> Checked {
        let Some(unit) = self.wrong_for(lease).first().copied() else { return Ok(()) };
        let (job, frame) = (lease.unit.job, lease.unit.frame);
        let Some(process) = &self.shell.process else { return Ok(()) };
        let extent = process.known.get(&frame_of(lease));
        let maker = extent.and_then(|extent| maker_of(&extent.stored, unit));
        let Some(node) = maker else {
            return violated(format!("u{} of {job}/{frame} is in no object known", unit.0));
        };
        sometimes!(self, StoredWrong);
        let reason = "other hash".to_owned();
        self.input(Input::ResultsLost { job, frame, units: vec![unit], reason })?;
        self.input(Input::StoredWrong { node, job })
    }

    /// Why the resolver cannot read a frame.
    pub(super) fn unreadable(&mut self, job: JobId, frame: FrameNumber) -> Option<ResolveFailure> {
        if self.disk.objects_of(job, frame).is_empty() {
            return None;
        }
        if !self.is_bucket_there() {
            sometimes!(self, BucketUnread);
            return Some(ResolveFailure::Retry("the bucket is away".to_owned()));
        }
        let book = self.ledger.durable.jobs.get(&job)?.frames.get(&frame)?;
        // Of a frame that nodes have finished, it reads what the last of them made.
        let first = match book.is_by_nodes() {
            true => book.units + book.pieces - 1,
            false => 0,
        };
        let units = self.harmed_units((job, frame), |unit| unit >= first);
        sometimes!(self, ResolvedWrong, !units.is_empty());
        (!units.is_empty()).then(|| ResolveFailure::Lost(units, "other hash".to_owned()))
    }

    /// A result that is acknowledged is where the journal has it.
    pub(crate) fn check_is_kept(&self, lease: Lease) -> Checked {
        if self.bucket.is_none() || self.is_stale() || !self.ledger.durable.keeps_result(lease) {
            return Ok(());
        }
        let unit = lease.unit;
        let mut spool = self.disk.spool(unit.job, unit.frame);
        match spool.any(|of| of.unit == unit.unit && of.epoch == lease.epoch) {
            true => Ok(()),
            false => violated(format!("{lease} is acknowledged, and its result is nowhere")),
        }
    }

    /// The next start would delete all objects that are left.
    pub(crate) fn check_swept(&self) -> Checked {
        let Some(bucket) = &self.bucket else { return Ok(()) };
        let Some(process) = &self.shell.process else { return Ok(()) };
        let in_work = |key| !lost_spools::is_over(&process.core, key);
        let unknown = unknown_objects(bucket.objects(), &process.known, in_work);
        match bucket.objects().into_iter().find(|of| !unknown.contains(of)) {
            Some((key, of)) => violated(format!("{of} of {key} is left, and no start deletes it")),
            None => Ok(()),
        }
    }
}
