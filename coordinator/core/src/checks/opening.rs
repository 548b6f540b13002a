//! Begins and ends checks. Compares nothing.

use crate::books::Books;
use crate::schedule::memory::{has_peer, may_work_at};
use crate::state::job::{Job, Place};
use crate::state::kernel_votes::Blame;
use crate::timers::Timer;
use tessera_protocol::ids::{FrameNumber, JobId, Lease, NodeId, UnitIndex, UnitKey};

/// Begins the check of a committed unit.
pub(crate) fn open_check(books: &mut Books, unit: UnitKey, maker: NodeId) {
    if books.begin_check(unit, maker) {
        run_twice_if_alone(books, unit);
        look_at_checks(books, unit.job, unit.frame);
    }
}

/// Ends the check of a unit; if the unit has parts, begins the check of the next one.
pub(crate) fn end_check(books: &mut Books, unit: UnitKey) {
    books.drop_check(unit);
    if let Some(maker) = books.check_of(unit).map(|check| check.committed().node) {
        open_check(books, unit, maker);
    }
}

/// Plans a look at a frame's checks after `check_wait`, if none is planned.
pub(crate) fn look_at_checks(books: &mut Books, job: JobId, frame: FrameNumber) {
    if books.looks_mut().plan(job, frame) {
        let at = books.now().after(books.settings().check_wait);
        books.set_timer(at, Timer::Checks(job, frame));
    }
}

/// Whether a node that is alone runs this chunk of its own a second time: the first of a job, and
/// the share of others that is checked of a node that is well known.
pub(crate) fn is_run_twice(books: &Books, job: &Job, lease: Lease, id: NodeId) -> bool {
    let first = Some(Place { position: 0, unit: UnitIndex(0) });
    let settings = books.settings();
    let share = u64::from(settings.check_share);
    job.blame() == Blame::Kernel
        && (share > 0 || settings.check_first > 0)
        && (job.place(lease.unit) == first || settings.secret.draw(lease, id) < share)
}

/// Lets a node run its own chunk again if it is there, and no other node may.
fn run_twice_if_alone(books: &mut Books, unit: UnitKey) {
    let alone = |books: &Books| {
        let (job, check) = (books.farm().job(unit.job)?, books.check_of(unit)?);
        let id = check.committed().node;
        let node = books.roster().get(id)?;
        let lease = Lease { unit, epoch: check.committed().epoch };
        let may = is_run_twice(books, job, lease, id) && may_work_at(books, id, node, job);
        Some(may && !has_peer(books, id, job))
    };
    if alone(books) == Some(true) {
        books.ask_again(unit);
    }
}
