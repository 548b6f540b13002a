//! What commands cost: the constant part (start, handshake, answer), and lists and changes of
//! thousands of jobs. Prints times; fails on nothing but jobs that were not changed.
//!
//!     cargo bench --bench commands [-- --jobs N --runs R]
//!
//! The coordinator is the real binary, durable, on loopback, without nodes; each command is a
//! process, from its start to its end.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::path::{Path, PathBuf};
use std::time::Instant;
use tessera_protocol::client::{Request, Response};
use tessera_protocol::compute::{ComputeSpec, Domain, Program};
use tessera_protocol::job::{JobKind, JobSpec, RawJobSpec};
use tessera_protocol::{Fingerprint, Hello, JobId};
use tessera_support::farm::Farm;
use tessera_transport::{Address, FarmClient, Identity};

/// Most submits that are under way at once.
const AT_ONCE: usize = 8;

fn main() {
    let (mut jobs, mut runs) = (5000, 40);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || arguments.next().and_then(|text| text.parse().ok()).expect("a number");
        match argument.as_str() {
            "--jobs" => jobs = number(),
            "--runs" => runs = number(),
            _ => {}
        }
    }
    let limit = (2 * jobs).to_string();
    let mut farm = Farm::start(0, 1);
    farm.stop_coordinator();
    let mut command = farm.coordinator_command();
    command.args(["--jobs-per-user", &limit]);
    farm.run_coordinator(command);
    println!("a farm without jobs, {runs} runs:");
    row(&farm, runs, &["jobs"]);
    row(&farm, runs, &["--version"]);

    let ada = enrolled(&farm, "ada");
    let begun = Instant::now();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(submit(&farm, &farm.data().join("admin"), jobs - jobs / 100));
    let secs = begun.elapsed().as_secs_f64();
    runtime.block_on(submit(&farm, &ada, jobs / 100));
    println!("{jobs} jobs, a hundredth of them of ada; submitted in {secs:.2} s:");
    let some = (runs / 8).max(3);
    row(&farm, some, &["jobs"]);
    row(&farm, some, &["jobs", "--json"]);
    row(&farm, some, &["jobs", "--owner", "ada"]);
    row(&farm, some, &["jobs", "--name", "shot_1?"]);
    row(&farm, some, &["jobs", "--limit", "20"]);
    row(&farm, some, &["job", "shot_999"]);
    for words in [
        &["pause", "--all"][..],
        &["resume", "--all"],
        &["cancel", "--name", "shot_*"],
        &["retry", "--state", "cancelled"],
        &["cancel", "--state", "open"],
        &["forget", "--all", "--dry-run"],
        &["forget", "--all"],
    ] {
        row(&farm, 1, words);
    }
    assert_eq!(farm.text(&["jobs", "--json"]).trim(), "[]", "all are forgotten");
}

/// Runs a command so many times, and prints how long it took.
fn row(farm: &Farm, runs: usize, words: &[&str]) {
    let mut millis: Vec<f64> = (0..runs)
        .map(|_| {
            let begun = Instant::now();
            let output = farm.run(words);
            let took = begun.elapsed().as_secs_f64() * 1e3;
            assert!(output.status.success(), "{words:?}: {output:?}");
            took
        })
        .collect();
    millis.sort_by(f64::total_cmp);
    let (least, median) = (millis[0], millis[millis.len() / 2]);
    println!("  {:<28} least {least:8.1} ms, median {median:8.1} ms", words.join(" "));
}

/// The folder of an artist's identity.
fn enrolled(farm: &Farm, name: &str) -> PathBuf {
    let token = farm.text(&["token", "create", "--role", "artist"]);
    let (file, folder) = (farm.folder().join("token"), farm.folder().join(name));
    std::fs::write(&file, token).expect("a folder that can be written");
    let (file, path) = (file.display().to_string(), folder.display().to_string());
    farm.text(&["enrol", "--token-file", &file, "--name", name, "--identity", &path]);
    folder
}

/// Submits jobs of an identity, some at a time.
async fn submit(farm: &Farm, identity: &Path, jobs: usize) {
    let identity = Identity::load(identity).expect("an identity");
    let address: Address = farm.address().parse().expect("an address");
    let hello = Hello::ours(Fingerprint([0; 32]));
    let client = FarmClient::connect(&address, &identity, &hello).await.expect("a connection");
    let client = std::sync::Arc::new(client);
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..jobs {
        if tasks.len() == AT_ONCE {
            tasks.join_next().await.expect("a task").expect("no panic");
        }
        let client = client.clone();
        tasks.spawn(async move {
            let domain = Domain { width: 1, height: 1, depth: 1 };
            let compute = ComputeSpec::new(Program::Builtin("nothing".into()), domain);
            let spec = JobSpec::new(format!("shot_{number}"), JobKind::Compute(compute));
            let spec = Box::new(RawJobSpec::from(spec));
            let request = Request::Submit { job: JobId::new(), spec };
            let answer = client.request(&request).await.expect("an answer");
            assert!(matches!(answer, Response::Accepted(_)), "{answer:?}");
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.expect("no panic");
    }
}
