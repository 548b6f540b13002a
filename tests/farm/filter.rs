//! The units' filters on system calls let through what the services do: a whole job under strace,
//! each call looked up in the filter as systemd's own tool spells it out.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use tessera_support::farm::{Farm, Process, library, skipped};

/// The calls of one of systemd's sets; sets may name sets.
fn expand(set: &str) -> BTreeSet<String> {
    let output = Command::new("systemd-analyze").args(["syscall-filter", set]).output();
    let text = output.expect("systemd-analyze runs").stdout;
    let mut calls = BTreeSet::new();
    for line in String::from_utf8_lossy(&text).lines().skip(1) {
        match line.split('#').next().unwrap_or_default().trim() {
            "" => {}
            inner if inner.starts_with('@') => calls.extend(expand(inner)),
            call => drop(calls.insert(call.to_owned())),
        }
    }
    calls
}

/// What the unit's lines come to, in their order: sets and calls that are let through, less those
/// behind a `~`.
fn allowed(unit: &str) -> BTreeSet<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/systemd").join(unit);
    let text = std::fs::read_to_string(path).expect("the unit");
    let always = expand("@default");
    let mut allowed = always.clone();
    for line in text.lines().filter_map(|line| line.strip_prefix("SystemCallFilter=")) {
        let without = line.starts_with('~');
        for word in line.trim_start_matches('~').split_whitespace() {
            let calls = if word.starts_with('@') {
                expand(word)
            } else {
                BTreeSet::from([word.to_owned()])
            };
            for call in calls {
                match without {
                    true if !always.contains(&call) => drop(allowed.remove(&call)),
                    true => {}
                    false => drop(allowed.insert(call)),
                }
            }
        }
    }
    assert!(allowed.len() > 100, "the filter of {unit} is not understood: {allowed:?}");
    allowed
}

/// The same command under strace; the process that is started is the command itself, so that
/// signals reach it.
fn traced(plain: &Command, trace: &Path) -> Command {
    let mut traced = Command::new("strace");
    traced
        .args(["-D", "-f", "-qq", "-o"])
        .arg(trace)
        .arg(plain.get_program())
        .args(plain.get_args());
    traced.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    traced
}

/// Names of all calls in a trace, of every thread and child.
fn calls(trace: &Path) -> BTreeSet<String> {
    let text = std::fs::read_to_string(trace).expect("a trace");
    let name = |line: &str| {
        let call = line.split_once(' ')?.1.trim_start().split_once('(')?.0;
        let plain = call
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        plain.then(|| call.to_owned())
    };
    text.lines().filter_map(name).filter(|call| !call.is_empty()).collect()
}

#[test]
fn the_units_let_through_every_system_call_of_a_whole_job() {
    for tool in [["strace", "-V"], ["systemd-analyze", "--version"]] {
        if Command::new(tool[0]).arg(tool[1]).output().is_err() {
            return skipped(&format!("{} is not installed", tool[0]));
        }
    }
    let mut farm = Farm::prepare();
    let traces = ["coordinator", "node"].map(|name| farm.folder().join(format!("{name}.trace")));
    let command = traced(&farm.coordinator_command(), &traces[0]);
    farm.run_coordinator(command);
    farm.invite("node-0", 1);
    let mut plain = farm.node_command(0);
    // Devices are looked for as a node does by itself: in a worker process, which shuts itself in.
    plain.args(["--device", "auto"]);
    let mut node: Process = farm.spawn(traced(&plain, &traces[1]), "node-0");
    let job = farm.submit(
        &library("cornell-box.gltf"),
        &["--size", "64x64", "--spp", "4", "--format", "exr,png"],
    );
    assert_eq!(farm.hashes(&job).len(), 1);
    node.signal("TERM");
    assert_eq!(node.wait(), Some(0), "{}", farm.logs());
    assert!(farm.stop_coordinator(), "{}", farm.logs());
    for (trace, unit) in traces.iter().zip(["tessera-coordinator.service", "tessera-node.service"])
    {
        let made = calls(trace);
        assert!(made.len() > 30, "the trace is not understood: {made:?}");
        let refused: Vec<_> = made.difference(&allowed(unit)).cloned().collect();
        println!("{unit}: {} different calls", made.len());
        assert!(refused.is_empty(), "{unit} would refuse {refused:?}");
    }
}
