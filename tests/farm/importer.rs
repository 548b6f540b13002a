//! Scenes made to do harm, as jobs of a real farm: sent past the client's own checks, as a hostile
//! client would. Every job ends with its reason, and the node that read the scene goes on.

use crate::hostile::scenes;
use crate::hostile::traps::{Expected, Trap};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tessera_protocol::client::{Request, Response};
use tessera_protocol::job::{AssetFile, EnvironmentSpec, FilterSpec, RenderSpec, RetryPolicy};
use tessera_protocol::status::JobState;
use tessera_protocol::{BlobHash, JobId, JobKind, JobSpec, RawJobSpec};
use tessera_support::farm::{Farm, library, send_signal};
use tessera_transport::{Address, FarmClient, Identity};

/// Of the scenes of `tests/hostile`, every so many are sent to the farm.
const EVERY: usize = 4;
/// How long anything may take before the test fails: far longer than it takes.
const PATIENCE: Duration = Duration::from_secs(180);
const SMALL: [&str; 4] = ["--size", "32x32", "--spp", "1"];

/// A farm of one node whose importers have little memory, and so much time.
pub(super) fn farm(memory_mib: &str, secs: &str) -> Farm {
    let mut farm = Farm::start(0, 1);
    let limits = vec![
        ("TESSERA_SCENE_MEMORY".into(), memory_mib.into()),
        ("TESSERA_SCENE_TIME".into(), secs.into()),
    ];
    farm.add_node_with("node-0", &["--device", "cpu", "--threads", "1"], limits);
    farm
}

fn spec(trap: &Trap, files: Vec<AssetFile>) -> JobSpec {
    let environment = match trap.env {
        Some(path) => EnvironmentSpec::Map { path: path.into() },
        None => EnvironmentSpec::Auto,
    };
    let render = RenderSpec {
        scene: trap.main.into(),
        files,
        environment,
        width: 8,
        height: 8,
        spp: 1,
        depth: 2,
        filter: FilterSpec::Box,
        tile: 16,
        ..RenderSpec::default()
    };
    // No other node will come.
    let retry = RetryPolicy { give_up_secs: Some(0), ..RetryPolicy::default() };
    JobSpec { retry, ..JobSpec::new("trap", JobKind::Render(render)) }
}

/// Uploads a trap's files and submits the job, without looking at either.
async fn send(client: &FarmClient, folder: &Path, trap: &Trap) -> JobId {
    let own = (trap.main, &trap.bytes);
    let mut files = Vec::new();
    for (name, bytes) in
        [own].into_iter().chain(trap.beside.iter().map(|(name, bytes)| (*name, bytes)))
    {
        let (hash, length) = (BlobHash::of(bytes), bytes.len() as u64);
        let path = folder.join("upload");
        std::fs::write(&path, bytes).expect("a file to send");
        client.put_blob((hash, length), &path, &mut |_, _| {}).await.expect("the blob is taken");
        files.push(AssetFile { path: name.into(), hash, length });
    }
    let (job, spec) = (JobId::new(), Box::new(RawJobSpec::from(spec(trap, files))));
    let answer = client.request(&Request::Submit { job, spec }).await.expect("an answer");
    assert_eq!(answer, Response::Accepted(job), "{}", trap.name);
    job
}

/// Sends traps, and waits until all their jobs have ended; how each did, and what is told of it.
pub(crate) fn send_all(farm: &Farm, traps: &[Trap]) -> Vec<(JobState, String)> {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let identity = Identity::load(&farm.data().join("admin")).expect("the admin's identity");
        let address: Address = farm.address().parse().expect("an address");
        let hello = tessera_protocol::Hello::ours(tessera_protocol::Fingerprint([7; 32]));
        let client = FarmClient::connect(&address, &identity, &hello).await.expect("a client");
        let mut jobs = Vec::new();
        for trap in traps {
            jobs.push(send(&client, farm.folder(), trap).await);
        }
        let until = Instant::now() + PATIENCE;
        loop {
            let Ok(Response::Jobs(page)) = client.request(&Request::Jobs(Default::default())).await
            else {
                panic!("no jobs")
            };
            let ours = |job: &JobId| {
                page.jobs.iter().find(|row| row.job == *job).expect("an accepted job")
            };
            if jobs.iter().all(|job| ours(job).state.is_final()) {
                return jobs.iter().map(|job| (ours(job).state, ours(job).note.clone())).collect();
            }
            assert!(Instant::now() < until, "jobs do not end\n{}", farm.logs());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
}

fn is_well(farm: &Farm) {
    let job = farm.submit(&library("cornell-box.gltf"), &SMALL);
    assert_eq!(farm.hashes(&job).len(), 1);
}

/// The value of a line of `/proc/PROCESS/status`.
fn status_of(process: u32, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim_start_matches(':').trim().to_owned())
}

/// Processes whose command line holds all of these words.
fn processes(words: &[&str]) -> Vec<u32> {
    let numbers = std::fs::read_dir("/proc").expect("/proc").flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let has = |number: &u32| {
        let line = std::fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        words.iter().all(|word| line.contains(word))
    };
    numbers.filter(has).collect()
}

fn node_process(farm: &Farm) -> u32 {
    let folder: PathBuf = farm.folder().join("node-0");
    let found = processes(&["--data", folder.to_str().expect("a UTF-8 path"), "--token-file"]);
    assert_eq!(found.len(), 1, "one node");
    found[0]
}

// promise: P8
#[test]
fn hostile_scenes_fail_their_jobs_and_the_node_survives() {
    let farm = farm("512", "60");
    is_well(&farm);
    let node = node_process(&farm);
    let traps: Vec<Trap> = scenes::all().into_iter().step_by(EVERY).collect();
    assert!(traps.len() >= 30, "{}", traps.len());
    let mut findings = Vec::new();
    for (trap, (state, note)) in traps.iter().zip(send_all(&farm, &traps)) {
        let good = match (state, &trap.expected) {
            (JobState::Done, expected) => matches!(expected, Expected::Scene | Expected::Either),
            (JobState::Failed, Expected::Scene) => false,
            (JobState::Failed, _) => !note.is_empty() && !note.contains("importer ended"),
            _ => false,
        };
        if !good {
            findings.push(format!("{}: {state:?}, {note:?}", trap.name));
        }
    }
    assert!(findings.is_empty(), "{}\n{}", findings.join("\n"), farm.logs());
    is_well(&farm);
    assert_eq!(node_process(&farm), node, "the node that read them is another process");
}

/// Twenty thousand million steps of morphing behind a few kilobytes, within every limit but time.
fn slow() -> Trap {
    let zeros = json!({ "componentType": 5126, "count": 10_000, "type": "VEC3" });
    let places = json!({ "componentType": 5126, "count": 2_000, "type": "VEC3" });
    let indices = json!({ "componentType": 5125, "count": 3, "type": "SCALAR" });
    let scene: Value = json!({
        "asset": { "version": "2.0" }, "scenes": [{ "nodes": [0] }],
        "nodes": [{ "mesh": 0,
        "extensions": { "EXT_mesh_gpu_instancing": { "attributes": { "TRANSLATION": 1 } } } }],
        "meshes": [{ "weights": vec![0.5; 1_000], "primitives": [{
            "attributes": { "POSITION": 0, "NORMAL": 0 }, "indices": 2,
                "targets": vec![json!({ "POSITION": 0 }); 1_000]
        }] }],
        "accessors": [zeros, places, indices], "extensionsUsed": ["EXT_mesh_gpu_instancing"]
    });
    Trap::new("slow", scene.to_string())
}

// promise: P8
#[test]
fn an_endless_scene_is_given_up_and_the_node_survives() {
    let farm = farm("4096", "2");
    let ended = send_all(&farm, &[slow()]);
    assert!(
        ended[0].0 == JobState::Failed && ended[0].1.contains("took longer than 2 s"),
        "{ended:?}"
    );
    is_well(&farm);
    farm.wait_for("its importer to end", |farm| importers(node_process(farm)).len() <= 1);
}

/// The importers of a node.
pub(crate) fn importers(node: u32) -> Vec<u32> {
    let all = processes(&["scene-importer"]);
    let parent =
        |process: &u32| status_of(*process, "PPid").and_then(|text| text.parse::<u32>().ok());
    all.into_iter().filter(|process| parent(process) == Some(node)).collect()
}

// promise: P8
#[test]
fn a_crashing_importer_fails_its_job_and_the_node_survives() {
    let farm = farm("4096", "300");
    is_well(&farm);
    let node = node_process(&farm);
    // The one that holds the scene of the job before.
    let before = importers(node);
    let confined = || {
        let of_this_job = importers(node).into_iter().filter(|process| !before.contains(process));
        of_this_job
            .into_iter()
            .find(|process| status_of(*process, "Seccomp").as_deref() == Some("2"))
    };
    let ended = std::thread::scope(|scope| {
        let sending = scope.spawn(|| send_all(&farm, &[slow()]));
        farm.wait_for("the importer to be confined", |_| confined().is_some());
        let importer = confined().expect("the importer of a scene that takes long");
        let limits =
            std::fs::read_to_string(format!("/proc/{importer}/limits")).expect("its limits");
        // Memory as asked for, and a thread's stack.
        let memory: u64 = (4096 << 20) + (4 << 20);
        let wanted = [
            // The node makes its files, no longer than that.
            ("Max file size", memory),
            ("Max core file size", 0),
            ("Max open files", 64),
            ("Max data size", memory),
        ];
        for (name, limit) in wanted {
            let line = limits.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
            assert_eq!(
                line.split_whitespace().next(),
                Some(limit.to_string().as_str()),
                "{name}: {limits}"
            );
        }
        assert_eq!(status_of(importer, "NoNewPrivs").as_deref(), Some("1"));
        send_signal(importer, "ABRT");
        // The only node is asked once more before its word counts.
        let another = || confined().filter(|process| *process != importer);
        farm.wait_for("another importer", |_| another().is_some());
        send_signal(another().expect("the importer of the second attempt"), "ABRT");
        sending.join().expect("the job ends")
    });
    let (state, note) = &ended[0];
    assert!(*state == JobState::Failed && note.contains("ended on this scene"), "{ended:?}");
    is_well(&farm);
    assert_eq!(node_process(&farm), node);
}
