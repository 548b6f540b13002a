//! Durable before acknowledged: the coordinator's own system calls, seen by strace, between the
//! moment that a step goes to the store and the moment that it is acknowledged, both of which its
//! log names.

use std::collections::BTreeMap;
use std::process::Command;
use tessera_support::farm::{Farm, library, skipped};

/// A line of the trace that matters.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Call {
    /// The log: the records up to this one go to the store, with results or without.
    Sent { through: u64, results: u64 },
    /// The log: everything up to this record is durable, and whoever waits is told.
    Acknowledged { through: u64 },
    /// Bytes to a spool.
    SpoolWrite,
    /// A spool's `fdatasync` that returned 0.
    SpoolSync,
    /// Bytes to sled's file.
    SledWrite,
    /// Its `fdatasync` that returned 0.
    SledSync,
}

// promise: P1
#[test]
fn nothing_is_acknowledged_before_it_is_synced() {
    if Command::new("strace").arg("-V").output().is_err() {
        skipped("strace is not installed");
        return;
    }
    let mut farm = Farm::start(0, 1);
    assert!(farm.stop_coordinator(), "{}", farm.logs());
    let trace = farm.folder().join("trace");
    let plain = farm.coordinator_command();
    let mut traced = Command::new("strace");
    // -D: the process that is started is the coordinator itself, so that signals reach it.
    traced.args(["-D", "-f", "-y", "-s", "400", "-o"]).arg(&trace);
    traced.args(["-e", "trace=write,pwrite64,writev,pwritev,fdatasync,fsync"]);
    traced.arg(plain.get_program()).args(plain.get_args());
    traced.env("TESSERA_LOG", "tessera_coordinator=debug");
    farm.run_coordinator(traced);
    farm.add_node("node-0", 1);
    let job = farm
        .submit(&library("cornell-box.gltf"), &["--size", "64x64", "--spp", "4", "--tile", "16"]);
    assert_eq!(farm.hashes(&job).len(), 1);
    assert!(farm.stop_coordinator(), "{}", farm.logs());
    farm.wait_for("the trace's end", |_| {
        std::fs::read_to_string(&trace)
            .is_ok_and(|text| text.trim_end().ends_with("+++ exited with 0 +++"))
    });
    let text = std::fs::read_to_string(&trace).expect("a trace");
    check(&calls(&text));
}

/// Every acknowledgement comes after the writes and syncs of what it acknowledges.
fn check(calls: &[Call]) {
    let mut acknowledged = 0;
    let mut with_results = 0;
    for (end, call) in calls.iter().enumerate() {
        let Call::Acknowledged { through } = *call else { continue };
        let sent =
            |call: &Call| matches!(call, Call::Sent { through: sent, .. } if *sent == through);
        // A step without records (a status asked for, say) waits behind others and has nothing of
        // its own.
        let Some(start) = calls[..end].iter().rposition(sent) else { continue };
        let Call::Sent { results, .. } = calls[start] else { unreachable!("it was found as one") };
        let between = &calls[start..end];
        assert_in_order(between, &[Call::SledWrite, Call::SledSync], through);
        acknowledged += 1;
        if results > 0 {
            assert_in_order(
                between,
                &[Call::SpoolWrite, Call::SpoolSync, Call::SledWrite, Call::SledSync],
                through,
            );
            with_results += 1;
        }
    }
    assert!(acknowledged >= 5, "only {acknowledged} acknowledgements were seen");
    assert!(with_results >= 1, "no acknowledgement of a result was seen");
    println!(
        "{acknowledged} acknowledgements, {with_results} of them with results, each after its syncs"
    );
}

/// The wanted calls stand among the given ones in this order.
fn assert_in_order(calls: &[Call], wanted: &[Call], through: u64) {
    let mut rest = wanted.iter().peekable();
    for call in calls {
        rest.next_if(|wanted| *wanted == call);
    }
    assert!(
        rest.peek().is_none(),
        "acknowledged through {through}, but {:?} is missing in {calls:?}",
        rest.peek()
    );
}

fn calls(trace: &str) -> Vec<Call> {
    let mut calls = Vec::new();
    // A sync that others' calls interrupt in the trace ends in a line of its own, without its path.
    let mut unfinished: BTreeMap<&str, Call> = BTreeMap::new();
    for line in trace.lines() {
        let thread = line.split_whitespace().next().unwrap_or_default();
        let resumed = line.contains("fdatasync resumed>") || line.contains("fsync resumed>");
        match (call(line), line.ends_with("<unfinished ...>")) {
            (Some(call @ (Call::SpoolSync | Call::SledSync)), true) => {
                unfinished.insert(thread, call);
            }
            (Some(Call::SpoolSync | Call::SledSync), false) if !line.ends_with("= 0") => {}
            (Some(call), _) => calls.push(call),
            (None, _) if resumed && line.ends_with("= 0") => {
                calls.extend(unfinished.remove(thread))
            }
            (None, _) => {}
        }
    }
    calls
}

fn call(line: &str) -> Option<Call> {
    if line.contains("step goes to the store") {
        return Some(Call::Sent {
            through: field(line, "through=")?,
            results: field(line, "results=")?,
        });
    }
    if line.contains("step is durable, and acknowledged") {
        return Some(Call::Acknowledged { through: field(line, "through=")? });
    }
    let is_write =
        ["write(", "pwrite64(", "writev(", "pwritev("].iter().any(|name| line.contains(name));
    let is_sync = line.contains("fdatasync(") || line.contains("fsync(");
    match (line.contains("/sled/db"), line.contains("/spool/")) {
        (true, _) if is_sync => Some(Call::SledSync),
        (true, _) if is_write => Some(Call::SledWrite),
        (_, true) if is_sync => Some(Call::SpoolSync),
        (_, true) if is_write => Some(Call::SpoolWrite),
        _ => None,
    }
}

fn field(line: &str, name: &str) -> Option<u64> {
    let rest = &line[line.find(name)? + name.len()..];
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}
