//! `fsck`: checks the data folder of a stopped coordinator.

use crate::args::fsck::FsckArgs;
use crate::blob_place;
use crate::error::{CliError, Status};
use crate::json;
use crate::store_place;
use crate::table::{bytes, counted, printable};
use std::fmt::Write as _;
use tessera_coordinator::folder::FolderError;
use tessera_coordinator::{AuditError, Depth, FarmAt, Finding, FsckReport, Severity};

/// `tessera fsck`.
pub(crate) fn run(args: FsckArgs) -> Result<Status, CliError> {
    let depth = if args.quick { Depth::Quick } else { Depth::Whole };
    let store = store_place::chosen(&args.store, false)?.place;
    let blobs = blob_place::chosen(&args.blobs)?;
    let kept = FarmAt { data: &args.data, store: &*store, blobs: &*blobs };
    let report = tessera_coordinator::fsck(kept, depth).map_err(|error| match error {
        AuditError::Folder(FolderError::InUse { .. }) => CliError::from(error).hint(
            "stop the coordinator, or let it check itself: `tessera coordinator --data DIR \
                --audit`",
        ),
        AuditError::Folder(FolderError::Absent { .. }) => CliError::new(Status::NotFound, error),
        error => error.into(),
    })?;
    match args.json {
        true => {
            let mut value = json::value(&report)?;
            value["clean"] = report.is_clean().into();
            json::print_value(&value)?;
        }
        false => json::line(describe(&report).trim_end())?,
    }
    Ok(if report.is_clean() { Status::Done } else { Status::Failure })
}

fn describe(report: &FsckReport) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{name:<9}{value}");
    };
    line(
        "journal",
        [
            (report.values, "value"),
            (report.records, "record"),
            (report.tokens, "token"),
            (report.members, "member"),
        ]
        .map(|(count, what)| counted(count, what))
        .join(", "),
    );
    line("jobs", format!("{}, {} of them open", report.jobs, report.jobs_open));
    let (committed, twice) = (report.units_committed, report.units_committed_twice);
    line("units", format!("{committed} committed ({twice} twice), {} open", report.units_open));
    line("frames", format!("{} finished", report.frames));
    line("spools", format!("{} with {}", report.spools, counted(report.results, "result")));
    line("blobs", format!("{}, {}", report.blobs, bytes(report.blob_bytes)));
    for finding in &report.findings {
        text += &describe_finding(finding);
    }
    if report.findings_left_out > 0 {
        let _ = writeln!(text, "and {}", counted(report.findings_left_out, "more finding"));
    }
    let errors = report.errors().count() as u64 + report.findings_left_out;
    match report.is_clean() {
        true => text += "clean: nothing that was promised is lost",
        false => _ = write!(text, "NOT CLEAN: {}", counted(errors, "error")),
    }
    text
}

fn describe_finding(finding: &Finding) -> String {
    let severity = if finding.severity == Severity::Error { "error" } else { "note" };
    let (place, problem) = (printable(&finding.place), printable(&finding.problem));
    format!(
        "{severity}: {place}: {problem}\n  means: {}\n  to do: {}\n",
        finding.meaning, finding.action
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use tessera_coordinator::fsck::FindingKind;

    #[test]
    fn a_finding_says_what_it_means_and_what_to_do() {
        let mut report = FsckReport::default();
        assert!(describe(&report).ends_with("clean: nothing that was promised is lost"));
        report.findings.push(Finding::new(FindingKind::Uploads, "partial", "2 files"));
        assert!(describe(&report).ends_with("clean: nothing that was promised is lost"));
        report.findings.push(Finding::new(
            FindingKind::LostBlob,
            "blob 00\u{1b}",
            "it is not there",
        ));
        let text = describe(&report);
        assert!(text.ends_with("NOT CLEAN: 1 error"), "{text}");
        assert!(text.contains("error: blob 00\\u{1b}: it is not there\n  means: "), "{text}");
        assert!(text.contains("  to do: submit the same scene"), "{text}");
    }
}
