//! `restore`: makes a data folder of a backup.

use super::backup::report;
use crate::args::restore::RestoreArgs;
use crate::error::{CliError, Status};
use std::path::Path;
use tessera_coordinator::backup::{self, ArchiveError, RestoreError};

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
    let summary =
        backup::restore(&args.backup, &args.data).map_err(|error| told(error, &args.backup))?;
    report(&summary, "restored", args.json)?;
    let data = args.data.display();
    if summary.keys == 0 {
        eprintln!(
            "it held no keys: put the folders `authority`, `admin` and `access` back, or every \
                node and user must enrol anew"
        );
    }
    eprintln!("start it with `tessera coordinator --data {data}`");
    Ok(Status::Done)
}
