//! What others notice while malformed requests come from several sides: nothing that counts.

use crate::farm::Farm;
use crate::hostile::{Malformed, brief, requests};
use crate::metrics::node::{Node, submit};
use crate::pages::session;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tessera_protocol::client::Role;
use tessera_protocol::node::Assignment;
use tessera_transport::FarmClient;

/// Connections that send malformed requests, one after the other each.
const SENDERS: usize = 4;
/// Commits and pages that are timed without them.
const QUIET: usize = 60;
/// Units of the job: enough for as long as the requests come.
const UNITS: u32 = 900;

/// How long commits and pages take.
#[derive(Default)]
struct Times {
    commits: Vec<Duration>,
    pages: Vec<Duration>,
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Somebody who works and somebody who looks on.
struct Others {
    farm: Farm,
    node: Node,
    unit: Assignment,
    cookie: String,
}

impl Others {
    /// Commits a unit and looks at the list of jobs.
    async fn go_on(&mut self, times: &mut Times) {
        let (next, took) = self.node.commit(self.unit, false).await;
        self.unit = next.expect("another unit");
        times.commits.push(took);
        let began = Instant::now();
        let answer = self.farm.request(("GET", "/jobs"), &self.cookie, None).await;
        assert_eq!(answer.status, 200, "{}", answer.head);
        times.pages.push(began.elapsed());
    }
}

// promise: P8
#[tokio::test(flavor = "multi_thread")]
async fn malformed_requests_slow_no_commit_and_no_page() {
    let folder = tempfile::tempdir().unwrap();
    let farm = Farm::start_in(folder.path(), |_| {}).await;
    let ada = farm.person(Role::Artist, "ada");
    let client = FarmClient::new(farm.dial(&ada).await.unwrap());
    let token = farm.token(&ada).await;
    let cookie = session(&farm, Role::Viewer, "bob").await;
    submit(&client, folder.path(), UNITS).await;
    let mut node = Node::join(&farm, "rig-1").await;
    let unit = node.work().await;
    let senders: Vec<Malformed> =
        (1..=SENDERS).map(|seed| Malformed::new(&farm, &token, seed as u64)).collect();
    let mut others = Others { farm, node, unit, cookie };
    let (mut quiet, mut busy) = (Times::default(), Times::default());
    for _ in 0..QUIET {
        others.go_on(&mut quiet).await;
    }
    let (sent, done) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let address = others.farm.address();
    let began = Instant::now();
    let threads: Vec<_> = senders
        .into_iter()
        .map(|mut malformed| {
            let (sent, done) = (sent.clone(), done.clone());
            std::thread::spawn(move || {
                while sent.fetch_add(1, Ordering::Relaxed) < requests() {
                    let status = brief(address, &malformed.next());
                    assert!(status.is_none_or(|status| status < 500), "{status:?}");
                }
                done.store(true, Ordering::Relaxed);
            })
        })
        .collect();
    // Many requests come over in the time of one commit where the disk is slow.
    let most = UNITS as usize - QUIET - 10;
    while busy.commits.len() < most && (!done.load(Ordering::Relaxed) || busy.commits.len() < 20) {
        others.go_on(&mut busy).await;
        // The viewer may ask 50 times a second.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let timed = busy.commits.len();
    for thread in threads {
        thread.join().expect("no answer is the farm's fault");
    }
    let took = began.elapsed();
    for (what, quiet, busy) in [
        ("a commit", &mut quiet.commits, &mut busy.commits),
        ("a page", &mut quiet.pages, &mut busy.pages),
    ] {
        let (without, with) = (median(quiet), median(busy));
        eprintln!("{what}: {without:?} without, {with:?} with malformed requests (medians)");
        // Far below what anybody waits for, and far above what a busy machine adds.
        assert!(with < without * 10 + Duration::from_millis(200), "{what}: {without:?}, {with:?}");
    }
    eprintln!("{} malformed requests in {took:.1?}, {timed} commits meanwhile", requests());
}
