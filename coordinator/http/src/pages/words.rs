//! Numbers, times and states in words.

use maud::{Markup, html};
use std::time::{SystemTime, UNIX_EPOCH};
use tessera_protocol::status::JobState;

/// Values of `--tone-map`.
pub(super) const TONE_MAPS: [&str; 4] = ["standard", "pbr-neutral", "agx", "filmic"];

/// Seconds since the Unix epoch.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// A span of time in its largest unit: `3 h`.
pub(super) fn span(secs: u64) -> String {
    match secs {
        0..120 => format!("{secs} s"),
        120..7200 => format!("{} min", secs / 60),
        7200..172_800 => format!("{} h", secs / 3600),
        _ => format!("{} days", secs / 86_400),
    }
}

/// How long ago a moment was. A script keeps it true.
pub(super) fn ago(at: u64) -> Markup {
    html! { time data-at=(at) { (span(now().saturating_sub(at))) " ago" } }
}

/// A number of bytes: `3.2 GB`.
pub(super) fn bytes(count: u64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB"];
    let mut value = count as f64;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    let digits = if unit == 0 || value >= 100.0 { 0 } else { 1 };
    format!("{value:.digits$} {}", units[unit])
}

/// A count with its unit: `3.2 M`.
pub(super) fn count(value: f64) -> String {
    match value {
        value if value >= 1e9 => format!("{:.1} G", value / 1e9),
        value if value >= 1e6 => format!("{:.1} M", value / 1e6),
        value if value >= 1e4 => format!("{:.0} k", value / 1e3),
        value => format!("{value:.0}"),
    }
}

/// A state as a badge.
pub(super) fn state(name: &str) -> Markup {
    html! { span.state data-field="state" data-state=(name) { (name) } }
}

/// A share of the units that are committed, in whole percent: never 100 before the end.
pub(super) fn percent(done: u64, all: u64) -> u64 {
    done.saturating_mul(100) / all.max(1)
}

/// What may be done to a job in this state: the word of the API, and the word on the button.
pub(super) fn changes(state: JobState) -> &'static [(&'static str, &'static str)] {
    match state {
        JobState::Queued | JobState::Running => &[("pause", "Pause"), ("cancel", "Cancel")],
        JobState::Paused => &[("resume", "Resume"), ("cancel", "Cancel")],
        JobState::Done => &[("forget", "Forget")],
        JobState::Failed | JobState::Cancelled => &[("retry", "Retry"), ("forget", "Forget")],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!([bytes(999), bytes(1000), bytes(3_200_000_000)], ["999 B", "1.0 kB", "3.2 GB"]);
        assert_eq!([span(119), span(3600), span(90_000)], ["119 s", "60 min", "25 h"]);
        assert_eq!([count(950.0), count(25_000.0), count(3.2e6)], ["950", "25 k", "3.2 M"]);
        assert_eq!(percent(999, 1000), 99);
    }
}
