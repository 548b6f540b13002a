//! `usage`: shows what each user and node has of a farm.

use crate::args::usage::UsageArgs;
use crate::client::{Farm, unexpected};
use crate::error::{CliError, Status};
use crate::json;
use crate::table::{bytes, counted, printable, table};
use tessera_protocol::client::{Request, Response};
use tessera_protocol::usage::OwnerUsage;

const HEAD: [&str; 10] = [
    "OWNER",
    "JOBS",
    "ENDED",
    "FRAMES",
    "UNITS",
    "JOB DATA",
    "FRAME FILES",
    "FILES",
    "UNUSED",
    "NOW",
];

/// `tessera usage`.
pub(crate) async fn run(args: UsageArgs) -> Result<Status, CliError> {
    let Response::Usage(mut rows) = Farm::of(&args.farm)?.ask(&Request::Usage).await? else {
        return Err(unexpected());
    };
    if let Some(owner) = &args.owner {
        rows.retain(|row| row.owner == *owner || format!("#{}", row.owner_id) == *owner);
    }
    if args.json {
        json::print(&rows)?;
        return Ok(Status::Done);
    }
    if rows.is_empty() {
        eprintln!("nobody has a job or a file here, as far as this identity may know");
        return Ok(Status::Done);
    }
    let rows: Vec<_> = rows.iter().map(row).collect();
    json::line(table(&HEAD, &rows).trim_end())?;
    Ok(Status::Done)
}

fn row(usage: &OwnerUsage) -> Vec<String> {
    vec![
        printable(&format!("{} #{}", usage.owner, usage.owner_id)),
        usage.jobs.to_string(),
        usage.jobs_ended.to_string(),
        usage.frames.to_string(),
        usage.units.to_string(),
        bytes(usage.spec_bytes),
        bytes(usage.frame_bytes),
        bytes(usage.named_bytes + usage.unnamed_bytes),
        bytes(usage.unnamed_bytes),
        now(usage),
    ]
}

/// What somebody has of the coordinator at this moment.
fn now(usage: &OwnerUsage) -> String {
    let mut parts = Vec::new();
    if usage.requests > 0 {
        parts.push(counted(usage.requests, "request"));
    }
    if usage.watchers > 0 {
        parts.push(counted(usage.watchers, "watched job"));
    }
    if usage.result_bytes > 0 {
        parts.push(format!("{} of results", bytes(usage.result_bytes)));
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_what_an_owner_has() {
        let usage = OwnerUsage {
            owner: "ada\u{1b}".into(),
            jobs: 2,
            frames: 300,
            named_bytes: 1 << 20,
            unnamed_bytes: 3 << 20,
            watchers: 1,
            ..OwnerUsage::default()
        };
        let row = row(&usage);
        assert_eq!(row.len(), HEAD.len());
        assert!(!row[0].contains('\u{1b}'));
        assert_eq!([&row[1], &row[3], &row[9]], ["2", "300", "1 watched job"]);
        assert_eq!((&row[7], &row[8]), (&bytes(4 << 20), &bytes(3 << 20)));
    }
}
