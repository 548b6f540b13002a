//! `explain`: says why a job, a frame or a node stands as it does, and what would help.

use crate::args::explain::ExplainArgs;
use crate::client::{Farm, unexpected};
use crate::error::{CliError, Status};
use crate::place::{Place, neither};
use crate::table::{printable, span};
use crate::{job_id, json};
use std::fmt::Write as _;
use tessera_protocol::client::{Request, Response};
use tessera_protocol::explain::{Explanation, Subject};
use tessera_protocol::{FrameNumber, JobId};
use tessera_transport::FarmClient;

/// `tessera explain`.
pub(crate) async fn run(args: ExplainArgs) -> Result<Status, CliError> {
    let client = Farm::of(&args.farm)?.connect().await?;
    let explained = explained(&client, &args).await;
    client.close().await;
    let explanation = explained?;
    match args.json {
        true => json::print(&explanation)?,
        false => json::line(words(&explanation).trim_end())?,
    }
    if !args.json && explanation.reasons.iter().any(|reason| has_lines(&reason.word)) {
        let what = printable(&args.what);
        eprintln!("hint: `tessera logs {what}` prints what nodes said of it");
    }
    Ok(Status::Done)
}

/// Explains the job or the frame of it; if there is no such job, the node of that name.
async fn explained(client: &FarmClient, args: &ExplainArgs) -> Result<Explanation, CliError> {
    let node = || Subject::Node(args.what.clone());
    if args.node {
        return ask(client, node()).await;
    }
    let place = Place::of(&args.what)?;
    if place.unit.is_some() {
        let text = format!("`{}` is a unit: it stands as its frame does", printable(&args.what));
        return Err(CliError::new(Status::Usage, text).hint("ask for JOB/FRAME"));
    }
    let is_unknown = |error: &CliError| error.status() == Status::NotFound;
    let of_job = match job_id::find_on(client, place.job).await {
        Ok(job) => ask(client, subject(job, place.frame)).await,
        Err(error) => Err(error),
    };
    match of_job {
        Err(error) if is_unknown(&error) && place.frame.is_none() => {
            let of_node = ask(client, node()).await;
            of_node.map_err(|other| if is_unknown(&other) { neither(&args.what) } else { other })
        }
        answer => answer,
    }
}

/// Whether what nodes said helps where this is the reason.
fn has_lines(word: &str) -> bool {
    ["failed", "frame_failed", "backoff", "barred"].contains(&word)
}

fn subject(job: JobId, frame: Option<FrameNumber>) -> Subject {
    match frame {
        Some(frame) => Subject::Frame { job, frame },
        None => Subject::Job(job),
    }
}

async fn ask(client: &FarmClient, subject: Subject) -> Result<Explanation, CliError> {
    match client.request(&Request::Explain(subject)).await? {
        Response::Explained(explanation) => Ok(*explanation),
        _ => Err(unexpected()),
    }
}

/// The explanation, a fact a line.
fn words(explanation: &Explanation) -> String {
    let Explanation { about, state, reasons, ahead, begins_secs, left_secs } = explanation;
    let mut text = format!("{} is {}\n", printable(about), printable(state));
    let mut line = |name: &str, value: String| {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{name:<8}{}", printable(&value));
    };
    for reason in reasons {
        line("why", reason.why.clone());
        if !reason.help.is_empty() {
            line("  help", reason.help.clone());
        }
        if let Some(secs) = reason.ends_secs {
            line("  ends", format!("in {}", span(secs)));
        }
    }
    for one in ahead {
        let units = if one.units == 1 { "unit" } else { "units" };
        line(
            "before",
            format!("{}: {} {units} in work, such as of `{}`", one.owner, one.units, one.job),
        );
    }
    if let Some(secs) = begins_secs {
        line("begins", format!("in about {}", span(*secs)));
    }
    if let Some(secs) = left_secs {
        line("left", format!("about {}", span(*secs)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use tessera_protocol::explain::{Ahead, Reason};

    #[test]
    fn an_explanation_is_a_fact_a_line() {
        let reason = Reason {
            word: "turn".into(),
            why: "waits for its turn\u{1b}".into(),
            help: "more nodes".into(),
            ends_secs: Some(5),
        };
        let ahead = Ahead { owner: "`bob`".into(), units: 1, job: "film".into() };
        let explanation = Explanation {
            about: "job `shot`".into(),
            state: "queued".into(),
            reasons: vec![reason],
            ahead: vec![ahead],
            begins_secs: Some(7),
            left_secs: Some(3600),
        };
        let text = words(&explanation);
        for expected in [
            "job `shot` is queued",
            "why     waits for its turn",
            "  help  more nodes",
            "  ends  in 5 s",
            "before  `bob`: 1 unit in work, such as of `film`",
            "begins  in about 7 s",
            "left    about 60 min",
        ] {
            assert!(text.contains(expected), "{expected:?} is not in\n{text}");
        }
        assert!(!text.contains('\u{1b}'));
    }
}
