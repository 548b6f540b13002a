//! What monitoring reads: the farm's state, counted when it is asked for, and what the process
//! counts of itself. The driver answers for a bounded part of the jobs at a time, so that a farm
//! with many of them goes on meanwhile.

use super::answer::Api;
use super::caller::Caller;
use super::context::blocking;
use super::roles;
use crate::driver::{Event, Present};
use crate::event_targets::TargetFigures;
use crate::meters::Spread;
use std::path::Path;
use tessera_core::JobsTally;
use tessera_protocol::Fingerprint;
use tessera_protocol::client::{RequestError, Role};
use tessera_transport::{Validity, files};

/// What monitoring reads of a coordinator.
#[derive(Clone, Debug)]
pub struct Figures {
    /// Counts of all jobs.
    pub jobs: JobsTally,
    /// The nodes, and what happened.
    pub present: Present,
    /// The writing of the store.
    pub store: StoreFigures,
    /// The disk of the data folder.
    pub disk: DiskFigures,
    /// Connections over QUIC of each role.
    pub connections: Vec<(Role, u64)>,
    /// Connections over QUIC that were not served, by why.
    pub connections_refused: Vec<(&'static str, u64)>,
    /// Live tiles that came from nodes, by what became of them.
    pub live_tiles: Vec<(&'static str, u64)>,
    /// How many frames and jobs are watched live, and the bytes that are kept of them.
    pub live: (usize, usize),
    /// Lines that came from nodes, by what became of them.
    pub log_lines: Vec<(&'static str, u64)>,
    /// Bytes of lines that are kept.
    pub log_bytes: u64,
    /// When the farm's authority ends, in seconds since the Unix epoch.
    pub authority_until: Option<u64>,
    /// When the certificate of the pages ends; None where they have none.
    pub web_until: Option<u64>,
    /// Counts of the targets of events; none where nobody tells events.
    pub targets: Vec<TargetFigures>,
    /// What the bits of this build's results depend on.
    pub fingerprint: Fingerprint,
    /// When the coordinator began to run, in seconds since the Unix epoch.
    pub started_at: u64,
}

/// The writing of the store, since the process began.
#[derive(Clone, Debug, Default)]
pub struct StoreFigures {
    /// Seconds from a commit's way to the store until it was durable.
    pub commit_seconds: Spread,
    /// Commits that shared a sync.
    pub group_commits: Spread,
    /// Whether commits wait because the disk is full.
    pub is_full: bool,
}

/// The disk of the data folder, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiskFigures {
    /// Bytes that are free, if the system says it.
    pub free: Option<u64>,
    /// Size of the file system.
    pub total: Option<u64>,
    /// Bytes of the journal's files.
    pub journal: u64,
    /// Bytes of the results of frames that are not made yet.
    pub spools: u64,
    /// Number and bytes of blobs when they were last listed, some minutes ago at most; None if they
    /// were not yet.
    pub blobs: Option<(u64, u64)>,
}

impl Api {
    /// Reads what monitoring reads, for everybody who may see the farm.
    pub async fn figures(&self, caller: &Caller) -> Result<Figures, RequestError> {
        let context = &self.context;
        let admitted = context.access.admits(caller.identity());
        admitted.map_err(RequestError::NotAllowed)?;
        roles::check(caller, Role::Viewer)?;
        let _entered = context.askers.request(&caller.owner()).await?;
        let present = *context.send(Event::Present).await?;
        let writer = &context.writer;
        let (commit_seconds, group_commits) = writer.meters().spreads();
        let root = context.upload_limit.root.clone();
        let mut disk = blocking(move || of_disk(&root)).await?;
        disk.spools = writer.spool_bytes();
        disk.blobs = context.blobs.listed();
        let authority = Validity::of_certificate(context.access.authority().certificate());
        Ok(Figures {
            jobs: self.tally().await?,
            present,
            store: StoreFigures { commit_seconds, group_commits, is_full: writer.is_full() },
            disk,
            connections: context.access.connections().to_vec(),
            connections_refused: context.meters.refused(),
            live_tiles: context.meters.live.counts(),
            live: context.live.size(),
            log_lines: context.logs.counts(),
            log_bytes: context.logs.bytes(),
            authority_until: authority.map(|validity| validity.expires_at),
            web_until: context.meters.web_certificate(),
            targets: context.targets.get().map(|targets| targets.figures()).unwrap_or_default(),
            fingerprint: context.meters.fingerprint,
            started_at: context.meters.started_at,
        })
    }

    /// Counts all jobs, a part at a time.
    pub(super) async fn tally(&self) -> Result<JobsTally, RequestError> {
        let mut tally = JobsTally::default();
        let mut after = None;
        loop {
            let (part, last) = self.context.send(|reply| Event::Tally { after, reply }).await?;
            tally.add(&part);
            after = last;
            if after.is_none() {
                return Ok(tally);
            }
        }
    }

    /// Says which certificate the pages have now, so that its end is known.
    pub fn serves_certificate(&self, certificate: &rustls::pki_types::CertificateDer<'_>) {
        if let Some(validity) = Validity::of_certificate(certificate) {
            self.context.meters.note_web_certificate(validity.expires_at);
        }
    }
}

/// Reads the disk of a data folder. Blocks.
fn of_disk(root: &Path) -> DiskFigures {
    let length = |folder: &str| {
        let entries = std::fs::read_dir(root.join(folder)).into_iter().flatten();
        // A file may go meanwhile.
        let lengths = entries.filter_map(|entry| Some(entry.ok()?.metadata().ok()?.len()));
        lengths.sum::<u64>()
    };
    DiskFigures {
        free: files::free_bytes(root).ok(),
        total: files::total_bytes(root).ok(),
        journal: ["sled", "sled/blobs", "records"].map(length).iter().sum(),
        ..DiskFigures::default()
    }
}
