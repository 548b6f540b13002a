//! The list of jobs.

use super::layout::{self, may};
use super::visitor::{Failed, Visitor};
use super::words::{ago, percent, state};
use crate::api::jobs::{self, JobsAsked};
use crate::forms::Asked;
use crate::state::Shared;
use crate::views::Job;
use axum::extract::State;
use maud::{Markup, html};
use serde::Deserialize;
use tessera_protocol::client::Role;
use tessera_protocol::selection::JobOrder;
use tessera_protocol::status::JobState;

/// Jobs on a page.
const ROWS: u32 = 100;

/// What is listed.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Wanted {
    #[serde(default)]
    state: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    owner: String,
    #[serde(default)]
    batch: String,
    #[serde(default)]
    cursor: String,
    #[serde(default)]
    order: String,
}

impl Wanted {
    fn asked(&self) -> JobsAsked {
        let given = |text: &str| (!text.trim().is_empty()).then(|| text.trim().to_owned());
        // People write a part of a name.
        let name = given(&self.name).map(|name| match name.contains(['*', '?']) {
            true => name,
            false => format!("*{name}*"),
        });
        JobsAsked {
            state: given(&self.state),
            owner: given(&self.owner),
            batch: given(&self.batch),
            cursor: given(&self.cursor),
            order: given(&self.order),
            rows: Some(ROWS),
            name,
            ..JobsAsked::default()
        }
    }
}

/// `/jobs`.
pub(super) async fn page(
    State(server): State<Shared>,
    visitor: Visitor,
    Asked(wanted): Asked<Wanted>,
) -> Result<Markup, Failed> {
    let page = jobs::page(&server, &visitor.0, wanted.asked()).await.map_err(visitor.fails())?;
    let changes = may(&visitor.0, Role::Artist);
    let body = html! {
        div.title {
            h1 { "Jobs" }
            a #news.news href="" hidden {}
        }
        (filter(&wanted))
        @if page.jobs.is_empty() {
            p.empty { "No job is listed. " code { "tessera submit SCENE" } " makes one." }
        } @else {
            form method="post" action="/jobs/change" data-confirm="" {
                @if changes { (bulk()) }
                div.wide tabindex="0" role="region" aria-label="Jobs" {
                    table {
                        thead {
                            tr {
                                @if changes { th scope="col" { (all_box()) } }
                                th scope="col" { "Job" }
                                th scope="col" { "State" }
                                th scope="col" { "Progress" }
                                th.number scope="col" { "Frames" }
                                th scope="col" { "Owner" }
                                th.number scope="col" { "Priority" }
                                th scope="col" { "Submitted" }
                                th scope="col" { "Note" }
                            }
                        }
                        tbody #jobs { @for job in &page.jobs { (row(job, changes)) } }
                    }
                }
            }
        }
        @if let Some(next) = &page.next { (further(&wanted, next)) }
    };
    Ok(layout::page(Some(&visitor.0), "Jobs", &body))
}

fn filter(wanted: &Wanted) -> Markup {
    html! {
        form.filter method="get" action="/jobs" role="search" {
            label { "State "
                select name="state" {
                    option value="" { "all" }
                    @for one in JobState::ALL.map(JobState::name) {
                        option value=(one) selected[wanted.state == one] { (one) }
                    }
                }
            }
            label { "Name " input name="name" value=(wanted.name) placeholder="shot_*"; }
            label { "Owner " input name="owner" value=(wanted.owner) placeholder="ada"; }
            label { "Batch " input name="batch" value=(wanted.batch) placeholder="film-7c01"; }
            label { "Order "
                select name="order" {
                    @for one in JobOrder::ALL.map(JobOrder::name) {
                        option value=(one) selected[wanted.order == one] { (one) }
                    }
                }
            }
            button { "Show" }
        }
    }
}

fn bulk() -> Markup {
    let all = [
        ("pause", "Pause"),
        ("resume", "Resume"),
        ("retry", "Retry"),
        ("cancel", "Cancel"),
        ("forget", "Forget"),
    ];
    html! {
        div.bulk role="group" aria-label="Change the ticked jobs" {
            @for (word, text) in all {
                button.quiet name="change" value=(word) { (text) }
            }
            span #ticked.hint aria-live="polite" { "Tick jobs to change them." }
        }
    }
}

fn all_box() -> Markup {
    html! { input #tick-all type="checkbox" aria-label="Tick all jobs of this page"; }
}

fn row(job: &Job, changes: bool) -> Markup {
    let share = percent(job.units_committed, job.units);
    html! {
        tr data-job=(job.job) {
            @if changes {
                td { input type="checkbox" name="job" value=(job.job)
                    aria-label={ "Tick " (job.name) }; }
            }
            th scope="row" { a href={ "/jobs/" (job.job) } { bdi { (job.name) } } }
            td { (state(&job.state)) }
            td { (bar(share)) }
            td.number data-field="frames" { (job.frames_done) "/" (job.frames) }
            td { bdi { (job.owner) } }
            td.number data-field="priority" { (job.priority) }
            td { (ago(job.submitted_at)) }
            td.note { bdi.brief data-field="note" title=(job.note) { (job.note) } }
        }
    }
}

/// A bar of progress with its number.
pub(super) fn bar(share: u64) -> Markup {
    html! {
        span.bar-of {
            progress data-field="progress" max="100" value=(share) aria-label="Progress" {}
            span data-field="percent" { (share) " %" }
        }
    }
}

/// Leads to further jobs.
fn further(wanted: &Wanted, next: &str) -> Markup {
    html! {
        form.further method="get" action="/jobs" {
            input type="hidden" name="state" value=(wanted.state);
            input type="hidden" name="name" value=(wanted.name);
            input type="hidden" name="owner" value=(wanted.owner);
            input type="hidden" name="batch" value=(wanted.batch);
            input type="hidden" name="order" value=(wanted.order);
            input type="hidden" name="cursor" value=(next);
            button { "Further jobs" }
        }
    }
}
