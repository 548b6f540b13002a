//! `logs`: prints what nodes and their children said of a job, a frame, a unit or themselves.

use crate::args::logs::LogsArgs;
use crate::client::{Farm, unexpected};
use crate::error::{CliError, Status};
use crate::place::{Place, neither};
use crate::table::printable;
use crate::{job_id, json};
use std::time::{SystemTime, UNIX_EPOCH};
use tessera_protocol::JobId;
use tessera_protocol::client::{Request, Response};
use tessera_protocol::logs::{KeptLine, LogPage, LogQuery, LogTarget, Severity};
use tessera_protocol::utc::utc;
use tessera_transport::FarmClient;

/// Last lines of a failed job that are shown with it.
pub(super) const LAST: u32 = 10;

/// `tessera logs`.
pub(crate) async fn run(args: LogsArgs) -> Result<Status, CliError> {
    let farm = Farm::of(&args.farm)?;
    let client = farm.connect().await?;
    let asked = asked(&client, &args).await;
    client.close().await;
    let (mut query, first) = asked?;
    print(&first, args.json)?;
    if !args.follow {
        if first.more {
            eprintln!("there are older lines; --lines N prints more of them");
        }
        return Ok(Status::Done);
    }
    query.after = Some(first.next);
    let following = farm.persist(async |client| follow(client, &mut query, args.json).await);
    tokio::select! {
        ended = following => ended.map(|()| Status::Done),
        _ = tokio::signal::ctrl_c() => Ok(Status::Interrupted),
    }
}

/// Returns the question that is meant and its first answer: about a job or, if there is no such
/// job, about the node of that name.
async fn asked(client: &FarmClient, args: &LogsArgs) -> Result<(LogQuery, LogPage), CliError> {
    let place = Place::of(&args.what)?;
    let of_node = query_of(args, LogTarget::Node(args.what.clone()), &Place::default());
    if args.node {
        return answered(client, of_node).await;
    }
    let is_unknown = |error: &CliError| error.status() == Status::NotFound;
    match job_id::find_on(client, place.job).await {
        Ok(job) => answered(client, query_of(args, LogTarget::Job(job), &place)).await,
        Err(error) if is_unknown(&error) && place.frame.is_none() => {
            let answer = answered(client, of_node).await;
            answer.map_err(|other| if is_unknown(&other) { neither(&args.what) } else { other })
        }
        Err(error) => Err(error),
    }
}

async fn answered(client: &FarmClient, query: LogQuery) -> Result<(LogQuery, LogPage), CliError> {
    let page = page(client, &query).await?;
    Ok((query, page))
}

fn query_of(args: &LogsArgs, target: LogTarget, place: &Place<'_>) -> LogQuery {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    LogQuery {
        frame: place.frame,
        unit: place.unit,
        source: args.source,
        severity: args.level,
        since_millis: args.since.map_or(0, |secs| now.saturating_sub(secs) * 1000),
        ..LogQuery::newest(target, args.lines)
    }
}

async fn page(client: &FarmClient, query: &LogQuery) -> Result<LogPage, CliError> {
    match client.request(&Request::Logs(Box::new(query.clone()))).await? {
        Response::Logs(page) => Ok(*page),
        _ => Err(unexpected()),
    }
}

/// Prints lines as they come, until the job has ended.
async fn follow(client: &FarmClient, query: &mut LogQuery, as_json: bool) -> Result<(), CliError> {
    let mut pages = client.follow_logs(query.clone()).await?;
    while let Some(page) = pages.next().await? {
        print(&page, as_json)?;
        query.after = Some(page.next);
    }
    let ended = match &query.target {
        LogTarget::Job(job) => match client.request(&Request::Job(*job)).await {
            Ok(Response::Job(detail)) => detail.summary.state.is_final(),
            Ok(_) => return Err(unexpected()),
            Err(error) => return Err(error.into()),
        },
        LogTarget::Node(_) => false,
    };
    match ended {
        true => Ok(()),
        false => Err(CliError::new(Status::Unreachable, "the coordinator tells no more lines")),
    }
}

/// The newest lines of a job that matter; none if there are none, or if they are not for this user.
pub(super) async fn last_of(farm: &Farm, job: JobId) -> Vec<KeptLine> {
    let query = LogQuery { severity: Severity::Warning, ..newest_of(job) };
    let answer = match farm.ask(&Request::Logs(Box::new(query))).await {
        Ok(Response::Logs(page)) if page.lines.is_empty() => {
            farm.ask(&Request::Logs(Box::new(newest_of(job)))).await
        }
        other => other,
    };
    match answer {
        Ok(Response::Logs(page)) => page.lines,
        Ok(_) => Vec::new(),
        // Only the owner and operators may see them, and the job counts without them.
        Err(error) => {
            tracing::debug!(%error, "the lines of the job cannot be had");
            Vec::new()
        }
    }
}

fn newest_of(job: JobId) -> LogQuery {
    LogQuery::newest(LogTarget::Job(job), LAST)
}

fn print(page: &LogPage, as_json: bool) -> Result<(), CliError> {
    page.lines.iter().try_for_each(|line| match as_json {
        true => json::print(line),
        false => json::line(&words(line)),
    })
}

/// A line for people: when, how much it matters, who says it, of what, and what.
pub(super) fn words(line: &KeptLine) -> String {
    let KeptLine { at_millis, node, source, severity, frame, unit, job, text, .. } = line;
    let about = match (frame, unit) {
        (Some(frame), Some(unit)) => format!(" {frame}/u{:05}", unit.0),
        (Some(frame), None) => format!(" {frame}"),
        (None, _) => job.map(|job| format!(" {job}")).unwrap_or_default(),
    };
    let (when, severity, source) = (utc(at_millis / 1000), severity.name(), source.name());
    // What came over the wire is made safe here too.
    let (node, text) = (printable(node), printable(text.as_str()));
    format!("{when} {severity:<7} {node} {source}{about}: {text}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tessera_protocol::logs::{LogSource, LogText};
    use tessera_protocol::{Epoch, FrameNumber, UnitIndex};

    #[test]
    fn a_line_says_when_who_of_what_and_is_safe() {
        let line = KeptLine {
            number: 1,
            at_millis: 951_782_400_123,
            node: "rack\u{1b}".into(),
            source: LogSource::Compiler,
            severity: Severity::Warning,
            job: Some(JobId::new()),
            frame: Some(FrameNumber(7)),
            unit: Some(UnitIndex(12)),
            epoch: Some(Epoch(3)),
            text: LogText::new("it says\u{202e}"),
        };
        assert_eq!(
            words(&line),
            "2000-02-29 00:00:00Z warning rack\\u{1b} compiler f0007/u00012: it says\\u{202e}"
        );
    }
}
