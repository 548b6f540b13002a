//! One job: how far it is, why it waits, what it makes, its frames and its failures.

use super::after::graph;
use super::assets::address;
use super::costs::price;
use super::jobs::bar;
use super::layout::{self, may};
use super::log::{self, Said};
use super::visitor::{Failed, Visitor};
use super::why::why;
use super::words::{ago, bytes, changes, count, percent, state};
use crate::api::{explain, jobs};
use crate::forms::Asked;
use crate::problem::Problem;
use crate::state::Shared;
use axum::extract::{Path, State};
use maud::{Markup, html};
use serde::Deserialize;
use tessera_protocol::JobKind;
use tessera_protocol::client::Role;
use tessera_protocol::cost::{Stored, device_time, space_time};
use tessera_protocol::explain::Subject;
use tessera_protocol::job::FormatSpec;
use tessera_protocol::status::{FrameState, FrameStatus, JobDetail};
use tessera_protocol::utc::utc;

/// Frames on a page.
const FRAMES: u32 = 240;

/// Which frames are shown.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Wanted {
    /// Position of the first.
    #[serde(default)]
    from: u32,
    /// Least severity of the lines of its log.
    level: Option<String>,
}

/// `/jobs/{job}`.
pub(super) async fn page(
    State(server): State<Shared>,
    visitor: Visitor,
    Path(job): Path<String>,
    Asked(Wanted { from, level }): Asked<Wanted>,
) -> Result<Markup, Failed> {
    let signed = &visitor.0;
    let detail = jobs::detail(&server, signed, &job).await.map_err(visitor.fails())?;
    let (caller, id) = (signed.caller(), detail.summary.job);
    let frames = server.api.some_frames(caller, id, (from, FRAMES)).await;
    let frames = frames.map_err(Problem::from).map_err(visitor.fails())?;
    let explanation = explain::of(&server, signed, Subject::Job(id)).await;
    let explanation = explanation.map_err(visitor.fails())?;
    let summary = &detail.summary;
    let mine = signed.caller().number() == summary.owner_id && may(signed, Role::Artist);
    let changes_it = mine || may(signed, Role::Operator);
    // What nodes said of a job is for those who may read it, also as a viewer.
    let reads = signed.caller().number() == summary.owner_id || may(signed, Role::Operator);
    let said = match reads {
        true => Some(log::of_job(&server, signed, id, level).await.map_err(visitor.fails())?),
        false => None,
    };
    let body = html! {
        div data-job=(job) data-page="job" {
            div.title {
                h1 { bdi { (summary.name) } }
                (state(summary.state.name()))
                (bar(percent(summary.units_committed, summary.units)))
            }
            (why(&explanation))
            @if changes_it { (actions(&detail)) }
            (graph(&detail))
            (facts(&detail))
            (film(&detail))
            (frame_list(&detail, &frames, from))
            (failures(&detail, said.as_ref()))
            @if let Some(said) = &said { (log::section(said)) }
        }
    };
    Ok(layout::page(Some(signed), &summary.name, &body))
}

fn actions(detail: &JobDetail) -> Markup {
    let summary = &detail.summary;
    let limit = detail.spec.max_nodes.map(|nodes| nodes.to_string()).unwrap_or_default();
    let begins = detail.spec.not_before.map(|secs| utc(secs).replace(' ', "T"));
    let begins = begins.map(|text| text.trim_end_matches('Z').to_owned()).unwrap_or_default();
    html! {
        form.inline method="post" action="/jobs/change" data-confirm="" {
            input type="hidden" name="job" value=(summary.job);
            input type="hidden" name="back" value={ "/jobs/" (summary.job) };
            @for (word, text) in changes(summary.state) {
                // What cannot be undone does not ask to be pressed.
                button.quiet[matches!(*word, "cancel" | "forget")] name="change" value=(word) {
                    (text)
                }
            }
        }
        @if !summary.state.is_final() {
            details {
                summary { "Priority, pool, nodes and time" }
                form.set method="post" action={ "/jobs/" (summary.job) "/set" } {
                    label { "Priority (0 to 100) "
                        input type="number" name="priority" min="0" max="100"
                            value=(summary.priority); }
                    label { "Pool (empty: any) "
                        input name="pool" value=(detail.spec.pool.as_deref().unwrap_or_default()); }
                    label { "Nodes at most (empty: any) "
                        input type="number" name="max_nodes" min="1" value=(limit); }
                    label { "Not before, in UTC (empty: at once) "
                        input type="datetime-local" step="1" name="not_before" value=(begins); }
                    button { "Set" }
                }
            }
        }
    }
}

/// A batch, which leads to its jobs.
fn of_batch(batch: &str) -> Markup {
    let asked = serde_urlencoded::to_string([("batch", batch)]).unwrap_or_default();
    html! { a href={ "/jobs?" (asked) } { bdi { (batch) } } }
}

/// What a job costs so far, and what device time is left of it.
fn cost(detail: &JobDetail) -> Markup {
    html! {
        @if !detail.currency.is_empty() {
            ", " span data-field="cost" { (price(detail.summary.cost, &detail.currency)) }
        }
        @if let Some(left @ 1..) = detail.left_millis {
            ", about " (device_time(left)) " to go"
        }
    }
}

fn facts(detail: &JobDetail) -> Markup {
    let JobDetail { summary, spec, fingerprint, copies, .. } = detail;
    html! {
        dl.facts {
            dt { "Owner" } dd { bdi { (summary.owner) } " #" (summary.owner_id) }
            dt { "Submitted" } dd { (ago(summary.submitted_at)) }
            @if let Some(ended) = summary.ended_at { dt { "Ended" } dd { (ago(ended)) } }
            (subject(&spec.kind))
            dt { "Frames" }
            dd { span data-field="frames" { (summary.frames_done) "/" (summary.frames) } " done" }
            dt { "Units" }
            dd {
                span data-field="units" { (summary.units_committed) " of " (summary.units) }
                " committed, " span data-field="leased" { (summary.units_leased) } " leased"
            }
            dt { "Samples" } dd { (count(summary.samples_committed as f64)) }
            @if summary.device_millis > 0 {
                dt { "Device time" }
                dd { span data-field="time" { (device_time(summary.device_millis)) }
                    (cost(detail)) }
            }
            @if detail.stored != Stored::default() {
                dt { "Storage" }
                dd { (space_time(detail.stored.byte_hours)) ", "
                    (price(detail.stored.cost, &detail.currency)) }
            }
            dt { "Priority" } dd data-field="priority" { (summary.priority) }
            @if let Some(pool) = &spec.pool { dt { "Pool" } dd { bdi { (pool) } } }
            @if let Some(batch) = &spec.batch {
                dt { "Batch" } dd { (of_batch(batch)) }
            }
            @if let Some(secs) = spec.not_before { dt { "Not before" } dd { (utc(secs)) } }
            @if !spec.notify.is_empty() {
                dt { "Tells" } dd { (spec.notify.join(", ")) }
            }
            @if copies.won + copies.lost + copies.running > 0 {
                dt { "Copies" }
                dd { (copies.running) " running, " (copies.won) " first, " (copies.lost)
                    " not first" }
            }
            @if detail.devices_waited_millis > 0 {
                dt { "Devices waited" }
                dd { (format!("{:.1} s", detail.devices_waited_millis as f64 / 1e3))
                    " in all for frames to be prepared" }
            }
            @if let Some(fingerprint) = fingerprint {
                dt { "Fingerprint" } dd { code { (fingerprint) } }
            }
            dt { "Id" } dd { code { (summary.job) } }
        }
    }
}

/// What is rendered or computed.
fn subject(kind: &JobKind) -> Markup {
    match kind {
        JobKind::Render(render) => html! {
            dt { "Scene" } dd { bdi { (render.scene) } }
            dt { "Picture" }
            dd { (render.width) " × " (render.height) ", " (render.spp) " samples a pixel, depth "
                (render.depth) }
        },
        JobKind::Compute(compute) => html! {
            dt { "Kernel" } dd { bdi { (compute.program.name()) } }
            dt { "Domain" } dd { (compute.domain) }
        },
    }
}

/// The scrub bar of a film whose frames a browser can show as they are. Its script shows it where
/// two of them are finished.
fn film(detail: &JobDetail) -> Markup {
    let render = detail.spec.kind.render().filter(|render| {
        detail.summary.frames > 1 && render.formats.iter().any(|format| *format != FormatSpec::Exr)
    });
    html! {
        @if let Some(render) = render {
            section #film hidden aria-label="Film" data-job=(detail.summary.job)
                data-fps=(render.fps) {
                img #film-picture.picture alt="";
                div.scrub {
                    button #play.quiet type="button" { "Play" }
                    input #scrub type="range" min="0" value="0" aria-label="Frame";
                    output #scrub-is for="scrub" {}
                }
            }
            script type="module" src=(address("film.js")) {}
        }
    }
}

fn frame_list(detail: &JobDetail, frames: &[FrameStatus], from: u32) -> Markup {
    let (job, all) = (detail.summary.job, detail.summary.frames);
    let shown = from.saturating_add(frames.len() as u32);
    html! {
        h2 { "Frames" }
        ol.frames #frames data-from=(from) data-most=(FRAMES) {
            @for frame in frames { (cell(&job.to_string(), frame)) }
        }
        @if from > 0 || shown < all {
            nav.pages aria-label="Frames" {
                @if from > 0 {
                    a href={ "?from=" (from.saturating_sub(FRAMES)) } { "Earlier frames" }
                }
                span { (from + 1) " to " (shown) " of " (all) }
                @if shown < all { a href={ "?from=" (shown) } { "Later frames" } }
            }
        }
    }
}

fn cell(job: &str, frame: &FrameStatus) -> Markup {
    let number = frame.frame.0;
    let (word, share, text) = standing(&frame.state);
    let picture = match &frame.state {
        FrameState::Done(files) => files
            .iter()
            .map(|file| file.format.as_str())
            .find(|format| ["png", "jpg", "jpeg"].contains(format)),
        _ => None,
    };
    html! {
        li data-frame=(number) data-state=(word) {
            a href={ "/jobs/" (job) "/frames/" (number) } {
                @if let Some(format) = picture {
                    img loading="lazy" alt={ "Frame " (number) }
                        src={ "/api/v1/jobs/" (job) "/frames/" (number) "/files/" (format) };
                }
                span.number { (number) }
                progress max="100" value=(share) aria-label={ "Frame " (number) } {}
                span.what { (text) }
            }
        }
    }
}

/// A frame's state in a word, its progress in percent, and in words.
pub(super) fn standing(state: &FrameState) -> (&'static str, u64, String) {
    match state {
        FrameState::Open { committed, units, .. } => {
            let share = percent((*committed).into(), (*units).into());
            let word = if *committed == 0 { "waiting" } else { "open" };
            (word, share, format!("{committed} of {units} units"))
        }
        FrameState::Resolving => ("finishing", 99, "being finished".to_owned()),
        FrameState::Finishing { done, pieces } => {
            ("finishing", 99, format!("finishing: {done} of {pieces}"))
        }
        FrameState::Failed(reason) => ("failed", 0, format!("failed: {reason}")),
        FrameState::Done(files) => {
            let files = files.iter().map(|file| format!("{} {}", file.format, bytes(file.length)));
            ("done", 100, files.collect::<Vec<_>>().join(", "))
        }
    }
}

fn failures(detail: &JobDetail, said: Option<&Said>) -> Markup {
    html! {
        @if !detail.failures.is_empty() {
            h2 { "Failed attempts" }
            div.wide tabindex="0" role="region" aria-label="Failed attempts" {
                table {
                    thead { tr {
                        th scope="col" { "When" } th scope="col" { "Unit" }
                        th scope="col" { "Node" } th scope="col" { "Why" }
                    } }
                    tbody {
                        @for failure in detail.failures.iter().rev() {
                            tr {
                                td { (ago(failure.at)) }
                                td { code { (failure.unit) } }
                                td { bdi { (failure.node) } }
                                td {
                                    bdi { (failure.reason) }
                                    @if let Some(said) = said { (log::of_failure(said, failure)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
