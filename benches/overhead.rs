//! What the farm costs over the bare device, and what a second node brings. Prints ratios; fails on
//! nothing but wrong bits.
//!
//!     cargo bench --bench overhead [-- --spp N --rounds R | -- --bare FOLDER SCENE MAP|-]
//!
//! `--bare` renders a scene once on the bare device, 96 × 96 with 8 samples on one thread, and
//! nothing else: its instructions can be counted, with `valgrind --tool=callgrind` before the
//! program.
//! The ceiling is the device itself: `tessera_node::bare` renders the same frame with the same
//! threads and no farm. The farm is a coordinator (durable) and nodes as processes on loopback,
//! from submit to the end of the job. What a second node can bring is what a second thread brings
//! the bare device: cores that share a clock or a cache bring less than two. Runs alternate, and
//! medians of ratios are printed, since machines are noisy.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::path::Path;
use std::process::Command;
use std::time::Instant;
use tessera_node::device::CpuDevice;
use tessera_protocol::client::{Request, Response};
use tessera_protocol::job::{EnvironmentSpec, RawJobSpec};
use tessera_protocol::{Fingerprint, FrameNumber, Hello, JobId, RenderSpec};
use tessera_support::farm::{Farm, library, tessera};
use tessera_transport::{Address, FarmClient, Identity};

struct Options {
    spp: u32,
    rounds: usize,
    /// Folder, scene, and map or `-`, if that is all.
    bare: Option<[String; 3]>,
}

fn options() -> Options {
    let mut options = Options { spp: 128, rounds: 3, bare: None };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || arguments.next().and_then(|text| text.parse().ok());
        match argument.as_str() {
            "--bare" => {
                let mut text = || arguments.next().expect("--bare takes FOLDER SCENE MAP|-");
                options.bare = Some([text(), text(), text()]);
            }
            "--spp" => options.spp = number().expect("--spp takes a number"),
            "--rounds" => options.rounds = number().expect("--rounds takes a number") as usize,
            _ => {}
        }
    }
    options
}

fn main() {
    let options = options();
    if let Some([folder, scene, map]) = &options.bare {
        let environment = match map.as_str() {
            "-" => EnvironmentSpec::Auto,
            path => EnvironmentSpec::Map { path: path.to_owned() },
        };
        let (width, height) = (96, 96);
        let spec = RenderSpec { scene: scene.clone(), environment, width, height, ..spec(8) };
        return bare(Path::new(folder), &spec, 1);
    }
    println!("Cornell box, 512 x 512, {} spp, depth 8, {} rounds", options.spp, options.rounds);
    let farm = Farm::start(1, 2);
    let mut ratios = Vec::new();
    for round in 0..options.rounds {
        let bare = bare_seconds(options.spp, 2);
        let farmed = farm_seconds(&farm, options.spp);
        println!("round {round}: bare {bare:.2} s, farm {farmed:.2} s, ratio {:.4}", farmed / bare);
        ratios.push(farmed / bare);
    }
    println!("farm over bare device, 2 threads: {:.4} (target 1.03)", median(ratios));
    drop(farm);

    let (one, two) = (Farm::start(1, 1), Farm::start(2, 1));
    get_known(&two);
    let (mut ratios, mut ceilings) = (Vec::new(), Vec::new());
    for round in 0..options.rounds {
        let alone = farm_seconds(&one, options.spp);
        let both = farm_seconds(&two, options.spp);
        let ceiling = bare_seconds(options.spp, 1) / bare_seconds(options.spp, 2);
        let ratio = alone / both;
        println!(
            "round {round}: one node {alone:.2} s, two nodes {both:.2} s, ratio {ratio:.4}, \
                ceiling {ceiling:.4}"
        );
        ratios.push(ratio);
        ceilings.push(ceiling);
    }
    let (ratio, ceiling) = (median(ratios), median(ceilings));
    println!("two known one-thread nodes over one: {ratio:.4} (target 1.95)");
    println!(
        "the bare device, two threads over one: {ceiling:.4}; the farm has {:.4} of that",
        ratio / ceiling
    );

    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let mut pictures = runtime.block_on(first_pictures(&two));
    pictures.sort_by(f64::total_cmp);
    println!(
        "first picture, 64 x 64 at 1 spp, from the acceptance to the durable frame: \
            {:.1} ms, at best {:.1} (target 100)",
        median(pictures.clone()) * 1e3,
        pictures[0] * 1e3
    );

    let starts: Vec<f64> = (0..9).map(|_| start_seconds()).collect();
    println!(
        "start of `render` to the first unit on a device: {:.1} ms (target 50)",
        median(starts) * 1e3
    );
}

/// Of a hundred results of known nodes one is rendered twice; with this many of ten thousand they
/// count as known.
const KNOWN_SHARE: u64 = 150;
/// Films that make nodes known, at most.
const FILMS_MAX: u32 = 12;

/// Lets the nodes of a farm render until their results agree so often that few are rendered twice
/// any more: of new nodes all are, so that a second one brings nothing at first.
fn get_known(farm: &Farm) {
    let small =
        ["--size", "512x512", "--tile", "8", "--spp", "1", "--depth", "0", "--frames", "1-8"];
    let units = 8 * (512 / 8) * (512 / 8);
    for film in 1..=FILMS_MAX {
        let before = results(farm);
        let job = farm.submit(&library("cornell-box.gltf"), &small);
        farm.text(&["wait", &job]);
        let twice = (results(farm) - before).saturating_sub(units);
        println!("film {film} of small units: {twice} of {units} were rendered twice");
        if twice * 10_000 <= KNOWN_SHARE * units {
            return;
        }
    }
}

/// Results that the farm's nodes have handed in.
fn results(farm: &Farm) -> u64 {
    let nodes: serde_json::Value =
        serde_json::from_str(&farm.text(&["nodes", "--json"])).expect("JSON");
    let nodes = nodes.as_array().expect("a list").iter();
    nodes.map(|node| node["units_committed"].as_u64().expect("a count")).sum()
}

/// Jobs of one small picture that are timed.
const PICTURES: usize = 21;

/// Seconds from the acceptance of a small job to its durable frame, for nodes that are known and
/// hold the scene, by the clock of a client.
async fn first_pictures(farm: &Farm) -> Vec<f64> {
    let small = ["--size", "64x64", "--spp", "1"];
    let first = farm.submit(&library("cornell-box.gltf"), &small);
    farm.text(&["wait", &first]);
    let identity = Identity::load(&farm.data().join("admin")).expect("an identity");
    let address: Address = farm.address().parse().expect("an address");
    let hello = Hello::ours(Fingerprint([0; 32]));
    let client = FarmClient::connect(&address, &identity, &hello).await.expect("a connection");
    let first = JobId(first.parse().expect("an id"));
    let detail = client.request(&Request::Job(first)).await.expect("an answer");
    let Response::Job(detail) = detail else { panic!("{detail:?}") };
    let mut seconds = Vec::new();
    // The second node prepares the scene for the first of them.
    for _ in 0..=PICTURES {
        let (job, spec) = (JobId::new(), Box::new(RawJobSpec::from(detail.spec.clone())));
        let accepted = client.request(&Request::Submit { job, spec }).await.expect("an answer");
        assert!(matches!(accepted, Response::Accepted(_)), "{accepted:?}");
        let begun = Instant::now();
        let mut watch = client.watch(job).await.expect("a job");
        let mut done = 0;
        while let Some(progress) = watch.next().await.expect("an update") {
            done = progress.summary.frames_done;
        }
        assert_eq!(done, 1, "the frame is done");
        seconds.push(begun.elapsed().as_secs_f64());
    }
    seconds.split_off(1)
}

/// Seconds from the start of `render` to the first unit, preparation of the scene taken out: as
/// `render --json` says it.
fn start_seconds() -> f64 {
    let out = std::env::temp_dir().join(format!("tessera-overhead-{}.exr", std::process::id()));
    let mut command = Command::new(tessera());
    command.arg("render").arg(library("cornell-box.gltf")).arg("-o").arg(&out);
    command.args(["--size", "64x64", "--spp", "1", "--device", "cpu", "-q", "--json"]);
    let output = command.output().expect("the binary runs");
    let _ = std::fs::remove_file(&out);
    let report: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("`render --json` ends with JSON");
    report["start_s"].as_f64().expect("a unit was started")
}

/// Seconds that the device alone takes for the frame, from the scene's files to the whole film.
fn bare_seconds(spp: u32, threads: usize) -> f64 {
    let start = Instant::now();
    bare(&library(""), &spec(spp), threads);
    start.elapsed().as_secs_f64()
}

fn bare(folder: &Path, spec: &RenderSpec, threads: usize) {
    let device = CpuDevice::open(Some(threads), None).expect("a CPU");
    let scene = tessera_node::bare::load(folder, spec).expect("a scene of the folder");
    let frame = tessera_node::bare::prepare(&scene, spec, FrameNumber(0)).expect("a frame");
    tessera_node::bare::render_frame(&device, &frame, spec, FrameNumber(0)).expect("a film");
}

fn spec(spp: u32) -> RenderSpec {
    RenderSpec {
        scene: "cornell-box.gltf".into(),
        // Only a farm has files to name.
        files: Vec::new(),
        width: 512,
        height: 512,
        spp,
        ..RenderSpec::default()
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn farm_seconds(farm: &Farm, spp: u32) -> f64 {
    let start = Instant::now();
    let spp = spp.to_string();
    let job = farm.submit(
        &library("cornell-box.gltf"),
        &["--size", "512x512", "--spp", &spp, "--depth", "8"],
    );
    farm.text(&["wait", &job]);
    start.elapsed().as_secs_f64()
}
