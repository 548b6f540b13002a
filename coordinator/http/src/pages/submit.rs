//! A new job: files are dropped, looked at, tried in a small picture, and submitted. The work is
//! done by the page's script through the API; without scripts, the command line does the same.

use super::assets::address;
use super::layout::{self, may};
use super::visitor::{Failed, Visitor};
use super::words::TONE_MAPS;
use crate::problem::Problem;
use axum::http::StatusCode;
use maud::{Markup, html};
use tessera_protocol::client::Role;

/// What can be dropped: scenes, and what belongs to them.
const ACCEPTED: &str = ".glb,.gltf,.bin,.png,.jpg,.jpeg,.webp,.ktx2,.hdr,.exr";

/// `/submit`.
pub(super) async fn page(visitor: Visitor) -> Result<Markup, Failed> {
    if !may(&visitor.0, Role::Artist) {
        let text = "jobs are submitted by artists and all who may do more";
        return Err(visitor.fails()(Problem::new(StatusCode::FORBIDDEN, text)));
    }
    let body = html! {
        div.title {
            h1 { "New job" }
            a href="/submit/template" { "From a template" }
        }
        noscript {
            p.problem { "This page needs scripts. " code { "tessera submit" } " does the same." }
        }
        div data-page="submit" {
            (files())
            section #about hidden aria-labelledby="about-title" {
                h2 #about-title tabindex="-1" { "What is in it" }
                dl #report.report {}
            }
            p #problem.problem role="alert" hidden {}
            (options())
            section #preview hidden aria-labelledby="preview-title" {
                h2 #preview-title { "Preview" }
                p #preview-state.hint role="status" {}
                img #preview-picture.picture hidden alt="Preview of the first frame";
            }
        }
        script type="module" src=(address("submit.js")) {}
    };
    Ok(layout::page(Some(&visitor.0), "New job", &body))
}

fn files() -> Markup {
    html! {
        section #drop.drop aria-labelledby="files-title" {
            h2 #files-title { "Scene" }
            p { "Drop a .glb here, or a folder with a .gltf and its files; a .hdr or .exr beside \
                them is the environment." }
            div.inline {
                label { "Files "
                    input #files type="file" multiple accept=(ACCEPTED); }
                label { "Folder "
                    input #folder type="file" webkitdirectory; }
            }
            label #which hidden { "Scene file " select #scene {} }
            p #sending.hint role="status" {}
            progress #sent max="1" value="0" hidden aria-label="Files read and sent" {}
        }
    }
}

fn options() -> Markup {
    html! {
        form #job.narrow hidden {
            h2 { "The picture" }
            label { "Name " input name="name" required maxlength="128"; }
            label { "Camera " select name="camera" {} }
            label { "Environment " select name="environment" {} }
            div.set {
                label { "Width " input name="width" type="number" min="1" max="65536" required; }
                label { "Height " input name="height" type="number" min="1" max="65536" required; }
            }
            div.set #film hidden {
                label { "Frames " input name="frames" value="0"; }
                label { "Frames per second "
                    input name="fps" type="number" min="0.001" step="any" value="24"; }
            }
            div.set {
                label { "Samples per pixel "
                    input name="spp" type="number" min="1" max="1048576" value="256" required; }
                label { input name="denoise" type="checkbox"; " Denoise" }
            }
            div.set {
                label { input name="exr" type="checkbox" checked; " EXR" }
                label { input name="png" type="checkbox" checked; " PNG" }
                label { "Tone map "
                    select name="tone_map" {
                        @for name in TONE_MAPS { option { (name) } }
                    }
                }
                label { "Exposure (stops) "
                    input name="exposure" type="number" min="-64" max="64" step="any" value="0"; }
            }
            details {
                summary { "Priority, pool and time" }
                div.set {
                    label { "Priority (0 to 100) "
                        input name="priority" type="number" min="0" max="100" value="50"; }
                    label { "Pool (empty: any) " input name="pool"; }
                    label { "Not before, by your clock (empty: at once) "
                        input name="not_before" type="datetime-local"; }
                }
            }
            div.inline {
                button #try.quiet type="button" { "Preview" }
                button #submit { "Submit" }
            }
        }
    }
}
