//! Templates that admins publish for all who submit.

use super::templates::{check, preset_of};
use crate::asking::{ask, stopping};
use crate::auth::Signed;
use crate::forms::Json;
use crate::problem::Problem;
use crate::state::Shared;
use axum::extract::{Path, State};
use serde::{Deserialize, Serialize};
use tessera_protocol::client::{Request, Response};
use tessera_protocol::preset;
use utoipa::ToSchema;

/// A preset in a listing.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PresetRow {
    /// Its name.
    pub(crate) name: String,
    /// Bytes of the template.
    bytes: u32,
    /// Name of the admin who published it.
    pub(crate) by: String,
    /// When it was published.
    pub(crate) at: u64,
}

/// A preset.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Preset {
    /// Its name.
    name: String,
    /// The template, as TOML.
    template: String,
    /// Name of the admin who published it.
    by: String,
    /// When it was published.
    at: u64,
}

/// A template to publish.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PresetForm {
    /// The template, as TOML.
    template: String,
}

/// List the presets
///
/// A preset is a template that an admin has published. It is used by its name, in the field
/// `preset` of a template's form.
#[utoipa::path(get, path = "/presets", operation_id = "presets", tag = "jobs", responses(
    (status = 200, body = Vec<PresetRow>), (status = 401, body = Problem)))]
pub(crate) async fn list(
    State(server): State<Shared>,
    signed: Signed,
) -> Result<axum::Json<Vec<PresetRow>>, Problem> {
    Ok(axum::Json(all(&server, &signed).await?))
}

/// All presets, by name.
pub(crate) async fn all(server: &Shared, signed: &Signed) -> Result<Vec<PresetRow>, Problem> {
    match ask(server, signed.caller(), Request::Presets).await? {
        Response::Presets(presets) => Ok(presets.into_iter().map(PresetRow::from).collect()),
        _ => Err(stopping()),
    }
}

impl From<preset::PresetSummary> for PresetRow {
    fn from(preset::PresetSummary { name, bytes, by, at }: preset::PresetSummary) -> Self {
        Self { name, bytes, by, at }
    }
}

/// Show a preset
#[utoipa::path(get, path = "/presets/{preset}", operation_id = "preset",
    tag = "jobs", params(("preset" = String, Path)),
    responses((status = 200, body = Preset), (status = 401, body = Problem),
    (status = 404, body = Problem)))]
pub(crate) async fn one(
    State(server): State<Shared>,
    signed: Signed,
    Path(name): Path<String>,
) -> Result<axum::Json<Preset>, Problem> {
    let preset::Preset { name, text, by, at } = preset_of(&server, &signed, name).await?;
    Ok(axum::Json(Preset { name, template: text, by, at }))
}

/// Publish a template for all who submit
///
/// For admins. It is checked first; one of the same name is replaced.
#[utoipa::path(put, path = "/presets/{preset}", operation_id = "publish_preset",
    tag = "jobs", params(("preset" = String, Path)),
    request_body = PresetForm, responses((status = 200, body = Preset),
    (status = 400, body = Problem), (status = 401, body = Problem),
    (status = 403, body = Problem), (status = 422, body = Problem),
    (status = 429, body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn publish(
    State(server): State<Shared>,
    signed: Signed,
    Path(name): Path<String>,
    Json(PresetForm { template }): Json<PresetForm>,
) -> Result<axum::Json<Preset>, Problem> {
    if server.looks.inspector.is_some() {
        check(&server, &signed, template.clone()).await?;
    }
    set(&server, &signed, (name.clone(), Some(template))).await?;
    one(State(server), signed, Path(name)).await
}

/// Take a preset away
///
/// For admins. Jobs that were made of it stay.
#[utoipa::path(delete, path = "/presets/{preset}", operation_id = "remove_preset", tag = "jobs",
    params(("preset" = String, Path)), responses((status = 200, body = Vec<PresetRow>),
    (status = 401, body = Problem), (status = 403, body = Problem),
    (status = 404, body = Problem)))]
pub(crate) async fn remove(
    State(server): State<Shared>,
    signed: Signed,
    Path(name): Path<String>,
) -> Result<axum::Json<Vec<PresetRow>>, Problem> {
    set(&server, &signed, (name, None)).await?;
    Ok(axum::Json(all(&server, &signed).await?))
}

async fn set(
    server: &Shared,
    signed: &Signed,
    (name, text): (String, Option<String>),
) -> Result<(), Problem> {
    match ask(server, signed.caller(), Request::SetPreset { name, text }).await? {
        Response::Done => Ok(()),
        _ => Err(stopping()),
    }
}
