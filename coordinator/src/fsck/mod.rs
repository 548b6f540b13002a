//! `fsck`: a data folder against itself: every value of the journal, the records against each
//! other, spools and blobs against the records. Repairs nothing.

mod blobs;
mod finding;
mod spools;

pub use finding::{Finding, FindingKind, Severity};

use crate::api::audit::AuditError;
use crate::blobs::Blobs;
use crate::folder::DataFolder;
use crate::spool::SpoolKey;
use crate::store::{Journal, Loaded, Survey, snapshot};
use serde::Serialize;
use std::path::{Path, PathBuf};
use tessera_core::{Core, Moment, Record, Settings, SnapshotPart};

/// Findings listed at most: a disk that lost a folder has one for each file.
const FINDINGS_MAX: usize = 1000;

/// How much is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Blobs are looked for, by name and length.
    Quick,
    /// Every byte of every blob is read.
    Whole,
}

/// What `fsck` saw.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FsckReport {
    /// Values of the journal.
    pub values: u64,
    /// Records and parts of the snapshot.
    pub records: u64,
    /// Jobs.
    pub jobs: u64,
    /// Jobs that have not ended.
    pub jobs_open: u64,
    /// Units committed.
    pub units_committed: u64,
    /// Units committed more than once: must be 0.
    pub units_committed_twice: u64,
    /// Units of open jobs that wait for a result, each of which can be leased.
    pub units_open: u64,
    /// Finished frames.
    pub frames: u64,
    /// Join tokens.
    pub tokens: u64,
    /// Spools, and the results in them.
    pub spools: u64,
    /// Results in spools.
    pub results: u64,
    /// Files among the blobs.
    pub blobs: u64,
    /// Their bytes.
    pub blob_bytes: u64,
    /// Everything that is not as it should be.
    pub findings: Vec<Finding>,
    /// Findings that are not listed, because there are too many.
    pub findings_left_out: u64,
}

impl FsckReport {
    /// Adds a finding.
    fn find(&mut self, kind: FindingKind, place: impl Into<String>, problem: impl Into<String>) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(Finding::new(kind, place, problem));
        } else {
            self.findings_left_out += 1;
        }
    }

    /// Findings that say that something is lost.
    pub fn errors(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.severity == Severity::Error)
    }

    /// Nothing that was promised is lost.
    pub fn is_clean(&self) -> bool {
        self.findings_left_out == 0 && self.errors().next().is_none()
    }
}

/// Where a coordinator keeps things.
pub(crate) struct Places {
    pub(crate) blobs: Blobs,
    pub(crate) spools: PathBuf,
}

/// Checks the data folder of a coordinator that is not running.
pub fn fsck(data: &Path, depth: Depth) -> Result<FsckReport, AuditError> {
    let folder = DataFolder::inspect(data)?;
    let survey = Journal::open(&folder, true)?.survey()?;
    let places = Places { blobs: Blobs::open(&folder, 0), spools: folder.spool() };
    let mut report = FsckReport::default();
    if !folder.authority().join("authority.key").is_file() {
        report.find(FindingKind::NoAuthority, "authority", "there is no key");
    }
    take_survey(&mut report, &survey);
    let whole = report.is_clean();
    let core = check_records(&mut report, &survey.loaded);
    spools::check_strays(&mut report, &places.spools, &survey.loaded);
    if let Some(core) = core.filter(|_| whole) {
        check_state(&mut report, &core);
        spools::check(&mut report, &core, &survey.loaded, &places.spools, &|_| true);
        blobs::check(&mut report, &core, &places.blobs, depth);
    }
    blobs::check_uploads(&mut report, &folder);
    Ok(report)
}

/// Checks what the store of a running coordinator held at one moment. `still_there` says whether a
/// spool is still known: a frame may be finished while its spool is read.
pub(crate) fn check_running(
    loaded: &Loaded,
    places: &Places,
    still_there: &dyn Fn(SpoolKey) -> bool,
) -> FsckReport {
    let mut report = FsckReport::default();
    if let Some(core) = check_records(&mut report, loaded) {
        check_state(&mut report, &core);
        spools::check(&mut report, &core, loaded, &places.spools, still_there);
        blobs::check_needed(&mut report, &core, &places.blobs, Depth::Whole);
    }
    report
}

fn take_survey(report: &mut FsckReport, survey: &Survey) {
    report.values = survey.values;
    for (place, problem) in &survey.damaged {
        report.find(FindingKind::DamagedValue, place, problem);
    }
    for place in survey.missing_names() {
        report.find(FindingKind::MissingRecord, place, "it is missing");
    }
    if let Some(problem) = &survey.lost_end {
        report.find(FindingKind::LostEnd, "the journal", problem);
    }
    if survey.unnamed > 0 {
        let problem = format!("{} large values that no record names", survey.unnamed);
        report.find(FindingKind::Leftovers, "records", problem);
    }
}

/// The snapshot's parts and the records after it; a value that is not readable is named by the
/// error.
pub(crate) fn decode(loaded: &Loaded) -> Result<(Vec<SnapshotPart>, Vec<Record>), String> {
    let parts = match &loaded.snapshot {
        Some((sequence, bytes)) => snapshot::decode(bytes)
            .map_err(|problem| format!("the snapshot after record {sequence}: {problem}"))?,
        None => Vec::new(),
    };
    let record = |(sequence, bytes): &(u64, Vec<u8>)| {
        Record::from_bytes(bytes).map_err(|error| format!("record {sequence}: {error}"))
    };
    let records = loaded.records.iter().map(record).collect::<Result<_, _>>()?;
    Ok((parts, records))
}

/// The records against each other, by bookkeeping of the audit's own and by replay; the state that
/// they tell of.
fn check_records(report: &mut FsckReport, loaded: &Loaded) -> Option<Core> {
    report.tokens = loaded.tokens.len() as u64;
    let (parts, records) = match decode(loaded) {
        Ok(decoded) => decoded,
        Err(problem) => {
            report.find(FindingKind::UnreadableValue, "the journal", problem);
            return None;
        }
    };
    let audit = Core::audit(parts.clone(), records.clone());
    report.records = audit.records;
    report.jobs = audit.jobs;
    report.units_committed = audit.units_committed;
    report.units_committed_twice = audit.units_committed_twice;
    report.frames = audit.frames;
    for problem in audit.problems {
        report.find(FindingKind::Contradiction, "the journal", problem);
    }
    match Core::replay(Settings::default(), parts, records, Moment(0)) {
        Ok(core) => Some(core),
        Err(error) => {
            report.find(FindingKind::Contradiction, "the journal", error.to_string());
            None
        }
    }
}

/// Leases and counters of the state that the records tell of. No lease outlives its coordinator, so
/// that here every unit that is not committed must be one that can be leased.
fn check_state(report: &mut FsckReport, core: &Core) {
    if let Err(problem) = core.verify() {
        report.find(FindingKind::Lease, "the state after replay", problem);
    }
    let (mut units, mut frames) = (0, 0);
    for job in core.job_ids() {
        let Some(summary) = core.job_summary(job) else { continue };
        units += summary.units_committed;
        frames += u64::from(summary.frames_done);
        if summary.units_leased > 0 {
            let problem = format!("{} units are leased, and nobody runs", summary.units_leased);
            report.find(FindingKind::Lease, format!("job {job}"), problem);
        }
        if !summary.state.is_final() {
            report.jobs_open += 1;
            report.units_open += core.units_open(job);
        }
    }
    for (what, kept, counted) in [
        ("units committed", units, report.units_committed),
        ("finished frames", frames, report.frames),
    ] {
        if kept != counted {
            let problem = format!("the jobs say {kept} {what}, the records {counted}");
            report.find(FindingKind::Counter, "the state after replay", problem);
        }
    }
}

#[cfg(test)]
mod tests;
