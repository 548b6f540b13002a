//! `backup`: writes what a coordinator keeps to one file.

use crate::args::backup::BackupArgs;
use crate::args::farm::FarmArgs;
use crate::client::{Farm, address};
use crate::error::{CliError, Status};
use crate::json;
use crate::table::{bytes, counted};
use std::io::Write;
use std::path::Path;
use tessera_coordinator::AuditError;
use tessera_coordinator::backup::{self, BackupError, BackupSummary};
use tessera_coordinator::folder::FolderError;
use tessera_transport::Identity;

/// `tessera backup`.
pub(crate) async fn run(args: BackupArgs) -> Result<Status, CliError> {
    if args.output.exists() {
        let message = format!("`{}` is there already", args.output.display());
        return Err(CliError::new(Status::Failure, message).hint("give a name that is free"));
    }
    let about = |error| not_written(error, &args.output);
    let folder = args.output.parent().filter(|folder| !folder.as_os_str().is_empty());
    // Only its owner can read the file, and it is deleted unless it is complete.
    let mut file = tempfile::Builder::new()
        .prefix(".backup-")
        .tempfile_in(folder.unwrap_or(Path::new(".")))
        .map_err(about)?;
    write(&args, file.as_file_mut()).await?;
    file.as_file().sync_all().map_err(about)?;
    let summary = backup::verify(file.path())?;
    file.persist_noclobber(&args.output).map_err(|error| about(error.error))?;
    report(&summary, "backed up", args.json)?;
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
    let told = |error| told(error, &args.output);
    backup::begin(data, file).map_err(told)?;
    let farm = match data {
        None => Farm::of(&args.farm)?,
        Some(data) => match backup::backup_stopped(data, file) {
            Ok(()) => return Ok(()),
            Err(BackupError::Source(AuditError::Folder(FolderError::InUse { .. }))) => {
                running_at(data, &args.farm)?
            }
            Err(error) => return Err(told(error)),
        },
    };
    let client = farm.connect().await?;
    let mut pieces = client.backup().await?;
    while let Some(piece) = pieces.next().await? {
        file.write_all(&piece).map_err(|error| not_written(error, &args.output))?;
    }
    client.close().await;
    Ok(())
}

/// Names the backup where it cannot be written.
fn told(error: BackupError, output: &Path) -> CliError {
    match error {
        BackupError::Write(source) => not_written(source, output),
        BackupError::Source(AuditError::Blobs(_)) => {
            CliError::from(error).hint("start the coordinator: it backs up what it has elsewhere")
        }
        error => error.into(),
    }
}

fn not_written(source: std::io::Error, output: &Path) -> CliError {
    CliError::from(source).context(format!("cannot write the backup `{}`", output.display()))
}

/// The coordinator that runs on a data folder, asked as its admin. If that only stands by, options
/// say where the one is that leads.
fn running_at(data: &Path, args: &FarmArgs) -> Result<Farm, CliError> {
    let identity = Identity::load(&data.join("admin"))?;
    if args.coordinator.is_some() {
        return Ok(Farm::new(address(args, &identity)?, identity));
    }
    let address = identity.coordinator.clone().ok_or_else(|| {
        CliError::new(
            Status::Failure,
            "the folder is in use, and does not say where its coordinator listens",
        )
    })?;
    Ok(Farm::new(address, identity))
}

/// Prints what a backup holds; `done` says what was done with it.
pub(super) fn report(summary: &BackupSummary, done: &str, as_json: bool) -> Result<(), CliError> {
    if as_json {
        return json::print(summary);
    }
    let BackupSummary { keys, values, spools, blobs, log, bytes: length } = summary;
    let length = bytes(*length);
    let [values, spools, blobs, log, keys] =
        [(values, "value"), (spools, "spool"), (blobs, "blob"), (log, "file"), (keys, "file")]
            .map(|(count, what)| counted(*count, what));
    eprintln!(
        "{done}: {length}: {values} of the journal, {spools}, {blobs}, {log} of the audit log, \
            {keys} of keys"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_that_cannot_be_written_is_named() {
        let full = BackupError::Write(std::io::Error::other("the disk is full"));
        let text = told(full, Path::new("x.backup")).to_string();
        assert_eq!(text, "error: cannot write the backup `x.backup`: the disk is full");
    }
}
