//! Checks blobs against their names, and against what jobs need.

use super::finding::FindingKind;
use super::report::{Depth, FsckReport};
use crate::blobs::{Blobs, Listed};
use crate::folder::DataFolder;
use std::collections::BTreeMap;
use std::path::Path;
use tessera_core::Core;
use tessera_protocol::BlobHash;
use tessera_protocol::status::FrameState;

/// Needed files, with their lengths and the jobs that need them.
type Needed = BTreeMap<BlobHash, (u64, String)>;

/// Checks every blob, whether it is needed or not.
pub(super) fn check(report: &mut FsckReport, core: &Core, blobs: &dyn Blobs, depth: Depth) {
    let needed = needed(core);
    check_wanted(report, &needed, blobs, depth);
    let (mut unnamed, mut unnamed_bytes) = (0u64, 0u64);
    let listed = blobs.list(&mut |Listed { name, hash, length, .. }| {
        report.blobs += 1;
        report.blob_bytes += length;
        let Some(hash) = hash else {
            return report.find(FindingKind::ForeignFile, name, "no blob has such a name");
        };
        if needed.contains_key(&hash) {
            return;
        }
        unnamed += 1;
        unnamed_bytes += length;
        if depth == Depth::Whole
            && let Some(problem) = blobs.verify(hash, length)
        {
            report.find(FindingKind::DamagedBlob, name, problem);
        }
    });
    if let Err(error) = listed {
        let problem = format!("it cannot be listed: {}", error.source);
        report.find(FindingKind::LostBlob, error.place, problem);
    }
    if unnamed > 0 {
        let problem = format!("no job names {}, {unnamed_bytes} bytes", files(unnamed));
        report.find(FindingKind::UnnamedBlobs, "blobs", problem);
    }
}

/// Checks the blobs that jobs need.
pub(super) fn check_needed(report: &mut FsckReport, core: &Core, blobs: &dyn Blobs, depth: Depth) {
    check_wanted(report, &needed(core), blobs, depth);
}

fn check_wanted(report: &mut FsckReport, needed: &Needed, blobs: &dyn Blobs, depth: Depth) {
    for (hash, (length, whose)) in needed {
        let place = format!("blob {hash}");
        match (blobs.length(*hash).ok().flatten(), depth) {
            (None, _) => report.find(
                FindingKind::LostBlob,
                place,
                format!("it is not there; {whose} needs it"),
            ),
            (Some(found), _) if found != *length => {
                let problem =
                    format!("it has {found} bytes where {length} were recorded; {whose} needs it");
                report.find(FindingKind::DamagedBlob, place, problem);
            }
            (Some(_), Depth::Quick) => {}
            (Some(_), Depth::Whole) => {
                if let Some(problem) = blobs.verify(*hash, *length) {
                    let problem = problem.trim_start_matches(&format!("{place}: ")).to_owned();
                    let problem = format!("{problem}; {whose} needs it");
                    report.find(FindingKind::DamagedBlob, place, problem);
                }
            }
        }
    }
}

/// Files that open jobs need as input, for a check while the coordinator works.
pub(crate) struct Inputs(Needed);

impl Inputs {
    /// Returns the input files of all open jobs.
    pub(crate) fn of(core: &Core) -> Self {
        let mut needed = Needed::new();
        for job in core.job_ids() {
            let open = core.job_summary(job).is_some_and(|summary| !summary.state.is_final());
            let Some(detail) = core.job(job).filter(|_| open) else { continue };
            for (name, hash, length) in detail.spec.kind.files() {
                let whose = || (length, format!("job {job} (file {name:?})"));
                needed.entry(hash).or_insert_with(whose);
            }
        }
        Self(needed)
    }

    /// Reads every file, and logs the damaged and missing ones. Returns their number. Of files far
    /// away only the lengths are asked for: whoever uses one checks it.
    pub(crate) fn check(&self, blobs: &dyn Blobs) -> usize {
        let mut report = FsckReport::default();
        let depth = if blobs.is_far() { Depth::Quick } else { Depth::Whole };
        check_wanted(&mut report, &self.0, blobs, depth);
        for finding in report.errors() {
            let (place, problem, action) = (&finding.place, &finding.problem, finding.action);
            tracing::error!(place, problem, action, "a file of an open job is damaged");
        }
        report.errors().count()
    }
}

/// Returns the files of open jobs and the files of finished frames.
fn needed(core: &Core) -> Needed {
    let mut needed = Needed::new();
    for job in core.job_ids() {
        let Some(detail) = core.job(job) else { continue };
        if !detail.summary.state.is_final() {
            for (name, hash, length) in detail.spec.kind.files() {
                needed
                    .entry(hash)
                    .or_insert_with(|| (length, format!("job {job} (file {name:?})")));
            }
        }
        let mut from = 0;
        while let Some(page) = core.frames(job, from).filter(|page| !page.is_empty()) {
            from += page.len() as u32;
            for status in page {
                let FrameState::Done(files) = status.state else { continue };
                for file in files {
                    let whose = || (file.length, format!("{job}/{}", status.frame));
                    needed.entry(file.hash).or_insert_with(whose);
                }
            }
        }
    }
    needed
}

/// Reports incomplete uploads and temporary files.
pub(super) fn check_uploads(report: &mut FsckReport, folder: &DataFolder) {
    for (kind, path) in
        [(FindingKind::Uploads, folder.partial()), (FindingKind::Leftovers, folder.temporary())]
    {
        let count = std::fs::read_dir(&path).into_iter().flatten().flatten().count() as u64;
        if count > 0 {
            report.find(kind, shown(&path), files(count));
        }
    }
}

fn files(count: u64) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} file{plural}")
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
