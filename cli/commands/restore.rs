//! `restore`: makes a data folder of a backup.

use super::backup::report;
use crate::args::restore::RestoreArgs;
use crate::error::{CliError, Status};
use tessera_coordinator::backup;

/// `tessera restore`.
pub(crate) fn run(args: RestoreArgs) -> Result<Status, CliError> {
    let summary = backup::restore(&args.backup, &args.data)?;
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
