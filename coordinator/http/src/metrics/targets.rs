//! Families about the targets of events.

use super::page::Page;
use std::fmt;
use tessera_coordinator::api::TargetFigures;

/// Writes what became of events, by target.
pub(super) fn targets(page: &mut Page<'_, '_>, targets: &[TargetFigures]) -> fmt::Result {
    let rows = |count: fn(&TargetFigures) -> f64| {
        targets.iter().map(move |target| (vec![("target", target.name.as_str())], count(target)))
    };
    page.counters(
        ("tessera_events_delivered", "Events that a target took."),
        rows(|target| target.delivered as f64),
    )?;
    page.counters(
        ("tessera_events_dropped", "Events that were given up: no room, or a day old."),
        rows(|target| target.dropped as f64),
    )?;
    page.counters(
        ("tessera_event_attempts_failed", "Attempts to deliver events that failed."),
        rows(|target| target.failed as f64),
    )?;
    page.gauges(
        ("tessera_events_waiting", "Events that wait for a target."),
        rows(|target| target.waiting as f64),
    )?;
    page.gauges(
        ("tessera_event_target_failing", "Whether the newest attempt at a target failed."),
        rows(|target| f64::from(u8::from(target.is_failing))),
    )
}
