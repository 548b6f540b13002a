//! How soon a farm that has nothing to do is all at work: idle nodes, one large job, and the time
//! from its acceptance until every node has a unit.

use crate::load::Done;
use crate::{Options, Stand, busy};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use tessera_protocol::JobId;
use tessera_protocol::client::{Request, Response};
use tessera_protocol::selection::{JobChange, JobsChange};
use tessera_support::postgres::Postgres;

/// Longest time that it may take.
const CEILING: Duration = Duration::from_secs(5);
/// Time in which nodes that have just joined come to rest.
const REST: Duration = Duration::from_secs(8);
/// Fills of one farm; the first one is that of a farm which has never seen such a job.
const FILLS: usize = 5;
/// After this time it has failed.
const PATIENCE: Duration = Duration::from_secs(120);

/// Fills a farm on sled, and one on PostgreSQL if that is asked for.
pub(crate) async fn measure(options: Options) {
    let options = Options { jobs: 0, ..options };
    println!("{} idle nodes, one job of {} units", options.nodes, options.units);
    fill("sled", &[], &options).await;
    if options.postgres
        && let Some(postgres) = Postgres::start("the state on PostgreSQL")
    {
        fill("PostgreSQL", &["--store", &postgres.address()], &options).await;
    }
}

async fn fill(store: &str, more: &[&str], options: &Options) {
    let (mut stand, done) = busy(more, options).await;
    done.holds.store(true, Relaxed);
    tokio::time::sleep(REST).await;
    for number in 1..=FILLS {
        let (job, before) = (JobId::new(), stand.used());
        let asked = Instant::now();
        let accepted = stand.submit_as(job, options.units).await;
        let half = held_by(&stand, &done, options.nodes.div_ceil(2)).await - accepted;
        let all = held_by(&stand, &done, options.nodes).await - accepted;
        let cpu = stand.used().cpu_secs - before.cpu_secs;
        println!(
            "{store}, fill {number}: accepted after {:.3} s; half of the nodes have a unit after \
             {:.3} s, all after {:.3} s (at most {} s); coordinator {cpu:.2} s of processor",
            (accepted - asked).as_secs_f64(),
            half.as_secs_f64(),
            all.as_secs_f64(),
            CEILING.as_secs()
        );
        cancel(&stand, job).await;
        while done.holding.load(Relaxed) > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    done.stop.store(true, Relaxed);
    assert!(stand.coordinator.terminate(), "it did not end by itself\n{}", stand.farm.logs());
}

/// Waits until so many nodes have a unit in their hands.
async fn held_by(stand: &Stand, done: &Arc<Done>, nodes: usize) -> Instant {
    let begun = Instant::now();
    while done.holding.load(Relaxed) < nodes as u64 {
        assert_eq!(done.lost.load(Relaxed), 0, "a node was lost\n{}", stand.farm.logs());
        assert!(begun.elapsed() < PATIENCE, "{} nodes", done.holding.load(Relaxed));
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Instant::now()
}

async fn cancel(stand: &Stand, job: JobId) {
    let change = JobsChange::of_job(JobChange::Cancel { reason: "filled".into() }, job);
    let answer = stand.client.request(&Request::ChangeJobs(Box::new(change))).await;
    assert!(matches!(answer, Ok(Response::Changed(_))), "{answer:?}");
}
