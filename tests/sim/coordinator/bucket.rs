//! The bucket of farms that have the results of frames in work there: objects by name, which
//! outlive every coordinator. Who puts them is in `node/putting` and here, what the journal says of
//! them in `places`.

use crate::checks::violation::{Checked, Violation, violated};
use crate::coordinator::disk::Spooled;
use crate::faults::Fault;
use crate::model::film::{Film, hash_of};
use crate::situations::sometimes;
use crate::world::World;
use crate::world::events::{Event, LinkId};
use crate::world::random::mix;
use std::collections::BTreeMap;
use tessera_coordinator::spool::{EntryHeader, FrameObject, ResultObject, SpoolKey};
use tessera_core::ResultShape;
use tessera_protocol::ids::{BlobHash, FrameNumber, JobId, Lease, NodeId, UnitIndex};
use tessera_protocol::node::Piece;
use tessera_protocol::stored::name_of;

/// A coordinator that could not put an object tries none for so long, milliseconds.
const REST: u64 = 2_000;

/// The name of an object.
type Name = (SpoolKey, NodeId, BlobHash);

/// What has become of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Harm {
    Lost,
    Changed,
}

#[derive(Clone, Debug)]
struct Object {
    object: ResultObject,
    results: Vec<(Lease, Film)>,
    harm: Option<Harm>,
}

/// All objects with results.
#[derive(Debug, Default)]
pub(crate) struct Bucket {
    objects: BTreeMap<Name, Object>,
    /// Nobody can reach it until then.
    pub(crate) away_until: u64,
}

/// A result as a coordinator has it: its bytes, or where they are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) film: Film,
    /// The object that has it, and from which byte on.
    pub(crate) stored: Option<(ResultObject, u32)>,
}

impl From<Film> for Sent {
    fn from(film: Film) -> Self {
        Self { film, stored: None }
    }
}

/// A result that is to be kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept {
    pub(crate) lease: Lease,
    pub(crate) sent: Sent,
}

/// The frame of a lease.
pub(crate) fn frame_of(lease: Lease) -> SpoolKey {
    SpoolKey { job: lease.unit.job, frame: lease.unit.frame }
}

/// Bytes of a result: more or fewer than of one of another shape.
fn length_of(film: Film) -> u32 {
    let number = match film.shape {
        ResultShape::Film(film) => u64::from(film.width) << 32 | u64::from(film.samples),
        ResultShape::Chunk(chunk) => u64::from(chunk.bytes),
        ResultShape::Finished(piece) => match piece {
            Piece::Frame { rows } => 1 << 40 | u64::from(rows),
            Piece::Band { first, .. } => 2 << 40 | u64::from(first),
            Piece::Assembly => 3 << 40,
        },
    };
    1 + mix(number) as u32 % 50_000
}

/// The head of a result's entry in the journal.
pub(crate) fn header_of(kept: &Kept) -> EntryHeader {
    let Kept { lease, sent: Sent { film, .. } } = kept;
    let (length, hash) = (length_of(*film), hash_of(film.sum));
    EntryHeader { unit: lease.unit.unit, epoch: lease.epoch, first: 0, samples: 1, length, hash }
}

/// The object of a node's results, which are of one frame.
pub(crate) fn object_of(node: NodeId, results: &[(Lease, Film)]) -> ResultObject {
    let about = |(lease, film): &(Lease, Film)| (*lease, hash_of(film.sum), length_of(*film));
    let length = results.iter().map(|(_, film)| length_of(*film)).sum();
    ResultObject { node, name: name_of(results.iter().map(about)), length }
}

/// Results of an object, each with its place in it.
pub(crate) fn in_object(
    object: ResultObject,
    results: Vec<(Lease, Film)>,
) -> impl Iterator<Item = (Lease, Sent)> {
    let mut offset = 0;
    results.into_iter().map(move |(lease, film)| {
        let stored = Some((object, offset));
        offset += length_of(film);
        (lease, Sent { film, stored })
    })
}

impl Bucket {
    /// Puts an object. One that is there counts.
    fn put(
        &mut self,
        (key, object): (SpoolKey, ResultObject),
        results: &[(Lease, Film)],
    ) -> Result<bool, Violation> {
        let name = (key, object.node, object.name);
        let known = self.objects.get(&name).filter(|known| known.harm != Some(Harm::Lost));
        if let Some(known) = known {
            return match known.results == results {
                true => Ok(true),
                false => violated(format!("object {object} of {key} is put with other bytes")),
            };
        }
        self.objects.insert(name, Object { object, results: results.to_vec(), harm: None });
        Ok(false)
    }

    /// The object was put and has not been deleted since; the bucket may have lost it.
    pub(crate) fn has(&self, key: SpoolKey, object: ResultObject) -> bool {
        self.objects.contains_key(&(key, object.node, object.name))
    }

    /// The bucket has lost or changed the object.
    fn is_harmed(&self, key: SpoolKey, object: ResultObject) -> bool {
        let object = self.objects.get(&(key, object.node, object.name));
        object.is_some_and(|object| object.harm.is_some())
    }

    /// All objects.
    pub(crate) fn objects(&self) -> Vec<FrameObject> {
        self.objects.iter().map(|((key, ..), known)| (*key, known.object)).collect()
    }

    fn harm(&mut self, position: usize, harm: Harm) {
        if let Some(object) = self.objects.values_mut().nth(position) {
            object.harm = Some(harm);
        }
    }
}

impl World {
    /// The bucket can be reached.
    pub(crate) fn is_bucket_there(&self) -> bool {
        self.bucket.as_ref().is_some_and(|bucket| bucket.away_until <= self.now)
    }

    /// Somebody puts an object.
    pub(crate) fn put(
        &mut self,
        of: (SpoolKey, ResultObject),
        results: &[(Lease, Film)],
    ) -> Checked {
        let Some(bucket) = &mut self.bucket else { return Ok(()) };
        let again = bucket.put(of, results)?;
        sometimes!(self, PutAgain, again);
        Ok(())
    }

    /// Bytes have come here. Where there is a bucket the coordinator puts them, those of a frame
    /// together; while it is away they go to the disk.
    pub(super) fn store_here(
        &mut self,
        id: LinkId,
        results: Vec<(Lease, Film)>,
    ) -> Result<Vec<(Lease, Sent)>, Violation> {
        let plain = |(lease, film): (Lease, Film)| (lease, Sent::from(film));
        let there = self.is_bucket_there();
        let (now, node) = (self.now, self.links.links.get(&id).map(|link| link.node));
        let (Some(_), Some(node), Some(process)) = (&self.bucket, node, &mut self.shell.process)
        else {
            return Ok(results.into_iter().map(plain).collect());
        };
        if !there || now < process.rests_until {
            if !there {
                process.rests_until = now + REST;
            }
            sometimes!(self, StoredOnDisk);
            return Ok(results.into_iter().map(plain).collect());
        }
        let mut frames: BTreeMap<SpoolKey, Vec<(Lease, Film)>> = BTreeMap::new();
        for (lease, film) in results {
            frames.entry(frame_of(lease)).or_default().push((lease, film));
        }
        let mut stored = Vec::new();
        for (key, results) in frames {
            let object = object_of(self.nodes[node].plan.id, &results);
            self.put((key, object), &results)?;
            sometimes!(self, PutForNode);
            stored.extend(in_object(object, results));
        }
        Ok(stored)
    }

    /// Objects are deleted, without waiting for it.
    pub(crate) fn forget_objects(&mut self, objects: Vec<FrameObject>) {
        if self.bucket.is_none() || objects.is_empty() {
            return;
        }
        let slow = self.chance(Fault::ForgetSlow);
        let delay =
            if slow { self.random.between(500, 5_000) } else { self.random.between(1, 200) };
        self.after(delay, Event::Forget(self.shell.incarnation, objects));
    }

    /// They are deleted now, unless the bucket is away: then it is for the next start. What the
    /// journal has is not among them.
    pub(crate) fn on_forget(&mut self, objects: &[FrameObject]) -> Checked {
        if !self.is_bucket_there() {
            return Ok(());
        }
        for (key, object) in objects {
            let name = (*key, object.node, object.name);
            let gone = self.bucket.as_mut().and_then(|bucket| bucket.objects.remove(&name));
            if gone.is_none() {
                continue;
            }
            let in_it = |of: &&Spooled| {
                of.object.is_some_and(|of| (of.node, of.name) == (object.node, object.name))
            };
            let mut found = self.disk.objects_of(key.job, key.frame).iter().filter(in_it);
            let kept = found.find(|of| self.ledger.durable.keeps_result(of.lease(*key)));
            if let Some(lease) = kept.map(|of| of.lease(*key)) {
                return violated(format!(
                    "object {object} of {key} is deleted, and the journal has it for {lease}"
                ));
            }
            sometimes!(self, ObjectSwept, !self.disk.was_object(object.name));
        }
        Ok(())
    }

    /// An opportunity for everything that happens to the bucket.
    pub(crate) fn roll_bucket_faults(&mut self) {
        if self.bucket.is_none() {
            return;
        }
        let until = self.now + self.random.between(500, 12_000);
        if self.chance(Fault::BucketAway)
            && let Some(bucket) = &mut self.bucket
        {
            bucket.away_until = until;
        }
        let (node, until) =
            (self.random.index(self.nodes.len()), self.now + self.random.between(2_000, 40_000));
        if self.chance(Fault::NoBucket) {
            self.nodes[node].no_bucket_until = until;
        }
        for (fault, harm) in
            [(Fault::ObjectLost, Harm::Lost), (Fault::ObjectChanged, Harm::Changed)]
        {
            let count = self.bucket.as_ref().map_or(0, |bucket| bucket.objects.len());
            if count > 0 && self.chance(fault) {
                let position = self.random.index(count);
                if let Some(bucket) = &mut self.bucket {
                    bucket.harm(position, harm);
                }
            }
        }
    }

    /// Units of a frame whose result is in an object that is lost or changed.
    pub(crate) fn harmed_units(
        &self,
        (job, frame): (JobId, FrameNumber),
        reads: impl Fn(u32) -> bool,
    ) -> Vec<UnitIndex> {
        let Some(bucket) = &self.bucket else { return Vec::new() };
        let key = SpoolKey { job, frame };
        let harmed = |of: &&Spooled| {
            reads(of.unit.0)
                && of.object.is_some_and(|object| bucket.is_harmed(key, object))
                && self.ledger.durable.keeps_result(of.lease(key))
        };
        let mut units: Vec<_> = self.disk.objects_of(job, frame).iter().filter(harmed).collect();
        units.dedup_by_key(|of| of.unit);
        units.into_iter().map(|of| of.unit).collect()
    }
}
