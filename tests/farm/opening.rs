//! Faults at the opening of a farm: a coordinator is started under `inject.c`, one of the system
//! calls of its start fails or is cut, and the next start has to open, with everything that anybody
//! was told of. A full disk, a kill, one wrong bit and a torn write, at every call.

use crate::farm::store::fsck;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tessera_support::farm::{Farm, library, skipped};

const OPTIONS: [&str; 8] = ["--size", "32x32", "--spp", "2", "--tile", "16", "--frames", "1-2"];
/// Injections of each test, unless TESSERA_OPENING_FAULTS says how many; all of them are minutes.
const FAULTS: usize = 8;
/// Longest time of a start under injection.
const START_WITHIN: Duration = Duration::from_secs(120);
/// What `inject.c` can do.
const ALL: [&str; 4] = ["full", "killed", "bit", "cut"];

/// One injection: which call, by its number in the count, and what happens to it.
#[derive(Clone, Debug)]
struct Injection {
    number: usize,
    fault: &'static str,
    /// The call as the count has it.
    call: String,
}

/// The compiled `inject.c`. None where it cannot run.
fn injector(folder: &Path) -> Option<PathBuf> {
    if !cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        skipped("faults at system calls: the injector is for x86-64 Linux");
        return None;
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/farm/inject.c");
    let program = folder.join("inject");
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let mut command = Command::new(&compiler);
    let output = command.args(["-O1", "-o"]).arg(&program).arg(source).output();
    let output = output.unwrap_or_else(|error| panic!("{}: {error}", compiler.display()));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tried = Command::new(&program)
        .args(["/nowhere", "/dev/null", "0", "full", "true"])
        .status()
        .expect("the injector runs");
    if !tried.success() {
        skipped("faults at system calls: this machine lets no process trace another");
        return None;
    }
    Some(program)
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder that can be read") {
        let entry = entry.expect("a folder entry");
        let target = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy_folder(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).expect("a copy")),
        }
    }
}

/// A farm whose coordinator is opened again and again from the same bytes.
struct Bench {
    farm: Farm,
    injector: PathBuf,
    /// The data folder before the opening; None: there is none yet.
    before: Option<PathBuf>,
    /// Jobs that somebody was told of.
    told: Vec<String>,
    records: u64,
}

impl Bench {
    /// The folder as it was before the opening.
    fn reset(&self) {
        let data = self.farm.data();
        if data.exists() {
            std::fs::remove_dir_all(&data).expect("the folder goes");
        }
        if let Some(before) = &self.before {
            copy_folder(before, &data);
        }
    }

    /// Starts a coordinator under injection, until it listens or ends. Returns the report's lines.
    fn open(&self, number: usize, fault: &str) -> Vec<String> {
        self.reset();
        let folder = self.farm.folder();
        let (report, log) = (folder.join("report"), folder.join("injected.log"));
        let _ = std::fs::remove_file(&log);
        let plain = self.farm.coordinator_command();
        let mut command = self.farm.command(&[]);
        let environment: Vec<_> = command.get_envs().map(owned).collect();
        command = Command::new(&self.injector);
        for (name, value) in environment {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.arg(self.farm.data()).arg(&report).arg(number.to_string()).arg(fault);
        command.arg(plain.get_program()).args(plain.get_args()).current_dir(folder);
        let mut process = self.farm.spawn(command, "injected");
        let deadline = Instant::now() + START_WITHIN;
        let said = || std::fs::read_to_string(&log).unwrap_or_default();
        while !said().contains("coordinator listens") && process.is_running() {
            assert!(Instant::now() < deadline, "call {number}, {fault}: it hangs\n{}", said());
            std::thread::sleep(Duration::from_millis(5));
        }
        process.kill();
        let text = std::fs::read_to_string(report).expect("a report");
        text.lines().map(str::to_owned).collect()
    }

    /// The next opening: nothing that was acknowledged is lost.
    fn check(&mut self, injection: &Injection) -> Result<(), String> {
        if self.before.is_some() {
            let report = fsck(&self.farm);
            if report["clean"] != true || report["records"].as_u64() < Some(self.records) {
                return Err(format!("{injection:?}: fsck: {report}"));
            }
        }
        if !self.farm.try_start_coordinator() {
            return Err(format!("{injection:?}: it does not open\n{}", self.farm.logs()));
        }
        let listed = self.farm.text(&["jobs", "--json"]);
        self.farm.kill_coordinator();
        match self.told.iter().find(|job| !listed.contains(job.as_str())) {
            Some(job) => Err(format!("{injection:?}: job {job} is lost")),
            None => Ok(()),
        }
    }

    /// All injections into this opening.
    fn plan(&self, faults: &[&'static str]) -> Vec<Injection> {
        let calls = self.open(0, "full");
        assert!(calls.len() > 10, "only {} calls were seen", calls.len());
        let writes = |call: &str| call.starts_with("write ") || call.starts_with("pwrite64 ");
        let mut plan = Vec::new();
        for (index, call) in calls.iter().enumerate() {
            for fault in faults.iter().filter(|fault| ALL[..2].contains(fault) || writes(call)) {
                plan.push(Injection { number: index + 1, fault, call: call.clone() });
            }
        }
        println!("{} calls, {} injections", calls.len(), plan.len());
        plan
    }

    /// Does the injections, or some of them, and says what came of them.
    fn run(mut self, faults: &[&'static str]) {
        let plan = some_of(self.plan(faults));
        let mut reached: BTreeMap<&str, usize> = BTreeMap::new();
        let (mut problems, count) = (Vec::new(), plan.len());
        for injection in plan {
            let report = self.open(injection.number, injection.fault);
            *reached.entry(injection.fault).or_default() +=
                usize::from(report.iter().any(|line| line.ends_with(" <-")));
            problems.extend(self.check(&injection).err());
        }
        let all: usize = reached.values().sum();
        println!("{count} injections, {all} reached ({reached:?}), {} lost", problems.len());
        assert!(problems.is_empty(), "{}", problems.join("\n"));
        // Threads make the order of calls differ a little.
        assert!(all * 10 >= count * 9, "only {all} of {count} were reached");
    }
}

fn owned(
    (name, value): (&std::ffi::OsStr, Option<&std::ffi::OsStr>),
) -> (std::ffi::OsString, Option<std::ffi::OsString>) {
    (name.to_owned(), value.map(std::ffi::OsStr::to_owned))
}

/// As many injections as are asked for: those of sled's snapshot first, then evenly of all others.
fn some_of(plan: Vec<Injection>) -> Vec<Injection> {
    let asked = std::env::var("TESSERA_OPENING_FAULTS").ok().and_then(|text| text.parse().ok());
    let most: usize = asked.unwrap_or(FAULTS);
    let is_snapshot = |injection: &Injection| {
        injection.call.contains("/coordinator/sled/snap.") || injection.call.contains("/sled/snap.")
    };
    let (first, rest): (Vec<_>, Vec<_>) = plan.into_iter().partition(is_snapshot);
    let spread = |of: Vec<Injection>, most: usize| -> Vec<Injection> {
        let step = of.len().div_ceil(most.max(1)).max(1);
        of.into_iter().step_by(step).take(most).collect()
    };
    let half = spread(first, most.div_ceil(2));
    let left = most - half.len();
    [half, spread(rest, left)].concat()
}

// promise: P1, P3
#[test]
fn faults_at_every_call_of_an_opening_lose_no_farm() {
    let tools = tempfile::tempdir().expect("a temporary folder");
    let Some(injector) = injector(tools.path()) else { return };
    let mut farm = Farm::start(1, 1);
    let done = farm.submit(&library("cornell-box.gltf"), &OPTIONS);
    assert_eq!(farm.hashes(&done).len(), 2);
    farm.kill_node(0);
    let open = farm.submit(&library("cornell-box.gltf"), &OPTIONS);
    // A snapshot of sled and a log that goes on behind it.
    farm.kill_coordinator();
    farm.start_coordinator();
    let later = farm.submit(&library("cornell-box.gltf"), &OPTIONS);
    farm.kill_coordinator();
    let before = farm.folder().join("before");
    copy_folder(&farm.data(), &before);
    let records = fsck(&farm)["records"].as_u64().expect("a count");
    let told = vec![done, open, later];
    Bench { farm, injector, before: Some(before), told, records }.run(&ALL);
}

// promise: P3
#[test]
fn faults_at_every_call_of_a_first_start_are_survived() {
    let tools = tempfile::tempdir().expect("a temporary folder");
    let Some(injector) = injector(tools.path()) else { return };
    let farm = Farm::prepare();
    // A wrong bit in a key that is being made makes another farm, of which nobody has heard.
    let faults = ["full", "killed", "cut"];
    Bench { farm, injector, before: None, told: Vec::new(), records: 0 }.run(&faults);
}
