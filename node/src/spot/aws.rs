//! Notices of Amazon EC2, from version 2 of its instance metadata service: a token first, then two
//! paths that are absent until there is a notice.

use super::Notice;
use super::http::{Answer, Metadata, MetadataError};

const TOKEN: &str = "/latest/api/token";
const ACTION: &str = "/latest/meta-data/spot/instance-action";
const REBALANCE: &str = "/latest/meta-data/events/recommendations/rebalance";

/// Returns the present notice.
pub(super) async fn look(service: &mut Metadata) -> Result<Option<Notice>, MetadataError> {
    // `{"action": "terminate", "time": "2026-09-18T08:22:00Z"}`, or `stop`, or `hibernate`: two
    // minutes before.
    if let Some(text) = get(service, ACTION).await? {
        return Ok(Some(Notice {
            what: format!("AWS takes this machine back: {text}"),
            certain: true,
        }));
    }
    // `{"noticeTime": "2026-09-18T08:22:00Z"}`: the risk is higher than usual, and nothing is
    // certain.
    let found = get(service, REBALANCE).await?;
    Ok(found.map(|text| Notice {
        what: format!("AWS recommends leaving this machine: {text}"),
        certain: false,
    }))
}

/// Returns the content of a path; None if it is absent.
async fn get(service: &mut Metadata, path: &'static str) -> Result<Option<String>, MetadataError> {
    let mut answer = ask(service, path).await?;
    if answer.status == 401 {
        // The token has expired.
        service.kept = None;
        answer = ask(service, path).await?;
    }
    match answer.status {
        200 => Ok(Some(answer.body)),
        404 => Ok(None),
        _ => Err(service.status_error(&answer, path)),
    }
}

async fn ask(service: &mut Metadata, path: &'static str) -> Result<Answer, MetadataError> {
    let token = match &service.kept {
        Some(token) => token.clone(),
        None => {
            let answer =
                service.ask("PUT", TOKEN, "X-aws-ec2-metadata-token-ttl-seconds: 21600").await?;
            if answer.status != 200 || answer.body.contains(['\r', '\n']) {
                return Err(service.status_error(&answer, TOKEN));
            }
            service.kept = Some(answer.body.clone());
            answer.body
        }
    };
    service.ask("GET", path, &format!("X-aws-ec2-metadata-token: {token}")).await
}
