//! Lists of jobs, frames and nodes, for people and programs.

use crate::books::Books;
use crate::input::Caller;
use crate::nodes::roster::Node;
use crate::report::after;
use crate::report::costs;
use crate::report::job_state::job_state;
use crate::report::left::left_of;
use crate::report::standing::{Pins, absent_standing, note, standing};
use crate::report::waiting::waiting;
use crate::state::frame::Frame;
use crate::state::job::{Job, Place};
use crate::state::register::Entry;
use crate::time::Moment;
use tessera_protocol::ids::{BlobHash, Epoch, FrameNumber, JobId, NodeId, UnitIndex, UnitKey};
use tessera_protocol::limits::{FRAME_PAGE_MAX, ROWS_MAX};
use tessera_protocol::node::Task;
use tessera_protocol::status::{CopyCount, FrameStatus, JobDetail, JobSummary, NodeSummary};

/// Size of the farm in three numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Number of nodes with a session.
    pub nodes: usize,
    /// Number of jobs that have not ended.
    pub jobs: usize,
    /// Number of leased units.
    pub units: usize,
}

/// A committed part of a unit, as its frame's spool must have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptPart {
    /// Index of the unit within its frame.
    pub unit: UnitIndex,
    /// First sample, counted from the unit's first.
    pub first: u32,
    /// Samples per pixel of the part.
    pub samples: u32,
    /// Epoch of the lease that made it.
    pub epoch: Epoch,
    /// BLAKE3 hash of the bytes in the spool.
    pub hash: BlobHash,
}

/// Counts nodes, jobs and leased units.
pub(crate) fn census(books: &Books) -> Census {
    let nodes = books.roster().nodes().filter(|node| node.session().is_some()).count();
    Census { nodes, jobs: books.queues().len(), units: books.leases().count() }
}

/// Returns the committed units of a complete frame that waits for its files; None otherwise.
pub(crate) fn committed_units(
    books: &Books,
    id: JobId,
    frame: FrameNumber,
) -> Option<Vec<UnitIndex>> {
    let job = books.farm().job(id)?;
    let position =
        job.position(frame).filter(|_| !job.frame(frame).is_none_or(|frame| frame.is_final()))?;
    let books = books.units_of(job);
    let is_committed = |unit: &UnitIndex| {
        let state = books.state_of(Place { position, unit: *unit });
        state.is_ok_and(|state| state.is_committed())
    };
    Some((0..job.grid().all_units()).map(UnitIndex).filter(is_committed).collect())
}

/// Returns the index of a unit's first sample; 0 for a compute job or an unknown unit.
pub(crate) fn first_sample(books: &Books, unit: UnitKey) -> u32 {
    let task = books.farm().job(unit.job).and_then(|job| job.grid().task(unit.unit, None));
    match task {
        Some(Task::Tile { samples, .. }) => samples.first,
        _ => 0,
    }
}

/// Returns the valid parts of a frame's units, each unit's in the order of their samples, also of
/// complete units. None of a frame that has ended.
pub(crate) fn parts(books: &Books, id: JobId, frame: FrameNumber) -> Vec<KeptPart> {
    let frame = books.farm().job(id).and_then(|job| job.frame(frame)?.unfinished());
    let units = frame.into_iter().flat_map(|open| open.parts().iter());
    let kept = units.flat_map(|(unit, parts)| {
        parts.iter().scan(0, move |first, part| {
            let kept = KeptPart {
                unit,
                first: *first,
                samples: part.samples,
                epoch: part.result.epoch,
                hash: part.result.hash,
            };
            *first += part.samples;
            Some(kept)
        })
    });
    kept.collect()
}

/// Returns the number of a job's units that wait for a result.
pub(crate) fn units_open(books: &Books, id: JobId) -> u64 {
    books.farm().job(id).map_or(0, |job| job.counts().units_open)
}

/// Returns the blobs that jobs name: files of open jobs, and every finished frame. A blob may occur
/// several times.
pub(crate) fn named_blobs(books: &Books) -> Vec<BlobHash> {
    let mut named = Vec::new();
    for job in books.farm().jobs() {
        if !job.is_final() {
            named.extend(job.kind().files().iter().map(|(_, hash, _)| *hash));
        }
        let done = job.frames().done().iter().flat_map(|(_, done)| done.files);
        named.extend(done.map(|file| file.hash));
    }
    named
}

/// Returns whether a caller is allowed to read a blob: as a file of this finished frame, as a file
/// that a job of theirs names, or as an operator. Frames are for everybody who sees their job.
pub(crate) fn may_read(
    books: &Books,
    hash: BlobHash,
    of: Option<(JobId, FrameNumber)>,
    caller: &Caller,
) -> bool {
    if caller.admin {
        return true;
    }
    let frame = of.and_then(|(job, frame)| books.farm().job(job)?.frame(frame));
    if let Some(Frame::Done(done)) = frame
        && done.read().is_some_and(|done| done.files.iter().any(|file| file.hash == hash))
    {
        return true;
    }
    let mut own = books.farm().jobs().filter(|job| job.owner_id() == caller.id);
    own.any(|job| job.kind().files().iter().any(|(_, file, _)| *file == hash))
}

/// Returns the summary of one job.
pub(crate) fn job_summary(books: &Books, id: JobId) -> Option<JobSummary> {
    let job = books.farm().job(id)?;
    let counts = job.counts();
    let units_leased = books.leases().count_in(id) as u64;
    let waiting = waiting(books, job, units_leased);
    let spent = job.spent().all();
    let ended = || job.end().map(|end| end.note.clone()).unwrap_or_default();
    Some(JobSummary {
        job: id,
        name: job.spec().name.clone(),
        owner: job.owner().to_owned(),
        owner_id: job.owner_id(),
        state: job_state(books, job),
        priority: job.spec().priority,
        submitted_at: job.submitted_at().secs(),
        ended_at: job.end().map(|end| end.at.secs()),
        frames: job.frames().len(),
        frames_done: counts.frames_done,
        frames_failed: counts.frames_failed,
        units: job.units(),
        units_committed: counts.units_committed,
        units_leased,
        samples_committed: counts.samples_committed,
        waits: waiting.as_ref().map(|wait| wait.class()),
        left_secs: left_of(books, job, waiting.as_ref()),
        note: waiting.map_or_else(ended, |wait| wait.text().note()),
        samples_kept: job.samples_kept(),
        pool: job.spec().pool.clone(),
        device_millis: spent.micros / 1000,
        cost: spent.worth.amount(),
    })
}

/// Returns all details of one job.
pub(crate) fn job(books: &Books, id: JobId) -> Option<JobDetail> {
    let job = books.farm().job(id)?;
    let (awaited_by, awaited_count) = after::awaited_by(books, job);
    Some(JobDetail {
        summary: job_summary(books, id)?,
        spec: job.spec().clone(),
        fingerprint: job.fingerprint(),
        failures: job.failures().iter().cloned().collect(),
        copies: CopyCount {
            running: books.leases().copied_in(id) as u64,
            won: job.copies().won,
            lost: job.copies().lost,
            wasted_millis: job.copies().wasted_millis,
        },
        devices_waited_millis: job.devices_waited_millis(),
        after: after::after(books, job),
        awaited_by,
        awaited_count,
        spent: job.spent().lines(),
        stored: job.spent().stored().line(),
        left_millis: costs::left_millis(books, job),
        currency: books.farm().accounts().rules().currency.clone(),
    })
}

/// Returns frames of a job from a position on, at most `most` and [`FRAME_PAGE_MAX`]; None for an
/// unknown job.
pub(crate) fn frames(books: &Books, id: JobId, from: u32, most: u32) -> Option<Vec<FrameStatus>> {
    let job = books.farm().job(id)?;
    let positions = from..from.saturating_add(most.min(FRAME_PAGE_MAX as u32));
    Some(positions.map_while(|position| row(job, position)).collect())
}

/// Returns one frame of a job; None if there is no such frame.
pub(crate) fn frame(books: &Books, id: JobId, number: FrameNumber) -> Option<FrameStatus> {
    let job = books.farm().job(id)?;
    row(job, job.position(number)?)
}

fn row(job: &Job, position: u32) -> Option<FrameStatus> {
    let frame = job.frames().get(position)?;
    let (state, samples) = (frame.status(&job.grid()), job.time().and(frame.newest_samples()));
    Some(FrameStatus { frame: job.number(position)?, state, samples })
}

/// Returns the finished frames of a job, in order.
pub(crate) fn frames_done(books: &Books, id: JobId) -> Vec<FrameNumber> {
    let job = books.farm().job(id);
    let done = job.iter().flat_map(|job| {
        job.frames().done().positions().filter_map(|position| job.number(position))
    });
    done.collect()
}

/// Returns the frames of a job that have begun and are not finished, in order.
pub(crate) fn frames_in_work(books: &Books, id: JobId) -> Vec<FrameNumber> {
    let job = books.farm().job(id);
    let unfinished = job
        .iter()
        .flat_map(|job| job.frames().unfinished().filter_map(|(position, _)| job.number(position)));
    unfinished.collect()
}

/// Returns nodes of the present and the past by name, at most [`ROWS_MAX`]; beyond, absent ones are
/// left out first.
pub(crate) fn nodes(books: &Books, now: Moment) -> Vec<NodeSummary> {
    let ids = books.farm().register().entries().keys();
    let pins = Pins::default();
    let mut rows: Vec<NodeSummary> = ids.map(|id| row_of(books, *id, now, &pins)).collect();
    rows.sort_by_key(|row| row.state.is_absent());
    rows.truncate(ROWS_MAX);
    rows.sort_by(|a, b| (&a.name, a.node).cmp(&(&b.name, b.node)));
    rows
}

/// Returns a node of the present or the past.
pub(crate) fn node_row(books: &Books, id: NodeId, now: Moment) -> NodeSummary {
    row_of(books, id, now, &Pins::default())
}

fn row_of(books: &Books, id: NodeId, now: Moment, pins: &Pins) -> NodeSummary {
    let entry = books.farm().register().get(id);
    let since = entry.map_or(Moment::default(), |entry| entry.since);
    let row = match books.roster().get(id) {
        Some(node) => node_summary(books, id, node, (now, pins)),
        None => absent_summary(books, id, entry, now),
    };
    NodeSummary { since: since.secs(), drained: books.farm().is_drained(id), ..row }
}

/// A node that has not been there in this process.
fn absent_summary(books: &Books, id: NodeId, entry: Option<&Entry>, now: Moment) -> NodeSummary {
    let (state, reasons) = absent_standing(books, id, entry);
    NodeSummary {
        node: id,
        name: books.name_of(id),
        identity: 0,
        state,
        devices: Vec::new(),
        telemetry: Vec::new(),
        units_leased: 0,
        units_committed: 0,
        samples_per_second: 0.0,
        silent_secs: entry.map_or(0, |entry| now.since(entry.since).as_secs()),
        build: String::new(),
        note: note(&reasons),
        pool: entry.and_then(|entry| entry.pool.clone()),
        since: 0,
        drained: false,
        busy: None,
    }
}

fn node_summary(
    books: &Books,
    id: NodeId,
    node: &Node,
    (now, pins): (Moment, &Pins),
) -> NodeSummary {
    let (state, reasons) = standing(books, id, node, pins);
    NodeSummary {
        node: id,
        name: node.name().to_owned(),
        // The shell knows it.
        identity: 0,
        state,
        devices: node.devices().to_vec(),
        telemetry: node.telemetry().to_vec(),
        units_leased: books.leases().count_of(id),
        units_committed: node.units_committed(),
        samples_per_second: node.samples_per_second(now),
        silent_secs: now.since(node.heard()).as_secs(),
        build: node.build().to_owned(),
        note: note(&reasons),
        pool: node.pool().map(str::to_owned),
        since: 0,
        drained: false,
        busy: node.busy(),
    }
}
