//! `fsck` checks a data folder for consistency: every value of the journal, the records against
//! each other, and spools and blobs against the records. Repairs nothing.

mod blobs;
mod decode;
mod finding;
mod report;
mod spools;

pub(crate) use blobs::Inputs;
pub(crate) use decode::decode;
pub use finding::{Finding, FindingKind, Severity};
pub use report::{Depth, FsckReport};

use crate::access::audit_log;
use crate::blobs::{BlobPlace, BlobPlaceError, Blobs, DiskPlace};
use crate::folder::{DataFolder, FolderError};
use crate::spool::{FarmSpools, SpoolKey, SpoolReader};
use crate::store::{Loaded, SledPlace, StoreError, StorePlace, Survey};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use tessera_core::{Core, Moment, Settings};
use tessera_protocol::client::AuditReport;
use tessera_transport::member::MemberRecord;

/// Why the check cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// The folder cannot be used. A folder that is in use is audited through its coordinator.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The blobs cannot be read.
    #[error(transparent)]
    Blobs(#[from] BlobPlaceError),
}

/// Places where a coordinator stores data.
pub(crate) struct Places {
    pub(crate) blobs: Arc<dyn Blobs>,
    pub(crate) spools: Arc<dyn SpoolReader>,
}

impl Places {
    /// Returns the places of the data folder of a coordinator that is not running.
    pub(crate) fn of(folder: &DataFolder, blobs: &dyn BlobPlace) -> Result<Self, BlobPlaceError> {
        let blobs = blobs.inspect(folder)?;
        let spools = FarmSpools::reader_of(&folder.spool(), blobs.results());
        Ok(Self { blobs, spools })
    }
}

/// Where a coordinator keeps what is checked: its data folder, its store and its blobs.
#[derive(Clone, Copy)]
pub struct FarmAt<'a> {
    /// Data folder.
    pub data: &'a Path,
    /// Place of the store.
    pub store: &'a dyn StorePlace,
    /// Place of the blobs.
    pub blobs: &'a dyn BlobPlace,
}

impl<'a> FarmAt<'a> {
    /// A data folder that has everything itself.
    pub fn plain(data: &'a Path) -> Self {
        Self { data, store: &SledPlace, blobs: &DiskPlace }
    }
}

/// Audits what a coordinator keeps that is not running. Changes nothing.
pub fn audit(kept: FarmAt<'_>) -> Result<AuditReport, AuditError> {
    fsck(kept, Depth::Whole).map(|report| report.audit())
}

/// Checks what a coordinator keeps that is not running.
pub fn fsck(kept: FarmAt<'_>, depth: Depth) -> Result<FsckReport, AuditError> {
    let FarmAt { data, store, blobs } = kept;
    let folder = DataFolder::inspect(data)?;
    let mut survey = store.survey(&folder)?;
    let places = Places::of(&folder, blobs)?;
    let mut report = FsckReport::default();
    take_survey(&mut report, &survey);
    // The journal is whole. A missing key says nothing about it.
    let whole = report.is_clean();
    if !folder.authority().join("authority.key").is_file() && survey.loaded.files.is_empty() {
        report.find(FindingKind::NoAuthority, "authority", "there is no key");
    }
    let core = check_records(&mut report, &survey.loaded);
    spools::check_strays(&mut report, &*places.spools, &survey.loaded);
    if let Some(core) = core.filter(|_| whole) {
        check_state(&mut report, &core);
        spools::check(&mut report, &core, &survey.loaded, &*places.spools, &|_| true);
        blobs::check(&mut report, &core, &*places.blobs, depth);
    }
    blobs::check_uploads(&mut report, &folder);
    let head = survey.loaded.audit_head.as_deref();
    match survey.audit.is_empty() {
        true => check_audit_log(&mut report, &folder, head),
        false => {
            for problem in audit_log::check_chain(std::mem::take(&mut survey.audit), head) {
                report.find(FindingKind::AuditLog, "the audit log of the store", problem);
            }
        }
    }
    Ok(report)
}

/// Checks the audit log's chain, and its end by the head that the journal has.
fn check_audit_log(report: &mut FsckReport, folder: &DataFolder, kept: Option<&[u8]>) {
    match audit_log::check(&folder.audit_log(), kept) {
        Ok(problems) => {
            for problem in problems {
                report.find(FindingKind::AuditLog, "the audit log (`audit`)", problem);
            }
        }
        Err(error) => {
            let problem = format!("it cannot be read: {error}");
            report.find(FindingKind::AuditLog, "the audit log (`audit`)", problem);
        }
    }
}

/// Checks the content of a running coordinator's store at one moment. `still_there` says whether a
/// spool is still known, because a frame may be finished while its spool is read.
pub(crate) fn check_running(
    loaded: &Loaded,
    places: &Places,
    still_there: &dyn Fn(SpoolKey) -> bool,
) -> FsckReport {
    let mut report = FsckReport::default();
    if let Some(core) = check_records(&mut report, loaded) {
        check_state(&mut report, &core);
        spools::check(&mut report, &core, loaded, &*places.spools, still_there);
        blobs::check_needed(&mut report, &core, &*places.blobs, Depth::Whole);
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

/// Checks the records against each other, with the audit's own counts and by a replay. Returns the
/// resulting state.
fn check_records(report: &mut FsckReport, loaded: &Loaded) -> Option<Core> {
    report.tokens = loaded.tokens.len() as u64;
    report.members = loaded.members.len() as u64;
    for problem in names_held_twice(&loaded.members) {
        report.find(FindingKind::Contradiction, "the members", problem);
    }
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
    report.device_millis = audit.device_millis;
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

/// Returns the names and node ids that two members hold.
fn names_held_twice(members: &BTreeMap<u64, MemberRecord>) -> Vec<String> {
    let mut holders: BTreeMap<String, u64> = BTreeMap::new();
    let mut problems = Vec::new();
    for held in members.values().filter(|held| held.removed_at.is_none()) {
        let node = held.node.map(|node| format!("node {node}"));
        for name in [Some(format!("name {}", held.name.to_lowercase())), node].iter().flatten() {
            if let Some(other) = holders.insert(name.clone(), held.number) {
                problems.push(format!("{name} is held by #{other} and by #{}", held.number));
            }
        }
    }
    problems
}

/// Checks leases and counters of the state. Leases end with their coordinator, so here every unit
/// that is not committed must be ready to be leased.
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
            let problem = format!("{} units are leased in a stopped farm", summary.units_leased);
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
