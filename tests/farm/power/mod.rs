//! Power cuts, emulated: a coordinator's writes and syncs are recorded while it works, its folder
//! is made anew as a disk would have it that lost power at some moment, with unsynced writes
//! dropped or torn, and a coordinator is started on that. What anybody was told before that moment
//! must hold, `fsck` must find nothing lost, and every frame must end with the same hash.

mod disk;
mod trace;

use crate::farm::client_history::Witness;
use crate::farm::kills::Chance;
use crate::farm::store::fsck;
use disk::Disk;
use std::path::Path;
use std::process::Command;
use tessera_support::farm::{Farm, library, skipped};
use trace::Event;

const OPTIONS: [&str; 8] = ["--size", "96x64", "--spp", "48", "--tile", "16", "--frames", "1-2"];
/// Jobs of a recording.
const JOBS: usize = 3;

/// A recording: what happened to the disk, and what clients were told.
struct Recording {
    root: std::path::PathBuf,
    events: Vec<Event>,
    told: Witness,
    want: Vec<String>,
}

/// Lets a coordinator under strace have jobs done, while a client watches. None where strace is not
/// there.
fn record() -> Option<Recording> {
    if Command::new("strace").arg("-V").output().is_err() {
        skipped("power cuts: strace is not installed");
        return None;
    }
    let mut farm = Farm::prepare();
    let trace = farm.folder().join("trace");
    let plain = farm.coordinator_command();
    let mut traced = Command::new("strace");
    // -D: the process that is started is the coordinator itself. Strings whole and in hexadecimal.
    traced.args([
        "-D",
        "-f",
        "-y",
        "-xx",
        "-s",
        "67108864",
        "--seccomp-bpf",
        "-e",
        trace::CALLS,
        "-o",
    ]);
    traced.arg(&trace).arg(plain.get_program()).args(plain.get_args());
    traced.env("TESSERA_LOG", "tessera_coordinator=debug");
    farm.run_coordinator(traced);
    farm.add_node("node-0", 1);
    let log = farm.folder().join("coordinator.log");
    let mut told = Witness::default();
    let mut want = Vec::new();
    for _ in 0..JOBS {
        let job = farm.submit(&library("cornell-box.gltf"), &OPTIONS);
        told.accepted(&job, acknowledged(&log));
        farm.wait_for("the job to end", |farm| {
            let told = &mut told;
            told.look(farm, || acknowledged(&log));
            farm.text(&["job", &job, "--json"]).contains("\"state\":\"done\"")
        });
        told.look(&farm, || acknowledged(&log));
        want = farm.hashes(&job);
    }
    assert!(farm.stop_coordinator(), "{}", farm.logs());
    farm.wait_for("the trace's end", |_| {
        std::fs::read(&trace).is_ok_and(|bytes| bytes.ends_with(b"+++ exited with 0 +++\n"))
    });
    let text = std::fs::read_to_string(&trace).expect("a trace");
    let events = trace::read(&text, &farm.data(), &log);
    Some(Recording { root: farm.data(), events, told, want })
}

/// The newest record that the log says is acknowledged.
fn acknowledged(log: &Path) -> u64 {
    let text = std::fs::read_to_string(log).expect("a log");
    let lines = text.lines().filter(|line| line.contains("step is durable, and acknowledged"));
    lines.filter_map(|line| trace::field(line, "through=")).max().unwrap_or(0)
}

impl Recording {
    /// Moments at which somebody had been told something.
    fn moments(&self) -> std::ops::Range<usize> {
        let first = self.events.iter().position(|event| matches!(event, Event::Acknowledged(_)));
        first.expect("something was acknowledged")..self.events.len()
    }

    /// The newest record that was acknowledged within so many events.
    fn acknowledged(&self, after: usize) -> u64 {
        let acknowledged = self.events[..after].iter().filter_map(|event| match event {
            Event::Acknowledged(through) => Some(*through),
            _ => None,
        });
        acknowledged.max().unwrap_or(0)
    }

    /// A farm whose power goes after so many events; `counts` says which of them reach its disk.
    fn without_power(
        &self,
        after: usize,
        chance: &mut Chance,
        counts: impl Fn(&Event) -> bool,
    ) -> Farm {
        let mut disk = Disk::new(&self.root);
        self.events[..after]
            .iter()
            .filter(|event| counts(event))
            .for_each(|event| disk.take(event));
        let farm = Farm::prepare();
        disk.lose_power(chance, &farm.data());
        farm
    }

    /// One power cut, and all that has to hold behind it.
    fn cut(&self, after: usize, chance: &mut Chance) {
        let acknowledged = self.acknowledged(after);
        let mut farm = self.without_power(after, chance, |_| true);
        let report = fsck(&farm);
        assert_eq!(report["clean"], true, "after {after} events: {report}");
        let records = report["records"].as_u64().expect("a count");
        assert!(
            records >= acknowledged,
            "after {after} events: {records} of {acknowledged} records: {report}"
        );

        farm.start_coordinator();
        let mut told = self.told.up_to(acknowledged);
        told.look(&farm, || acknowledged);
        // The first node's name is its own.
        farm.add_node("node-1", 1);
        for job in told.jobs() {
            assert_eq!(
                farm.hashes(&job),
                self.want,
                "after {after} events, job {job}\n{}",
                farm.logs()
            );
        }
        told.look(&farm, || acknowledged);
        farm.kill_coordinator();
        assert_eq!(fsck(&farm)["clean"], true, "after {after} events, and the work that was left");
    }
}

// promise: P1, P2, P3
#[test]
fn power_cuts_lose_nothing_that_was_acknowledged() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (cuts, seed) =
        (number("TESSERA_CUTS").unwrap_or(2), number("TESSERA_CUT_SEED").unwrap_or(20_261));
    println!("TESSERA_CUT_SEED={seed} TESSERA_CUTS={cuts}");
    let Some(recording) = record() else { return };
    let moments = recording.moments();
    let syncs = recording.events.iter().filter(|event| matches!(event, Event::Sync(_))).count();
    println!(
        "{} events, {syncs} syncs, {} answers",
        recording.events.len(),
        recording.told.answers()
    );
    let mut chance = Chance::new(seed);
    for round in 0..cuts {
        let after = moments.start + chance.below(moments.len() as u64) as usize;
        println!("cut {round}: after {after} events");
        recording.cut(after, &mut chance);
    }
    // The emulation finds what it is for: a journal that is never synced, as sled leaves it by
    // itself.
    let unsynced = |event: &Event| !matches!(event, Event::Sync(path) if path.ends_with("sled/db"));
    let found = (0..20).any(|_| {
        let after = moments.start + chance.below(moments.len() as u64) as usize;
        let farm = recording.without_power(after, &mut chance, unsynced);
        let data = farm.data().display().to_string();
        let output = farm.run(&["fsck", "--quick", "--json", "--data", &data]);
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        !output.status.success() || report["records"].as_u64() < Some(recording.acknowledged(after))
    });
    assert!(found, "twenty cuts do not find a journal that is never synced");
}

/// The emulation itself: what was not synced is lost sooner or later, and what was is not.
// promise: P1, P2, P3
#[test]
fn a_disk_that_loses_power_keeps_only_what_was_synced() {
    let root = Path::new("/farm");
    let path = |name: &str| root.join(name);
    let write =
        |name: &str, at: u64, text: &str| Event::Write { path: path(name), at, bytes: text.into() };
    let open = |name: &str| Event::Open { path: path(name), create: true, truncate: false };
    let events = [
        open("a"),
        write("a", 0, "synced"),
        Event::Sync(path("a")),
        Event::Sync(root.to_path_buf()),
        write("a", 6, ", and more"),
        open("nameless"),
        write("nameless", 0, "x"),
        Event::Sync(path("nameless")),
        open("temporary"),
        write("temporary", 0, "whole"),
        Event::Sync(path("temporary")),
        Event::Rename { from: path("temporary"), to: path("final") },
    ];
    let mut disk = Disk::new(root);
    events.iter().for_each(|event| disk.take(event));
    let mut chance = Chance::new(1);
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..100 {
        let target = tempfile::tempdir().expect("a folder");
        disk.lose_power(&mut chance, target.path());
        let read = |name: &str| std::fs::read_to_string(target.path().join(name)).ok();
        let a = read("a").expect("its name and bytes were synced");
        assert!(a.starts_with("synced"), "{a}");
        assert!(
            read("final").is_none_or(|text| text == "whole"),
            "a renamed file is whole or not there"
        );
        seen.insert((a.len() > 6, read("nameless").is_some(), read("final").is_some()));
    }
    assert!(
        seen.contains(&(false, false, false)) && seen.contains(&(true, true, true)),
        "{seen:?}"
    );
}
