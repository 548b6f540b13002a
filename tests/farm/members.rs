//! Valid members that mean harm: an artist and a node that send all they can, on a core of their
//! own, while an honest artist works. What the honest one gets is compared with what it gets beside
//! another honest one of equal demand.

use rustix::thread::{CpuSet, sched_setaffinity};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tessera_protocol::client::{Request, Role};
use tessera_protocol::compute::{Domain, Program};
use tessera_protocol::device::{DeviceInfo, DeviceKind, DeviceState};
use tessera_protocol::ids::{Epoch, Lease, UnitIndex, UnitKey};
use tessera_protocol::node::{Heartbeat, Join, NodeToCoordinator, ResultHeader, ResultHeaders};
use tessera_protocol::selection::{JobChange, JobsChange};
use tessera_protocol::stream::{BlobOffer, BlobReply, StreamKind};
use tessera_protocol::{
    BlobHash, ComputeSpec, FrameNumber, Hello, JobId, JobKind, JobSpec, NodeId, ProcessEpoch,
};
use tessera_support::farm::{Farm, library};
use tessera_transport::frame::{open_both, open_one_way};
use tessera_transport::{Address, Authority, FarmClient, Identity, Link, PeerIdentity, Timing};

/// How much was tried, and how much of it was refused.
#[derive(Debug, Default)]
struct Tried {
    sent: AtomicU64,
    refused: AtomicU64,
    over: AtomicBool,
}

impl Tried {
    fn note<T, E>(&self, outcome: &Result<T, E>) {
        self.sent.fetch_add(1, Relaxed);
        if outcome.is_err() {
            self.refused.fetch_add(1, Relaxed);
        }
    }

    fn goes_on(&self) -> bool {
        !self.over.load(Relaxed)
    }
}

/// Identities that were made. Their numbers are far from those of members who enrol.
static MADE: AtomicU64 = AtomicU64::new(0);

/// Somebody with a valid certificate.
#[derive(Clone)]
pub(crate) struct Member {
    address: Address,
    identity: Arc<Identity>,
    tried: Arc<Tried>,
}

impl Member {
    pub(crate) fn new(farm: &Farm, role: Role, name: &str) -> (Member, Option<NodeId>) {
        let authority =
            Authority::open(&farm.data().join("authority")).expect("the farm's authority");
        let node = (role == Role::Node).then(|| NodeId(uuid::Uuid::now_v7()));
        let number = 1000 + MADE.fetch_add(1, Relaxed);
        let peer = PeerIdentity::new(role, name, node).expect("a name").numbered(number);
        let identity = Arc::new(authority.issue(&peer).expect("an identity"));
        let address = farm.address().parse().expect("an address");
        (Member { address, identity, tried: Arc::default() }, node)
    }

    /// A connection, as soon as there is one: whoever is put out comes again.
    pub(crate) async fn link(&self) -> Option<Link> {
        while self.tried.goes_on() {
            let hello = Hello::ours(tessera_node::fingerprint());
            let dialled = tessera_transport::connect(
                &self.address,
                &self.identity,
                &hello,
                Timing::default(),
            )
            .await;
            self.tried.note(&dialled);
            if let Ok(link) = dialled {
                return Some(link);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        None
    }

    /// Does something on one connection after another until it is told to stop.
    async fn keep<F>(self, what: impl Fn(Arc<Tried>, Link) -> F)
    where
        F: Future<Output = ()>,
    {
        while let Some(link) = self.link().await {
            what(self.tried.clone(), link).await;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// A job of as many frames as there may be, for a pool that nobody serves.
pub(crate) fn long_job() -> JobSpec {
    let domain = Domain { width: 1, height: 1, depth: 1 };
    let program = Program::Builtin("nothing".into());
    let frames = "1-262144".parse().expect("frames");
    let compute = ComputeSpec { frames, ..ComputeSpec::new(program, domain) };
    let mut spec = JobSpec::new("flood", JobKind::Compute(compute));
    spec.pool = Some("nobody".into());
    spec
}

/// One such job after the other.
async fn submit_jobs(tried: Arc<Tried>, link: Link) {
    let client = FarmClient::new(link);
    let spec = long_job();
    while tried.goes_on() {
        let submit = Request::Submit { job: JobId::new(), spec: Box::new(spec.clone().into()) };
        let outcome = client.request(&submit).await;
        tried.note(&outcome);
        if outcome.is_err() && client.link().connection.close_reason().is_some() {
            return;
        }
    }
}

/// Files that no job will name, whole and right.
async fn upload_files(tried: Arc<Tried>, link: Link) {
    while tried.goes_on() {
        let mut bytes = vec![7; 4 << 20];
        bytes[..16].copy_from_slice(&uuid::Uuid::now_v7().into_bytes());
        let offer =
            BlobOffer { hash: BlobHash::of(&bytes), length: bytes.len() as u64, ranges: None };
        let sent = async {
            let (mut sender, mut receiver) =
                open_both(&link.connection, StreamKind::BlobPut).await?;
            sender.send(&offer).await?;
            let reply: BlobReply = receiver.expect(Duration::from_secs(30)).await?;
            if matches!(reply, BlobReply::From { .. }) {
                sender.send_raw(&bytes).await?;
                sender.finish();
                let _: tessera_protocol::stream::BlobReceipt =
                    receiver.expect(Duration::from_secs(30)).await?;
            }
            Ok::<_, tessera_transport::FrameError>(())
        };
        let outcome = sent.await;
        tried.note(&outcome);
        if link.connection.close_reason().is_some() {
            return;
        }
    }
}

/// Uploads that begin, and then hardly go on.
async fn upload_slowly(tried: Arc<Tried>, link: Link) {
    let mut held = Vec::new();
    while tried.goes_on() && link.connection.close_reason().is_none() {
        if held.len() < 64 {
            let offer =
                BlobOffer { hash: BlobHash([held.len() as u8; 32]), length: 1 << 30, ranges: None };
            let opened = open_both(&link.connection, StreamKind::BlobPut).await;
            tried.note(&opened);
            let Ok((mut sender, receiver)) = opened else { return };
            if sender.send(&offer).await.is_ok() {
                held.push((sender, receiver));
            }
        }
        for (sender, _) in &mut held {
            // A stream that was closed has done its part.
            let _ = tokio::time::timeout(Duration::from_millis(50), sender.send_raw(&[0])).await;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Everything that can be asked, most of which an artist may not.
async fn ask(tried: Arc<Tried>, link: Link) {
    let client = FarmClient::new(link);
    let questions = || {
        [
            Request::MissingBlobs((0..4096).map(|at| BlobHash([at as u8; 32])).collect()),
            Request::Jobs(Default::default()),
            Request::Nodes,
            Request::ChangeJobs(Box::new(JobsChange::of_job(JobChange::Pause, JobId::new()))),
            Request::Frames { job: JobId::new(), from: 0 },
            Request::Drain { node: "node-0".into(), drain: true, leave: false },
            Request::Deny { identity: "user:admin".into(), reason: "none".into() },
            Request::Log { last: 1000 },
            Request::Audit,
            Request::Authority,
        ]
    };
    while tried.goes_on() {
        for question in questions() {
            let outcome = client.request(&question).await;
            tried.note(&outcome);
        }
        if client.link().connection.close_reason().is_some() {
            return;
        }
    }
}

/// Streams of every kind with bytes that mean nothing.
async fn talk_nonsense(tried: Arc<Tried>, link: Link) {
    for kind in (0..=12u8).cycle() {
        if !tried.goes_on() || link.connection.close_reason().is_some() {
            return;
        }
        let opened = link.connection.open_bi().await;
        tried.note(&opened);
        let Ok((mut send, _receive)) = opened else { return };
        // Whatever the coordinator does with it, it may do at once.
        let _ = send.write_all(&[kind, 255, 255, 255, 0, 9, 9, 9, kind]).await;
        let _ = send.finish();
    }
}

fn lease_of(number: u32) -> Lease {
    Lease {
        unit: UnitKey { job: JobId::new(), frame: FrameNumber(1), unit: UnitIndex(number) },
        epoch: Epoch(1),
    }
}

/// A node in service that announces large results and does not send them, and beats like mad.
async fn hold_results(tried: Arc<Tried>, link: Link, node: NodeId) {
    let session = async {
        let (mut control, _incoming) = open_both(&link.connection, StreamKind::NodeControl).await?;
        control.send(&NodeToCoordinator::Join(introduction(node))).await?;
        let mut beats = open_one_way(&link.connection, StreamKind::Telemetry).await?;
        let mut held = Vec::new();
        for sequence in 0.. {
            if !tried.goes_on() {
                break;
            }
            if held.len() < 8 {
                let mut stream = open_one_way(&link.connection, StreamKind::Result).await?;
                stream.send(&ResultHeaders::one(header(held.len() as u32))).await?;
                tried.sent.fetch_add(1, Relaxed);
                held.push(stream);
            }
            for stream in &mut held {
                // A stream that was closed has done its part.
                let _ =
                    tokio::time::timeout(Duration::from_millis(20), stream.send_raw(&[0])).await;
            }
            beats.send(&pulse(sequence)).await?;
            tried.sent.fetch_add(1, Relaxed);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok::<_, tessera_transport::FrameError>(())
    };
    let outcome = session.await;
    tried.note(&outcome);
}

fn header(number: u32) -> ResultHeader {
    ResultHeader {
        lease: lease_of(number),
        hash: BlobHash([1; 32]),
        length: 34 << 20,
        device: 0,
        device_micros: 1,
        waited_micros: 0,
        device_bytes: 0,
        rays: 0,
        first_sample: 0,
    }
}

fn pulse(sequence: u64) -> Heartbeat {
    Heartbeat {
        sequence,
        leases: (0..64).map(lease_of).collect(),
        outbox: u32::MAX,
        working: u32::MAX,
        busy: Some(f32::NAN),
        devices: Vec::new(),
        progress: Vec::new(),
    }
}

/// It takes no units: what a node can do with those is tested elsewhere.
fn introduction(node: NodeId) -> Join {
    let reason = "this one only talks".to_owned();
    let remedy = "none".to_owned();
    Join {
        devices: vec![DeviceInfo {
            slot: "cpu".into(),
            kind: DeviceKind::Cpu,
            name: "a processor".into(),
            memory_bytes: 0,
            cuda: None,
            parallelism: 1,
            state: DeviceState::Quarantined { reason, remedy },
        }],
        capacity: 8,
        ..Join::new(node, "mallory", ProcessEpoch(1))
    }
}

/// Threads that share the machine's last processor.
fn core_of_their_own() -> tokio::runtime::Runtime {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .on_thread_start(move || {
            let mut last = CpuSet::new();
            last.set(cores - 1);
            // Without it they only have more of the machine.
            let _ = sched_setaffinity(None, &last);
        })
        .build()
        .expect("a runtime")
}

/// A number of kB of a process, by its name in `/proc/PID/status`.
pub(crate) fn resident_kib(process: u32, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Most memory that the hostile may cost the coordinator, in KiB.
const MOST_KIB: u64 = 512 << 10;

/// Ends a process that takes more memory than this, in KiB, before the machine has none.
fn end_beyond(process: u32, most: u64, over: Arc<Tried>) {
    std::thread::spawn(move || {
        while over.goes_on() {
            if resident_kib(process, "VmRSS:") > most {
                tessera_support::farm::send_signal(process, "KILL");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    });
}

/// How long an honest artist's job takes, with this much at the same time by another one.
fn job_secs(farm: &Farm, others: usize, want: &mut Vec<String>) -> f64 {
    let options = ["--size", "128x128", "--spp", "16", "--tile", "32"];
    let begun = Instant::now();
    let others: Vec<_> =
        (0..others).map(|_| farm.submit(&library("cornell-box.gltf"), &options)).collect();
    let job = farm.submit(&library("cornell-box.gltf"), &options);
    let hashes = farm.hashes(&job);
    let took = begun.elapsed().as_secs_f64();
    if want.is_empty() {
        want.clone_from(&hashes);
    }
    assert_eq!(hashes, *want, "the picture is another one\n{}", farm.logs());
    for other in others {
        farm.text(&["wait", &other]);
    }
    took
}

/// The middle of what it takes again and again for so long.
fn median_secs(farm: &Farm, others: usize, time: Duration, want: &mut Vec<String>) -> f64 {
    let begun = Instant::now();
    let mut all = Vec::new();
    while begun.elapsed() < time || all.len() < 3 {
        all.push(job_secs(farm, others, want));
    }
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

// promise: P8
#[test]
fn hostile_members_cost_others_no_more_than_honest_ones() {
    let secs = std::env::var("TESSERA_HOSTILE_SECS").ok().and_then(|text| text.parse().ok());
    let time = Duration::from_secs(secs.unwrap_or(6));
    let mut farm = Farm::start(2, 1);
    let mut want = Vec::new();
    let beside_honest = median_secs(&farm, 1, time / 4, &mut want);
    let alone = median_secs(&farm, 0, time / 4, &mut want);
    let process = farm.coordinator_process();
    let before = resident_kib(process, "VmRSS:");

    let runtime = core_of_their_own();
    let (artist, _) = Member::new(&farm, Role::Artist, "eve");
    let (node, id) = Member::new(&farm, Role::Node, "mallory");
    let id = id.expect("a node has an id");
    end_beyond(process, before + 2 * MOST_KIB, artist.tried.clone());
    runtime.spawn(artist.clone().keep(submit_jobs));
    runtime.spawn(artist.clone().keep(upload_files));
    runtime.spawn(artist.clone().keep(upload_slowly));
    runtime.spawn(artist.clone().keep(ask));
    runtime.spawn(artist.clone().keep(talk_nonsense));
    runtime.spawn(node.clone().keep(move |tried, link| hold_results(tried, link, id)));
    let beside_hostile = median_secs(&farm, 0, time, &mut want);
    let most = resident_kib(process, "VmHWM:");
    for member in [&artist, &node] {
        member.tried.over.store(true, Relaxed);
    }
    runtime.shutdown_background();

    let count =
        |member: &Member| (member.tried.sent.load(Relaxed), member.tried.refused.load(Relaxed));
    println!(
        "a job takes {alone:.3} s alone, {beside_honest:.3} s beside an honest artist, \
         {beside_hostile:.3} s beside hostile members: {:.2} x; they sent and were refused: \
         artist {:?}, node {:?}; memory {} MiB, at most {} MiB",
        beside_hostile / beside_honest,
        count(&artist),
        count(&node),
        before >> 10,
        most >> 10,
    );
    assert!(count(&artist).0 > 100 && count(&node).0 > 100, "they hardly tried\n{}", farm.logs());
    assert!(most < before + MOST_KIB, "{} MiB of memory\n{}", most >> 10, farm.logs());
    // It stops in order, and nothing that was promised is lost.
    assert!(farm.stop_coordinator(), "{}", farm.logs());
    assert_eq!(crate::farm::store::fsck(&farm)["clean"], true);
}
