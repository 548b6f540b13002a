//! Every decoder against bytes that nobody meant: samples, the corpus under `tests/corpora/TARGET`,
//! and mutations of both. A short run is an ordinary test; `TESSERA_FUZZ=EXECUTIONS` makes a long
//! one of it (CONTRIBUTING.md).
//!
//! There is no instrumentation: an input counts as new where it leads to a new outcome (the kind of
//! error, or what was read), and is then mutated further.

mod driver;
mod files;
mod finishing;
mod heap;
mod memory;
mod mutate;
mod targets;
mod texts;
mod wire;

use driver::{Plan, Report};
use std::io::Write;
use std::time::Duration;

/// Executions of a target where nobody asks for more: those of files and programs cost a thousand
/// times as much.
const EXECUTIONS: u64 = 3_000;
const EXECUTIONS_SLOW: u64 = 60;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

// promise: P8
#[test]
fn no_bytes_bring_a_decoder_down() {
    let only = std::env::var("TESSERA_FUZZ_TARGET").unwrap_or_default();
    let (asked, secs, seed) =
        (number("TESSERA_FUZZ"), number("TESSERA_FUZZ_SECS"), number("TESSERA_FUZZ_SEED"));
    let mut reports: Vec<Report> = Vec::new();
    for target in targets::all() {
        if !only.is_empty() && !only.split(',').any(|name| name == target.name) {
            continue;
        }
        let usual = if target.is_slow { EXECUTIONS_SLOW } else { EXECUTIONS };
        let plan = Plan {
            executions: asked.unwrap_or(usual),
            time: secs.map_or(Duration::MAX, Duration::from_secs),
            seed: seed.unwrap_or(0x5eed),
        };
        let report = driver::run(&target, &plan);
        // Past the capture of a passing test's output: a long run is watched.
        if asked.is_some() {
            let _ = writeln!(std::io::stderr(), "{report}");
        }
        reports.push(report);
    }
    assert!(!reports.is_empty(), "no target is named {only:?}");
    let findings: Vec<String> = reports.iter().flat_map(|report| report.findings.clone()).collect();
    assert!(findings.is_empty(), "{} findings:\n{}", findings.len(), findings.join("\n"));
}

#[test]
fn every_corpus_has_a_target() {
    let names: Vec<&str> = targets::all().iter().map(|target| target.name).collect();
    for entry in std::fs::read_dir(driver::corpora()).expect("the corpora") {
        let name = entry.expect("an entry").file_name().to_string_lossy().into_owned();
        assert!(
            name == "README.md" || names.contains(&name.as_str()),
            "nothing reads tests/corpora/{name}"
        );
    }
}

/// The driver finds what there is to find: a panic and a large allocation behind a few bytes.
#[test]
fn planted_faults_are_found() {
    fn panics(bytes: &[u8]) -> Result<(), String> {
        match bytes {
            [b'm', b'a', b'g', rest @ ..] if rest.len() > 2 => panic!("planted"),
            [b'm', b'a', ..] => Err("two right".into()),
            [b'm', ..] => Err("one right".into()),
            _ => Err("wrong".into()),
        }
    }
    fn allocates(bytes: &[u8]) -> Result<(), String> {
        let claimed = usize::from(*bytes.first().unwrap_or(&0)) << 20;
        std::hint::black_box(Vec::<u8>::with_capacity(claimed));
        Err(format!("{}", claimed > 1 << 26))
    }
    let plan = Plan { executions: 400_000, time: Duration::MAX, seed: 7 };
    for run in [panics as driver::Decoder, allocates] {
        let target = driver::Target {
            name: "planted",
            is_slow: false,
            run,
            seeds: vec![b"mbg....".to_vec(), vec![1]],
        };
        assert!(!driver::run_without_keeping(&target, &plan).findings.is_empty());
    }
}
