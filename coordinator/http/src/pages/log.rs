//! What nodes said of a job, of a failed attempt, or of themselves.

use super::assets::address;
use crate::api::logs;
use crate::auth::Signed;
use crate::problem::Problem;
use crate::state::Shared;
use maud::{Markup, html};
use tessera_protocol::logs::{KeptLine, LOG_PAGE_MAX, LogPage, LogQuery, LogTarget, Severity};
use tessera_protocol::status::FailureNote;
use tessera_protocol::utc::utc;
use tessera_protocol::{JobId, NodeId};

/// Lines of a page. Its script adds those that come.
const SHOWN: usize = 200;
/// Lines of a failed attempt.
const OF_FAILURE: usize = 12;

/// The newest lines of a job or a node, and from which severity on they are shown.
pub(super) struct Said {
    page: LogPage,
    level: Severity,
    /// Where the lines are in the API.
    place: String,
}

/// The lines of a job.
pub(super) async fn of_job(
    server: &Shared,
    signed: &Signed,
    job: JobId,
    level: Option<String>,
) -> Result<Said, Problem> {
    let place = format!("/api/v1/jobs/{job}/logs");
    read(server, signed, (LogTarget::Job(job), place), level).await
}

/// The lines of a node.
pub(super) async fn of_node(
    server: &Shared,
    signed: &Signed,
    node: NodeId,
    level: Option<String>,
) -> Result<Said, Problem> {
    let place = format!("/api/v1/nodes/{node}/logs");
    read(server, signed, (LogTarget::Node(node.to_string()), place), level).await
}

async fn read(
    server: &Shared,
    signed: &Signed,
    (target, place): (LogTarget, String),
    level: Option<String>,
) -> Result<Said, Problem> {
    let level = match level.as_deref() {
        None | Some("") => Severity::Info,
        Some(word) => Severity::of_name(word)
            .ok_or_else(|| Problem::form(format!("there is no severity {word:?}")))?,
    };
    let page = logs::page(server, signed, LogQuery::newest(target, LOG_PAGE_MAX)).await?;
    Ok(Said { page, level, place })
}

/// The section of a page with the newest lines.
pub(super) fn section(said: &Said) -> Markup {
    let shown: Vec<&KeptLine> =
        said.page.lines.iter().filter(|line| line.severity >= said.level).collect();
    let shown = &shown[shown.len().saturating_sub(SHOWN)..];
    let (next, level) = (said.page.next, said.level.name());
    html! {
        section #log aria-labelledby="log-title" {
            h2 #log-title { "Log" }
            nav.tools aria-label="Lines of the log" {
                @for (severity, text) in
                    [(Severity::Info, "All"), (Severity::Warning, "Warnings and errors"),
                    (Severity::Error, "Errors")] {
                    a href={ "?level=" (severity.name()) "#log" }
                        aria-current=[(said.level == severity).then_some("true")] { (text) }
                }
            }
            p #log-empty.empty hidden[!shown.is_empty()] { "Nothing was said of it." }
            // Its lines are not read aloud as they come, but where somebody goes there.
            div #log-lines.log tabindex="0" role="log" aria-live="off" aria-labelledby="log-title"
                hidden[shown.is_empty()]
                data-follow={ (said.place) "/follow?severity=" (level) "&after=" (next) } {
                ol { @for line in shown { (row(line)) } }
            }
            script type="module" src=(address("log.js")) {}
        }
    }
}

/// The last lines of a failed attempt, folded.
pub(super) fn of_failure(said: &Said, failure: &FailureNote) -> Markup {
    let is_of = |line: &&KeptLine| is_of(line, failure);
    let lines: Vec<&KeptLine> = said.page.lines.iter().filter(is_of).collect();
    let lines = &lines[lines.len().saturating_sub(OF_FAILURE)..];
    html! {
        @if !lines.is_empty() {
            details.said {
                summary { "What was said (" (lines.len()) ")" }
                div.log { ol { @for line in lines { (row(line)) } } }
            }
        }
    }
}

/// Whether a line is of a failed attempt: of its unit, or of the preparation of its frame.
fn is_of(line: &KeptLine, failure: &FailureNote) -> bool {
    let Some(frame) = line.frame else { return false };
    if line.node != failure.node {
        return false;
    }
    match line.unit {
        Some(unit) => failure.unit == format!("{frame}/u{:05}", unit.0),
        None => failure.unit.split('/').next() == Some(frame.to_string().as_str()),
    }
}

/// One line. The script makes the same.
fn row(line: &KeptLine) -> Markup {
    html! {
        li data-severity=(line.severity.name()) {
            time { (utc(line.at_millis / 1000)) } " "
            span.severity { (line.severity.name()) } " "
            bdi { (line.node) } " " (line.source.name()) " "
            @if let Some(place) = place(line) { (place) " " }
            bdi.text { (line.text.as_str()) }
        }
    }
}

fn place(line: &KeptLine) -> Option<String> {
    let frame = line.frame?;
    Some(match line.unit {
        Some(unit) => format!("{frame}/u{:05}", unit.0),
        None => frame.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tessera_protocol::logs::{LogSource, LogText};
    use tessera_protocol::{FrameNumber, UnitIndex};

    fn line(unit: Option<u32>, text: &str) -> KeptLine {
        KeptLine {
            number: 1,
            at_millis: 0,
            node: "rack-1".into(),
            source: LogSource::Compiler,
            severity: Severity::Error,
            job: None,
            frame: Some(FrameNumber(7)),
            unit: unit.map(UnitIndex),
            epoch: None,
            text: LogText::new(text),
        }
    }

    #[test]
    fn a_failure_has_the_lines_of_its_unit_and_frame() {
        let failure = |unit: &str, node: &str| FailureNote {
            at: 0,
            unit: unit.into(),
            node: node.into(),
            reason: String::new(),
        };
        let lines = vec![line(Some(12), "of the <unit>"), line(None, "of the frame")];
        let said = Said {
            page: LogPage { lines, next: 0, more: false },
            level: Severity::Info,
            place: String::new(),
        };
        let text = of_failure(&said, &failure("f0007/u00012", "rack-1")).into_string();
        assert!(text.contains("of the &lt;unit&gt;") && text.contains("of the frame"), "{text}");
        let text = of_failure(&said, &failure("f0007/u00013", "rack-1")).into_string();
        assert!(!text.contains("unit&gt;") && text.contains("of the frame"), "{text}");
        for (unit, node) in [("f0008/u00012", "rack-1"), ("f0007/u00012", "rack-2")] {
            assert_eq!(of_failure(&said, &failure(unit, node)).into_string(), "");
        }
    }
}
