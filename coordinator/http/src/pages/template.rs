//! A submission from a template or a preset: its parameters become fields, its files are brought to
//! the farm, its jobs are shown, and then submitted. The work is done by the page's script through
//! the API; without scripts, the command line does the same.

use super::assets::address;
use super::layout::{self, may};
use super::visitor::{Failed, Visitor};
use super::words::ago;
use crate::api::presets::{self, PresetRow};
use crate::problem::Problem;
use crate::state::Shared;
use axum::extract::State;
use axum::http::StatusCode;
use maud::{Markup, html};
use tessera_protocol::client::Role;

/// `/submit/template`.
pub(super) async fn page(State(server): State<Shared>, visitor: Visitor) -> Result<Markup, Failed> {
    if !may(&visitor.0, Role::Artist) {
        let text = "jobs are submitted by artists and all who may do more";
        return Err(visitor.fails()(Problem::new(StatusCode::FORBIDDEN, text)));
    }
    let presets = presets::all(&server, &visitor.0).await.map_err(visitor.fails())?;
    let publishes = may(&visitor.0, Role::Admin);
    let body = html! {
        h1 { "From a template" }
        noscript {
            p.problem {
                "This page needs scripts. " code { "tessera submit TEMPLATE.toml" }
                " does the same."
            }
        }
        div data-page="template" {
            (source(&presets))
            p #problem.problem role="alert" hidden {}
            form #values.narrow hidden {
                h2 #about tabindex="-1" {}
                p #description {}
                div #parameters {}
                label { "Name (empty: the template's) " input name="name" maxlength="64"; }
                div #files-wanted hidden {
                    p { "Choose the files that it names; a folder with them will do." }
                    ul #wanted {}
                    datalist #chosen {}
                    div.inline {
                        label { "Files " input #files type="file" multiple; }
                        label { "Folder " input #folder type="file" webkitdirectory; }
                    }
                }
                p #missing.hint role="status" {}
                p #sending.hint role="status" {}
                progress #sent max="1" value="0" hidden aria-label="Files read and sent" {}
                div.inline {
                    button #check.quiet type="button" { "Check" }
                    button #submit { "Submit" }
                    @if publishes { button #publish.quiet type="button" { "Publish as a preset" } }
                }
            }
            (plan())
            @if !presets.is_empty() { (listing(&presets, publishes)) }
        }
        script type="module" src=(address("template.js")) {}
    };
    Ok(layout::page(Some(&visitor.0), "From a template", &body))
}

fn source(presets: &[PresetRow]) -> Markup {
    html! {
        section aria-labelledby="source-title" {
            h2 #source-title { "Template" }
            div.inline {
                @if !presets.is_empty() {
                    label { "Preset of the farm "
                        select #preset {
                            option value="" { "none" }
                            @for preset in presets { option value=(preset.name) { (preset.name) } }
                        }
                    }
                }
                label { "A file " input #template type="file" accept=".toml"; }
            }
        }
    }
}

fn plan() -> Markup {
    html! {
        section #plan hidden aria-labelledby="plan-title" {
            h2 #plan-title tabindex="-1" { "Its jobs" }
            p #sum {}
            ul #notes {}
            div.wide tabindex="0" role="region" aria-label="Jobs of the template" {
                table {
                    thead { tr {
                        th scope="col" { "Name" } th scope="col" { "Kind" }
                        th scope="col" { "Frames" } th scope="col" { "Waits for" }
                    } }
                    tbody #jobs {}
                }
            }
        }
    }
}

fn listing(presets: &[PresetRow], publishes: bool) -> Markup {
    html! {
        section aria-labelledby="presets-title" {
            h2 #presets-title { "Presets" }
            div.wide tabindex="0" role="region" aria-label="List of presets" {
                table {
                    thead { tr {
                        th scope="col" { "Name" } th scope="col" { "By" } th scope="col" { "Since" }
                        @if publishes { th scope="col" { span.visually-hidden { "Change" } } }
                    } }
                    tbody {
                        @for preset in presets {
                            tr {
                                th scope="row" { (preset.name) }
                                td { bdi { (preset.by) } }
                                td { (ago(preset.at)) }
                                @if publishes {
                                    td {
                                        button.quiet type="button" data-remove=(preset.name) {
                                            "Take away"
                                            span.visually-hidden { " " (preset.name) }
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
