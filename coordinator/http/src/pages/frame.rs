//! One frame: its picture, looked at in the browser on linear pixels, and its files.

use super::assets::address;
use super::job::standing;
use super::layout;
use super::visitor::{Failed, Visitor};
use super::why::why;
use super::words::{TONE_MAPS, bytes};
use crate::api::{explain, jobs};
use crate::problem::Problem;
use crate::state::Shared;
use crate::views::hex;
use axum::extract::{Path, State};
use maud::{Markup, html};
use tessera_protocol::explain::Subject;
use tessera_protocol::job::RenderSpec;
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
    let explanation = explain::of(&server, signed, Subject::Frame { job: id, frame: number }).await;
    let explanation = explanation.map_err(visitor.fails())?;
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
            (why(&explanation))
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
    let place = format!("/api/v1/jobs/{}/frames/{}", detail.summary.job, frame.frame.0);
    let FrameState::Done(files) = &frame.state else {
        let is_open = !matches!(frame.state, FrameState::Failed(_));
        let later = html! { p.empty { "This page shows the picture when the frame is finished." } };
        return match detail.spec.kind.render().filter(|_| is_open) {
            None => later,
            Some(render) => html! {
                (viewer(&Source::Live(&format!("{place}/live"), render)))
                noscript { (later) }
            },
        };
    };
    let place = format!("{place}/files");
    let of = |formats: &[&str]| files.iter().find(|file| formats.contains(&file.format.as_str()));
    html! {
        @if let Some(file) = of(&["exr"]) {
            (viewer(&Source::File(&format!("{place}/{}", file.format))))
        } @else if let Some(file) = of(&["png", "jpg", "jpeg"]) {
            img.picture src={ (place) "/" (file.format) } alt={ "Frame " (frame.frame.0) };
        }
        (table(&place, files))
    }
}

/// Where the pixels of a picture come from.
enum Source<'a> {
    /// The frame's EXR file.
    File(&'a str),
    /// Live tiles of a frame that is being rendered.
    Live(&'a str, &'a RenderSpec),
}

/// The picture on linear pixels: exposure, tone map, layers, zoom, the value under the pointer.
fn viewer(source: &Source<'_>) -> Markup {
    let (file, live, label) = match *source {
        Source::File(address) => (Some(address), None, "Picture"),
        Source::Live(address, _) => (None, Some(address), "Picture, while it is rendered"),
    };
    html! {
        section #viewer.viewer data-source=[file] data-live=[live] aria-label=(label) {
            div.tools role="group" aria-label="How the picture is shown" {
                @if file.is_some() {
                    label { "Layer " select #layer { option { "picture" } } }
                }
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
            @if file.is_some() { (comparison()) }
            div #stage.stage tabindex="0" role="img"
                aria-label="The picture. Arrow keys move the marked pixel." {
                canvas #canvas {}
            }
            @if let Source::Live(_, render) = source {
                p #arrived.note data-tiles=(render.tiles().count()) {
                    "Tiles appear here as they are rendered."
                }
                p #under.under aria-live="polite" {}
            } @else {
                p #under.under aria-live="polite" { "Loading the picture." }
            }
        }
    }
}

/// The picture beside another frame's.
fn comparison() -> Markup {
    html! {
        div.tools role="group" aria-label="Comparison" {
            label { "Compare with frame "
                input #with placeholder="12, or JOB/12" size="24" autocomplete="off"; }
            span #compared hidden {
                label { "Show "
                    select #how {
                        option value="split" { "split" }
                        option value="difference" { "difference" }
                    }
                }
                label { " Split at "
                    input #split type="range" min="0" max="100" value="50"; }
            }
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
