//! Jobs, units, checks and failures. No metric has a label that grows with the number of jobs or
//! users.

use super::page::{Page, by};
use std::fmt;
use tessera_coordinator::api::Figures;
use tessera_protocol::status::{JobState, Waits};

/// Microseconds as seconds.
fn seconds(micros: u64) -> f64 {
    micros as f64 / 1e6
}

/// Writes what the jobs are, and what they have to do.
pub(super) fn jobs(page: &mut Page<'_, '_>, figures: &Figures) -> fmt::Result {
    let (tally, present) = (&figures.jobs, &figures.present);
    let counted = &present.counted;
    let states = JobState::ALL.map(JobState::name).into_iter().zip(tally.states);
    page.gauges(("tessera_jobs", "Jobs by state."), by("state", states))?;
    let waits = Waits::ALL.map(Waits::name).into_iter().zip(tally.waits);
    page.gauges(
        ("tessera_jobs_waiting", "Open jobs of which nothing is worked on, by why."),
        by("reason", waits),
    )?;
    page.gauge(
        (
            "tessera_queue_device_seconds",
            "Device time that jobs which are not paused are expected to need until they end.",
        ),
        seconds(tally.queue_micros),
    )?;
    let units = [
        ("queued", tally.units_open.saturating_sub(present.units_leased)),
        ("leased", present.units_leased),
        ("committed", tally.units_committed),
    ];
    page.gauges(("tessera_units", "Units of open jobs by state."), by("state", units))?;
    page.counter(("tessera_jobs_accepted", "Jobs that were accepted."), counted.jobs_accepted)?;
    let ended = counted.jobs_ended.iter().map(|(name, count)| (*name, *count));
    page.counters(("tessera_jobs_ended", "Jobs that ended, by how."), by("state", ended))?;
    let frames = counted.frames_ended.iter().map(|(name, count)| (*name, *count));
    page.counters(("tessera_frames_ended", "Frames that ended, by how."), by("state", frames))?;
    page.counter(("tessera_units_committed", "Units committed."), counted.units_committed)?;
    page.counter(
        ("tessera_samples_committed", "Camera samples of the results that were taken."),
        counted.samples,
    )?;
    let about = ("tessera_result_device_seconds", "Device time of the results that were taken.");
    page.counters(about, [(Vec::new(), seconds(counted.device_micros))])
}

/// Writes what failed, what is checked, and who is suspected.
pub(super) fn failures(page: &mut Page<'_, '_>, figures: &Figures) -> fmt::Result {
    let present = &figures.present;
    let counted = &present.counted;
    let ended = counted.attempts_ended.iter().map(|(name, count)| (*name, *count));
    page.counters(
        ("tessera_attempts_ended", "Attempts that ended without a result, by class."),
        by("class", ended),
    )?;
    let reported = counted.failures_reported.iter().map(|(name, count)| (*name, *count));
    page.counters(
        ("tessera_failures_reported", "Failures that nodes reported, by what failed."),
        by("kind", reported),
    )?;
    page.gauge(
        ("tessera_checks_pending", "Results that wait until another node has rendered them again."),
        figures.jobs.checks as f64,
    )?;
    let checks = counted.checks.iter().map(|(name, count)| (*name, *count));
    page.counters(
        ("tessera_checks", "Checks of results that ended, by how."),
        by("outcome", checks),
    )?;
    let suspects = [("in_doubt", present.nodes_doubted), ("quarantined", present.nodes_guilty)];
    page.gauges(
        ("tessera_nodes_suspected", "Nodes whose results were wrong, or may have been."),
        by("standing", suspects),
    )?;
    page.counter(
        ("tessera_node_suspicions", "Times that a node came under suspicion."),
        counted.suspicions,
    )
}
