//! `fsck`, `backup`, `restore` and `forget`: what a coordinator keeps.

use crate::args::store::{BackupArgs, ForgetArgs, FsckArgs, RestoreArgs};
use crate::client::{Farm, unexpected};
use crate::error::{CliError, Status};
use crate::table::{bytes, printable};
use crate::{job_id, json};
use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;
use tessera_coordinator::backup::{self, BackupError, BackupSummary};
use tessera_coordinator::folder::FolderError;
use tessera_coordinator::{AuditError, Depth, Finding, FsckReport, Severity};
use tessera_protocol::client::{Request, Response};
use tessera_transport::Identity;

/// `tessera fsck`.
pub(crate) fn fsck(args: FsckArgs) -> Result<Status, CliError> {
    let depth = if args.quick { Depth::Quick } else { Depth::Whole };
    let report = tessera_coordinator::fsck(&args.data, depth).map_err(|error| match error {
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
            json::line(&value.to_string())?;
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
        format!("{} values, {} records, {} tokens", report.values, report.records, report.tokens),
    );
    line("jobs", format!("{}, {} of them open", report.jobs, report.jobs_open));
    let (committed, twice) = (report.units_committed, report.units_committed_twice);
    line("units", format!("{committed} committed ({twice} twice), {} open", report.units_open));
    line("frames", format!("{} finished", report.frames));
    line("spools", format!("{} with {} results", report.spools, report.results));
    line("blobs", format!("{}, {}", report.blobs, bytes(report.blob_bytes)));
    for finding in &report.findings {
        text += &describe_finding(finding);
    }
    if report.findings_left_out > 0 {
        let _ = writeln!(text, "and {} more findings", report.findings_left_out);
    }
    let errors = report.errors().count() as u64 + report.findings_left_out;
    match report.is_clean() {
        true => text += "clean: nothing that was promised is lost",
        false => _ = write!(text, "NOT CLEAN: {errors} errors"),
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

/// `tessera backup`.
pub(crate) async fn backup(args: BackupArgs) -> Result<Status, CliError> {
    if args.output.exists() {
        let message = format!("`{}` is there already", args.output.display());
        return Err(CliError::new(Status::Failure, message).hint("give a name that is free"));
    }
    let about = |error: std::io::Error| {
        CliError::from(error).context(format!("`{}`", args.output.display()))
    };
    let folder = args.output.parent().filter(|folder| !folder.as_os_str().is_empty());
    // Made readable by its owner alone, and gone unless it is whole.
    let mut file = tempfile::Builder::new()
        .prefix(".backup-")
        .tempfile_in(folder.unwrap_or(Path::new(".")))
        .map_err(about)?;
    write(&args, file.as_file_mut()).await?;
    file.as_file().sync_all().map_err(about)?;
    let summary = backup::verify(file.path())?;
    file.persist_noclobber(&args.output).map_err(|error| about(error.error))?;
    tell(&summary, "backed up", args.json)?;
    if summary.keys == 0 {
        eprintln!(
            "the farm's keys and denials are not in it: `--data DIR` on the coordinator's machine \
                puts them in"
        );
    }
    Ok(Status::Done)
}

async fn write(args: &BackupArgs, file: &mut std::fs::File) -> Result<(), CliError> {
    let data = args.data.as_deref();
    backup::begin(data, file)?;
    let farm = match data {
        None => Farm::of(&args.farm)?,
        Some(data) => match backup::backup_stopped(data, file) {
            Ok(()) => return Ok(()),
            Err(BackupError::Source(AuditError::Folder(FolderError::InUse { .. }))) => {
                running_at(data)?
            }
            Err(error) => return Err(error.into()),
        },
    };
    let client = farm.connect().await?;
    let mut pieces = client.backup().await?;
    while let Some(piece) = pieces.next().await? {
        file.write_all(&piece)?;
    }
    client.close().await;
    Ok(())
}

/// The coordinator that runs on a data folder, asked as its admin.
fn running_at(data: &Path) -> Result<Farm, CliError> {
    let identity = Identity::load(&data.join("admin"))?;
    let address = identity.coordinator.clone().ok_or_else(|| {
        CliError::new(
            Status::Failure,
            "the folder is in use, and does not say where its coordinator listens",
        )
    })?;
    Ok(Farm::new(address, identity))
}

/// `tessera restore`.
pub(crate) fn restore(args: RestoreArgs) -> Result<Status, CliError> {
    let summary = backup::restore(&args.backup, &args.data)?;
    tell(&summary, "restored", args.json)?;
    let data = args.data.display();
    if summary.keys == 0 {
        eprintln!(
            "it held no keys: put the folders `authority`, `admin` and `access` back, or every \
                node and user must enrol anew"
        );
    }
    eprintln!("go on with `tessera coordinator --data {data}`");
    Ok(Status::Done)
}

fn tell(summary: &BackupSummary, done: &str, as_json: bool) -> Result<(), CliError> {
    if as_json {
        return json::print(summary);
    }
    let BackupSummary { keys, values, spools, blobs, log, bytes: length } = summary;
    let length = bytes(*length);
    eprintln!(
        "{done}: {length}: {values} values of the journal, {spools} spools, {blobs} blobs, {log} \
            files of the audit log, {keys} files of keys"
    );
    Ok(())
}

/// `tessera forget`.
pub(crate) async fn forget(args: ForgetArgs) -> Result<Status, CliError> {
    let farm = Farm::of(&args.farm)?;
    for text in &args.jobs {
        let job = job_id::find(&farm, text).await?;
        match farm.ask(&Request::Forget(job)).await? {
            Response::Done => eprintln!(
                "forgot {job}; its frames are deleted when they are older than the coordinator's \
                    --blob-grace"
            ),
            _ => return Err(unexpected()),
        }
    }
    Ok(Status::Done)
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
        assert!(text.ends_with("NOT CLEAN: 1 errors"), "{text}");
        assert!(text.contains("error: blob 00 : it is not there\n  means: "), "{text}");
        assert!(text.contains("  to do: submit the same scene"), "{text}");
    }
}
