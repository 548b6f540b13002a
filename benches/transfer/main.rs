//! What moving one large blob costs: to the coordinator, and back. Beside it, in the same run: bare
//! streams of quinn, BLAKE3 alone, and the disk. Prints rates, processor seconds and ratios; fails
//! on nothing but wrong bytes.
//!
//!     cargo bench --bench transfer [-- --mib N --rounds R]
//!
//! The coordinator is the real binary on loopback, durable. The client is this program again, as a
//! process of its own, with the code that `submit` and `fetch` use. Machines are noisy, so medians
//! of rounds are printed, and processor seconds and ratios count for more than rates.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

mod client;
mod peers;

use peers::Packets;
use std::path::Path;
use std::process::Command;
use std::time::Instant;
use tessera_support::farm::Farm;

/// What a transfer may cost of what quinn's bare streams cost.
const OVER_QUINN: f64 = 2.2 / 1.5;

/// Seconds, and processor seconds, of something that moved bytes.
#[derive(Clone, Copy, Debug)]
struct Cost {
    secs: f64,
    cpu: f64,
}

struct Options {
    mib: usize,
    rounds: usize,
}

fn options() -> Options {
    let mut options = Options { mib: 1024, rounds: 3 };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || arguments.next().and_then(|text| text.parse().ok()).expect("a number");
        match argument.as_str() {
            "--mib" => options.mib = number(),
            "--rounds" => options.rounds = number(),
            _ => {}
        }
    }
    options
}

fn main() {
    if let Some(arguments) = client::arguments() {
        return client::run(&arguments);
    }
    let options = options();
    let bytes = options.mib << 20;
    let gb = bytes as f64 / 1e9;
    println!("one blob of {} MiB on loopback, {} rounds", options.mib, options.rounds);
    let mut farm = Farm::prepare();
    let mut command = farm.coordinator_command();
    // The usual limit of one identity is for members, and far below this machine's speed.
    command.args(["--mib-per-second", "100000", "--uploads-per-user", "1000000"]);
    farm.run_coordinator(command);
    let rounds: Vec<Round> =
        (0..options.rounds).map(|round| Round::run(&farm, bytes, round)).collect();
    print(&rounds, gb);
}

/// Everything of one round.
struct Round {
    quinn: Cost,
    /// The same with packets as large as ours.
    quinn_packets: Cost,
    blake3: Cost,
    disk: Cost,
    put: Cost,
    get: Cost,
    /// Most memory of the client, in bytes.
    client_bytes: u64,
}

impl Round {
    fn run(farm: &Farm, bytes: usize, round: usize) -> Self {
        let source = farm.folder().join("source");
        let (blake3, hash) = peers::write_source(&source, bytes, round);
        let disk = peers::disk(&farm.folder().join("disk"), &source);
        let quinn = peers::quinn(bytes, Packets::Own);
        let quinn_packets = peers::quinn(bytes, Packets::AsOurs);
        let process = farm.coordinator_process();
        let mut transfers = Vec::new();
        let mut client_bytes = 0;
        for way in ["put", "get"] {
            let before = peers::cpu_secs_of(process);
            let report = ask(farm, way, &source, &hash);
            let cpu = report.cpu + peers::cpu_secs_of(process) - before;
            transfers.push(Cost { secs: report.secs, cpu });
            client_bytes = client_bytes.max(report.peak_bytes);
        }
        let cost = |at: usize| transfers[at];
        let (put, get) = (cost(0), cost(1));
        let this = Self { quinn, quinn_packets, blake3, disk, put, get, client_bytes };
        let rate = |cost: Cost| bytes as f64 / 1e9 / cost.secs;
        println!(
            "round {round}: put {:.2}, get {:.2}, quinn {:.2}, BLAKE3 {:.2}, disk {:.2} GB/s",
            rate(this.put),
            rate(this.get),
            rate(this.quinn),
            rate(this.blake3),
            rate(this.disk)
        );
        this
    }
}

/// Runs a client process.
fn ask(farm: &Farm, way: &str, source: &Path, hash: &str) -> client::Report {
    let program = std::env::current_exe().expect("the path of this program");
    let mut command = Command::new(program);
    command.args([client::WORD, way, &farm.address(), hash]);
    command.arg(farm.data().join("admin")).arg(source);
    let output = command.output().expect("this program runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    client::Report::parse(&String::from_utf8_lossy(&output.stdout)).expect("a report")
}

fn print(rounds: &[Round], gb: f64) {
    let of = |value: &dyn Fn(&Round) -> f64| median(rounds.iter().map(value).collect());
    for (name, cost) in [
        ("put", (|round| round.put) as fn(&Round) -> Cost),
        ("get", |round| round.get),
        ("quinn", |round| round.quinn),
        ("quinn, packets as ours", |round| round.quinn_packets),
        ("BLAKE3", |round| round.blake3),
        ("disk, written and read back", |round| round.disk),
    ] {
        let (rate, cpu) = (of(&|round| gb / cost(round).secs), of(&|round| cost(round).cpu / gb));
        println!("{name:<28} {rate:6.3} GB/s, {cpu:5.2} CPU s a GB");
    }
    for (name, cost) in
        [("put", (|round| round.put) as fn(&Round) -> Cost), ("get", |round| round.get)]
    {
        let least = |round: &Round| {
            let quinn = round.quinn.secs * OVER_QUINN;
            quinn.max(round.blake3.secs).max(round.disk.secs)
        };
        let ratio = of(&|round| least(round) / cost(round).secs);
        let cpu = of(&|round| cost(round).cpu / round.quinn.cpu);
        let packets = of(&|round| cost(round).cpu / round.quinn_packets.cpu);
        println!(
            "{name}: {ratio:.2} of the least of quinn / {OVER_QUINN:.2}, BLAKE3 and the disk \
             (target 0.9); {cpu:.2} of quinn's CPU (target {OVER_QUINN:.2}), {packets:.2} of \
             quinn's with packets as ours"
        );
    }
    let peak = rounds.iter().map(|round| round.client_bytes).max().unwrap_or(0);
    println!("most memory of the client: {} MiB (target 64)", peak >> 20);
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Measures the seconds, and the processor seconds of this process, of some work.
fn measured<T>(work: impl FnOnce() -> T) -> (Cost, T) {
    let (begun, cpu) = (Instant::now(), peers::cpu_secs());
    let result = work();
    (Cost { secs: begun.elapsed().as_secs_f64(), cpu: peers::cpu_secs() - cpu }, result)
}
