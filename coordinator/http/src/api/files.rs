//! Files of finished frames: whole, in ranges, and not again where the client has them.

use super::jobs::id;
use crate::auth::Signed;
use crate::problem::Problem;
use crate::state::Shared;
use crate::stream::Pieces;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use std::ops::Range;
use tessera_protocol::status::{FrameFile, FrameState};
use tessera_protocol::{BlobHash, FrameNumber};

/// Fetch a file of a finished frame
///
/// With `Range` and `If-None-Match`. The entity tag is the BLAKE3 of the file.
#[utoipa::path(get, path = "/jobs/{job}/frames/{frame}/files/{format}", tag = "jobs",
    params(("job" = String, Path), ("frame" = u32, Path, description = "Number of the frame"),
        ("format" = String, Path, description = "Such as exr or png; of a named output, flux.npy")),
    responses((status = 200, content_type = "application/octet-stream", body = [u8]),
    (status = 206, content_type = "application/octet-stream", body = [u8]), (status = 304),
    (status = 400, body = Problem), (status = 401, body = Problem),
    (status = 404, body = Problem), (status = 416, body = Problem)))]
pub(crate) async fn frame_file(
    State(server): State<Shared>,
    signed: Signed,
    Path((job, frame, format)): Path<(String, String, String)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let number: u32 =
        frame.parse().map_err(|_| Problem::not_found(format!("there is no frame {frame:?}")))?;
    let file = find(&server, &signed, (&job, number), &format).await?;
    let of = Some((id(&job)?, FrameNumber(number)));
    let mut response = blob(&server, &signed, (file.hash, of), &headers).await?;
    let kind = match format.as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "exr" => "image/x-exr",
        _ => "application/octet-stream",
    };
    response.headers_mut().insert(header::CONTENT_TYPE, axum::http::HeaderValue::from_static(kind));
    Ok(response)
}

/// Finds a file of a finished frame.
async fn find(
    server: &Shared,
    signed: &Signed,
    (job, number): (&str, u32),
    format: &str,
) -> Result<FrameFile, Problem> {
    let frame = server.api.frame(signed.caller(), id(job)?, FrameNumber(number)).await?;
    let FrameState::Done(files) = frame.state else {
        let text = format!("frame {number} is not finished: see the job's frames");
        return Err(Problem::not_found(text));
    };
    let known: Vec<String> = files.iter().map(|file| file.format.clone()).collect();
    files.into_iter().find(|file| file.format == format).ok_or_else(|| {
        Problem::not_found(format!(
            "frame {number} has no file {format:?}; it has {}",
            known.join(", ")
        ))
    })
}

/// Answers with a blob, or the asked range of it.
pub(super) async fn blob(
    server: &Shared,
    signed: &Signed,
    (hash, of): (BlobHash, Option<(tessera_protocol::JobId, FrameNumber)>),
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let found = server.api.get_blob(signed.caller(), hash, of).await?;
    let blob = found.ok_or_else(|| Problem::not_found("the file is no longer here"))?;
    let tag = format!("\"{}\"", hash);
    let fixed = [
        (header::ETAG, tag.clone()),
        (header::ACCEPT_RANGES, "bytes".to_owned()),
        (header::CACHE_CONTROL, "private, no-cache".to_owned()),
        (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
    ];
    let given = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let matches = |text: &str| text.split(',').any(|one| one.trim() == tag || one.trim() == "*");
    if given(header::IF_NONE_MATCH).is_some_and(matches) {
        return Ok((StatusCode::NOT_MODIFIED, fixed).into_response());
    }
    let length = blob.length();
    let fresh = given(header::IF_RANGE).is_none_or(|text| text == tag);
    let asked = given(header::RANGE).filter(|_| fresh).map(|text| range(text, length));
    match asked {
        None | Some(Asked::Whole) => {
            Ok((fixed, Body::new(Pieces::of_blob(blob, 0, length))).into_response())
        }
        Some(Asked::Part(part)) => {
            let said = format!("bytes {}-{}/{length}", part.start, part.end - 1);
            let body = Body::new(Pieces::of_blob(blob, part.start, part.end - part.start));
            let said = [(header::CONTENT_RANGE, said)];
            Ok((StatusCode::PARTIAL_CONTENT, fixed, said, body).into_response())
        }
        Some(Asked::Outside) => {
            let text = format!("the range is not within the {length} bytes");
            let mut response =
                Problem::new(StatusCode::RANGE_NOT_SATISFIABLE, text).into_response();
            if let Ok(value) = format!("bytes */{length}").parse() {
                response.headers_mut().insert(header::CONTENT_RANGE, value);
            }
            Ok(response)
        }
    }
}

/// What a Range header asks for.
#[derive(Debug, PartialEq, Eq)]
enum Asked {
    /// Everything: there is no such header, or it is of another kind.
    Whole,
    Part(Range<u64>),
    /// Nothing that is there.
    Outside,
}

/// Reads a Range header (RFC 9110, section 14.2). Several ranges are answered as the whole.
fn range(text: &str, length: u64) -> Asked {
    let Some(spec) = text.strip_prefix("bytes=").filter(|spec| !spec.contains(',')) else {
        return Asked::Whole;
    };
    let Some((first, last)) = spec.trim().split_once('-') else { return Asked::Whole };
    let number = |text: &str| match text.bytes().all(|byte| byte.is_ascii_digit()) {
        true => text.parse::<u64>().ok(),
        false => None,
    };
    let part = match (number(first), number(last)) {
        (Some(first), Some(last)) if last < first => return Asked::Whole,
        (Some(first), Some(last)) => first..last.saturating_add(1).min(length),
        (Some(first), None) if last.is_empty() => first..length,
        (None, Some(count)) if first.is_empty() => length.saturating_sub(count)..length,
        _ => return Asked::Whole,
    };
    if part.start < part.end { Asked::Part(part) } else { Asked::Outside }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_the_standard_says() {
        for (text, expected) in [
            ("bytes=0-0", Asked::Part(0..1)),
            ("bytes=2-", Asked::Part(2..10)),
            ("bytes=-3", Asked::Part(7..10)),
            ("bytes=-30", Asked::Part(0..10)),
            ("bytes=5-99999999999", Asked::Part(5..10)),
            ("bytes=10-", Asked::Outside),
            ("bytes=-0", Asked::Outside),
            ("bytes=3-2", Asked::Whole),
            ("bytes=0-1,4-5", Asked::Whole),
            ("bytes=+1-2", Asked::Whole),
            ("lines=1-2", Asked::Whole),
            ("bytes=", Asked::Whole),
            ("bytes=-", Asked::Whole),
            ("bytes=0-18446744073709551615", Asked::Part(0..10)),
            ("bytes=99999999999999999999-", Asked::Whole),
        ] {
            assert_eq!(range(text, 10), expected, "{text}");
        }
        assert_eq!(range("bytes=0-", 0), Asked::Outside);
    }
}
