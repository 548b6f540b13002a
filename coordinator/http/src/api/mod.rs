//! The API under `/api/v1`: its routes, and the description of them that is committed as
//! `docs/openapi.json`.

mod batches;
mod blobs;
mod common;
mod costs;
mod events;
pub(crate) mod explain;
mod farm;
mod files;
mod inspect;
mod job_inputs;
pub(crate) mod jobs;
mod live;
pub(crate) mod logs;
mod members;
pub(crate) mod nodes;
pub(crate) mod presets;
pub(crate) mod session;
mod submit;
mod submit_form;
mod templates;

use crate::problem::Problem;
use crate::state::Shared;
use axum::Router;
use utoipa::OpenApi as _;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Tessera",
        description = "The API of a Tessera farm. Times are seconds since the Unix epoch. \
            Programs send `Authorization: Bearer TOKEN` with a token of `tessera token create \
            --api`; errors are problem details (RFC 9457)."
    ),
    servers((url = "/api/v1")),
    modifiers(&Security)
)]
struct Described;

/// Says how requests are signed.
struct Security;

impl utoipa::Modify for Security {
    fn modify(&self, described: &mut utoipa::openapi::OpenApi) {
        use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
        let components = described.components.get_or_insert_default();
        let scheme = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        components.add_security_scheme("token", scheme);
        let needed =
            utoipa::openapi::security::SecurityRequirement::new::<_, [&str; 0], _>("token", []);
        described.security = Some(vec![needed]);
    }
}

fn all() -> OpenApiRouter<Shared> {
    OpenApiRouter::with_openapi(Described::openapi())
        .routes(routes!(session::me))
        .routes(routes!(session::sign_in))
        .routes(routes!(session::sign_out))
        .routes(routes!(jobs::list))
        .routes(routes!(jobs::change))
        .routes(routes!(jobs::one, jobs::edit, submit::submit))
        .routes(routes!(inspect::inspect))
        .routes(routes!(templates::outline))
        .routes(routes!(templates::plan))
        .routes(routes!(batches::submit))
        .routes(routes!(presets::list))
        .routes(routes!(presets::one, presets::publish, presets::remove))
        .routes(routes!(jobs::frames))
        .routes(routes!(explain::job))
        .routes(routes!(explain::frame))
        .routes(routes!(jobs::kernel_text))
        .routes(routes!(files::frame_file))
        .routes(routes!(live::live))
        .routes(routes!(logs::of_job))
        .routes(routes!(logs::follow_job))
        .routes(routes!(logs::of_node))
        .routes(routes!(logs::follow_node))
        .routes(routes!(blobs::missing))
        .routes(routes!(blobs::get, blobs::put))
        .routes(routes!(blobs::held))
        .routes(routes!(nodes::list))
        .routes(routes!(nodes::one, nodes::remove))
        .routes(routes!(explain::node))
        .routes(routes!(nodes::drain))
        .routes(routes!(nodes::undrain))
        .routes(routes!(members::tokens, members::create_token))
        .routes(routes!(members::create_api_token))
        .routes(routes!(members::revoke_token))
        .routes(routes!(members::members))
        .routes(routes!(members::remove_member))
        .routes(routes!(members::keep_member))
        .routes(routes!(members::denied))
        .routes(routes!(members::deny, members::allow))
        .routes(routes!(members::audit_log))
        .routes(routes!(farm::usage))
        .routes(routes!(costs::costs))
        .routes(routes!(costs::rules, costs::set_rules))
        .routes(routes!(farm::sweep))
        .routes(routes!(farm::authority))
        .routes(routes!(farm::rotate))
        .routes(routes!(farm::check_records))
        .routes(routes!(farm::backup))
        .routes(routes!(events::events))
}

/// The routes of the API.
pub(crate) fn router() -> Router<Shared> {
    let (router, _) = all().split_for_parts();
    router.fallback(|| async { Problem::not_found("there is no such address in the API") })
}

/// The description of the API as OpenAPI, in JSON.
pub fn openapi() -> String {
    let (_, mut described) = all().split_for_parts();
    common::describe(&mut described);
    // The library writes a hyphen into the names of these formats, which the registry of formats
    // does not have.
    let written = described.to_pretty_json().unwrap_or_default();
    let mut text = written.replace("\"format\": \"u-int", "\"format\": \"uint");
    text.push('\n');
    text
}
