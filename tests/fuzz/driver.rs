//! The loop: mutate, decode, look at what came of it, keep what was new, write down what was found.

use crate::heap;
use crate::mutate::Mutator;
use std::collections::BTreeSet;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Reads bytes; the error says what is wrong with them. Panics where it has read what cannot be.
pub(crate) type Decoder = fn(&[u8]) -> Result<(), String>;

/// Memory that a decoder may take beyond a multiple of its input, bytes: the largest message is 8
/// MiB, in a buffer that has doubled.
const HEAP_BYTES: usize = 40 << 20;
/// That multiple: a byte can stand for a string of 24 bytes in a list that has doubled.
const HEAP_RATIO: usize = 64;
/// Longest that one input may take.
const SLOWEST: Duration = Duration::from_secs(20);
/// Inputs that are kept to be mutated.
const KEPT_MAX: usize = 4096;
/// Findings after which a target has shown enough.
const FINDINGS_MAX: usize = 10;

/// A decoder and bytes that it likes.
pub(crate) struct Target {
    pub(crate) name: &'static str,
    /// An execution takes a millisecond or so.
    pub(crate) is_slow: bool,
    pub(crate) run: Decoder,
    pub(crate) seeds: Vec<Vec<u8>>,
}

/// How long to go on.
pub(crate) struct Plan {
    pub(crate) executions: u64,
    pub(crate) time: Duration,
    pub(crate) seed: u64,
}

/// What came of it.
pub(crate) struct Report {
    name: &'static str,
    executions: u64,
    took: Duration,
    outcomes: usize,
    kept: usize,
    pub(crate) findings: Vec<String>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, executions, took, outcomes, kept, findings } = self;
        let (secs, found) = (took.as_secs_f64(), findings.len());
        write!(
            f,
            "{name:<24}{executions:>11} executions {secs:>7.1} s {outcomes:>6} outcomes {kept:>5} \
                kept {found:>3} findings"
        )
    }
}

/// The folder of all corpora.
pub(crate) fn corpora() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpora")
}

/// Runs the seeds and the corpus, then mutations. Findings are written to the corpus, so that they
/// stay tested.
pub(crate) fn run(target: &Target, plan: &Plan) -> Report {
    let folder = corpora().join(target.name);
    let files = std::fs::read_dir(&folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = files.map(|entry| entry.path()).collect();
    // The order of a folder is nobody's; the run depends on the seed alone.
    paths.sort();
    let corpus =
        paths.iter().map(|path| std::fs::read(path).expect("a file of the corpus")).collect();
    go(target, plan, corpus, Some(&folder))
}

/// The same without a corpus.
pub(crate) fn run_without_keeping(target: &Target, plan: &Plan) -> Report {
    go(target, plan, Vec::new(), None)
}

fn go(target: &Target, plan: &Plan, corpus: Vec<Vec<u8>>, keep: Option<&Path>) -> Report {
    let began = Instant::now();
    let mut kept: Vec<Vec<u8>> = target.seeds.iter().cloned().chain(corpus).collect();
    kept.push(Vec::new());
    let mut outcomes = BTreeSet::new();
    let mut findings = Vec::new();
    let mut executions = 0;
    let mut note = |input: &[u8], finding: String| {
        let place =
            keep.map_or_else(String::new, |folder| format!(" ({})", write_down(folder, input)));
        findings.push(format!("{}: {finding}{place}", target.name));
        findings.len() < FINDINGS_MAX
    };
    for input in &kept {
        executions += 1;
        match execute(target.run, input) {
            Ok(outcome) => drop(outcomes.insert(outcome)),
            Err(finding) => drop(note(input, finding)),
        }
    }
    let mut mutator = Mutator::new(plan.seed);
    let mut input = Vec::new();
    // The clock costs as much as a fast decoder.
    let looks = if target.is_slow { 0 } else { 0xff };
    while executions < plan.executions && (executions & looks != 0 || began.elapsed() < plan.time) {
        mutator.mutate(&kept, &mut input);
        executions += 1;
        match execute(target.run, &input) {
            Ok(outcome) => {
                if outcomes.insert(outcome) && kept.len() < KEPT_MAX {
                    kept.push(input.clone());
                }
            }
            Err(finding) => {
                if !note(&input, finding) {
                    break;
                }
            }
        }
    }
    let (outcomes, kept) = (outcomes.len(), kept.len());
    Report { name: target.name, executions, took: began.elapsed(), outcomes, kept, findings }
}

/// What kind of end it took, or what is wrong with that.
fn execute(run: Decoder, input: &[u8]) -> Result<u64, String> {
    let began = Instant::now();
    heap::begin();
    let ended = catch_unwind(AssertUnwindSafe(|| run(input)));
    let peak = heap::peak();
    let most = HEAP_BYTES + HEAP_RATIO * input.len();
    match ended {
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
            Err(format!("panicked: {text}"))
        }
        Ok(_) if peak > most => Err(format!("{} bytes led to {peak} on the heap", input.len())),
        Ok(_) if began.elapsed() > SLOWEST => Err(format!("took {:?}", began.elapsed())),
        Ok(outcome) => Ok(kind(&outcome)),
    }
}

/// Outcomes that differ in numbers alone are one kind.
fn kind(outcome: &Result<(), String>) -> u64 {
    let mut hasher = DefaultHasher::new();
    if let Err(text) = outcome {
        let letters = text.bytes().filter(|byte| !byte.is_ascii_digit()).take(96);
        letters.for_each(|letter| letter.hash(&mut hasher));
    }
    hasher.finish()
}

/// Puts an input into the corpus, under its hash; its path.
fn write_down(folder: &Path, input: &[u8]) -> String {
    let hash = blake3::hash(input).to_hex();
    let path = folder.join(format!("found-{}", &hash[..16]));
    let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, input));
    written.map_or_else(|error| error.to_string(), |()| path.display().to_string())
}
