//! Why a job, a frame or a node stands as it does, with the words of `tessera explain`.

use super::words::span;
use maud::{Markup, html};
use tessera_protocol::explain::{Ahead, Explanation, Reason};

/// The reasons, what helps, who is before, and when it begins and ends.
pub(super) fn why(explanation: &Explanation) -> Markup {
    let Explanation { reasons, ahead, begins_secs, left_secs, .. } = explanation;
    html! {
        section.why aria-label="Why" data-why="" {
            @for reason in reasons { (one(reason)) }
            @if !ahead.is_empty() {
                p.before { "Before it: " @for (at, one) in ahead.iter().enumerate() {
                    @if at > 0 { ", " } (before(one))
                } }
            }
            @if let Some(secs) = begins_secs { p.before { "Begins in about " (span(*secs)) "." } }
            @if let Some(secs) = left_secs {
                p.before { "About " span data-field="left" { (span(*secs)) } " left." }
            }
        }
    }
}

fn one(reason: &Reason) -> Markup {
    html! {
        p.reason data-word=(reason.word) {
            bdi { (reason.why) }
            @if let Some(secs) = reason.ends_secs { " (ends in " (span(secs)) ")" }
            @if !reason.help.is_empty() { span.help { bdi { (marked(&reason.help)) } } }
        }
    }
}

/// A text with what stands between backticks as code.
fn marked(text: &str) -> Markup {
    html! {
        @for (at, part) in text.split('`').enumerate() {
            @if at % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

fn before(one: &Ahead) -> Markup {
    let units = if one.units == 1 { "unit" } else { "units" };
    html! {
        bdi { (one.owner.replace('`', "")) } " (" (one.units) " " (units) ", such as of "
        bdi { (one.job) } ")"
    }
}
