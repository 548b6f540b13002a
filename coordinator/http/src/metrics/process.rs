//! The coordinator itself: its build, its store and disk, its connections and certificates.

use super::page::{Page, by};
use std::fmt;
use tessera_coordinator::api::{Figures, Standing};

/// What the server of HTTP knows of itself.
#[derive(Debug)]
pub(super) struct Process {
    /// Requests that were answered, by the class of the status.
    pub(super) requests: Vec<(&'static str, u64)>,
    /// Streams of events that are open.
    pub(super) event_streams: usize,
}

/// Writes which build it is, and since when it runs.
pub(super) fn about(page: &mut Page<'_, '_>, figures: &Figures) -> fmt::Result {
    let fingerprint = figures.fingerprint.to_string();
    let labels = vec![("version", env!("CARGO_PKG_VERSION")), ("fingerprint", &fingerprint)];
    page.gauges(("tessera_build_info", "The coordinator's build; always 1."), [(labels, 1.0)])?;
    page.gauge(
        ("tessera_start_time_seconds", "When the coordinator began to run, as a Unix time."),
        figures.started_at as f64,
    )
}

/// Writes whether another coordinator leads, and how old what is shown is then.
pub(super) fn standing(page: &mut Page<'_, '_>, standing: Option<&Standing>) -> fmt::Result {
    page.gauge(
        ("tessera_standing_by", "Whether this coordinator stands by: 0 for the one that leads."),
        f64::from(u8::from(standing.is_some())),
    )?;
    page.gauge(
        ("tessera_standing_by_age_seconds", "How old what a coordinator that stands by shows is."),
        standing.map(|standing| standing.seen.elapsed().as_secs_f64()),
    )
}

/// Writes what the store and its disk do.
pub(super) fn store(page: &mut Page<'_, '_>, figures: &Figures) -> fmt::Result {
    let (store, disk) = (&figures.store, &figures.disk);
    page.counter(
        ("tessera_store_commits", "Commits that the store made durable."),
        store.commit_seconds.count,
    )?;
    page.histogram(
        ("tessera_store_commit_seconds", "Time of a commit until it was durable."),
        &store.commit_seconds,
    )?;
    page.histogram(
        ("tessera_store_group_commits", "Commits that shared a sync."),
        &store.group_commits,
    )?;
    page.gauge(
        ("tessera_store_steps_waiting", "Steps of the coordinator that wait for the disk."),
        figures.present.steps_waiting as f64,
    )?;
    page.gauge(
        ("tessera_store_full", "Whether commits wait because the disk is full: 1 if they do."),
        f64::from(u8::from(store.is_full)),
    )?;
    page.counter(
        ("tessera_journal_records", "Records of the journal, since the farm began."),
        figures.present.records,
    )?;
    let bytes = |bytes: Option<u64>| bytes.map(|bytes| bytes as f64);
    page.gauge(
        ("tessera_disk_free_bytes", "Free bytes of the data folder's disk."),
        bytes(disk.free),
    )?;
    page.gauge(("tessera_disk_size_bytes", "Size of the data folder's disk."), bytes(disk.total))?;
    page.gauge(
        ("tessera_journal_bytes", "Bytes of the journal's files."),
        bytes(Some(disk.journal)),
    )?;
    page.gauge(
        ("tessera_spool_bytes", "Bytes of results of frames that are not made yet."),
        bytes(Some(disk.spools)),
    )?;
    page.gauge(
        ("tessera_blob_bytes", "Bytes of scene files and frames, some minutes ago at most."),
        bytes(disk.blobs.map(|(_, bytes)| bytes)),
    )?;
    page.gauge(
        ("tessera_blobs", "Number of scene files and frames, some minutes ago at most."),
        bytes(disk.blobs.map(|(count, _)| count)),
    )
}

/// Writes who is connected, who was refused, and when certificates end.
pub(super) fn doors(page: &mut Page<'_, '_>, figures: &Figures, process: &Process) -> fmt::Result {
    let roles = figures.connections.iter().map(|(role, count)| (role.name(), *count));
    page.gauges(
        ("tessera_connections", "Connections over QUIC by the role of the peer."),
        by("role", roles),
    )?;
    page.counters(
        ("tessera_connections_refused", "Connections over QUIC that were not served, by why."),
        by("reason", figures.connections_refused.iter().copied()),
    )?;
    page.counters(
        ("tessera_http_requests", "Requests of HTTP by the class of the status."),
        by("status", process.requests.iter().copied()),
    )?;
    page.gauge(
        ("tessera_http_event_streams", "Streams of events that are open."),
        process.event_streams as f64,
    )?;
    page.counters(
        ("tessera_live_tiles", "Live tiles that came from nodes, by what became of them."),
        by("outcome", figures.live_tiles.iter().copied()),
    )?;
    page.counters(
        ("tessera_log_lines", "Lines of logs that came from nodes, by what became of them."),
        by("outcome", figures.log_lines.iter().copied()),
    )?;
    let kept = ("tessera_log_bytes", "Bytes of lines of logs that are kept.");
    page.gauge(kept, figures.log_bytes as f64)?;
    let (watched, bytes) = figures.live;
    page.gauge(("tessera_live_watched", "Frames and jobs that are watched live."), watched as f64)?;
    page.gauge(("tessera_live_bytes", "Bytes of live tiles that are kept."), bytes as f64)?;
    let ends = [("authority", figures.authority_until), ("pages", figures.web_until)];
    page.gauges(
        (
            "tessera_certificate_expiry_timestamp_seconds",
            "When a certificate ends, as a Unix time.",
        ),
        ends.into_iter()
            .filter_map(|(name, until)| Some((vec![("certificate", name)], until? as f64))),
    )
}
