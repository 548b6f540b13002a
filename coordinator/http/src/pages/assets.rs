//! Scripts, styles and pictures of the pages. They are in the program; their addresses change with
//! what they hold, so that browsers keep them for long.

use crate::problem::{Problem, stopping};
use axum::extract::Path;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use std::sync::LazyLock;
use tessera_coordinator::screen_map;
use tessera_protocol::job::ToneMapSpec;

const FILES: &[(&str, &str, &str)] = &[
    ("style.css", "text/css", include_str!("../../assets/style.css")),
    ("icon.svg", "image/svg+xml", include_str!("../../assets/icon.svg")),
    ("live.js", "text/javascript", include_str!("../../assets/live.js")),
    ("why.js", "text/javascript", include_str!("../../assets/why.js")),
    ("events.js", "text/javascript", include_str!("../../assets/events.js")),
    ("worker.js", "text/javascript", include_str!("../../assets/worker.js")),
    ("sign-in.js", "text/javascript", include_str!("../../assets/sign-in.js")),
    ("exr.js", "text/javascript", include_str!("../../assets/exr.js")),
    ("tone.js", "text/javascript", include_str!("../../assets/tone.js")),
    ("tiles.js", "text/javascript", include_str!("../../assets/tiles.js")),
    ("viewer.js", "text/javascript", include_str!("../../assets/viewer.js")),
    ("log.js", "text/javascript", include_str!("../../assets/log.js")),
    ("film.js", "text/javascript", include_str!("../../assets/film.js")),
    ("submit.js", "text/javascript", include_str!("../../assets/submit.js")),
    ("template.js", "text/javascript", include_str!("../../assets/template.js")),
    ("files.js", "text/javascript", include_str!("../../assets/files.js")),
    ("ask.js", "text/javascript", include_str!("../../assets/ask.js")),
    ("upload.js", "text/javascript", include_str!("../../assets/upload.js")),
    ("hasher.js", "text/javascript", include_str!("../../assets/hasher.js")),
    ("blake3.js", "text/javascript", include_str!("../../assets/blake3.js")),
];

/// First digits of the hash of all files. Scripts name each other without it.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let mut hasher = blake3::Hasher::new();
    for (name, _, text) in FILES {
        hasher.update(name.as_bytes()).update(text.as_bytes());
    }
    hasher.finalize().to_hex()[..16].to_owned()
});

/// Address of a file.
pub(super) fn address(name: &str) -> String {
    format!("/assets/{}/{name}", *VERSION)
}

/// A file at its address. A page that was loaded from an earlier build gets today's, and keeps it
/// for no time.
pub(super) async fn file(Path((version, file)): Path<(String, String)>) -> Response {
    if let Some(map) = tone_map(&file) {
        return table(map).await;
    }
    let found = FILES.iter().find(|(name, ..)| *name == file);
    let Some((_, kind, text)) = found else {
        return Problem::not_found(format!("there is no file {file:?}")).into_response();
    };
    let kept = match version == *VERSION {
        true => "public, max-age=31536000, immutable",
        false => "no-cache",
    };
    let kind = format!("{kind}; charset=utf-8");
    ([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, kept.to_owned())], *text)
        .into_response()
}

/// The tone map whose table has this name.
fn tone_map(file: &str) -> Option<ToneMapSpec> {
    match file {
        "agx.tone" => Some(ToneMapSpec::Agx),
        "filmic.tone" => Some(ToneMapSpec::Filmic),
        _ => None,
    }
}

/// A tone map as a table, which is computed once: up to 2.3 MB.
async fn table(tone_map: ToneMapSpec) -> Response {
    let bytes = move || screen_map(tone_map);
    let Ok(Some(bytes)) = tokio::task::spawn_blocking(bytes).await else {
        return stopping().into_response();
    };
    let head = [
        (header::CONTENT_TYPE, "application/octet-stream"),
        (header::CACHE_CONTROL, "public, max-age=86400"),
    ];
    (head, bytes).into_response()
}

/// The icon, where browsers look for it by themselves.
pub(super) async fn icon() -> Response {
    file(Path((VERSION.clone(), "icon.svg".to_owned()))).await
}
