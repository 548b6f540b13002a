//! One frame: its picture, looked at in the browser on linear pixels, and its files.

use super::assets::address;
use super::job::standing;
use super::layout;
use super::visitor::{Failed, Visitor};
use super::words::{TONE_MAPS, bytes};
use crate::api::jobs;
use crate::problem::Problem;
use crate::state::Shared;
use crate::views::hex;
use axum::extract::{Path, State};
use maud::{Markup, html};
use tessera_protocol::status::{FrameFile, FrameState, FrameStatus, JobDetail};

/// `/jobs/{job}/frames/{frame}`.
pub(super) async fn page(
    State(server): State<Shared>,
    visitor: Visitor,
    Path((job, number)): Path<(String, String)>,
) -> Result<Markup, Failed> {
    let signed = &visitor.0;
    let detail = jobs::detail(&server, signed, &job).await.map_err(visitor.fails())?;
    let none = || Problem::not_found(format!("the job has no frame {number:?}"));
    let numbers = detail.spec.kind.frames();
    let wanted = number.parse::<u32>().ok();
    let position = numbers.iter().position(|frame| Some(frame.0) == wanted);
    let position = position.ok_or_else(none).map_err(visitor.fails())?;
    let (caller, id) = (signed.caller(), detail.summary.job);
    let number = numbers.iter().nth(position).ok_or_else(none).map_err(visitor.fails())?;
    let frame = server.api.frame(caller, id, number).await;
    let frame = frame.map_err(Problem::from).map_err(visitor.fails())?;
    let near = |at: Option<usize>| at.and_then(|at| numbers.iter().nth(at)).map(|frame| frame.0);
    let neighbours = (near(position.checked_sub(1)), near(position.checked_add(1)));
    let title = format!("{} · frame {}", detail.summary.name, frame.frame.0);
    let body = html! {
        div data-job=(job) data-page="frame" data-frame=(frame.frame.0) {
            div.title {
                h1 { a href={ "/jobs/" (job) } { bdi { (detail.summary.name) } }
                    " · frame " (frame.frame.0) }
                span.state data-state=(standing(&frame.state).0) { (word(&frame.state)) }
            }
            (steps(&job, neighbours))
            (shown(&detail, &frame))
        }
        script type="module" src=(address("viewer.js")) {}
    };
    Ok(layout::page(Some(signed), &title, &body))
}

/// A frame's state for its badge: its files are in the table below.
fn word(state: &FrameState) -> String {
    match state {
        FrameState::Done(_) => "done".to_owned(),
        other => standing(other).2,
    }
}

fn steps(job: &str, (before, after): (Option<u32>, Option<u32>)) -> Markup {
    html! {
        nav.pages aria-label="Frames" {
            @if let Some(before) = before {
                a rel="prev" href={ "/jobs/" (job) "/frames/" (before) } { "Frame " (before) }
            }
            @if let Some(after) = after {
                a rel="next" href={ "/jobs/" (job) "/frames/" (after) } { "Frame " (after) }
            }
        }
    }
}

fn shown(detail: &JobDetail, frame: &FrameStatus) -> Markup {
    let FrameState::Done(files) = &frame.state else {
        return html! {
            p.empty { "The picture comes when the frame is finished; this page then shows it." }
        };
    };
    let place = format!("/api/v1/jobs/{}/frames/{}/files", detail.summary.job, frame.frame.0);
    let of = |formats: &[&str]| files.iter().find(|file| formats.contains(&file.format.as_str()));
    html! {
        @if let Some(file) = of(&["exr"]) {
            (viewer(&format!("{place}/{}", file.format)))
        } @else if let Some(file) = of(&["png", "jpg", "jpeg"]) {
            img.picture src={ (place) "/" (file.format) } alt={ "Frame " (frame.frame.0) };
        }
        (table(&place, files))
    }
}

/// The picture on linear pixels: exposure, tone map, layers, zoom, the value under the pointer.
fn viewer(source: &str) -> Markup {
    html! {
        section #viewer.viewer data-source=(source) aria-label="Picture" {
            div.tools role="group" aria-label="How the picture is shown" {
                label { "Layer " select #layer { option { "picture" } } }
                label { "Exposure "
                    input #exposure type="range" min="-8" max="8" step="0.25" value="0";
                    output #exposure-is for="exposure" { "0" } " EV" }
                label { "Tone map "
                    select #tone {
                        @for name in TONE_MAPS { option value=(name) { (name) } }
                    }
                }
                label { "Zoom "
                    select #zoom {
                        option value="fit" { "fit" }
                        @for zoom in [1, 2, 4, 8, 16] { option value=(zoom) { (zoom * 100) " %" } }
                    }
                }
            }
            div #stage.stage tabindex="0" role="img"
                aria-label="The picture. Arrow keys move the marked pixel." {
                canvas #canvas {}
            }
            p #under.under aria-live="polite" { "Loading the picture." }
        }
    }
}

fn table(place: &str, files: &[FrameFile]) -> Markup {
    html! {
        h2 { "Files" }
        div.wide tabindex="0" role="region" aria-label="Files" {
            table {
                thead { tr {
                    th scope="col" { "File" } th.number scope="col" { "Length" }
                    th scope="col" { "BLAKE3" } th scope="col" { "SHA-256 of the pixels" }
                } }
                tbody {
                    @for file in files {
                        tr {
                            th scope="row" {
                                a href={ (place) "/" (file.format) } download { (file.format) }
                            }
                            td.number { (bytes(file.length)) }
                            td { code { (file.hash) } }
                            td { code { (hex(&file.pixels_sha256)) } }
                        }
                    }
                }
            }
        }
    }
}
