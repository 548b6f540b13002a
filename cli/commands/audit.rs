//! `audit`: prints the audit log and checks its chain.

use crate::args::audit::AuditArgs;
use crate::client::{Farm, unexpected};
use crate::error::{CliError, Status};
use crate::json;
use crate::table::{printable, table};
use tessera_protocol::access::LogEntry;
use tessera_protocol::client::{Request, Response};
use tessera_protocol::utc::utc;

/// `tessera audit`.
pub(crate) async fn run(args: AuditArgs) -> Result<Status, CliError> {
    let farm = Farm::of(&args.farm)?;
    let Response::Log(mut report) = farm.ask(&Request::Log { last: args.last }).await? else {
        return Err(unexpected());
    };
    // What came over the wire is checked here too.
    for pair in report.newest.windows(2) {
        if let [before, entry] = pair
            && entry.hash != entry.chained_to(&before.hash)
        {
            report.problems.push(format!("entry {} does not follow the one before", entry.n));
        }
    }
    if args.json {
        json::print(&report)?;
    } else {
        let rows: Vec<_> = report.newest.iter().map(row).collect();
        let text = table(&["N", "TIME", "WHO", "WHAT", "ABOUT"], &rows);
        json::line(&format!(
            "{text}{} entries from {} on, head {}",
            report.entries, report.first, report.head
        ))?;
    }
    if report.problems.is_empty() {
        return Ok(Status::Done);
    }
    let text: Vec<String> = report.problems.iter().map(|problem| printable(problem)).collect();
    Err(CliError::new(
        Status::Failure,
        format!("the chain of the audit log is broken: {}", text.join("; ")),
    )
    .hint(
        "compare with a copy of DATA/audit; a head that was noted elsewhere shows which entries \
            are unchanged",
    ))
}

fn row(entry: &LogEntry) -> Vec<String> {
    let texts = [&entry.who, &entry.what, &entry.about].map(|text| printable(text));
    [vec![entry.n.to_string(), utc(entry.at)], texts.to_vec()].concat()
}
