//! Checks spools against the journal. Every committed result must be there once, with its lease,
//! its hash and its bytes, and there must be nothing else.

use super::decode::decode;
use super::finding::FindingKind;
use super::report::FsckReport;
use crate::spool::{EntryHeader, SpoolError, SpoolExtent, SpoolIndex, SpoolKey, SpoolReader};
use crate::store::Loaded;
use std::collections::BTreeMap;
use tessera_core::{Core, KeptPart, Record};
use tessera_protocol::status::{FrameState, FrameStatus};
use tessera_protocol::{BlobHash, Epoch, JobId, UnitIndex};

/// Newest commit of each unit in the records, by frame and unit. Units in a snapshot are known only
/// by their number.
type Commits = BTreeMap<(SpoolKey, UnitIndex), (Epoch, BlobHash)>;

/// Checks the spool of every frame that has results but no files yet.
pub(super) fn check(
    report: &mut FsckReport,
    core: &Core,
    loaded: &Loaded,
    spools: &dyn SpoolReader,
    still_there: &dyn Fn(SpoolKey) -> bool,
) {
    let commits = commits(loaded);
    for job in core.job_ids() {
        if core.job_summary(job).is_none_or(|summary| summary.state.is_final()) {
            continue;
        }
        let mut from = 0;
        while let Some(page) = core.frames(job, from).filter(|page| !page.is_empty()) {
            from += page.len() as u32;
            for key in page.iter().filter_map(|status| key_of(job, status)) {
                let mut check =
                    Check { spools, commits: &commits, problems: Vec::new(), results: 0 };
                let wanted = Wanted {
                    committed: core.committed_units(key.job, key.frame).unwrap_or_default(),
                    parts: core.parts(key.job, key.frame),
                };
                if wanted.committed.is_empty() && wanted.parts.is_empty() {
                    continue;
                }
                check.spool(key, loaded.spools.get(&key), &wanted);
                report.spools += 1;
                report.results += check.results;
                if still_there(key) {
                    for (kind, problem) in check.problems {
                        report.find(kind, format!("spool {key}"), problem);
                    }
                }
            }
        }
    }
}

/// Results that a spool must have.
struct Wanted {
    committed: Vec<UnitIndex>,
    /// Parts of units.
    parts: Vec<KeptPart>,
}

/// Returns the spool of a frame that may have one.
fn key_of(job: JobId, status: &FrameStatus) -> Option<SpoolKey> {
    use FrameState::*;
    let goes_on = matches!(status.state, Open { .. } | Resolving | Finishing { .. });
    goes_on.then_some(SpoolKey { job, frame: status.frame })
}

fn commits(loaded: &Loaded) -> Commits {
    let mut commits = Commits::new();
    let Ok((_, records)) = decode(loaded) else { return commits };
    for record in records {
        let (job, frame, new) = match record {
            Record::UnitsCommitted { job, frame, commits } => (job, frame, commits),
            Record::PartCommitted { job, frame, commit, .. } => (job, frame, vec![commit]),
            _ => continue,
        };
        let key = SpoolKey { job, frame };
        commits.extend(new.iter().map(|commit| ((key, commit.unit), (commit.epoch, commit.hash))));
    }
    commits
}

struct Check<'a> {
    spools: &'a dyn SpoolReader,
    commits: &'a Commits,
    problems: Vec<(FindingKind, String)>,
    results: u64,
}

impl Check<'_> {
    fn find(&mut self, kind: FindingKind, problem: impl Into<String>) {
        self.problems.push((kind, problem.into()));
    }

    fn spool(&mut self, key: SpoolKey, extent: Option<&SpoolExtent>, wanted: &Wanted) {
        let Some(extent) = extent else {
            let results = wanted.committed.len() + wanted.parts.len();
            let problem =
                format!("{results} results are committed, and the journal knows no spool");
            return self.find(FindingKind::LostSpool, problem);
        };
        let index = match SpoolIndex::read(self.spools, key, extent) {
            Ok(index) => index,
            Err(error @ (SpoolError::Short { .. } | SpoolError::Io { .. })) => {
                return self.find(FindingKind::LostSpool, with_cause(&error));
            }
            Err(error) => return self.find(FindingKind::DamagedSpool, with_cause(&error)),
        };
        let mut results: BTreeMap<UnitIndex, Vec<EntryHeader>> = BTreeMap::new();
        for header in index.headers() {
            results.entry(header.unit).or_default().push(*header);
            self.results += 1;
        }
        self.compare_units(key, &results, wanted);
        for error in index.check_bytes() {
            self.find(FindingKind::DamagedSpool, with_cause(&error));
        }
    }

    /// Compares units. A spool may also have results that are not committed: of a unit that was
    /// taken back since, or of dropped parts.
    fn compare_units(
        &mut self,
        key: SpoolKey,
        results: &BTreeMap<UnitIndex, Vec<EntryHeader>>,
        wanted: &Wanted,
    ) {
        let mut in_parts: BTreeMap<UnitIndex, Vec<KeptPart>> = BTreeMap::new();
        for part in &wanted.parts {
            in_parts.entry(part.unit).or_default().push(*part);
        }
        for (unit, parts) in &in_parts {
            let there: Vec<KeptPart> =
                results.get(unit).into_iter().flatten().map(part_of).collect();
            if there != *parts {
                let problem = format!(
                    "unit {} has the parts {there:?}, and {parts:?} were committed",
                    unit.0
                );
                self.find(FindingKind::SpoolDiffers, problem);
            }
        }
        for unit in wanted.committed.iter().filter(|unit| !in_parts.contains_key(*unit)) {
            match results.get(unit).map_or(&[][..], Vec::as_slice) {
                [] => self.find(
                    FindingKind::SpoolDiffers,
                    format!("unit {} is committed but missing", unit.0),
                ),
                [header] => self.compare_commit(key, header),
                _ => self
                    .find(FindingKind::SpoolDiffers, format!("unit {} is present twice", unit.0)),
            }
        }
    }

    fn compare_commit(&mut self, key: SpoolKey, header: &EntryHeader) {
        if let Some((epoch, hash)) = self.commits.get(&(key, header.unit))
            && (*epoch, *hash) != (header.epoch, header.hash)
        {
            let problem = format!(
                "unit {} is of {} with the hash {}, and {epoch} with {hash} was committed",
                header.unit.0, header.epoch, header.hash
            );
            self.find(FindingKind::SpoolDiffers, problem);
        }
    }
}

fn part_of(header: &EntryHeader) -> KeptPart {
    let EntryHeader { unit, epoch, first, samples, hash, .. } = *header;
    KeptPart { unit, first, samples, epoch, hash }
}

fn with_cause(error: &SpoolError) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// Reports spools that the journal does not know.
pub(super) fn check_strays(report: &mut FsckReport, spools: &dyn SpoolReader, loaded: &Loaded) {
    let known = |key: &Option<SpoolKey>| key.is_some_and(|key| loaded.spools.contains_key(&key));
    let listed = spools.list().unwrap_or_default();
    let strays = listed.iter().filter(|(_, key)| !known(key)).count();
    if strays > 0 {
        report.find(
            FindingKind::Leftovers,
            "spool",
            format!("{strays} spools that the journal does not know"),
        );
    }
}
