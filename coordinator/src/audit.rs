//! The audit: the journal against itself (the core's bookkeeping), blobs against their names, spools against the journal.

use crate::blobs::Blobs;
use crate::folder::{DataFolder, FolderError};
use crate::server::Shared;
use crate::spool::{SpoolIndex, SpoolKey};
use crate::store::{Commit, Journal, Loaded, Store, StoreError, snapshot};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tessera_core::{Core, Moment, Record, Settings, SnapshotPart};
use tessera_protocol::BlobHash;
use tessera_protocol::client::{AuditReport, RequestError};
use tessera_protocol::status::{FrameState, FrameStatus, JobSummary};
use tokio::sync::oneshot;

/// Problems listed at most.
const PROBLEMS_MAX: usize = 1000;

/// Why there is no audit.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// The folder cannot be used; one that is in use is audited by asking its coordinator.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The store cannot be read at all.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Audits the data folder of a coordinator that is not running. Changes nothing that counts.
pub fn audit(data: &Path) -> Result<AuditReport, AuditError> {
    let folder = DataFolder::open_existing(data)?;
    let loaded = Journal::open(&folder, true)?.load()?;
    let places = Places { blobs: Blobs::open(&folder, 0), spools: folder.spool() };
    Ok(check(loaded, &places, &|_| true))
}

/// Audits a coordinator from within.
pub(crate) async fn running(shared: &Arc<Shared>) -> Result<AuditReport, RequestError> {
    let failed = |error: String| RequestError::Unavailable(format!("the store cannot be read: {error}"));
    let (mut commit, _) = Commit::new();
    let (inspect, seen) = oneshot::channel();
    commit.inspect = Some(inspect);
    shared.writer.queue().send(commit).map_err(|error| failed(error.to_string()))?;
    let loaded = seen.await.map_err(|error| failed(error.to_string()))?;
    let loaded = loaded.map_err(|error| failed(error.to_string()))?;
    let places = Places { blobs: (*shared.blobs).clone(), spools: shared.spools.clone() };
    let writer = shared.writer.clone();
    let checked = tokio::task::spawn_blocking(move || {
        check(loaded, &places, &|key| writer.spool_length(key).is_some())
    });
    checked.await.map_err(|error| failed(error.to_string()))
}

struct Places {
    blobs: Blobs,
    spools: PathBuf,
}

/// The snapshot's parts and the records after it; a value that is not readable is named by the error.
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

/// `still_there` says whether a spool is still known: a frame may be finished while the audit reads.
fn check(loaded: Loaded, places: &Places, still_there: &dyn Fn(SpoolKey) -> bool) -> AuditReport {
    let (parts, records) = match decode(&loaded) {
        Ok(decoded) => decoded,
        Err(problem) => return AuditReport { problems: vec![problem], ..AuditReport::default() },
    };
    let report = Core::audit(parts.clone(), records.clone());
    let mut audit = Audit { report, places, still_there };
    match Core::replay(Settings::default(), parts, records, Moment(0)) {
        Ok(core) => audit.check_files(&core, &loaded.spools),
        Err(error) => audit.problem(error.to_string()),
    }
    audit.report
}

struct Audit<'a> {
    report: AuditReport,
    places: &'a Places,
    still_there: &'a dyn Fn(SpoolKey) -> bool,
}

impl Audit<'_> {
    fn problem(&mut self, text: String) {
        if self.report.problems.len() < PROBLEMS_MAX {
            self.report.problems.push(text);
        }
    }

    fn check_files(&mut self, core: &Core, spools: &BTreeMap<SpoolKey, u64>) {
        let mut checked = BTreeSet::new();
        let jobs = core.jobs();
        if (jobs.len() as u64) < self.report.jobs {
            let rest = self.report.jobs - jobs.len() as u64;
            self.problem(format!(
                "blobs and spools of the oldest {rest} jobs were not checked: too many jobs"
            ));
        }
        for summary in jobs {
            let Some(detail) = core.job(summary.job) else { continue };
            if !summary.state.is_final() {
                for (_, hash, length) in detail.spec.kind.files() {
                    self.check_blob((hash, length), &mut checked, || format!("job {}", summary.job));
                }
            }
            let mut from = 0;
            while let Some(page) = core.frames(summary.job, from).filter(|page| !page.is_empty()) {
                from += page.len() as u32;
                page.iter().for_each(|status| self.check_frame(&summary, status, spools, &mut checked));
            }
        }
    }

    fn check_blob(
        &mut self,
        (hash, length): (BlobHash, u64),
        checked: &mut BTreeSet<BlobHash>,
        whose: impl Fn() -> String,
    ) {
        if checked.insert(hash)
            && let Some(problem) = self.places.blobs.verify(hash, length)
        {
            self.problem(format!("{}: {problem}", whose()));
        }
    }

    fn check_frame(
        &mut self,
        job: &JobSummary,
        status: &FrameStatus,
        spools: &BTreeMap<SpoolKey, u64>,
        checked: &mut BTreeSet<BlobHash>,
    ) {
        let key = SpoolKey { job: job.job, frame: status.frame };
        match &status.state {
            FrameState::Done(files) => {
                for file in files {
                    self.check_blob((file.hash, file.length), checked, || key.to_string());
                }
            }
            FrameState::Open { committed, .. } if !job.state.is_final() && *committed > 0 => {
                self.check_spool(key, spools.get(&key).copied(), Some(*committed));
            }
            FrameState::Resolving if !job.state.is_final() => {
                self.check_spool(key, spools.get(&key).copied(), None);
            }
            FrameState::Open { .. } | FrameState::Resolving | FrameState::Failed(_) => {}
        }
    }

    fn check_spool(&mut self, key: SpoolKey, length: Option<u64>, committed: Option<u32>) {
        let Some(length) = length else {
            return self.problem(format!("{key}: results are committed, and there is no spool"));
        };
        let mut problems = Vec::new();
        match SpoolIndex::read(&self.places.spools, key, length) {
            Err(error) => problems.push(format!("{key}: {error}")),
            Ok(index) => {
                let units: Vec<_> = index.headers().map(|header| header.unit).collect();
                if committed.is_some_and(|committed| committed as usize != units.len()) {
                    problems.push(format!(
                        "{key}: {} results in the spool, {committed:?} committed",
                        units.len()
                    ));
                }
                if units.windows(2).any(|pair| pair[0] == pair[1]) {
                    problems.push(format!("{key}: a unit stands in the spool twice"));
                }
                let damaged = units.into_iter().filter_map(|unit| index.bytes(unit).err());
                problems.extend(damaged.map(|error| format!("{key}: {error}")));
            }
        }
        if (self.still_there)(key) {
            problems.into_iter().for_each(|problem| self.problem(problem));
        }
    }
}
