//! Spools against the journal: every committed result there once, by its lease and hash, with the bytes that it had; and nothing else.

use super::{FindingKind, FsckReport};
use crate::fsck::decode;
use crate::spool::{EntryHeader, SpoolError, SpoolIndex, SpoolKey};
use crate::store::Loaded;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use tessera_core::{Core, Record};
use tessera_protocol::status::{FrameState, FrameStatus};
use tessera_protocol::{BlobHash, Epoch, JobId, UnitIndex};

/// Commits of the records, by frame and unit; what a snapshot stands for is known by unit alone.
type Commits = BTreeMap<(SpoolKey, UnitIndex), (Epoch, BlobHash)>;

/// Checks the spool of every frame that has results and no files yet.
pub(super) fn check(
    report: &mut FsckReport,
    core: &Core,
    loaded: &Loaded,
    root: &Path,
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
                let mut check = Check { root, commits: &commits, problems: Vec::new(), results: 0 };
                let committed = core.committed_units(key.job, key.frame).unwrap_or_default();
                check.spool(key, loaded.spools.get(&key).copied(), &committed);
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

/// The spool of a frame that must have one.
fn key_of(job: JobId, status: &FrameStatus) -> Option<SpoolKey> {
    let needs = match status.state {
        FrameState::Open { committed, .. } => committed > 0,
        FrameState::Resolving => true,
        FrameState::Done(_) | FrameState::Failed(_) => false,
    };
    needs.then_some(SpoolKey { job, frame: status.frame })
}

fn commits(loaded: &Loaded) -> Commits {
    let mut commits = Commits::new();
    let Ok((_, records)) = decode(loaded) else { return commits };
    for record in records {
        let Record::UnitsCommitted { job, frame, commits: new } = record else { continue };
        let key = SpoolKey { job, frame };
        commits.extend(new.iter().map(|commit| ((key, commit.unit), (commit.epoch, commit.hash))));
    }
    commits
}

struct Check<'a> {
    root: &'a Path,
    commits: &'a Commits,
    problems: Vec<(FindingKind, String)>,
    results: u64,
}

impl Check<'_> {
    fn find(&mut self, kind: FindingKind, problem: impl Into<String>) {
        self.problems.push((kind, problem.into()));
    }

    fn spool(&mut self, key: SpoolKey, length: Option<u64>, committed: &[UnitIndex]) {
        let Some(length) = length else {
            let problem =
                format!("{} results are committed, and the journal knows no spool", committed.len());
            return self.find(FindingKind::LostSpool, problem);
        };
        let index = match SpoolIndex::read(self.root, key, length) {
            Ok(index) => index,
            Err(error @ (SpoolError::Short { .. } | SpoolError::Io { .. })) => {
                return self.find(FindingKind::LostSpool, with_cause(&error));
            }
            Err(error) => return self.find(FindingKind::DamagedSpool, error.to_string()),
        };
        let headers: Vec<EntryHeader> = index.headers().copied().collect();
        self.results += headers.len() as u64;
        self.compare_units(&headers, committed);
        for header in headers {
            if let Some((epoch, hash)) = self.commits.get(&(key, header.unit))
                && (*epoch, *hash) != (header.epoch, header.hash)
            {
                let problem = format!(
                    "unit {} is of {} with the hash {}, and {epoch} with {hash} was committed",
                    header.unit.0, header.epoch, header.hash
                );
                self.find(FindingKind::SpoolDiffers, problem);
            }
            if let Err(error) = index.bytes(header.unit) {
                self.find(FindingKind::DamagedSpool, with_cause(&error));
            }
        }
    }

    fn compare_units(&mut self, headers: &[EntryHeader], committed: &[UnitIndex]) {
        // A result that is not committed may stand there: of a unit that was taken back since.
        let wanted: BTreeSet<UnitIndex> = committed.iter().copied().collect();
        let mut seen = BTreeSet::new();
        for header in headers {
            let unit = header.unit.0;
            if !seen.insert(header.unit) {
                self.find(FindingKind::SpoolDiffers, format!("unit {unit} stands there twice"));
            }
        }
        for unit in wanted.difference(&seen) {
            self.find(FindingKind::SpoolDiffers, format!("unit {} is committed and not there", unit.0));
        }
    }
}

fn with_cause(error: &SpoolError) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// Spools on the disk that the journal does not know.
pub(super) fn check_strays(report: &mut FsckReport, root: &Path, loaded: &Loaded) {
    let known: BTreeSet<_> = loaded.spools.keys().map(|key| key.path(root)).collect();
    let folders = std::fs::read_dir(root).into_iter().flatten().flatten();
    let files = folders.flat_map(|folder| std::fs::read_dir(folder.path()).into_iter().flatten().flatten());
    let strays = files.filter(|file| !known.contains(&file.path())).count();
    if strays > 0 {
        report.find(
            FindingKind::Leftovers,
            "spool",
            format!("{strays} spools that the journal does not know"),
        );
    }
}
