//! What one coordinator carries: committed units a second, memory of an idle node and of a large
//! job, and the time of a restart. Prints figures; fails on nothing but lost units.
//!
//!     cargo bench --bench scale [-- --nodes N --units U --capacity C --full --pages P --jobs J]
//!     cargo bench --bench scale -- --postgres [--nodes N --units U --capacity C]
//!     cargo bench --bench scale -- --fill [--postgres --nodes N --units U --capacity C]
//!
//! The coordinator is the real binary in a process of its own, durable, on loopback. The nodes are
//! light (see `load`) and in this process, so that both share the machine. `--full` adds a job of
//! 500,000 units and a restart after 1,000,000. `--pages` measures instead what HTTP costs: rounds
//! without it, with it, and with P followers of events, while J jobs wait; and how long lists and
//! events take. `--postgres` measures instead what the state on PostgreSQL costs the coordinator
//! beside the state on sled; the database's own processor time is not in it. `--fill` measures how
//! soon idle nodes all have a unit of one large job (see `fill`).
//!
//! With `TESSERA_BENCH_HYPERQUEUE=PYTHON`, a Python with the package `hyperqueue`, HyperQueue's own
//! figure for tasks that do nothing stands beside ours (see `peer.py`).
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

mod fill;
mod load;
mod pages;

use load::Done;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use tessera_protocol::client::{Request, Response};
use tessera_protocol::compute::{ComputeSpec, Domain, Program};
use tessera_protocol::job::{JobKind, JobSpec, RawJobSpec};
use tessera_protocol::{Fingerprint, Hello, JobId};
use tessera_support::farm::{Farm, Process};
use tessera_support::postgres::Postgres;
use tessera_transport::{Address, Authority, FarmClient, Identity};

struct Options {
    nodes: usize,
    units: u32,
    capacity: u32,
    full: bool,
    pages: usize,
    jobs: usize,
    postgres: bool,
    fill: bool,
}

fn options() -> Options {
    let mut options = Options {
        nodes: 1000,
        units: 100_000,
        capacity: 32,
        full: false,
        pages: 0,
        jobs: 5000,
        postgres: false,
        fill: false,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || arguments.next().and_then(|text| text.parse().ok()).expect("a number");
        match argument.as_str() {
            "--nodes" => options.nodes = number() as usize,
            "--units" => options.units = number(),
            "--capacity" => options.capacity = number(),
            "--pages" => options.pages = number() as usize,
            "--jobs" => options.jobs = number() as usize,
            "--full" => options.full = true,
            "--postgres" => options.postgres = true,
            "--fill" => options.fill = true,
            _ => {}
        }
    }
    options
}

/// Memory and processor time of a process, and how much of that time HTTP's own threads took.
#[derive(Clone, Copy)]
struct Used {
    resident_kib: u64,
    cpu_secs: f64,
    http_secs: f64,
}

/// Processor time by a `stat` file of a process or a thread.
fn cpu_secs(stat: &str) -> f64 {
    // Behind the name, which ends with a bracket: user and system time are the twelfth and
    // thirteenth, in ticks of 10 ms.
    let behind = stat.rsplit_once(')').map_or("", |(_, behind)| behind);
    let ticks = behind.split_whitespace().skip(11).take(2);
    ticks.filter_map(|text| text.parse::<u64>().ok()).sum::<u64>() as f64 / 100.0
}

fn used(process: u32) -> Used {
    let text =
        |name: &str| std::fs::read_to_string(format!("/proc/{process}/{name}")).unwrap_or_default();
    let status = text("status");
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let resident = resident.and_then(|line| line.split_whitespace().next()?.parse().ok());
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten();
    let http_secs = threads
        .flatten()
        .filter_map(|thread| std::fs::read_to_string(thread.path().join("stat")).ok())
        .filter(|stat| stat.contains("(http)"))
        .map(|stat| cpu_secs(&stat))
        .sum();
    Used { resident_kib: resident.unwrap_or(0), cpu_secs: cpu_secs(&text("stat")), http_secs }
}

/// A coordinator, and what is asked of it.
struct Stand {
    farm: Farm,
    coordinator: Process,
    client: FarmClient,
}

impl Stand {
    fn used(&self) -> Used {
        used(self.coordinator.id())
    }

    async fn submit(&self, units: u32) {
        self.submit_as(JobId::new(), units).await;
    }

    /// Submits a job with this id. Returns when it was acknowledged.
    async fn submit_as(&self, job: JobId, units: u32) -> Instant {
        let domain = Domain { width: units, height: 1, depth: 1 };
        let compute = ComputeSpec {
            chunk: 1,
            ..ComputeSpec::new(Program::Builtin("nothing".into()), domain)
        };
        let spec = JobSpec::new(format!("{units}-units"), JobKind::Compute(compute));
        let spec = Box::new(RawJobSpec::from(spec));
        let answer = self.client.request(&Request::Submit { job, spec }).await.expect("an answer");
        assert!(matches!(answer, Response::Accepted(_)), "{answer:?}");
        Instant::now()
    }

    /// Submits a job that waits for nodes that there are not.
    async fn submit_waiting(&self, number: usize) {
        let compute = ComputeSpec::new(
            Program::Builtin("nothing".into()),
            Domain { width: 1, height: 1, depth: 1 },
        );
        let mut spec = JobSpec::new(format!("waiting-{number}"), JobKind::Compute(compute));
        spec.pool = Some("nowhere".into());
        let spec = Box::new(RawJobSpec::from(spec));
        let request = Request::Submit { job: JobId::new(), spec };
        let answer = self.client.request(&request).await.expect("an answer");
        assert!(matches!(answer, Response::Accepted(_)), "{answer:?}");
    }

    /// Submits a job and waits until all its units are acknowledged to the nodes; prints how fast
    /// that was. Returns the coordinator's processor seconds, and those of HTTP's threads in them.
    async fn run(&self, units: u32, done: &Done) -> (f64, f64) {
        let (before, committed) = (self.used(), done.committed.load(Relaxed));
        let ours = used(std::process::id());
        let begun = Instant::now();
        self.submit(units).await;
        let mut largest = before.resident_kib;
        while done.committed.load(Relaxed) - committed < u64::from(units) {
            assert_eq!(done.lost.load(Relaxed), 0, "a node was lost\n{}", self.farm.logs());
            largest = largest.max(self.used().resident_kib);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let secs = begun.elapsed().as_secs_f64();
        let after = self.used();
        let (cpu, http) = (after.cpu_secs - before.cpu_secs, after.http_secs - before.http_secs);
        let ours = used(std::process::id()).cpu_secs - ours.cpu_secs;
        println!(
            "{units} units: {secs:.2} s, {:.0} committed units/s; coordinator {cpu:.2} s of \
             processor \
             ({:.0} us a unit, {:.0} units/s of one core), \
             nodes {ours:.2} s; memory grew by {:.1} MiB",
            f64::from(units) / secs,
            cpu * 1e6 / f64::from(units),
            f64::from(units) / cpu,
            (largest - before.resident_kib) as f64 / 1024.0
        );
        (cpu, http)
    }
}

fn main() {
    let options = options();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    match (options.pages, options.postgres) {
        _ if options.fill => runtime.block_on(fill::measure(options)),
        (0, false) => runtime.block_on(measure(options)),
        (0, true) => runtime.block_on(measure_stores(options)),
        _ => runtime.block_on(measure_pages(options)),
    }
    runtime.shutdown_background();
}

async fn stand(more: &[&str]) -> Stand {
    let farm = Farm::prepare();
    let coordinator = start(&farm, more);
    let client = client(&farm).await;
    Stand { farm, coordinator, client }
}

/// A coordinator that answers. Its limits of connections are above the nodes that a bench may ask
/// for; all others are the defaults.
fn start(farm: &Farm, more: &[&str]) -> Process {
    let mut command = farm.coordinator_command();
    command.args(more).args(["--watchers-per-user", "1000", "--jobs-per-user", "20000"]);
    command.args(["--connections", "20000", "--handshakes", "4096"]);
    // All its nodes are new: with checks, every unit would be done twice.
    command.args(["--check", "0", "--check-first", "0"]);
    let coordinator = farm.spawn(command, "coordinator");
    farm.wait_for("the coordinator to answer", |farm| {
        farm.command(&["jobs"]).output().is_ok_and(|output| output.status.success())
    });
    coordinator
}

async fn client(farm: &Farm) -> FarmClient {
    let identity = Identity::load(&farm.data().join("admin")).expect("the admin's identity");
    let address: Address = farm.address().parse().expect("an address");
    let hello = Hello::ours(Fingerprint([0x5c; 32]));
    FarmClient::connect(&address, &identity, &hello).await.expect("a connection")
}

/// What HyperQueue takes for as many tasks as are worth waiting for, in the same run.
fn measure_peer() {
    const TASKS: u32 = 10_000;
    let Some(python) = std::env::var_os("TESSERA_BENCH_HYPERQUEUE") else {
        println!("HyperQueue: not measured; name a Python that has it by TESSERA_BENCH_HYPERQUEUE");
        return;
    };
    let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/scale/peer.py");
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut command = std::process::Command::new(python);
    command.arg(script).args([TASKS.to_string(), cores.to_string()]);
    let output = command.stderr(std::process::Stdio::null()).output().expect("the Python starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let found: serde_json::Value = serde_json::from_str(text.lines().last().unwrap_or_default())
        .expect("the peer's script ends with JSON");
    let number = |name: &str| found[name].as_f64().expect("a number");
    println!(
        "HyperQueue {}: {:.0} us a task of {TASKS}, of which {:.0} us start `true` on one core",
        found["version"].as_str().unwrap_or("?"),
        number("micros_a_task"),
        number("micros_a_start")
    );
}

async fn measure(options: Options) {
    let mut stand = stand(&[]).await;
    let authority =
        Authority::open(&stand.farm.data().join("authority")).expect("the farm's authority");
    let address: Address = stand.farm.address().parse().expect("an address");
    let per = |from: Used, to: Used| {
        to.resident_kib.saturating_sub(from.resident_kib) as f64 / options.nodes as f64
    };
    let empty = stand.used();
    let links = load::dial(&address, &authority, 0..options.nodes).await;
    let connected = stand.used();
    let done = Arc::new(Done::default());
    load::work(links, options.capacity, &done);
    tokio::time::sleep(Duration::from_secs(5)).await;
    let idle = stand.used();
    println!(
        "{} idle nodes: {:.1} KiB each on the coordinator, {:.1} of them for the QUIC connection \
            alone",
        options.nodes,
        per(empty, idle),
        per(empty, connected)
    );
    stand.run(options.units, &done).await;
    stand.run(options.units, &done).await;
    if options.full {
        stand.run(500_000, &done).await;
        let rest = 500_000u32.saturating_sub(2 * options.units).max(1);
        stand.run(rest, &done).await;
    }
    done.stop.store(true, Relaxed);
    let committed = done.committed.load(Relaxed);
    assert!(
        stand.coordinator.terminate(),
        "the coordinator did not end by itself\n{}",
        stand.farm.logs()
    );
    let begun = Instant::now();
    let _coordinator = start(&stand.farm, &[]);
    println!(
        "restart with {committed} committed units: {:.2} s until it answers",
        begun.elapsed().as_secs_f64()
    );
    measure_peer();
}

/// Nodes that are connected before their sessions begin.
const NODES_AT_ONCE: usize = 100;

/// A farm with light nodes that work, and jobs that wait.
async fn busy(more: &[&str], options: &Options) -> (Stand, Arc<Done>) {
    let stand = stand(more).await;
    let authority =
        Authority::open(&stand.farm.data().join("authority")).expect("the farm's authority");
    let address: Address = stand.farm.address().parse().expect("an address");
    let done = Arc::new(Done::default());
    // Nodes without a session are silent, and lose their connections after ten seconds.
    for from in (0..options.nodes).step_by(NODES_AT_ONCE) {
        let nodes = from..options.nodes.min(from + NODES_AT_ONCE);
        load::work(load::dial(&address, &authority, nodes).await, options.capacity, &done);
    }
    for number in 0..options.jobs {
        stand.submit_waiting(number).await;
    }
    (stand, done)
}

/// Rounds by turns, so that what else the machine does falls on all that is compared.
const ROUNDS: usize = 36;

/// Quarter, median and three quarters of the rounds.
fn quarters(of: &[f64]) -> [f64; 3] {
    let mut of = of.to_vec();
    of.sort_by(f64::total_cmp);
    [of[of.len() / 4], of[of.len() / 2], of[of.len() - 1 - of.len() / 4]]
}

/// What the state on PostgreSQL costs the coordinator.
async fn measure_stores(options: Options) {
    let what = "the state on PostgreSQL";
    let Some(postgres) = Postgres::start(what) else { return };
    let options = Options { jobs: 0, ..options };
    let units = (options.units / 4).max(1);
    println!("{} nodes; {ROUNDS} rounds of {units} units; sled, PostgreSQL", options.nodes);
    let (sled, sled_done) = busy(&[], &options).await;
    let address = postgres.address();
    let (other, other_done) = busy(&["--store", &address], &options).await;
    let mut ratios = Vec::new();
    for round in 0..ROUNDS {
        let mut used = [0.0; 2];
        for turn in 0..used.len() {
            let which = (round + turn) % used.len();
            used[which] = match which {
                0 => sled.run(units, &sled_done).await.0,
                _ => other.run(units, &other_done).await.0,
            };
        }
        ratios.push(used[1] / used[0]);
    }
    println!(
        "processor a unit with the state on PostgreSQL: {:.3?} of that with sled (quarter, median, \
         three quarters)",
        quarters(&ratios)
    );
}

/// Farms with HTTP and farms without, one of each at a time: what differs between two processes
/// falls on both sides.
const PAIRS: usize = 2;
/// Time in which the connections to a pair that has ended are over.
const PAIR_PAUSE: Duration = Duration::from_secs(5);

/// What HTTP costs the coordinator, in short rounds by turns on farms beside each other, so that
/// what else the machine does falls on all of them; and how quick it is.
async fn measure_pages(options: Options) {
    let units = (options.units / 4).max(1);
    println!(
        "{} jobs wait; {} nodes; {PAIRS} pairs of farms; {} rounds of {units} units",
        options.jobs,
        options.nodes,
        ROUNDS / PAIRS * PAIRS
    );
    let mut costs = Costs::default();
    for pair in 0..PAIRS {
        let (plain, plain_done) = busy(&[], &options).await;
        let (served, served_done) = busy(&["--http", "127.0.0.1:0"], &options).await;
        let door = pages::Door::of(&served.farm);
        for round in 0..ROUNDS / PAIRS {
            // Both farms do as much: twice without HTTP, nobody follows, followed.
            let mut used = [(0.0, 0.0); 4];
            for turn in 0..used.len() {
                let which = (round + turn) % used.len();
                used[which] = match which {
                    0 | 2 => plain.run(units, &plain_done).await,
                    1 => served.run(units, &served_done).await,
                    _ => {
                        let followers = door.follow(options.pages).await;
                        let used = served.run(units, &served_done).await;
                        followers.close();
                        used
                    }
                };
            }
            costs.add(used);
        }
        costs.print(&format!("after pair {}", pair + 1));
        if pair + 1 == PAIRS {
            answers(&served, &door, &options).await;
        }
        for (mut stand, done) in [(plain, plain_done), (served, served_done)] {
            done.stop.store(true, Relaxed);
            assert!(stand.coordinator.terminate(), "it did not end by itself");
        }
        tokio::time::sleep(PAIR_PAUSE).await;
    }
}

/// Ratios of processor time beside the same work without HTTP.
#[derive(Default)]
struct Costs {
    /// The second run without HTTP beside the first: how much of a ratio is noise.
    noise: Vec<f64>,
    /// Nobody follows, followed: all of the process, and HTTP's threads beside the others.
    ratios: [Vec<f64>; 2],
    shares: [Vec<f64>; 2],
    /// Seconds of all rounds: without HTTP (the mean of both), nobody follows, followed.
    sums: [f64; 3],
}

impl Costs {
    fn add(&mut self, used: [(f64, f64); 4]) {
        let [first, nobody, second, followed] = used;
        let without = (first.0 + second.0) / 2.0;
        self.noise.push(second.0 / first.0);
        for (sum, secs) in self.sums.iter_mut().zip([without, nobody.0, followed.0]) {
            *sum += secs;
        }
        for (index, (cpu, http)) in [nobody, followed].into_iter().enumerate() {
            self.ratios[index].push(cpu / without);
            self.shares[index].push(http / (cpu - http));
        }
    }

    fn print(&self, when: &str) {
        println!("{when}: a run without HTTP beside another one: {:.3?}", quarters(&self.noise));
        let [without, nobody, followed] = self.sums;
        println!(
            "{when}: processor per commit over all rounds: nobody follows {:.3}, followed {:.3} of \
             that without HTTP",
            nobody / without,
            followed / without
        );
        let told = ["nobody follows", "followed"].into_iter();
        for (what, (ratios, shares)) in told.zip(self.ratios.iter().zip(&self.shares)) {
            println!(
                "{when}: processor per commit, {what}: {:.3?} of that without HTTP; HTTP's \
                 threads take {:.3?} of what the others do (quarter, median, three quarters)",
                quarters(ratios),
                quarters(shares),
            );
        }
    }
}

/// How quick HTTP is on a farm at work.
async fn answers(served: &Stand, door: &pages::Door, options: &Options) {
    let mut followers = door.follow(options.pages).await;
    for _ in 0..3 {
        let job = JobId::new();
        followers.expect(&job.to_string());
        let since = served.submit_as(job, 1).await;
        let (first, last) = followers.all_seen(since).await;
        println!(
            "an accepted job: told to the first of {} pages after {:.0} ms, to the last after \
             {:.0} ms",
            options.pages,
            first * 1e3,
            last * 1e3
        );
    }
    door.lists().await;
}
