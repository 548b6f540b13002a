//! What follows when results of a user's kernel differ. A node that was wrong gets no more of the
//! job; a kernel that contradicts itself ends its job. Nothing follows for other jobs: the kernel
//! may be at fault, and nodes answer only for renders and built-in kernels.

use crate::books::Books;
use crate::checks::opening::{end_check, is_run_twice};
use crate::checks::redo::redo_in;
use crate::ends::{end_job, fail_frame};
use crate::journal::Record;
use crate::state::kernel_votes::Contradiction;
use crate::state::votes::Verdict;
use tessera_protocol::ids::{Lease, NodeId, UnitKey};
use tessera_protocol::status::JobState;

/// Bars the nodes whose results of a chunk were wrong.
pub(crate) fn judge(books: &mut Books, unit: UnitKey, verdict: &Verdict) {
    for node in &verdict.guilty {
        if books.is_open(unit.job) {
            bar(books, unit, *node);
        }
    }
}

fn bar(books: &mut Books, unit: UnitKey, node: NodeId) {
    let (name, at) = (books.name_of(node), books.now());
    let reason = "its result is not what the others have; it gets no more of this job".to_owned();
    let UnitKey { job, frame, unit } = unit;
    books.record(Record::NodeBarred { job, frame, unit, node, name, at, reason });
    books.take_away_in(job, node);
    redo_in(books, node, job);
    books.mark_all();
}

/// Ends a job whose kernel is not deterministic.
pub(crate) fn end_unsteady(books: &mut Books, unit: UnitKey, found: &Contradiction) {
    let [one, other] = found.nodes.map(|node| format!("`{}`", books.name_of(node)));
    let between = match found.nodes[0] == found.nodes[1] {
        true => format!("two runs on {one}"),
        false => format!("{one} and {other}"),
    };
    let how = match found.twice {
        Some(node) => format!("`{}` gave another result when it ran it again", books.name_of(node)),
        None => "three nodes have three results".to_owned(),
    };
    let note = format!(
        "not deterministic: chunk {} differs between {between} (frame {}; {how}); a kernel must \
            depend on its chunk, inputs and arguments alone; if it is meant to give other results \
            each time, submit it with --nondeterministic",
        unit.unit.0, unit.frame.0
    );
    end_job(books, unit.job, JobState::Failed, &note);
}

/// No node can decide: the frame fails, and no node is blamed.
pub(crate) fn fail_tied(books: &mut Books, unit: UnitKey, nodes: &[String]) {
    let text = format!(
        "chunk {} has different results on {}, each of which gives its own again, and no other \
            node could tell which is right: either the kernel depends on the device (functions \
            such as sinf, atomics on floats), or a device is wrong (`tessera doctor`); add a node \
            and retry, or submit it with --nondeterministic if it is meant",
        unit.unit.0,
        nodes.join(" and ")
    );
    fail_frame(books, unit.job, unit.frame, text);
}

/// Makes sure that a check of a user's kernel ends, though nobody may take it. False if its frame
/// has ended with it. `last`: the frame waits only for checks.
pub(crate) fn move_on(books: &mut Books, unit: UnitKey, last: bool) -> bool {
    let Some(check) = books.check_of(unit).cloned() else { return true };
    // The end of its job is a record of its own, which a crash may have lost.
    if let Some(found) = check.contradiction(None) {
        end_unsteady(books, unit, &found);
        return false;
    }
    if let Some(verdict) = check.majority().filter(|_| check.is_split()) {
        // The others cannot be asked for a second run.
        let stands = verdict.truth == check.committed().hash;
        judge(books, unit, &verdict);
        if stands && books.check_of(unit).is_some() {
            waive(books, unit);
        }
        return true;
    }
    if check.is_split() {
        if last {
            let nodes = check.nodes().into_iter();
            let names: Vec<String> =
                nodes.map(|node| format!("`{}`", books.name_of(node))).collect();
            fail_tied(books, unit, &names);
        }
        return !last;
    }
    let lease = Lease { unit, epoch: check.committed().epoch };
    let twice = books
        .farm()
        .job(unit.job)
        .is_some_and(|job| is_run_twice(books, job, lease, check.committed().node));
    if !(twice && books.ask_again(unit)) && last {
        waive(books, unit);
    }
    true
}

fn waive(books: &mut Books, unit: UnitKey) {
    books.record(Record::CheckWaived { job: unit.job, frame: unit.frame, unit: unit.unit });
    end_check(books, unit);
}
