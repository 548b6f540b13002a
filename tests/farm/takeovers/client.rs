//! A client that never rests: keeps jobs waiting, asks for them, holds each answer against those of
//! before, and compares every finished frame with what one process renders.

use crate::farm::client_history::Witness;
use crate::farm::store::utf8;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tessera_support::farm::{library, pixels_sha256, rendered, tessera};

/// A frame of four units, each of a few milliseconds.
const PICTURE: [&str; 4] = ["--size", "64x64", "--spp", "16"];
const UNITS: [&str; 4] = ["--tile", "32", "--format", "exr"];
/// Pictures that jobs are of, which differ by their seeds.
const SEEDS: [&str; 3] = ["1", "2", "3"];
/// A job that always has work for nodes, after all others.
const REST: [&str; 6] = ["--frames", "1-100000", "--priority", "1", "--name", "rest"];
/// Jobs that are open at least.
const OPEN: usize = 6;
/// Jobs whose details are asked for at a time, the newest.
const NEWEST: usize = 4;
/// How long an answer may take, over all attempts.
const PATIENCE: Duration = Duration::from_secs(240);
/// A command that takes longer is told.
const SLOW: Duration = Duration::from_secs(6);
/// Exit status of a command that reached no coordinator.
const UNREACHABLE: i32 = 6;

/// How to run a command against whoever leads.
pub(crate) struct Commands {
    /// The farm's folder.
    pub(crate) folder: PathBuf,
    pub(crate) identity: PathBuf,
    /// Where coordinators listen, with commas.
    pub(crate) coordinators: String,
    /// Attempts that reached no coordinator.
    unanswered: AtomicU64,
}

impl Commands {
    pub(crate) fn new(folder: &Path, identity: PathBuf, coordinators: String) -> Self {
        let (folder, unanswered) = (folder.to_path_buf(), AtomicU64::new(0));
        Self { folder, identity, coordinators, unanswered }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(tessera());
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("TESSERA_")) {
            command.env_remove(name);
        }
        command.args(arguments).current_dir(&self.folder).stdin(Stdio::null());
        command.env("XDG_CONFIG_HOME", self.folder.join("config"));
        command.env("TESSERA_IDENTITY", &self.identity);
        command.env("TESSERA_COORDINATOR", &self.coordinators);
        command
    }

    /// Asks until there is an answer.
    fn ask(&self, arguments: &[&str]) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let begun = Instant::now();
            let output = self.command(arguments).output().expect("it runs");
            if begun.elapsed() >= SLOW {
                let secs = begun.elapsed().as_secs_f64();
                println!("  `{}` took {secs:.1} s: {}", arguments.join(" "), output.status);
            }
            if output.status.success() {
                return String::from_utf8_lossy(&output.stdout).trim().to_owned();
            }
            let said = String::from_utf8_lossy(&output.stderr);
            // A leader that ends refuses what it could not promise.
            let is_away = output.status.code() == Some(UNREACHABLE) || said.contains("is stopping");
            let in_time = Instant::now() < deadline;
            assert!(is_away && in_time, "{arguments:?}: {}: {said}", output.status);
            self.unanswered.fetch_add(1, Relaxed);
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// What the client has done.
#[derive(Debug, Default)]
pub(crate) struct Worked {
    pub(crate) jobs: usize,
    pub(crate) answers: usize,
    pub(crate) unanswered: u64,
}

/// A job's seed, and whether its frame has been compared.
type Jobs = BTreeMap<String, (usize, bool)>;

/// Works until it is told to stop, and then until all its jobs are done.
pub(crate) fn work(commands: &Commands, (stop, abandon): (&AtomicBool, &AtomicBool)) -> Worked {
    let scene = library("cornell-box.gltf");
    let wanted = SEEDS.map(|seed| rendered(&scene, &[&PICTURE[..], &["--seed", seed]].concat()));
    let mut witness = Witness::default();
    let mut jobs = Jobs::new();
    let ask = |arguments: &[&str]| commands.ask(arguments);
    let rest = [&["submit", utf8(&scene)], &PICTURE[..], &UNITS[..], &REST[..]].concat();
    let rest = ask(&rest);
    witness.accepted(&rest, 0);
    loop {
        let is_last = stop.load(Relaxed);
        let rows = witness.list(ask, || 0);
        let state = |row: &serde_json::Value| row["state"].as_str().unwrap_or("?").to_owned();
        let of = |row: &serde_json::Value| row["job"].as_str().expect("an id").to_owned();
        let is_open = |row: &&serde_json::Value| of(row) != rest && state(row) != "done";
        let open = rows.iter().filter(is_open).count();
        for row in rows.iter().filter(|row| state(row) == "done") {
            let job = of(row);
            // One whose acceptance was not heard is nobody's.
            let Some((seed, compared)) = jobs.get_mut(&job) else { continue };
            if !std::mem::replace(compared, true) {
                assert_eq!(hash(commands, &job), wanted[*seed], "job {job}");
                witness.detail(ask, &job, || 0);
            }
        }
        let newest = jobs.keys().rev().take(if is_last { jobs.len() } else { NEWEST });
        newest.for_each(|job| witness.detail(ask, job, || 0));
        if (is_last && open == 0) || abandon.load(Relaxed) {
            break;
        }
        if !is_last {
            for _ in open..OPEN {
                let seed = jobs.len() % SEEDS.len();
                let options = [&PICTURE[..], &UNITS[..], &["--seed", SEEDS[seed]]].concat();
                let job = ask(&[&["submit", utf8(&scene)], &options[..]].concat());
                witness.accepted(&job, 0);
                jobs.insert(job, (seed, false));
            }
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    ask(&["cancel", &rest]);
    let all = jobs.values().all(|(_, compared)| *compared);
    assert!(all || abandon.load(Relaxed), "{jobs:?}");
    let unanswered = commands.unanswered.load(Relaxed);
    Worked { jobs: jobs.len(), answers: witness.answers(), unanswered }
}

/// The pixels of a finished job's frame.
fn hash(commands: &Commands, job: &str) -> String {
    let folder = commands.folder.join(format!("out-{job}"));
    commands.ask(&["fetch", job, "-o", utf8(&folder), "--overwrite"]);
    let mut files = std::fs::read_dir(&folder).expect("a folder").flatten();
    let frame = files.find(|file| file.path().extension().is_some_and(|kind| kind == "exr"));
    let hash = pixels_sha256(&frame.expect("a frame").path());
    std::fs::remove_dir_all(&folder).expect("the folder is removed");
    hash
}
