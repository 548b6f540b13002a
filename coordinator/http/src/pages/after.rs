//! A job's place among those that it waits for and those that wait for it, as a small graph: three
//! columns of links with arrows between them. Each edge and each state is said in words too.

use super::words::state;
use maud::{Markup, html};
use tessera_protocol::job::Until;
use tessera_protocol::status::{AfterStatus, JobDetail};

/// The graph of a job; nothing where the job stands alone.
pub(super) fn graph(detail: &JobDetail) -> Markup {
    let JobDetail { summary, after, awaited_by, awaited_count, .. } = detail;
    let more = awaited_count.saturating_sub(awaited_by.len() as u64);
    html! {
        @if !after.is_empty() || !awaited_by.is_empty() {
            section.graph aria-label="Jobs before and after this one" {
                h2 { "Before and after" }
                div.columns {
                    @if !after.is_empty() {
                        div {
                            h3 #waits-for { "Waits for" }
                            ul aria-labelledby="waits-for" {
                                @for before in after { (end(before, "before")) }
                            }
                        }
                        (arrow())
                    }
                    div.self {
                        h3 { "This job" }
                        p.node { bdi { (summary.name) } " " (state(summary.state.name())) }
                    }
                    @if !awaited_by.is_empty() {
                        (arrow())
                        div {
                            h3 #awaited-by { "Waited for by" }
                            ul aria-labelledby="awaited-by" {
                                @for behind in awaited_by { (end(behind, "behind")) }
                            }
                            @if more > 0 { p.hint { "and " (more) " more" } }
                        }
                    }
                }
            }
        }
    }
}

/// The job at the other end of a wait, and how far the wait is.
fn end(other: &AfterStatus, side: &str) -> Markup {
    let name = if other.name.is_empty() { "a forgotten job" } else { other.name.as_str() };
    html! {
        li.node data-side=(side) data-over=(other.over) {
            @match other.state {
                Some(known) => {
                    a href={ "/jobs/" (other.job) } { bdi { (name) } }
                    " " (state(known.name()))
                }
                None => { span { (name) } " " code { (other.job) } }
            }
            span.what { (words(other)) }
        }
    }
}

/// A wait in words: "until success: 12 of 40 frames". They are true from both ends.
fn words(other: &AfterStatus) -> String {
    let until = match other.until {
        Until::Success => "until success",
        Until::End => "until the end, whichever way",
        Until::Frames => "frame by frame",
    };
    match other.over {
        true => format!("{until}: over"),
        false => format!("{until}: {} of {} frames", other.frames_done, other.frames),
    }
}

/// Points from a column to the next. The headings say the same.
fn arrow() -> Markup {
    html! {
        svg.arrow viewBox="0 0 40 16" width="40" height="16" aria-hidden="true" focusable="false" {
            path d="M0 8 H36 M29 2 L36 8 L29 14" fill="none" stroke="currentColor"
                stroke-width="2" {}
        }
    }
}
