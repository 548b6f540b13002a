//! `restore`: makes a data folder of a backup, and brings its state and files elsewhere if that is
//! asked for.

use super::backup::report;
use super::store::{told_of_files, told_of_state};
use crate::args::restore::RestoreArgs;
use crate::error::{CliError, Status};
use crate::progress::{Audience, Copying};
use crate::{blob_place, store_place};
use std::path::Path;
use tessera_coordinator::backup::{self, ArchiveError, RestoreError};
use tessera_coordinator::blobs::{self, DiskPlace};
use tessera_coordinator::store::{SledPlace, migrate};

/// Copies that migrations leave in the folder; the backup has the same.
const FORMER: &str = "former";

/// Names the backup where the fault is in it.
fn told(error: RestoreError, backup: &Path) -> CliError {
    let backup = backup.display();
    match error {
        RestoreError::Archive(ArchiveError::Read(source)) => {
            CliError::of_file(source).context(format!("cannot read the backup `{backup}`"))
        }
        RestoreError::Archive(_) => CliError::from(error).context(format!("`{backup}`")),
        error => error.into(),
    }
}

/// `tessera restore`.
pub(crate) fn run(args: RestoreArgs) -> Result<Status, CliError> {
    let store = (args.store.store != "sled").then(|| store_place::chosen(&args.store, false));
    let store = store.transpose()?;
    let files = (args.blobs.blobs != "disk").then(|| blob_place::chosen(&args.blobs));
    let files = files.transpose()?;
    let summary =
        backup::restore(&args.backup, &args.data).map_err(|error| told(error, &args.backup))?;
    let mut start = format!("tessera coordinator --data {}", args.data.display());
    if let Some(files) = &files {
        let copying = Copying::begin(Audience::of_stderr(args.json));
        let copied = blobs::migrate(&args.data, (&DiskPlace, &**files), &|done, all| {
            copying.update(done, all);
        });
        copying.end();
        copied.map_err(|error| not_brought(told_of_files(error), "disk", "s3://..."))?;
        start += " --blobs ADDRESS";
    }
    if let Some(store) = &store {
        migrate(&args.data, &SledPlace, &*store.place)
            .map_err(|error| not_brought(told_of_state(error), "sled", "postgres://..."))?;
        start += " --store ADDRESS";
    }
    remove_copies(&args.data)?;
    report(&summary, "restored", args.json)?;
    if summary.keys == 0 {
        eprintln!(
            "it held no keys: put the folders `authority`, `admin` and `access` back, or every \
                node and user must enrol anew"
        );
    }
    eprintln!("start it with `{start}`");
    Ok(Status::Done)
}

/// Says what a failure leaves, and how to go on.
fn not_brought(error: CliError, from: &str, to: &str) -> CliError {
    error.context(format!(
        "the farm is restored in the folder, and not brought elsewhere; go on with `tessera store \
         migrate --from {from}:DIR --to {to}`"
    ))
}

fn remove_copies(data: &Path) -> Result<(), CliError> {
    match std::fs::remove_dir_all(data.join(FORMER)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(CliError::from(error).context("cannot remove the folder `former`"))
        }
        _ => Ok(()),
    }
}
