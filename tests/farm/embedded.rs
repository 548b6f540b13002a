//! A farm of one machine has nothing to do with databases and buckets: its coordinator's system
//! calls, seen by strace, beside those of one whose state is on PostgreSQL.

use crate::farm::store::SMALL;
use std::process::Command;
use tessera_support::farm::{Farm, library, skipped};
use tessera_support::postgres::Postgres;

/// What only stores elsewhere open: certificates, passwords and keys.
const FILES: [&str; 6] =
    ["/etc/ssl", "/usr/share/ca-certificates", "/etc/pki", ".pgpass", ".aws", "pg_service"];

/// Runs a farm to the end of a job, with these options of its coordinator; its system calls.
fn calls(more: &[&str]) -> String {
    let mut farm = Farm::prepare();
    let trace = farm.folder().join("trace");
    let plain = farm.coordinator_command();
    let mut traced = Command::new("strace");
    // -D: the process that is started is the coordinator itself, so that signals reach it.
    traced.args(["-D", "-f", "-s", "200", "-e", "trace=%file,socket,connect,prctl", "-o"]);
    traced.arg(&trace).arg(plain.get_program()).args(plain.get_args()).args(more);
    farm.run_coordinator(traced);
    farm.add_node("node-0", 1);
    let job = farm.submit(&library("cornell-box.gltf"), &SMALL);
    assert!(!farm.hashes(&job).is_empty());
    assert!(farm.stop_coordinator(), "{}", farm.logs());
    farm.wait_for("the trace's end", |_| {
        std::fs::read_to_string(&trace)
            .is_ok_and(|text| text.trim_end().ends_with("+++ exited with 0 +++"))
    });
    std::fs::read_to_string(&trace).expect("a trace")
}

/// Calls that only a store elsewhere makes.
fn foreign(calls: &str) -> Vec<&str> {
    let is_tcp = |line: &str| line.contains("socket(AF_INET") && line.contains("SOCK_STREAM");
    let is_thread = |line: &str| line.contains("PR_SET_NAME") && line.contains("tessera-postgre");
    let is_file = |line: &str| FILES.iter().any(|file| line.contains(file));
    calls.lines().filter(|line| is_tcp(line) || is_thread(line) || is_file(line)).collect()
}

#[test]
fn an_embedded_farm_opens_nothing_of_stores_elsewhere() {
    if Command::new("strace").arg("-V").output().is_err() {
        skipped("strace is not installed");
        return;
    }
    let embedded = calls(&[]);
    assert!(embedded.contains("SOCK_DGRAM") && embedded.contains("PR_SET_NAME"), "it was traced");
    assert_eq!(foreign(&embedded), Vec::<&str>::new());
    let what = "an_embedded_farm_opens_nothing_of_stores_elsewhere";
    let Some(postgres) = Postgres::start(what) else { return };
    let elsewhere = calls(&["--store", &postgres.address()]);
    let found = foreign(&elsewhere).join("\n");
    for wanted in ["SOCK_STREAM", "tessera-postgre", ".pgpass"] {
        assert!(found.contains(wanted), "{wanted}: {found}");
    }
}
