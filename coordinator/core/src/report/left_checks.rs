//! What checks add to the time left: results of nodes that are little known are rendered again by
//! others. Decides nothing.

use crate::books::Books;
use crate::state::job::Job;
use tessera_protocol::ids::NodeId;

/// A node that works on a job, and its speed in camera samples per second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Worker {
    pub(super) id: NodeId,
    pub(super) per_sec: f64,
}

/// Returns the seconds in which these nodes, the fastest first, end so many open camera samples, of
/// which a part has begun, and check what is to be checked. Infinite without a node.
///
/// A result is checked by another node than its maker. Where one node is faster than all others
/// together, these only check, as much of it as they can: more is not asked for.
pub(super) fn secs_with_checks(
    books: &Books,
    job: &Job,
    team: &[Worker],
    (open, begun): (f64, f64),
) -> f64 {
    let together: f64 = team.iter().map(|worker| worker.per_sec).sum();
    let plain = (open - begun.min(open)) / together;
    let [fastest, _, ..] = team else { return plain };
    let (Some(work), true) = (books.queue(job.id()), job.is_compared()) else { return plain };
    let mean = job.mean_unit_samples();
    let expected: f64 = team
        .iter()
        .map(|worker| {
            let results = open / mean * worker.per_sec / together;
            books.farm().trust().checks_of(worker.id, results, books.settings())
        })
        .sum();
    let pending = work.redos().count() as f64;
    let all = open + (expected + pending) * mean;
    let of_fastest = f64::from(work.unchecked_of(fastest.id)) * mean;
    let others = together - fastest.per_sec;
    let by_fastest = ((open - begun.min(open)) / fastest.per_sec).max(of_fastest / others);
    ((all - begun.min(all)) / together).min(by_fastest)
}
