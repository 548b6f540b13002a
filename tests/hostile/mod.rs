//! Files made to do harm, through the real binary: every one is a clear error or a scene, nothing
//! crashes, memory stays below its limit, and nothing outside of the scene's folder is opened. What
//! a farm does with them is in `tests/farm`.

mod arrays;
mod families;
mod glb;
mod images;
mod random;
mod runner;
pub(crate) mod scenes;
mod silent;
pub(crate) mod traps;
mod words;

use runner::{Lab, Verdict};
use traps::Trap;

/// Files that this test makes and shows to `inspect`, at least.
const SCENES_LEAST: usize = 300;

/// Each trap alone in a folder, beside a canary outside of it: what went wrong, and the memory of
/// the largest process.
fn all_end_well(traps: &[Trap]) -> (Vec<String>, u64) {
    let (lab, mut findings) = (Lab::new(), Vec::new());
    for trap in traps {
        if let Verdict::Wrong(finding) = lab.inspect(trap) {
            findings.push(format!("{}: {finding}", trap.name));
        }
    }
    (findings, lab.peak_bytes())
}

// promise: P8
#[test]
fn hostile_scenes_are_an_error_or_a_scene() {
    let mut traps = scenes::all();
    traps.extend(families::all());
    traps.extend(glb::all());
    traps.extend(silent::all());
    traps.extend(images::all());
    traps.extend(images::maps());
    assert!(traps.len() >= SCENES_LEAST, "only {} files", traps.len());
    let halves: Vec<(Vec<String>, u64)> = std::thread::scope(|scope| {
        let (first, second) = traps.split_at(traps.len() / 2);
        let halves = [first, second].map(|half| scope.spawn(|| all_end_well(half)));
        halves.into_iter().map(|half| half.join().expect("a half ends")).collect()
    });
    let peak = halves.iter().map(|(_, peak)| *peak).max().unwrap_or(0);
    let findings: Vec<String> = halves.into_iter().flat_map(|(findings, _)| findings).collect();
    eprintln!(
        "{} hostile files, {} findings, {} MiB at most",
        traps.len(),
        findings.len(),
        peak >> 20
    );
    assert!(findings.is_empty(), "{} of {}:\n{}", findings.len(), traps.len(), findings.join("\n"));
    // A process that has been started counts as large as this one was at that moment.
    let most = runner::own_peak_bytes().max(runner::MEMORY_BYTES + runner::MEMORY_BYTES / 4);
    assert!(peak <= most, "{} MiB of memory", peak >> 20);
}

// promise: P8
#[test]
fn hostile_pictures_are_an_error_to_diff() {
    let (lab, good) = (Lab::new(), images::good_exr());
    let mut findings = Vec::new();
    for (name, bytes) in images::pictures() {
        if let Verdict::Wrong(finding) = lab.diff(&bytes, &good) {
            findings.push(format!("{name}: {finding}"));
        }
    }
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}
